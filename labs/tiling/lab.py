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
#     lab: tiling
#     version: "2"
#     withheld: [mlsys.dataflow, mlsys.ops, mlsys.systolic.accesses, mlsys.traffic]
# ---

# %% [markdown]
# # Tiling a matrix product
#
# A GPU can multiply far faster than its memory can deliver numbers. In float32, a T4 does about 25 floating-point
# operations (FLOPs) in the time that DRAM, the large memory beside the chip, needs to deliver one byte. An H100 does
# about 20. A matrix product written the obvious way does only a quarter of a FLOP per byte, so nearly all of the chip
# would wait.
#
# **The question of this lab: how much of that waiting disappears when the product is computed tile by tile, and what
# does it take to write such a kernel so that it is right for every shape, and fast?**
#
# You will predict, count, write, and measure:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess four numbers | compared with the truth at the end |
# | warm-up | repair a small Triton kernel with five faults | how a kernel finds its data |
# | a | count the bytes that a product moves | two formulas |
# | b | choose tiles for a given memory | a schedule within 10% of the best known |
# | c | write the tiled product in Triton | a kernel that is right for all shapes and strides |
# | d | choose tiles for a real GPU by arithmetic | a function, and a few sentences that say why |
# | e (GPU) | race it | a share of a reference kernel's speed |
# | challenge (GPU) | the same on tensor cores | needs compute capability 8.0 or more |
# | gap | explain why prediction and count differ | three causes |
#
# Plan for three to four hours. You need Python, and you should know what a matrix product is; you do not need to have
# seen a GPU kernel. Without a GPU you can finish everything except the two questions marked (GPU). Hints cost no
# points: each question has three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None`, faulty code or "Your answer". You may add
# cells. Read the test cells, and run them as often as you like. When the lab is graded, the original versions of these
# cells run, with more shapes.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import Hardware, grading, ops, traffic

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl

scorecard = grading.Scorecard(
    {"read": 10, "a": 15, "b": 15, "c": 25, "d": 10, "d-why": 5, "e": 10, "challenge": 5, "gap": 5},
    gpu=["e", "challenge"],
    read=["d-why"],
)

# %% [markdown]
# ## Predictions
#
# Before you count anything, and ideally before you read the chapter on tiling, write down what you expect. You are not
# graded on how close you come. The point is to have something to be surprised by.
#
# We want to move fewer bytes between DRAM and the chip. A **tile** is a small block of a matrix. In the tiled product,
# the GPU brings one tile of A and one tile of B onto the chip, multiplies the two, adds the product to a tile of C that
# it keeps on the chip, and goes on to the next pair.
#
# 1. `saves_by_tile`: C = A B with 1024 x 1024 matrices. Without tiles, each multiplication fetches its two numbers from
#    DRAM. With tiles of 64 x 64, how many *times* fewer bytes move? (Either way, each element of C is written once, and
#    that counts too.)
# 2. `saves_by_memory`: the on-chip memory becomes 4 times as large, and you choose the best tiles for it. How many
#    *times* fewer bytes move than with the best tiles before?
# 3. `cost_of_two_more`: with tiles of 64 x 64, the matrices grow from 128 x 128 to 130 x 130. How many *times* as many
#    bytes move? (The matrices themselves have 1.03 times as many elements.)
# 4. `share_of_library`: what share of the speed of NVIDIA's own library will your float32 kernel reach at 2048 x 2048,
#    once you have tuned it? Give a number such as 0.05, 0.5 or 1. (Question e measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: saves_by_tile = None
#: saves_by_memory = None
#: cost_of_two_more = None
#: share_of_library = None
saves_by_tile = 64
saves_by_memory = 2
cost_of_two_more = 1.5
share_of_library = 0.6
### END SOLUTION
predictions = grading.seal(
    saves_by_tile=saves_by_tile,
    saves_by_memory=saves_by_memory,
    cost_of_two_more=cost_of_two_more,
    share_of_library=share_of_library,
)

# %% [markdown]
# ## Warm-up: read a faulty kernel
#
# A **kernel** is a function that runs on the GPU many times at once. In Triton each of these runs is called a
# **program**. All programs execute the same code; only their number, `tl.program_id(0)`, tells them apart. So the first
# lines of nearly every kernel turn that number into a set of indices: which part of the data is mine?
#
# Here is a correct kernel. It doubles a vector of N numbers. Each program doubles TILE of them.


# %%
@triton.jit
def double_vector_kernel(x_ptr, y_ptr, N, TILE: tl.constexpr):
    index = tl.program_id(0) * TILE + tl.arange(0, TILE)  # program 0: 0 1 2 3, program 1: 4 5 6 7, ...
    mask = index < N  # the last tile may reach past the end
    x = tl.load(x_ptr + index, mask=mask, other=0.0)  # TILE numbers from TILE addresses
    tl.store(y_ptr + index, 2 * x, mask=mask)


x = torch.arange(10.0, device=DEVICE)
y = torch.empty_like(x)
programs = triton.cdiv(10, 4)  # division rounded up: 3 programs for 10 numbers, 4 at a time
double_vector_kernel[(programs,)](x, y, 10, TILE=4)
y

# %% [markdown]
# Line by line:
#
# - `x_ptr` is the **address** of the first number in memory. It comes without a shape and without bounds.
# - `tl.arange(0, TILE)` makes a block of indices, so `x_ptr + index` is a **block of addresses**, and `tl.load` loads a
#   block of numbers. TILE must be a power of two, and known when the kernel is compiled (`tl.constexpr`).
# - `mask` turns individual addresses off. Without it the third program would read and write elements 10 and 11, which
#   do not exist. Nothing would stop it: **Triton does not check addresses**. The kernel would overwrite whatever is
#   there, perhaps another tensor, or crash the process.
# - `kernel[(programs,)](...)` starts `programs` programs. The tuple is the **grid**.
#
# A matrix has two indices. In memory it is still one row of numbers: element (i, j) is at `ptr + i * stride(0) + j *
# stride(1)`. A contiguous 3 x 5 matrix has strides (5, 1). Its transpose is the same memory with strides (1, 5), and a
# slice `x[::2]` has strides (10, 1). A kernel that uses both strides handles them all.
#
# For a tile we need all pairs of its rows and columns. `rows[:, None]` makes the row indices a column, `cols[None, :]`
# makes the column indices a row, and combining the two gives a two-dimensional block:
#
# ```
# rows = [4 5]       rows[:, None] * 10 + cols[None, :]  =  [[40 41 42]
# cols = [0 1 2]                                             [50 51 52]]
# ```
#
# **Your task.** In the next cell, `double` should return `2 * x` for any matrix x with any strides. The kernel and its
# launch have five faults. The first fault stops the run with the message *"Mask argument cannot be block type if
# pointer argument is not a block"*; the other four give wrong results or write where they must not. Repair them. Keep
# the names `double_kernel` and `double`. (Without a GPU, the test cell says in one line what happened, and in which line of
# the kernel's cell. If you call `double` in a cell of your own, Triton prints a long report instead. Its last line says
# what happened, and the arrow in your kernel near the top, above *"The above exception was the direct cause"*, says
# where. On a GPU, look for the `^` just above the last line.)
#
# <details><summary>Hint 1</summary>
# The message is about the first argument of a load. A single address cannot have a block of masks. Compare it with the
# store below, which has a block of addresses.
# </details>
# <details><summary>Hint 2</summary>
# Take program (1, 2) and tiles of 16 x 16. Which rows and columns should it compute, and which does it compute now?
# Then count the programs for a 17 x 17 matrix.
# </details>
# <details><summary>Hint 3</summary>
# There is one fault in each of these: the columns of a tile; the mask (it must test two things, joined by
# <code>&amp;</code>); the address of the load; a stride in the address of the store; the grid, which needs
# <code>triton.cdiv</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "read-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "read", "role": "solution", "needs": ["setup"], "title": "Warm-up: read a faulty kernel"}
@triton.jit
def double_kernel(
    x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_ym, stride_yn, TILE_M: tl.constexpr, TILE_N: tl.constexpr
):
    ### BEGIN SOLUTION
    #: rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    #: cols = tl.program_id(1) + tl.arange(0, TILE_N)
    #: mask = (rows[:, None] < M) & (rows[:, None] < N)
    #: x = tl.load(x_ptr + tl.program_id(0) * TILE_M * stride_xm, mask=mask, other=0.0)
    #: tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :] * stride_ym, 2 * x, mask=mask)
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    cols = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=mask, other=0.0)
    tl.store(y_ptr + rows[:, None] * stride_ym + cols[None, :] * stride_yn, 2 * x, mask=mask)
    ### END SOLUTION


def double(x):
    M, N = x.shape
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    ### BEGIN SOLUTION
    #: grid = (M // 16, N // 16)
    grid = (triton.cdiv(M, 16), triton.cdiv(N, 16))
    ### END SOLUTION
    double_kernel[grid](x, y, M, N, x.stride(0), x.stride(1), y.stride(0), y.stride(1), TILE_M=16, TILE_N=16)
    return y


# %% [markdown]
# The test below calls `double` through `grading.guarded`: every tensor that goes in or is allocated gets a band of NaNs
# before and after it. A store outside the tensor damages a band and is reported; a load outside it brings a NaN into
# the result. The test also launches your kernel by itself, without `double`; both must be right. In the kernel you may
# use Triton's language (`tl`), arithmetic, and your own functions that are marked `@triton.jit`.


# %% nbgrader={"grade": false, "grade_id": "read-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "read", "role": "setup"}
def launch_double(kernel, constants, y, x):
    """Run a kernel with the arguments of double_kernel, one program per tile."""
    M, N = x.shape
    grid = (triton.cdiv(M, constants["TILE_M"]), triton.cdiv(N, constants["TILE_N"]))
    kernel[grid](x, y, M, N, *x.stride(), *y.stride(), **constants)


# %% nbgrader={"grade": true, "grade_id": "read-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "read", "role": "test", "needs": ["setup"]}
draw = grading.Draws("read", DEVICE)


def check_double(x, tiles=(16, 16)):
    """Compare double(x), and then the kernel's own result for x, with 2 x."""
    what = f"for {tuple(x.shape)}, strides {x.stride()}"
    grading.assert_close(grading.guarded(double)(x), 2 * x, what=f"double(x) {what}", tile=(16, 16))
    constants = {"TILE_M": tiles[0], "TILE_N": tiles[1]}
    what = f"double_kernel by itself, {what}, {constants}"
    grading.check_kernel(double_kernel, constants, [x], 2 * x, launch=launch_double, what=what, tile=tiles)


for shape, layout in [((16, 16), "row"), ((32, 48), "row"), ((17, 16), "row"), ((16, 17), "row"), ((37, 21), "column")]:
    check_double(draw.matrix(*shape, layout=layout))
for layout, tiles in [("row", (16, 32)), ("sliced", (32, 16)), ("offset", (64, 64))]:
    check_double(draw.matrix(19, 20, layout=layout, values="negative"), tiles)
### BEGIN HIDDEN TESTS
for layout in ("row", "column", "sliced", "offset"):
    sides = 16 << draw.integer(0, 2), 16 << draw.integer(0, 2)
    check_double(draw.matrix(draw.ragged(1, 50), draw.ragged(1, 50), layout=layout, values="negative"), sides)
### END HIDDEN TESTS
scorecard.passed("read")

# %% [markdown]
# ## a. Count the bytes
#
# From here on A has shape (m, k), B has shape (k, n), C = A B has shape (m, n), and every element has `itemsize` bytes
# (4 in float32). The product always needs m n k multiply-adds. But we can change how often the same element is fetched
# from DRAM.
#
# **Without tiles.** Each of the m n k multiply-adds fetches its element of A and its element of B from DRAM. The
# running sum stays on the chip, in a register, and each element of C is written once.
#
# **With tiles.** One program computes one tile of C, of `tile_m` rows and `tile_n` columns. It goes along k. On the way
# it needs a horizontal band of A and a vertical band of B, and it reads each element of the two bands from DRAM once:
#
# ```
#                       tile_n
#                     +--+--+--+
#                     |  |##|  |
#                   B |  |##|  | k
#                     |  |##|  |
#          k          +--+--+--+
#       +-----+       +--+--+--+
#       |     |       |  |  |  |
# tile_m|#####| A     |  |##|  | C       one program: a band of A, a band of B, a tile of C
#       |     |       |  |  |  |
#       +-----+       +--+--+--+
# ```
#
# Programs do not share the numbers that they have loaded. At the edges a tile may reach past the matrix; the part
# outside is masked and moves no bytes.
#
# Return both counts, reads and writes together, as plain ints. Note that `tiled_bytes` has no `tile_k`. Why not?
#
# Do the counting yourself: `mlsys.traffic`, `mlsys.ops` and the like are removed from the package when the lab is
# graded, and an answer that calls them ends in an error.
#
# <details><summary>Hint 1</summary>
# Take one element of A. How many programs need it? All programs in its row of tiles do. How many programs are in a row?
# </details>
# <details><summary>Hint 2</summary>
# The number of tiles that cover n columns is n / tile_n, rounded up when tile_n does not divide n. In Python:
# <code>-(-n // tile_n)</code> or <code>triton.cdiv(n, tile_n)</code>.
# </details>
# <details><summary>Hint 3</summary>
# All of A is read once for each column of tiles, and all of B once for each row of tiles; edge tiles are smaller, so
# you count only elements that exist. C adds m n.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-traffic", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count the bytes"}
def untiled_bytes(m, n, k, itemsize):
    """Return the bytes read and written when every multiply-add fetches its two operands."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("untiled_bytes")
    return (2 * m * n * k + m * n) * itemsize
    ### END SOLUTION


def tiled_bytes(m, n, k, tile_m, tile_n, itemsize):
    """Return the bytes read and written when each program computes one tile_m x tile_n tile of C."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("tiled_bytes")
    times_a = triton.cdiv(n, tile_n)
    times_b = triton.cdiv(m, tile_m)
    return (m * k * times_a + k * n * times_b + m * n) * itemsize
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
# One multiply-add: two numbers read, one written, 4 bytes each.
grading.assert_equal(untiled_bytes(1, 1, 1, 4), 12, what="untiled_bytes(1, 1, 1, 4)")
# 24 multiply-adds read 48 numbers; C has 6.
grading.assert_equal(untiled_bytes(2, 3, 4, 4), 216, what="untiled_bytes(2, 3, 4, 4)")
# Two columns of tiles read A (16 numbers) twice, two rows of tiles read B (16) twice; C has 16.
grading.assert_equal(tiled_bytes(4, 4, 4, 2, 2, 4), 320, what="tiled_bytes(4, 4, 4, 2, 2, 4)")
# A fifth row makes a third row of tiles: B (16) is read 3 times, A (20) twice; C has 20.
grading.assert_equal(tiled_bytes(5, 4, 4, 2, 2, 4), 432, what="tiled_bytes(5, 4, 4, 2, 2, 4): a ragged edge")
# The same in a 2-byte format.
grading.assert_equal(tiled_bytes(5, 4, 4, 2, 2, 2), 216, what="tiled_bytes(5, 4, 4, 2, 2, 2): 2-byte elements")
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for itemsize, most in [(1, 2), (2, 1), (4, 1), (8, 1)]:  # once a tile may be larger than the matrix
    m, n, k = (draw.integer(3, 200) for _ in "mnk")
    tile_m, tile_n = draw.integer(2, most * m - 1), draw.integer(2, most * n - 1)
    read = 0  # counted program by program, tile of C by tile of C
    for row in range(0, m, tile_m):
        for col in range(0, n, tile_n):
            read += k * (min(tile_m, m - row) + min(tile_n, n - col))
    what = f"tiled_bytes({m}, {n}, {k}, {tile_m}, {tile_n}, {itemsize})"
    grading.assert_equal(tiled_bytes(m, n, k, tile_m, tile_n, itemsize), (read + m * n) * itemsize, what=what)
    what = f"untiled_bytes({m}, {n}, {k}, {itemsize})"
    one_by_one = sum(2 * k + 1 for _ in range(m * n)) * itemsize
    grading.assert_equal(untiled_bytes(m, n, k, itemsize), one_by_one, what=what)
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. Choose tiles for a given memory
#
# Tiles are kept in a small memory on the chip, so they cannot be arbitrarily large. In each step of the product three
# tiles must be in it at once: tile_m x tile_k of A, tile_k x tile_n of B, and tile_m x tile_n of C. Write `schedule(m,
# n, k, memory_bytes)`, which returns three ints `(tile_m, tile_n, tile_k)` for float32 such that
#
# - the three tiles together fit in `memory_bytes`, and
# - the traffic is at most 1.1 times that of the best schedule known.
#
# The tile sizes need not be powers of two here. In the tests, k is 200 or more. (With a short k, whole bands of A or B
# fit into the memory, and other schedules are best.) The test *replays* your schedule step by step.
# `traffic.tiled_matmul` goes through the tiles in the order below, keeps the most recently used tiles in a memory of
# that size, and counts the bytes that move in and out:
#
# ```
# for each tile row i of C:
#     for each tile column j of C:
#         for each tile p along k:
#             C[i, j] += A[i, p] B[p, j]
# ```
#
# Make the choice yourself: you may look at schedules with `traffic` in cells of your own, but do not call it from
# `schedule`. All of `traffic`, with `tiled_matmul` and `best_schedule`, is removed when the lab is graded, and an
# answer that calls it ends in an error. The next cell shows a first try, equal squares.

# %%
memory_bytes = 16 * 1024
side = int((memory_bytes / 4 / 3) ** 0.5)  # three squares of float32
moved = traffic.tiled_matmul(256, 256, 256, side, side, side, memory_bytes=memory_bytes)
least = traffic.compulsory_bytes(256, 256, 256)
print(f"tiles of {side} x {side} move {moved.total_bytes:,} bytes; each matrix once would be {least:,}")

# %% [markdown]
# <details><summary>Hint 1</summary>
# The formula of question a has no tile_k in it. So do the tiles of A and B need more memory than the least that a step
# needs? And what would you rather use the memory for?
# </details>
# <details><summary>Hint 2</summary>
# Fewer bytes means fewer tiles of C, so the tile of C should fill nearly the whole memory. But the number of tiles must
# be a whole number: with n = 100, tiles of 50 to 99 columns all give two columns of tiles. Take the smallest of these
# tiles and use the memory for a larger tile_m.
# </details>
# <details><summary>Hint 3</summary>
# Let the computer choose: for every tile_m from 1 to m, find the largest tile_n for which three tiles with tile_k = 1
# fit; of these pairs, keep the one with the smallest <code>tiled_bytes</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-schedule", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup", "a"], "title": "Choose tiles for a given memory"}
def schedule(m, n, k, memory_bytes):
    """Return tile sizes (tile_m, tile_n, tile_k) that fit the memory and move few bytes."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("schedule")
    capacity = memory_bytes // 4  # elements

    def reads(tiles):
        tile_m, tile_n, _ = tiles
        return m * k * triton.cdiv(n, tile_n) + k * n * triton.cdiv(m, tile_m)

    # tile_m * tile_n + tile_m + tile_n <= capacity, with tile_k = 1
    pairs = [(tile_m, min(n, (capacity - tile_m) // (tile_m + 1))) for tile_m in range(1, m + 1)]
    return min(((tile_m, tile_n, 1) for tile_m, tile_n in pairs if tile_n >= 1), key=reads)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup", "a"]}
for m, n, k, memory_bytes in [(256, 256, 256, 16 * 1024), (200, 200, 200, 4 * 1024), (100, 300, 250, 8 * 1024)]:
    grading.assert_schedule(schedule(m, n, k, memory_bytes), m, n, k, memory_bytes)
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for _ in range(4):
    sizes = draw.integer(60, 300), draw.integer(60, 300), draw.integer(200, 300)
    room = 4 * draw.integer(250, 3000)
    grading.assert_schedule(schedule(*sizes, room), *sizes, room)
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# You have found what every fast matrix product does. The tile of C is kept in the largest memory near the arithmetic,
# which on a GPU is the **registers**, and thin slices of A and B stream past it.
#
# ## c. The tiled product in Triton
#
# Now write the kernel. It must keep the following **contract**, which the race in question e relies on:
#
# - The grid has one dimension, with one program per tile of C: `cdiv(M, TILE_M) * cdiv(N, TILE_N)` programs. The kernel
#   turns the program's number into a row and a column of tiles.
# - The kernel has exactly the arguments given below. `GROUP_M` is for question e; ignore it until then.
# - It gives the right result for all sizes from 1 up, for tiles that do not divide them, and for any strides.
# - A and B are both float32 or both float16, and C has the same dtype. **The sum is always kept in float32, whatever
#   the dtype of the inputs.**
# - `tl.dot(a, b, acc, input_precision="ieee")` adds the product of two tiles to `acc`. Without that option Triton may
#   round float32 inputs to tf32, which keeps only 10 bits after the leading one.
#
# The tiles move along k like this. In step s the program loads columns s TILE_K ... (s+1) TILE_K - 1 of its band of A,
# and the rows with the same numbers of its band of B. When K is not a multiple of TILE_K, the last step reaches past
# the end of both bands, and the elements there must count as zero.
#
# A plan:
#
# 1. Which tile of C is mine? Turn `tl.program_id(0)` into a tile row and a tile column.
# 2. Make blocks of row indices, column indices and indices along k.
# 3. Make blocks of addresses for the first tile of A and of B.
# 4. Set `acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)`, then loop over k: load two tiles, masked in both of their
#    dimensions; add their product; move the addresses on.
# 5. Store the tile, masked in both dimensions. `tl.store` converts to the dtype of C by itself.
#
# To round up in a kernel, use `tl.cdiv(N, TILE_N)`. `triton.cdiv` is for the code around a kernel, and `-(-N //
# TILE_N)` rounds *down* inside one, because `//` rounds towards zero there.
#
# <details><summary>Hint 1</summary>
# Program number p in a grid of R rows and Q columns of tiles: the row is <code>p // Q</code>, the column is <code>p %
# Q</code>. Steps 2, 3 and 5 are the same as in the warm-up, for three matrices. A's tile has rows of C and indices
# along k; B's tile has indices along k and columns of C.
# </details>
# <details><summary>Hint 2</summary>
# The loop is <code>for k in range(0, K, TILE_K):</code>. In it, the mask of A's tile is <code>(rows[:, None] &lt; M)
# &amp; (ks[None, :] &lt; K - k)</code> with <code>ks = tl.arange(0, TILE_K)</code>, and <code>other=0.0</code> makes
# the rest count as zero. After the product A's addresses move by <code>TILE_K * stride_ak</code>. Which stride moves
# B's?
# </details>
# <details><summary>Hint 3</summary>
# A's first addresses: <code>a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak</code>. B's: <code>b_ptr +
# ks[:, None] * stride_bk + cols[None, :] * stride_bn</code>. The loop body: load a, load b, <code>acc = tl.dot(a, b,
# acc, input_precision="ieee")</code>, move both. The end: <code>tl.store(c_ptrs, acc, mask=(rows[:, None] &lt; M) &amp;
# (cols[None, :] &lt; N))</code>. The grid is a tuple of one number: <code>(triton.cdiv(M, tile_m) * triton.cdiv(N,
# tile_n),)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "The tiled product in Triton"}
@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """Compute one TILE_M x TILE_N tile of C = A B per program, with A (M, K), B (K, N), C (M, N)."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    # Programs that run at the same time take a block of GROUP_M rows of tiles, column by column: they share bands of
    # A and B, which the L2 cache then reads from DRAM once.
    tiles_m = tl.cdiv(M, TILE_M)
    tiles_n = tl.cdiv(N, TILE_N)
    program = tl.program_id(0)
    group = program // (GROUP_M * tiles_n)
    first_row = group * GROUP_M
    rows_in_group = min(tiles_m - first_row, GROUP_M)
    within = program % (GROUP_M * tiles_n)
    tile_row = first_row + within % rows_in_group
    tile_col = within // rows_in_group

    # 64-bit, for row * stride passes 2^31 in a matrix of more than 2^31 elements.
    rows = (tile_row * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    cols = (tile_col * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    ks = tl.arange(0, TILE_K)
    in_rows = rows[:, None] < M
    in_cols = cols[None, :] < N
    a_ptrs = a_ptr + rows[:, None] * stride_am + ks[None, :] * stride_ak
    b_ptrs = b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn

    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for k in range(0, K, TILE_K):
        a = tl.load(a_ptrs, mask=in_rows & (ks[None, :] < K - k), other=0.0)
        b = tl.load(b_ptrs, mask=(ks[:, None] < K - k) & in_cols, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += TILE_K * stride_ak
        b_ptrs += TILE_K * stride_bk

    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=in_rows & in_cols)
    ### END SOLUTION


def tiled_matmul(a, b, tile_m=32, tile_n=32, tile_k=32):
    """Return A @ B, computed by matmul_kernel."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    ### BEGIN SOLUTION
    #: raise NotImplementedError("tiled_matmul: write the kernel and the grid")
    #: grid = ...
    grid = (triton.cdiv(M, tile_m) * triton.cdiv(N, tile_n),)
    ### END SOLUTION
    matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        TILE_M=tile_m, TILE_N=tile_n, TILE_K=tile_k, GROUP_M=4,
    )  # fmt: skip
    return c


# %% [markdown]
# The tests come in steps. Work on the first one that fails: its message names the first wrong element, its tile, and a
# likely cause. Each step calls `tiled_matmul`, and then launches your kernel by itself, without `tiled_matmul`. Both must
# be right.


# %% nbgrader={"grade": false, "grade_id": "c-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "setup"}
def launch_matmul(kernel, constants, c, a, b):
    """Run a kernel that keeps the contract of question c."""
    (M, K), N = a.shape, b.shape[1]
    grid = (triton.cdiv(M, constants["TILE_M"]) * triton.cdiv(N, constants["TILE_N"]),)
    strides = (*a.stride(), *b.stride(), *c.stride())
    kernel[grid](a, b, c, M, N, K, *strides, **constants)


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 25, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)


def check_matmul(a, b, what, tiles=(32, 32, 32), group=4):
    """Compare tiled_matmul, and then matmul_kernel alone, with a product in float64."""
    right = (a.double() @ b.double()).to(a.dtype)
    what = f"{what}: M={a.shape[0]}, N={b.shape[1]}, K={a.shape[1]}"
    product = grading.guarded(tiled_matmul)(a, b, *tiles)
    grading.assert_close(product, right, what=f"{what}, tiles {tiles}", tile=tiles[:2])
    constants = {"TILE_M": tiles[0], "TILE_N": tiles[1], "TILE_K": tiles[2], "GROUP_M": group}
    what = f"matmul_kernel by itself, {what}, {constants}"
    grading.check_kernel(matmul_kernel, constants, [a, b], right, launch=launch_matmul, what=what, tile=tiles[:2])


check_matmul(draw.matrix(32, 32), draw.matrix(32, 32), "one tile")
check_matmul(draw.matrix(32, 96), draw.matrix(96, 32), "one tile of C, three steps along k")
check_matmul(draw.matrix(64, 32), draw.matrix(32, 96), "2 x 3 tiles of C")
check_matmul(draw.matrix(37, 32), draw.matrix(32, 53), "M and N ragged")
check_matmul(draw.matrix(32, 29), draw.matrix(29, 32), "K ragged")
check_matmul(draw.matrix(1, 1), draw.matrix(1, 1), "a single number")
check_matmul(draw.matrix(23, 53, values="negative"), draw.matrix(53, 21, values="negative"), "all values negative")
check_matmul(draw.matrix(23, 53, layout="column"), draw.matrix(53, 41), "A is a transposed view")
check_matmul(draw.matrix(23, 53), draw.matrix(53, 41, layout="sliced"), "B is a slice with gaps")
check_matmul(draw.matrix(37, 53, layout="offset"), draw.matrix(53, 21, layout="column"), "A is a window, B transposed")
check_matmul(draw.matrix(30, 70), draw.matrix(70, 40), "other tile sizes", tiles=(16, 64, 32))
check_matmul(draw.matrix(20, 64, dtype="float16"), draw.matrix(64, 40, dtype="float16"), "float16")
check_matmul(1e15 * draw.matrix(20, 30), 1e15 * draw.matrix(30, 10), "large values", tiles=(64, 16, 16))
check_matmul(draw.matrix(16, 1024), draw.matrix(1024, 16), "a long sum", tiles=(16, 16, 64))
# Sums climb to several hundred and come back: digits that a short accumulator drops on the way are missing at the end.
a, b = draw.matrix(16, 1024, values="climbing"), draw.matrix(1024, 16, values="negative")
check_matmul(a.half(), b.half(), "a long sum of float16 products", tiles=(16, 16, 64))
### BEGIN HIDDEN TESTS
for layout_a, layout_b in [("row", "column"), ("column", "sliced"), ("sliced", "offset"), ("offset", "row")]:
    tiles = tuple(16 << draw.integer(0, 2) for _ in "mnk")
    m, n, k = (draw.ragged(3, 2 * tile) for tile in tiles)  # a few sums at least: one alone may be all but 0
    a = draw.matrix(m, k, layout=layout_a)
    b = draw.matrix(k, n, layout=layout_b)
    check_matmul(a, b, f"A with strides {a.stride()}, B with strides {b.stride()}", tiles, draw.integer(1, 9))
m, n, k = draw.ragged(5, 30), draw.ragged(5, 30), draw.ragged(1000, 1500)
check_matmul(draw.matrix(m, k), draw.matrix(k, n, layout="column"), "a long sum", tiles=(32, 32, 64))
a, b = draw.matrix(m, k, values="climbing", layout="sliced"), draw.matrix(k, n, values="negative")
check_matmul(a.half(), b.half(), "a long sum of float16 products", tiles=(32, 32, 64))
# Two whole groups and a part of a third, if the kernel groups its programs.
group = draw.integer(2, 4)
a, b = draw.matrix(40 * group - 3, 20), draw.matrix(20, draw.ragged(17, 31))
check_matmul(a, b, "more rows of tiles than two groups have", (16, 16, 32), group)
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# ## d. Choose tiles for a GPU by arithmetic
#
# In question b the memory was a single number. A GPU has two on-chip memories that limit the tiles:
#
# - **Registers** hold the tile of C, the accumulator. A program runs on `num_warps` groups of 32 threads, called
#   **warps**, and each thread holds an equal share of the TILE_M x TILE_N float32 accumulators, each in one register. A
#   thread has at most 255 registers and needs many of them for addresses and for the numbers being multiplied. If they
#   are not enough, the compiler *spills*: it moves values out to slower memory and back. Compiled in float32 for
#   three GPUs, this kernel has hardly any spills at 64 accumulators per thread, and spills at 128. (In float16 it spills
#   earlier on a T4, where Triton does not use tensor cores; rule 3 below leaves that out.)
# - **Shared memory** holds the tiles of A and B. While one pair is multiplied, the next pairs are being loaded, so up
#   to `num_stages` pairs are in shared memory at once: at most `num_stages * (TILE_M + TILE_N) * TILE_K * itemsize`
#   bytes.
#
# The shared memory that one program may use depends on the chip:

# %% nbgrader={"grade": false, "grade_id": "d-limits", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "setup"}
SHARED_MEMORY = {
    chip: int(Hardware.get(chip).field("shared_memory_per_block").value.m_as("byte"))
    for chip in ("t4", "a100-80gb-sxm", "h100-sxm")
}
ACCUMULATORS_PER_THREAD = 64
SHARED_MEMORY

# %% [markdown]
# Write `config(shape, dtype)`. `shape` is (m, n, k), `dtype` is `"fp32"` or `"fp16"` (4 and 2 bytes). It returns a dict
# of six positive ints, `TILE_M`, `TILE_N`, `TILE_K`, `GROUP_M`, `num_warps` and `num_stages`, such that
#
# 1. the tile sizes are powers of two from 16 to 512 (`tl.arange` and `tl.dot` require powers of two of at least 16), and
#    `num_warps` is 1, 2, 4 or 8;
# 2. the tiles fit in the shared memory of **all three** chips, so that one kernel works for everybody;
# 3. no thread holds more than 64 accumulators;
# 4. no side of a tile is so long that half of it would already cover the matrix: masked lanes are wasted work. (For m =
#    20, a TILE_M of 32 is right and 64 is not. 16 is always allowed.)
# 5. if m and n are both 1024 or more, a tile does at least 16 FLOPs per byte that it loads. One step does 2 TILE_M
#    TILE_N TILE_K FLOPs and loads (TILE_M + TILE_N) TILE_K elements. (A T4 would need 25 from DRAM alone; the L2 cache
#    makes up for the rest.)
#
# `num_stages` from 2 to 4 and `GROUP_M` from 4 to 8 are common. You find the best values by measuring, in question e.
# (The compiler can report spills and shared memory for a kernel and a config even without a GPU: see
# `mlsys.grading.kernels.compiler_report` in the book, which the fusion lab uses.)
#
# <details><summary>Hint 1</summary>
# Begin with large matrices in fp32 and equal tile sides T. Rule 5 becomes 2 T T / (2 T * 4) &gt;= 16. What is the
# smallest T?
# </details>
# <details><summary>Hint 2</summary>
# With that T, rule 3 gives the number of warps: T * T / (32 * num_warps) &lt;= 64. Then the smallest shared memory,
# divided by (T + T) * 4 bytes, gives num_stages * TILE_K.
# </details>
# <details><summary>Hint 3</summary>
# For small matrices use <code>max(16, min(T, triton.next_power_of_2(m)))</code> rows, and do the same with n and k.
# Smaller tiles do not break any of the other rules.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "Choose tiles by arithmetic"}
def config(shape, dtype):
    """Return tile sizes, warps and stages for matmul_kernel."""
    m, n, k = shape

    ### BEGIN SOLUTION
    #: raise NotImplementedError("config")
    def tile(extent, most):
        return max(16, min(most, triton.next_power_of_2(extent)))

    # 64 x 64: 16 FLOP/byte in fp32, 32 accumulators per thread, 3 * 128 * 32 * 4 bytes = 48 KiB of shared memory
    return {
        "TILE_M": tile(m, 64),
        "TILE_N": tile(n, 64),
        "TILE_K": tile(k, 32),
        "GROUP_M": 8,
        "num_warps": 4,
        "num_stages": 3,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
def check_config(shape, dtype):
    """Check config(shape, dtype) against the five rules."""
    chosen = config(shape, dtype)
    what = f"config({shape}, {dtype!r}) = {chosen}"
    itemsize = {"fp32": 4, "fp16": 2}[dtype]
    names = ("TILE_M", "TILE_N", "TILE_K", "GROUP_M", "num_warps", "num_stages")
    assert isinstance(chosen, dict), f"{what}: return a dict"
    assert sorted(chosen) == sorted(names), f"{what}: the keys must be {names}"
    for name in names:
        assert type(chosen[name]) is int, f"{what}: {name} must be an int"
        assert chosen[name] >= 1, f"{what}: {name} must be 1 or more"
    tile_m, tile_n, tile_k, _, num_warps, num_stages = (chosen[name] for name in names)
    for name, tile, extent in zip(names[:3], (tile_m, tile_n, tile_k), shape, strict=True):
        assert tile in (16, 32, 64, 128, 256, 512), f"{what}: rule 1, {name} must be 16, 32, 64, 128, 256 or 512"
        assert tile == 16 or tile // 2 < extent, f"{what}: rule 4, half of {name} already covers {extent}"
    assert num_warps in (1, 2, 4, 8), f"{what}: rule 1, num_warps must be 1, 2, 4 or 8"
    shared = num_stages * (tile_m + tile_n) * tile_k * itemsize
    for chip, limit in SHARED_MEMORY.items():
        assert shared <= limit, f"{what}: rule 2, {shared:,} bytes of shared memory; {chip} has {limit:,}"
    accumulators = tile_m * tile_n // (32 * num_warps)
    assert accumulators <= ACCUMULATORS_PER_THREAD, f"{what}: rule 3, {accumulators} accumulators per thread"
    if min(shape[:2]) >= 1024:
        intensity = 2 * tile_m * tile_n / ((tile_m + tile_n) * itemsize)
        assert intensity >= 16, f"{what}: rule 5, {intensity:.1f} FLOPs per byte loaded"


check_config((4096, 4096, 4096), "fp32")
check_config((4096, 4096, 4096), "fp16")
check_config((20, 4096, 4096), "fp32")
check_config((1, 1, 1), "fp32")
### BEGIN HIDDEN TESTS
draw = grading.Draws("d")
for dtype in ("fp32", "fp16"):
    for limit in (40, 200, 1000, 5000, 9000):
        check_config(tuple(draw.integer(1, limit) for _ in "mnk"), dtype)
    check_config(tuple(draw.integer(1024, 9000) for _ in "mnk"), dtype)
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# **Say why.** Answer in three to six sentences. For (4096, 4096, 4096) in fp32, how many bytes of shared memory and how
# many accumulators per thread does your choice need? What do the two become if only TILE_M and TILE_N are doubled, and
# which of rules 2 and 3 still hold then? What would you lose with tiles half as large? A person reads your answer; it
# gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "d-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d-why", "role": "written", "needs": ["setup"], "title": "Say why"}
# ### BEGIN SOLUTION
# #: *Your answer*
# 64 x 64 x 32 with three stages takes 3 x (64 + 64) x 32 x 4 bytes = 48 KiB of shared memory, which fits the 64 KiB of
# the T4 and so all three chips. Four warps are 128 threads, so each holds 64 x 64 / 128 = 32 accumulators. With 128 x
# 128 neither rule holds: 96 KiB exceed the T4's shared memory, so TILE_K or the stages must shrink, and 128
# accumulators per thread are twice what compiles without spills, so it takes eight warps. With 32 x 32 each loaded
# byte serves 8 FLOPs instead of 16, so twice as many bytes move and DRAM or L2 would limit the kernel; there would be
# four times as many programs, which helps only where 64 x 64 leaves some of the chip without work.
# ### END SOLUTION

# %% [markdown]
# ## e. The race (GPU)
#
# `grading.speed` runs your `matmul_kernel` with your `config` and compares every element with the library's product.
# Then it times the two in turn, for several rounds: yours, the library's, the library's, yours. A GPU that warms up or
# slows down then does so for both. Here the comparison is with NVIDIA's library, in full float32. When the lab is
# graded, your kernel runs against a plain Triton kernel that the lab's authors wrote, on the same GPU, in the same run.
# You get all the points if you reach 0.8 of that kernel's speed or more, none below 0.1, and part of them in between.
# The notebook uses the same scale with the library, which is the harder opponent, so the notebook is more likely to
# show too few points than too many.
#
# The arguments are the kernel and the config, not `tiled_matmul`: only the work on the GPU is timed.
#
# Without a GPU the cell compiles your kernel with your config, says what it needs, and ends with `NeedsGpu`; the
# points stay open until you run it on one.
#
# To go faster, change one thing at a time, and predict its effect before you run it. With a GPU, you can race any
# config in a cell of your own:
#
# ```
# trial = config(RACES[0], "fp32") | {"TILE_K": 16, "num_stages": 4}
# options = {"shapes": RACES, "inputs": matmul_inputs, "launch": launch_matmul, "expected": torch.matmul}
# print(grading.speed(matmul_kernel, lambda shape, dtype: trial, **options))
# ```
#
# First change the tile sizes: on an H200 (Triton 3.6, matrices of 2048 x 2048) tiles of 16 x 16, 32 x 32 and 64 x 64
# with 4 warps reached 0.28, 0.57 and 0.81 of the library's speed. Then change `TILE_K`, `num_stages` and `num_warps`.
# Last, change the **order of the programs**; `GROUP_M` is there for that. The order matters when DRAM is the limit, and
# the challenge below is closer to that limit. On that H200, in float32, the order made no difference. Can you say why?
# (The end of Hint 1 has the answer.) A changed order must still reach every tile exactly once: the cell before the race
# checks that, with more rows of tiles than two groups have.
#
# The second race has ragged shapes. The rows begin at addresses that are not multiples of 16 bytes, so a thread loads
# its numbers one by one, and every load is masked. On that H200 the kernel of question c with tiles of 64 x 64 x 32
# reached 0.63 in this race. A `TILE_K` of 16 raised it to 0.73. A loop over the whole steps, which needs no mask along
# k, followed by the last partial step, raised it to 0.78.
#
# <details><summary>Hint 1: what the order of programs has to do with DRAM</summary>
# A GPU runs about a hundred programs at a time, in the order of their numbers. If these programs compute one long row
# of tiles of C, they need one band of A and very many bands of B. If they compute a square block of tiles, they need
# few bands of each, and the L2 cache holds them. At 2048 x 2048 in float32, the L2 cache of an H200 holds all of A and
# B, so the order does not matter.
# </details>
# <details><summary>Hint 2</summary>
# Divide the rows of tiles into groups of GROUP_M. Number the tiles within a group column by column: GROUP_M tiles down,
# then the next column. After the last column comes the next group. The last group may have fewer rows.
# </details>
# <details><summary>Hint 3</summary>
# <code>group = p // (GROUP_M * tiles_n)</code>; <code>rows_in_group = min(tiles_m - group * GROUP_M, GROUP_M)</code>;
# within the group, <code>q = p % (GROUP_M * tiles_n)</code>, the row is <code>group * GROUP_M + q %
# rows_in_group</code> and the column <code>q // rows_in_group</code>. (<code>min</code> of two numbers works in a
# kernel.) Afterwards run the next cells and the tests of question c.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "setup"}
def matmul_inputs(draw, shape, dtype):
    """Return a random A and B for shape (m, n, k)."""
    m, n, k = shape
    torch_dtype = {"fp32": "float32", "fp16": "float16"}[dtype]
    return draw.matrix(m, k, dtype=torch_dtype), draw.matrix(k, n, dtype=torch_dtype)


def matmul_op(shape, dtype):
    """Return the operation for shape (m, n, k); no kernel can be faster than the GPU does its arithmetic."""
    m, n, k = shape
    return ops.matmul(m=m, n=n, k=k, dtype=dtype)


RACES = [(2048, 2048, 2048), (1537, 2049, 513)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None

# %%
# Is the order of the programs right? Two and a half groups of rows of tiles: the last group is smaller than the others.
chosen = config(RACES[0], "fp32") | {"TILE_M": 16, "TILE_N": 16, "TILE_K": 16}
for group in (3, chosen["GROUP_M"]):
    a, b = torch.randn(40 * group - 3, 20, device=DEVICE), torch.randn(20, 40, device=DEVICE)
    what = f"matmul_kernel with GROUP_M = {group} and {triton.cdiv(len(a), 16)} rows of tiles"
    right = (a.double() @ b.double()).float()
    constants = chosen | {"GROUP_M": group}
    grading.check_kernel(matmul_kernel, constants, [a, b], right, launch=launch_matmul, what=what, tile=(16, 16))


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "e-speed", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "speed", "needs": ["setup", "c", "d"], "device": "gpu", "title": "The race"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    left_ptr, right_ptr, out_ptr, M, N, K, am, ak, bk, bn, cm, cn,
    GROUP_M: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    across = tl.cdiv(N, TILE_N)
    number = tl.program_id(0)
    group = number // (GROUP_M * across)
    first = group * GROUP_M
    high = min(tl.cdiv(M, TILE_M) - first, GROUP_M)
    within = number % (GROUP_M * across)
    i = ((first + within % high) * TILE_M + tl.arange(0, TILE_M)).to(tl.int64)
    j = (within // high * TILE_N + tl.arange(0, TILE_N)).to(tl.int64)
    depth = tl.arange(0, TILE_K)
    left = left_ptr + i[:, None] * am + depth[None, :] * ak
    right = right_ptr + depth[:, None] * bk + j[None, :] * bn
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for start in range(0, K, TILE_K):
        x = tl.load(left, mask=(i[:, None] < M) & (depth[None, :] < K - start), other=0.0)
        y = tl.load(right, mask=(depth[:, None] < K - start) & (j[None, :] < N), other=0.0)
        total = tl.dot(x, y, total, input_precision="ieee")
        left += TILE_K * ak
        right += TILE_K * bk
    out = out_ptr + i[:, None] * cm + j[None, :] * cn
    tl.store(out, total.to(out_ptr.dtype.element_ty), mask=(i[:, None] < M) & (j[None, :] < N))


def reference_config(shape, dtype):
    return {"TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "GROUP_M": 8, "num_warps": 4, "num_stages": 3}


rival = (reference_kernel, reference_config)
### END HIDDEN TESTS
race = grading.speed(
    matmul_kernel,
    config,
    shapes=RACES,
    inputs=matmul_inputs,
    launch=launch_matmul,
    expected=torch.matmul,
    reference=rival,
    op=matmul_op,
)
scorecard.passed("e", race.fraction)
race

# %% [markdown]
# ## Challenge: tensor cores (GPU, compute capability 8.0 or more)
#
# Recent GPUs have **tensor cores**, units that multiply small matrices of 16-bit numbers and add in float32, many times
# faster than the ordinary arithmetic that you have used so far. `tl.dot` uses them automatically when its inputs are
# float16. You need an A100, an L4, an H100 or the like. Since version 3.3, Triton does not generate tensor-core code
# for the T4 at all, so if you have a T4, leave these 5 points to the end.
#
# Write `tensor_kernel`, which keeps the contract of question c for float16 inputs (it may be `matmul_kernel` itself),
# and a `tensor_config` for it. The comparison is with NVIDIA's library in float16, here and when the lab is graded, on
# the scale of question e. If your tiles should depend on the device, call `torch.cuda.get_device_capability()`: (8, 0)
# is an A100 and (9, 0) an H100, whose shared memory is in `SHARED_MEMORY`, and (8, 9) is an L4, which has 99 KiB. Call
# it only if `DEVICE` is `"cuda"`: the tests call `tensor_config` without a GPU too, and it must then return a dict.
#
# Once that is fast, `launch_tensor` lets you try two more things, which make the difference between a good kernel and
# the library. On an H200, at 4096 x 4096, one program per tile reached 0.96 of the library's speed in float16. The two
# together reached 1.00 in bf16, another 16-bit format:
#
# - A **persistent** kernel: if the dict has `"PROGRAMS"`, at most that many programs start, and each computes one tile
#   after the other, `for p in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True)`. With about one
#   program per multiprocessor, the loads of the next tile can begin while this one is multiplied and stored.
# - **Tensor descriptors** (compute capability 9.0): `tl.make_tensor_descriptor(a_ptr, [M, K], [stride_am, 1], [TILE_M,
#   TILE_K])` describes A once; `.load([row, k])` then makes the TMA load a whole tile, with zeros past the
#   edges. Rows must be contiguous and begin at multiples of 16 bytes.
#
# <details><summary>Hint 1</summary>
# The arithmetic is now about ten times faster, and DRAM is not. How did the tile size affect the FLOPs per byte?
# </details>
# <details><summary>Hint 2</summary>
# The accumulators of a tensor-core product can use 128 registers per thread without harm. And you may use the shared
# memory of your own device, not only that of the smallest one.
# </details>
# <details><summary>Hint 3</summary>
# Begin with 128 x 128 x 64, 8 warps, 3 stages. By the formula of question d, 128 x 256 x 64 fits an A100 with 3 stages
# and an H100 with 4, so try that next. Let the programs that run together form a square block of tiles, as in the hints
# of question e.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "setup"}
def launch_tensor(kernel, constants, c, a, b):
    """Launch as launch_matmul does, with at most PROGRAMS programs if the config has that, and room for descriptors."""
    (M, K), N = a.shape, b.shape[1]
    tiles = triton.cdiv(M, constants["TILE_M"]) * triton.cdiv(N, constants["TILE_N"])
    named = {name: value for name, value in constants.items() if name != "PROGRAMS"}
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device=c.device, dtype=torch.int8))
    strides = (*a.stride(), *b.stride(), *c.stride())
    kernel[(min(tiles, constants.get("PROGRAMS", tiles)),)](a, b, c, M, N, K, *strides, **named)


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup", "c"], "title": "Challenge: tensor cores"}
### BEGIN SOLUTION
#: tensor_kernel = matmul_kernel
#:
#:
#: def tensor_config(shape, dtype):
#:     raise NotImplementedError("tensor_config")
tensor_kernel = matmul_kernel


def tensor_config(shape, dtype):
    return {"TILE_M": 128, "TILE_N": 256, "TILE_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 4}


### END SOLUTION

# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "challenge-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "speed", "needs": ["setup", "c"], "device": "gpu"}
tensor_race = grading.speed(
    tensor_kernel,
    tensor_config,
    shapes=[(4096, 4096, 4096)],
    inputs=matmul_inputs,
    launch=launch_tensor,
    expected=torch.matmul,
    dtype="fp16",
    capability=(8, 0),
    op=matmul_op,
)


def check_tensor_kernel(shape):
    """Compare tensor_kernel, with its config, with a product in float64."""
    a, b = matmul_inputs(grading.Draws("challenge", DEVICE), shape, "fp16")
    right = (a.double() @ b.double()).half()
    constants = tensor_config(shape, "fp16")
    what = f"tensor_kernel for {shape}, {constants}"
    grading.check_kernel(tensor_kernel, constants, [a, b], right, launch=launch_tensor, what=what)


# Sides that tiles do not divide, with rows that begin at multiples of 16 bytes, as tensor descriptors ask.
check_tensor_kernel((200, 328, 136))
### BEGIN HIDDEN TESTS
sides = grading.Draws("challenge sides")
check_tensor_kernel(tuple(8 * sides.ragged(10, 60, tile=2) for _ in "mnk"))
### END HIDDEN TESTS
scorecard.passed("challenge", tensor_race.fraction)
tensor_race

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# A formula is a prediction, and the replay of question b is a kind of measurement, because it follows every tile. Here
# are three cases where the two differ.


# %%
def show_gap(case, predicted, counted):
    ratio = counted / predicted
    print(f"{case}: predicted {predicted / 1e6:5.2f} MB, counted {counted / 1e6:5.2f} MB, {ratio:.2f} times as much")


# 1. Tiles of 64 x 64 as in question a, replayed in a memory of 1 MiB, where one program's three tiles take 48 KiB.
counted = traffic.tiled_matmul(512, 512, 512, 64, 64, 64, memory_bytes=2**20).total_bytes
show_gap("case 1", tiled_bytes(512, 512, 512, 64, 64, 4), counted)

# 2. The rule of thumb "a tile of T divides the reads by T", (2 m n k / T + m n) elements, for 130 x 130 and T = 64.
counted = traffic.tiled_matmul(130, 130, 130, 64, 64, 32, memory_bytes=2**15).total_bytes
show_gap("case 2", (2 * 130**3 / 64 + 130**2) * 4, counted)

# 3. The formula of question a; the replay has the loop over k outside: for p: for i: for j: C[i, j] += A[i, p] B[p, j].
counted = traffic.tiled_matmul(512, 512, 512, 64, 64, 64, memory_bytes=48 * 1024, order="kmn").total_bytes
show_gap("case 3", tiled_bytes(512, 512, 512, 64, 64, 4), counted)

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"neighbors"`: tiles that one program has used are still in the memory when a later program needs them.
# - `"edges"`: a narrow tile at the edge costs another whole pass over the other matrix.
# - `"sums"`: unfinished sums are pushed out of the memory, written to DRAM, and read again later.
# - `"writes"`: the prediction left out the bytes of C that are written once at the end.
# - `"latency"`: a byte takes longer to arrive than the bandwidth suggests.
#
# <details><summary>Hint 1</summary>
# If fewer bytes moved than predicted, something must have been on the chip already. Print <code>.read</code> and
# <code>.written</code> of the replay: which operand differs from the prediction?
# </details>
# <details><summary>Hint 2</summary>
# Case 2: how many columns of tiles do 130 columns need, and how many would 128 need? Case 3: how often is one tile of C
# visited, and what happens between two visits?
# </details>
# <details><summary>Hint 3</summary>
# Two of the five causes are not right for any of the three cases: a count of bytes says nothing about time, and all
# three predictions include m n for C.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and count differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
cause_1 = "neighbors"
cause_2 = "edges"
cause_3 = "sums"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the five")
    choices = ("neighbors", "edges", "sums", "writes", "latency")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("neighbors", "edges", "sums")
for number, (cause, right) in enumerate(zip((cause_1, cause_2, cause_3), key, strict=True), start=1):
    assert cause == right, f"cause_{number}: {cause!r} does not make this gap; compare reads and writes per operand"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted and measured:

# %%
untiled = traffic.untiled(1024, 1024, 1024).total_bytes
tiled = traffic.tiled_matmul(1024, 1024, 1024, 64, 64, 64, memory_bytes=48 * 1024).total_bytes
small, large = (traffic.best_schedule(1024, 1024, 1024, memory_bytes=2**x).traffic.total_bytes for x in (14, 16))
grading.compare(
    predictions,
    saves_by_tile=untiled / tiled,
    saves_by_memory=small / large,
    cost_of_two_more=tiled_bytes(130, 130, 130, 64, 64, 4) / tiled_bytes(128, 128, 128, 64, 64, 4),
    share_of_library=race.pairs[RACES[0]].ratio if "race" in globals() else None,
)

# %% [markdown]
# Four times the memory about halves the traffic: the tile of C has four times the elements, so its side is twice as
# long, and twice the side means half the traffic. Each further halving needs four times as much memory again, so saving
# bandwidth with on-chip memory becomes more expensive every time.
#
# The **roofline** shows how fast a kernel with a given number of FLOPs per byte of DRAM traffic can be at most. Under
# the sloping line memory is the limit; under the flat line arithmetic is. The points are your own counts from question
# a.

# %%
from dataclasses import replace

from mlsys import measure
from mlsys.roofline import Roofline

m, n, k = shape = (2048, 2048, 2048)
chosen = config(shape, "fp32")
kernels = {"untiled": untiled_bytes(m, n, k, 4)}
kernels |= {f"tiles of {tile}": tiled_bytes(m, n, k, tile, tile, 4) for tile in (16, 32, 128)}
kernels[f"yours, {chosen['TILE_M']} x {chosen['TILE_N']}"] = tiled_bytes(m, n, k, chosen["TILE_M"], chosen["TILE_N"], 4)
product = ops.matmul(m=m, n=n, k=k, dtype="fp32")
points = [replace(product, name=name, read_count=moved - product.write_count) for name, moved in kernels.items()]
if DEVICE == "cuda":
    roofline = Roofline.measured(measure.measure_ceilings(), "fp32")
else:
    roofline = Roofline.of(Hardware.get("t4"), "fp32")
axes = roofline.plot(points)
if DEVICE == "cuda":
    measured = product.flop_count / race.pairs[shape].candidate_s / 1e12  # TFLOP/s
    star = {"markersize": 14, "color": axes.lines[-1].get_color(), "label": "yours, measured"}
    axes.plot(points[-1].intensity.m_as("flop/byte"), measured, "*", **star)
    axes.legend(loc="lower right", fontsize=9)

# %% [markdown]
# A point on the slope means that, by this count, only DRAM keeps the kernel from being faster. A measured kernel (the
# star, if you have a GPU) can be higher than the slope allows, because the L2 cache holds what neighboring programs
# share (case 1).
#
# Last, check that your kernel runs with your config, and see your points.

# %%
a, b = torch.randn(100, 70, device=DEVICE), torch.randn(70, 90, device=DEVICE)
c = torch.full((100, 90), float("nan"), device=DEVICE)
launch_matmul(matmul_kernel, config((100, 90, 70), "fp32"), c, a, b)
grading.assert_close(c, (a.double() @ b.double()).float(), what="your kernel with your config")
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
