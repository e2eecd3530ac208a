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
#     lab: roofline
#     version: "2"
#     withheld:
#       - mlsys.dataflow
#       - mlsys.formulas
#       - mlsys.hardware.Accelerator.ridge_point
#       - mlsys.ops
#       - mlsys.roofline
#       - mlsys.traffic
# ---

# %% [markdown]
# # The roofline of your own device
#
# Two numbers on a data sheet matter most: how many floating-point operations (FLOPs) the chip does per second, and how
# many bytes its memory delivers per second. Their quotient is the **ridge point**, the FLOPs that a program must do
# with each byte before arithmetic can be its limit. In float32 it is about 25 FLOP/byte for a T4 and about 20 for an
# H100. No program reaches the printed numbers.
#
# **The question of this lab: what are the two roofs of the device in front of you, and what keeps an operation below
# them?**
#
# You will predict, measure, write, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with your measurements at the end |
# | a | turn timings into two roofs | bandwidth, peak, ridge point |
# | b | write a kernel with a dial | K multiply-adds for each number that it loads, in Triton |
# | c | turn the dial | a function that finds the ridge point in any sweep |
# | d (GPU) | race the kernel | a share of a reference kernel's speed, and the ridge of the grader's GPU |
# | e | count six operations | FLOPs, bytes, bound and least time, exactly |
# | f | change the batch of a dense layer | time ratios, and the batch at which it changes sides |
# | gap | explain the distances from the roof | a rule that names causes, and a few sentences on your own device |
#
# Plan for three hours. You need Python and the chapter *The roofline model*; you do not need to have written a GPU
# kernel. A laptop has a roofline too: without a GPU you measure the processor, and you can finish everything except the
# question marked (GPU). Hints cost no points: each question has three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None`, `pass` or "Your answer". You may add cells.
# Read the test cells, and run them as often as you like. When the lab is graded, the original versions of these cells
# run, with other numbers. Your measurements are for you alone: no point depends on how fast or how busy your machine
# is.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import math
import statistics
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import grading, measure, ops

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl
from torch.nn import functional

from mlsys.measure.clock import clock_of

torch.backends.cuda.matmul.allow_tf32 = False  # float32 products in full float32

scorecard = grading.Scorecard(
    {"a": 15, "b": 25, "c": 10, "d": 10, "e": 15, "f": 10, "gap": 10, "why": 5}, gpu=["d"], read=["why"]
)


def laps(call, count=15):
    """Return the seconds of each of `count` calls, one after the other, without any selection."""
    return clock_of(DEVICE == "cuda").laps(call, 1, count)


def seconds(call):
    """Return the seconds of one call, measured well: warmed up, and repeated until the median is certain enough."""
    timing = measure.time_kernel(call, on_gpu=DEVICE == "cuda", budget_s=0.25)
    if timing.p80_s > 1.3 * timing.p20_s:
        print(f"unsteady, {1e3 * timing.p20_s:.3g} to {1e3 * timing.p80_s:.3g} ms: close what else runs, and run again")
    return timing.median_s


def is_near(number, right, within):
    """Return whether a plain number is within a share, such as 0.03, of the right one."""
    assert type(number) in (int, float), f"got a {type(number).__name__}: return a plain number, such as float(...)"
    return abs(number - right) <= within * abs(right)


# %% [markdown]
# ## Predictions
#
# Before you measure, write down what you expect of your device: the GPU that the cell above has named, or your processor
# if there is none. If you change to another device later, say from a laptop to Colab, predict again for that one. You
# are not graded on how close you come. The point is to have something to be surprised by.
#
# 1. `ridge`: the ridge point of your device in float32, in FLOP/byte.
# 2. `softmax_gap`: softmax written as five simple operations, one after the other (largest element, subtract,
#    exponential, sum, divide). The roof allows the time in which memory moves the input and the output once. How many
#    *times* as long does this softmax take?
# 3. `small_product_gap`: the same for a product of two 128 x 128 matrices: how many times as long as its roof allows?
# 4. `batch_32`: a dense layer of 4096 inputs and outputs. How many *times* as long does a batch of 32 take as a batch
#    of 1?
# 5. `batch_256`: the same for a batch of 256.

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: ridge = None
#: softmax_gap = None
#: small_product_gap = None
#: batch_32 = None
#: batch_256 = None
ridge = 15
softmax_gap = 4
small_product_gap = 10
batch_32 = 1
batch_256 = 10
### END SOLUTION
predictions = grading.seal(
    ridge=ridge,
    softmax_gap=softmax_gap,
    small_product_gap=small_product_gap,
    batch_32=batch_32,
    batch_256=batch_256,
)

# %% [markdown]
# ## a. Two roofs from a stopwatch
#
# The slope of the roof is the rate at which memory delivers bytes. To find it, copy an array that is far larger than
# any cache, and time it. The flat roof is the rate of arithmetic. To find it, multiply two large matrices with the
# vendor's library, and time that. The next cell does both fifteen times in a row and shows the raw times.

# %%
SIDE = 8192 if DEVICE == "cuda" else 1024
source = torch.randn(2**28 if DEVICE == "cuda" else 2**25, device=DEVICE)
target = torch.empty_like(source)
left, right = torch.randn(SIDE, SIDE, device=DEVICE), torch.randn(SIDE, SIDE, device=DEVICE)
copy_laps = laps(lambda: target.copy_(source))
product_laps = laps(lambda: left @ right)
for name, times in (("copy", copy_laps), ("product", product_laps)):
    print(f"{name:>8}, ms:", " ".join(f"{1e3 * lap:.2f}" for lap in times))

# %% [markdown]
# Raw times have two habits. The first ones are often long: the system allocates memory on first use, libraries load,
# and the clock rate is still rising. And now and then one is long because something else ran. (If all of them scatter
# by a fifth or more, something else is running all the time: close it, or take today's measurements with a grain of
# salt.) Write four functions that give the right result all the same:
#
# - `copy_bandwidth(array_bytes, laps_s)`: bytes per second of a copy of an array of `array_bytes` bytes, from a list of
#   times in seconds. A copy moves more than `array_bytes` bytes. How many?
# - `product_rate(side, laps_s)`: FLOP per second of a product of two `side` x `side` matrices. A multiply-add counts as
#   two FLOPs.
# - `ridge_point(bandwidth, peak)`: FLOP per byte, from bytes per second and FLOP per second.
# - `attainable(intensity, bandwidth, peak)`: the highest possible rate, in FLOP per second, of an operation of
#   `intensity` FLOP/byte.
#
# Everything is in plain bytes, FLOPs and seconds: no giga, no tera. The tests allow an error of 3%, so both the median
# and the least of the times pass, and the mean does not. Write the formulas yourself, here and in the questions below.
# The package has them too, in `mlsys.roofline`, `mlsys.formulas`, `mlsys.ops` and the like, but they are removed when
# the lab is graded, and an answer that calls them ends in an error.
#
# <details><summary>Hint 1</summary>
# What must happen to every byte of the source, and what to every byte of the target? Which single number represents a
# list of times when some of them are far too long?
# </details>
# <details><summary>Hint 2</summary>
# A copy reads the array and writes another of the same size. The median is <code>statistics.median</code>. Each of the
# side * side results of the product takes side multiply-adds.
# </details>
# <details><summary>Hint 3</summary>
# <code>2 * array_bytes / median</code>, <code>2 * side**3 / median</code>, <code>peak / bandwidth</code>, and the
# smaller of <code>peak</code> and <code>bandwidth * intensity</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-roofs", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Two roofs from a stopwatch"}
def copy_bandwidth(array_bytes, laps_s):
    """Return the bytes read and written per second when an array is copied."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("copy_bandwidth")
    return 2 * array_bytes / statistics.median(laps_s)
    ### END SOLUTION


def product_rate(side, laps_s):
    """Return the FLOP per second of a product of two square matrices."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_rate")
    return 2 * side**3 / statistics.median(laps_s)
    ### END SOLUTION


def ridge_point(bandwidth, peak):
    """Return the FLOP per byte at which the two roofs meet."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("ridge_point")
    return peak / bandwidth
    ### END SOLUTION


def attainable(intensity, bandwidth, peak):
    """Return the highest possible FLOP per second."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("attainable")
    return min(peak, bandwidth * intensity)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
def check_rate(number, right, what):
    """Compare a rate with the right one, and name the usual mistake if the rate is off by a known factor."""
    slips = {
        0.5: "a copy also writes every byte; a multiply-add is two FLOPs",
        2.0: "something is counted twice",
        1e-9: "plain bytes and FLOPs are asked for, no giga",
        2**-30: "plain bytes are asked for, no GiB",
        1e-12: "plain FLOPs are asked for, no tera",
    }
    if not is_near(number, right, 0.03):
        fit = [why for slip, why in slips.items() if is_near(number, slip * right, 0.02)]
        raise AssertionError(
            f"{what} is {number:.4g}, should be about {right:.4g}" + "".join(f" ({why})" for why in fit)
        )


quiet = [0.0101, 0.0100, 0.0100, 0.0102, 0.0100]
check_rate(copy_bandwidth(2**27, quiet), 2**28 / 0.01, "copy_bandwidth(2**27, times of 10 ms)")
slow_start = [0.0900, 0.0200, 0.0100, 0.0101, 0.0100, 0.0100, 0.0150]
check_rate(copy_bandwidth(2**27, slow_start), 2**28 / 0.01, "copy_bandwidth with a slow start and a disturbance")
check_rate(product_rate(1000, quiet), 2e9 / 0.01, "product_rate(1000, times of 10 ms)")
check_rate(product_rate(1000, slow_start), 2e9 / 0.01, "product_rate with a slow start and a disturbance")
check_rate(ridge_point(3.2e11, 8e12), 25, "ridge_point(3.2e11, 8e12)")
check_rate(attainable(10, 3.2e11, 8e12), 3.2e12, "attainable(10, 3.2e11, 8e12)")
check_rate(attainable(100, 3.2e11, 8e12), 8e12, "attainable(100, 3.2e11, 8e12)")
### BEGIN HIDDEN TESTS
rng = grading.Draws("a")
for _ in range(6):
    lap = rng.integer(100, 90_000) / 1e6
    times = [lap * (1 + rng.integer(0, 10) / 1000) for _lap in range(rng.integer(9, 25))]
    times[0] *= rng.integer(3, 20)
    times[rng.integer(2, 8)] *= rng.integer(15, 30) / 10
    size, edge = rng.integer(2**20, 2**33), rng.integer(200, 9000)
    assert is_near(copy_bandwidth(size, times), 2 * size / lap, 0.03), "copy_bandwidth for other times"
    assert is_near(product_rate(edge, times), 2 * edge**3 / lap, 0.03), "product_rate for other times"
    slope, flat = rng.integer(10**9, 10**13), rng.integer(10**10, 10**15)
    assert is_near(ridge_point(slope, flat), flat / slope, 1e-6), "ridge_point for another device"
    for places in (0.01, 0.3, 0.9, 1.1, 7, 4000):
        best = min(flat, slope * (places * flat / slope))
        found = attainable(places * flat / slope, slope, flat)
        assert is_near(found, best, 1e-6), f"attainable at {places} times the ridge point of another device"
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# The next cell prints your roofs beside those that the course's own functions measure (`mlsys.measure`; this runs for a
# few seconds). The rest of the lab uses the higher slope and the higher peak, because a disturbance can only make a
# measurement slower. If a line says that two numbers differ, close other programs, and run the first code cell of
# question a and this cell again. If the difference stays, the cause may be the libraries (on a processor you timed
# torch, and `mlsys.measure` times numpy): then go on.
#
# On a GPU there is one more flat roof. The library's product must fetch its operands from shared memory, so it is
# slower than chains of multiply-adds that stay in registers: 51 instead of 63 TFLOP/s on an H200 in float32. The kernel
# of the next two questions is such a chain, so its roof is the higher one. For the products of question e it is the
# library's.

# %%
ceilings = measure.measure_ceilings()
theirs = ceilings.copy_bandwidth.m_as("byte/s"), ceilings.matmul["fp32"].m_as("flop/s")
mine = copy_bandwidth(source.nbytes, copy_laps), product_rate(SIDE, product_laps)
for who, (slope, flat) in {"yours": mine, "mlsys.measure": theirs}.items():
    found = f"{slope / 1e9:8.1f} GB/s  {flat / 1e12:8.3f} TFLOP/s  ridge {ridge_point(slope, flat):6.1f} FLOP/byte"
    print(f"{who:>14}: {found}")
for what, pair in zip(("bandwidths", "peaks"), zip(mine, theirs, strict=True), strict=True):
    if max(pair) > 1.5 * min(pair):
        print(f"The two {what} differ by a factor of {max(pair) / min(pair):.1f}: measure again.")
bandwidth, peak = map(max, mine, theirs)
chain_peak = ceilings.fma["fp32"].m_as("flop/s") if DEVICE == "cuda" else peak
if DEVICE == "cuda":
    print(f"chains of multiply-adds: {chain_peak / 1e12:.3f} TFLOP/s, ridge {ridge_point(bandwidth, chain_peak):.1f}")

# %% [markdown]
# ## b. A kernel with a dial
#
# To see the whole roof, we need work whose intensity can be chosen. Take a polynomial: load a number x, and do K
# multiply-adds with it,
#
# ```
# y = x
# y = y * x + c[0]
# y = y * x + c[1]
# ...
# y = y * x + c[K - 1]
# ```
#
# then add up the results of each row of a matrix and write one sum per row. K is the dial: each number is loaded once,
# whatever K is. The few coefficients c stay in a cache. No compiler can skip a step, because each step needs the result
# of the one before it.
#
# A GPU runs a **kernel** many times at once; in Triton each run is a **program**, and its number is `tl.program_id(0)`.
# Here is a complete kernel, which adds two vectors. Each program adds TILE of their elements:


# %% nbgrader={"grade": false, "grade_id": "b-example", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "setup"}
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, N, TILE: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)  # program 0: 0 1 2 3, program 1: 4 5 6 7, ...
    mask = index < N  # the last tile may reach past the end
    x = tl.load(x_ptr + index, mask=mask, other=0.0)
    y = tl.load(y_ptr + index, mask=mask, other=0.0)
    tl.store(out_ptr + index, x + y, mask=mask)


def add(x, y, tile=1024):
    out = torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), tile),)  # how many programs: division rounded up
    add_kernel[grid](x, y, out, x.numel(), TILE=tile)
    return out


# %%
add(torch.arange(10.0, device=DEVICE), torch.full((10,), 100.0, device=DEVICE), tile=4)

# %% [markdown]
# `x_ptr` is an address, and `x_ptr + index` a block of addresses; `tl.load` loads a block of numbers. TILE must be a
# power of two and known when the kernel is compiled (`tl.constexpr`). You need four more things:
#
# - `tl.where(mask, block, 0.0)` keeps the numbers of a block where the mask is true and puts zeros elsewhere.
# - `tl.store` and `tl.load` also accept a single address: `tl.store(out_ptr + 3, number)` writes one number.
# - `triton.next_power_of_2(13)`, outside the kernel, is 16.
# - A launch may also set `num_warps`, the number of groups of 32 threads that share a program. It is Triton's own
#   option, not a parameter of the kernel: `add_kernel[grid](x, y, out, N, TILE=1024, num_warps=8)`.
#
# Now write `poly_kernel`. The **contract**, which the race in question d relies on:
#
# - There is one program per row of x. The element in row r and column j is at `x_ptr + r * stride_row + j *
#   stride_col`; any strides must work. The sums are contiguous: the sum of row r goes to `sums_ptr + r`.
# - TILE is a power of two, at least COLS, so that one block holds a whole row. The elements of the block past the end
#   of the row must add nothing to the sum.
# - x is float32 or float16 (or bfloat16, on a GPU that supports it). The coefficients and the sums are float32, and so
#   is **all arithmetic, whatever x is**: convert a block with `x.to(tl.float32)` right after loading it.
# - In a matrix of more than 2^31 elements, `row * stride_row` is too large for a 32-bit integer. So make the row's
#   number a 64-bit integer, as in the example: `.to(tl.int64)`. Within a row, 32 bits are enough.
# - `steps` is K, 1 or more. It is an ordinary argument of the kernel, so `for k in range(steps):` works. `tl.sum(block,
#   axis=0)` adds up a block.
#
# <details><summary>Hint 1</summary>
# Begin with the row: which row is mine? Then make a block of columns, a mask, and a block of addresses with both
# strides. What is the polynomial of the zeros that a masked load gives?
# </details>
# <details><summary>Hint 2</summary>
# It is c[K - 1], not zero. So put zeros there again before you add up, with <code>tl.where(mask, y, 0.0)</code>. The
# loop loads one coefficient and does <code>y = y * x + c</code>. There are as many programs as rows.
# </details>
# <details><summary>Hint 3</summary>
# <code>row = tl.program_id(0).to(tl.int64)</code>, <code>cols = tl.arange(0, TILE)</code>, <code>mask = cols &lt;
# COLS</code>, <code>x = tl.load(x_ptr + row * stride_row + cols * stride_col, mask=mask,
# other=0.0).to(tl.float32)</code>, <code>y = x</code>, the loop, and <code>tl.store(sums_ptr + row,
# tl.sum(tl.where(mask, y, 0.0), axis=0))</code>. The grid is <code>(rows,)</code>, the tile
# <code>triton.next_power_of_2(cols)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "A kernel with a dial"}
@triton.jit
def poly_kernel(x_ptr, coefficients_ptr, sums_ptr, COLS, stride_row, stride_col, steps, TILE: tl.constexpr):
    """Sum over a row of x of the polynomial y = x; y = y x + c[k] for k = 0 ... steps - 1."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    row = tl.program_id(0).to(tl.int64)  # 64-bit, for row * stride passes 2^31 in a matrix of more elements
    cols = tl.arange(0, TILE)
    mask = cols < COLS
    x = tl.load(x_ptr + row * stride_row + cols * stride_col, mask=mask, other=0.0).to(tl.float32)
    y = x
    for k in range(steps):
        y = y * x + tl.load(coefficients_ptr + k)
    tl.store(sums_ptr + row, tl.sum(tl.where(mask, y, 0.0), axis=0))
    ### END SOLUTION


def poly_sums(x, coefficients):
    """Return the row sums of the polynomial in float32, computed by poly_kernel."""
    rows, cols = x.shape
    sums = torch.empty(rows, device=x.device, dtype=torch.float32)
    ### BEGIN SOLUTION
    #: raise NotImplementedError("poly_sums: write the kernel, the grid and the tile")
    #: grid = ...
    #: tile = ...
    grid = (rows,)
    tile = triton.next_power_of_2(cols)
    ### END SOLUTION
    poly_kernel[grid](x, coefficients, sums, cols, x.stride(0), x.stride(1), coefficients.numel(), TILE=tile)
    return sums


# %% [markdown]
# The tests call `poly_sums` through `grading.guarded`: every tensor gets a band of NaNs before and after it. Without a
# GPU, every load and store outside a tensor is reported with its line, program and lane. On a GPU, a store outside
# damages a band and is reported; a load outside brings in a NaN, which you see only if it gets into a sum. The tests also
# launch your kernel by itself, without `poly_sums`.


# %% nbgrader={"grade": false, "grade_id": "b-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "setup"}
def launch_poly(kernel, constants, out, x, coefficients):
    """Run a kernel that keeps the contract of question b, one program per row."""
    kernel[(x.shape[0],)](x, coefficients, out, x.shape[1], *x.stride(), coefficients.numel(), **constants)


def polynomial_sums(x, coefficients):
    """Return the same sums, computed by torch in float64 and rounded at the end."""
    factors = coefficients.double().unbind()
    sums = []
    for part in x.double().split(128):  # few rows at a time, which a cache holds from step to step
        y = part
        for factor in factors:
            y = torch.addcmul(factor, y, part)
        sums.append(y.sum(dim=1))
    return torch.cat(sums).float()


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 25, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
draw = grading.Draws("b", DEVICE)


def check_sums(rows, cols, steps, what, dtype="float32", layout="row", wider=1, values="positive"):
    """Compare poly_sums, and then the kernel alone with a block `wider` times as wide, with sums in float64."""
    x = draw.matrix(rows, cols, dtype=dtype, layout=layout, values=values)
    c = draw.matrix(1, steps, values=values)[0]
    what = f"{what}: {rows} x {cols}, K = {steps}, {dtype}"
    grading.assert_close(grading.guarded(poly_sums)(x, c), polynomial_sums(x, c), what=f"poly_sums, {what}")
    tile = {"TILE": wider * triton.next_power_of_2(cols)}
    what = f"poly_kernel by itself with TILE = {tile['TILE']}, {what}"
    grading.check_kernel(poly_kernel, tile, [x, c], polynomial_sums(x, c), launch=launch_poly, what=what)


check_sums(1, 16, 1, "one row, one step")
check_sums(1, 16, 5, "one row, five steps")
check_sums(4, 16, 3, "four rows")
check_sums(3, 13, 2, "a row of 13, where the lanes past its end must add nothing to the sum")
check_sums(3, 16, 2, "a block wider than the row, where the lanes past its end must add nothing", wider=2)
check_sums(1, 1, 1, "a single number")
check_sums(5, 37, 40, "many steps")
check_sums(32, 37, 5, "numbers of both signs", values="climbing")  # many rows, for a sum near 0 has few right digits
check_sums(4, 21, 4, "a transposed view", layout="column")
check_sums(4, 21, 4, "a slice with gaps", layout="sliced")
check_sums(4, 21, 4, "a window in a larger matrix", layout="offset")
check_sums(9, 1, 3, "one column")
check_sums(2, 1500, 30, "long rows", wider=4)
check_sums(3, 40, 2, "float16 input, few steps", dtype="float16")
check_sums(3, 40, 30, "float16 input, many steps", dtype="float16")
# One product of two numbers: what float16 rounds away is not averaged over a long row.
check_sums(12, 2, 1, "float16 input, one step", dtype="float16", layout="sliced")
if DEVICE == "cuda" and measure.detect_device().has_bf16:
    check_sums(3, 40, 30, "bfloat16 input", dtype="bfloat16")
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    for precision in ("float32", "float16"):
        high, wide, long = draw.integer(1, 6), draw.ragged(1, 300), draw.integer(1, 20)
        check_sums(high, wide, long, f"arrangement {arrangement}", dtype=precision, layout=arrangement)
check_sums(draw.integer(20, 40), 1, draw.integer(2, 5), "one column")
check_sums(32, draw.ragged(20, 60), draw.integer(2, 9), "numbers of both signs", values="climbing")
if DEVICE != "cpu" and measure.detect_device().has_bf16:
    check_sums(3, draw.ragged(20, 300), draw.integer(2, 40), "bfloat16 input", dtype="bfloat16", layout="sliced")
check_sums(2, draw.ragged(2000, 4000), 100, "long rows, 100 steps", wider=4)
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. Turn the dial
#
# First count the work of one run of the kernel. Write `chain_cost(rows, cols, steps, itemsize)`, which returns two
# plain ints, FLOPs and bytes:
#
# - every element needs K multiply-adds and one addition into the sum of its row;
# - every element of x, of `itemsize` bytes, is read once; the K coefficients and the sums, 4 bytes each, are read or
#   written once.
#
# Then write `find_ridge(intensities, rates)`. It gets a sweep: a list of intensities (FLOP/byte, rising) and a list of
# the rates (FLOP/s) that were measured at them. It returns the intensity at which the two roofs meet, within 25%. At
# least the first two points are on the slope, and at least the last two are under the flat roof. In between, real
# sweeps have a round corner: a kernel that is close to both limits reaches neither. Their points also scatter by a few
# percent.
#
# The tests use sweeps of devices that you have never seen, so returning the ridge of your own device does not help.
#
# <details><summary>Hint 1</summary>
# The roof consists of two lines. Which number describes the sloping line, and which points tell you that number? Which
# number describes the flat line?
# </details>
# <details><summary>Hint 2</summary>
# On the slope, rate / intensity is the bandwidth, the same at every point. Under the flat roof the rate is the peak.
# You do not need the round part at all.
# </details>
# <details><summary>Hint 3</summary>
# The peak is the largest rate, the bandwidth is the largest rate / intensity, and the ridge is peak / bandwidth. (A
# disturbance only makes a run slower, so the largest value is the least disturbed one, and a scatter of a few percent
# is far within the 25%.) For the count: <code>rows * cols * (2 * steps + 1)</code> FLOPs.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-ridge", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "Turn the dial"}
def chain_cost(rows, cols, steps, itemsize):
    """Return the FLOPs and bytes of poly_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("chain_cost")
    return rows * cols * (2 * steps + 1), rows * cols * itemsize + 4 * (steps + rows)
    ### END SOLUTION


def find_ridge(intensities, rates):
    """Return the intensity at which the slope through the first points meets the level of the last."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("find_ridge")
    return max(rates) / max(rate / intensity for intensity, rate in zip(intensities, rates, strict=True))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
def check_pair(pair, right, what):
    """Compare a returned pair of ints with the right one."""
    assert isinstance(pair, (tuple, list)), f"{what}: return two ints, FLOPs and bytes"
    assert len(pair) == 2, f"{what}: return two ints, FLOPs and bytes"
    grading.assert_equal(pair[0], right[0], what=f"FLOPs of {what}")
    grading.assert_equal(pair[1], right[1], what=f"bytes of {what}")


def check_ridge(intensities, rates, right, what):
    """Check that find_ridge is within 25%."""
    found = find_ridge(intensities, rates)
    assert is_near(found, right, 0.25), f"find_ridge for {what} is {found!r}, should be about {right}"


# One element: x * x + c and the addition to the sum are 3 FLOPs; x, c and the sum are 12 bytes.
check_pair(chain_cost(1, 1, 1, 4), (3, 12), "chain_cost(1, 1, 1, 4)")
check_pair(chain_cost(2, 10, 3, 2), (140, 60), "chain_cost(2, 10, 3, 2)")
doubling = [0.25 * 2**i for i in range(10)]
check_ridge(doubling, [min(100e9 * i, 1e12) for i in doubling], 10, "a sharp roof of 100 GB/s and 1 TFLOP/s")
check_ridge(doubling, [1 / (1 / (100e9 * i) + 1e-12) for i in doubling], 10, "a round roof of the same two limits")
coarse = [0.5, 1, 50, 100]
check_ridge(coarse, [52e9, 97e9, 1.03e12, 0.98e12], 10, "four points that scatter")
### BEGIN HIDDEN TESTS
rng = grading.Draws("c")
for width in (1, 2, 4, 8):
    high, wide, long = rng.integer(1, 90), rng.integer(1, 90), rng.integer(1, 900)
    loaded = sum(width for _ in range(high * wide)) + 4 * high + 4 * long
    worked = sum(1 + sum(2 for _ in range(long)) for _ in range(high * wide))
    check_pair(chain_cost(high, wide, long, width), (worked, loaded), "chain_cost for other sizes")
for case in range(12):
    corner = rng.integer(5, 2000) / 10
    top = rng.integer(10, 60_000) * 1e9
    sharp = rng.integer(15, 60) / 10  # how sharp the corner is
    places = [corner * 2**power for power in range(-rng.integer(4, 6), rng.integer(5, 6))]
    if case % 3 == 0:
        places = [*places[:2], *places[-3:]]
    scatter = [rng.integer(970, 1030) / 1000 for _ in places]
    ideal = [top / (1 + (corner / place) ** sharp) ** (1 / sharp) for place in places]
    answer = find_ridge(places, [a * b for a, b in zip(ideal, scatter, strict=True)])
    assert is_near(answer, corner, 0.25), "find_ridge for the sweep of another device is off by more than 25%"
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# Now make the sweep of your device. On a GPU it runs your kernel. Without a GPU your kernel runs in an interpreter,
# which is thousands of times too slow for a roofline. So the processor does other work with the same dial: numpy's
# library computes a dense layer of 4096 inputs and outputs, for a batch of K. Each weight is loaded once and used in K
# multiply-adds.

# %%
import numpy as np

ROWS, COLS, DIAL = 8192, 4000, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def sweep_kernel(**constants):
    """Yield intensity and rate of poly_kernel, by K; `constants` such as num_warps=8 go to the launch."""
    x = torch.rand(ROWS, COLS, device=DEVICE)
    sums = torch.empty(ROWS, device=DEVICE)
    constants = {"TILE": triton.next_power_of_2(COLS)} | constants
    for steps in DIAL:
        coefficients = torch.randn(steps, device=DEVICE)
        flops, moved = chain_cost(ROWS, COLS, steps, 4)
        yield flops / moved, flops / seconds(lambda c=coefficients: launch_poly(poly_kernel, constants, sums, x, c))


def sweep_layer():
    """Yield intensity and rate of a dense layer, by batch."""
    weights = torch.randn(4096, 4096).numpy()
    for batch in DIAL[:-1]:
        inputs, out = torch.randn(batch, 4096).numpy(), torch.empty(batch, 4096).numpy()
        layer = ops.linear(batch=batch, d_in=4096, d_out=4096, dtype="fp32")
        rate = layer.flop_count / seconds(lambda a=inputs, b=out: np.matmul(a, weights, out=b))
        yield layer.intensity.m_as("flop/byte"), rate


sweep = list(sweep_kernel() if DEVICE == "cuda" else sweep_layer())
for intensity, rate in sweep:
    roof = attainable(intensity, bandwidth, chain_peak)
    print(f"{intensity:8.2f} FLOP/byte  {rate / 1e9:10.1f} GFLOP/s  {rate / roof:5.2f} of the roof")
measured_ridge = find_ridge(*map(list, zip(*sweep, strict=True)))
print(f"ridge in the sweep {measured_ridge:.1f}, ridge of the roofs {ridge_point(bandwidth, chain_peak):.1f} FLOP/byte")

# %%
from mlsys import viz


def draw_roofs(low, high, flat):
    """Draw the slope and one flat roof from one intensity to another; return the axes and the colors."""
    _, axes, colors, _ = viz.setup_plot()
    reach = [low, ridge_point(bandwidth, flat), high]
    roofs = [attainable(intensity, bandwidth, flat) / 1e12 for intensity in reach]
    axes.loglog(reach, roofs, color=colors["primary"], label="roofs")
    axes.set_xlabel("arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("TFLOP/s")
    return axes, colors


axes, colors = draw_roofs(sweep[0][0] / 2, 2 * sweep[-1][0], chain_peak)
axes.plot(*zip(*((i, rate / 1e12) for i, rate in sweep), strict=True), "o", color=colors["RedLine"], label="the sweep")
axes.axvline(measured_ridge, color=colors["OrangeLine"], linestyle="--", label="ridge found in the sweep")
_ = axes.legend()

# %% [markdown]
# Where do your points leave the roof? On a GPU they should follow the slope, bend around the corner, and come near the
# flat roof. On an H200 the lab's own kernel reaches 0.83 of the flat roof, because every thread must also load the
# coefficients. On a processor the library does well at both ends, and less well in between: before it multiplies by a
# few rows it copies the weights into another order, and for a small batch this hardly pays off. Its first point may be
# above the roof, because it writes very little, and many processors read faster than they copy.
#
# ## d. The race (GPU)
#
# `grading.speed` runs your kernel with your `config`, compares every sum, and times your kernel in turn with another
# implementation. In this notebook the other one is torch in float64, which passes over all its numbers again for every
# step. You will win by far, and the sweep above says more about your kernel. When the lab is graded, your kernel runs
# against a plain Triton kernel that the lab's authors wrote, on the same GPU, in the same run, at four settings of the
# dial. You get all the points from 0.8 of that kernel's speed on, none below 0.1, and a share in between. The grader
# also gives your `find_ridge` the sweep that it measured there. Your answer must be within 25% of the intensity where
# the slope of the first points meets the level of the last.
#
# `config(shape, dtype)` gets (rows, cols, steps) and the name of a format, and returns a dict of ints: `TILE` and
# `num_warps`, which both go to the launch. With a GPU, `list(sweep_kernel(num_warps=8))` in a cell of your own times
# the kernel with 8 warps, for each K. Look at both ends of the dial: where memory is the limit, many choices are
# equally good. Without a GPU you cannot time anything, so follow the hints; the cell of the race compiles your kernel
# with your config, says what it needs, and ends with `NeedsGpu`; the points stay open until you run it on one.
#
# <details><summary>Hint 1</summary>
# A block of 4096 numbers in 4 warps is 32 numbers per thread. What does a thread do with one coefficient that it
# loaded?
# </details>
# <details><summary>Hint 2</summary>
# With more numbers per thread, there are more multiply-adds per coefficient, and more of them do not wait for each
# other. With fewer numbers, there are more warps in flight, which hide the time that a load takes. With a GPU, try 2,
# 4, 8 and 16 warps.
# </details>
# <details><summary>Hint 3</summary>
# <code>{"TILE": triton.next_power_of_2(cols), "num_warps": 4}</code> is what the lab's authors chose.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup", "b", "c"], "title": "The race"}
def config(shape, dtype):
    """Return the tile and warps for poly_kernel."""
    _rows, cols, _steps = shape
    ### BEGIN SOLUTION
    #: raise NotImplementedError("config")
    return {"TILE": triton.next_power_of_2(cols), "num_warps": 4}
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "d-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "setup"}
def poly_inputs(draw, shape, dtype):
    """Return a matrix with elements of size 0.5 to 1, and coefficients, for shape (rows, cols, steps)."""
    rows, cols, steps = shape
    return draw.matrix(rows, cols, values="climbing"), draw.matrix(1, steps)[0]


RACES = [(8192, 4000, 6)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "d-speed", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "speed", "needs": ["setup", "b", "c"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(data, factors, result, width, down, along, count, TILE: tl.constexpr):
    line = tl.program_id(0).to(tl.int64)
    place = tl.arange(0, TILE)
    inside = place < width
    value = tl.load(data + line * down + place * along, mask=inside, other=0.0).to(tl.float32)
    total = value
    for number in range(count):
        total = total * value + tl.load(factors + number)
    tl.store(result + line, tl.sum(tl.where(inside, total, 0.0), axis=0))


def reference_config(shape, dtype):
    return {"TILE": 4096, "num_warps": 4}


RACES = [(8192, 4000, steps) for steps in (2, 6, 120, 250)]
rival = (reference_kernel, reference_config)
### END HIDDEN TESTS
race = grading.speed(
    poly_kernel,
    config,
    shapes=RACES,
    inputs=poly_inputs,
    launch=launch_poly,
    expected=polynomial_sums,
    reference=rival,
)
### BEGIN HIDDEN TESTS
places, speeds = [], []
for (high, wide, long), pair in race.pairs.items():
    work, bytes_moved = high * wide * (2 * long + 1), 4 * (high * wide + long + high)
    places.append(work / bytes_moved)
    speeds.append(work / pair.reference_s)
corner = max(speeds) / max(speed / place for place, speed in zip(places, speeds, strict=True))
answer = find_ridge(places, speeds)
assert is_near(answer, corner, 0.25), "find_ridge for the grader's GPU is off by more than 25%"
### END HIDDEN TESTS
scorecard.passed("d", race.fraction)
race

# %% [markdown]
# ## e. Six operations on the roof
#
# Neural networks are made of operations such as these six: the five in the table, with a small and a large matrix
# product. Write five functions that count the FLOPs and the **compulsory** bytes: everything in the last column, moved
# once. The rule is that of the chapter: each addition, subtraction, multiplication, division, comparison, exponential
# or square root on an element is one FLOP, and steps that happen once per row are left out.
#
# | operation | FLOPs | moved |
# |---|---|---|
# | `add_cost(n, itemsize)` | one per element | two vectors in, one out |
# | `softmax_cost(rows, cols, itemsize)` | five per element (maximum, subtraction, exponential, sum, division) | the matrix in and out |
# | `layernorm_cost(rows, cols, itemsize)` | eight per element: one for the mean; three for the variance (subtract the mean, square, add); two to normalize (subtract, multiply); two for scale and shift | the matrix in and out; a scale and a shift per column in |
# | `matmul_cost(m, n, k, itemsize)` | two per multiply-add | (m, k) and (k, n) in, (m, n) out |
# | `embedding_cost(bags, bag_size, dim, itemsize)` | one addition per number fetched | `bag_size` rows of `dim` numbers in for each bag, and for each row an index of 8 bytes; one row of sums out per bag |
#
# Each function returns two plain ints, FLOPs and bytes. Do the counting yourself. The package has these counts in
# `mlsys.ops`, but that module is removed when the lab is graded, and an answer that calls it ends in an error.
#
# Then write `place(flops, moved, bandwidth, peak)`, which finds an operation's place under the roof. It returns a pair:
# `"memory"` or `"compute"`, the roof that limits the operation, and the least time in seconds. An operation exactly at
# the ridge point is compute-bound.
#
# <details><summary>Hint 1</summary>
# The copy in question a showed what is easily forgotten: written bytes count too. Which tensors of an embedding are
# read, which are written, and which of them only in part?
# </details>
# <details><summary>Hint 2</summary>
# Layernorm: <code>(2 * rows * cols + 2 * cols) * itemsize</code>. Embedding: each of the <code>bags * bag_size</code>
# rows costs <code>dim * itemsize + 8</code> bytes to fetch.
# </details>
# <details><summary>Hint 3</summary>
# The least time is the larger of <code>flops / peak</code> and <code>moved / bandwidth</code>, and the larger one names
# the bound. Embedding, bytes: <code>bags * bag_size * (dim * itemsize + 8) + bags * dim * itemsize</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-costs", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "Six operations on the roof"}
def add_cost(n, itemsize):
    """Return the FLOPs and bytes of a sum of two vectors."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("add_cost")
    return n, 3 * n * itemsize
    ### END SOLUTION


def softmax_cost(rows, cols, itemsize):
    """Return the FLOPs and bytes of a softmax of every row."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("softmax_cost")
    return 5 * rows * cols, 2 * rows * cols * itemsize
    ### END SOLUTION


def layernorm_cost(rows, cols, itemsize):
    """Return the FLOPs and bytes of a layer normalization of every row."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("layernorm_cost")
    return 8 * rows * cols, (2 * rows * cols + 2 * cols) * itemsize
    ### END SOLUTION


def matmul_cost(m, n, k, itemsize):
    """Return the FLOPs and bytes of a matrix product."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("matmul_cost")
    return 2 * m * n * k, (m * k + k * n + m * n) * itemsize
    ### END SOLUTION


def embedding_cost(bags, bag_size, dim, itemsize):
    """Return the FLOPs and bytes of sums of rows fetched from a table."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("embedding_cost")
    fetched = bags * bag_size
    return fetched * dim, fetched * (dim * itemsize + 8) + bags * dim * itemsize
    ### END SOLUTION


def place(flops, moved, bandwidth, peak):
    """Return the roof that limits an operation, "memory" or "compute", and its least time in seconds."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("place")
    arithmetic_s, memory_s = flops / peak, moved / bandwidth
    return "memory" if arithmetic_s < memory_s else "compute", max(arithmetic_s, memory_s)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
def check_cost(pair, right, what):
    """Compare a returned pair of ints with the right one."""
    assert isinstance(pair, (tuple, list)), f"{what}: return two ints, FLOPs and bytes"
    assert len(pair) == 2, f"{what}: return two ints, FLOPs and bytes"
    grading.assert_equal(pair[0], right[0], what=f"FLOPs of {what}")
    grading.assert_equal(pair[1], right[1], what=f"bytes of {what}")


def check_place(flops, moved, bandwidth, peak, bound, time_s, what):
    """Check place() against a bound and a least time."""
    found = place(flops, moved, bandwidth, peak)
    assert isinstance(found, (tuple, list)), f"{what}: return a bound and a time"
    assert len(found) == 2, f"{what}: return a bound and a time"
    grading.assert_equal(found[0], bound, what=f"bound of {what}")
    assert is_near(found[1], time_s, 1e-6), f"least time of {what}: got {found[1]:.6g}"


check_cost(add_cost(10, 4), (10, 120), "add_cost(10, 4)")
check_cost(softmax_cost(2, 5, 4), (50, 80), "softmax_cost(2, 5, 4)")
# 10 elements in, 10 out, 5 scales and 5 shifts: 30 numbers.
check_cost(layernorm_cost(2, 5, 4), (80, 120), "layernorm_cost(2, 5, 4)")
check_cost(matmul_cost(2, 3, 4, 4), (48, 104), "matmul_cost(2, 3, 4, 4)")
# 6 rows of 10 numbers and 6 indices in, 2 rows out: 60 * 2 + 6 * 8 + 20 * 2 bytes.
check_cost(embedding_cost(2, 3, 10, 2), (60, 208), "embedding_cost(2, 3, 10, 2)")
check_place(1000, 4000, 1e11, 1e12, "memory", 4e-8, "0.25 FLOP/byte under 100 GB/s and 1 TFLOP/s")
check_place(80_000, 4000, 1e11, 1e12, "compute", 8e-8, "20 FLOP/byte under 100 GB/s and 1 TFLOP/s")
### BEGIN HIDDEN TESTS
rng = grading.Draws("e")
for width, name in ((4, "fp32"), (2, "fp16"), (1, "fp8"), (8, "fp64")):
    p, q, r = (rng.integer(2, 5000) for _ in "pqr")
    truth = [
        (add_cost(p, width), ops.elementwise(elements=p, inputs=2, dtype=name), "add_cost"),
        (softmax_cost(p, q, width), ops.softmax(rows=p, cols=q, dtype=name), "softmax_cost"),
        (layernorm_cost(p, q, width), ops.layernorm(rows=p, cols=q, dtype=name), "layernorm_cost"),
        (matmul_cost(p, q, r, width), ops.matmul(m=p, n=q, k=r, dtype=name), "matmul_cost"),
        (embedding_cost(p, q, r, width), ops.embedding_bag(bags=p, bag_size=q, dim=r, dtype=name), "embedding_cost"),
    ]
    for given, op, title in truth:
        check_cost(given, (int(op.flop_count), int(op.read_count + op.write_count)), f"{title} for other sizes")
for _ in range(8):
    slope, flat = rng.integer(10**9, 10**13), rng.integer(10**10, 10**15)
    amount = rng.integer(10**3, 10**9)
    for share, verdict in ((0.02, "memory"), (0.9, "memory"), (1.1, "compute"), (70, "compute")):
        work = int(share * amount * flat / slope)
        longest = max(work / flat, amount / slope)
        check_place(work, amount, slope, flat, verdict, longest, "an operation on another device")
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# Now measure the six. For each operation, the next cell makes the tensors and defines a function that runs it. It also
# defines three experiments that tell causes apart:
#
# - `eighth`: the same operation on an eighth of the work (an eighth of the rows; a product of matrices of half the
#   side). If the work fills the device, this takes an eighth of the time.
# - `in_order` (embedding only): the same number of rows, fetched in the order in which they are stored in memory.
# - `passes` (softmax only): this softmax is written as five simple operations, and each of them reads and writes whole
#   tensors. We know how many bytes the five operations move, and therefore how long that takes at full bandwidth.


# %% nbgrader={"grade": false, "grade_id": "gap-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "setup"}
LARGE = DEVICE == "cuda"
ELEMENTS = 2**26 if LARGE else 2**24
WIDTH = 2048
SIDES = {"small product": 128, "large product": 4096 if LARGE else 1024}
BAGS, BAG_SIZE, DIM, TABLE_ROWS = (2**16, 32, 64, 2**22) if LARGE else (2**13, 32, 64, 2**19)


def softmax_in_steps(x, y):
    """Write the softmax of x into y, step by step as in the formula; each step is a pass over memory."""
    torch.sub(x, x.amax(dim=1, keepdim=True), out=y)  # the largest: reads x; the difference: reads x, writes y
    y.exp_()  # reads and writes y
    y.div_(y.sum(dim=1, keepdim=True))  # the sum: reads y; the quotient: reads and writes y


def six_operations():
    """Return for each operation: `run`, `eighth`, and `in_order` where the order matters; all in float32."""
    a, b = torch.randn(ELEMENTS, device=DEVICE), torch.randn(ELEMENTS, device=DEVICE)
    x, scale, shift = a.view(-1, WIDTH), b[:WIDTH], b[WIDTH : 2 * WIDTH]
    table = torch.randn(TABLE_ROWS, DIM, device=DEVICE)
    picked = torch.randint(TABLE_ROWS, (BAGS, BAG_SIZE), device=DEVICE)
    in_order = torch.arange(BAGS * BAG_SIZE, device=DEVICE).remainder(TABLE_ROWS).view(BAGS, BAG_SIZE)
    out, few, n = torch.zeros_like(x), len(x) // 8, ELEMENTS // 8
    flat = out.view(-1)
    cases = {
        "add": {
            "run": lambda: torch.add(a, b, out=flat),
            "eighth": lambda: torch.add(a[:n], b[:n], out=flat[:n]),
        },
        "softmax": {
            "run": lambda: softmax_in_steps(x, out),
            "eighth": lambda: softmax_in_steps(x[:few], out[:few]),
        },
        "layernorm": {
            "run": lambda: functional.layer_norm(x, (WIDTH,), scale, shift),
            "eighth": lambda: functional.layer_norm(x[:few], (WIDTH,), scale, shift),
        },
        "embedding": {
            "run": lambda: functional.embedding_bag(picked, table, mode="sum"),
            "eighth": lambda: functional.embedding_bag(picked[: BAGS // 8], table, mode="sum"),
            "in_order": lambda: functional.embedding_bag(in_order, table, mode="sum"),
        },
    }
    for name, side in SIDES.items():
        whole, half = ([t[: n * n].view(n, n) for t in (a, b)] for n in (side, side // 2))
        cases[name] = {"run": lambda p=whole: p[0] @ p[1], "eighth": lambda p=half: p[0] @ p[1]}
    return cases


# %%
costs = {
    "add": add_cost(ELEMENTS, 4),
    "softmax": softmax_cost(ELEMENTS // WIDTH, WIDTH, 4),
    "layernorm": layernorm_cost(ELEMENTS // WIDTH, WIDTH, 4),
    "embedding": embedding_cost(BAGS, BAG_SIZE, DIM, 4),
} | {name: matmul_cost(side, side, side, 4) for name, side in SIDES.items()}
times = {name: {what: seconds(call) for what, call in case.items()} for name, case in six_operations().items()}
print("operation      FLOP/byte    bound    least ms  measured ms      gap")
least_s, measured_s = {}, {}
for name, (flops, moved) in costs.items():
    bound, least_s[name] = place(flops, moved, bandwidth, peak)
    measured_s[name] = times[name]["run"]
    gap = measured_s[name] / least_s[name]
    in_ms = f"{1e3 * least_s[name]:11.4f}  {1e3 * measured_s[name]:11.4f}"
    print(f"{name:<14} {flops / moved:9.2f}  {bound:>7} {in_ms} {gap:8.2f}")

# %% [markdown]
# The same operation may be at the roof on one device and far below it on another. The last question looks for the
# causes. But first, look at an operation that can be limited by either roof.
#
# ## f. The batch of a dense layer
#
# A dense layer multiplies a batch of inputs, `batch` x `d_in`, by weights, `d_in` x `d_out`. Even for a single input it
# must read all weights. How much longer does it take for 32 inputs, and for 256? Write
#
# - `time_ratio(batch, d_in, d_out, itemsize, bandwidth, peak)`: the least time for this batch over the least time for a
#   batch of 1, by the roofline;
# - `crossing_batch(d_in, d_out, itemsize, ridge)`: the smallest batch, an int, for which the layer is compute-bound,
#   which means that its intensity is at least `ridge`; `None` if there is no such batch.
#
# Use your own functions from question e; `mlsys.formulas` is removed when the lab is graded.
#
# <details><summary>Hint 1</summary>
# You have counted this already: the layer is a product. With which m, n and k?
# </details>
# <details><summary>Hint 2</summary>
# The intensity is <code>2 B d_in d_out / (itemsize (B (d_in + d_out) + d_in d_out))</code>. It grows with the batch B
# and has a limit. What is left of the formula when B is huge?
# </details>
# <details><summary>Hint 3</summary>
# Solve intensity = ridge for B, with w = d_in d_out: <code>B = ridge * itemsize * w / (2 * w - ridge * itemsize *
# (d_in + d_out))</code>, rounded up. If the denominator is not above zero, there is no such batch. Check the neighbors
# of the rounded number too, because floats are not exact.
# </details>


# %% nbgrader={"grade": false, "grade_id": "f-batch", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup", "e"], "title": "The batch of a dense layer"}
def time_ratio(batch, d_in, d_out, itemsize, bandwidth, peak):
    """Return the least time of a dense layer, divided by that for a batch of 1."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("time_ratio")
    few, many = (place(*matmul_cost(rows, d_out, d_in, itemsize), bandwidth, peak)[1] for rows in (1, batch))
    return many / few
    ### END SOLUTION


def crossing_batch(d_in, d_out, itemsize, ridge):
    """Return the smallest batch for which a dense layer is compute-bound, or None."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("crossing_batch")
    weights = d_in * d_out
    gained = 2 * weights - ridge * itemsize * (d_in + d_out)  # FLOPs that one more row brings beyond its bytes' worth
    return max(1, math.ceil(ridge * itemsize * weights / gained)) if gained > 0 else None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup", "e"]}
def check_ratio(arguments, right, what):
    """Check time_ratio against a number."""
    found = time_ratio(*arguments)
    assert is_near(found, right, 0.01), f"time_ratio for {what} is {found!r}, should be about {right:.3f}"


def check_crossing(arguments, right, what):
    """Check crossing_batch against an int or None."""
    found = crossing_batch(*arguments)
    assert found == right, f"crossing_batch for {what} is {found!r}, should be {right}"
    assert found is None or type(found) is int, f"crossing_batch for {what} is a {type(found).__name__}; return an int"


check_ratio((1, 4096, 4096, 4, 3.2e11, 8e12), 1, "a batch of 1")
check_ratio((32, 4096, 4096, 4, 3.2e11, 8e12), 1.015, "a batch of 32 on a T4: the weights are nearly all of the bytes")
check_ratio((256, 4096, 4096, 4, 3.2e11, 8e12), 5.117, "a batch of 256 on a T4: now arithmetic is the limit")
check_crossing((1000, 1000, 4, 10), 21, "1000 inputs and outputs, fp32, a ridge of 10")
check_crossing((2048, 2048, 2, 153), 180, "2048 inputs and outputs, fp16, a ridge of 153")
check_crossing((64, 64, 4, 25), None, "64 inputs and outputs, fp32, a ridge of 25")
### BEGIN HIDDEN TESTS
rng = grading.Draws("f")


def scanned(inputs, outputs, width, corner):
    """Return the crossing, found by trying one batch after the other."""
    for trial in range(1, 40_000):
        work = 2 * trial * inputs * outputs
        if work >= corner * width * (trial * inputs + inputs * outputs + trial * outputs):
            return trial
    return None


for case in range(10):
    inputs, outputs, width = rng.integer(60, 3000), rng.integer(60, 3000), 2 ** rng.integer(0, 3)
    most = 2 * inputs * outputs / (width * (inputs + outputs))  # the limit for huge batches
    corner = most * (0.05 + 0.8 * rng.integer(0, 1000) / 1000 if case % 4 else 1.3) + 1 / 7919
    target = scanned(inputs, outputs, width, corner)
    answer = crossing_batch(inputs, outputs, width, corner)
    assert answer == target, "crossing_batch is not right for another layer"
    slope, group = rng.integer(10**9, 10**13), rng.integer(2, 2000)
    spans = [
        max(
            2 * rows * inputs * outputs / (slope * corner),
            width * (rows * (inputs + outputs) + inputs * outputs) / slope,
        )
        for rows in (1, group)
    ]
    answer = time_ratio(group, inputs, outputs, width, slope, slope * corner)
    assert is_near(answer, spans[1] / spans[0], 1e-6), "time_ratio is not right for another layer"
### END HIDDEN TESTS
scorecard.passed("f")

# %%
weights = torch.randn(4096, 4096, device=DEVICE)
layer_s, predicted = {}, {}
for batch in (1, 32, 256):
    inputs = torch.randn(batch, 4096, device=DEVICE)
    layer_s[batch] = seconds(lambda x=inputs: x @ weights)
    predicted[batch] = time_ratio(batch, 4096, 4096, 4, bandwidth, peak)
    bound, _ = place(*matmul_cost(batch, 4096, 4096, 4), bandwidth, peak)
    ratio = layer_s[batch] / layer_s[1]
    print(f"batch {batch:4}: {bound:>7}-bound, predicted {predicted[batch]:6.2f} times batch 1, measured {ratio:6.2f}")
print("compute-bound from a batch of", crossing_batch(4096, 4096, 4, ridge_point(bandwidth, peak)))

# %% [markdown]
# ## Gap: why is an operation not at its roof?
#
# An operation takes `measured_s`, and the roof allows `least_s`; the quotient `measured_s / least_s` is its **gap**.
# Write two functions.
#
# `largest_gaps(least_s, measured_s)` gets two dicts from names to seconds, and returns a list of two names: the
# operation with the largest gap, then the one with the second largest.
#
# `cause(least_s, measured_s, eighth_s, in_order_s, passes_s)` names the cause of one operation's gap. It gets times in
# seconds, and `None` for an experiment that was not made, which can be any of the three:
#
# - `eighth_s`: the time of an eighth of the work;
# - `in_order_s`: the time with reads in the order of memory;
# - `passes_s`: the least time of the bytes that its steps really move.
#
# It returns one of six words:
#
# | returns | when |
# |---|---|
# | `"above"` | the gap is below 0.8: the operation is faster than its roof, so a roof is wrong (see below) |
# | `"roof"` | the gap is at most 1.25: nothing to explain |
# | `"start"` | there is too little work: the cost of starting does not shrink with the work |
# | `"order"` | the reads are scattered over the memory |
# | `"bytes"` | more bytes move than the compulsory ones |
# | `"kernel"` | none of these explains the gap: the code itself waits |
#
# `"above"` has several possible reasons. If the operation is under the memory roof, the bytes came from a cache, or it
# mostly reads, which many processors do faster than they copy. If it is under the arithmetic roof, no cache can help: the
# measured peak was too low.
#
# For `"start"`, `"order"` and `"bytes"`, work out the *factor* that each experiment explains: how many times longer an
# eighth of the work takes than an eighth of the time; how many times longer the reads take out of order than in order;
# how many times more bytes move than the compulsory ones. The cause is the one with the largest factor, if that factor
# is 1.5 or more.
#
# <details><summary>Hint 1</summary>
# For the first factor, think of an operation that takes 6 microseconds for all its work and 6 for an eighth of it. What
# should the factor be? And what if the times are 8 and 1?
# </details>
# <details><summary>Hint 2</summary>
# The three factors are <code>8 * eighth_s / measured_s</code>, <code>measured_s / in_order_s</code> and
# <code>passes_s / least_s</code>. Leave out what is <code>None</code>.
# </details>
# <details><summary>Hint 3</summary>
# Put the factors into a dict by name, take <code>max(factors, key=factors.get, default=None)</code>, and return
# <code>"kernel"</code> if there is none or its factor is below 1.5. For the first function:
# <code>sorted(least_s, key=lambda name: least_s[name] / measured_s[name])[:2]</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why an operation is not at its roof"}
def largest_gaps(least_s, measured_s):
    """Return the names of the two operations with the largest gaps, the largest first."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("largest_gaps")
    return sorted(least_s, key=lambda name: least_s[name] / measured_s[name])[:2]
    ### END SOLUTION


def cause(least_s, measured_s, eighth_s, in_order_s, passes_s):
    """Return the cause of one operation's gap."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("cause")
    gap = measured_s / least_s
    if gap < 0.8:
        return "above"
    if gap <= 1.25:
        return "roof"
    factors = {}
    if eighth_s is not None:
        factors["start"] = 8 * eighth_s / measured_s
    if in_order_s is not None:
        factors["order"] = measured_s / in_order_s
    if passes_s is not None:
        factors["bytes"] = passes_s / least_s
    found = max(factors, key=factors.get, default=None)
    return found if found is not None and factors[found] >= 1.5 else "kernel"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
def check_cause(times_ms, right, what):
    """Check cause() against a word; the times are least, measured, eighth, in order, passes."""
    found = cause(*times_ms)
    assert found == right, f"cause of {what}: got {found!r}, should be {right!r}"


gaps = largest_gaps({"add": 1.0, "softmax": 2.0, "product": 0.1}, {"add": 1.1, "softmax": 8.0, "product": 0.9})
assert isinstance(gaps, (list, tuple)), "largest_gaps: return a list of names"
assert list(gaps) == ["product", "softmax"], (
    f"largest_gaps: gaps of 1.1, 4, 9 give {gaps!r}, should be product, softmax"
)
check_cause((1.0, 0.5, 0.1, None, None), "above", "a gap of 0.5")
check_cause((1.0, 1.1, 0.14, None, None), "roof", "a gap of 1.1")
check_cause((0.001, 0.006, 0.006, None, None), "start", "6 us for all the work and for an eighth of it")
check_cause((1.0, 3.0, 0.4, 1.2, None), "order", "3 ms, and 1.2 ms in order")
check_cause((1.0, 4.5, 0.6, None, 4.0), "bytes", "4.5 ms for steps whose bytes take 4 ms")
check_cause((1.0, 3.0, 0.38, None, None), "kernel", "3 ms that no experiment explains")
check_cause((1.0, 3.0, None, None, None), "kernel", "3 ms, and no experiment was made")
### BEGIN HIDDEN TESTS
rng = grading.Draws("gap")


def factor(low, high):
    return rng.integer(int(100 * low), int(100 * high)) / 100


for _ in range(4):
    names = [f"op {number}" for number in range(6)]
    sizes = {name: factor(0.01, 50) for name in names}
    order = rng.shuffled(names)
    spent = {name: sizes[name] * (1.3 + 0.7 * order.index(name)) for name in names}
    found = largest_gaps(sizes, spent)
    assert isinstance(found, (list, tuple)), "largest_gaps: return a list of names"
    assert list(found) == [order[5], order[4]], "largest_gaps for other operations"
for _ in range(6):
    base = factor(0.02, 20)
    some = [factor(1.1, 1.4) for _each in range(3)]  # too small to be a cause
    key = [
        ("above", factor(0.1, 0.75), 8, 3, 3),
        ("roof", factor(0.85, 1.2), 4, 3, 3),
        ("start", factor(3, 9), factor(3, 8), some[1], None),
        ("start", factor(3, 9), factor(4, 8), factor(1.6, 3), factor(1.6, 3)),
        ("order", factor(3, 9), some[0], factor(1.7, 9), None),
        ("order", factor(3, 9), factor(1.6, 2), factor(2.5, 9), some[2]),
        ("bytes", factor(3, 9), some[0], None, factor(1.7, 9)),
        ("bytes", factor(3, 9), factor(1.6, 2), factor(1.6, 2), factor(2.5, 9)),
        ("kernel", factor(3, 9), some[0], some[1], some[2]),
        ("kernel", factor(1.6, 3), None, None, None),
    ]
    for word, gap, starting, ordering, extra in rng.shuffled(key):
        spent = base * gap
        tried = (
            None if starting is None else spent * starting / 8,
            None if ordering is None else spent / ordering,
            None if extra is None else base * extra,
        )
        answer = cause(base, spent, *tried)
        grading.assert_equal(answer, word, what="cause of another gap")
### END HIDDEN TESTS
scorecard.passed("gap")

# %% [markdown]
# The next cell shows what your rule says about your own device. Compare each factor with the gap: a factor far below
# the gap explains only a part of it. If the start is the only cause, the factor is 8. If yours is well above 8, the
# smaller work has itself become slower, for instance because the library picks another kernel for it, and then this
# experiment shows nothing. The factor of `"bytes"` is counted, not measured, and is the same on every device: it shows
# that softmax moves more bytes, but not that these bytes take all the time. On a processor the factor of `"start"` may
# be far below 1, because an eighth of the work may fit into a cache, or may get memory that the system does not need to
# clear. Then the start is not the cause.

# %%
passes_s = {"softmax": 8 * ELEMENTS * 4 / bandwidth}  # five reads and three writes of the whole matrix
worst = largest_gaps(least_s, measured_s)  # marked with an arrow
print("operation      cause         gap measured ms   an eighth    in order      passes")
for name, kinds in times.items():
    experiments = kinds["eighth"], kinds.get("in_order"), passes_s.get(name)
    found = cause(least_s[name], measured_s[name], *experiments)
    in_ms = [f"{1e3 * time_s:.4f}" if time_s else "not made" for time_s in (measured_s[name], *experiments)]
    gap = measured_s[name] / least_s[name]
    print(f"{name:<14} {found:<8} {gap:8.2f}" + "".join(f"{text:>12}" for text in in_ms), "<-" if name in worst else "")

# %% [markdown]
# On an H200 the embedding has a gap of 2.4, and reading the table in order takes just as long. So scattered reads are
# not what slows it down there. Are they on your device?
#
# **Say why.** Write four to eight sentences in all about the two largest gaps of your device: the numbers of the
# experiments, the cause that they point to, and what you would change to close the gap. Put the numbers of the run that
# you explain into your answer: a later run may give other numbers and another verdict, and that is fine. If your rule
# says `"kernel"`, say what you would try in order to find the cause. `seconds(...)` times whatever you like: torch also
# has `torch.softmax(x, dim=1)`, which is one kernel. (On a processor, a possible cause is a result that every call
# allocates again, as layernorm does: the system then allocates and clears memory, and no experiment here shows that.)
# If a number cannot be right, say what disturbed it: a busy machine, a cache, a size too small. A person reads your
# answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "why", "role": "written", "needs": ["setup"], "title": "Say why"}
# ### BEGIN SOLUTION
# #: *Your answer*
# On an H200 the largest gap is the small product's: 13 us where its roof allows 0.08 us. An eighth of it takes no less,
# so the factor of the start is 8 or more: this is the cost of launching a kernel, which the roofline does not include.
# It shrinks when many small products go into one call (a batched product) or into a CUDA graph. The second is softmax
# in five steps, 0.69 ms where its roof allows 0.13 ms. Its eight passes over the matrix take 0.51 ms, 4 times the two
# compulsory ones, so bytes are the cause; an eighth of the work takes 1.07 times an eighth of the time, so it is not
# the start. One fused kernel that keeps a row on the chip would read once and write once. The rest of the gap, beyond
# the factor of 4, comes from kernels that do not reach the bandwidth of a copy.
# ### END SOLUTION

# %% [markdown]
# ## What came out
#
# Your predictions beside your measurements:

# %%
grading.compare(
    predictions,
    ridge=ridge_point(bandwidth, peak),
    softmax_gap=measured_s["softmax"] / least_s["softmax"],
    small_product_gap=measured_s["small product"] / least_s["small product"],
    batch_32=layer_s[32] / layer_s[1],
    batch_256=layer_s[256] / layer_s[1],
)

# %% [markdown]
# Here are the six operations on your roofline. Each point is at the operation's ideal intensity, and its distance to
# the roof is its gap. The bytes of a point above the slope came from a cache, or were mostly read; a point above the flat
# roof shows that the measured peak was too low.

# %%
axes, _ = draw_roofs(0.02, 2 * max(flops / moved for flops, moved in costs.values()), peak)
for name, (flops, moved) in costs.items():
    axes.plot(flops / moved, flops / measured_s[name] / 1e12, "o", label=name)
axes.legend(loc="lower right", fontsize=9)
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
