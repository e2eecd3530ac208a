# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mlsys:
#     lab: adding
#     version: "1"
# ---

# %% [markdown]
# # Adding
#
# A small lab with one question of every kind.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"role": "setup"}
WHEEL = "MLSYS_WHEEL_URL"
from mlsys import grading

grading.use_device()

import torch
import triton
import triton.language as tl

# %% [markdown]
# ## a. Predict

# %% nbgrader={"grade": false, "grade_id": "a-predict", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "predict", "needs": ["setup"], "title": "Predict the bytes"}
### BEGIN SOLUTION
#: bytes_moved = None
bytes_moved = 3 * 4 * 1000
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test"}
grading.seal(bytes_moved=bytes_moved)
### BEGIN HIDDEN TESTS
assert bytes_moved == 12_000, f"{bytes_moved} bytes is not what three arrays of 1000 floats take"
### END HIDDEN TESTS

# %% [markdown]
# ## b. Add with a kernel

# %% nbgrader={"grade": false, "grade_id": "b-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "Add with a kernel"}
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, size, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    #: pass  # write the kernel here
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < size
    total = tl.load(x_ptr + offsets, mask=inside) + tl.load(y_ptr + offsets, mask=inside)
    tl.store(out_ptr + offsets, total, mask=inside)
    ### END SOLUTION


def add(x, y):
    ### BEGIN SOLUTION
    #: raise NotImplementedError("add")
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 64),)](x, y, out, x.numel(), BLOCK=64)
    return out
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test"}
visible = grading.Draws("b")
x, y = visible.matrix(1, 128)[0], visible.matrix(1, 128)[0]
grading.assert_close(grading.guarded(add)(x, y), x + y)
### BEGIN HIDDEN TESTS
hidden = grading.Draws("b-hidden")
hidden_size = hidden.ragged(100, 200, 64)
u, v = hidden.matrix(1, hidden_size)[0], hidden.matrix(1, hidden_size)[0]
grading.assert_close(grading.guarded(add)(u, v), u + v, what="sum of ragged vectors")
### END HIDDEN TESTS

# %% [markdown]
# ## c. Use it

# %% nbgrader={"grade": false, "grade_id": "c-sum", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup", "b"], "title": "Add three"}
def add_three(x, y, z):
    ### BEGIN SOLUTION
    #: raise NotImplementedError("add_three")
    return add(add(x, y), z)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test"}
ones = torch.ones(64)
grading.assert_close(add_three(ones, ones, ones), 3 * ones)

# %% [markdown]
# ## d. Be fast

# %% nbgrader={"grade": true, "grade_id": "d-speed", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "speed", "needs": ["setup", "b"], "device": "gpu", "title": "Be fast"}
if not torch.cuda.is_available():
    raise grading.NeedsGpu("no CUDA GPU here, so nothing was timed; these points wait for one.")

# %% [markdown]
# ## e. Explain

# %% [markdown] nbgrader={"grade": true, "grade_id": "e-why", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "written", "needs": ["b"], "title": "Explain"}
# ### BEGIN SOLUTION
# #: *Write here.*
# Three arrays cross the bus, so bandwidth bounds it.
# ### END SOLUTION
