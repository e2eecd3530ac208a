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
#     lab: fusion
#     version: "2"
#     withheld: [mlsys.ops]
# ---

# %% [markdown]
# # Kernel fusion
#
# `y = torch.relu(x)` on a GPU reads x from DRAM, the large memory beside the chip, changes each number a little, and
# writes it back. The next line of the program reads the same numbers again. The arithmetic is nearly free; almost all
# of the time goes into the trips to DRAM.
#
# **Fusion** writes several such steps as one kernel: read once, do everything while the numbers are in registers, write
# once.
#
# **The question of this lab: how much faster can fusion make a chain of steps, what keeps a fused kernel from reaching
# that speed, and what does it take to write one that is right for every row?**
#
# You will predict, write, check, measure, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with the truth at the end |
# | a | count bytes, unfused and fused | six formulas |
# | b | ReLU, batch normalization, scale as one kernel | an element-wise kernel |
# | c | softmax of every row | a kernel with reductions |
# | d | softmax of rows too long for the registers | maximum and sum in one pass over blocks |
# | e | layer normalization of every row | mean and variance, without counting padding |
# | f | add a bias, apply GELU | a kernel that arithmetic can limit |
# | g | choose rows, columns and warps by arithmetic | a function, and what the compiler reports |
# | h, i (GPU) | race softmax and layer normalization | a share of a reference kernel's speed |
# | challenge | the backward pass of layer normalization | three gradients in one pass |
# | gap | explain why prediction and measurement differ | four causes |
#
# Plan for three to four hours. You need Python, and you should know what a softmax is. If you have never seen a GPU
# kernel, read the first section slowly; it explains what you need. Without a GPU you can finish everything except the
# two questions marked (GPU). Hints cost no points: each question but the two races has three, from a nudge to
# nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None`, `pass` or "Your answer". You may add cells.
# Read the test cells, and run them as often as you like. When the lab is graded, the original versions of these cells
# run, with more shapes and values.

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
        "a": 10, "b": 10, "c": 15, "d": 10, "e": 15, "f": 10, "g": 5, "g-why": 5,
        "h": 5, "i": 5, "challenge": 5, "gap": 5,
    },
    gpu=["h", "i"],
    read=["g-why"],
)  # fmt: skip

# %% [markdown]
# ## Predictions
#
# Before any counting, write down what you expect; a guess will do. You are not graded on how close you come. The point
# is to have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the
# time. If you run it again, the new numbers replace the old ones, and the end of the lab compares the last ones. So
# leave the cell alone once you have gone on.
#
# 1. `chain_gain`: three element-wise steps (ReLU, batch normalization, multiplication by a scale) become one kernel. How
#    many *times* fewer bytes move?
# 2. `softmax_gain`: softmax written as five array operations (row maximum, subtract, exponential, row sum, divide)
#    becomes one kernel. How many *times* fewer bytes move?
# 3. `layernorm_gain`: the same for layer normalization, written as eight array operations.
# 4. `registers`: in layer normalization, 256 threads (8 warps of 32) share two rows of 4096 numbers. Each thread holds
#    32 numbers, each in a register of 32 bits, and needs more registers for addresses, gamma, beta and results. How
#    many registers does the compiler give each thread in all? (A thread can have at most 255.)
# 5. `share_of_copy`: what share of the speed of a plain copy of the same tensor will your softmax reach? Give a number
#    such as 0.1, 0.5 or 1. (The notebook measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: chain_gain = None
#: softmax_gain = None
#: layernorm_gain = None
#: registers = None
#: share_of_copy = None
chain_gain = 3
softmax_gain = 5
layernorm_gain = 8
registers = 64
share_of_copy = 0.8
### END SOLUTION
predictions = grading.seal(
    chain_gain=chain_gain,
    softmax_gain=softmax_gain,
    layernorm_gain=layernorm_gain,
    registers=registers,
    share_of_copy=share_of_copy,
)

# %% [markdown]
# ## A kernel to read first
#
# A **kernel** is a function that runs on the GPU many times at once. In Triton each of these runs is called a
# **program**. All programs execute the same code; only their number, `tl.program_id(0)`, tells them apart. The kernel
# below squares every number of a matrix and adds up each row. Each program works on ROWS rows.


# %%
@triton.jit
def row_energy_kernel(
    x_ptr, energy_ptr, rows, cols, stride_xr, stride_xc, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)  # which rows are mine: a block of ROWS numbers
    col = tl.arange(0, BLOCK)  # all columns, and some more if BLOCK is larger than cols
    inside = (row[:, None] < rows) & (col[None, :] < cols)
    addresses = x_ptr + row[:, None] * stride_xr + col[None, :] * stride_xc
    x = tl.load(addresses, mask=inside, other=0.0).to(tl.float32)  # ROWS x BLOCK numbers, now in registers
    energy = tl.sum(x * x, 1)  # along axis 1: one number per row
    tl.store(energy_ptr + row, energy, mask=row < rows)


x = torch.arange(15.0, device=DEVICE).reshape(5, 3)
energy = torch.empty(5, device=DEVICE)
programs = triton.cdiv(5, 2)  # division rounded up: 3 programs for 5 rows, 2 at a time
row_energy_kernel[(programs,)](x, energy, 5, 3, x.stride(0), x.stride(1), ROWS=2, BLOCK=4)
energy

# %% [markdown]
# Line by line:
#
# - `x_ptr` is the **address** of the first number in memory. Element (i, j) of a matrix is at `ptr + i * stride(0) +
#   j * stride(1)`. A contiguous 5 x 3 matrix has strides (3, 1); its transpose is the same memory with strides (1, 3).
#   A kernel that uses both strides handles them all.
# - `tl.arange(0, BLOCK)` makes a block of indices. BLOCK must be a power of two, and known when the kernel is compiled
#   (`tl.constexpr`). `row[:, None]` makes the row indices a column, ROWS x 1, and `col[None, :]` makes the column
#   indices a row, 1 x BLOCK; combining the two gives a block of ROWS x BLOCK addresses.
# - The **mask** switches single addresses off. Triton does not check addresses: without the mask the kernel would read
#   and write other data, or crash the process. Elements that are switched off get the value `other`. Choose a value
#   that does no harm: 0 for a sum, minus infinity (`-float("inf")`) for a maximum. If you leave `other` out, the value
#   can be anything.
# - `num_warps` **warps** of 32 threads each execute a program. The threads share the block evenly: a block of 2 x 4096
#   numbers on 8 warps is 32 numbers per thread, and each thread keeps its numbers in its **registers**.
# - `tl.sum(x, 1)` and `tl.max(x, 1)` reduce along the columns: one number per row. To combine the result m with the
#   block again, make it a column: `x - m[:, None]`.
# - `.to(tl.float32)`: inputs may be float16. **Always calculate in float32**, and convert at the end with
#   `.to(y_ptr.dtype.element_ty)`. The largest number in float16 is 65504, and its precision is 11 bits, so sums in
#   float16 overflow or lose digits.
#
# These functions work element by element, on blocks and on single numbers:
#
# - `tl.maximum(a, b)`: the larger of the two. Do not use Python's `max` on blocks: on a GPU Triton still takes it for
#   `tl.maximum`, but the interpreter, which may grade you, returns the whole of a or the whole of b, without an error.
# - `tl.where(condition, a, b)`: a where the condition holds, b elsewhere.
# - `tl.exp(a)`, `tl.erf(a)`, `tl.sqrt(a)`, and `tl.rsqrt(a)`, which is 1 / sqrt(a). They need float32; with float16 the
#   error is `Expected dtype ['fp32', 'fp64'] but got fp16`.
#
# The lab's own functions launch your kernels, so you write only kernels. All vectors with one number per column (means,
# scales, biases) are contiguous; matrices may have any strides. Use `run` to try things out.


# %% nbgrader={"grade": false, "grade_id": "launches", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
EPSILON = 1e-5


def launch_chain(kernel, constants, y, x, mean, var, gamma, beta, scale):
    """Launch one program per tile of ROWS x BLOCK elements; the tiles are numbered row by row."""
    rows, cols = x.shape
    grid = (triton.cdiv(rows, constants["ROWS"]) * triton.cdiv(cols, constants["BLOCK"]),)
    vectors = (mean, var, gamma, beta, scale)
    kernel[grid](x, *vectors, y, rows, cols, EPSILON, *x.stride(), *y.stride(), **constants)


def launch_bias_gelu(kernel, constants, y, x, bias):
    """Launch one program per tile of ROWS x BLOCK elements; the tiles are numbered row by row."""
    rows, cols = x.shape
    grid = (triton.cdiv(rows, constants["ROWS"]) * triton.cdiv(cols, constants["BLOCK"]),)
    kernel[grid](x, bias, y, rows, cols, *x.stride(), *y.stride(), **constants)


def launch_softmax(kernel, constants, y, x):
    """Launch one program per ROWS rows; each row fits in one block."""
    rows, cols = x.shape
    check_block(constants, cols)
    grid = (triton.cdiv(rows, constants["ROWS"]),)
    kernel[grid](x, y, rows, cols, *x.stride(), *y.stride(), **constants)


def launch_long_softmax(kernel, constants, y, x):
    """Launch one program per row."""
    rows, cols = x.shape
    kernel[(rows,)](x, y, rows, cols, *x.stride(), *y.stride(), **constants)


def launch_layernorm(kernel, constants, y, x, gamma, beta):
    """Launch one program per ROWS rows; each row fits in one block."""
    rows, cols = x.shape
    check_block(constants, cols)
    grid = (triton.cdiv(rows, constants["ROWS"]),)
    kernel[grid](x, gamma, beta, y, rows, cols, EPSILON, *x.stride(), *y.stride(), **constants)


def check_block(constants, cols):
    """Refuse a block that is too small for a row."""
    if constants["BLOCK"] < cols:
        raise ValueError(
            f"a row of {cols} columns does not fit in a block of {constants['BLOCK']}: choose a larger BLOCK"
        )


def run(launch, kernel, constants, x, *vectors):
    """Launch a kernel with a fresh output like x, and return the output."""
    y = torch.full_like(x, float("nan"))
    launch(kernel, constants, y, x, *vectors)
    return y


# %% [markdown]
# ## a. Count the bytes
#
# A matrix has `rows` rows and `cols` columns, and every number in every tensor has `itemsize` bytes. **Unfused**, each
# step is one kernel: it reads each of its inputs from DRAM once and writes its output once. **Fused**, one kernel reads
# the inputs of the whole chain once and writes the final output once. Count reads and writes together.
#
# **Chain** (x is a matrix; mean, var, gamma, beta, scale are vectors of `cols` numbers):
#
# ```
# a = relu(x)
# b = gamma * (a - mean) / sqrt(var + epsilon) + beta      one step: batch normalization as used after training
# y = b * scale
# ```
#
# **Softmax** (x is a matrix; m and s have one number per row):
#
# ```
# m = maximum of each row of x
# d = x - m
# e = exp(d)
# s = sum of each row of e
# y = e / s
# ```
#
# **Layer normalization** (x is a matrix; m, v, r have one number per row; gamma and beta are vectors of `cols` numbers):
#
# ```
# m = mean of each row of x
# d = x - m
# q = d * d                    reads d once
# v = mean of each row of q
# r = 1 / sqrt(v + epsilon)
# h = d * r
# g = h * gamma
# y = g + beta
# ```
#
# Return the six counts as plain ints, exact for all sizes. Do the counting yourself: `mlsys.ops` contains such counts,
# so it is removed from the package when the lab is graded, and an answer that calls it ends in an error.
#
# <details><summary>Hint 1</summary>
# Make a table with three columns: for each step, how many numbers of matrices it reads, how many of vectors, and how
# many numbers it writes. Add up the columns. In the fused count, only the inputs of the chain and y appear.
# </details>
# <details><summary>Hint 2</summary>
# Softmax: with n = rows * cols, the step <code>d = x - m</code> reads n + rows numbers and writes n. The step
# <code>m = maximum of each row</code> reads n and writes only rows.
# </details>
# <details><summary>Hint 3</summary>
# Numbers moved, with n = rows * cols. Chain, unfused: 6 n and five vectors of cols numbers. Softmax, unfused: 2 n for
# each of the steps d, e and y, n for each of m and s, and 4 rows in all. Layer normalization: 12 n + 6 rows + 2 cols
# unfused; fused, only x, y, gamma and beta.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-traffic", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count the bytes"}
def chain_unfused_bytes(rows, cols, itemsize):
    """Return the bytes of the chain's three kernels."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("chain_unfused_bytes")
    return (6 * rows * cols + 5 * cols) * itemsize
    ### END SOLUTION


def chain_fused_bytes(rows, cols, itemsize):
    """Return the bytes of the chain as one kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("chain_fused_bytes")
    return (2 * rows * cols + 5 * cols) * itemsize
    ### END SOLUTION


def softmax_unfused_bytes(rows, cols, itemsize):
    """Return the bytes of the softmax's five kernels."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("softmax_unfused_bytes")
    return (8 * rows * cols + 4 * rows) * itemsize
    ### END SOLUTION


def softmax_fused_bytes(rows, cols, itemsize):
    """Return the bytes of the softmax as one kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("softmax_fused_bytes")
    return 2 * rows * cols * itemsize
    ### END SOLUTION


def layernorm_unfused_bytes(rows, cols, itemsize):
    """Return the bytes of the layer normalization's eight kernels."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("layernorm_unfused_bytes")
    return (12 * rows * cols + 6 * rows + 2 * cols) * itemsize
    ### END SOLUTION


def layernorm_fused_bytes(rows, cols, itemsize):
    """Return the bytes of the layer normalization as one kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("layernorm_fused_bytes")
    return (2 * rows * cols + 2 * cols) * itemsize
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
# 1 x 1, one byte each: relu reads 1 and writes 1, batch normalization reads 5 and writes 1, scale reads 2 and writes 1.
grading.assert_equal(chain_unfused_bytes(1, 1, 1), 11, what="chain_unfused_bytes(1, 1, 1)")
grading.assert_equal(chain_fused_bytes(1, 1, 1), 7, what="chain_fused_bytes(1, 1, 1)")
# 2 x 3, 2 bytes: m reads 6 and writes 2, d reads 8 and writes 6, e 6 and 6, s 6 and 2, y 8 and 6; 56 numbers.
grading.assert_equal(softmax_unfused_bytes(2, 3, 2), 112, what="softmax_unfused_bytes(2, 3, 2)")
grading.assert_equal(softmax_fused_bytes(2, 3, 2), 24, what="softmax_fused_bytes(2, 3, 2)")
# 2 x 3, 4 bytes: m 6 and 2, d 8 and 6, q 6 and 6, v 6 and 2, r 2 and 2, h 8 and 6, g 9 and 6, y 9 and 6; 90 numbers.
grading.assert_equal(layernorm_unfused_bytes(2, 3, 4), 360, what="layernorm_unfused_bytes(2, 3, 4)")
grading.assert_equal(layernorm_fused_bytes(2, 3, 4), 72, what="layernorm_fused_bytes(2, 3, 4)")
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")


def moved(steps, r, c):
    """Return the numbers moved by steps of (tensors read, tensor written) of kinds n, r and c."""
    size = {"n": r * c, "r": r, "c": c}
    return sum(sum(size[kind] for kind in read) + size[written] for read, written in steps)


STEPS = {
    "chain": [("n", "n"), ("ncccc", "n"), ("nc", "n")],
    "softmax": [("n", "r"), ("nr", "n"), ("n", "n"), ("n", "r"), ("nr", "n")],
    "layernorm": [("n", "r"), ("nr", "n"), ("n", "n"), ("n", "r"), ("r", "r"), ("nr", "n"), ("nc", "n"), ("nc", "n")],
}
ONCE = {"chain": ("nccccc", "n"), "softmax": ("n", "n"), "layernorm": ("ncc", "n")}
counted = {
    "chain": (chain_unfused_bytes, chain_fused_bytes),
    "softmax": (softmax_unfused_bytes, softmax_fused_bytes),
    "layernorm": (layernorm_unfused_bytes, layernorm_fused_bytes),
}
for width in (1, 2, 4, 8):
    r, c = draw.integer(1, 5000), draw.integer(1, 5000)
    for name, (separate, together) in counted.items():
        where = f"({r}, {c}, {width})"
        grading.assert_equal(separate(r, c, width), width * moved(STEPS[name], r, c), what=f"{name}, unfused {where}")
        grading.assert_equal(together(r, c, width), width * moved([ONCE[name]], r, c), what=f"{name}, fused {where}")
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# For large matrices the vectors hardly matter. The gain in bytes is then a ratio of small integers: passes over the
# matrix unfused, to passes fused. **If both versions moved their bytes equally fast, the gain in time would be the
# same.** Keep that in mind for the end.
#
# ## b. The chain as one kernel
#
# y = scale * (gamma * (relu(x) - mean) / sqrt(var + epsilon) + beta), where relu(x) is the larger of x and 0.
#
# The **contract**:
#
# - A program computes one tile of ROWS x BLOCK elements. The tiles are numbered row by row: with Q = `tl.cdiv(cols,
#   BLOCK)` tiles side by side, program p has tile row `p // Q` and tile column `p % Q`.
# - The kernel has exactly the arguments given below. It gives the right result for all sizes from 1 up, for tiles that
#   do not divide them, and for any strides of x and y. Vectors are contiguous. The vectors and y have the dtype of x,
#   float32 or float16.
# - The kernel calculates in float32: convert x and every vector after loading.
#
# <details><summary>Hint 1</summary>
# Start from the kernel that you have read, with two changes: the columns begin at tile column times BLOCK, and nothing
# is added up. A vector is loaded with <code>tl.load(mean_ptr + col, mask=col &lt; cols, other=0.0)</code>.
# </details>
# <details><summary>Hint 2</summary>
# <code>tl.maximum(x, 0.0)</code> is relu, and <code>tl.rsqrt(var + epsilon)</code> is 1 / sqrt(var + epsilon). A block of
# BLOCK numbers combines with one of ROWS x BLOCK as <code>mean[None, :]</code>.
# </details>
# <details><summary>Hint 3</summary>
# The work on a column's vectors is done once per tile, so combine the vectors first: <code>factor = gamma *
# tl.rsqrt(var + epsilon)</code>; then y = scale * ((relu(x) - mean) * factor + beta). Store with
# <code>.to(y_ptr.dtype.element_ty)</code> and the mask of both dimensions.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "ReLU, batch normalization, scale in one kernel"}
@triton.jit
def chain_kernel(
    x_ptr, mean_ptr, var_ptr, gamma_ptr, beta_ptr, scale_ptr, y_ptr,
    rows, cols, epsilon,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute one ROWS x BLOCK tile of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    across = tl.cdiv(cols, BLOCK)
    # 64-bit, for row * stride passes 2^31 in a matrix of more than 2^31 elements.
    row = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = (tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK))[None, :]
    in_cols = col < cols
    inside = (row < rows) & in_cols
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    var = tl.load(var_ptr + col, mask=in_cols, other=1.0).to(tl.float32)
    gamma = tl.load(gamma_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    beta = tl.load(beta_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    # Per column: y = relu(x) * factor + shift, one multiply-add per element.
    factor = gamma * tl.rsqrt(var + epsilon)
    shift = scale * (beta - mean * factor)
    y = tl.maximum(x, 0.0) * (scale * factor) + shift
    tl.store(y_ptr + row * stride_yr + col * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("chain_kernel: write it, then delete this line")
### END SOLUTION


# %% [markdown]
# The tests launch your kernel with bands of NaNs around every tensor. Without a GPU, every load and store outside a
# tensor is reported with its line, program and lane. On a GPU, a store outside damages a band and is reported, and a
# load outside brings a NaN into the result. An element that no program writes also shows up as a NaN. (Later questions
# have two more sources of NaNs: inf - inf, and inf / inf after an overflow.) Only the kernel is graded. In it you may
# use Triton's language (`tl`), arithmetic, and your own functions that are marked `@triton.jit`.

# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
draw = grading.Draws("b", DEVICE)


def check_chain(x, what, tile=(4, 32)):
    """Compare chain_kernel with the formula in float64."""
    mean, var, gamma, beta, scale = (draw.matrix(1, x.shape[1])[0].to(x.dtype) for _ in range(5))
    var = var * var
    wide = [t.double() for t in (x, mean, var, gamma, beta, scale)]
    right = wide[5] * (wide[3] * (wide[0].relu() - wide[1]) / (wide[2] + EPSILON).sqrt() + wide[4])
    constants = {"ROWS": tile[0], "BLOCK": tile[1]}
    what = f"chain_kernel, {what}: {tuple(x.shape)}, {constants}"
    inputs = [x, mean, var, gamma, beta, scale]
    grading.check_kernel(chain_kernel, constants, inputs, right.to(x.dtype), launch=launch_chain, what=what, tile=tile)


check_chain(draw.matrix(4, 32), "one tile")
check_chain(draw.matrix(8, 96), "2 x 3 tiles")
check_chain(draw.matrix(7, 50), "rows and columns ragged")
check_chain(draw.matrix(1, 3), "three numbers")
check_chain(draw.matrix(1, 100), "one row")
check_chain(draw.matrix(9, 1), "one column")
check_chain(draw.matrix(9, 40, values="negative"), "all values negative")
check_chain(draw.matrix(9, 40, layout="column"), "a transposed view")
check_chain(draw.matrix(9, 40, layout="sliced"), "a slice with gaps")
check_chain(draw.matrix(9, 40, layout="offset"), "a window in a larger matrix")
check_chain(draw.matrix(9, 140), "other tile sizes", (8, 128))
check_chain(draw.matrix(9, 40, dtype="float16"), "float16")
check_chain(draw.matrix(9, 40, dtype="float16", layout="sliced"), "float16, a slice with gaps", (16, 64))
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    wanted = (2 ** draw.integer(2, 4), 2 ** draw.integer(5, 7))
    size = draw.ragged(1, 15), draw.ragged(1, 150)
    m = draw.matrix(*size, layout=arrangement)
    check_chain(m, f"strides {m.stride()}", wanted)
m = draw.matrix(*size, dtype="float16", layout=("column", "sliced")[draw.integer(0, 1)])
check_chain(m, f"float16, strides {m.stride()}", wanted)
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. Softmax of every row
#
# y[i, j] = exp(x[i, j]) / (sum over k of exp(x[i, k]))
#
# exp(89) is more than float32 can hold. So the largest number of the row is subtracted first, which does not change the
# result: y[i, j] = exp(x[i, j] - m) / (sum over k of exp(x[i, k] - m)), with m the maximum of row i. Now the largest
# exponential is 1.
#
# The maximum of a row must be known before the first exponential, and the sum before the first division. In a fused
# kernel this costs nothing: the whole row is in registers, and going over it three times there is cheap.
#
# The **contract**:
#
# - A program computes ROWS whole rows, from row `tl.program_id(0) * ROWS` on. BLOCK is a power of two, at least cols,
#   so that a row fits in one block.
# - The result is right for all sizes from 1 up and any strides, in float32 and float16, calculated in float32. On a GPU
#   that supports bfloat16, that format is tested too. (The interpreter rounds bfloat16 wrongly.)
# - Values may be large, all negative, or minus infinity (a masked position in attention, whose result is 0). A row has
#   at least one finite number.
#
# <details><summary>Hint 1</summary>
# The elements of the block beyond the last column take part in the maximum and in the sum. Which value of
# <code>other</code> makes them harmless in both? (In a row of negative numbers, 0 would be the maximum.)
# </details>
# <details><summary>Hint 2</summary>
# <code>other=-float("inf")</code>: minus infinity is never the maximum, and exp(-inf) = 0 adds nothing to the sum. The
# steps are <code>tl.max(x, 1)</code>, subtract, <code>tl.exp</code>, <code>tl.sum(..., 1)</code>, divide.
# </details>
# <details><summary>Hint 3</summary>
# <code>e = tl.exp(x - tl.max(x, 1)[:, None])</code>; <code>y = e / tl.sum(e, 1)[:, None]</code>. A row past the end is
# all minus infinity and gives NaNs, but the mask of the store keeps them out of the result. One division per row and
# one multiplication per element are cheaper than one division per element.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "Softmax of every row"}
@triton.jit
def softmax_kernel(
    x_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ROWS rows of y per program, each in one block of BLOCK columns."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 1)[:, None])
    y = e * (1.0 / tl.sum(e, 1))[:, None]
    tl.store(y_ptr + row * stride_yr + col * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("softmax_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)


def check_softmax(x, what, rows=2):
    """Compare softmax_kernel with a softmax in float64."""
    right = torch.softmax(x.double(), 1).to(x.dtype)
    constants = {"ROWS": rows, "BLOCK": max(16, triton.next_power_of_2(x.shape[1]))}
    what = f"softmax_kernel, {what}: {tuple(x.shape)}, {constants}"
    tile = (rows, constants["BLOCK"])
    grading.check_kernel(softmax_kernel, constants, [x], right, launch=launch_softmax, what=what, tile=tile)


def masked(x):
    """Return x with minus infinity in some places, but nowhere in column 0."""
    hole = draw.matrix(*x.shape, values="positive") < 0.7  # 0.5 to 1, so two places in five
    hole[:, 0] = False
    return x.masked_fill(hole, -float("inf"))


check_softmax(draw.matrix(2, 32), "one program")
check_softmax(draw.matrix(8, 64), "four programs")
# A row past the end may become NaN; the store's mask keeps it out. So if the interpreter warns of an "invalid value
# encountered in subtract", that does no harm.
check_softmax(draw.matrix(5, 32), "rows ragged")
check_softmax(draw.matrix(4, 41), "columns ragged")
check_softmax(draw.matrix(1, 1), "a single number")
check_softmax(draw.matrix(9, 1), "one column", rows=4)
check_softmax(draw.matrix(6, 40, values="negative") - 5, "all values negative")
check_softmax(200 * draw.matrix(6, 40), "large values")
check_softmax(masked(draw.matrix(6, 40)), "places of minus infinity")
check_softmax(draw.matrix(6, 40, layout="column"), "a transposed view")
check_softmax(draw.matrix(6, 40, layout="sliced"), "a slice with gaps")
check_softmax(draw.matrix(6, 40, layout="offset"), "a window in a larger matrix", rows=8)
check_softmax(draw.matrix(6, 300, dtype="float16"), "float16", rows=4)
check_softmax(masked(draw.matrix(3, 70, dtype="float16")), "float16, places of minus infinity", rows=1)
# 3000 equal numbers: each result is 1/3000, and a float16 sum of ones stops at 2048.
check_softmax(torch.full((1, 3000), 2.0, dtype=torch.float16, device=DEVICE), "a long constant row", rows=1)
if DEVICE == "cuda" and measure.detect_device().has_bf16:
    check_softmax(draw.matrix(5, 300, dtype="bfloat16"), "bfloat16")
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    m = draw.matrix(draw.ragged(1, 15), draw.ragged(1, 200), layout=arrangement)
    m *= 300  # in place, which keeps the strides
    check_softmax(m, f"large, strides {m.stride()}", rows=2 ** draw.integer(1, 3))
check_softmax(masked(draw.matrix(3, 777).half()), "float16 with holes", rows=1)
check_softmax(torch.full((2, 3000), -7.0, dtype=torch.float16, device=DEVICE), "a long constant row", rows=1)
check_softmax(draw.matrix(3, 100, values="negative") * 1e4 - 1e5, "very negative", rows=4)
if DEVICE != "cpu" and measure.detect_device().has_bf16:
    check_softmax(draw.matrix(5, 777, dtype="bfloat16", layout="sliced"), "bfloat16, a slice with gaps")
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# ## d. Rows too long for the registers
#
# A row of 100,000 numbers does not fit in the registers of one program, so the program goes through the row in blocks.
# Done naively that takes three passes: one for the maximum, one for the sum, one for the result. So x is read from
# memory three times. The **online softmax** finds maximum and sum in *one* pass:
#
# keep the maximum m of all numbers so far, and the sum s of exp(x - m) over the same numbers. When a block brings a
# larger maximum m', the old sum was made with the wrong m. One multiplication corrects it:
#
# s' = s * exp(m - m') + (sum over the block of exp(x - m'))
#
# A second pass then writes exp(x - m) / s. In all, x is read twice. (FlashAttention is built on this formula.)
#
# The **contract**: one program computes one row, `tl.program_id(0)`. BLOCK may be smaller than cols. The values are
# those of question c. Note that **a whole block can be minus infinity** while the row is not.
#
# <details><summary>Hint 1</summary>
# Two loops over the same blocks: <code>for start in range(0, cols, BLOCK):</code>. In each, <code>col = start +
# tl.arange(0, BLOCK)</code>, and the load is masked by <code>col &lt; cols</code>. Here the block has one dimension, so
# <code>tl.max(x, 0)</code> is one number.
# </details>
# <details><summary>Hint 2</summary>
# Begin with <code>m = -float("inf")</code> and <code>s = 0.0</code>: Triton takes both as float32. (<code>s = 0</code>
# would be an int, and a variable that a loop changes must keep its type.) If the first block is all minus infinity,
# then m' is minus infinity too, and -inf - (-inf) is NaN. What can you subtract instead of m' in that case?
# </details>
# <details><summary>Hint 3</summary>
# <code>higher = tl.maximum(m, tl.max(x, 0))</code>; <code>base = tl.where(higher == -float("inf"), 0.0, higher)</code>;
# <code>s = s * tl.exp(m - base) + tl.sum(tl.exp(x - base), 0)</code>; <code>m = higher</code>. With base 0,
# exp(-inf - 0) = 0, as it should.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "Softmax of long rows"}
@triton.jit
def long_softmax_kernel(
    x_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute one row of y per program, in steps of BLOCK columns."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    row = tl.program_id(0).to(tl.int64)
    x_row, y_row = x_ptr + row * stride_xr, y_ptr + row * stride_yr
    highest = tl.full((), -float("inf"), tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + col * stride_xc, mask=col < cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(x, 0))
        # As long as everything was minus infinity, subtract 0: -inf - (-inf) would be NaN.
        base = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - base) + tl.sum(tl.exp(x - base), 0)
        highest = higher
    share = 1.0 / total
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + col * stride_xc, mask=col < cols, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - highest) * share
        tl.store(y_row + col * stride_yc, y.to(y_ptr.dtype.element_ty), mask=col < cols)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("long_softmax_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
draw = grading.Draws("d", DEVICE)


def check_long_softmax(x, what, block=32):
    """Compare long_softmax_kernel with a softmax in float64."""
    right = torch.softmax(x.double(), 1).to(x.dtype)
    what = f"long_softmax_kernel, {what}: {tuple(x.shape)}, BLOCK {block}"
    tile = (1, block)
    constants = {"BLOCK": block}
    grading.check_kernel(long_softmax_kernel, constants, [x], right, launch=launch_long_softmax, what=what, tile=tile)


check_long_softmax(draw.matrix(2, 32), "one block")
check_long_softmax(draw.matrix(3, 96), "three blocks")
check_long_softmax(draw.matrix(3, 70), "columns ragged")
check_long_softmax(draw.matrix(2, 1), "one column")
check_long_softmax(200 * draw.matrix(3, 100), "large values")
rising = torch.arange(100.0, device=DEVICE).repeat(2, 1)
check_long_softmax(rising, "a maximum that grows from block to block")
check_long_softmax(rising.flip(1), "the maximum in the first block")
hidden_start = draw.matrix(3, 100)
hidden_start[:, :40] = -float("inf")
check_long_softmax(hidden_start, "the first block is minus infinity")
check_long_softmax(draw.matrix(3, 100, layout="column"), "a transposed view")
check_long_softmax(draw.matrix(2, 100, layout="sliced"), "a slice with gaps", block=64)
check_long_softmax(draw.matrix(2, 100, layout="offset"), "a window in a larger matrix", block=128)
check_long_softmax(draw.matrix(2, 100, values="negative") * 1e4, "all values very negative", block=64)
check_long_softmax(draw.matrix(3, 100, dtype="float16"), "float16")
# 3000 equal numbers: each result is 1/3000, and a float16 sum of ones stops at 2048.
check_long_softmax(torch.full((1, 3000), 2.0, dtype=torch.float16, device=DEVICE), "a long constant row", block=512)
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    size = 2 ** draw.integer(5, 7)
    m = draw.matrix(draw.ragged(1, 3), draw.ragged(200, 300), layout=arrangement)
    m *= 100  # in place, which keeps the strides
    check_long_softmax(m, f"strides {m.stride()}", size)
    m[:, size : 3 * size] = -float("inf")
    check_long_softmax(m, f"blocks of minus infinity, strides {m.stride()}", size)
check_long_softmax(torch.full((2, 3000), 5.0, dtype=torch.float16, device=DEVICE), "a long constant row", 512)
check_long_softmax(draw.matrix(2, 200, values="negative") * 1e4, "very negative", 64)
m = draw.matrix(2, draw.ragged(100, 200), dtype="float16", layout="sliced")
check_long_softmax(m, f"float16, strides {m.stride()}", 64)
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# ## e. Layer normalization of every row
#
# With the mean m and the variance v of row i (v is the mean of (x - m)^2):
#
# y[i, j] = gamma[j] * (x[i, j] - m) / sqrt(v + epsilon) + beta[j]
#
# Two mistakes are more common here than all others. The first is about the block's elements beyond the last column.
# They count as 0 in the first sum, which is harmless. But after the mean is subtracted they are -m, and their squares
# are added to the variance. The second is a sum in float16: 1000 numbers near 100 add up to more than float16 can hold.
#
# The **contract**: each program computes ROWS whole rows, and BLOCK is at least cols, as in question c. The result is
# right for all sizes from 1 up and any strides of x and y, in float32 and float16, calculated in float32. A row may be
# constant: then v = 0 and y = beta. On a GPU that supports bfloat16, that format is tested too.
#
# No formula is right for all numbers. The mean is rounded, and its rounding error is part of every x - m. In the result
# this error is divided by the spread, or, where v is 0, multiplied by 1 / sqrt(epsilon) = 316. In the tests, the mean
# is at most about 100 times the spread, and constant rows have a mean that is nearly exact. (For harder cases, you
# would subtract the mean of x - m as well.)
#
# <details><summary>Hint 1</summary>
# The mean divides by cols, not by BLOCK. Do not use v = mean(x^2) - m^2: for numbers near 100 with a spread of 1, this
# is a small difference of two large numbers, and few of its digits are right.
# </details>
# <details><summary>Hint 2</summary>
# <code>d = tl.where(col[None, :] &lt; cols, x - m[:, None], 0.0)</code> sets the elements beyond the edge to 0 again,
# so that <code>tl.sum(d * d, 1) / cols</code> is the variance.
# </details>
# <details><summary>Hint 3</summary>
# Load x with <code>other=0.0</code> (question c has minus infinity there), and load gamma and beta like the vectors of
# question b. <code>m = tl.sum(x, 1) / cols</code>; d as in hint 2; <code>r = tl.rsqrt(tl.sum(d * d, 1) / cols +
# epsilon)</code>; <code>y = d * r[:, None] * gamma[None, :] + beta[None, :]</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "Layer normalization of every row"}
@triton.jit
def layernorm_kernel(
    x_ptr, gamma_ptr, beta_ptr, y_ptr,
    rows, cols, epsilon,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ROWS rows of y per program, each in one block of BLOCK columns."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    in_cols = col < cols
    inside = (row < rows) & in_cols
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0).to(tl.float32)
    gamma = tl.load(gamma_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    beta = tl.load(beta_ptr + col, mask=in_cols, other=0.0).to(tl.float32)
    mean = tl.sum(x, 1) / cols
    centred = tl.where(in_cols, x - mean[:, None], 0.0)
    variance = tl.sum(centred * centred, 1) / cols
    y = centred * tl.rsqrt(variance + epsilon)[:, None] * gamma + beta
    tl.store(y_ptr + row * stride_yr + col * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("layernorm_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
draw = grading.Draws("e", DEVICE)


def check_layernorm(x, what, rows=2, plain=False):
    """Compare layernorm_kernel with a layer normalization in float64; plain: gamma is 1 and beta 0."""
    gamma, beta = (draw.matrix(1, x.shape[1])[0].to(x.dtype) for _ in range(2))
    if plain:
        gamma, beta = torch.ones_like(gamma), torch.zeros_like(beta)
    wide = x.double()
    deviation = wide - wide.mean(1, keepdim=True)
    right = deviation / (deviation.square().mean(1, keepdim=True) + EPSILON).sqrt() * gamma.double() + beta.double()
    constants = {"ROWS": rows, "BLOCK": max(16, triton.next_power_of_2(x.shape[1]))}
    what = f"layernorm_kernel, {what}: {tuple(x.shape)}, {constants}"
    tile = (rows, constants["BLOCK"])
    inputs = [x, gamma, beta]
    grading.check_kernel(
        layernorm_kernel, constants, inputs, right.to(x.dtype), launch=launch_layernorm, what=what, tile=tile
    )


def near_100(height, width):
    """Return multiples of 1/16 near 100, so that float32 adds up a row without rounding, in any order."""
    return (16 * draw.matrix(height, width)).round() / 16 + 100


check_layernorm(draw.matrix(2, 32), "one program")
check_layernorm(draw.matrix(8, 64), "four programs")
check_layernorm(draw.matrix(5, 32), "rows ragged")
check_layernorm(draw.matrix(4, 41) + 3, "columns ragged")
check_layernorm(draw.matrix(1, 2, values="climbing"), "two numbers", plain=True)
check_layernorm(draw.matrix(9, 1), "one column", rows=4)
check_layernorm(torch.full((3, 40), 0.001, device=DEVICE), "constant rows")
check_layernorm(draw.matrix(6, 40, values="negative"), "all values negative")
check_layernorm(draw.matrix(6, 40, layout="column"), "a transposed view")
check_layernorm(draw.matrix(6, 40, layout="sliced"), "a slice with gaps")
check_layernorm(draw.matrix(6, 40, layout="offset"), "a window in a larger matrix", rows=8)
check_layernorm(near_100(4, 256), "numbers near 100", plain=True)
check_layernorm(draw.matrix(6, 300, dtype="float16"), "float16", rows=4)
# Their sum is some 100,000, more than float16 holds.
check_layernorm((draw.matrix(2, 1000) + 100).half(), "float16 numbers near 100", rows=1)
if DEVICE == "cuda" and measure.detect_device().has_bf16:
    check_layernorm(draw.matrix(5, 300, dtype="bfloat16") + 100, "bfloat16 numbers near 100")
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    m = draw.matrix(draw.ragged(1, 15), draw.ragged(10, 200), layout=arrangement)
    m -= 2  # in place, which keeps the strides
    check_layernorm(m, f"strides {m.stride()}", rows=2 ** draw.integer(1, 3))
m = draw.matrix(draw.ragged(1, 15), draw.ragged(10, 200), dtype="float16", layout="sliced")
m += 2
check_layernorm(m, f"float16, strides {m.stride()}", rows=2 ** draw.integer(1, 3))
check_layernorm((draw.matrix(3, 1000) + 100).half(), "float16 numbers near 100", rows=1)
check_layernorm(near_100(12, 512), "numbers near 100", rows=4, plain=True)
check_layernorm(torch.full((3, 777), -3.0, dtype=torch.float16, device=DEVICE), "constant rows in float16", rows=4)
if DEVICE != "cpu" and measure.detect_device().has_bf16:
    m = draw.matrix(5, 777, dtype="bfloat16", layout="sliced")
    m -= 100
    check_layernorm(m, f"bfloat16 numbers near -100, strides {m.stride()}")
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# ## f. Bias and GELU
#
# GELU is the smooth cousin of ReLU that most transformers use: gelu(v) = v * P(v), where P(v) = (1 + erf(v / sqrt 2)) / 2
# is the probability that a normal random number is less than v. Here v = x + bias, with one bias per column.
#
# The **contract** is that of question b: tiles of ROWS x BLOCK, numbered row by row, any strides, float32 or float16,
# calculated in float32. The test compares with the formula above. The common approximation by tanh is too inaccurate
# for the test in float32.
#
# <details><summary>Hint 1</summary>
# Copy your kernel from question b, and change what it calculates.
# </details>
# <details><summary>Hint 2</summary>
# erf is <code>tl.erf</code>, and 1 / sqrt 2 is 0.7071067811865476.
# </details>
# <details><summary>Hint 3</summary>
# <code>v = x + bias[None, :]</code>; <code>y = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "f-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup"], "title": "Bias and GELU"}
@triton.jit
def bias_gelu_kernel(
    x_ptr, bias_ptr, y_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_yr, stride_yc,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute one ROWS x BLOCK tile of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    across = tl.cdiv(cols, BLOCK)
    row = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = (tl.program_id(0) % across * BLOCK + tl.arange(0, BLOCK))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0).to(tl.float32)
    v = x + tl.load(bias_ptr + col, mask=col < cols, other=0.0).to(tl.float32)
    # tl.erf takes so many instructions that arithmetic, not memory, is the limit. With t = |v| and P(-t) the tail of
    # the normal distribution, gelu(v) = relu(v) - t P(-t), and log2 P(-t) is nearly a parabola: this polynomial, fitted
    # on 0 <= t <= 6, gives t P(-t) to 1e-7 in float32. Beyond 6 the tail is less than 1e-8.
    t = tl.minimum(tl.abs(v), 6.0)
    tail = 3.309397075523801e-05
    tail = tail * t - 7.692297525885294e-04
    tail = tail * t + 8.080749140700616e-03
    tail = tail * t - 5.341215376250197e-02
    tail = tail * t - 4.587709370745757e-01
    tail = tail * t - 1.1512017136655655
    tail = tail * t - 9.999930598098795e-01
    y = tl.maximum(v, 0.0) - t * tl.exp2(tail)
    tl.store(y_ptr + row * stride_yr + col * stride_yc, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("bias_gelu_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup"]}
draw = grading.Draws("f", DEVICE)


def check_bias_gelu(x, what, tile=(4, 32)):
    """Compare bias_gelu_kernel with the formula in float64."""
    bias = draw.matrix(1, x.shape[1])[0].to(x.dtype)
    v = x.double() + bias.double()
    right = 0.5 * v * (1 + torch.erf(v / 2**0.5))
    constants = {"ROWS": tile[0], "BLOCK": tile[1]}
    what = f"bias_gelu_kernel, {what}: {tuple(x.shape)}, {constants}"
    inputs = [x, bias]
    grading.check_kernel(
        bias_gelu_kernel, constants, inputs, right.to(x.dtype), launch=launch_bias_gelu, what=what, tile=tile
    )


check_bias_gelu(draw.matrix(4, 32), "one tile")
check_bias_gelu(draw.matrix(8, 96), "2 x 3 tiles")
check_bias_gelu(draw.matrix(7, 50), "rows and columns ragged")
check_bias_gelu(draw.matrix(1, 3), "three numbers")
check_bias_gelu(3 * draw.matrix(9, 40), "larger values")
check_bias_gelu(draw.matrix(9, 40, values="negative"), "all values negative")
check_bias_gelu(draw.matrix(9, 40, layout="column"), "a transposed view")
check_bias_gelu(draw.matrix(5, 40, layout="sliced"), "a slice with gaps", (8, 64))
check_bias_gelu(draw.matrix(5, 140, layout="offset"), "a window in a larger matrix", (8, 128))
check_bias_gelu(draw.matrix(9, 40, dtype="float16"), "float16")
check_bias_gelu(50 * draw.matrix(5, 40, dtype="float16"), "float16, large values", (8, 64))
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    wanted = (2 ** draw.integer(2, 4), 2 ** draw.integer(5, 7))
    size = draw.ragged(1, 15), draw.ragged(1, 150)
    m = draw.matrix(*size, layout=arrangement)
    m *= 2  # in place, which keeps the strides
    check_bias_gelu(m, f"strides {m.stride()}", wanted)
m = draw.matrix(*size, dtype="float16", layout=("column", "sliced")[draw.integer(0, 1)])
m *= 50
check_bias_gelu(m, f"float16, large values, strides {m.stride()}", wanted)
### END HIDDEN TESTS
scorecard.passed("f")

# %% [markdown]
# **Do your kernels compile for a GPU?** The interpreter accepts some things that the compiler refuses, such as a
# variable that is an int before a loop and a float in the loop. The next cell compiles your kernels of questions b to f
# for a T4. It needs no GPU and runs for about ten seconds. If a kernel does not compile, the cell ends with an error
# whose last lines say where and why.

# %%
matrix, vector = (torch.empty(shape, dtype=torch.float16, device="meta") for shape in ((100, 4096), 4096))
for kernel, launch, constants, vectors in (
    (chain_kernel, launch_chain, {"ROWS": 4, "BLOCK": 256}, 5),
    (softmax_kernel, launch_softmax, {"ROWS": 1, "BLOCK": 4096}, 0),
    (long_softmax_kernel, launch_long_softmax, {"BLOCK": 1024}, 0),
    (layernorm_kernel, launch_layernorm, {"ROWS": 1, "BLOCK": 4096}, 2),
    (bias_gelu_kernel, launch_bias_gelu, {"ROWS": 4, "BLOCK": 256}, 1),
):
    compiler_report(kernel, [constants], matrix, matrix, *[vector] * vectors, launch=launch, capabilities=[75])
    print(f"{kernel.fn.__name__} compiles")

# %% [markdown]
# ## g. Choose rows, columns and warps by arithmetic
#
# Your kernels are right for any ROWS and warps. How fast they are depends on both:
#
# - **Registers.** Each thread holds ROWS * BLOCK / (32 * num_warps) numbers of the block, and needs more registers for
#   the results, for addresses and for vectors. A thread has at most 255. If that is not enough, the compiler
#   **spills**: it stores values in *local memory*, which despite its name is a part of DRAM behind the caches, and
#   loads them again. Your count of bytes does not include this traffic. A multiprocessor has 65,536 registers for all
#   its threads. If each thread uses many, few threads fit, and fewer of them can wait for memory at the same time. (A
#   program of 32 warps has 1024 threads, so each can have at most 64 registers.)
# - **Wide accesses.** A thread loads 16 bytes at once if it holds enough neighboring numbers: 4 in float32, 8 in
#   float16. If it holds fewer, for example because many warps share a row, moving the same bytes needs more
#   instructions.
# - **Reductions.** Each warp reduces its own numbers. Then the warps that share a row exchange their results through
#   **shared memory**, a small memory on the chip, and all of them wait for the slowest.
# - **Short rows.** A row of 100 numbers is too little work for a whole program.
#
# Write `row_config((rows, cols), dtype)` for softmax and layer normalization; dtype is `"fp32"`, `"fp16"` or `"bf16"`
# (4, 2 and 2 bytes). It returns a dict of three ints, `ROWS`, `BLOCK` and `num_warps`, such that for up to 16,384 columns
#
# 1. BLOCK is the least power of two that is at least cols, and at least 16; ROWS is a power of two; num_warps is 1, 2, 4,
#    8, 16 or 32;
# 2. a thread holds at most 32 numbers of the block;
# 3. a thread holds at least 16 bytes of the block;
# 4. if the matrix has 1000 rows or more, a program has at least 1024 numbers in its block.
#
# <details><summary>Hint 1</summary>
# BLOCK follows from cols. Then choose ROWS for rule 4, and last num_warps for rules 2 and 3:
# <code>triton.next_power_of_2</code> and <code>max</code> are all you need. A block of 16 numbers is too small for rule
# 3 on one warp of 32 threads; give the program more rows.
# </details>
# <details><summary>Hint 2</summary>
# <code>ROWS = max(1, 1024 // BLOCK)</code> gives at least 1024 numbers, whatever the number of rows: rows past the end
# are masked. With 32 numbers per thread, a warp holds 1024.
# </details>
# <details><summary>Hint 3</summary>
# <code>num_warps = ROWS * BLOCK // 1024</code> gives each thread exactly 32 numbers. Two rows per program make layer
# normalization a little faster up to BLOCK = 8192, because the two rows share gamma and beta. In softmax they have
# nothing to share.
# </details>


# %% nbgrader={"grade": false, "grade_id": "g-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup"], "title": "Choose rows and warps by arithmetic"}
def row_config(shape, dtype):
    """Return rows per program, block and warps for softmax_kernel and layernorm_kernel."""
    cols = shape[1]
    ### BEGIN SOLUTION
    #: raise NotImplementedError("row_config")
    block = max(16, triton.next_power_of_2(cols))
    # 32 numbers per thread. Two rows share gamma and beta, and have more loads under way, up to 16384 numbers together.
    tile_rows = max(2048 // block, min(2, 16384 // block), 1)
    return {"ROWS": tile_rows, "BLOCK": block, "num_warps": max(1, tile_rows * block // 1024)}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "g-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "test", "needs": ["setup"]}
def check_config(shape, dtype):
    """Check row_config(shape, dtype) against the four rules."""
    chosen = row_config(shape, dtype)
    what = f"row_config({shape}, {dtype!r}) = {chosen}"
    names = ("ROWS", "BLOCK", "num_warps")
    assert isinstance(chosen, dict), f"{what}: return a dict"
    assert sorted(chosen) == sorted(names), f"{what}: the keys must be {names}"
    for name in names:
        assert type(chosen[name]) is int, f"{what}: {name} must be an int"
    tile_rows, block, num_warps = (chosen[name] for name in names)
    powers = [2**power for power in range(16)]
    assert block in powers[4:], f"{what}: rule 1, BLOCK must be 16, 32, 64, ..."
    assert block >= shape[1], f"{what}: rule 1, BLOCK is less than {shape[1]} columns"
    assert block == 16 or block // 2 < shape[1], f"{what}: rule 1, half of BLOCK would hold {shape[1]} columns"
    assert tile_rows in powers, f"{what}: rule 1, ROWS must be a power of two"
    assert num_warps in powers[:6], f"{what}: rule 1, num_warps must be 1, 2, 4, 8, 16 or 32"
    numbers = tile_rows * block / (32 * num_warps)
    assert numbers <= 32, f"{what}: rule 2, a thread holds {numbers:g} numbers"
    wide = numbers * {"fp32": 4, "fp16": 2, "bf16": 2}[dtype]
    assert wide >= 16, f"{what}: rule 3, a thread holds {wide:g} bytes"
    if shape[0] >= 1000:
        assert tile_rows * block >= 1024, f"{what}: rule 4, a program has {tile_rows * block} numbers"


check_config((65536, 4096), "fp16")
check_config((65536, 100), "fp32")
check_config((1000, 16384), "bf16")
check_config((5000, 1), "fp32")
### BEGIN HIDDEN TESTS
draw = grading.Draws("g")
for kind in ("bf16", "fp16", "fp32"):
    for most in (20, 300, 2000, 9000, 16384):
        check_config((draw.integer(1, 100_000), draw.integer(1, most)), kind)
### END HIDDEN TESTS
scorecard.passed("g")

# %% [markdown]
# **What the compiler says.** In the last step of compiling, NVIDIA's assembler writes the machine code and reports what
# the kernel needs: registers per thread, bytes that each thread spills (only the stores; the loads come on top), and
# shared memory per program. Predict first: you have sealed a number of registers for two rows of 4096 numbers on 8
# warps. What changes with 4, 2 or 1 warps? The next cell compiles your own layer normalization with fewer and fewer
# warps, for a T4 (the compiler calls its generation of GPUs sm_75) and for an H100 (sm_90). It needs no GPU and runs
# for a few seconds.

# %%
rows_of_4096, vector_of_4096 = (torch.empty(shape, dtype=torch.float16, device="meta") for shape in ((100, 4096), 4096))
tensors = (rows_of_4096, rows_of_4096, vector_of_4096, vector_of_4096)  # y, x, gamma, beta
configs = [{"ROWS": 2, "BLOCK": 4096, "num_warps": warps} for warps in (8, 4, 2, 1)]
reports = compiler_report(layernorm_kernel, configs, *tensors, launch=launch_layernorm, capabilities=[75, 90])
for report in reports:
    print(report)

# %% [markdown]
# **Say why.** (Another version of the compiler may report different registers and spills for the same kernel; explain
# the ones that you see.) Answer in three to six sentences. How many numbers of the block does a thread hold in each
# line of the report, and how many registers does it get? At which of these numbers per thread does your kernel first
# spill, and where do spilled values go? Why not use as many warps as possible, so that every thread needs few
# registers? A person reads your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "g-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g-why", "role": "written", "needs": ["setup"], "title": "Registers and spills"}
# ### BEGIN SOLUTION
# #: *Your answer*
# With 8 warps a thread holds 2 * 4096 / 256 = 32 numbers and gets about 70 registers: 32 for the numbers, the rest for
# gamma, beta, addresses and results on their way. With 4 warps it holds 64 numbers and gets about twice as many
# registers; with 2 warps it holds 128 numbers and gets nearly all of the 255, or all of them and some values spill;
# with 1 warp it holds 256 numbers, more than a thread has registers, so it must spill. Spilled values go to local
# memory, which is in device memory behind the caches. That traffic is not in the count of bytes. More warps than needed
# leave each thread less than 16 bytes per load, and the reductions along a row must wait for more warps.
# ### END SOLUTION

# %% [markdown]
# ## h. The race: softmax (GPU)
#
# `grading.speed` runs your kernel with your `row_config` and compares every element with the library's result. Then it
# times the two in turn, for several rounds: yours, the library's, the library's, yours. A GPU that warms up or slows
# down then does so for both. Here the comparison is with PyTorch. When the lab is graded, your kernel runs against a
# plain Triton kernel that the lab's authors wrote, on the same GPU, in the same run. You get all the points from 0.8 of
# that kernel's speed on, none below 0.1, and a share in between. PyTorch is the easier opponent; the table at the end
# of the lab gives your share of a copy's speed, which tells you how close you are to what the memory allows. Grading
# also compares results in bfloat16 if the GPU supports it.
#
# Without a GPU the cell compiles your kernel with your config, says what it needs, and ends with `NeedsGpu`; the
# points stay open until you run it on one.
#
# To go faster, change one thing at a time, and predict its effect before you run it. These things matter, the most
# important first: the matrix is read once and written once (nothing goes back to memory between the steps); a thread's
# accesses are wide and the thread does not spill (question g); short rows share a program; there is one division per
# row, not one per element.


# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(4096, 4096), (8192, 1000)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None
TORCH_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def softmax_inputs(draw, shape, dtype):
    """Return a random matrix."""
    return (draw.matrix(*shape, dtype=TORCH_DTYPES[dtype]),)


def layernorm_inputs(draw, shape, dtype):
    """Return a random matrix, gamma and beta."""
    vectors = (draw.matrix(1, shape[1], dtype=TORCH_DTYPES[dtype])[0] for _ in range(2))
    return (draw.matrix(*shape, dtype=TORCH_DTYPES[dtype]), *vectors)


def layernorm_inputs_near_100(draw, shape, dtype):
    """Return the same with numbers near 100 in the matrix: there a mean rounded to 16 bits is off by up to a quarter."""
    x, gamma, beta = layernorm_inputs(draw, shape, dtype)
    return x + 100, gamma, beta


def right_softmax(x):
    """Return the library's softmax."""
    return torch.softmax(x, 1)


def right_layernorm(x, gamma, beta):
    """Return the library's layer normalization."""
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, EPSILON)


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "h-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "h", "role": "speed", "needs": ["setup", "c", "g"], "device": "gpu", "title": "The race: softmax"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_softmax(
    in_ptr, out_ptr, height, width, in_step, in_one, out_step, out_one, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip # the kernel that a student's is raced against
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    there = (i < height) & (j < width)
    value = tl.load(in_ptr + i * in_step + j * in_one, mask=there, other=-float("inf")).to(tl.float32)
    power = tl.exp(value - tl.max(value, 1)[:, None])
    result = power * (1.0 / tl.sum(power, 1))[:, None]
    tl.store(out_ptr + i * out_step + j * out_one, result.to(out_ptr.dtype.element_ty), mask=there)


def reference_rows(shape, dtype):
    size = max(16, triton.next_power_of_2(shape[1]))
    several = max(2048 // size, min(2, 16384 // size), 1)
    return {"ROWS": several, "BLOCK": size, "num_warps": max(1, several * size // 1024)}


rival = (reference_softmax, reference_rows)
### END HIDDEN TESTS
softmax_race = grading.speed(
    softmax_kernel,
    row_config,
    shapes=RACES,
    inputs=softmax_inputs,
    launch=launch_softmax,
    expected=right_softmax,
    reference=rival,
)
### BEGIN HIDDEN TESTS
from contextlib import suppress

task = {"inputs": softmax_inputs, "launch": launch_softmax, "expected": right_softmax}
with suppress(grading.NeedsGpu):  # a GPU without bf16
    grading.speed(softmax_kernel, row_config, shapes=[(301, 777)], dtype="bf16", capability=(8, 0), **task)
### END HIDDEN TESTS
scorecard.passed("h", softmax_race.fraction)
softmax_race

# %% [markdown]
# ## i. The race: layer normalization (GPU)
#
# The same for `layernorm_kernel`. Here every program reads gamma and beta too. They come from the L2 cache, not from
# DRAM, but each read still costs time. With two rows per program they are read half as often, and if you place their
# loads before the first reduction, they arrive while it runs.


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "i-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "i", "role": "speed", "needs": ["setup", "e", "g"], "device": "gpu", "title": "The race: layer normalization"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_layernorm(
    in_ptr, weight_ptr, bias_ptr, out_ptr, height, width, small, in_step, in_one,
    out_step, out_one, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    j = tl.arange(0, BLOCK)[None, :]
    real = j < width
    value = tl.load(in_ptr + i * in_step + j * in_one, mask=(i < height) & real, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + j, mask=real, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + j, mask=real, other=0.0).to(tl.float32)
    off = tl.where(real, value - (tl.sum(value, 1) / width)[:, None], 0.0)
    result = off * tl.rsqrt(tl.sum(off * off, 1) / width + small)[:, None] * weight + bias
    tl.store(out_ptr + i * out_step + j * out_one, result.to(out_ptr.dtype.element_ty), mask=(i < height) & real)


def reference_rows(shape, dtype):
    size = max(16, triton.next_power_of_2(shape[1]))
    several = max(2048 // size, min(2, 16384 // size), 1)
    return {"ROWS": several, "BLOCK": size, "num_warps": max(1, several * size // 1024)}


rival = (reference_layernorm, reference_rows)
### END HIDDEN TESTS
layernorm_race = grading.speed(
    layernorm_kernel,
    row_config,
    shapes=RACES,
    inputs=layernorm_inputs,
    launch=launch_layernorm,
    expected=right_layernorm,
    reference=rival,
)
### BEGIN HIDDEN TESTS
from contextlib import suppress

task = {"inputs": layernorm_inputs_near_100, "launch": launch_layernorm, "expected": right_layernorm}
with suppress(grading.NeedsGpu):  # a GPU without bf16
    grading.speed(layernorm_kernel, row_config, shapes=[(301, 777)], dtype="bf16", capability=(8, 0), **task)
### END HIDDEN TESTS
scorecard.passed("i", layernorm_race.fraction)
layernorm_race

# %% [markdown]
# ## Challenge: layer normalization backward
#
# In training, the gradient dy of y comes back, and the kernel must compute three gradients. With h = (x - m) r, where r
# = 1 / sqrt(v + epsilon), and w = gamma dy (all per row i):
#
# - dx = r (w - mean(w) - h mean(w h)), where the two means are taken along the row;
# - dgamma[j] = sum over all rows i of dy[i, j] h[i, j];
# - dbeta[j] = sum over all rows i of dy[i, j].
#
# dx reduces along rows, dgamma and dbeta along columns. Unfused, x and dy are read several times. Fused, each is read
# once: a program works through many rows, one after the other, writes their dx, and keeps *its own* sums for dgamma and
# dbeta in registers. At the end it writes its sums to its row of `partial`, and the lab's function adds up these few
# rows. (If all programs added to one common vector, they would wait for each other, and the result would depend on
# their order.)
#
# The compulsory traffic is three passes over the matrix: x and dy in, dx out. The means m and the factors r come from
# the forward pass, in float32.
#
# The **contract**:
#
# - The grid has P programs. Program p handles rows p, p + P, p + 2 P, ...: `for row in range(tl.program_id(0), rows,
#   tl.num_programs(0))`.
# - BLOCK is at least cols: a row is one block.
# - `partial_ptr` is the address of `partial = torch.empty((2, P, cols), dtype=torch.float32)`. Program p writes its
#   sums for dgamma to `partial[0, p]` and its sums for dbeta to `partial[1, p]`, even if it had no rows.
# - `STAGES` is for speed, which no question measures here: write the loop as `for row in tl.range(tl.program_id(0),
#   rows, tl.num_programs(0), num_stages=STAGES)`, and Triton may load the next rows while it works on the current one.
#   How much time that saves depends on how many other programs the multiprocessor can work on in the meantime. It does
#   not change the result.
# - x, dy and dx have any strides and are float32 or float16; the kernel calculates in float32.
#
# <details><summary>Hint 1</summary>
# Before the loop: load gamma; two blocks of zeros, <code>tl.zeros((BLOCK,), tl.float32)</code>. In the loop: load x, dy and
# the row's m and r (<code>tl.load(mean_ptr + row)</code>); calculate h, w and dx; store dx; add to the two blocks. After
# the loop: store the two blocks.
# </details>
# <details><summary>Hint 2</summary>
# Beyond the last column x counts as 0, so h there is -m r. This does no harm where h is multiplied by w, because w is 0
# there: gamma and dy were loaded with <code>other=0.0</code>. The means divide by cols.
# </details>
# <details><summary>Hint 3</summary>
# <code>c1 = tl.sum(w * h, 0) / cols</code>; <code>c2 = tl.sum(w, 0) / cols</code>; <code>dx = r * (w - c2 - h * c1)</code>;
# <code>dgamma += dy * h</code>; <code>dbeta += dy</code>. <code>partial[0, p]</code> begins at <code>partial_ptr + p *
# cols</code>, and <code>partial[1, p]</code> at <code>partial_ptr + (tl.num_programs(0) + p) * cols</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_backward(kernel, constants, dx, x, gamma, mean, r, dy):
    """Write dx, and return the sums of all programs: a row for dgamma and one for dbeta."""
    rows, cols = x.shape
    check_block(constants, cols)
    kept = {name: value for name, value in constants.items() if name != "PROGRAMS"}
    partial = torch.empty((2, constants["PROGRAMS"], cols), dtype=torch.float32, device=x.device)
    strides = (*x.stride(), *dy.stride(), *dx.stride())
    kernel[(constants["PROGRAMS"],)](x, gamma, mean, r, dy, dx, partial, rows, cols, *strides, **kept)
    return partial.sum(1)


def launch_column_gradients(kernel, constants, sums, x, gamma, mean, r, dy):
    """Launch the same kernel, and keep its dgamma and dbeta."""
    sums.copy_(launch_backward(kernel, constants, torch.empty_like(x), x, gamma, mean, r, dy))


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: layer normalization backward"}
@triton.jit
def layernorm_backward_kernel(
    x_ptr, gamma_ptr, mean_ptr, r_ptr, dy_ptr, dx_ptr, partial_ptr,
    rows, cols,
    stride_xr, stride_xc, stride_dyr, stride_dyc, stride_dxr, stride_dxc,
    BLOCK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Write rows p, p + P, ... of dx, and the sums of program p for dgamma and dbeta to partial[:, p]."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    program = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    inside = col < cols
    gamma = tl.load(gamma_ptr + col, mask=inside, other=0.0).to(tl.float32)
    dgamma = tl.zeros((BLOCK,), tl.float32)
    dbeta = tl.zeros((BLOCK,), tl.float32)
    for row in tl.range(program, rows, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride_dyr + col * stride_dyc, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + row)
        h = (x - tl.load(mean_ptr + row)) * r
        w = gamma * dy  # 0 beyond the last column, where h is not
        mean_wh = tl.sum(w * h, 0) / cols
        mean_w = tl.sum(w, 0) / cols
        dx = r * (w - mean_w - h * mean_wh)
        tl.store(dx_ptr + row * stride_dxr + col * stride_dxc, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dgamma += dy * h
        dbeta += dy
    out = partial_ptr + program * cols + col
    tl.store(out, dgamma, mask=inside)
    tl.store(out + tl.num_programs(0) * cols, dbeta, mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("layernorm_backward_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
draw = grading.Draws("challenge", DEVICE)


def check_backward(x, dy, what, programs=3):
    """Compare layernorm_backward_kernel with the formulas in float64."""
    gamma = draw.matrix(1, x.shape[1])[0].to(x.dtype)
    wide = x.double()
    mean = wide.mean(1, keepdim=True)
    r = 1 / ((wide - mean).square().mean(1, keepdim=True) + EPSILON).sqrt()
    mean, r = mean.float(), r.float()  # as the forward pass keeps them
    h = (wide - mean.double()) * r.double()
    w = gamma.double() * dy.double()
    dx = r.double() * (w - w.mean(1, keepdim=True) - h * (w * h).mean(1, keepdim=True))
    sums = torch.stack([(dy.double() * h).sum(0), dy.double().sum(0)]).float()
    block = max(16, triton.next_power_of_2(x.shape[1]))
    constants = {"PROGRAMS": programs, "BLOCK": block, "STAGES": 1}
    inputs = [x, gamma, mean[:, 0].contiguous(), r[:, 0].contiguous(), dy]
    about = f"{what}: {tuple(x.shape)}, {constants}"
    right = dx.to(x.dtype)
    kernel = layernorm_backward_kernel
    grading.check_kernel(kernel, constants, inputs, right, launch=launch_backward, what=f"dx, {about}", tile=(1, block))
    about = f"dgamma (row 0) and dbeta (row 1), {about}"
    grading.check_kernel(kernel, constants, inputs, sums, launch=launch_column_gradients, what=about)


check_backward(draw.matrix(1, 32), draw.matrix(1, 32), "one row", programs=1)
check_backward(draw.matrix(6, 32), draw.matrix(6, 32), "two rows per program")
check_backward(draw.matrix(7, 41) + 3, draw.matrix(7, 41), "rows and columns ragged")
check_backward(draw.matrix(2, 32), draw.matrix(2, 32), "a program without rows")
check_backward(draw.matrix(7, 41, layout="column"), draw.matrix(7, 41, layout="sliced"), "strided views")
check_backward(draw.matrix(3, 150, layout="sliced"), draw.matrix(3, 150, layout="offset"), "other strided views")
check_backward(draw.matrix(7, 41, dtype="float16"), draw.matrix(7, 41, dtype="float16"), "float16")
### BEGIN HIDDEN TESTS
for arrangement in ("row", "sliced"):
    height, width = draw.ragged(3, 12), draw.ragged(10, 200)
    m = draw.matrix(height, width, layout=arrangement)
    m -= 2  # in place, which keeps the strides
    back = draw.matrix(height, width, layout="offset")
    check_backward(m, back, f"strides {m.stride()}", programs=draw.integer(1, 7))
m = draw.matrix(height, width, dtype="float16", layout="column")
m += 1
back = draw.matrix(height, width, dtype="float16", layout="sliced")
check_backward(m, back, f"float16, strides {m.stride()}", programs=draw.integer(1, 7))
### END HIDDEN TESTS
scorecard.passed("challenge")

# %%
# Does it compile for a GPU, too?
mean_or_r = torch.empty(100, dtype=torch.float32, device="meta")
arguments = (matrix, matrix, vector, mean_or_r, mean_or_r, matrix)  # dx, x, gamma, mean, r, dy
constants = {"PROGRAMS": 80, "BLOCK": 4096, "STAGES": 2}
compiler_report(layernorm_backward_kernel, [constants], *arguments, launch=launch_backward, capabilities=[75])
print("layernorm_backward_kernel compiles")

# %% [markdown]
# ## Gap: why do prediction and measurement differ?
#
# The prediction is always the same: the bytes from question a, divided by the bandwidth of a plain copy. Here are four
# cases in which it is far off, measured on an H200 (copy: 4243 GB/s; torch 2.11, Triton 3.6; times in microseconds,
# numbers of 2 bytes):

# %%
GB_PER_S = 4243


def predicted_us(moved_bytes):
    return moved_bytes / GB_PER_S / 1e3


# 1. The fused chain on a small matrix. The launch is not counted, because the GPU itself replays the kernel.
print(f"case 1, chain, 128 x 4096: predicted {predicted_us(chain_fused_bytes(128, 4096, 2)):.1f}, measured 1.9")
# 2. Bias and GELU written with tl.erf: about 40 instructions per element.
print(f"case 2, bias + GELU, 65536 x 4096: predicted {predicted_us((2 * 65536 + 1) * 4096 * 2):.0f}, measured 386")
# 3. Softmax of rows of 16384 numbers. With 16 warps it takes 273 us; with one warp:
moved_bytes = softmax_fused_bytes(16384, 16384, 2)
print(f"case 3, softmax on one warp, 16384 x 16384: predicted {predicted_us(moved_bytes):.0f}, measured 1687")
# 4. Softmax as five operations of PyTorch and as one kernel: how many times faster is the kernel?
gain = softmax_unfused_bytes(65536, 4096, 2) / softmax_fused_bytes(65536, 4096, 2)
print(f"case 4, gain of fusing softmax, 65536 x 4096: predicted {gain:.1f}, measured {1900 / 262:.1f}")

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"fixed"`: starting and ending a kernel takes a fixed time, no matter how few bytes it moves.
# - `"arithmetic"`: the multiprocessors cannot do the arithmetic as fast as memory delivers the numbers.
# - `"spills"`: values that do not fit in registers go to memory and come back, and the prediction does not count them.
# - `"slow steps"`: one side of the comparison moves its bytes at far less than the bandwidth of a copy.
# - `"cache"`: the numbers are still in the L2 cache, so fewer bytes than counted come from DRAM.
#
# <details><summary>Hint 1</summary>
# One of the five would make a kernel faster than predicted. In which case is the measured time several times the
# predicted one, although only the number of warps differs from a fast run?
# </details>
# <details><summary>Hint 2</summary>
# Case 2: an H200 has 132 multiprocessors with 128 lanes each at about 1.7 GHz. How long do 65536 * 4096 * 40
# instructions take? Case 3: how many numbers does one thread hold, with 32 threads for 16384?
# </details>
# <details><summary>Hint 3</summary>
# Case 4: the kernel takes 262 us, which is what its bytes take at 0.97 of the copy's bandwidth. The five operations
# move 4 times as many bytes in 1900 us. What bandwidth is that?
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and measurement differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
#: cause_4 = None
cause_1 = "fixed"
cause_2 = "arithmetic"
cause_3 = "spills"
cause_4 = "slow steps"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3, cause_4), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the five")
    choices = ("fixed", "arithmetic", "spills", "slow steps", "cache")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("fixed", "arithmetic", "spills", "slow steps")
for number, (said, true) in enumerate(zip((cause_1, cause_2, cause_3, cause_4), key, strict=True), start=1):
    assert said == true, f"cause_{number}: {said!r} does not make this gap; do the sums of the hints"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted and measured. (On a GPU, a copy of the same tensor is timed beside your
# softmax.)

# %%
large = (65536, 4096, 2)
share = None
if DEVICE == "cuda":
    x = torch.randn(large[:2], device=DEVICE).half()
    y = torch.empty_like(x)
    constants = row_config(large[:2], "fp16")
    pair = measure.time_pair(lambda: launch_softmax(softmax_kernel, constants, y, x), lambda: y.copy_(x))
    share = pair.ratio
grading.compare(
    predictions,
    chain_gain=chain_unfused_bytes(*large) / chain_fused_bytes(*large),
    softmax_gain=softmax_unfused_bytes(*large) / softmax_fused_bytes(*large),
    layernorm_gain=layernorm_unfused_bytes(*large) / layernorm_fused_bytes(*large),
    registers=reports[1].registers,
    share_of_copy=share,
)

# %% [markdown]
# Fusion removes trips to memory and nothing else: at best, a fused chain is as fast as a copy. Any remaining distance
# between your kernel and the copy has one of the causes above, and each cause has its own cure: more work per launch,
# fewer instructions, fewer numbers per thread.
#
# Case 2 has a cure, too. With t = |v|, gelu(v) = relu(v) - t P(-t), and the logarithm of P(-t) is so smooth that a
# polynomial of degree 6 and one exponential can replace `tl.erf`. The kernel then needs 17 instructions per element
# instead of 40, and runs at the speed of a copy again.
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
