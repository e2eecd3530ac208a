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
#     lab: access
#     version: "1"
#     withheld: [mlsys.traffic]
# ---

# %% mlsys={"role": "variants"}
from mlsys.course.term import drawn

# Predictions and question a: the patterns.
TERM_COLUMN = drawn(1000, 1200, 900, 1500)
TERM_SHIFT = drawn(1, 3, 6, 2)
TERM_SHIFT_BYTES = 4 * TERM_SHIFT
TERM_EVERY, TERM_EVERY_SAID = drawn((2, "every other"), (3, "every third"), (5, "every fifth"), (6, "every sixth"))
TERM_EVERY_SECTORS = len({4 * TERM_EVERY * lane // 32 for lane in range(32)})
TERM_WIDE, TERM_WIDE_SAID, TERM_WIDE_ELEMENTS = drawn(
    (16, "fours", "elements 4 i to 4 i + 3 at once, of 4 bytes each"),
    (8, "pairs", "elements 2 i and 2 i + 1 at once, of 4 bytes each"),
)
TERM_WIDE_SECTORS = TERM_WIDE

# Questions c and g: which dimension of the grid goes down x.
TERM_ROW_AXIS, TERM_COL_AXIS, TERM_ROW_PROGRAM, TERM_COL_PROGRAM, TERM_GRID, TERM_NAIVE_GRID = drawn(
    (0, 1, "p", "q", "down, across", "5, 1"), (1, 0, "q", "p", "across, down", "1, 5")
)

# Question d: where rows shall begin.
TERM_LINE, TERM_LINE_SAID = drawn(
    (32, "on a sector"), (128, "at a multiple of 128 bytes, a line of the cache"), (64, "at a multiple of 64 bytes")
)
TERM_PADDED_1001, TERM_PADDED_1000, TERM_PADDED_17 = (
    -(-cols * size // TERM_LINE) * TERM_LINE // size for cols, size in ((1001, 4), (1000, 4), (17, 2))
)

# Question e: what is added up.
LOADED = "tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)"
TERM_SUM_SAID, TERM_ADD_UP, TERM_ADDED, TERM_SUM, TERM_RIGHT_SUM = drawn(
    ("sum over all channels c of x[n, p, c]", f"total += {LOADED}", "value", "tl.sum(total, 1)", "x.double().sum(2)"),
    (
        "sum over all channels c of the square of x[n, p, c]",
        f"value = {LOADED}\ntotal += value * value",
        "value * value",
        "tl.sum(total, 1)",
        "x.double().square().sum(2)",
    ),
    (
        "mean over all channels c of x[n, p, c]",
        f"total += {LOADED}",
        "value",
        "tl.sum(total, 1) / channels",
        "x.double().mean(2)",
    ),
)
TERM_DIVISOR = "channels" if "mean" in TERM_SUM_SAID else "1"

# Question f and the challenge: which dimension of the grid goes along the bags.
TERM_BAG_AXIS, TERM_BLOCK_AXIS, TERM_BAG_PROGRAM, TERM_BAG_GRID = drawn(
    (0, 1, "(b, q)", "bags, blocks"), (1, 0, "(q, b)", "blocks, bags")
)

# Gap: the order of the cases.
GAPS = {
    "sectors": """# NTH. Read every fourth number of a long vector; the prediction counts the numbers that are used, 4 bytes each.
print(f"case NTH: predicted {predicted_us(4 * NUMBERS):8.1f}, measured {STRIDED_US[4]:8.1f}")""",
    "fetch": """# NTH. Read every 16th number; the prediction counts a whole sector of 32 bytes for each number.
print(f"case NTH: predicted {predicted_us(32 * NUMBERS):8.1f}, measured {STRIDED_US[16]:8.1f}")""",
    "passes": """# NTH. Fetch the rows of all bags with table[index], then add up each bag; the prediction counts the rows once, the
#    indices of 8 bytes, and the sums.
fetched = BAGS["bags"] * BAGS["rows per bag"]
once = fetched * (4 * BAGS["dim"] + 8) + 4 * BAGS["bags"] * BAGS["dim"]
print(f"case NTH: predicted {predicted_us(once):8.1f}, measured {GATHER_THEN_SUM_US:8.1f}")""",
    "cache": """# NTH. Copy 12 MiB to another 12 MiB, again and again.
print(f"case NTH: predicted {predicted_us(24 * 2**20):8.2f}, measured {SMALL_COPY_US:8.2f}")""",
}
TERM_CAUSE_1, TERM_CAUSE_2, TERM_CAUSE_3, TERM_CAUSE_4 = causes = drawn(
    ("sectors", "fetch", "passes", "cache"),
    ("passes", "sectors", "cache", "fetch"),
    ("cache", "passes", "fetch", "sectors"),
    ("fetch", "cache", "sectors", "passes"),
)
TERM_GAPS = "\n".join(GAPS[cause].replace("NTH", str(number)) for number, cause in enumerate(causes, start=1))
TERM_CASE_FETCH, TERM_CASE_PASSES = causes.index("fetch") + 1, causes.index("passes") + 1

# %% [markdown]
# # Memory access
#
# Two kernels for a matrix product read the same numbers and do the same arithmetic. On an H200, one of them takes ten
# times as long as the other. The only difference is the order in which they go through memory.
#
# A GPU does not move single numbers. It moves pieces of a fixed size, and it loads for 32 threads at a time. Whether a
# piece is used whole depends on where these 32 threads look: on the layout of the data, and on your indices.
#
# **The question of this lab: how many bytes really move when a kernel asks for some, and how do you arrange data and
# lanes so that none of them is wasted?**
#
# You will predict, write, check, measure, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess six numbers | compared with the truth at the end |
# | a | count what a warp moves | eight counts by hand, and a function |
# | b | transpose a tile, lane by lane | a schedule of integers, replayed access by access |
# | c | transpose a matrix in any layout | a kernel, and what the compiler made of it |
# | d | align rows and pad them | three functions about the width of loads |
# | e | sum over channels, channels first and last | strides, counts and a kernel |
# | f | fetch rows of a table and add them up | a count, and an embedding-bag kernel |
# | g (GPU) | race your transpose | a share of a reference kernel's speed |
# | challenge | the backward pass of the embedding bag | a kernel that scatters |
# | gap | explain why prediction and measurement differ | four causes |
#
# Plan for three to four hours. You need Python, and you should have written a kernel with a mask before, for instance in
# the lab on first kernels. Without a GPU you can finish everything except the question marked (GPU). Hints cost no
# points: each question has three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None`, `pass` or "Your answer". You may add cells.
# Read the test cells, and run them as often as you like. When the lab is graded, the original versions of these cells
# run, with more shapes and values. Do the counting yourself: `mlsys.traffic` contains such counts, so it is removed from
# the package when the lab is graded, and an answer that calls it ends in an error. To look around in cells of your own,
# you may use it.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import grading, measure, viz
from mlsys.grading.compiler_report import compiler_report
from mlsys.grading.replays import tile_transpose

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl

scorecard = grading.Scorecard(
    {
        "a": 10, "b": 15, "c": 15, "d": 10, "e": 15, "e-why": 5,
        "f": 15, "g": 5, "challenge": 5, "gap": 5,
    },
    gpu=["g"],
    read=["e-why"],
)  # fmt: skip

# %% [markdown]
# ## What a warp moves
#
# A GPU runs threads in groups of 32, the **warps**. The 32 threads of a warp are its **lanes**. When a warp executes a
# load, each lane brings an address of its own, and all 32 requests are served together.
#
# Device memory, with the L2 cache in front of it, hands out **sectors** of 32 bytes. A sector begins at a multiple of 32
# bytes. A load touches every sector in which some lane needs a byte, and each of these sectors moves whole, once for the
# whole warp. Stores work in the same way.
#
# ```
# bytes      0               32              64              96              128
#            |   sector 0    |   sector 1    |   sector 2    |   sector 3    |
# neighbors  0 1 2 3 4 5 6 7   8 9 ...                        ... 30 31          4 sectors for 32 lanes
# far apart  0                             (a sector for lane 1 alone) ...      32 sectors for 32 lanes
# ```
#
# If neighboring lanes read neighboring addresses, the access is **coalesced**: all the bytes that move are used.
#
# ## Predictions
#
# Before any counting, note what you expect; a guess will do. You are not graded on how close you come. The point is to
# have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the time. If
# you run it again, the new numbers replace the old ones, and the end of the lab compares the last ones. So leave the
# cell alone once you have gone on.
#
# 1. `column_sectors`: a float32 matrix has TERM_COLUMN columns and is stored row by row. The 32 lanes of a warp read 32
#    elements of one *column*, one below the other. How many sectors move?
# 2. `shifted_sectors`: the lanes read 32 neighboring float32 numbers, but the first one begins TERM_SHIFT_BYTES bytes
#    behind a multiple of 32. How many sectors move?
# 3. `column_passes`: shared memory, on the chip, has 32 banks, and each delivers 4 bytes per pass. A float32 tile of 32 x
#    32 is stored there row by row: one row fills all the banks once. How many passes does it take to read one *column*
#    of the tile?
# 4. `channels_last`: an image has 64 channels of float16 numbers. The lanes read *one channel* of 32 neighboring pixels.
#    How many *times* as many sectors move if the channels of a pixel are neighbors in memory as if the pixels of a
#    channel are?
# 5. `stride_16`: a kernel reads every 16th number of a long float32 vector, another one every 8th number of a vector
#    half as long, so both read equally many numbers. How many *times* as long does the first one take on an H200?
# 6. `share_of_copy`: what share of the speed of a plain copy of the same matrix will your transpose reach? Give a number
#    such as 0.1, 0.5 or 1. (The notebook measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: column_sectors = None
#: shifted_sectors = None
#: column_passes = None
#: channels_last = None
#: stride_16 = None
#: share_of_copy = None
column_sectors = 32
shifted_sectors = 5
column_passes = 32
channels_last = 16
stride_16 = 1
share_of_copy = 0.9
### END SOLUTION
predictions = grading.seal(
    column_sectors=column_sectors,
    shifted_sectors=shifted_sectors,
    column_passes=column_passes,
    channels_last=channels_last,
    stride_16=stride_16,
    share_of_copy=share_of_copy,
)

# %% [markdown]
# ## a. Count what a warp moves
#
# Here are eight patterns. Lane i of 32 reads the element that the middle column names; element 0 begins at address 0.
#
# | name | lane i reads | bytes per lane |
# |---|---|---|
# | `"neighbors"` | element i | 4 |
# | `"shifted"` | element i + TERM_SHIFT | 4 |
# | `"TERM_EVERY_SAID"` | element TERM_EVERY i | 4 |
# | `"a column"` | element TERM_COLUMN i | 4 |
# | `"backwards"` | element 31 - i | 4 |
# | `"all the same"` | element 5 | 4 |
# | `"halves"` | element i | 2 |
# | `"TERM_WIDE_SAID"` | TERM_WIDE_ELEMENTS | TERM_WIDE |
#
# 1. Fill in `by_hand`: how many sectors move for each pattern? Do it on paper.
# 2. Write `sectors(addresses, element_bytes)`: the same for any pattern. `addresses` is a list with the byte address at
#    which each active lane begins to read, and every lane reads `element_bytes` bytes from there. Lanes that a mask
#    switches off are not in the list. Return a plain int.
#
# The visible test compares your function with known counts, and your hand with your function. When the lab is graded,
# the judge replays both. You may use `sectors` in questions d, e and f.
#
# <details><summary>Hint 1</summary>
# Which sector does byte 70 belong to? A sector that several lanes need moves only once.
# </details>
# <details><summary>Hint 2</summary>
# Byte b is in sector <code>b // 32</code>. Collect the sectors in a set. A lane that reads more than one byte may need
# two sectors: try 16 bytes from address 24 on.
# </details>
# <details><summary>Hint 3</summary>
# <code>{byte // 32 for start in addresses for byte in range(start, start + element_bytes)}</code> is the set. By hand:
# 32 lanes of 4 bytes side by side are 128 bytes; beginning at byte TERM_SHIFT_BYTES they end behind byte 128.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
PATTERNS = {  # name: the lanes' addresses, bytes per lane
    "neighbors": ([4 * lane for lane in range(32)], 4),
    "shifted": ([4 * (lane + TERM_SHIFT) for lane in range(32)], 4),
    "TERM_EVERY_SAID": ([4 * TERM_EVERY * lane for lane in range(32)], 4),
    "a column": ([4 * TERM_COLUMN * lane for lane in range(32)], 4),
    "backwards": ([4 * (31 - lane) for lane in range(32)], 4),
    "all the same": ([4 * 5] * 32, 4),
    "halves": ([2 * lane for lane in range(32)], 2),
    "TERM_WIDE_SAID": ([TERM_WIDE * lane for lane in range(32)], TERM_WIDE),
}

# %% nbgrader={"grade": false, "grade_id": "a-sectors", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count what a warp moves"}
by_hand = {
    ### BEGIN SOLUTION
    #: "neighbors": None,
    #: "shifted": None,
    #: "TERM_EVERY_SAID": None,
    #: "a column": None,
    #: "backwards": None,
    #: "all the same": None,
    #: "halves": None,
    #: "TERM_WIDE_SAID": None,
    "neighbors": 4,
    "shifted": 5,
    "TERM_EVERY_SAID": TERM_EVERY_SECTORS,
    "a column": 32,
    "backwards": 4,
    "all the same": 1,
    "halves": 2,
    "TERM_WIDE_SAID": TERM_WIDE_SECTORS,
    ### END SOLUTION
}


def sectors(addresses, element_bytes):
    """Return how many 32-byte sectors move."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("sectors")
    touched = set()
    for start in addresses:
        touched.update(range(start // 32, (start + element_bytes - 1) // 32 + 1))
    return len(touched)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
grading.assert_equal(sectors([0], 4), 1, what="sectors([0], 4)")
grading.assert_equal(sectors([0], 32), 1, what="sectors([0], 32), which ends where a sector ends")
grading.assert_equal(sectors([0, 31, 32], 1), 2, what="sectors([0, 31, 32], 1)")
grading.assert_equal(sectors(list(range(0, 32 * 128, 128)), 4), 32, what="sectors of 32 lanes, 128 bytes apart")
grading.assert_equal(sectors([24], 16), 2, what="sectors([24], 16), which crosses from one sector to the next")
grading.assert_equal(sectors([0, 64, 0, 64], 4), 2, what="sectors([0, 64, 0, 64], 4)")
grading.assert_equal(sectors([100], 64), 3, what="sectors([100], 64)")
for name, (addresses, width) in PATTERNS.items():
    if by_hand[name] is None:
        raise NotImplementedError(f"by_hand[{name!r}] is still None")
    assert type(by_hand[name]) is int, f"by_hand[{name!r}] is {by_hand[name]!r}; it must be an int"
    counted = sectors(addresses, width)
    assert by_hand[name] == counted, f"by_hand[{name!r}] is {by_hand[name]}, but your function counts {counted}"
### BEGIN HIDDEN TESTS
from mlsys.traffic.coalescing import warp_transactions

draw = grading.Draws("a")
for pattern, (lanes, size) in PATTERNS.items():
    replayed = warp_transactions(lanes, element_bytes=size).sectors
    assert by_hand[pattern] == replayed, f"by_hand[{pattern!r}]: {by_hand[pattern]} is not what the replay counts"
for width in (1, 2, 4, 8, 16):
    step = draw.integer(1, 60)
    regular = [draw.integer(0, 90) + step * lane for lane in range(draw.integer(2, 32))]
    anywhere = [draw.integer(0, 3000) for _ in range(draw.integer(2, 32))]
    for chosen in (regular, anywhere):
        replayed = warp_transactions(chosen, element_bytes=width).sectors
        grading.assert_equal(sectors(chosen, width), replayed, what=f"sectors of other lanes of {width} bytes")
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. Transpose a tile, lane by lane
#
# The **transpose** y of a matrix x has y[j, i] = x[i, j]. No arithmetic at all: it is access and nothing else. And it
# has a difficulty built in. If the lanes go along a row of x, their loads are coalesced, but the same 32 numbers form a
# *column* of y, so the stores touch 32 sectors. If they go down a column of x, it is the other way around.
#
# The way out is a detour through **shared memory**, a small memory on the chip that all threads of a block can use. A
# warp loads a tile of 32 x 32 numbers row by row and puts each number into a slot of shared memory. When the whole tile
# is there, it takes the numbers out in another order, and stores row by row of y.
#
# Shared memory has a rule of its own. It has 32 **banks**, and slot s belongs to bank s % 32. In one pass each bank
# serves one slot of 4 bytes. If several lanes need different slots of one bank, they take turns: this is a **bank
# conflict**. (In CUDA people avoid it with one unused slot at the end of each row. This is called **padding**.)
#
# You write down the transpose of one tile, for one warp, as integers. x is stored row by row with `stride_x` elements
# from one row to the next, and y with `stride_y`. Relative to the tile's first element, element (i, j) of the tile is
# number `i * stride_x + j` of x, and it goes to number `j * stride_y + i` of y. Elements have 4 bytes, both tiles begin
# on a sector, and both strides are multiples of 8.
#
# Write `tile_schedule(stride_x, stride_y)`. It returns a dict with three nested lists of plain ints:
#
# - `"loads"`: 32 lists, one per load; each has 32 numbers, lane by lane: which number of x the lane loads;
# - `"slots"`: 32 lists of 32; `["slots"][i][j]` is the slot of shared memory, from 0 to 1151, that holds element (i, j);
# - `"stores"`: 32 lists, one per store; each has 32 numbers, lane by lane: which number of y the lane stores.
#
# Every element of the tile must be loaded once and stored once. The test replays your schedule. Each load and each store
# must touch as few sectors as possible, and must need a single pass of shared memory: when the loaded numbers are put
# into their slots, and when the stored ones are taken out.
#
# <details><summary>Hint 1</summary>
# First the loads and the stores alone. Load number i can be row i of the tile. What is store number j? The replay
# complains about the banks next.
# </details>
# <details><summary>Hint 2</summary>
# With the slot <code>32 * i + j</code>, column j of the tile is in the slots j, 32 + j, 64 + j, and so on: all in bank j.
# How far apart must two rows begin so that the elements of a column are in 32 different banks?
# </details>
# <details><summary>Hint 3</summary>
# <code>33 * i + j</code>. The loads are <code>[[i * stride_x + j for j in range(32)] for i in range(32)]</code>; the
# stores have j outside and i inside.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-schedule", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "Transpose a tile, lane by lane"}
def tile_schedule(stride_x, stride_y):
    """Return which elements each lane loads and stores, and the slot of each element in between."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("tile_schedule")
    side = range(32)
    return {
        "loads": [[i * stride_x + j for j in side] for i in side],
        "slots": [[33 * i + j for j in side] for i in side],
        "stores": [[j * stride_y + i for i in side] for j in side],
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
def replay(stride_x, stride_y):
    """Replay the schedule for these strides."""
    tile_transpose.assert_tile_transpose(tile_schedule(stride_x, stride_y), stride_x, stride_y)


replay(32, 32)
replay(64, 96)
replay(1000, 40)
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for _ in range(4):
    replay(8 * draw.integer(4, 600), 8 * draw.integer(4, 600))
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. Transpose a matrix
#
# In Triton you write neither lanes nor slots. You write blocks, and the compiler chooses which thread holds which element
# of a block. It does so for each load and each store by itself: neighboring lanes go along the direction in which it
# *knows* that the addresses are neighbors. If a load and a store need different orders, the compiler moves the block
# through shared memory in between. So your choice is the shape of the block. Here is a transpose whose shape leaves the
# compiler no choice.


# %%
@triton.jit
def naive_transpose_kernel(
    x_ptr, y_ptr, rows, cols, stride_xr, stride_xc, stride_yr, stride_yc, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip # ROWS is 1: a program moves COLS numbers of one row of x
    row = tl.program_id(TERM_ROW_AXIS)
    col = tl.program_id(TERM_COL_AXIS) * COLS + tl.arange(0, COLS)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=col < cols, other=0.0)
    tl.store(y_ptr + row * stride_yc + col * stride_yr, x, mask=col < cols)


x = torch.arange(15.0, device=DEVICE).reshape(5, 3)
y = torch.empty(3, 5, device=DEVICE)
naive_transpose_kernel[(TERM_NAIVE_GRID)](x, y, *x.shape, *x.stride(), *y.stride(), ROWS=1, COLS=4)
y

# %% [markdown]
# The loads go along a row of x. The stores go down a column of y, whatever the compiler does: 32 lanes, 32 sectors.
#
# Write `transpose_kernel`: y[j, i] = x[i, j] for blocks of ROWS x COLS elements. The **contract**:
#
# - The grid has two dimensions. Program (p, q), that is `tl.program_id(0)` and `tl.program_id(1)`, moves ROWS rows of x
#   from row TERM_ROW_PROGRAM * ROWS on, and COLS columns from column TERM_COL_PROGRAM * COLS on.
# - x and y may have any strides, each its own. x has `rows` rows and `cols` columns; y has `cols` rows and `rows`
#   columns; `stride_yr` is the step from one *row of y* to the next.
# - x and y have the same dtype, float32 or float16. The kernel is right for all sizes from 1 up.
#
# The tests launch your kernel with bands of NaNs around every tensor; a NaN is a number that stands for "no number".
# Without a GPU, every load and store outside a tensor is reported with its line, program and lane. On a GPU, a store
# outside damages a band and is reported, and a load outside brings a NaN into the result. An element that no program
# writes also shows up as a NaN.
#
# <details><summary>Hint 1</summary>
# Element (i, j) of the block comes from row i and column j of x. Where in y does it go? No number changes, only the
# addresses do.
# </details>
# <details><summary>Hint 2</summary>
# <code>row = (tl.program_id(TERM_ROW_AXIS) * ROWS + tl.arange(0, ROWS))[:, None]</code> and <code>col = (...)[None,
# :]</code> combine to a block of addresses. The mask must test both. You need no <code>tl.trans</code>: the store may
# have a block of addresses that runs the other way.
# </details>
# <details><summary>Hint 3</summary>
# <code>tl.store(y_ptr + col * stride_yr + row * stride_yc, x, mask=inside)</code>, with the <code>x</code> of
# <code>tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_transpose(kernel, constants, y, x):
    """Launch one program per tile of x."""
    down, across = triton.cdiv(x.shape[0], constants["ROWS"]), triton.cdiv(x.shape[1], constants["COLS"])
    kernel[(TERM_GRID)](x, y, *x.shape, *x.stride(), *y.stride(), **constants)


def launch_transpose_turned(kernel, constants, y, x):
    """Launch with a result whose columns, not its rows, are contiguous."""
    turned = torch.empty_like(y.T, memory_format=torch.contiguous_format).T
    launch_transpose(kernel, constants, turned, x)
    y.copy_(turned)


def run(launch, kernel, constants, out, *inputs):
    """Launch a kernel with a fresh output like `out`, and return it."""
    out = torch.full_like(out, float("nan"))
    launch(kernel, constants, out, *inputs)
    return out


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "Transpose a matrix"}
@triton.jit
def transpose_kernel(
    x_ptr, y_ptr, rows, cols, stride_xr, stride_xc, stride_yr, stride_yc, ROWS: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    """Transpose one tile of ROWS x COLS elements per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    row = (tl.program_id(TERM_ROW_AXIS) * ROWS + tl.arange(0, ROWS))[:, None]
    col = (tl.program_id(TERM_COL_AXIS) * COLS + tl.arange(0, COLS))[None, :]
    inside = (row < rows) & (col < cols)
    x = tl.load(x_ptr + row * stride_xr + col * stride_xc, mask=inside, other=0.0)
    tl.store(y_ptr + col * stride_yr + row * stride_yc, x, mask=inside)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("transpose_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)


def check_transpose(x, what, tile=(16, 16), launch=launch_transpose):
    """Compare transpose_kernel with PyTorch's transpose."""
    constants = {"ROWS": tile[0], "COLS": tile[1]}
    what = f"transpose_kernel, {what}: x is {tuple(x.shape)}, {constants}"
    right, turned_tile = x.T.contiguous(), (tile[1], tile[0])
    grading.check_kernel(transpose_kernel, constants, [x], right, launch=launch, what=what, tile=turned_tile)


check_transpose(draw.matrix(16, 16), "one tile")
check_transpose(draw.matrix(32, 48), "2 x 3 tiles")
check_transpose(draw.matrix(21, 32), "rows ragged")
check_transpose(draw.matrix(16, 37), "columns ragged")
check_transpose(draw.matrix(1, 40), "one row")
check_transpose(draw.matrix(19, 1), "one column")
check_transpose(draw.matrix(21, 37, layout="column"), "x is a transposed view")
check_transpose(draw.matrix(21, 37, layout="sliced"), "x is a slice with gaps")
check_transpose(draw.matrix(21, 37, layout="offset"), "x is a window in a larger matrix")
check_transpose(draw.matrix(21, 37), "the result is a transposed view", launch=launch_transpose_turned)
check_transpose(draw.matrix(21, 70), "tiles that are not square", (8, 32))
check_transpose(draw.matrix(21, 37, dtype="float16"), "float16")
### BEGIN HIDDEN TESTS
for arrangement in ("row", "column", "sliced", "offset"):
    tall, wide = 2 ** draw.integer(2, 6), 2 ** draw.integer(2, 6)
    size = draw.ragged(1, 70, tile=tall), draw.ragged(1, 90, tile=wide)
    other = draw.matrix(*size, layout=arrangement, dtype=("float32", "float16")[draw.integer(0, 1)])
    check_transpose(other, f"strides {other.stride()}", (tall, wide))
    check_transpose(other, f"strides {other.stride()}, into a transposed view", (tall, wide), launch_transpose_turned)
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# **What did the compiler make of it?** The next cell compiles both kernels for an H100 and prints what they need. It
# needs no GPU and runs for about ten seconds. If your kernel does not compile, the cell ends with an error whose last
# lines say where and why.

# %%
given, turned = (torch.empty(shape, dtype=torch.float32, device="meta") for shape in ((1024, 2048), (2048, 1024)))
for kernel, constants in (
    (naive_transpose_kernel, {"ROWS": 1, "COLS": 1024, "num_warps": 4}),
    (transpose_kernel, {"ROWS": 32, "COLS": 32, "num_warps": 4}),
    (transpose_kernel, {"ROWS": 64, "COLS": 64, "num_warps": 8}),
):
    for report in compiler_report(kernel, [constants], turned, given, launch=launch_transpose, capabilities=[90]):
        print(f"{kernel.fn.__name__}: {report}")

# %% [markdown]
# Look at the shared memory. A tile of 32 x 32 float32 numbers has 4096 bytes, and that is all that the compiler uses for
# it. So it does *not* pad the tile: 32 rows of 33 would be 4224 bytes. It **swizzles** the tile: each row keeps its 32
# slots, and its elements are in another order in every row, so that those of one column fall into different banks. In
# question b, that is a slot such as `32 * i + (i ^ j)`, where `^` is the exclusive or. (Your schedule may use it too. Try
# it.)
#
# The compiler can do this because it knows the strides: Triton compiles a kernel anew where an argument is 1, and then
# it knows that neighbors along that direction are neighbors in memory.
#
# ## d. Aligned rows
#
# One instruction can load more than one number for a lane: 4, 8 or 16 bytes. **Vector loads** of 16 bytes need fewer
# instructions for the same bytes. There is a condition: an address of a 16-byte load must be a multiple of 16.
#
# For a float32 matrix with 4000 columns, Triton writes `ld.global.v4.b32` into the transpose: four numbers at once. For
# 4001 columns it writes `ld.global.b32`. Row 0 of that matrix begins at a multiple of 16 bytes, but row 1 does not, and
# one instruction must serve all rows. (Triton is careful: of an argument whose value it does not know, it only finds out
# whether 16 divides it. So it loads single numbers for 4004 columns too, although their rows are aligned.)
#
# **Padding** the rows in memory repairs the addresses: let every row begin a few elements later than it could, and leave
# the elements in between unused. The matrix keeps its columns, and its stride grows. (`torch.empty(rows, stride)[:,
# :cols]` is such a matrix.) A masked load needs more: with the mask `col < cols`, a wide load is possible only if its
# width divides cols too, or the last one of a row would be half inside.
#
# Write three functions. `first` is the byte address at which row 0 begins, strides and columns count elements, and
# everything is a plain int.
#
# - `vector_width(first, stride, element_bytes, per_thread)`: the number of elements in the widest load that fits every
#   row. It is a power of two, it is at most `per_thread`, the neighboring elements that a thread holds, and the load has
#   at most 16 bytes. Row r begins at byte `first + r * stride * element_bytes`. For every r, this address must be a
#   multiple of the size of the load.
# - `padded_stride(cols, element_bytes)`: the smallest stride of at least `cols` elements with which every row begins
#   TERM_LINE_SAID, if row 0 does. An element has 1, 2, 4, 8 or 16 bytes.
# - `row_sectors(row, cols, stride, element_bytes)`: how many sectors move when warps read row number `row` of a matrix
#   that begins at address 0, each lane one element. The first warp reads the first 32 elements of the row, the next one
#   the next 32, and so on; the last one may have fewer. Add up the sectors of all warps, also if two of them touch the
#   same sector.
#
# <details><summary>Hint 1</summary>
# If the address of row 0 and the step from row to row are both multiples of 16, so are the addresses of all rows.
# </details>
# <details><summary>Hint 2</summary>
# <code>vector_width</code>: begin with 1, and double as long as all the conditions hold for the doubled width.
# <code>padded_stride</code>: round the bytes of a row up to a multiple of TERM_LINE. <code>row_sectors</code>: the
# first byte and the last byte of a warp say which sectors it touches.
# </details>
# <details><summary>Hint 3</summary>
# The conditions for a width w: <code>w &lt;= per_thread</code>, <code>w * element_bytes &lt;= 16</code>, and both
# <code>first</code> and <code>stride * element_bytes</code> are divisible by <code>w * element_bytes</code>. A warp from
# byte <code>a</code> up to, but not including, byte <code>b</code> touches <code>(b - 1) // 32 - a // 32 + 1</code>
# sectors.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-functions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup", "a"], "title": "Aligned rows"}
def vector_width(first, stride, element_bytes, per_thread):
    """Return the number of elements in the widest load that fits every row."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("vector_width")
    width = 1
    while 2 * width <= per_thread and 2 * width * element_bytes <= 16:
        if first % (2 * width * element_bytes) or stride * element_bytes % (2 * width * element_bytes):
            break
        width *= 2
    return width
    ### END SOLUTION


def padded_stride(cols, element_bytes):
    """Return the smallest stride with which every row begins TERM_LINE_SAID."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("padded_stride")
    return -(-cols * element_bytes // TERM_LINE) * TERM_LINE // element_bytes
    ### END SOLUTION


def row_sectors(row, cols, stride, element_bytes):
    """Return the sectors of all warps that read one row."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("row_sectors")
    total = 0
    for start in range(0, cols, 32):
        begin = (row * stride + start) * element_bytes
        end = (row * stride + min(start + 32, cols)) * element_bytes
        total += (end - 1) // 32 - begin // 32 + 1
    return total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup", "a"]}
grading.assert_equal(vector_width(0, 4000, 4, 8), 4, what="vector_width(0, 4000, 4, 8)")
grading.assert_equal(vector_width(0, 4001, 4, 8), 1, what="vector_width(0, 4001, 4, 8)")
grading.assert_equal(vector_width(0, 4002, 4, 8), 2, what="vector_width(0, 4002, 4, 8)")
grading.assert_equal(vector_width(8, 4000, 4, 8), 2, what="vector_width(8, 4000, 4, 8), which begins at byte 8")
grading.assert_equal(vector_width(0, 4000, 4, 2), 2, what="vector_width(0, 4000, 4, 2), two elements per thread")
grading.assert_equal(vector_width(0, 4000, 2, 16), 8, what="vector_width(0, 4000, 2, 16)")
grading.assert_equal(padded_stride(1001, 4), TERM_PADDED_1001, what="padded_stride(1001, 4)")
grading.assert_equal(padded_stride(1000, 4), TERM_PADDED_1000, what="padded_stride(1000, 4)")
grading.assert_equal(padded_stride(17, 2), TERM_PADDED_17, what="padded_stride(17, 2)")
grading.assert_equal(row_sectors(0, 64, 64, 4), 8, what="row_sectors(0, 64, 64, 4)")
grading.assert_equal(row_sectors(1, 64, 65, 4), 10, what="row_sectors(1, 64, 65, 4)")
grading.assert_equal(row_sectors(2, 64, 65, 2), 6, what="row_sectors(2, 64, 65, 2)")
grading.assert_equal(row_sectors(3, 40, 40, 4), 5, what="row_sectors(3, 40, 40, 4), whose last warp has 8 lanes")
### BEGIN HIDDEN TESTS
from mlsys.traffic.coalescing import strided_addresses, warp_transactions

draw = grading.Draws("d")
for size in (1, 2, 4, 8, 16):
    for _ in range(3):
        across, held = draw.integer(1, 300), 2 ** draw.integer(0, 5)
        origin, step = size * 2 ** draw.integer(0, 5), 2 ** draw.integer(0, 5) * draw.integer(1, 40)
        fits = [
            lanes
            for lanes in (1, 2, 4, 8, 16)
            if lanes <= held
            and lanes * size <= 16
            and not any((origin + number * step * size) % (lanes * size) for number in range(32))
        ]
        found = vector_width(origin, step, size, held)
        grading.assert_equal(found, max(fits), what=f"vector_width for other rows of {size}-byte elements")
        pitch = next(wide for wide in range(across, across + TERM_LINE + 1) if wide * size % TERM_LINE == 0)
        grading.assert_equal(padded_stride(across, size), pitch, what=f"padded_stride for {size}-byte elements")
        number, wide = draw.integer(0, 20), across + draw.integer(0, 9)
        replayed = 0
        for left in range(0, across, 32):
            lanes, base = min(32, across - left), number * wide + left
            there = strided_addresses(stride=1, element_bytes=size, lanes=lanes, base=base)
            replayed += warp_transactions(there, element_bytes=size).sectors
        found = row_sectors(number, across, wide, size)
        grading.assert_equal(found, replayed, what=f"row_sectors for other rows of {size}-byte elements")
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# What does padding change for 1001 columns? The next cell asks your functions: fewer sectors, and addresses that would
# allow loads of 4. The mask `col < 1001` does not allow them, for 4 does not divide 1001, so Triton still loads single
# numbers. The sectors that two warps share are most likely still in a cache when the second warp asks for them, so they
# do not cost DRAM traffic a second time. They cost requests. On an H200, a transpose of 8191 x 8191 was no faster with
# padded rows (194 us, and 186 without).

# %%
for stride in (1001, padded_stride(1001, 4)):
    moved = sum(row_sectors(row, 1001, stride, 4) for row in range(64))
    width = vector_width(0, stride, 4, 8)
    print(
        f"stride {stride}: {moved:,} sectors for 64 rows, addresses for loads of {width}, {stride / 1001 - 1:.1%} more memory"
    )

# %% [markdown]
# ## e. Channels first, channels last
#
# A batch of images has four indices: image n, channel c, row h and column w. Memory has one. Two layouts are usual:
#
# - **NCHW**, channels first: w runs fastest, then h, then c. The pixels of one channel are neighbors.
# - **NHWC**, channels last: c runs fastest, then w, then h. The channels of one pixel are neighbors.
#
# To bring a batch from one layout into the other is nothing new: an image is a matrix of C rows and H * W columns, and
# the other layout is its transpose. Your kernel of question c does it, image by image.
#
# Write two functions and a kernel.
#
# 1. `layout_strides(layout, shape)`: the strides of the indices n, c, h and w, in this order and in elements, as a tuple
#    of four ints. `layout` is `"NCHW"` or `"NHWC"`, and `shape` is (N, C, H, W) for both.
# 2. `walk_sectors(layout, walk, channels, element_bytes)`: how many sectors a warp touches in an image of 32 x 32 pixels
#    that begins at address 0. If `walk` is `"w"`, lane i reads channel 0 of pixel i of the first row. If it is `"c"`, lane
#    i reads channel i of the first pixel; then there are at least 32 channels.
# 3. `channel_sum_kernel`: y[n, p] is the TERM_SUM_SAID, where p counts the pixels of an image.
#
# The **contract** of the kernel:
#
# - Program (b, n) computes the PIXELS pixels from pixel b * PIXELS on, of image n. It goes through the channels in blocks
#   of CHANNELS.
# - x comes with its three strides, so one kernel serves both layouts. y is contiguous, with `pixels` numbers per image.
# - x is float32 or float16, and y is float32. The kernel adds in float32: convert each block after loading with
#   `.to(tl.float32)`. A float16 number has about three digits, too few for a sum.
# - Neither PIXELS nor CHANNELS need divide anything.
#
# <details><summary>Hint 1</summary>
# The stride of an index is the product of the sizes of all indices that run faster. For the walks, write down the
# addresses of lanes 0, 1 and 2.
# </details>
# <details><summary>Hint 2</summary>
# NHWC: <code>(H * W * C, 1, W * C, C)</code>. A walk with stride s reads the bytes from <code>lane * s *
# element_bytes</code> on; count the sectors with a set, as in question a. In the kernel, keep a block of PIXELS x
# CHANNELS sums, add to it in the loop, and reduce it once, after the loop.
# </details>
# <details><summary>Hint 3</summary>
# <code>total = tl.zeros((PIXELS, CHANNELS), tl.float32)</code>; in the loop <code>channel = start + tl.arange(0,
# CHANNELS)</code> and the load from <code>x_ptr + image * stride_xn + pixel[:, None] * stride_xp + channel[None, :] *
# stride_xc</code>, with a mask for both; at the end <code>TERM_SUM</code> goes to <code>y_ptr + image * pixels +
# pixel</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_channel_sum(kernel, constants, y, x):
    """Launch one program per block of pixels and image; x has the indices image, pixel and channel."""
    images, pixels, channels = x.shape
    grid = triton.cdiv(pixels, constants["PIXELS"]), images
    kernel[grid](x, y, pixels, channels, *x.stride(), **constants)


def images_in(layout, matrix, images, channels):
    """Return a matrix of images * pixels rows and as many columns as channels as x[n, p, c], stored in this layout."""
    x = matrix.reshape(images, -1, channels)
    return x if layout == "NHWC" else x.transpose(1, 2).contiguous().transpose(1, 2)


# %% nbgrader={"grade": false, "grade_id": "e-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup", "a"], "title": "Channels first, channels last"}
def layout_strides(layout, shape):
    """Return the strides of n, c, h and w, in elements."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("layout_strides")
    _, channels, height, width = shape
    if layout == "NCHW":
        return channels * height * width, height * width, width, 1
    return height * width * channels, 1, width * channels, channels
    ### END SOLUTION


def walk_sectors(layout, walk, channels, element_bytes):
    """Return the sectors that a warp touches along one index."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("walk_sectors")
    stride = {"NCHWw": 1, "NCHWc": 32 * 32, "NHWCw": channels, "NHWCc": 1}[layout + walk]
    return len({(lane * stride * element_bytes + k) // 32 for lane in range(32) for k in range(element_bytes)})
    ### END SOLUTION


@triton.jit
def channel_sum_kernel(
    x_ptr, y_ptr, pixels, channels, stride_xn, stride_xp, stride_xc, PIXELS: tl.constexpr, CHANNELS: tl.constexpr
):  # fmt: skip
    """Add up the channels of PIXELS pixels per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    image = tl.program_id(1)
    pixel = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    total = tl.zeros((PIXELS, CHANNELS), tl.float32)
    for start in range(0, channels, CHANNELS):
        channel = start + tl.arange(0, CHANNELS)
        inside = (pixel[:, None] < pixels) & (channel[None, :] < channels)
        place = image * stride_xn + pixel[:, None] * stride_xp + channel[None, :] * stride_xc
        TERM_ADD_UP
    tl.store(y_ptr + image * pixels + pixel, TERM_SUM, mask=pixel < pixels)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("channel_sum_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup", "a"]}
draw = grading.Draws("e", DEVICE)


def check_strides(layout, shape, right):
    """Compare layout_strides with four ints."""
    found = layout_strides(layout, shape)
    what = f"layout_strides({layout!r}, {shape})"
    assert isinstance(found, tuple), f"{what} is {found!r}; return a tuple"
    assert len(found) == 4, f"{what} has {len(found)} numbers; return four"
    for index, one, step in zip("nchw", found, right, strict=True):
        grading.assert_equal(one, step, what=f"{what}, stride of {index}")


check_strides("NCHW", (2, 3, 4, 5), (60, 20, 5, 1))
check_strides("NHWC", (2, 3, 4, 5), (60, 1, 15, 3))
grading.assert_equal(walk_sectors("NCHW", "w", 64, 4), 4, what="walk_sectors('NCHW', 'w', 64, 4)")
grading.assert_equal(walk_sectors("NCHW", "c", 64, 4), 32, what="walk_sectors('NCHW', 'c', 64, 4)")
grading.assert_equal(walk_sectors("NHWC", "w", 64, 4), 32, what="walk_sectors('NHWC', 'w', 64, 4)")
grading.assert_equal(walk_sectors("NHWC", "w", 3, 4), 12, what="walk_sectors('NHWC', 'w', 3, 4)")


def check_channel_sum(layout, images, pixels, channels, what, tile=(8, 16), dtype="float32"):
    """Compare channel_sum_kernel with sums in float64."""
    numbers = draw.matrix(images * pixels, channels, dtype=dtype, values="positive")
    x = images_in(layout, numbers, images, channels)
    constants = {"PIXELS": tile[0], "CHANNELS": tile[1]}
    what = f"channel_sum_kernel, {layout}, {what}: {images} images, {pixels} pixels, {channels} channels, {constants}"
    right = TERM_RIGHT_SUM.float()
    grading.check_kernel(channel_sum_kernel, constants, [x], right, launch=launch_channel_sum, what=what)


for layout in ("NCHW", "NHWC"):
    check_channel_sum(layout, 1, 8, 16, "one block")
    check_channel_sum(layout, 2, 24, 48, "several images, pixels and channels")
    check_channel_sum(layout, 2, 25, 16, "pixels ragged")
    check_channel_sum(layout, 2, 16, 37, "channels ragged")
    check_channel_sum(layout, 3, 7, 3, "fewer channels than a block has")
    check_channel_sum(layout, 1, 9, 120, "many float16 channels", dtype="float16")
### BEGIN HIDDEN TESTS
from mlsys.traffic import coalescing

for layout in coalescing.LAYOUTS:
    drawn = tuple(draw.integer(2, 40) for _ in "nchw")
    check_strides(layout, drawn, coalescing.layout_strides(drawn, layout))
    for width in (1, 2, 4, 8):
        for walk, depth in (("w", draw.integer(1, 40)), ("c", draw.integer(32, 90))):
            replayed = coalescing.channel_read(channels=depth, layout=layout, element_bytes=width, walk=walk).sectors
            counted = walk_sectors(layout, walk, depth, width)
            grading.assert_equal(counted, replayed, what=f"walk_sectors({layout!r}, {walk!r}, ...) for other channels")
    for kind in ("float32", "float16"):
        wanted = 2 ** draw.integer(2, 5), 2 ** draw.integer(1, 6)
        sizes = draw.integer(1, 3), draw.ragged(1, 40, tile=wanted[0]), draw.ragged(1, 60, tile=wanted[1])
        check_channel_sum(layout, *sizes, "other sizes", wanted, kind)
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# On a GPU, the next cell times your sum for both layouts, each with a block that is long in pixels and one that is long
# in channels. Which shape suits which layout? Without a GPU it prints the sectors alone.

# %%
for layout in ("NCHW", "NHWC"):
    counted = {walk: walk_sectors(layout, walk, 64, 2) for walk in ("w", "c")}
    print(f"{layout}: {counted['w']} sectors for 32 pixels of a channel, {counted['c']} for 32 channels of a pixel")
    if DEVICE == "cuda":
        x = images_in(layout, torch.rand(64 * 112 * 112, 64, device=DEVICE).half(), 64, 64)
        y = torch.empty(x.shape[:2], device=DEVICE)
        for pixels, channels in ((256, 8), (32, 64)):
            constants = {"PIXELS": pixels, "CHANNELS": channels, "num_warps": 4}
            timing = measure.time_kernel(
                lambda x=x, y=y, constants=constants: launch_channel_sum(channel_sum_kernel, constants, y, x)
            )
            print(f"  {pixels} pixels x {channels} channels: {x.nbytes / timing.median_s / 1e9:,.0f} GB/s")

# %% [markdown]
# **Say why.** Answer in four to seven sentences. A batch has 64 channels of float16 numbers. In which layout is the sum
# over the channels of each pixel fast if the lanes go along pixels, and in which if they go along channels? Give the
# number of sectors for all four cases. Many libraries run convolutions in NHWC, where each step multiplies and adds up
# many channels of one pixel: why does that layout suit them? The batch comes in NCHW. Compare the bytes that a conversion
# moves with those that one sum over channels moves. When does a conversion pay, and when does it not? A person reads
# your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "e-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e-why", "role": "written", "needs": ["setup"], "title": "Layouts, in words"}
# ### BEGIN SOLUTION
# #: *Your answer*
# With lanes along pixels a warp touches 2 sectors in NCHW and 32 in NHWC; with lanes along channels it touches 32 in NCHW
# and 2 in NHWC. So each layout is fast if neighboring lanes go along the index that runs fastest in it, and neither is
# better in itself. A convolution multiplies a vector of channels of a pixel with weights and adds the products up. In
# NHWC such a vector is contiguous: 64 channels are 128 bytes that arrive in 4 sectors and in 16-byte loads. A conversion
# reads the whole batch once and writes it once; a sum over 64 channels reads it once and writes little. So a conversion
# costs about twice the bytes of the sum. It does not pay for one sum, for which a block that is long in pixels takes about
# as long in NCHW as the conversion alone. It pays if many operations follow that need the other layout, such as all the layers of a network,
# and best of all the data is stored in that layout from the beginning.
# ### END SOLUTION

# %% [markdown]
# ## f. Gather: an embedding bag
#
# A recommendation model keeps a **table** with one row of numbers for each product, word or user, and most of its time
# goes into fetching rows. An **embedding bag** adds up the rows of a list:
#
# out[b, :] = the sum of table[index[k], :] for k from offset[b] up to, but not including, offset[b + 1]
#
# Which rows a bag needs is known only when the kernel runs. Reading at addresses that come from memory is a **gather**.
# Nobody can arrange the rows so that all bags find their rows side by side. But *within* a row the numbers are
# neighbors, so the lanes should go along the row.
#
# 1. Write `gather_sectors(indices, dim, element_bytes)`: how many sectors move if the rows `indices` of a table are
#    fetched one after the other, each row whole? The table is contiguous, begins at address 0 and has `dim` elements per
#    row. A sector counts once for each fetched row that needs it. Return a plain int.
# 2. Write `embedding_bag_kernel`.
#
# The **contract** of the kernel:
#
# - Program TERM_BAG_PROGRAM computes BLOCK neighboring columns of row b of out, from column q * BLOCK on.
# - index and offset are contiguous ints. An index below 0 is **padding** of the list: it adds nothing, and nothing may be
#   read for it. All others are rows of the table. A bag may be empty: then its sum is 0.
# - Rows of the table are `stride_t` elements apart, and the columns of a row are neighbors. out is contiguous.
# - The table is float32 or float16, and out is float32. The kernel adds in float32.
# - The table may have more than 2^31 elements. Make the row number 64 bits wide before you multiply it with the stride:
#   `.to(tl.int64)`.
#
# <details><summary>Hint 1</summary>
# The bounds of the loop are two numbers from memory: <code>tl.load(offset_ptr + bag)</code> and the one behind it. Row
# number r of the table begins at byte r * dim * element_bytes.
# </details>
# <details><summary>Hint 2</summary>
# In the loop, load one index, then BLOCK numbers of that row. The mask of the second load tests the columns, and the
# index too. In the count, a row of 24 bytes can touch one sector or two.
# </details>
# <details><summary>Hint 3</summary>
# <code>row = tl.load(index_ptr + k).to(tl.int64)</code>, then <code>total += tl.load(table_ptr + row * stride_t + col,
# mask=(col &lt; dim) &amp; (row &gt;= 0), other=0.0).to(tl.float32)</code>. A row from byte <code>a</code> up to, but not
# including, byte <code>b</code> touches <code>(b - 1) // 32 - a // 32 + 1</code> sectors.
# </details>


# %% nbgrader={"grade": false, "grade_id": "f-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
from itertools import pairwise


def launch_embedding_bag(kernel, constants, out, table, index, offset):
    """Launch one program per bag and block of columns."""
    bags, dim = out.shape
    blocks = triton.cdiv(dim, constants["BLOCK"])
    kernel[(TERM_BAG_GRID)](table, index, offset, out, dim, table.stride(0), **constants)


def bags_of(index, offset):
    """Return the rows of each bag as a list, without padding."""
    every = index.tolist()
    return [[row for row in every[first:last] if row >= 0] for first, last in pairwise(offset.tolist())]


def draw_bags(draw, bags, most, rows, padding=True):
    """Draw lists of up to `most` indices for each bag, some of them -1, and where each list begins."""
    counts = [draw.integer(0, most) for _ in range(bags)]
    index = [draw.integer(-2 if padding else 0, rows - 1) for _ in range(max(1, sum(counts)))]
    offset = [sum(counts[:bag]) for bag in range(bags + 1)]
    return torch.tensor([max(-1, row) for row in index], device=draw.device), torch.tensor(offset, device=draw.device)


# %% nbgrader={"grade": false, "grade_id": "f-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup", "a"], "title": "Gather: an embedding bag"}
def gather_sectors(indices, dim, element_bytes):
    """Return the sectors that move when these rows of a table are fetched."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("gather_sectors")
    size = dim * element_bytes
    return sum(((row + 1) * size - 1) // 32 - row * size // 32 + 1 for row in indices)
    ### END SOLUTION


@triton.jit
def embedding_bag_kernel(table_ptr, index_ptr, offset_ptr, out_ptr, dim, stride_t, BLOCK: tl.constexpr):
    """Add up BLOCK columns of the rows of one bag per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    bag = tl.program_id(TERM_BAG_AXIS)
    col = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + k).to(tl.int64)
        kept = (col < dim) & (row >= 0)
        total += tl.load(table_ptr + row * stride_t + col, mask=kept, other=0.0).to(tl.float32)
    tl.store(out_ptr + bag * dim + col, total, mask=col < dim)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("embedding_bag_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup", "a"]}
draw = grading.Draws("f", DEVICE)

grading.assert_equal(gather_sectors([0, 5], 8, 4), 2, what="gather_sectors([0, 5], 8, 4)")
grading.assert_equal(gather_sectors([0, 1], 12, 4), 4, what="gather_sectors([0, 1], 12, 4)")
grading.assert_equal(gather_sectors([0, 1, 2], 12, 2), 5, what="gather_sectors([0, 1, 2], 12, 2)")
grading.assert_equal(gather_sectors([3, 3], 64, 2), 8, what="gather_sectors([3, 3], 64, 2)")


def right_bags(table, index, offset):
    """Add up the rows of each bag in float64."""
    return torch.stack([table[rows].double().sum(0) for rows in bags_of(index, offset)]).float()


def check_bags(bags, most, rows, dim, what, block=16, layout="row", dtype="float32", padding=True):
    """Compare embedding_bag_kernel with sums in float64."""
    table = draw.matrix(rows, dim, layout=layout, dtype=dtype, values="positive")
    index, offset = draw_bags(draw, bags, most, rows, padding)
    what = f"embedding_bag_kernel, {what}: {bags} bags, {rows} rows of {dim}, BLOCK = {block}"
    inputs, right = [table, index, offset], right_bags(table, index, offset)
    kernel, launch = embedding_bag_kernel, launch_embedding_bag
    grading.check_kernel(kernel, {"BLOCK": block}, inputs, right, launch=launch, what=what)


check_bags(3, 4, 10, 16, "one block per row", padding=False)
check_bags(3, 4, 10, 48, "three blocks per row", padding=False)
check_bags(4, 5, 9, 21, "a ragged end of the rows", padding=False)
check_bags(5, 6, 9, 21, "with padding")
check_bags(6, 1, 9, 21, "empty bags and bags of one row")
check_bags(4, 5, 9, 21, "a window in a larger table", layout="offset")
check_bags(2, 40, 7, 16, "long lists of float16 rows", dtype="float16")
### BEGIN HIDDEN TESTS
from mlsys.traffic.coalescing import warp_transactions

for kind in ("float32", "float16"):
    for arrangement in ("row", "offset"):
        rows, wide, power = draw.integer(1, 60), draw.ragged(1, 90), draw.integer(2, 7)
        lists = draw.integer(1, 6), draw.integer(1, 12)
        check_bags(*lists, rows, wide, "other sizes", 2**power, arrangement, kind)
for width in (1, 2, 4, 8):
    across, picked = draw.integer(1, 90), [draw.integer(0, 500) for _ in range(6)]
    # Of four rows one after the other, each 24 bytes longer than whole sectors, two touch one more than aligned ones.
    first, longer = draw.integer(0, 500), (32 * draw.integer(0, 2) + 24) // width
    for chosen, wide in ((picked, across), (list(range(first, first + 4)), longer)):
        replayed = sum(warp_transactions([row * wide * width], element_bytes=wide * width).sectors for row in chosen)
        found = gather_sectors(chosen, wide, width)
        grading.assert_equal(found, replayed, what=f"gather_sectors of other rows of {width}-byte elements")
### END HIDDEN TESTS
scorecard.passed("f")

# %% [markdown]
# **How much of what moves is used?** A gather of whole rows wastes little if rows are long, or if they fit into sectors.
# A row of 24 bytes touches one sector or two, depending on where it begins.

# %%
rows = range(1000)
for dim, element_bytes in ((6, 4), (8, 4), (16, 2), (20, 2), (64, 4)):
    used, moved = len(rows) * dim * element_bytes, 32 * gather_sectors(list(rows), dim, element_bytes)
    print(f"rows of {dim} numbers of {element_bytes} bytes: {used / moved:.0%} of the bytes that move are used")

# %% [markdown]
# ## g. The race: transpose (GPU)
#
# `grading.speed` runs `transpose_kernel` with the constants that your `tile_config` returns, and compares every
# element with the right result. Then it times your kernel and another one in turn, for several rounds: yours, the
# other, the other, yours. A GPU that warms up or slows down then does so for both. Here the other one is PyTorch's
# transpose. When the lab is graded, your kernel runs against a Triton kernel that the lab's authors wrote, on the
# same GPU, in the same run. You get all the points from 0.8 of that kernel's speed on, none below 0.1, and a share in
# between. Without a GPU the cell compiles your kernel with your config, says what it needs, and ends with `NeedsGpu`;
# the points wait.
#
# Write `tile_config((rows, cols), dtype)`. It returns a dict of three ints, `ROWS`, `COLS` and `num_warps`; dtype is
# `"fp32"`. x and y are contiguous. Both sides of the tile matter now: one is contiguous in x, and the other one in y.
#
# <details><summary>Hint 1</summary>
# How many bytes side by side does a tile of 4 x 256 read from each row of x? And how many does it write to each row of y?
# </details>
# <details><summary>Hint 2</summary>
# 32 numbers in a row are 128 bytes, 4 whole sectors. A thread should hold some 8 to 32 numbers, so that it has several
# loads under way, and 16 bytes for each of them.
# </details>
# <details><summary>Hint 3</summary>
# <code>{"ROWS": 64, "COLS": 64, "num_warps": 8}</code> gives each thread 16 numbers.
# </details>


# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(8192, 4096), (6000, 4800)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


def matrix_input(draw, shape, dtype):
    """Return a random matrix."""
    return (draw.matrix(*shape, dtype={"fp32": "float32", "fp16": "float16"}[dtype]),)


def right_transpose(x):
    """Return the library's result."""
    return x.T.contiguous()


# %% nbgrader={"grade": false, "grade_id": "g-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup", "c"], "title": "The race: transpose"}
def tile_config(shape, dtype):
    """Return rows and columns of a tile, and warps, for transpose_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("tile_config")
    return {"ROWS": 64, "COLS": 64, "num_warps": 8}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "g-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "speed", "needs": ["setup", "c"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    in_ptr, out_ptr, height, width, in_step, in_one, out_step, out_one, COLS: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip # the kernel that a student's is raced against
    i = (tl.program_id(TERM_ROW_AXIS) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    j = (tl.program_id(TERM_COL_AXIS) * COLS + tl.arange(0, COLS)).to(tl.int64)[None, :]
    there = (i < height) & (j < width)
    value = tl.load(in_ptr + i * in_step + j * in_one, mask=there, other=0.0)
    tl.store(out_ptr + i * out_one + j * out_step, value, mask=there)


def reference_tile(shape, dtype):
    return {"ROWS": 64, "COLS": 64, "num_warps": 8}


rival = (reference_kernel, reference_tile)
### END HIDDEN TESTS
race = grading.speed(
    transpose_kernel,
    tile_config,
    shapes=RACES,
    inputs=matrix_input,
    launch=launch_transpose,
    expected=right_transpose,
    reference=rival,
)
scorecard.passed("g", race.fraction)
race

# %% [markdown]
# ## Challenge: scatter
#
# When a model is trained, each bag hands back a row of gradients, and every row of the table that was in the bag gets it
# added:
#
# d_table[index[k], :] += d_out[b, :] for k from offset[b] up to, but not including, offset[b + 1]
#
# Writing at addresses that come from memory is a **scatter**. Popular rows are in many bags, and may be in one bag more
# than once, so many programs add to one row.
#
# Write `embedding_backward_kernel`. The **contract**:
#
# - Program TERM_BAG_PROGRAM adds BLOCK columns of row b of d_out, from column q * BLOCK on, to the rows of bag b.
# - The lab's function sets d_table to 0 before the launch. d_table is float32 and contiguous, with `dim` columns; d_out is
#   contiguous, float32 or float16.
# - An index below 0 is padding: nothing may change for it.
#
# <details><summary>Hint 1</summary>
# What happens if two programs load the same number, add to it, and store it? <code>grading.inspect</code> finds it too.
# </details>
# <details><summary>Hint 2</summary>
# <code>tl.atomic_add(ptr, value, mask=...)</code> loads, adds and stores as one indivisible step.
# </details>
# <details><summary>Hint 3</summary>
# Load the gradients once, before the loop. In it: <code>tl.atomic_add(d_table_ptr + row * dim + col, gradient, mask=(col
# &lt; dim) &amp; (row &gt;= 0))</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_embedding_backward(kernel, constants, d_table, d_out, index, offset):
    """Set d_table to 0, then launch one program per bag and block of columns."""
    d_table.zero_()
    bags, dim = d_out.shape
    blocks = triton.cdiv(dim, constants["BLOCK"])
    kernel[(TERM_BAG_GRID)](d_out, index, offset, d_table, dim, **constants)


def launch_embedding_backward_inspected(kernel, constants, d_table, d_out, index, offset):
    """Launch as launch_embedding_backward does, and look for races."""
    launch_embedding_backward(grading.inspect_first(kernel), constants, d_table, d_out, index, offset)


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: scatter"}
@triton.jit
def embedding_backward_kernel(d_out_ptr, index_ptr, offset_ptr, d_table_ptr, dim, BLOCK: tl.constexpr):
    """Add the gradients of one bag to the rows that were in it."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    bag = tl.program_id(TERM_BAG_AXIS)
    col = tl.program_id(TERM_BLOCK_AXIS) * BLOCK + tl.arange(0, BLOCK)
    gradient = tl.load(d_out_ptr + bag * dim + col, mask=col < dim, other=0.0).to(tl.float32)
    for k in range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1)):
        row = tl.load(index_ptr + k).to(tl.int64)
        tl.atomic_add(d_table_ptr + row * dim + col, gradient, mask=(col < dim) & (row >= 0))
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("embedding_backward_kernel: write it, then delete this line")
### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
draw = grading.Draws("challenge", DEVICE)


def check_backward(bags, most, rows, dim, what, block=16, dtype="float32", launch=launch_embedding_backward):
    """Compare embedding_backward_kernel with sums in float64."""
    d_out = draw.matrix(bags, dim, dtype=dtype, values="positive")
    index, offset = draw_bags(draw, bags, most, rows)
    right = torch.zeros(rows, dim, dtype=torch.float64, device=DEVICE)
    for gradient, picked in zip(d_out.double(), bags_of(index, offset), strict=True):
        for row in picked:
            right[row] += gradient
    what = f"embedding_backward_kernel, {what}: {bags} bags, {rows} rows of {dim}, BLOCK = {block}"
    inputs, kernel = [d_out, index, offset], embedding_backward_kernel
    grading.check_kernel(kernel, {"BLOCK": block}, inputs, right.float(), launch=launch, what=what)


check_backward(2, 6, 9, 16, "two bags")
check_backward(4, 5, 30, 40, "many rows")
check_backward(5, 9, 3, 21, "few rows, which many bags share")
check_backward(3, 5, 9, 21, "float16 gradients", dtype="float16")
check_backward(5, 9, 3, 21, "few rows, inspected", launch=launch_embedding_backward_inspected)
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    rows, power = draw.integer(1, 20), draw.integer(2, 6)
    check_backward(draw.integer(2, 6), draw.integer(2, 9), rows, draw.ragged(1, 70), "other sizes", 2**power, kind)
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and measurement differ?
#
# Here are four cases with a prediction each, measured on an H200 (times in microseconds). A copy of large arrays runs
# there at 4250 GB/s, and its L2 cache holds 50 MiB.


# %% nbgrader={"grade": false, "grade_id": "gap-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
NUMBERS = 67_108_864  # float32 numbers that each of the strided reads fetches
STRIDED_US = {1: 71.36, 2: 128.91, 4: 246.11, 8: 478.59, 16: 944.54, 32: 1151.68}
BAGS = {"bags": 65_536, "rows per bag": 32, "dim": 256}
GATHER_THEN_SUM_US = 1792.2
SMALL_COPY_US = 4.46  # of 12 MiB to another 12 MiB, again and again


def predicted_us(moved_bytes):
    """Return the time of a copy that moves so many bytes, reads and writes together, in microseconds."""
    return moved_bytes / 4250 / 1e3


# %%
TERM_GAPS

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"sectors"`: whole sectors move, and only a part of each is used.
# - `"fetch"`: the L2 cache fetches more from DRAM than the one sector that was asked for.
# - `"passes"`: a result in between is written to memory and read again.
# - `"cache"`: the numbers are still in the L2 cache, so fewer bytes than counted come from DRAM.
# - `"banks"`: lanes wait for each other in shared memory.
#
# <details><summary>Hint 1</summary>
# Only one of the five makes a kernel faster than predicted. And which of the four cases uses shared memory at all?
# </details>
# <details><summary>Hint 2</summary>
# Look at all the times of <code>STRIDED_US</code>. Up to which stride does the time double with the stride? From which
# stride on does every number need a sector of its own?
# </details>
# <details><summary>Hint 3</summary>
# From stride 8 on, each number has its own sector, and still the time doubles once more from 8 to 16. So what comes from
# DRAM is more than what was asked for. In case TERM_CASE_PASSES, <code>table[index]</code> is a tensor of its own, 32
# times as large as the sums.
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
    choices = ("sectors", "fetch", "passes", "cache", "banks")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("TERM_CAUSE_1", "TERM_CAUSE_2", "TERM_CAUSE_3", "TERM_CAUSE_4")
for number, (said, true) in enumerate(zip((cause_1, cause_2, cause_3, cause_4), key, strict=True), start=1):
    assert said == true, f"cause_{number}: {said!r} does not make this gap; see the hints"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# Case TERM_CASE_FETCH shows what the count of sectors cannot say. It counts what a warp asks the L2 cache for. How much
# the cache then fetches from DRAM is its own decision: CUDA's documentation gives up to 128 bytes
# (`cudaLimitMaxL2FetchGranularity`). The times above fit a cache that fetches 64 bytes. They do not prove it.
#
# ## What came out
#
# Your predictions beside what was counted and measured. (On a GPU, a copy of the same matrix is timed beside your
# transpose.)

# %%
share = None
if DEVICE == "cuda":
    (x,) = matrix_input(grading.Draws("share", DEVICE), RACES[0], "fp32")
    y, copied, constants = torch.empty_like(x.T.contiguous()), torch.empty_like(x), tile_config(RACES[0], "fp32")
    pair = measure.time_pair(lambda: launch_transpose(transpose_kernel, constants, y, x), lambda: copied.copy_(x))
    share = pair.ratio
grading.compare(
    predictions,
    column_sectors=sectors(*PATTERNS["a column"]),
    shifted_sectors=sectors(*PATTERNS["shifted"]),
    column_passes=[32 * row % 32 for row in range(32)].count(0),  # elements of column 0 in bank 0
    channels_last=walk_sectors("NHWC", "w", 64, 2) / walk_sectors("NCHW", "w", 64, 2),
    stride_16=STRIDED_US[16] / STRIDED_US[8],
    share_of_copy=share,
)

# %% [markdown]
# And a picture: your own `sectors` for a warp that reads with a stride, beside the times of the H200. Both are divided by
# those of stride 1.

# %%
fig, ax, colors, plt = viz.setup_plot((5.6, 3.4))
strides = list(STRIDED_US)
counts = [sectors([4 * stride * lane for lane in range(32)], 4) for stride in strides]
ax.plot(strides, [count / 4 for count in counts], "o-", color=colors["BlueLine"], label="sectors, counted")
slower = [time_us / STRIDED_US[1] for time_us in STRIDED_US.values()]
ax.plot(strides, slower, "s--", color=colors["OrangeLine"], label="time, measured")
ax.set_xscale("log", base=2)
ax.set_yscale("log", base=2)
ax.set_xticks(strides, map(str, strides))
ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
ax.set(xlabel="stride, in numbers of 4 bytes", ylabel="times those of stride 1")
ax.legend(loc="upper left")
plt.show()

# %% [markdown]
# Up to stride 8 the count predicts the time. Beyond that it says that nothing gets worse, and the device disagrees.
#
# The rule of this lab is short: **neighboring lanes, neighboring addresses**. If the data does not allow it, change the
# layout, or take a detour through memory on the chip. And count what moves, not what you asked for.
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
