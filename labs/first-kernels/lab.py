# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
#   mlsys:
#     lab: first-kernels
#     version: "1"
#     withheld: [mlsys.ops]
# ---

# %% mlsys={"role": "variants"}
from mlsys.course.term import drawn

# Questions a and b: what is added. Factors are powers of two, so that float16 rounds once.
TERM_ADD, TERM_ADD_SAID = drawn(
    ("x + y", "x[i] + y[i]"),
    ("x + 2 * y", "x[i] + 2 y[i]"),
    ("x - y", "x[i] - y[i]"),
    ("2 * x - y", "2 x[i] - y[i]"),
)
TERM_ADD_TILE, TERM_ADD_TILE_SAID = drawn(
    ("x + y", "x[i, j] + y[i, j]"), ("x - 4 * y", "x[i, j] - 4 y[i, j]"), ("4 * x + y", "4 x[i, j] + y[i, j]")
)

# Questions c, j and k: how x is shifted, in the names of the solution and of the reference; and a shift of large numbers.
TERM_SHIFTED, TERM_SHIFTED_SAID, TERM_VALUE_SHIFTED, sign = drawn(
    ("x + shift", "x[i, j] + shift[i]", "value + more", 1),
    ("x - shift", "x[i, j] - shift[i]", "value - more", -1),
    ("2 * x + shift", "2 x[i, j] + shift[i]", "2 * value + more", 1),
    ("x - 2 * shift", "x[i, j] - 2 shift[i]", "value - 2 * more", -1),
)
TERM_LARGE_SHIFT, TERM_LARGER_SHIFT = sign * 20_000.0, sign * 30_000.0
TERM_LARGER_SHIFT_SAID = f"{sign * 30_000:,}"

# Question f: other warps, and another load.
TERM_WARPS = drawn(8, 2, 16)
TERM_NUMBERS_ON_WARPS = 1024 // (32 * TERM_WARPS)
TERM_WHICH_LOAD, TERM_MASK_REGISTER = drawn(("first", "%p1"), ("second", "%p2"))

# Question g: what counts as flat.
TERM_FLAT = drawn(1.25, 1.45, 1.15, 1.35)

# Questions h and i: which fault is in which of two kernels, and what one kernel looks for.
TERM_FAULT_1, TERM_RELU_FAULT, TERM_FAULT_5, TERM_VECTOR_FAULT = drawn(
    (
        "mask",
        "tl.store(y_ptr + index, tl.maximum(x, 0.0))",
        "bounds",
        "a = tl.load(a_ptr + row * stride_ar + k * stride_ak, mask=k <= K, other=0.0)\n"
        "b = tl.load(b_ptr + k, mask=k <= K, other=0.0)",
    ),
    (
        "bounds",
        "tl.store(y_ptr + index, tl.maximum(x, 0.0), mask=index <= N)",
        "mask",
        "a = tl.load(a_ptr + row * stride_ar + k * stride_ak)\nb = tl.load(b_ptr + k)",
    ),
)
TERM_ROW_KERNEL, TERM_LOWEST, TERM_MIN, TERM_INF = drawn(
    ("row_lowest_kernel", "smallest", "min", "inf"), ("row_highest_kernel", "largest", "max", "-inf")
)

# Gap: the order of the cases.
GAPS = {
    "overhead": """# NTH. Add 1 to each of 4096 float32 numbers; launches are queued in a row.
print(f"case NTH: predicted {predicted_us(8 * 4096):10.3f}, measured {TIMES_US['queued'][3]:10.2f}")""",
    "sectors": """# NTH. Read 67,108,864 float32 numbers that are 8 places apart: every eighth number of a long vector.
print(f"case NTH: predicted {predicted_us(4 * 67_108_864):10.1f}, measured {478.6:10.1f}")""",
    "cache": """# NTH. Copy a vector of 16 MiB to another one, again and again: 32 MiB are read and written each time.
print(f"case NTH: predicted {predicted_us(33_554_432):10.2f}, measured {5.59:10.2f}")""",
    "waiting": """# NTH. A thousand small launches; after each, the program looks at the result before it goes on.
print(f"case NTH: predicted {1000 * TIMES_US['queued'][3]:10.0f}, measured {1000 * TIMES_US['waited'][3]:10.0f}")""",
}
TERM_CAUSE_1, TERM_CAUSE_2, TERM_CAUSE_3, TERM_CAUSE_4 = causes = drawn(
    ("overhead", "sectors", "cache", "waiting"),
    ("cache", "overhead", "waiting", "sectors"),
    ("waiting", "cache", "sectors", "overhead"),
    ("sectors", "waiting", "overhead", "cache"),
)
TERM_GAPS = "\n".join(GAPS[cause].replace("NTH", str(number)) for number, cause in enumerate(causes, start=1))
TERM_CASE_OVERHEAD, TERM_CASE_SECTORS, TERM_CASE_WAITING = (
    causes.index(cause) + 1 for cause in ("overhead", "sectors", "waiting")
)

# %% [markdown]
# # First kernels
#
# A GPU has thousands of small arithmetic units. To use them you write a **kernel**: a short function that runs many
# times at once, each time on its own part of the data. Kernels are short, and they fail in ways that ordinary programs
# do not: they read beyond the end of an array without a word, and they give a different answer each time.
#
# **The question of this lab: what does it take to write a small kernel that is right for every size and layout, and
# what decides how long it runs?**
#
# You will predict, write, check, read, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with the truth at the end |
# | a | add two vectors | a kernel with a mask |
# | b | add two matrices in any layout | a kernel over rows and columns |
# | c | add and multiply in one pass instead of two | two counts of bytes, and a fused kernel |
# | d | add up a vector, in one step and in two | a reduction |
# | e | meet a race and fix it; count values | a sum and a histogram with atomics |
# | f | read what the compiler made | six answers about PTX |
# | g | find the size at which time stops falling | the third regime: overhead |
# | h, i | find the faults of six kernels, and repair them | six names and six repairs |
# | j (GPU) | race your kernel of question c | a share of a reference kernel's speed |
# | k | write tests for a kernel | a share of twelve wrong kernels |
# | challenge | a histogram without atomics in memory | partial results in registers |
# | gap | explain why prediction and measurement differ | four causes |
#
# Plan for three to four hours. You need Python and a little NumPy or PyTorch; you need not have seen a GPU kernel.
# Without a GPU you can finish everything except the question marked (GPU). Hints cost no points: each question has
# three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None`, `pass`, faulty code or "Your answer". You may
# add cells. Read the test cells, and run them as often as you like. When the lab is graded, the original versions of
# these cells run, with more shapes and values.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import grading, measure
from mlsys.grading.compiler_report import compiler_report

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl

scorecard = grading.Scorecard(
    {
        "a": 5, "b": 10, "c": 10, "d": 10, "e": 10, "f": 10, "g": 5, "g-why": 5,
        "h": 5, "i": 10, "j": 5, "k": 5, "challenge": 5, "gap": 5,
    },
    gpu=["j"],
    read=["g-why"],
)  # fmt: skip

# %% [markdown]
# ## Predictions
#
# Before you write anything, note what you expect; a guess will do. You are not graded on how close you come. The point
# is to have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the
# time. If you run it again, the new numbers replace the old ones, and the end of the lab compares the last ones. So
# leave the cell alone once you have gone on.
#
# 1. `fused_gain`: add a number to each element of a matrix and multiply the result by another number. Done as two
#    kernels, or as one. How many *times* fewer bytes does the single kernel move?
# 2. `same_time_until`: an H200 adds 1 to each element of a vector. One element takes a few microseconds. Of the sizes
#    16, 256, 4096, 65,536, 1,048,576 and 16,777,216, which is the largest that takes *no longer* than one element?
# 3. `counted`: a counter in memory is 0. A thousand programs run at once, and each of them loads the counter, adds 1,
#    and stores it. What does the counter show at the end? (The notebook tries it if you have a GPU.)
# 4. `bytes_per_load`: a thread loads float32 numbers of a long vector, which are 4 bytes each. How many bytes does one
#    load instruction bring, if you leave the choice to the compiler?
# 5. `share_of_copy`: what share of the speed of a plain copy of the same matrix will your fused kernel reach? Give a
#    number such as 0.1, 0.5 or 1. (The notebook measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: fused_gain = None
#: same_time_until = None
#: counted = None
#: bytes_per_load = None
#: share_of_copy = None
fused_gain = 2
same_time_until = 4096
counted = 500
bytes_per_load = 4
share_of_copy = 0.5
### END SOLUTION
predictions = grading.seal(
    fused_gain=fused_gain,
    same_time_until=same_time_until,
    counted=counted,
    bytes_per_load=bytes_per_load,
    share_of_copy=share_of_copy,
)

# %% [markdown]
# ## A kernel to read first
#
# In Triton, each of the many runs of a kernel is called a **program**. All programs execute the same code. Only their
# number, `tl.program_id(0)`, tells them apart, so the first lines of nearly every kernel turn that number into a set of
# indices: which part of the data is mine?
#
# This kernel squares a vector of N numbers. Each program squares BLOCK of them.


# %%
@triton.jit
def square_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # program 0: 0 1 2 3, program 1: 4 5 6 7, ...
    inside = index < N  # the last block may reach past the end
    x = tl.load(x_ptr + index, mask=inside, other=0.0)  # BLOCK numbers from BLOCK addresses
    tl.store(out_ptr + index, x * x, mask=inside)


x = torch.arange(10.0, device=DEVICE)
out = torch.empty_like(x)
programs = triton.cdiv(10, 4)  # division rounded up: 3 programs for 10 numbers, 4 at a time
square_kernel[(programs,)](x, out, 10, BLOCK=4)
out

# %% [markdown]
# Line by line:
#
# - `x_ptr` is the **address** of the first number in memory. It comes without a shape and without bounds.
# - `tl.arange(0, BLOCK)` makes a block of indices, so `x_ptr + index` is a block of addresses, and `tl.load` loads a
#   block of numbers. One position in a block is called a **lane**. BLOCK must be a power of two, and known when the
#   kernel is compiled (`tl.constexpr`).
# - The **mask** `inside` switches single lanes off. **Triton does not check addresses.** Without the mask the third
#   program would read and write elements 10 and 11, which do not exist. It would overwrite whatever is there, perhaps
#   another tensor, or crash the process.
# - A lane that is switched off gets the value `other`. If you leave `other` out, the value can be anything.
# - `kernel[(programs,)](...)` starts `programs` programs. The tuple is the **grid**.
#
# The lab's own functions launch your kernels, so you write only kernels. In them you may use Triton's language (`tl`),
# arithmetic, and your own functions that are marked `@triton.jit`. Use `run` to try things out.


# %% nbgrader={"grade": false, "grade_id": "launches", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_add(kernel, constants, out, x, y):
    """Launch one program per block of BLOCK numbers."""
    n = x.numel()
    kernel[(triton.cdiv(n, constants["BLOCK"]),)](x, y, out, n, **constants)


def tiles(shape, constants):
    """Return the grid with one program per tile of ROWS x COLS elements: (tiles down, tiles across)."""
    return triton.cdiv(shape[0], constants["ROWS"]), triton.cdiv(shape[1], constants["COLS"])


def right_add(x, y):
    """Return what add_kernel computes, from float64."""
    dtype, x, y = x.dtype, x.double(), y.double()
    return (TERM_ADD).to(dtype)


def launch_add_matrices(kernel, constants, out, x, y):
    """Launch one program per tile."""
    kernel[tiles(x.shape, constants)](x, y, out, *x.shape, *x.stride(), *y.stride(), *out.stride(), **constants)


def launch_turned(launch, kernel, constants, out, *inputs):
    """Launch into a result whose columns are contiguous, and copy it to `out`."""
    turned = torch.empty_like(out.T, memory_format=torch.contiguous_format).T
    launch(kernel, constants, turned, *inputs)
    out.copy_(turned)


def launch_add_matrices_turned(kernel, constants, out, x, y):
    """Launch with a result whose columns, not its rows, are contiguous."""
    launch_turned(launch_add_matrices, kernel, constants, out, x, y)


def right_add_matrices(x, y):
    """Return what add_matrices_kernel computes, from float64."""
    dtype, x, y = x.dtype, x.double(), y.double()
    return (TERM_ADD_TILE).to(dtype)


def launch_shift_scale(kernel, constants, out, x, shift, scale):
    """Launch one program per tile."""
    kernel[tiles(x.shape, constants)](x, shift, scale, out, *x.shape, *x.stride(), *out.stride(), **constants)


def launch_shift_scale_turned(kernel, constants, out, x, shift, scale):
    """Launch with a result whose columns, not its rows, are contiguous."""
    launch_turned(launch_shift_scale, kernel, constants, out, x, shift, scale)


def right_shift_scale(x, shift, scale):
    """Return the library's result, in two passes."""
    shift, scale = shift[:, None], scale[:, None]
    return (TERM_SHIFTED) * scale


def without_programs(constants):
    """Return the constants without the count of programs, which only the launch needs."""
    return {name: value for name, value in constants.items() if name != "PROGRAMS"}


def launch_sums(kernel, constants, sums, x):
    """Launch as many programs as there are sums, each for its share of x."""
    share = triton.cdiv(x.numel(), sums.numel())
    kernel[(sums.numel(),)](x, sums, x.numel(), share, **without_programs(constants))


def launch_two_steps(kernel, constants, total, x):
    """Launch PROGRAMS programs for partial sums, then a single program that adds these up."""
    partial = torch.empty(constants["PROGRAMS"], dtype=torch.float32, device=x.device)
    launch_sums(kernel, constants, partial, x)
    launch_sums(kernel, constants, total, partial)


def launch_total(kernel, constants, total, x):
    """Set the total to 0, then launch one program per block of BLOCK numbers."""
    total.zero_()
    kernel[(triton.cdiv(x.numel(), constants["BLOCK"]),)](x, total, x.numel(), **constants)


def launch_histogram(kernel, constants, counts, x):
    """Set all counts to 0, then launch one program per block of BLOCK numbers."""
    counts.zero_()
    kernel[(triton.cdiv(x.numel(), constants["BLOCK"]),)](x, counts, x.numel(), counts.numel(), **constants)


def launch_total_inspected(kernel, constants, total, x):
    """Launch as launch_total does, and look for races."""
    launch_total(grading.inspect_first(kernel), constants, total, x)


def launch_histogram_inspected(kernel, constants, counts, x):
    """Launch as launch_histogram does, and look for races."""
    launch_histogram(grading.inspect_first(kernel), constants, counts, x)


def launch_private_histogram(kernel, constants, counts, x):
    """Launch PROGRAMS programs, each with a row of counts of its own, and add up the rows."""
    partial = torch.empty((constants["PROGRAMS"], counts.numel()), dtype=torch.int32, device=x.device)
    grid = (constants["PROGRAMS"],)
    kernel[grid](x, partial, x.numel(), BINS=counts.numel(), **without_programs(constants))
    counts.copy_(partial.sum(0))


def run(launch, kernel, constants, out, *inputs):
    """Launch a kernel with a fresh output like `out`, and return it."""
    out = torch.full_like(out, float("nan") if out.is_floating_point() else -1)
    launch(kernel, constants, out, *inputs)
    return out


# %% [markdown]
# ## a. Add two vectors
#
# Write `add_kernel`: out[i] = TERM_ADD_SAID for i from 0 to N - 1.
#
# The **contract**:
#
# - Program p computes BLOCK neighboring numbers, from number p * BLOCK on.
# - The kernel is right for every N from 1 up, also where BLOCK does not divide it.
# - Vectors are contiguous and all have the same dtype, float32 or float16.
#
# <details><summary>Hint 1</summary>
# Start from the kernel that you have read. What is different? Two loads instead of one, and another formula.
# </details>
# <details><summary>Hint 2</summary>
# Every load and the store need the same mask: <code>index &lt; N</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>x = tl.load(x_ptr + index, mask=inside, other=0.0)</code>, the same for y, then <code>tl.store(out_ptr + index,
# TERM_ADD, mask=inside)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Add two vectors"}
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """Add BLOCK numbers of x and y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < N
    x = tl.load(x_ptr + index, mask=inside, other=0.0)
    y = tl.load(y_ptr + index, mask=inside, other=0.0)
    tl.store(out_ptr + index, TERM_ADD, mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("add_kernel: write it, then delete this line")
### END SOLUTION


# %% [markdown]
# The tests launch your kernel with bands of NaNs around every tensor; a NaN is a number that stands for "no number".
# Without a GPU, every load and store outside a tensor is reported with its line, program and lane. On a GPU, a store
# outside damages a band and is reported, and a load outside brings a NaN into the result. An element that no program
# writes also shows up as a NaN.

# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
draw = grading.Draws("a", DEVICE)


def check_add(n, block, what, dtype="float32"):
    """Compare add_kernel with the sum in float64."""
    x, y = (draw.matrix(1, n, dtype=dtype, layout="offset")[0] for _ in "xy")
    right = right_add(x, y)
    what = f"add_kernel, {what}: N = {n}, BLOCK = {block}"
    grading.check_kernel(add_kernel, {"BLOCK": block}, [x, y], right, launch=launch_add, what=what)


check_add(16, 16, "one block")
check_add(64, 16, "four blocks")
check_add(50, 16, "a ragged end")
check_add(3, 32, "less than a block")
check_add(1, 16, "one number")
check_add(1000, 256, "another block")
check_add(77, 32, "float16", "float16")
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    for power in (4, 6, 8):
        check_add(draw.ragged(1, 2000), 2**power, "other sizes", kind)
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. Add two matrices, in any layout
#
# A matrix has two indices, and memory is still one row of numbers. Element (i, j) is at `ptr + i * stride(0) + j *
# stride(1)`. A contiguous 3 x 5 matrix has strides (5, 1). Its transpose is the same memory with strides (1, 5), and
# the slice `x[::2]` has strides (10, 1). A kernel that uses both strides handles them all.
#
# For a block of a matrix, a **tile**, we need all pairs of its rows and columns. `row[:, None]` makes the row indices a
# column, `col[None, :]` makes the column indices a row, and combining the two gives a two-dimensional block:
#
# ```
# row = [4 5]       row[:, None] * 10 + col[None, :]  =  [[40 41 42]
# col = [0 1 2]                                           [50 51 52]]
# ```
#
# Comparisons combine with `&`: `(row[:, None] < rows) & (col[None, :] < cols)`. Mind the brackets: in Python, `&`
# binds more tightly than `<`.
#
# Write `add_matrices_kernel`: out[i, j] = TERM_ADD_TILE_SAID.
#
# The **contract**:
#
# - The grid has two dimensions. Program (p, q), that is `tl.program_id(0)` and `tl.program_id(1)`, computes one tile: ROWS
#   rows from row p * ROWS on, and COLS columns from column q * COLS on.
# - x, y and out may have any strides, each its own. The dtype is float32 or float16.
# - The kernel is right for all sizes from 1 up.
#
# <details><summary>Hint 1</summary>
# Take program (1, 2) and tiles of 4 x 16. Which rows and which columns does it compute? Which of them exist in a matrix
# of 7 x 40?
# </details>
# <details><summary>Hint 2</summary>
# The mask must test two things: the rows against <code>rows</code>, and the columns against <code>cols</code>. A mask of
# the columns alone lets the last tiles write past the last row.
# </details>
# <details><summary>Hint 3</summary>
# <code>x = tl.load(x_ptr + row[:, None] * stride_xr + col[None, :] * stride_xc, mask=inside, other=0.0)</code>; the same
# for y with its own two strides, and the store with those of out.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "Add two matrices, in any layout"}
@triton.jit
def add_matrices_kernel(
    x_ptr, y_ptr, out_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc, stride_or, stride_oc,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Add one tile of ROWS x COLS elements per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(1) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)
    y = tl.load(y_ptr + row * stride_yr + col * stride_yc, mask=inside, other=0.0)
    tl.store(out_ptr + row * stride_or + col * stride_oc, TERM_ADD_TILE, mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("add_matrices_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
draw = grading.Draws("b", DEVICE)


def check_add_matrices(x, y, what, tile=(4, 16), launch=launch_add_matrices):
    """Compare add_matrices_kernel with the sum in float64."""
    right = right_add_matrices(x, y)
    constants = {"ROWS": tile[0], "COLS": tile[1]}
    what = f"add_matrices_kernel, {what}: {tuple(x.shape)}, {constants}"
    grading.check_kernel(add_matrices_kernel, constants, [x, y], right, launch=launch, what=what, tile=tile)


check_add_matrices(draw.matrix(4, 16), draw.matrix(4, 16), "one tile")
check_add_matrices(draw.matrix(8, 48), draw.matrix(8, 48), "2 x 3 tiles")
check_add_matrices(draw.matrix(7, 16), draw.matrix(7, 16), "rows ragged")
check_add_matrices(draw.matrix(8, 21), draw.matrix(8, 21), "columns ragged")
check_add_matrices(draw.matrix(1, 40), draw.matrix(1, 40), "one row")
check_add_matrices(draw.matrix(9, 1), draw.matrix(9, 1), "one column")
check_add_matrices(draw.matrix(7, 21, layout="column"), draw.matrix(7, 21), "x is a transposed view")
check_add_matrices(draw.matrix(7, 21), draw.matrix(7, 21, layout="sliced"), "y is a slice with gaps")
check_add_matrices(draw.matrix(7, 21, layout="offset"), draw.matrix(7, 21), "x is a window in a larger matrix")
turned = launch_add_matrices_turned
check_add_matrices(draw.matrix(7, 21), draw.matrix(7, 21), "the result is a transposed view", launch=turned)
check_add_matrices(draw.matrix(9, 70), draw.matrix(9, 70), "other tile sizes", (2, 64))
check_add_matrices(draw.matrix(7, 21, dtype="float16"), draw.matrix(7, 21, dtype="float16"), "float16")
### BEGIN HIDDEN TESTS
for one, other in (("row", "column"), ("sliced", "offset"), ("column", "sliced"), ("offset", "row")):
    wanted = (2 ** draw.integer(1, 4), 2 ** draw.integer(4, 6))
    size = draw.ragged(1, 20, tile=wanted[0]), draw.ragged(1, 90, tile=wanted[1])
    left, right = draw.matrix(*size, layout=one), draw.matrix(*size, layout=other)
    check_add_matrices(left, right, f"strides {left.stride()} and {right.stride()}", wanted)
    check_add_matrices(left, right, "the same, into a transposed view", wanted, launch_add_matrices_turned)
halves = (draw.matrix(*size, dtype="float16", layout=arrangement) for arrangement in ("column", "sliced"))
check_add_matrices(*halves, "float16 with strides", wanted)
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. One pass instead of two
#
# A matrix x has `rows` rows and `cols` columns; shift and scale are vectors with one number **per row**:
#
# y[i, j] = (TERM_SHIFTED_SAID) * scale[i]
#
# Written as two kernels, the first reads x and shift and writes a matrix t = TERM_SHIFTED; the second reads t and
# scale and writes y. Every tensor is in DRAM, the large memory beside the chip. **Fused** into one kernel, the sum stays in
# the **registers**, the few numbers that each thread can hold on the chip, and t is never written.
#
# First count, reads and writes together, as plain ints, exact for all sizes. Every number has `itemsize` bytes, and
# each kernel reads each of its inputs from DRAM once and writes its output once. Do the counting yourself: `mlsys.ops`
# contains such counts, so it is removed from the package when the lab is graded, and an answer that calls it ends in an
# error.
#
# Then write `shift_scale_kernel`. The **contract**:
#
# - Program (p, q) computes one tile of ROWS x COLS elements, as in question b.
# - x and y may have any strides. shift and scale are contiguous. All have the dtype of x, float32 or float16.
# - The kernel calculates in float32, whatever the dtype: convert each block after loading with `.to(tl.float32)`, and
#   convert the result before storing with `.to(y_ptr.dtype.element_ty)`. A float16 number has about three digits and
#   ends at 65504, so a sum that is rounded before the multiplication loses digits.
#
# <details><summary>Hint 1</summary>
# Count numbers first and multiply by itemsize last. How often does a number of x, of t, of shift and of y cross between
# chip and DRAM, in two kernels and in one?
# </details>
# <details><summary>Hint 2</summary>
# Two kernels: x once, t twice, y once, and each vector once. In the kernel, <code>shift</code> is a block of ROWS
# numbers, loaded from <code>shift_ptr + row</code> with the mask <code>row &lt; rows</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>(4 * rows * cols + 2 * rows) * itemsize</code> for two passes. If <code>row</code> has the shape ROWS x 1, so has
# <code>shift = tl.load(shift_ptr + row, mask=row &lt; rows, other=0.0).to(tl.float32)</code>, and
# <code>(TERM_SHIFTED) * scale</code> combines it with the tile.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "One pass instead of two"}
def two_pass_bytes(rows, cols, itemsize):
    """Return the bytes that two kernels move."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("two_pass_bytes")
    return (4 * rows * cols + 2 * rows) * itemsize
    ### END SOLUTION


def one_pass_bytes(rows, cols, itemsize):
    """Return the bytes that the fused kernel moves."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("one_pass_bytes")
    return (2 * rows * cols + 2 * rows) * itemsize
    ### END SOLUTION


@triton.jit
def shift_scale_kernel(
    x_ptr, shift_ptr, scale_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Compute one tile of y = (TERM_SHIFTED) * scale per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    # 64-bit, because row * stride passes 2^31 in a matrix of more than 2^31 elements.
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = (tl.program_id(1) * COLS + tl.arange(0, COLS))[None, :]
    in_rows = row < rows
    inside = in_rows & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + row, mask=in_rows, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + row, mask=in_rows, other=0.0).to(tl.float32)
    y = (TERM_SHIFTED) * scale
    tl.store(y_ptr + row * stride_yr + col * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("shift_scale_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)

# 2 x 3, 4 bytes: the first kernel reads 6 + 2 and writes 6, the second reads 6 + 2 and writes 6; 28 numbers.
grading.assert_equal(two_pass_bytes(2, 3, 4), 112, what="two_pass_bytes(2, 3, 4)")
grading.assert_equal(one_pass_bytes(2, 3, 4), 64, what="one_pass_bytes(2, 3, 4)")


def check_shift_scale(x, what, tile=(4, 16), launch=launch_shift_scale):
    """Compare shift_scale_kernel with the formula in float64."""
    shift, scale = (draw.matrix(1, x.shape[0])[0].to(x.dtype) for _ in range(2))
    right = right_shift_scale(x.double(), shift.double(), scale.double()).to(x.dtype)
    constants = {"ROWS": tile[0], "COLS": tile[1]}
    what = f"shift_scale_kernel, {what}: {tuple(x.shape)}, {constants}"
    inputs = [x, shift, scale]
    kernel = shift_scale_kernel
    grading.check_kernel(kernel, constants, inputs, right, launch=launch, what=what, tile=tile)


check_shift_scale(draw.matrix(4, 16), "one tile")
check_shift_scale(draw.matrix(8, 48), "2 x 3 tiles")
check_shift_scale(draw.matrix(7, 21), "rows and columns ragged")
check_shift_scale(draw.matrix(1, 100), "one row")
check_shift_scale(draw.matrix(9, 1), "one column")
check_shift_scale(draw.matrix(9, 40, layout="column"), "a transposed view")
check_shift_scale(draw.matrix(9, 40, layout="sliced"), "a slice with gaps")
check_shift_scale(draw.matrix(9, 40, layout="offset"), "a window in a larger matrix")
check_shift_scale(draw.matrix(9, 40), "y with contiguous columns", launch=launch_shift_scale_turned)
check_shift_scale(draw.matrix(9, 40), "other tile sizes", (1, 128))
check_shift_scale(40_000 + 20_000 * draw.matrix(5, 40, values="positive"), "large values")
large = (40_000 + 20_000 * draw.matrix(5, 40, values="positive")).half()
shifts, quarters = (torch.full((5,), number, device=DEVICE).half() for number in (TERM_LARGE_SHIFT, 0.25))
right = right_shift_scale(large.double(), shifts.double(), quarters.double()).half()
grading.check_kernel(
    shift_scale_kernel, {"ROWS": 4, "COLS": 16}, [large, shifts, quarters], right,
    launch=launch_shift_scale, what="shift_scale_kernel, float16 numbers whose sum is larger than 65504", tile=(4, 16),
)  # fmt: skip
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    wanted = (2 ** draw.integer(0, 4), 2 ** draw.integer(4, 7))
    size = draw.ragged(2, 20), draw.ragged(1, 150)
    m = draw.matrix(*size, layout=arrangement)
    check_shift_scale(m, f"strides {m.stride()}", wanted)
    width = 2 ** draw.integer(0, 3)
    r, c = draw.integer(1, 5000), draw.integer(1, 5000)
    grading.assert_equal(two_pass_bytes(r, c, width), width * (r * c + r + 2 * r * c + r + r * c), what="two passes")
    grading.assert_equal(one_pass_bytes(r, c, width), width * (r * c + r + r + r * c), what="one pass")
m = draw.matrix(*size, dtype="float16", layout=("column", "sliced")[draw.integer(0, 1)])
check_shift_scale(m, f"float16, strides {m.stride()}", wanted)
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# The matrix crosses the line between chip and memory twice instead of four times. Since the arithmetic is nearly free,
# you may expect the fused kernel to be about twice as fast. Question g shows when that is wrong.
#
# ## d. Add up a vector, in one step and in two
#
# In the kernels so far, no program needed to know what another one did. A sum is different: all N numbers end up in
# one. There are two ways:
#
# - **In one step**: a single program goes along the vector, block by block, and adds up everything. It is simple, and
#   it uses one of the 132 multiprocessors of an H200.
# - **In two steps**: P programs each add up a share of the vector and write P *partial sums*. A second launch of a
#   single program adds these up. The second launch starts when all programs of the first have finished, so its inputs
#   are complete.
#
# One kernel can do both, and the second step too. Write `sum_kernel`. The **contract**:
#
# - Program p adds up the numbers from index p * share up to, but not including, index (p + 1) * share. Indices from N on
#   do not exist. It writes the sum to `sums[p]`, even if it has no numbers: then the sum is 0.
# - The kernel goes along its share in blocks of BLOCK numbers. BLOCK need not divide the share, and the share may be
#   shorter than a block.
# - x is contiguous, float32 or float16. Sums are float32, and the kernel adds in float32.
#
# `tl.sum(block, 0)` adds up a block. `tl.zeros((BLOCK,), tl.float32)` makes a block of zeros: add each new block to it
# inside the loop, and reduce it once, after the loop. A loop over a part of the vector is `for start in range(first,
# last, BLOCK):`, where `first` and `last` may be computed by the kernel; `tl.minimum(a, b)` is the smaller of two
# numbers.
#
# <details><summary>Hint 1</summary>
# Where does the share of program p begin, and where does it end? Which numbers of its last block belong to program p +
# 1, or do not exist?
# </details>
# <details><summary>Hint 2</summary>
# <code>first = tl.program_id(0) * share</code> and <code>last = tl.minimum(first + share, N)</code>. The mask compares
# with <code>last</code>, not with N. Which <code>other</code> leaves a sum as it is?
# </details>
# <details><summary>Hint 3</summary>
# In the loop: <code>index = start + tl.arange(0, BLOCK)</code>, then <code>total += tl.load(x_ptr + index, mask=index
# &lt; last, other=0.0).to(tl.float32)</code>. After it: <code>tl.store(sums_ptr + tl.program_id(0), tl.sum(total,
# 0))</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "A sum in one step and in two"}
@triton.jit
def sum_kernel(x_ptr, sums_ptr, N, share, BLOCK: tl.constexpr):
    """Add up one share of x per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    first = tl.program_id(0) * share
    last = tl.minimum(first + share, N)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(first, last, BLOCK):
        index = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + index, mask=index < last, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total, 0))
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("sum_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
draw = grading.Draws("d", DEVICE)


def check_sum(n, programs, block, what, dtype="float32"):
    """Compare the partial sums, the sum in one step and the sum in two steps with sums in float64."""
    x = draw.matrix(1, n, dtype=dtype, layout="offset", values="positive")[0]  # all positive: no sum is nearly 0
    share = triton.cdiv(n, programs)
    parts = [x[p * share : (p + 1) * share].double().sum() for p in range(programs)]
    partial, total = torch.stack(parts).float(), x.double().sum().float()[None]
    constants, about = {"BLOCK": block}, f"{what}: N = {n}, BLOCK = {block}"
    grading.check_kernel(
        sum_kernel, constants, [x], partial, launch=launch_sums, what=f"partial sums of {programs} programs, {about}"
    )
    grading.check_kernel(sum_kernel, constants, [x], total, launch=launch_sums, what=f"sum in one step, {about}")
    constants |= {"PROGRAMS": programs}
    about = f"sum in two steps, {programs} programs, {about}"
    grading.check_kernel(sum_kernel, constants, [x], total, launch=launch_two_steps, what=about)


check_sum(64, 2, 32, "one block per program")
check_sum(256, 4, 16, "four blocks per program")
check_sum(100, 4, 16, "a share that BLOCK does not divide")
check_sum(90, 4, 16, "the last share is shorter")
check_sum(50, 4, 64, "shares shorter than a block")
check_sum(5, 4, 16, "a program without numbers")
check_sum(1, 1, 16, "one number")
check_sum(3000, 3, 256, "a long sum of float16 numbers", "float16")
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    for most in (40, 400, 3000):
        check_sum(draw.ragged(2, most), draw.integer(1, 9), 2 ** draw.integer(4, 8), "other sizes", kind)
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# ## e. A race, and two ways to fix it
#
# Why not let every program add its part to the total at once? Here is a kernel that does. Each program adds up a block,
# loads the total, adds its own sum, and stores the total again.


# %%
@triton.jit
def lossy_total_kernel(x_ptr, total_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    part = tl.sum(tl.load(x_ptr + index, mask=index < N, other=0.0), 0)
    tl.store(total_ptr, tl.load(total_ptr) + part)


ones = torch.ones(64_000, device=DEVICE)
total = torch.zeros(1, device=DEVICE)
launch_total(lossy_total_kernel, {"BLOCK": 64}, total, ones)
print(f"64,000 ones add up to {total.item():,.0f}")

# %% [markdown]
# On a GPU you see a number that is far too small, and another one when you run the cell again. Two programs load the
# same old total; both add their part; both store; and one of the two parts is lost. This is a **race**: the result
# depends on which program comes first. Without a GPU you see the right number, because the interpreter runs the
# programs one after the other. **A right result does not show that there is no race.** `grading.inspect` does: it runs a
# kernel in the interpreter and follows every access of every program. The questions below use it too.

# %%
for finding in grading.inspect(lossy_total_kernel, (4,), torch.ones(256), torch.zeros(1), 256, BLOCK=64):
    print(finding)

# %% [markdown]
# There are two ways to fix a race:
#
# 1. `tl.atomic_add(ptr, value, mask=...)` loads, adds and stores as one indivisible step. Nothing is lost, but programs
#    that add to the same address wait for each other. And since the order of the programs is not fixed, float sums may
#    differ in the last digits from run to run; sums of ints do not.
# 2. **Partial results**, as in question d: each program writes to a place of its own, and a second step combines them.
#
# Write two kernels with atomics. `total_kernel` fixes the kernel above. `histogram_kernel` counts how often each value
# from 0 to BINS - 1 occurs among N ints. Both follow this **contract**:
#
# - Program p handles BLOCK neighboring numbers, from number p * BLOCK on.
# - The lab's functions set the total and the counts to 0 before the launch.
# - `total_kernel`: x is contiguous, float32 or float16; the total is a single float32, added in float32.
# - `histogram_kernel`: x and the counts are contiguous int32. Values below 0 or from BINS on are **not counted**, and no
#   memory outside the counts may change. (A value that comes from outside is an address in your hands: check it.)
#
# <details><summary>Hint 1</summary>
# In the histogram, each lane adds 1 at its own address, <code>counts_ptr + value</code>. Several lanes of one block may
# have the same value. Is load, add, store right even within one program?
# </details>
# <details><summary>Hint 2</summary>
# A lane past the end of x has a value too: <code>other</code>. If that is 0, the mask of the atomic must switch the lane
# off, or value 0 is counted too often.
# </details>
# <details><summary>Hint 3</summary>
# <code>value = tl.load(x_ptr + index, mask=index &lt; N, other=-1)</code>, then <code>tl.atomic_add(counts_ptr + value, 1,
# mask=(value &gt;= 0) &amp; (value &lt; BINS))</code>. In the total: <code>tl.atomic_add(total_ptr, tl.sum(x, 0))</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-kernels", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "A race fixed, and a histogram"}
@triton.jit
def total_kernel(x_ptr, total_ptr, N, BLOCK: tl.constexpr):
    """Add the sum of BLOCK numbers per program to the total."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < N, other=0.0).to(tl.float32)
    tl.atomic_add(total_ptr, tl.sum(x, 0))
    ### END SOLUTION


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, N, BINS, BLOCK: tl.constexpr):
    """Count BLOCK values per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + index, mask=index < N, other=-1)
    tl.atomic_add(counts_ptr + value, 1, mask=(value >= 0) & (value < BINS))
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("total_kernel and histogram_kernel: write them, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
draw = grading.Draws("e", DEVICE)


def check_total(n, block, what, dtype="float32", launch=launch_total):
    """Compare total_kernel with the sum in float64."""
    x = draw.matrix(1, n, dtype=dtype, layout="offset", values="positive")[0]
    right = x.double().sum().float()[None]
    what = f"total_kernel, {what}: N = {n}, BLOCK = {block}"
    grading.check_kernel(total_kernel, {"BLOCK": block}, [x], right, launch=launch, what=what)


def values(n, low, high):
    """Draw n ints from low to high - 1, in int32."""
    uniform = draw.matrix(1, n, values="positive")[0] * 2 - 1  # from 0 to 1
    return (low + uniform * (high - low)).floor().clamp(low, high - 1).int()


def right_counts(x, bins):
    """Count with PyTorch, without the values outside."""
    kept = x[(x >= 0) & (x < bins)].long()
    return torch.bincount(kept, minlength=bins).int()


def check_histogram(x, bins, block, what, launch=launch_histogram):
    """Compare histogram_kernel with PyTorch's counts."""
    what = f"histogram_kernel, {what}: N = {x.numel()}, BINS = {bins}, BLOCK = {block}"
    right, constants = right_counts(x, bins), {"BLOCK": block}
    grading.check_kernel(histogram_kernel, constants, [x], right, launch=launch, what=what)


check_total(64, 64, "one block")
check_total(256, 64, "four blocks")
check_total(200, 64, "a ragged end")
check_total(1000, 128, "float16", "float16")
check_total(200, 64, "inspected", launch=launch_total_inspected)
check_histogram(values(64, 0, 10), 10, 16, "four blocks")
check_histogram(values(50, 0, 10), 10, 16, "a ragged end")
check_histogram(values(3, 0, 2), 2, 64, "three values")
check_histogram(values(200, 0, 1) + 7, 10, 32, "all values the same")
check_histogram(values(300, -5, 20), 10, 64, "values outside the bins")
check_histogram(values(100, -5, 20), 10, 16, "inspected", launch_histogram_inspected)
### BEGIN HIDDEN TESTS
for power in (4, 6, 8):
    check_total(draw.ragged(1, 1500), 2**power, "other sizes", ("float32", "float16")[draw.integer(0, 1)])
    check_total(draw.ragged(300, 600), 2**power, "other sizes, inspected", launch=launch_total_inspected)
    wide = draw.integer(1, 60)
    check_histogram(values(draw.ragged(1, 1500), 0, wide), wide, 2**power, "other sizes")
    check_histogram(values(draw.ragged(1, 1500), -9, wide + 30), wide, 2**power, "other sizes, values outside")
    few = values(draw.ragged(300, 600), -9, wide + 30)
    check_histogram(few, wide, 2**power, "other sizes, inspected", launch_histogram_inspected)
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# **Do your kernels compile for a GPU?** The interpreter accepts some things that the compiler refuses, such as a
# variable that is an int before a loop and a float in the loop. The next cell compiles your kernels for a T4. It needs
# no GPU and runs for about ten seconds. If a kernel does not compile, the cell ends with an error whose last lines say
# where and why.

# %%
matrix = torch.empty((100, 4096), dtype=torch.float16, device="meta")
floats, ints = (torch.empty(n, dtype=d, device="meta") for n, d in ((4096, torch.float32), (64, torch.int32)))
for kernel, launch, constants, tensors in (
    (add_kernel, launch_add, {"BLOCK": 1024}, [floats] * 3),
    (add_matrices_kernel, launch_add_matrices, {"ROWS": 4, "COLS": 256}, [matrix] * 3),
    (shift_scale_kernel, launch_shift_scale, {"ROWS": 4, "COLS": 256}, [matrix, matrix, floats, floats]),
    (sum_kernel, launch_sums, {"BLOCK": 1024}, [floats, matrix]),
    (total_kernel, launch_total, {"BLOCK": 1024}, [floats, matrix]),
    (histogram_kernel, launch_histogram, {"BLOCK": 1024}, [ints, ints]),
):
    compiler_report(kernel, [constants], *tensors, launch=launch, capabilities=[75])
    print(f"{kernel.fn.__name__} compiles")

# %% [markdown]
# ## f. Read what the compiler made
#
# Triton compiles a kernel in several steps. Here are three of its intermediate texts for an `add_kernel` with out[i]
# = x[i] + y[i], for float32 vectors, BLOCK = 1024 and 4 **warps** (a warp is 32 threads that work in step; 4 warps are
# 128 threads), compiled for an A100. N is 1,048,576. Lines that do not matter here are left out, and so are the types
# that each line repeats.
#
# **1. Triton's own language (TTIR).** It looks like your kernel, with blocks:
#
# ```
# %0      = tt.get_program_id x
# %start  = arith.muli %0, 1024
# %lane   = tt.make_range {end = 1024, start = 0}          : tensor<1024xi32>
# %index  = arith.addi (splat %start), %lane               : tensor<1024xi32>
# %inside = arith.cmpi slt, %index, (splat %N)             : tensor<1024xi1>
# %x      = tt.load (addptr %x_ptr, %index), %inside, %cst : tensor<1024xf32>
# ```
#
# **2. The same for a GPU (TTGIR).** Each block gets a **layout** that says which thread holds which elements:
#
# ```
# #blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
# %x = tt.load ..., %inside, %cst : tensor<1024x!tt.ptr<f32>, #blocked>
# ```
#
# One pass of all threads covers 4 * 32 * 4 = 512 elements. The layout repeats until the block is covered.
#
# **3. PTX, the assembly language of NVIDIA's GPUs, for one thread.** `%tid.x` is the thread's number in the program,
# `%ctaid.x` the program's number. `@%p1` in front of an instruction means: only if `%p1` is true.
#
# ```
# mov.u32     %r26, %ctaid.x;
# shl.b32     %r27, %r26, 10;             // times 1024
# mov.u32     %r29, %tid.x;
# shl.b32     %r30, %r29, 2;              // times 4
# and.b32     %r31, %r30, 508;
# or.b32      %r32, %r31, %r27;
# or.b32      %r33, %r32, 512;
# setp.lt.s32 %p1, %r32, %r28;            // %r28 is N
# setp.lt.s32 %p2, %r33, %r28;
# ...
# mov.u32 %r1, %r5;                       // %r5 is 0; the same for %r2, %r3, %r4
# @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];         // from x
# @%p2 ld.global.v4.b32 { %r6, %r7, %r8, %r9 }, [ %rd2 + 0 ];         // from x
# @%p1 ld.global.v4.b32 { %r10, %r11, %r12, %r13 }, [ %rd3 + 0 ];     // from y
# @%p2 ld.global.v4.b32 { %r14, %r15, %r16, %r17 }, [ %rd4 + 0 ];     // from y
# add.f32     %r18, %r1, %r10;            // and seven more
# ...
# @%p1 st.global.v4.b32 [ %rd5 + 0 ], { %r18, %r19, %r20, %r21 };
# ```
#
# **The same kernel for N = 1,000,003**, which is not a multiple of 16 (the compiler is told whether it is):
#
# ```
# setp.lt.s32 %p1, %r32, %r28;
# setp.lt.s32 %p2, %r33, %r28;            // %r33 is %r32 + 1
# setp.lt.s32 %p3, %r34, %r28;            // %r34 is %r32 + 2; five more follow
# @%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
# @%p2 ld.global.b32 { %r3 }, [ %rd2 + 0 ];
# @%p3 ld.global.b32 { %r4 }, [ %rd3 + 0 ];
# ```
#
# **A kernel that multiplies the index by a `stride`, an argument whose value the compiler does not know:**
#
# ```
# #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
# @%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
# ```
#
# Answer from these texts:
#
# 1. `numbers_per_thread`: how many numbers of the block of x does one thread hold in all?
# 2. `bytes_at_once`: how many bytes does one load instruction of the first PTX bring to one thread?
# 3. `mask_register`: which register, such as `"%r5"`, tells in the first PTX whether the thread's *TERM_WHICH_LOAD*
#    load happens?
# 4. `numbers_on_other_warps`: the same block on TERM_WARPS warps: how many numbers does a thread hold?
# 5. `why_single`: why does the kernel for N = 1,000,003 load its numbers one by one? `"mask"`: four neighbors no longer
#    share one answer to index < N. `"registers"`: there are not enough registers. `"warps"`: there are too few warps.
#    `"alignment"`: the addresses do not begin at multiples of 16 bytes.
# 6. `why_single_with_stride`: and the last kernel? `"mask"`, `"registers"`, `"neighbors"` (the compiler cannot know
#    that neighboring lanes read neighboring addresses) or `"program"` (a program has fewer numbers).
#
# <details><summary>Hint 1</summary>
# 1: 128 threads share 1024 numbers evenly. 2: what do <code>v4</code> and <code>b32</code> say? A b32 is 32 bits.
# </details>
# <details><summary>Hint 2</summary>
# 3: the word after the @ in front of the TERM_WHICH_LOAD load from x; it was set by comparing an index with N. 4: how many
# threads are TERM_WARPS warps?
# </details>
# <details><summary>Hint 3</summary>
# 5: if N is a multiple of 16, elements 4, 5, 6 and 7 are all inside or all outside, so one test serves four. If N is
# 1,000,003, what about elements 1,000,000 to 1,000,003? 6: with a stride of 7, where are four neighboring lanes' numbers?
# </details>

# %% nbgrader={"grade": false, "grade_id": "f-answers", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup"], "title": "Read what the compiler made"}
### BEGIN SOLUTION
#: numbers_per_thread = None
#: bytes_at_once = None
#: mask_register = None
#: numbers_on_other_warps = None
#: why_single = None
#: why_single_with_stride = None
numbers_per_thread = 8
bytes_at_once = 16
mask_register = "TERM_MASK_REGISTER"
numbers_on_other_warps = TERM_NUMBERS_ON_WARPS
why_single = "mask"
why_single_with_stride = "neighbors"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup"]}
answers = {
    "numbers_per_thread": numbers_per_thread,
    "bytes_at_once": bytes_at_once,
    "mask_register": mask_register,
    "numbers_on_other_warps": numbers_on_other_warps,
    "why_single": why_single,
    "why_single_with_stride": why_single_with_stride,
}
for name, answer in answers.items():
    if answer is None:
        raise NotImplementedError(f"{name} is still None")
for name in ("numbers_per_thread", "bytes_at_once", "numbers_on_other_warps"):
    assert type(answers[name]) is int, f"{name} is {answers[name]!r}; it must be an int"
assert isinstance(mask_register, str), f"mask_register is {mask_register!r}; it must be a string such as '%r5'"
assert mask_register.startswith("%"), f"mask_register is {mask_register!r}; it must begin with %"
for name, choices in {
    "why_single": ("mask", "registers", "warps", "alignment"),
    "why_single_with_stride": ("mask", "registers", "neighbors", "program"),
}.items():
    assert answers[name] in choices, f"{name} is {answers[name]!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = {
    "numbers_per_thread": 8,
    "bytes_at_once": 16,
    "mask_register": "TERM_MASK_REGISTER",
    "numbers_on_other_warps": TERM_NUMBERS_ON_WARPS,
    "why_single": "mask",
    "why_single_with_stride": "neighbors",
}
for name, true in key.items():
    assert answers[name] == true, f"{name}: {answers[name]!r} is not what the texts show; see the hints"
### END HIDDEN TESTS
scorecard.answered("f")

# %% [markdown]
# ## g. The third regime: overhead
#
# A kernel's time has three parts that can limit it: the arithmetic, the bytes that must move, and a fixed cost that has
# nothing to do with the work, the **overhead**. The host must queue the launch, and the GPU must start and end the
# kernel. Which part you pay for shows when the work grows: if the time does not grow with it, it is overhead.
#
# Here are times in microseconds for adding 1 to each number of a vector, measured on an H200 (torch 2.11). *Queued*:
# many launches in a row, and the time per launch. *Waited*: the host waits for the end of each launch before it queues
# the next. *Graph*: the launches are recorded once, and the GPU replays them without the host. A number is read and
# written, 8 bytes in all, and a copy of large arrays runs at 4250 GB/s.


# %% nbgrader={"grade": false, "grade_id": "g-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
SIZES = [1, 16, 256, 4096, 65_536, 1_048_576, 16_777_216]
TIMES_US = {
    "queued": [6.29, 6.33, 6.66, 6.34, 6.27, 6.15, 35.21],
    "waited": [19.4, 13.95, 13.87, 13.81, 13.48, 13.85, 44.88],
    "graph": [1.02, 1.01, 1.13, 1.12, 1.2, 2.27, 33.59],
}
COPY_GB_PER_S = 4250

# %%
print(f"{'numbers':12}", "".join(f"{size:>12,}" for size in SIZES))
for way, times in TIMES_US.items():
    print(f"{way:12}", "".join(f"{time:12.2f}" for time in times))
print(f"{'bytes alone':12}", "".join(f"{8 * size / COPY_GB_PER_S / 1e3:12.4f}" for size in SIZES))

# %% [markdown]
# Write four small functions; times in microseconds (us), and a GB is a billion bytes.
#
# - `overhead_us(times_us)`: the overhead that a list of times shows. The list goes from the smallest work to the largest;
#   the first half of it is nothing but overhead. A single time may be disturbed and far too long, so use the median of
#   the first half (for an odd count leave the middle one out).
# - `flat_until(sizes, times_us)`: the largest size up to which time does not grow: its time and those of all smaller
#   sizes are at most TERM_FLAT times the overhead. A first time that is too long does not matter: begin with the second
#   size.
# - `break_even(overhead, bytes_per_number, gb_per_s)`: how many numbers take as long to move as the overhead.
# - `regime(flops, moved_bytes, launches, device)`: what limits a chain of kernels: `"overhead"`, `"memory"` or
#   `"compute"`, whichever takes longest. `device` is a dict with `"overhead_us"` per launch, `"gb_per_s"` and
#   `"gflop_per_s"`.
#
# <details><summary>Hint 1</summary>
# A GB/s is a thousand bytes per microsecond. <code>statistics.median</code> finds the median; import it in your cell.
# </details>
# <details><summary>Hint 2</summary>
# <code>break_even</code>: overhead times bytes per microsecond, divided by bytes per number. <code>flat_until</code>: a
# loop over pairs of size and time, from the second pair on, that ends at the first time above the limit.
# </details>
# <details><summary>Hint 3</summary>
# <code>statistics.median(times_us[: len(times_us) // 2])</code>; <code>overhead * gb_per_s * 1e3 / bytes_per_number</code>.
# The three times of <code>regime</code>, in us: <code>launches * device["overhead_us"]</code>, <code>moved_bytes /
# device["gb_per_s"] / 1e3</code> and <code>flops / device["gflop_per_s"] / 1e3</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "g-functions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup"], "title": "The third regime: overhead"}
def overhead_us(times_us):
    """Return the overhead that a list of times shows, in microseconds."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("overhead_us")
    import statistics

    return statistics.median(times_us[: len(times_us) // 2])
    ### END SOLUTION


def flat_until(sizes, times_us):
    """Return the largest size up to which the time does not grow."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("flat_until")
    limit = TERM_FLAT * overhead_us(times_us)
    last = sizes[0]
    for size, time_us in list(zip(sizes, times_us, strict=True))[1:]:
        if time_us > limit:
            break
        last = size
    return last
    ### END SOLUTION


def break_even(overhead, bytes_per_number, gb_per_s):
    """Return how many numbers take as long to move as the overhead, in microseconds."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("break_even")
    return overhead * gb_per_s * 1e3 / bytes_per_number
    ### END SOLUTION


def regime(flops, moved_bytes, launches, device):
    """Return "overhead", "memory" or "compute"."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("regime")
    times = {
        "overhead": launches * device["overhead_us"],
        "memory": moved_bytes / device["gb_per_s"] / 1e3,
        "compute": flops / device["gflop_per_s"] / 1e3,
    }
    return max(times, key=times.get)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "g-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "test", "needs": ["setup"]}
def check_near(found, right, what):
    """Compare a plain number, with an error of one part in a thousand."""
    assert type(found) in (int, float), f"{what} is {found!r}; return a plain number"
    assert abs(found - right) <= 1e-3 * abs(right), f"{what} is {found!r}, should be about {right:.6g}"


check_near(overhead_us([5, 5, 6, 90, 5, 7, 40, 90]), 5.5, "overhead_us([5, 5, 6, 90, 5, 7, 40, 90])")
check_near(overhead_us([9, 5, 5, 20, 30, 60, 70]), 5, "overhead_us([9, 5, 5, 20, 30, 60, 70])")
grading.assert_equal(flat_until([1, 2, 4, 8, 16, 32], [30, 6, 6, 6.5, 12, 25]), 8, what="flat_until, a slow first time")
grading.assert_equal(flat_until([1, 2, 4, 8, 16, 32], [6, 6, 6, 9, 6, 25]), 4, what="flat_until, up to the first gap")
check_near(break_even(6, 8, 4000), 3_000_000, "break_even(6, 8, 4000)")
slow = {"overhead_us": 6, "gb_per_s": 300, "gflop_per_s": 8000}
grading.assert_equal(regime(1e6, 4e6, 1, slow), "memory", what="regime, 4 MB in one launch")
grading.assert_equal(regime(1e6, 4e6, 10, slow), "overhead", what="regime, 4 MB in ten launches")
grading.assert_equal(regime(1e9, 4e6, 10, slow), "compute", what="regime, a billion FLOPs")
### BEGIN HIDDEN TESTS
rng = grading.Draws("g")
for _ in range(6):
    base, steps = rng.integer(20, 200) / 10, rng.integer(8, 14)
    flat = rng.integer(steps // 2, steps - 2)
    noisy = [base * (1 + rng.integer(0, 10) / 1000) for _step in range(flat + 1)]
    noisy[0] *= rng.integer(10, 30) / 10
    noisy[flat] = base * (TERM_FLAT - 0.03)  # just flat, and then just not
    noisy += [base * (1.01 * TERM_FLAT + 0.04) * 2**power for power in range(steps - flat - 1)]
    extents = [4**power for power in range(steps)]
    ordered = sorted(noisy[: steps // 2])
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
    check_near(overhead_us(noisy), middle, "overhead_us for other times")
    grading.assert_equal(flat_until(extents, noisy), extents[flat], what="flat_until for other times")
    rate, width = rng.integer(100, 5000), 2 ** rng.integer(1, 4)
    check_near(break_even(base, width, rate), base * 1e-6 * rate * 1e9 / width, "break_even for another device")
    chip = {"overhead_us": base, "gb_per_s": rate, "gflop_per_s": 20 * rate}
    count = rng.integer(1, 50)
    wait_s = count * base * 1e-6
    small, large = 0.5 * wait_s * rate * 1e9, 2 * wait_s * rate * 1e9
    cases = [
        ("overhead", 20 * small, small, "little work"),
        ("memory", 10 * large, large, "many bytes"),
        ("compute", 40 * large, large, "much arithmetic"),
    ]
    for word, work, moved, of_what in rng.shuffled(cases):
        grading.assert_equal(regime(work, moved, count, chip), word, what=f"regime of {of_what}")
### END HIDDEN TESTS
scorecard.passed("g")

# %%
for way, times in TIMES_US.items():
    overhead = overhead_us(times)
    most = break_even(overhead, 8, COPY_GB_PER_S)
    print(f"{way}: {overhead:.1f} us of overhead, flat until {flat_until(SIZES, times):,}, break-even at {most:,.0f}")

# %% [markdown]
# **Say why.** Answer in three to six sentences. Someone fuses your two kernels of question c into one and measures, on
# the H200 above with launches queued in a row, a matrix of 64 x 64 and one of 16,384 x 16,384 (float32). How many times
# faster is the fused kernel for each of them, about, and which regime is each in? Why is the gain about the same
# number, for two different reasons? What would be the gain for 64 x 64 if a graph replayed the launches? And what would
# you change in a program that launches a thousand kernels on small matrices? A person reads your answer; it gives up to
# 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "g-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g-why", "role": "written", "needs": ["setup"], "title": "Overhead, in words"}
# ### BEGIN SOLUTION
# #: *Your answer*
# Both are about twice as fast. For 64 x 64 (4096 numbers) the time is overhead: each queued launch costs about 6.3 us,
# and moving the bytes would take a hundredth of a microsecond, so one launch instead of two takes half the time. For
# 16,384 x 16,384 the time is bytes: 1 GiB per pass, so two passes over memory instead of four, about 0.5 ms instead of
# 1 ms, and 6 us hardly matter beside that. In a graph the small matrix still gains about a factor of two, from 2 times 1.1
# us to 1.1 us, because each kernel must still start and end, but there is six times less to gain. A thousand small
# kernels should be fused, or work on many matrices in one launch, or be replayed as a graph. Faster arithmetic or
# memory would not help.
# ### END SOLUTION

# %% [markdown]
# ## h, i. Name and repair the faults of six kernels
#
# Here are six kernels as people really write them. Each has one fault. Five give wrong results, at least sometimes or
# on some device; one is right and slow. For each, find the fault with the tool that is named below, give it one of
# these names (question h), and repair the kernel in place (question i):
#
# - `"mask"`: a load or store has no mask;
# - `"other"`: lanes that are switched off have no value, and take part in a result all the same;
# - `"race"`: several programs change one element, and updates get lost;
# - `"stride"`: neighboring lanes step by the long stride of a matrix instead of the short one;
# - `"accumulator"`: a sum is kept in a format with too few digits;
# - `"bounds"`: the end of a loop or of a mask is off by one.
#
# Each name fits one kernel. **Change the fault and nothing else**; the arguments stay. The contracts:
#
# 1. `relu_kernel`: y[i] = max(x[i], 0), for N numbers; one program per block of BLOCK numbers.
# 2. `TERM_ROW_KERNEL`: the TERM_LOWEST number of each row; one program per row, and BLOCK is at least cols.
# 3. `column_sums_kernel`: the sum of each column, which the lab sets to 0 before the launch. Program (p, q) adds row p to
#    the sums, in the BLOCK columns from column q * BLOCK on.
# 4. `row_means_kernel`: the mean of each row, for float16 and float32 inputs; the means are float32. One program per row.
# 5. `matrix_vector_kernel`: y[i] = the sum over k of a[i, k] * b[k], for K from 1 up; one program per row.
# 6. `product_kernel`: C = A B for contiguous float16 matrices. Program (p, q) computes BLOCK elements of C that are
#    neighbors in memory: row p, from column q * BLOCK on. (The faulty kernel computes BLOCK elements of column p, from
#    row q * BLOCK on. That is its fault, and the grid of its launch changes with it.)
#
# **The tools.** For kernels 1, 2, 3 and 5, use `grading.inspect(kernel, grid, *arguments, **constants)`. It runs the
# kernel in the interpreter, follows every access of every program, and returns a list of findings: what kind, in which
# line, by which program, and a sentence that says why. The cell below the kernels calls it. For kernel 4, compare with
# a sum in float64; the same cell does that. Kernel 6 gives the right result, so no test finds its fault. Its profile
# does: this is what Nsight Compute, NVIDIA's profiler, says about it on an H200, for 4096 x 4096 matrices, beside a
# kernel without the fault. A **sector** is a piece of 32 bytes, and a load is one instruction of one warp.
#
# ```
#                               kernel 6    without the fault
# time, ms                         273.0                 25.4
# sectors per load                  16.5                  1.5
# L1 cache throughput, %            99.4                 64.8
# bytes from L2 to SMs, GB           526                  120
# DRAM throughput, %                 0.1                  0.2
# issue slots used, %                9.6                 87.1
# ```
#
# Hints for h:
#
# <details><summary>Hint 1</summary>
# Run the cell below the kernels, and read the kind and the line of each finding. In kernel 4, look at the size of the
# error.
# </details>
# <details><summary>Hint 2</summary>
# The profile: 32 lanes load 2 bytes each. How many sectors do they touch if they are side by side, and how many if they
# are a row apart?
# </details>
# <details><summary>Hint 3</summary>
# "Out of bounds" comes in two kernels, in one for accesses without any mask, and in the other for masks that let one lane
# too many through. "Masked lane used" means that <code>other</code> is missing. Kernel 6 is the one with the long steps.
# </details>
#
# Hints for i:
#
# <details><summary>Hint 1</summary>
# Each repair of kernels 1 to 5 changes one line or two. What is right for the load of kernel 1 is right for its store.
# </details>
# <details><summary>Hint 2</summary>
# 2: which number never is the TERM_LOWEST? 3: question e. 4: the line above the loop. 5: is there an element number K? 6:
# the lanes are the block <code>rows</code>, and <code>rows * K</code> is where they load; let them be columns.
# </details>
# <details><summary>Hint 3</summary>
# 1: <code>mask=index &lt; N</code>. 2: <code>other=float("TERM_INF")</code>. 3: <code>tl.atomic_add(sums_ptr + col, x,
# mask=col &lt; cols)</code>. 4: <code>tl.float32</code>. 5: <code>mask=k &lt; K, other=0.0</code>, twice. 6: <code>row
# = tl.program_id(0)</code> and <code>cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)</code>; now a is one number
# and b a block.
# </details>


# %% nbgrader={"grade": false, "grade_id": "h-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_relu(kernel, constants, y, x):
    """Launch one program per block."""
    kernel[(triton.cdiv(x.numel(), constants["BLOCK"]),)](x, y, x.numel(), **constants)


def launch_rows(kernel, constants, out, x):
    """Launch one program per row."""
    kernel[(x.shape[0],)](x, out, *x.shape, *x.stride(), **constants)


def launch_column_sums(kernel, constants, sums, x):
    """Set the sums to 0, then launch one program per row and block of columns."""
    sums.zero_()
    grid = x.shape[0], triton.cdiv(x.shape[1], constants["BLOCK"])
    kernel[grid](x, sums, *x.shape, *x.stride(), **constants)


def launch_column_sums_inspected(kernel, constants, sums, x):
    """Launch as launch_column_sums does, and look for races."""
    launch_column_sums(grading.inspect_first(kernel), constants, sums, x)


def launch_matrix_vector(kernel, constants, y, a, b):
    """Launch one program per row of a."""
    kernel[(a.shape[0],)](a, b, y, *a.shape, *a.stride(), **constants)


def launch_product(kernel, constants, c, a, b):
    """Launch one program per row of C and block of its columns."""
    (m, k), n = a.shape, b.shape[1]
    kernel[(m, triton.cdiv(n, constants["BLOCK"]))](a, b, c, m, n, k, **constants)


# %% nbgrader={"grade": false, "grade_id": "i-kernels", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "i", "role": "solution", "needs": ["setup"], "title": "Repair six kernels"}
@triton.jit
def relu_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < N, other=0.0)
    ### BEGIN SOLUTION
    #: TERM_RELU_FAULT
    tl.store(y_ptr + index, tl.maximum(x, 0.0), mask=index < N)
    ### END SOLUTION


@triton.jit
def TERM_ROW_KERNEL(x_ptr, low_ptr, rows, cols, stride_xr, stride_xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.arange(0, BLOCK)
    ### BEGIN SOLUTION
    #: x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=float("TERM_INF"))
    ### END SOLUTION
    tl.store(low_ptr + row, tl.TERM_MIN(x, 0))


@triton.jit
def column_sums_kernel(x_ptr, sums_ptr, rows, cols, stride_xr, stride_xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=0.0)
    ### BEGIN SOLUTION
    #: before = tl.load(sums_ptr + col, mask=col < cols, other=0.0)
    #: tl.store(sums_ptr + col, before + x, mask=col < cols)
    tl.atomic_add(sums_ptr + col, x, mask=col < cols)
    ### END SOLUTION


@triton.jit
def row_means_kernel(x_ptr, mean_ptr, rows, cols, stride_xr, stride_xc, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    ### BEGIN SOLUTION
    #: total = tl.zeros((BLOCK,), tl.float16)
    total = tl.zeros((BLOCK,), tl.float32)
    ### END SOLUTION
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=0.0)
        total += x.to(total.dtype)
    tl.store(mean_ptr + row, tl.sum(total, 0).to(tl.float32) / cols)


@triton.jit
def matrix_vector_kernel(a_ptr, b_ptr, y_ptr, rows, K, stride_ar, stride_ak, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        ### BEGIN SOLUTION
        #: TERM_VECTOR_FAULT
        a = tl.load(a_ptr + row * stride_ar + k * stride_ak, mask=k < K, other=0.0)
        b = tl.load(b_ptr + k, mask=k < K, other=0.0)
        ### END SOLUTION
        total += a * b
    tl.store(y_ptr + row, tl.sum(total, 0))


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    ### BEGIN SOLUTION
    #: rows = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    #: col = tl.program_id(0)
    #: inside = rows < M
    #: total = tl.zeros((BLOCK,), tl.float32)
    #: for k in range(K):
    #:     a = tl.load(a_ptr + rows * K + k, mask=inside, other=0.0)
    #:     b = tl.load(b_ptr + k * N + col)
    #:     total += a.to(tl.float32) * b.to(tl.float32)
    #: tl.store(c_ptr + rows * N + col, total.to(tl.float16), mask=inside)
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = cols < N
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + row * K + k)
        b = tl.load(b_ptr + k * N + cols, mask=inside, other=0.0)
        total += a.to(tl.float32) * b.to(tl.float32)
    tl.store(c_ptr + row * N + cols, total.to(tl.float16), mask=inside)
    ### END SOLUTION


# %% [markdown]
# The tools: run this cell before you repair, and again afterwards. (Lines are counted from the top of the cell above.)

# %%
x, y, b, three = torch.rand(3, 50), torch.empty(50), torch.rand(50), torch.empty(3)
for number, kernel, grid, arguments, block in (
    (1, relu_kernel, (4,), (x[0], y, 50), 16),
    (2, TERM_ROW_KERNEL, (3,), (x, three, 3, 50, 50, 1), 64),
    (3, column_sums_kernel, (3, 4), (x, torch.zeros(50), 3, 50, 50, 1), 16),
    (5, matrix_vector_kernel, (3,), (x, b, three, 3, 50, 50, 1), 16),
):
    found = grading.inspect(kernel, grid, *arguments, BLOCK=block)
    print(f"kernel {number}:", *(found or ["nothing found"]), sep="\n  ")

half = (1 + torch.rand(3, 3000, device=DEVICE)).half()
means, right = run(launch_rows, row_means_kernel, {"BLOCK": 16}, three.to(DEVICE), half), half.double().mean(1)
print("kernel 4:", *(f"{mean:.6f}, should be {true:.6f}" for mean, true in zip(means, right, strict=True)), sep="\n  ")

# %% nbgrader={"grade": false, "grade_id": "h-names", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "h", "role": "solution", "needs": ["setup"], "title": "Name the faults of six kernels"}
### BEGIN SOLUTION
#: fault_1 = None
#: fault_2 = None
#: fault_3 = None
#: fault_4 = None
#: fault_5 = None
#: fault_6 = None
fault_1 = "TERM_FAULT_1"
fault_2 = "other"
fault_3 = "race"
fault_4 = "accumulator"
fault_5 = "TERM_FAULT_5"
fault_6 = "stride"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "h-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "h", "role": "test", "needs": ["setup"]}
faults = (fault_1, fault_2, fault_3, fault_4, fault_5, fault_6)
for number, fault in enumerate(faults, start=1):
    if fault is None:
        raise NotImplementedError(f"fault_{number} is still None: choose one of the six")
    choices = ("mask", "other", "race", "stride", "accumulator", "bounds")
    assert fault in choices, f"fault_{number} is {fault!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("TERM_FAULT_1", "other", "race", "accumulator", "TERM_FAULT_5", "stride")
for number, (said, true) in enumerate(zip(faults, key, strict=True), start=1):
    assert said == true, f"fault_{number}: {said!r} is not what is wrong with this kernel; see the hints"
### END HIDDEN TESTS
scorecard.answered("h")

# %% nbgrader={"grade": true, "grade_id": "i-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "i", "role": "test", "needs": ["setup"]}
draw = grading.Draws("i", DEVICE)


def check_repairs(rows, cols, block, layout):
    """Compare the six kernels with PyTorch in float64."""

    def check(number, kernel, launch, inputs, right, constants):
        what = f"kernel {number}, {tuple(inputs[0].shape)}, strides {inputs[0].stride()}, {constants}"
        grading.check_kernel(kernel, constants, inputs, right.to(right_dtype), launch=launch, what=what)

    right_dtype = torch.float32
    some = {"BLOCK": block}
    x = draw.matrix(1, rows * cols, layout="offset")[0]
    check(1, relu_kernel, launch_relu, [x], x.relu(), some)
    x = draw.matrix(rows, cols, layout=layout, values="positive")
    whole_row = {"BLOCK": max(block, triton.next_power_of_2(cols))}
    check(2, TERM_ROW_KERNEL, launch_rows, [x], x.TERM_MIN(1).values, whole_row)
    check(3, column_sums_kernel, launch_column_sums_inspected, [x], x.double().sum(0), some)
    half = draw.matrix(rows, cols, layout=layout, values="positive", dtype="float16")
    check(4, row_means_kernel, launch_rows, [half], half.double().mean(1), some)
    check(4, row_means_kernel, launch_rows, [x], x.double().mean(1), some)
    b = draw.matrix(1, cols, layout="offset", values="positive")[0]
    check(5, matrix_vector_kernel, launch_matrix_vector, [x, b], x.double() @ b.double(), some)
    right_dtype = torch.float16
    left, right = (draw.matrix(*size, values="positive", dtype="float16") for size in ((rows, 9), (9, cols)))
    check(6, product_kernel, launch_product, [left, right], left.double() @ right.double(), some)


check_repairs(3, 50, 16, "row")
check_repairs(4, 32, 16, "row")
check_repairs(5, 3, 16, "column")
check_repairs(2, 300, 64, "sliced")
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "offset"):
    size = draw.integer(1, 9), draw.ragged(1, 400)
    check_repairs(*size, 2 ** draw.integer(4, 7), arrangement)
### END HIDDEN TESTS
scorecard.passed("i")

# %% [markdown]
# ## j. The race: shift and scale (GPU)
#
# `grading.speed` runs `shift_scale_kernel` with the constants that your `tile_config` returns, and compares every
# element with the right result. Then it times your kernel and another one in turn, for several rounds: yours, the
# other, the other, yours. A GPU that warms up or slows down then does so for both. Here the other one is PyTorch,
# which needs two kernels. When the lab is graded, your kernel runs against a Triton kernel that the lab's authors
# wrote, on the same GPU, in the same run. You get all the points from 0.8 of that kernel's speed on, none below 0.1,
# and a share in between. Without a GPU the cell compiles your kernel with your config, says what it needs, and ends
# with `NeedsGpu`; the points wait.
#
# Write `tile_config((rows, cols), dtype)`. It returns a dict of three ints, `ROWS`, `COLS` and `num_warps`; dtype is
# `"fp32"`. The matrix is contiguous. Three things matter, the most important first: neighboring lanes should read
# neighboring addresses (`COLS` large); each thread should hold at least 16 bytes, and not more than some 32 numbers
# (question f); and a program should have enough work to be worth starting.
#
# <details><summary>Hint 1</summary>
# Which of the two strides of a contiguous matrix is 1? A warp reads best when its 32 lanes go along that direction.
# </details>
# <details><summary>Hint 2</summary>
# With 4 warps, 128 threads share ROWS * COLS numbers. What is the share of one thread with ROWS = 1 and COLS = 1024?
# </details>
# <details><summary>Hint 3</summary>
# <code>{"ROWS": 4, "COLS": 1024, "num_warps": 8}</code> gives each thread 16 numbers. For short rows,
# <code>triton.next_power_of_2(cols)</code> columns are enough.
# </details>


# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(8192, 4096), (8192, 1000)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


def shift_scale_inputs(draw, shape, dtype):
    """Return a random matrix, shift and scale."""
    torch_dtype = {"fp32": "float32", "fp16": "float16"}[dtype]
    vectors = (draw.matrix(1, shape[0], dtype=torch_dtype)[0] for _ in range(2))
    return (draw.matrix(*shape, dtype=torch_dtype), *vectors)


# %% nbgrader={"grade": false, "grade_id": "j-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "j", "role": "solution", "needs": ["setup", "c"], "title": "The race: shift and scale"}
def tile_config(shape, dtype):
    """Return rows and columns of a tile, and warps, for shift_scale_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("tile_config")
    return {"ROWS": 4, "COLS": min(1024, triton.next_power_of_2(shape[1])), "num_warps": 8}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "j-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "j", "role": "speed", "needs": ["setup", "c"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    in_ptr, add_ptr, times_ptr, out_ptr, height, width, in_step, in_one, out_step, out_one,
    COLS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    j = (tl.program_id(1) * COLS + tl.arange(0, COLS))[None, :]
    there = (i < height) & (j < width)
    value = tl.load(in_ptr + i * in_step + j * in_one, mask=there, other=0.0).to(tl.float32)
    more = tl.load(add_ptr + i, mask=i < height, other=0.0).to(tl.float32)
    factor = tl.load(times_ptr + i, mask=i < height, other=0.0).to(tl.float32)
    result = (TERM_VALUE_SHIFTED) * factor
    tl.store(out_ptr + i * out_step + j * out_one, result.to(out_ptr.dtype.element_ty), mask=there)


def reference_tile(shape, dtype):
    return {"ROWS": 4, "COLS": min(1024, triton.next_power_of_2(shape[1])), "num_warps": 8}


rival = (reference_kernel, reference_tile)
### END HIDDEN TESTS
race = grading.speed(
    shift_scale_kernel,
    tile_config,
    shapes=RACES,
    inputs=shift_scale_inputs,
    launch=launch_shift_scale,
    expected=right_shift_scale,
    reference=rival,
)
scorecard.passed("j", race.fraction)
race

# %% [markdown]
# ## k. Test a kernel
#
# Tests are only as good as the faults that they find. So this question turns the tables: you write the tests, and they
# are tried on kernels. Write `test_shift_scale(shift_scale)`. It gets a function to test, which computes
# y = (TERM_SHIFTED) * scale as in question c. Your tests call it with inputs of your choice and compare what comes
# back. They **refuse** the function by raising an exception, as `assert` and `grading.assert_close` do, or by returning
# False. Otherwise they accept it.
#
# When the lab is graded, your tests meet a right kernel and twelve **mutants**, each with one fault. You get the share
# of the mutants that your tests find, and nothing if they refuse the right kernel. The feedback says in which cases the
# mutants that you missed go wrong. It is not worth refusing at random: the right kernel comes several times, among the
# mutants, and every run is in a new process that knows nothing of the others. In the notebook, three wrong functions in
# PyTorch stand in for the mutants, and the points that it shows are your share of these three.
#
# The **contract** of the function, which takes x, shift and scale and returns y:
#
# - x is a matrix with any strides. shift and scale are contiguous vectors with a number per row. All three have the same
#   dtype, float32 or float16. Other arguments are refused with a ValueError.
# - Behind the function is a kernel that computes tiles of 4 x 16 elements, in float32, and rounds at the end.
# - Keep your matrices small and your calls few: 19 x 50 elements and ten calls are enough for everything. When the lab is graded,
#   Triton's interpreter computes every call of your tests, for the right kernel and for each mutant, and all of it
#   together is stopped after 10 seconds.
# - A kernel that reaches outside a tensor is stopped, and the call ends in a RuntimeError. Let it pass through, and the
#   mutant counts as found.
#
# `grading.Draws("k", DEVICE).matrix(rows, cols, dtype="float16", layout="sliced")` makes a random matrix; the layouts
# are row, column (a transposed view), sliced (with gaps) and offset (a window in a larger matrix).
# `grading.assert_close(actual, expected, what="one row")` compares two tensors of the same dtype within the tolerance
# of that dtype. Make all tensors on `DEVICE`: when the lab is graded, this question runs on a CPU.
#
# <details><summary>Hint 1</summary>
# Look at the test cells of questions b and c: which cases do they try, and which fault does each case find? One case
# with everything ragged finds more than ten cases that are not.
# </details>
# <details><summary>Hint 2</summary>
# Compute what is right in float64 and round it: <code>right_shift_scale(x.double(), shift.double(),
# scale.double()).to(x.dtype)</code>. Take more than two tiles in both directions, with a ragged end, and positive and
# negative numbers. Then the same for each layout of x.
# </details>
# <details><summary>Hint 3</summary>
# What is still missing is float16: numbers of 40,000 and shifts of TERM_LARGER_SHIFT_SAID, with scales of 0.5, tell a
# sum in float32 from a sum in float16. What is the largest float16 number?
# </details>


# %% nbgrader={"grade": false, "grade_id": "k-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def refuse_shift_scale(x, shift, scale):
    """Raise a ValueError for arguments that the contract does not allow."""
    for name, tensor, dims in (("x", x, 2), ("shift", shift, 1), ("scale", scale, 1)):
        if not isinstance(tensor, torch.Tensor) or tensor.dim() != dims or 0 in tensor.shape:
            raise ValueError(f"{name} must be a tensor of {dims} dimensions, each 1 or more")
        if tensor.dtype not in (torch.float32, torch.float16) or tensor.dtype != x.dtype:
            raise ValueError(f"{name} is {tensor.dtype}, x is {x.dtype}: give both as float32 or as float16")
        if dims == 1 and (tensor.shape[0] != x.shape[0] or not tensor.is_contiguous()):
            raise ValueError(f"{name} must be contiguous, with a number for each of the {x.shape[0]} rows of x")


def call_shift_scale(kernel, x, shift, scale):
    """Check the arguments, launch a kernel in tiles of 4 x 16, and return y."""
    refuse_shift_scale(x, shift, scale)
    y = torch.full(x.shape, float("nan"), dtype=x.dtype, device=x.device)
    launch_shift_scale(kernel, {"ROWS": 4, "COLS": 16}, y, x, shift, scale)
    return y


# Four functions to try your tests on, in PyTorch; what is wrong with them are faults as kernels have them.


def right_example(x, shift, scale):
    """Do what the contract says."""
    refuse_shift_scale(x, shift, scale)
    return right_shift_scale(x.float(), shift.float(), scale.float()).to(x.dtype)


def swapped_example(x, shift, scale):
    """Multiply first."""
    refuse_shift_scale(x, shift, scale)
    ones = torch.ones_like(scale)
    return right_shift_scale(x.float() * scale.float()[:, None], shift.float(), ones.float()).to(x.dtype)


def short_example(x, shift, scale):
    """Leave out the rows of the last tile, if it is not whole."""
    y = right_example(x, shift, scale)
    y[x.shape[0] // 4 * 4 :] = float("nan")
    return y


def flat_example(x, shift, scale):
    """Read x as if its rows lay one after the other in memory."""
    return right_example(torch.as_strided(x, x.shape, (x.shape[1], 1)), shift, scale)


EXAMPLES = {
    "multiplies before it adds": swapped_example,
    "leaves out the last rows if they are not a whole tile": short_example,
    "is wrong for a transposed matrix and for slices": flat_example,
}


# %% nbgrader={"grade": false, "grade_id": "k-tests", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "k", "role": "solution", "needs": ["setup"], "title": "Test a kernel"}
def test_shift_scale(shift_scale):
    """Refuse shift_scale if it is wrong: raise an exception or return False."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("test_shift_scale: write it, then delete this line")
    draw = grading.Draws("k", DEVICE)
    for layout in ("row", "column", "sliced", "offset"):
        x = draw.matrix(11, 37, layout=layout)
        shift, scale = draw.matrix(2, 11)
        right = right_shift_scale(x.double(), shift.double(), scale.double())
        grading.assert_close(shift_scale(x, shift, scale), right.float(), what=layout)
    x = (40_000 + 1000 * draw.matrix(2, 5)).half()
    shift, scale = (torch.full((2,), number, device=DEVICE).half() for number in (TERM_LARGER_SHIFT, 0.5))
    right = right_shift_scale(x.double(), shift.double(), scale.double())
    grading.assert_close(shift_scale(x, shift, scale), right.half(), what="large numbers")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "k-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "k", "role": "test", "needs": ["setup"], "device": "cpu"}
score = grading.score_tests(test_shift_scale, right=right_example, wrong=EXAMPLES)
scorecard.passed("k", score.fraction)


### BEGIN HIDDEN TESTS
@triton.jit
def tested_kernel(
    in_ptr, add_ptr, times_ptr, out_ptr, height, width, in_step, in_one, out_step, out_one,
    COLS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip # the right kernel, of which the mutants are made
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    j = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    rows = i < height
    cols = j < width
    value = tl.load(in_ptr + i * in_step + j * in_one, mask=rows & cols, other=0.0).to(tl.float32)
    more = tl.load(add_ptr + i, mask=rows, other=0.0).to(tl.float32)
    factor = tl.load(times_ptr + i, mask=rows, other=0.0).to(tl.float32)
    total = TERM_VALUE_SHIFTED
    result = (total * factor).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + i * out_step + j * out_one, result, mask=rows & cols)


mutants = {
    "is wrong in the last rows if they are not a whole tile": ("i < height", "i < height // ROWS * ROWS"),
    "is wrong in the last columns if they are not a whole tile": ("j < width", "j < width // COLS * COLS"),
    "writes more rows than there are": ("result, mask=rows & cols", "result, mask=cols"),
    "writes more columns than there are": ("result, mask=rows & cols", "result, mask=rows"),
    "is wrong if the rows of x have gaps between them": ("i * in_step", "i * width"),
    "is wrong if neighbors in a row of x are not neighbors in memory": ("j * in_one", "j"),
    "is wrong from the ninth row on": ("tl.program_id(0) * ROWS", "tl.program_id(0) % 2 * ROWS"),
    "is wrong from the seventeenth column on": ("tl.program_id(1) * COLS", "0"),
    "is wrong for a negative scale": ("total * factor", "total * tl.abs(factor)"),
    "is wrong for a negative sum": ("total = TERM_VALUE_SHIFTED", "total = tl.maximum(TERM_VALUE_SHIFTED, 0.0)"),
    "is wrong for a sum that is larger than any float16 number": (
        "TERM_VALUE_SHIFTED", "(TERM_VALUE_SHIFTED).to(out_ptr.dtype.element_ty).to(tl.float32)",
    ),
    "is wrong in every row but the first": ("add_ptr + i, mask=rows", "add_ptr + i * 0, mask=rows"),
}  # fmt: skip # what each mutant does, what it replaces in the right kernel, and by what
score = grading.score_tests(test_shift_scale, call=call_shift_scale, right=tested_kernel, wrong=mutants)
### END HIDDEN TESTS
score

# %% [markdown]
# ## Challenge: a histogram without atomics in memory
#
# If most values are the same, nearly all lanes of `histogram_kernel` add to one address, and they wait for each other.
# The second way to fix a race avoids that: every program keeps its own counts in registers, goes through its share of
# the data, and writes its counts once, to a row of its own. The lab's function adds up the rows.
#
# `tl.histogram(value, BINS, mask=...)` counts a block of ints from 0 to BINS - 1, and returns a block of BINS counts.
# Values outside must be masked.
#
# The **contract**:
#
# - The grid has P programs. Program p counts blocks p, p + P, p + 2 P, ... of BLOCK numbers: `for start in
#   range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK)`.
# - BINS is a power of two, and a constant of the kernel. Program p writes its BINS counts to `partial[p]`, that is from
#   `partial_ptr + p * BINS` on, also if it had no block. Everything is int32 and contiguous.
# - Values below 0 or from BINS on are not counted.
#
# <details><summary>Hint 1</summary>
# Before the loop: BINS zeros. In the loop: load, count, add. After the loop: one store.
# </details>
# <details><summary>Hint 2</summary>
# <code>counts = tl.zeros((BINS,), tl.int32)</code>. A lane past the end of x gets a value that is never counted:
# <code>other=-1</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>counts += tl.histogram(value, BINS, mask=(value &gt;= 0) &amp; (value &lt; BINS))</code>, and at the end
# <code>tl.store(partial_ptr + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: a histogram without atomics in memory"}
@triton.jit
def private_histogram_kernel(x_ptr, partial_ptr, N, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Count blocks p, p + P, ... and write the counts to row p of partial."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(tl.program_id(0) * BLOCK, N, tl.num_programs(0) * BLOCK):
        index = start + tl.arange(0, BLOCK)
        value = tl.load(x_ptr + index, mask=index < N, other=-1)
        counts += tl.histogram(value, BINS, mask=(value >= 0) & (value < BINS))
    tl.store(partial_ptr + tl.program_id(0) * BINS + tl.arange(0, BINS), counts)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("private_histogram_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
draw = grading.Draws("challenge", DEVICE)


def check_private_histogram(n, low, high, bins, block, programs, what):
    """Compare private_histogram_kernel with PyTorch's counts."""
    uniform = draw.matrix(1, n, values="positive")[0] * 2 - 1  # from 0 to 1
    x = (low + uniform * (high - low)).floor().clamp(low, high - 1).int()
    right = torch.bincount(x[(x >= 0) & (x < bins)].long(), minlength=bins).int()
    constants = {"BLOCK": block, "PROGRAMS": programs}
    what = f"private_histogram_kernel, {what}: N = {n}, BINS = {bins}, {constants}"
    kernel = private_histogram_kernel
    grading.check_kernel(kernel, constants, [x], right, launch=launch_private_histogram, what=what)


check_private_histogram(64, 0, 16, 16, 16, 4, "one block per program")
check_private_histogram(256, 0, 16, 16, 16, 3, "several blocks per program")
check_private_histogram(250, 0, 16, 16, 32, 3, "a ragged end")
check_private_histogram(20, 0, 16, 16, 32, 3, "programs without blocks")
check_private_histogram(250, -10, 30, 16, 32, 3, "values outside the bins")
### BEGIN HIDDEN TESTS
for power in (4, 5, 7):
    top = 2**power
    more = draw.integer(1, 20)
    check_private_histogram(draw.ragged(1, 1500), 0, top, top, 64, draw.integer(1, 9), "other sizes")
    check_private_histogram(draw.ragged(1, 1500), -more, top + more, top, 32, draw.integer(1, 9), "values outside")
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and measurement differ?
#
# The prediction is always the same: bytes divided by the bandwidth of a large copy, or a number of launches times the
# time of one. Here are four cases in which it is far off, measured on an H200 (times in microseconds):


# %%
def predicted_us(moved_bytes):
    return moved_bytes / COPY_GB_PER_S / 1e3


TERM_GAPS

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"overhead"`: queuing, starting and ending a kernel takes a fixed time, no matter how few bytes it moves.
# - `"sectors"`: memory moves whole pieces of 32 bytes, even if only a few bytes of each are used.
# - `"cache"`: the numbers are still in the L2 cache, so fewer bytes than counted come from DRAM.
# - `"waiting"`: the host queues the next launch only when the last one has ended, so the two no longer overlap.
# - `"arithmetic"`: the arithmetic units cannot keep up with memory.
#
# <details><summary>Hint 1</summary>
# Only one of the five makes a kernel faster than predicted. And is there any arithmetic to speak of in the four cases?
# </details>
# <details><summary>Hint 2</summary>
# Case TERM_CASE_SECTORS: how many bytes apart are two numbers that are 8 places apart? What share of the bytes that move is
# used? Case TERM_CASE_WAITING: the prediction has a thousand overheads in it already.
# </details>
# <details><summary>Hint 3</summary>
# Case TERM_CASE_OVERHEAD is the flat part of question g. In case TERM_CASE_SECTORS every number of 4 bytes brings 32. An
# H200's L2 cache holds 50 MiB. In case TERM_CASE_WAITING the host and the GPU take turns.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and measurement differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
#: cause_4 = None
cause_1 = "TERM_CAUSE_1"
cause_2 = "TERM_CAUSE_2"
cause_3 = "TERM_CAUSE_3"
cause_4 = "TERM_CAUSE_4"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3, cause_4), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the five")
    choices = ("overhead", "sectors", "cache", "waiting", "arithmetic")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("TERM_CAUSE_1", "TERM_CAUSE_2", "TERM_CAUSE_3", "TERM_CAUSE_4")
for number, (said, true) in enumerate(zip((cause_1, cause_2, cause_3, cause_4), key, strict=True), start=1):
    assert said == true, f"cause_{number}: {said!r} does not make this gap; see the hints"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted, read and measured. (On a GPU, a thousand programs really count with a race,
# and a copy of the same matrix is timed beside your fused kernel.)


# %%
@triton.jit
def count_kernel(counter_ptr):
    tl.store(counter_ptr, tl.load(counter_ptr) + 1)


counted = share = None
if DEVICE == "cuda":
    counter = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    count_kernel[(1000,)](counter)
    counted = counter.item()
    x, shift, scale = shift_scale_inputs(grading.Draws("share", DEVICE), RACES[0], "fp32")
    y, constants = torch.empty_like(x), tile_config(RACES[0], "fp32")
    pair = measure.time_pair(
        lambda: launch_shift_scale(shift_scale_kernel, constants, y, x, shift, scale), lambda: y.copy_(x)
    )
    share = pair.ratio
grading.compare(
    predictions,
    fused_gain=two_pass_bytes(16_384, 16_384, 4) / one_pass_bytes(16_384, 16_384, 4),
    same_time_until=flat_until(SIZES, TIMES_US["queued"]),
    counted=counted,
    bytes_per_load=bytes_at_once,
    share_of_copy=share,
)

# %% [markdown]
# These are the three regimes of every kernel in this course. If its time does not grow with the work, it pays for
# **overhead**: launch less often. If it grows with the bytes, it pays for **memory**: move fewer bytes. If it grows with
# the arithmetic, it pays for **compute**. The next labs are about the second and the third.
#
# Last, see your points.

# %%
scorecard

# %% [markdown]
# **Your work log.** Each run of a test cell is noted in the output of that cell, with its verdict and its time. The
# picture shows all of them, from left to right. The log is yours and used for nothing else: it gives no points, and
# grading does not read it. It is in the outputs of this notebook and nowhere else, so an instructor sees it only if you
# hand it in. If you would rather not, clear the outputs of all cells before you hand in; your points stay the same.

# %%
scorecard.work_log

# %% [markdown]
# **Hand in** this notebook with all cells run, from the top, in order (*Kernel, Restart and run all*; in Colab
# *Runtime, Run all*).
