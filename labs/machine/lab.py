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
#     lab: machine
#     version: "1"
#     withheld: [mlsys.compiler.fuse, mlsys.compiler.lower, mlsys.compiler.schedule, mlsys.grading.replays.fusion_plan, mlsys.grading.replays.pe_array, mlsys.runtime, mlsys.systolic]
# ---

# %% [markdown]
# # Build the machine
#
# Two pieces of engineering turn a model into results. One is the chip itself: a grid of multipliers in which
# every number must be in the right register in every cycle. The other is the compiler: it decides which operations
# share a kernel, how large a tile is, what the kernel's text says, and where every tensor is kept in memory.
#
# **The question of this lab: what does it take to build both, small but whole, and how close to the best possible does
# each decision come?**
#
# You will predict, build, search, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess four numbers | compared with the truth at the end |
# | a | one cycle of one processing element | five registers |
# | b | simulate the array | every register of every cycle |
# | c | multiply matrices that are larger than the array | products, cycles, and a few sentences that say what follows |
# | d | decide what is fused | kernels that move the least bytes |
# | e | choose tiles for a product | a cost model, and the fastest tile that fits |
# | f | write Triton | kernels whose text your function writes |
# | g | place buffers in a given order | offsets |
# | h | race against best fit | plans that waste at most a fifth of what best fit wastes |
# | challenge | reach the lower bound | plans that waste nothing |
# | gap | explain why prediction and count differ | three causes |
#
# Plan for three to four hours. You need Python; the chapters on systolic arrays, compilers and runtimes explain the
# ideas. You need no GPU. Hints cost no points: each question has three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None` or "Your answer". You may add cells. Read the
# test cells, and run them as often as you like. When the lab is graded, the original versions of these cells run, with
# more sizes, graphs and problems. Build it yourself: `mlsys.systolic`, `mlsys.runtime` and the compiler's own stages
# are removed from the package when the lab is graded, and an answer that calls them ends in an error. To compare, in
# cells of your own, you may use all of them.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import grading, viz
from mlsys.grading.replays import buffer_plan, fusion_plan, pe_array

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton

scorecard = grading.Scorecard(
    {
        "a": 5, "b": 10, "c": 15, "c-why": 5, "d": 15, "e": 10, "f": 15, "g": 5, "h": 10,
        "challenge": 5, "gap": 5,
    },
    read=["c-why"],
)  # fmt: skip

# %% [markdown]
# ## Predictions
#
# Write down what you expect, before you calculate anything. You are not graded on how close you come. The point is to
# have something to be surprised by.
#
# 1. `enough_inputs`: an array of 16 x 16 multipliers loads the weights of the next tile while it computes with those of
#    this one. Loading takes 16 cycles, one row per cycle. How many inputs must stream past each tile so that loading
#    costs no time at all?
# 2. `fused_share`: a normalization of the rows of a matrix, written as nine operations, moves some bytes when each
#    operation is a kernel of its own. What percentage of them is left when all nine share one kernel?
# 3. `four_stages`: a kernel loads a piece of both matrices, waits for it, and multiplies. A piece takes 600 cycles until
#    it begins to arrive, 512 to arrive, and 64 to be multiplied. How many *times* faster does the kernel get if four
#    pieces are on their way at the same time?
# 4. `best_fit_waste`: an allocator places 36 buffers as they come, each in the smallest gap that is large enough. By how
#    many percent does it exceed what is live at the worst moment?

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: enough_inputs = None
#: fused_share = None
#: four_stages = None
#: best_fit_waste = None
enough_inputs = 16
fused_share = 33
four_stages = 4
best_fit_waste = 10
### END SOLUTION
predictions = grading.seal(
    enough_inputs=enough_inputs,
    fused_share=fused_share,
    four_stages=four_stages,
    best_fit_waste=best_fit_waste,
)

# %% [markdown]
# ## a. One processing element
#
# The array keeps weights. Each of its processing elements (PEs) has five registers:
#
# - `weight`: what it multiplies with;
# - `spare`: the weight of the *next* tile, on its way down;
# - `x` and `swap`: what came from the left. `swap` is 1 if a new tile begins with this x, and 0 otherwise;
# - `sum`: a sum on its way down.
#
# ```
#               sum_above   weight_above
#                   |            |
#                   v            v
#                +------------------+
#       x  ----> | weight    spare  | ----> x
#     swap ----> | sum              | ----> swap
#                +------------------+
#                   |            |
#                   v            v
#                  sum         spare
# ```
#
# In one cycle a PE does this, in this order:
#
# 1. It takes `x` and `swap` from the left.
# 2. If `swap` is 1, its `weight` becomes what `spare` held **at the end of the cycle before**.
# 3. Its `sum` becomes `sum_above` + `x` times `weight`.
# 4. If weights move, its `spare` becomes `weight_above`. Otherwise `weight_above` is `None`, and `spare` stays.
#
# Write `pe_step(weight, spare, x, swap, sum_above, weight_above)`. `weight` and `spare` are what the PE's own registers
# held at the end of the cycle before; `x` and `swap` come from the left, the last two from above. It returns the five
# registers at the end of the cycle as a tuple or a list of ints, in the order `(weight, spare, x, swap, sum)`.
#
# <details><summary>Hint 1</summary>
# Two registers are simply what comes from the left. Which of the other three may keep what they held?
# </details>
# <details><summary>Hint 2</summary>
# The product uses the weight after the swap, not before it. And the swap uses the spare weight of the cycle before,
# even if a new one arrives in this cycle.
# </details>
# <details><summary>Hint 3</summary>
# <code>if swap: weight = spare</code> comes first, then the sum, then <code>if weight_above is not None: spare =
# weight_above</code>. (0 is a weight too, so do not write <code>if weight_above:</code>.)
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-step", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "One processing element"}
def pe_step(weight, spare, x, swap, sum_above, weight_above):
    """Return (weight, spare, x, swap, sum) of a PE at the end of a cycle."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("pe_step")
    if swap:
        weight = spare
    total = sum_above + x * weight
    if weight_above is not None:
        spare = weight_above
    return weight, spare, x, swap, total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
def check_step(weight, spare, x, swap, sum_above, weight_above):
    """Compare one step with the rules."""
    found = pe_step(weight, spare, x, swap, sum_above, weight_above)
    pe_array.assert_step(found, (weight, spare), x, swap, sum_above, weight_above)


check_step(3, 5, 2, 0, 10, None)  # multiply and add
check_step(3, 5, 2, 1, 10, None)  # swap first
check_step(3, 5, 2, 0, 10, 7)  # a weight passes
check_step(3, 5, 2, 1, 10, 7)  # both in one cycle
check_step(3, 5, 2, 0, 10, 0)  # the weight that passes is 0
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for number in range(12):
    weight, spare, x, sum_above, above = (draw.integer(-9, 9) for _ in range(5))
    check_step(weight, spare, x, number % 2, sum_above, (None, above, 0)[number % 3])
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. The array, cycle by cycle
#
# Now put `rows` x `cols` PEs together. A **feed** says what enters at the edges: a list with one dict for each cycle.
#
# - `"x"` and `"swap"`: one int for each row, entering at the left of column 0;
# - `"weights"`: one int for each column, entering at the top of row 0, or `None` in a cycle in which no weights move. A
#   single wire carries this decision to all PEs, so in each cycle all spare weights move down, or none.
#
# Everything else comes from the neighbors: `x` and `swap` from the PE on the left, `sum` and `spare` from the PE above,
# **as these were at the end of the cycle before**. The sum that enters row 0 is 0. All registers are 0 at the start.
#
# The function `feed` below makes the feed for several tiles that follow each other. Read it; you will need it in c.
# Row r of a tile's inputs is delayed by r cycles, so that a sum meets the right input in every row. While one tile is
# computed, the weights of the next one move down. All spare weights move at once, so they may start in the cycle in
# which the last PE swaps (it takes the spare of the cycle before), and not earlier. So two tiles begin at least 2 rows +
# cols - 2 cycles apart: rows + cols - 2 until the last PE swaps, and rows for the new weights.


# %% nbgrader={"grade": false, "grade_id": "b-feed", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def starts(tiles, stream, rows, cols):
    """Return the cycle in which each tile's first input enters row 0; `stream` inputs pass each tile."""
    return [rows + tile * max(stream, 2 * rows + cols - 2) for tile in range(tiles)]


def feed(weights, inputs, rows, cols):
    """Return what enters in each cycle.

    weights: for each tile, rows lists of cols ints. inputs: for each tile, a list of inputs of rows ints; all tiles
    have the same number of inputs.
    """
    stream = len(inputs[0])
    begin = starts(len(weights), stream, rows, cols)
    cycles = begin[-1] + stream + rows + cols - 2
    enters = [{"x": [0] * rows, "swap": [0] * rows, "weights": None} for _ in range(cycles)]
    for first, tile_weights, tile_inputs in zip(begin, weights, inputs, strict=True):
        for row in range(rows):
            enters[first - 1 - row]["weights"] = tile_weights[row]  # the last row enters first
            enters[first + row]["swap"][row] = 1
            for number, x in enumerate(tile_inputs):
                enters[first + number + row]["x"][row] = x[row]
    return enters


# %%
for cycle, enters in enumerate(feed([[[1, 2], [3, 4]]], [[[5, 6], [7, 8]]], 2, 2)):
    print(cycle, enters)

# %% [markdown]
# Write `simulate(feed, rows, cols)`. It returns the whole history as nested lists: for each cycle, for each row, for
# each column, the five registers `(weight, spare, x, swap, sum)` at the end of that cycle. The test compares every
# register of every cycle, and names the first one that is wrong.
#
# <details><summary>Hint 1</summary>
# Keep two grids: the one at the end of the cycle before, and the one that you are making. Why is one grid not enough?
# </details>
# <details><summary>Hint 2</summary>
# If PE (r, c) has been changed already, its neighbor on the right would read the new x, and the number would cross the
# whole row in one cycle. So read from the old grid only.
# </details>
# <details><summary>Hint 3</summary>
# For each PE: <code>x, swap = enters["x"][r], enters["swap"][r]</code> in column 0, else <code>old[r][c - 1][2:4]</code>;
# the sum above is 0 in row 0, else <code>old[r - 1][c][4]</code>; the weight above is <code>None</code> if
# <code>enters["weights"]</code> is, else that list's element c in row 0 and <code>old[r - 1][c][1]</code> elsewhere. The
# rest is <code>pe_step</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-simulate", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup", "a"], "title": "The array, cycle by cycle"}
def simulate(feed, rows, cols):
    """Return the registers (weight, spare, x, swap, sum) of each PE at the end of each cycle."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("simulate")
    old = [[(0, 0, 0, 0, 0)] * cols for _ in range(rows)]
    cycles = []
    for entering in feed:
        new = []
        for r in range(rows):
            line = []
            for c in range(cols):
                x, swap = old[r][c - 1][2:4] if c else (entering["x"][r], entering["swap"][r])
                sum_above = old[r - 1][c][4] if r else 0
                weight_above = None
                if entering["weights"] is not None:
                    weight_above = old[r - 1][c][1] if r else entering["weights"][c]
                line.append(pe_step(*old[r][c][:2], x, swap, sum_above, weight_above))
            new.append(line)
        cycles.append(new)
        old = new
    return cycles
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
def check_array(weights, inputs):
    """Compare every register of every cycle."""
    rows, cols = len(weights[0]), len(weights[0][0])
    enters = feed(weights, inputs, rows, cols)
    pe_array.assert_registers(simulate(enters, rows, cols), enters, rows, cols)


check_array([[[7]]], [[[2], [3]]])  # a single PE
check_array([[[1, 2, 3]]], [[[5], [6]]])  # one row
check_array([[[1], [2], [3]]], [[[4, 5, 6], [7, 8, 9]]])  # one column
check_array([[[1, 2], [3, 4]]], [[[5, 6], [7, 8], [9, 10]]])  # one tile
check_array([[[1, 2], [3, 4]], [[5, 0], [7, 8]]], [[[1, 2], [3, 4], [5, 6]]] * 2)  # two tiles
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for tiles in (1, 2, 3):
    rows, cols, stream = draw.integer(2, 4), draw.integer(2, 4), draw.integer(1, 9)
    weights = [[[draw.integer(-9, 9) for _ in range(cols)] for _ in range(rows)] for _ in range(tiles)]
    inputs = [[[draw.integer(-9, 9) for _ in range(rows)] for _ in range(stream)] for _ in range(tiles)]
    check_array(weights, inputs=inputs)
# A feed that no tile has: everything comes at random.
rows, cols = draw.integer(2, 4), draw.integer(2, 4)
drawn = [
    {
        "x": [draw.integer(-9, 9) for _ in range(rows)],
        "swap": [draw.integer(0, 1) for _ in range(rows)],
        "weights": [draw.integer(-9, 9) for _ in range(cols)] if draw.integer(0, 1) else None,
    }
    for _ in range(draw.integer(12, 20))
]
pe_array.assert_registers(simulate(drawn, rows, cols), drawn, rows, cols)
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. Matrices that are larger than the array
#
# A product C = A B with A of m x k and B of k x n is cut into tiles: B is cut into pieces of rows x cols, and the
# matching columns of A stream past each piece, all m rows of them. Pieces at the edge are filled up with zeros. All
# tiles run in one feed, one after the other, so the weights of the next tile load while this one computes.
#
# Write two functions:
#
# - `multiply(a, b, rows, cols)` takes nested lists of ints and returns `(c, cycles)`: the product as nested lists, and
#   the length of the feed. It makes the tiles, calls `feed` and your `simulate`, and picks the results out of the
#   history: a sum is finished when it leaves the last row. In which cycle is that, for input i and column c of a tile?
#   Tiles that share columns of C are added up.
# - `product_cycles(m, n, k, rows, cols)` returns the same count of cycles for any sizes, without simulating.
#
# <details><summary>Hint 1</summary>
# Begin with one tile. Print the history of a 2 x 2 array for two inputs, and find the elements of C among the sums of
# the last row. Each column finishes one cycle later than the one on its left.
# </details>
# <details><summary>Hint 2</summary>
# If a tile starts in cycle s, input i enters row 0 in cycle s + i, its sum is in the last row rows - 1 cycles later, and
# in column c another c cycles later. <code>starts</code> gives s for every tile.
# </details>
# <details><summary>Hint 3</summary>
# <code>c[i][left + col] += history[s + i + rows - 1 + col][rows - 1][col][4]</code>, for columns that C has. The
# cycles: with t tiles, the last one starts in cycle rows + (t - 1) max(m, 2 rows + cols - 2), and m + rows + cols - 2
# cycles follow.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-multiply", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup", "b"], "title": "Matrices that are larger than the array"}
def multiply(a, b, rows, cols):
    """Return (C, cycles) of C = A B on a rows x cols array."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("multiply")
    m, k, n = len(a), len(b), len(b[0])
    corners = [(top, left) for top in range(0, k, rows) for left in range(0, n, cols)]
    weights, inputs = [], []
    for top, left in corners:
        piece = [[b[p][j] if p < k and j < n else 0 for j in range(left, left + cols)] for p in range(top, top + rows)]
        weights.append(piece)
        inputs.append([[row[p] if p < k else 0 for p in range(top, top + rows)] for row in a])
    enters = feed(weights, inputs, rows, cols)
    history = simulate(enters, rows, cols)
    c = [[0] * n for _ in range(m)]
    for (_, left), first in zip(corners, starts(len(corners), m, rows, cols), strict=True):
        for number in range(m):
            for col in range(min(cols, n - left)):
                c[number][left + col] += history[first + number + rows - 1 + col][rows - 1][col][4]
    return c, len(enters)
    ### END SOLUTION


def product_cycles(m, n, k, rows, cols):
    """Return the cycles that `multiply` counts."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_cycles")
    tiles = -(-k // rows) * -(-n // cols)
    return rows + (tiles - 1) * max(m, 2 * rows + cols - 2) + m + rows + cols - 2
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
def check_product(a, b, rows, cols):
    """Compare a product and both counts of its cycles."""
    m, k, n = len(a), len(b), len(b[0])
    tiles = -(-k // rows) * -(-n // cols)
    nothing = [[[0] * rows] * m] * tiles
    cycles = len(feed([[[0] * cols] * rows] * tiles, nothing, rows, cols))
    pe_array.assert_product(multiply(a, b, rows, cols), a, b, cycles)
    what = f"product_cycles({m}, {n}, {k}, {rows}, {cols})"
    grading.assert_equal(product_cycles(m, n, k, rows, cols), cycles, what=what)


check_product([[5, 6], [7, 8]], [[0, 2], [3, 4]], 2, 2)  # one tile, with a weight of 0
check_product([[5, 6], [7, 8]], [[1, 2, 3, 4], [5, 6, 7, 8]], 2, 2)  # two tiles beside each other
check_product([[1, 2, 3, 4]], [[1], [2], [3], [4]], 2, 1)  # two tiles that are added up
check_product([[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [4, 5, 6], [7, 8, 9]], 2, 2)  # pieces filled up with zeros
# 1,024 tiles of 128 x 128: with 4,096 inputs each they need little more than 1,024 x 4,096 cycles.
grading.assert_equal(product_cycles(4096, 4096, 4096, 128, 128), 4_194_686, what="product_cycles of 4096 x 4096 x 4096")
### BEGIN HIDDEN TESTS
draw = grading.Draws("c")
for _ in range(4):
    m, n, k = draw.integer(1, 9), draw.integer(3, 7), draw.integer(3, 7)
    a = [[draw.integer(-9, 9) for _ in range(k)] for _ in range(m)]
    b = [[draw.integer(-9, 9) for _ in range(n)] for _ in range(k)]
    check_product(a, b, draw.integer(2, 4), draw.integer(1, 3))
for _ in range(6):
    m, n, k = (draw.integer(1, 3000) for _ in "mnk")
    rows, cols = draw.integer(4, 200), draw.integer(4, 200)
    last = starts(-(-k // rows) * -(-n // cols), m, rows, cols)[-1]
    sizes = (m, n, k, rows, cols)
    grading.assert_equal(product_cycles(*sizes), last + m + rows + cols - 2, what=f"product_cycles{sizes}")
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# **Say what follows.** Your array of 128 x 128 has one wire that says to all PEs whether weights move. A colleague
# offers a second design: each column has its own wire, delayed by one cycle per column as the inputs are, so that two
# tiles may begin 2 rows - 1 cycles apart. (Take that as given: each column may start loading when its own last PE swaps.
# In `product_cycles`, only this gap changes.) Another colleague offers an array that is twice as wide, 128 x 256, with
# the single wire. Take a layer with 4,096 x 4,096 weights, and batches of 16, 256 and 4,096. How many cycles does each
# of the three designs take? Nine rounded numbers in a small table will do. Then answer in four to six sentences: which
# batches gain from which design, and why? Which would you build for a service that answers single users, and what else
# could be changed for it? A person reads your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "c-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c-why", "role": "written", "needs": ["setup"], "title": "Say what follows"}
# ### BEGIN SOLUTION
# #: *Your answer*
# A tile costs max(m, 382) cycles on the plain array, max(m, 255) with a wire for each column, and max(m, 510) on the
# wide one, which has 512 tiles instead of 1,024.
#
# | batch | plain | a wire for each column | 128 x 256 |
# |--:|--:|--:|--:|
# | 16 | 391,000 | 261,000 | 261,000 |
# | 256 | 391,000 | 263,000 | 261,000 |
# | 4,096 | 4.19 million | 4.19 million | 2.10 million |
#
# Below 255 inputs the time is that of loading, whatever the batch: the wires save a third of it, and the wide array
# brings twice as many weights in a load that takes a third longer. At batch 4,096 loading is hidden, so wires gain
# nothing and twice the multipliers halve the time. For single users I would build the wires: they gain as much as the
# wide array, without its 16,384 multipliers. What helps more is to load several rows of weights per cycle, or to let
# several small arrays load at the same time; both need more bandwidth from memory. Batching the requests of several
# users costs nothing.
# ### END SOLUTION

# %% [markdown]
# ## d. Decide what is fused
#
# Now the compiler. A network is a graph in plain data:
#
# - `"inputs"`: a dict from name to `(rows, columns)`;
# - `"ops"`: a list of `(result, kind, arguments)`, in an order in which they can run;
# - `"outputs"`: a list of results.
#
# The kinds are `add`, `sub`, `mul`, `div`, `max` of two tensors, where a side of 1 is repeated as in NumPy; `relu` and
# `exp`; `row_sum` and `row_max`, which give one column; and `matmul`. Every element has 4 bytes.


# %% nbgrader={"grade": false, "grade_id": "d-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def shapes_of(graph):
    """Return the (rows, columns) of every tensor of a graph, by name."""
    found = {name: tuple(shape) for name, shape in graph["inputs"].items()}
    for result, kind, arguments in graph["ops"]:
        sizes = [found[name] for name in arguments]
        if kind == "matmul":
            found[result] = (sizes[0][0], sizes[1][1])
        elif kind in ("row_sum", "row_max"):
            found[result] = (sizes[0][0], 1)
        else:
            found[result] = (max(rows for rows, _ in sizes), max(cols for _, cols in sizes))
    return found


SOFTMAX = {
    "inputs": {"x": (64, 256)},
    "ops": [
        ("most", "row_max", ("x",)),
        ("less", "sub", ("x", "most")),
        ("e", "exp", ("less",)),
        ("total", "row_sum", ("e",)),
        ("y", "div", ("e", "total")),
    ],
    "outputs": ["y"],
}

BLOCK = {  # two layers with a residual connection, and a softmax
    "inputs": {"x": (64, 128), "w1": (128, 256), "b1": (1, 256), "w2": (256, 128), "b2": (1, 128)},
    "ops": [
        ("p1", "matmul", ("x", "w1")),
        ("s1", "add", ("p1", "b1")),
        ("r1", "relu", ("s1",)),
        ("p2", "matmul", ("r1", "w2")),
        ("s2", "add", ("p2", "b2")),
        ("s3", "add", ("s2", "x")),
        ("most", "row_max", ("s3",)),
        ("less", "sub", ("s3", "most")),
        ("e", "exp", ("less",)),
        ("total", "row_sum", ("e",)),
        ("y", "div", ("e", "total")),
    ],
    "outputs": ["y"],
}

LONG_SUM = {  # more tensors than a kernel may read
    "inputs": {"a": (64, 256), "b": (64, 256), "c": (64, 256), "d": (64, 256), "f": (64, 1), "g": (64, 1)},
    "ops": [
        ("t1", "mul", ("a", "b")),
        ("t2", "row_sum", ("t1",)),
        ("t3", "add", ("t2", "f")),
        ("t4", "mul", ("c", "t3")),
        ("t5", "add", ("t4", "d")),
        ("t6", "sub", ("t5", "g")),
    ],
    "outputs": ["t6"],
}

WOVEN = {
    "inputs": {"x": (64, 128), "u": (64, 128), "v": (64, 128)},
    "ops": [
        ("t0", "row_max", ("x",)),
        ("t1", "add", ("x", "t0")),
        ("t2", "add", ("t1", "u")),
        ("t3", "max", ("t2", "t0")),
        ("t4", "mul", ("t3", "v")),
        ("t5", "add", ("x", "t4")),
        ("t6", "add", ("t5", "t1")),
    ],
    "outputs": ["t6"],
}

# %% [markdown]
# A kernel computes a **group** of operations. It reads each tensor that it needs from memory once, and stores one
# result; whatever else it computes stays in registers. The rules:
#
# 1. Every operation is in one group. Nothing is computed twice.
# 2. A group stores **one** result: exactly one of its results is an output, or is used by another group.
# 3. A group reads at most 4 tensors from memory.
# 4. A group has at most one `matmul`. It reads both of its arguments from memory, and its group has no `row_sum` or
#    `row_max`. (What comes after it may be fused with it, what comes before it may not.)
#
# The cost of a group is 4 bytes for each element that it reads or stores. Write `fuse(graph)`. It returns the groups in
# an order in which they can run, each as a list of results, such as `[["p1", "s1", "r1"], ...]`. **The groups must be
# legal, and no legal division may move fewer bytes.** The graphs of the tests have up to 12 operations.
#
# Two obvious ideas are not enough: to join each operation to the one before whenever that is legal, and to merge again
# and again those two groups whose merging saves most. Each moves more bytes than it must on at least one of the visible
# graphs. It is worth finding out why.
#
# <details><summary>Hint 1</summary>
# Decide for each result whether it is stored. Outputs are. If that is decided, is there anything left to decide?
# </details>
# <details><summary>Hint 2</summary>
# A result that is not stored can only be used inside its own group. So all operations that use it must be in one group,
# and it is in that group too. Going through the operations backwards, the users' groups are always known.
# </details>
# <details><summary>Hint 3</summary>
# With 12 operations there are at most 4,096 choices of what is stored: <code>itertools.product((True, False),
# repeat=len(ops))</code>. For each one, make the groups, leave it if a rule is broken, add up the bytes, and keep the
# best. Groups in the order of their stored results can always run.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-fuse", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "Decide what is fused"}
def fuse(graph):
    """Return the groups of operations that move the least bytes, in an order in which they can run."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("fuse")
    from itertools import product

    ops = {result: (kind, arguments) for result, kind, arguments in graph["ops"]}
    users = {name: [result for result, (_, arguments) in ops.items() if name in arguments] for name in ops}
    bytes_of = {name: 4 * rows * cols for name, (rows, cols) in shapes_of(graph).items()}

    def cost(members, result):
        """Bytes of a group, or None if it breaks a rule."""
        reads = {name for one in members for name in ops[one][1]} - set(members)
        products = [one for one in members if ops[one][0] == "matmul"]
        if len(reads) > 4 or len(products) > 1:
            return None
        if products and not set(ops[products[0]][1]) <= reads:
            return None
        if products and any(ops[one][0].startswith("row_") for one in members):
            return None
        return sum(bytes_of[name] for name in reads) + bytes_of[result]

    best = None
    for choice in product((True, False), repeat=len(ops)):
        stored = dict(zip(ops, choice, strict=True))
        home = {}
        for name in reversed(ops):
            homes = {name} if stored[name] else {home.get(user) for user in users[name]}
            if len(homes) != 1 or (name in graph["outputs"] and not stored[name]):
                break
            home[name] = homes.pop()
        else:
            groups = [[one for one in ops if home[one] == name] for name in ops if stored[name]]
            costs = [cost(group, group[-1]) for group in groups]
            if None not in costs and (best is None or sum(costs) < best[0]):
                best = sum(costs), groups
    return best[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
def check_groups(graph, name):
    """Check that groups are legal, compute the same, and move the least bytes."""
    fusion_plan.assert_groups(fuse(graph), graph, name=name)


check_groups({"inputs": {"x": (64, 256)}, "ops": [("y", "relu", ("x",))], "outputs": ["y"]}, "one operation")
check_groups(SOFTMAX, "softmax")
check_groups(BLOCK, "two layers and a softmax")
check_groups(LONG_SUM, "a long sum")
check_groups(WOVEN, "a woven graph")
two_outputs = {
    "inputs": {"x": (64, 256), "v": (1, 256)},
    "ops": [("t1", "mul", ("x", "v")), ("y1", "exp", ("t1",)), ("y2", "row_sum", ("y1",)), ("y3", "relu", ("t1",))],
    "outputs": ["y1", "y2", "y3"],
}
check_groups(two_outputs, "three outputs")
two_products = {  # one kernel could read all three tensors, but a group has one product
    "inputs": {"x": (64, 128), "w": (128, 256), "u": (128, 256)},
    "ops": [("p", "matmul", ("x", "w")), ("q", "matmul", ("x", "u")), ("y", "add", ("p", "q"))],
    "outputs": ["y"],
}
check_groups(two_products, "two products")
### BEGIN HIDDEN TESTS
draw = grading.Draws("d")
for number, count in enumerate((6, 8, 8, 9, 9, 10, 10, 11, 12, 12), start=1):
    check_groups(fusion_plan.draw_graph(draw, count), f"graph {number} of the hidden tests")
m, n = draw.integer(40, 90), draw.integer(100, 300)
woven = WOVEN | {"inputs": dict.fromkeys("xuv", (m, n))}
check_groups(woven, "a woven graph of other sizes")
sums = {name: (m, n if cols > 1 else 1) for name, (_, cols) in LONG_SUM["inputs"].items()}
check_groups(LONG_SUM | {"inputs": sums}, "a long sum of other sizes")
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# Your groups can run now. `mlsys.compiler` divides a network into kernels, chooses tiles, places tensors, and writes
# Triton, one stage after the other, and any stage can be replaced. Here the stage that fuses follows your groups; the
# rest is the compiler's own. Look at one kernel's text before you write such a text yourself in question f. The
# compiler's kernels have their sizes compiled in, take several rows at once, and keep NaN as torch does; yours will need
# none of this.

# %%
groups = fuse(BLOCK)
compiled = fusion_plan.compile_groups(BLOCK, groups, DEVICE)
print(f"{len(BLOCK['ops'])} operations in {len(groups)} kernels: {groups}")
one_by_one = [[result] for result, _, _ in BLOCK["ops"]]
print(
    f"{fusion_plan.plan_bytes(BLOCK, one_by_one):,} bytes one by one, {fusion_plan.plan_bytes(BLOCK, groups):,} fused"
)
print(compiled.source.split("@triton.jit")[-1])

# %% [markdown]
# ## e. Choose tiles for a product
#
# A kernel for C = A B on a GPU gives each block of threads a tile of `tile_m` x `tile_n` elements of C. The block goes
# along k in steps of `tile_k`. In each step it loads a piece of A and a piece of B into **shared memory** and
# multiplies them; the sums stay in registers. With `stages` pieces in shared memory at once, the loads of the next
# steps are under way while this one is multiplied.
#
# A chip is a dict of ints:
#
# - `"sms"`: blocks that run at the same time, one on each multiprocessor;
# - `"shared"`: bytes of shared memory for a block; `"sums"`: elements of C that a block's registers can hold;
# - `"latency"`: cycles until what is loaded begins to arrive;
# - `"bytes"`: bytes that arrive per cycle; `"macs"`: multiply-adds per cycle, both of one multiprocessor.
#
# A tile **fits** if `stages * (tile_m * tile_k + tile_k * tile_n) * 2 <= shared` (an element has 2 bytes) and `tile_m *
# tile_n <= sums`. Its cycles are
#
# - load = (tile_m tile_k + tile_k tile_n) 2 / bytes, and work = tile_m tile_n tile_k / macs, both rounded up;
# - step = the largest of load, work, and (latency + load + work) / stages, the quotient rounded up: a piece needs
#   latency + load + work cycles from the start of its load to the end of its multiplication, and in that time `stages`
#   pieces are under way;
# - block = latency + step times the number of steps along k (rounded up: the last step costs as much as a full one).
#   The latency in front is there with any number of stages, also with one;
# - all = block times the number of **waves**: the blocks that C needs, divided by `sms`, rounded up.
#
# Write two functions:
#
# - `tile_cycles(m, n, k, tile, chip)`: all cycles for `tile = (tile_m, tile_n, tile_k, stages)`, an int, or `None` if
#   the tile does not fit;
# - `best_tile(m, n, k, chip)`: a tile of the fewest cycles, with three sides out of 16, 32, 64, 128, 256 and 1 to 4
#   stages. If several are equally fast, any of them will do.
#
# <details><summary>Hint 1</summary>
# Write the first function line by line from the list. <code>-(-a // b)</code> divides and rounds up, without any
# float.
# </details>
# <details><summary>Hint 2</summary>
# The third term of the step is rounded up after the division by <code>stages</code>. Ragged sides cost whole tiles:
# round up m / tile_m and n / tile_n separately, then multiply, then divide by <code>sms</code>.
# </details>
# <details><summary>Hint 3</summary>
# There are only 5 x 5 x 5 x 4 = 500 tiles: <code>itertools.product</code> gives them all. Leave out those for which
# <code>tile_cycles</code> is <code>None</code>, and take <code>min</code> by cycles.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-tiles", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "Choose tiles for a product"}
def tile_cycles(m, n, k, tile, chip):
    """Return the cycles of a product with a tile (tile_m, tile_n, tile_k, stages), or None if it does not fit."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("tile_cycles")
    tile_m, tile_n, tile_k, stages = tile
    piece = (tile_m * tile_k + tile_k * tile_n) * 2
    if stages * piece > chip["shared"] or tile_m * tile_n > chip["sums"]:
        return None
    load = -(-piece // chip["bytes"])
    work = -(-tile_m * tile_n * tile_k // chip["macs"])
    step = max(load, work, -(-(chip["latency"] + load + work) // stages))
    block = chip["latency"] + -(-k // tile_k) * step
    return block * -(-(-(-m // tile_m) * -(-n // tile_n)) // chip["sms"])
    ### END SOLUTION


def best_tile(m, n, k, chip):
    """Return a tile (tile_m, tile_n, tile_k, stages) that takes the fewest cycles."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("best_tile")
    from itertools import product

    sides = (16, 32, 64, 128, 256)
    tiles = [tile for tile in product(sides, sides, sides, (1, 2, 3, 4)) if tile_cycles(m, n, k, tile, chip)]
    return min(tiles, key=lambda tile: tile_cycles(m, n, k, tile, chip))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
def fastest(m, n, k, chip):
    """Cycles of the student's tile, after a look at what it is."""
    tile = best_tile(m, n, k, chip)
    assert isinstance(tile, list | tuple), "best_tile must return (tile_m, tile_n, tile_k, stages)"
    assert len(tile) == 4, "best_tile must return (tile_m, tile_n, tile_k, stages)"
    assert all(type(side) is int for side in tile), "best_tile must return four plain ints"
    assert all(side in (16, 32, 64, 128, 256) for side in tile[:3]), "every side must be one of 16, 32, 64, 128, 256"
    assert 1 <= tile[3] <= 4, "there must be 1 to 4 stages"
    return tuple(tile)


GPU = {"sms": 132, "shared": 232448, "sums": 16384, "latency": 600, "bytes": 32, "macs": 1024}
# 64 x 64 x 32: a piece has 8,192 bytes, so it loads in 256 cycles and is multiplied in 128. One block, 4 steps.
one = GPU | {"sms": 1}
grading.assert_equal(tile_cycles(64, 64, 128, (64, 64, 32, 1), one), 600 + 4 * 984, what="one stage")
grading.assert_equal(tile_cycles(64, 64, 128, (64, 64, 32, 3), one), 600 + 4 * 328, what="three stages")
grading.assert_equal(tile_cycles(64, 64, 128, (64, 64, 32, 4), one), 600 + 4 * 256, what="four stages")
grading.assert_equal(tile_cycles(65, 65, 129, (64, 64, 32, 4), one), 4 * (600 + 5 * 256), what="ragged m, n and k")
# 8,192 bytes at 24 per cycle, 131,072 multiply-adds at 1,000 per cycle, and half of 601 + 342 + 132: each quotient has
# a remainder, and is rounded up.
odd = one | {"bytes": 24, "macs": 1000, "latency": 601}
grading.assert_equal(
    tile_cycles(64, 64, 128, (64, 64, 32, 2), odd), 601 + 4 * 538, what="load, work and step rounded up"
)
odd = one | {"macs": 300}
grading.assert_equal(tile_cycles(64, 64, 128, (64, 64, 32, 4), odd), 600 + 4 * 437, what="multiplying takes longest")
just = one | {"shared": 4 * 8192, "sums": 64 * 64}
grading.assert_equal(tile_cycles(64, 64, 128, (64, 64, 32, 4), just), 600 + 4 * 256, what="a tile that just fits")
# 12 x 12 = 144 blocks are two waves on 132 multiprocessors.
grading.assert_equal(tile_cycles(768, 768, 128, (64, 64, 32, 4), GPU), 2 * (600 + 4 * 256), what="two waves")
assert tile_cycles(512, 512, 512, (256, 128, 32, 1), GPU) is None, "256 x 128 sums do not fit in 16,384: return None"
assert tile_cycles(512, 512, 512, (128, 128, 256, 2), GPU) is None, "2 stages of 131,072 bytes do not fit: return None"
assert tile_cycles(512, 512, 512, (128, 128, 256, 1), GPU) is not None, "one stage of 131,072 bytes fits"
found = fastest(4096, 4096, 4096, GPU)
grading.assert_equal(tile_cycles(4096, 4096, 4096, found, GPU), 529_088, what=f"4096 x 4096 x 4096 with {found}")
found = fastest(100, 100, 4096, GPU)
grading.assert_equal(tile_cycles(100, 100, 4096, found, GPU), 8_792, what=f"100 x 100 x 4096 with {found}")
small = GPU | {"shared": 12288}
found = fastest(300, 2000, 1000, small)
grading.assert_equal(tile_cycles(300, 2000, 1000, found, small), 29_580, what=f"little shared memory, with {found}")
### BEGIN HIDDEN TESTS
from itertools import product

draw = grading.Draws("e")


def counted(m, n, k, tile, chip):
    """Cycles by the rules, in another order than the solution's."""
    tile_m, tile_n, tile_k, stages = tile
    elements = tile_k * (tile_m + tile_n)
    if 2 * elements * stages > chip["shared"] or tile_m * tile_n > chip["sums"]:
        return None

    def up(a, b):
        return (a + b - 1) // b

    load, work = up(2 * elements, chip["bytes"]), up(tile_m * tile_n * tile_k, chip["macs"])
    step = max(load, work, up(chip["latency"] + load + work, stages))
    waves = up(up(m, tile_m) * up(n, tile_n), chip["sms"])
    return waves * (chip["latency"] + up(k, tile_k) * step)


every = list(product((16, 32, 64, 128, 256), (16, 32, 64, 128, 256), (16, 32, 64, 128, 256), (1, 2, 3, 4)))
for _ in range(6):
    chip = {
        "sms": draw.integer(10, 150),
        "shared": 1024 * draw.integer(48, 228),
        "sums": 1024 * draw.integer(4, 32),
        "latency": draw.integer(200, 900),
        "bytes": draw.integer(16, 64),
        "macs": draw.integer(128, 2048),
    }
    m, n, k = (draw.integer(50, 5000) for _ in "mnk")
    for _ in range(12):
        tile = every[draw.integer(0, len(every) - 1)]
        what = f"tile_cycles({m}, {n}, {k}, {tile}, {chip})"
        right = counted(m, n, k, tile, chip)
        if right is None:
            assert tile_cycles(m, n, k, tile, chip) is None, f"{what}: the tile does not fit; return None"
        else:
            grading.assert_equal(tile_cycles(m, n, k, tile, chip), right, what=what)
    cycles = counted(m, n, k, fastest(m, n, k, chip), chip)
    assert cycles is not None, f"best_tile({m}, {n}, {k}, {chip}): the tile does not fit"
    least = min(one for one in (counted(m, n, k, tile, chip) for tile in every) if one is not None)
    assert cycles == least, f"best_tile({m}, {n}, {k}, {chip}): another tile is {cycles / least:.2f} times as fast"
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# ## f. Write Triton
#
# Your compiler's last stage: a function that writes a kernel. Write `emit(graph)`. It gets a graph that is **one**
# group, without `matmul` and with one output, and returns the Python source of a Triton kernel as a string. The
# kernel's name is `fused_kernel`, and its arguments are the graph's inputs in their order, then the output, `cols`, and
# `BLOCK`. For `{"inputs": {"x": (5, 7), "v": (1, 7)}, "ops": [("y", "add", ("x", "v"))], "outputs": ["y"]}` it may
# return
#
# ```python
# import triton
# import triton.language as tl
#
#
# @triton.jit
# def fused_kernel(x_ptr, v_ptr, out_ptr, cols, BLOCK: tl.constexpr):
#     row = tl.program_id(0)
#     col = tl.arange(0, BLOCK)
#     inside = col < cols
#     x = tl.load(x_ptr + row * cols + col, mask=inside, other=0.0)
#     v = tl.load(v_ptr + col, mask=inside, other=0.0)
#     y = x + v
#     tl.store(out_ptr + row * cols + col, y, mask=inside)
# ```
#
# The **contract**:
#
# - Program `tl.program_id(0)` computes one row. `cols` is the number of columns of the matrices, and BLOCK is a power of
#   two that is at least as large.
# - A tensor is a matrix (rows, cols), a column (rows, 1), or a row (1, cols). All are contiguous and float32; there are
#   at least 2 rows and 2 columns. The output is a matrix or a column, every input is used, and `row_sum` and `row_max`
#   get matrices. Tensors may have any names that Python allows, also `row` or `tl`. No visible test uses such names, but
#   the tests that grade you do.
# - The text is data to the judge. The function in it must meet the rules of every kernel in this course: Triton's
#   language (`tl`), arithmetic, `float("inf")`, and functions with `@triton.jit`. Nothing outside of functions runs. It
#   is launched on random inputs, with bands of NaNs around every tensor.
#
# Messages count the lines of the text from its top. To see them, `print(emit(SOFTMAX))`.
#
# <details><summary>Hint 1</summary>
# Write the kernel for the softmax by hand first and test it with <code>check_emitted</code>. Then look at it line by
# line: which part of each line depends on the graph?
# </details>
# <details><summary>Hint 2</summary>
# One line for each input and one for each operation. A column is loaded with <code>tl.load(c_ptr + row)</code> and is a
# single number; blocks and numbers mix in arithmetic. The block has more elements than the row, and in a
# <code>row_max</code> or <code>row_sum</code> the elements beyond the row must do no harm: whatever was loaded there,
# after <code>exp</code> or <code>add</code> it is something else.
# </details>
# <details><summary>Hint 3</summary>
# <code>tl.sum(tl.where(inside, t, 0.0), 0)</code> and <code>tl.max(tl.where(inside, t, -float("inf")), 0)</code>. A
# dict from kind to text does the rest: <code>{"add": "{} + {}", "relu": "tl.maximum({}, 0.0)", ...}[kind].format(*arguments)</code>.
# Give tensors a prefix, so that no name of the graph is <code>row</code> or <code>tl</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "f-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_fused(kernel, constants, out, *inputs):
    """Launch one program for each row."""
    rows = max(tensor.shape[0] for tensor in (*inputs, out))
    cols = max(tensor.shape[1] for tensor in (*inputs, out))
    kernel[(rows,)](*inputs, out, cols, **constants)


def evaluate(graph, inputs):
    """Return the outputs of a graph, computed by torch in float64; `inputs` is a dict of tensors."""
    found = {name: tensor.double() for name, tensor in inputs.items()}
    functions = {
        "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "max": torch.maximum,
        "relu": torch.relu, "exp": torch.exp, "matmul": torch.matmul,
        "row_sum": lambda x: x.sum(1, keepdim=True), "row_max": lambda x: x.amax(1, keepdim=True),
    }  # fmt: skip
    for result, kind, arguments in graph["ops"]:
        found[result] = functions[kind](*(found[name] for name in arguments))
    return [found[name].float() for name in graph["outputs"]]


# %% nbgrader={"grade": false, "grade_id": "f-emit", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup"], "title": "Write Triton"}
def emit(graph):
    """Return the source of `fused_kernel`, which computes the graph's output."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("emit")
    texts = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "div": "{} / {}",
        "max": "tl.maximum({0}, {1})",
        "relu": "tl.maximum({}, 0.0)",
        "exp": "tl.exp({})",
        "row_sum": "tl.sum(tl.where(inside, {}, 0.0), 0)",
        "row_max": 'tl.max(tl.where(inside, {}, -float("inf")), 0)',
    }
    pointers = ", ".join(f"{name}_ptr" for name in graph["inputs"])
    lines = [
        "import triton\nimport triton.language as tl\n\n\n@triton.jit",
        f"def fused_kernel({pointers}, out_ptr, cols, BLOCK: tl.constexpr):",
        "    row = tl.program_id(0)",
        "    col = tl.arange(0, BLOCK)",
        "    inside = col < cols",
    ]
    for name, (rows, cols) in graph["inputs"].items():
        place = "row" if cols == 1 else "col" if rows == 1 else "row * cols + col"
        mask = "" if cols == 1 else ", mask=inside, other=0.0"
        lines.append(f"    t_{name} = tl.load({name}_ptr + {place}{mask})")
    for result, kind, arguments in graph["ops"]:
        text = texts[kind].format(*(f"t_{name}" for name in arguments))
        lines.append(f"    t_{result} = {text}")
    (output,) = graph["outputs"]
    if shapes_of(graph)[output][1] == 1:
        lines.append(f"    tl.store(out_ptr + row, t_{output})")
    else:
        lines.append(f"    tl.store(out_ptr + row * cols + col, t_{output}, mask=inside)")
    return "\n".join(lines) + "\n"
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup"]}
draw = grading.Draws("f", DEVICE)


def check_emitted(graph, name, values="normal"):
    """Launch the kernel that `emit` writes, and compare its output with torch's in float64."""
    kernel = grading.written_kernel(emit(graph), "fused_kernel", what=name)
    inputs = {tensor: draw.matrix(*shape, values=values) for tensor, shape in graph["inputs"].items()}
    (right,) = evaluate(graph, inputs)
    columns = max(cols for _, cols in graph["inputs"].values())
    constants = {"BLOCK": max(16, triton.next_power_of_2(columns))}
    what = f"{name}: {graph['inputs']}"
    tensors = list(inputs.values())
    grading.check_kernel(
        kernel, constants, tensors, right, launch=launch_fused, what=what, tile=(1, constants["BLOCK"])
    )


def graph_of(ops, rows, cols, output):
    """Make a graph with a matrix x and, where they are used, a matrix u, a row v, and a column c."""
    shapes = {"x": (rows, cols), "u": (rows, cols), "v": (1, cols), "c": (rows, 1)}
    used = {name for _, _, arguments in ops for name in arguments}
    return {"inputs": {name: shapes[name] for name in shapes if name in used}, "ops": ops, "outputs": [output]}


check_emitted(graph_of([("y", "add", ("x", "v"))], 5, 16, "y"), "x + v")
check_emitted(graph_of([("y", "sub", ("x", "v"))], 5, 7, "y"), "x - v, columns ragged")
check_emitted(graph_of([("t", "mul", ("x", "c")), ("y", "sub", ("t", "u"))], 6, 20, "y"), "x c - u")
check_emitted(graph_of([("t", "max", ("x", "u")), ("y", "relu", ("t",))], 6, 20, "y"), "relu(max(x, u))")
check_emitted(SOFTMAX | {"inputs": {"x": (5, 32)}}, "softmax")
check_emitted(SOFTMAX | {"inputs": {"x": (5, 21)}}, "softmax, columns ragged")
check_emitted(graph_of([("y", "row_sum", ("x",))], 6, 40, "y"), "row_sum(x), a column", values="positive")
check_emitted(graph_of([("y", "row_max", ("x",))], 6, 40, "y"), "row_max(x), all negative", values="negative")
### BEGIN HIDDEN TESTS
patterns = [
    ([("t0", "mul", ("x", "v")), ("t1", "exp", ("t0",)), ("y", "row_sum", ("t1",))], "y"),
    (
        [("t0", "sub", ("x", "u")), ("t1", "row_max", ("t0",)), ("t2", "mul", ("t1", "c")), ("y", "add", ("u", "t2"))],
        "y",
    ),
    ([("a", "add", ("x", "v")), ("b", "row_sum", ("a",)), ("d", "div", ("a", "b")), ("e", "max", ("d", "c"))], "e"),
    ([("row", "relu", ("x",)), ("tl", "add", ("row", "c")), ("col", "max", ("tl", "v"))], "col"),
    (
        [("t0", "row_max", ("u",)), ("t1", "row_max", ("x",)), ("t2", "max", ("t0", "t1")), ("y", "sub", ("t2", "c"))],
        "y",
    ),
]
for number, (ops, output) in enumerate(patterns, start=1):
    rows, cols = draw.integer(2, 9), draw.ragged(17, 90)
    check_emitted(graph_of(ops, rows, cols, output), f"kernel {number} of the hidden tests", values="positive")
ops, before = [], "x"
for number in range(draw.integer(4, 6)):
    kind = ("add", "max", "sub")[draw.integer(0, 2)]
    other = ("u", "v", "c", "x")[draw.integer(0, 3)]
    ops += [(f"s{number}", kind, (before, other)), (f"r{number}", "row_max", (f"s{number}",))]
    ops.append((f"t{number}", "sub", (f"s{number}", f"r{number}")))
    before = f"t{number}"
check_emitted(graph_of(ops, draw.integer(2, 6), draw.ragged(17, 90), before), "a long kernel of the hidden tests")
softmax = SOFTMAX | {"inputs": {"x": (draw.integer(2, 6), draw.ragged(33, 200))}}
check_emitted(softmax, "softmax of other sizes", values="negative")
### END HIDDEN TESTS
scorecard.passed("f")

# %% [markdown]
# ## g. Place buffers in a given order
#
# The kernels pass tensors on to each other, and each tensor needs a place in one block of memory, but only from the
# kernel that stores it to the last one that reads it. A **buffer** is `(lower, upper, size)`: it is live while lower <=
# time < upper. A plan is a list of offsets, one for each buffer. Buffers that are live at the same time must not
# overlap. The **height** of a plan is the largest offset + size, the memory that it needs.
#
# No plan is lower than the **lower bound**, the most that is live at the same time. But many plans are higher: gaps
# remain in which nothing fits.
#
# A simple planner takes the buffers in some order and gives each one the lowest offset at which it overlaps with none
# that has been placed: **first fit**. Write `place(buffers, order)`, where `order` lists the numbers of all buffers. It
# returns the offsets in the order of `buffers`, as plain ints.
#
# <details><summary>Hint 1</summary>
# Of the buffers that have been placed, only those that are live at some time together with this one matter. Two buffers
# meet if each begins before the other ends.
# </details>
# <details><summary>Hint 2</summary>
# Sort those by offset, and go upward from 0: if the gap before the next one is large enough, stop; otherwise go on above
# its end, unless you are higher already.
# </details>
# <details><summary>Hint 3</summary>
# <code>at = 0</code>; for each <code>(begin, end)</code> in sorted order: <code>if begin - at &gt;= size: break</code>,
# then <code>at = max(at, end)</code>. Questions h and the challenge call this function thousands of times: it pays to
# find out once which buffers meet.
# </details>


# %% nbgrader={"grade": false, "grade_id": "g-place", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup"], "title": "Place buffers in a given order"}
def place(buffers, order):
    """Return the offsets of buffers that are placed in an order, each as low as possible."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("place")
    offsets = {}
    for one in order:
        lower, upper, size = buffers[one]
        met = [other for other in offsets if buffers[other][0] < upper and lower < buffers[other][1]]
        at = 0
        for begin, end in sorted((offsets[other], offsets[other] + buffers[other][2]) for other in met):
            if begin - at >= size:
                break
            at = max(at, end)
        offsets[one] = at
    return [offsets[one] for one in range(len(buffers))]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "g-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "test", "needs": ["setup"]}
def check_place(buffers, order, right):
    """Compare every offset."""
    what = f"{len(buffers)} buffers"
    found = place(buffers, order)
    buffer_plan.checked_height(found, buffers, name=what)
    for number, (offset, due) in enumerate(zip(found, right, strict=True)):
        grading.assert_equal(offset, due, what=f"{what}: the offset of buffer {number}")


check_place([(0, 2, 10), (1, 3, 5), (2, 4, 10)], [0, 1, 2], [0, 10, 0])  # the last one goes where the first one was
check_place([(0, 2, 10), (1, 3, 5), (2, 4, 10)], [1, 0, 2], [5, 0, 5])
check_place([(0, 4, 4), (0, 2, 6), (0, 4, 3), (2, 4, 6)], [0, 1, 2, 3], [0, 4, 10, 4])  # into a gap that it fills
check_place([(0, 4, 4), (0, 2, 6), (0, 4, 3), (2, 4, 7)], [0, 1, 2, 3], [0, 4, 10, 13])  # one too large for the gap
check_place([(0, 2, 10), (2, 4, 2), (2, 4, 3), (1, 3, 4)], [0, 1, 2, 3], [0, 0, 2, 10])  # above all that it meets
### BEGIN HIDDEN TESTS
draw = grading.Draws("g")
for count in (8, 15, 30):
    buffers = buffer_plan.draw_problem(draw, count, 12, 200)
    order = sorted(range(len(buffers)), key=lambda _: draw.integer(0, 10**6))
    check_place(buffers, order, buffer_plan.first_fit(buffers, order))
### END HIDDEN TESTS
scorecard.passed("g")

# %% [markdown]
# ## h. Race against best fit
#
# An allocator that runs while the program runs knows nothing of the future. **Best fit** takes the buffers as they
# come, in the order of `lower`, and gives each one the smallest gap that is large enough. A compiler knows all
# lifetimes in advance. How much is that worth?


# %% nbgrader={"grade": false, "grade_id": "h-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def lower_bound(buffers):
    """Return the most that is live at the same time."""
    return max(sum(size for lower, upper, size in buffers if lower <= time < upper) for time, _, _ in buffers)


def height(buffers, offsets):
    """Return the memory that a plan needs."""
    return max(offset + size for offset, (_, _, size) in zip(offsets, buffers, strict=True))


def best_fit(buffers):
    """Return the offsets that an allocator gives: in the order of `lower`, each in the smallest gap that is enough."""
    offsets = {}
    for one in sorted(range(len(buffers)), key=lambda number: (buffers[number][0], number)):
        lower, _, size = buffers[one]
        live = sorted((offsets[other], buffers[other][2]) for other in offsets if buffers[other][1] > lower)
        gaps, at = [], 0
        for offset, length in live:
            if offset - at >= size:
                gaps.append((offset - at, at))
            at = max(at, offset + length)
        offsets[one] = min(gaps)[1] if gaps else at
    return [offsets[one] for one in range(len(buffers))]


problem_draw = grading.Draws("problems")
PROBLEMS = [buffer_plan.draw_problem(problem_draw, 40, 20, 1000) for _ in range(6)]

# %%
for buffers in PROBLEMS:
    print(f"{len(buffers)} buffers: lower bound {lower_bound(buffers)}, best fit {height(buffers, best_fit(buffers))}")

# %% [markdown]
# Write `plan(buffers)`. It returns offsets, for any order that you like or by any other method. The test adds up what
# your plans waste above the lower bounds of all problems, and what best fit wastes. **Yours may waste at most a fifth
# of what best fit wastes.** The problems have 36 buffers each.
#
# There is a time limit too: when the lab is graded, your function plans 18 problems, in **less than 5 seconds**. It is
# stopped after 10, so that a slow machine costs nobody points.
#
# <details><summary>Hint 1</summary>
# Try <code>place</code> with the largest buffers first, with the longest-lived first, with the largest product of both
# first. Take the lowest of the three plans. This is better than best fit, but not good enough.
# </details>
# <details><summary>Hint 2</summary>
# A plan follows from an order, so search for a better order. Take one buffer out of the order and put it somewhere
# else. If the plan does not get higher, keep the new order; otherwise, go back to the old one. Repeat that some
# thousand times, and stop at the lower bound.
# </details>
# <details><summary>Hint 3</summary>
# Keep a move also if the height stays as it is: most moves do not change it, and the order wanders until one does. After
# a thousand moves for each problem, usually less than a tenth of best fit's waste is left. If that takes too long, note once for
# each buffer which others it meets, and let <code>place</code> look only at those.
# </details>


# %% nbgrader={"grade": false, "grade_id": "h-plan", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "h", "role": "solution", "needs": ["setup", "g"], "title": "Race against best fit"}
def plan(buffers):
    """Return offsets of a plan that wastes little memory."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("plan")
    import random

    chance = random.Random(0)
    bound = lower_bound(buffers)

    def above(offsets):
        """How far all buffers together reach above the lower bound."""
        return sum(max(0, offset + size - bound) for offset, (_, _, size) in zip(offsets, buffers, strict=True))

    keys = [
        lambda one: -buffers[one][2],
        lambda one: buffers[one][0] - buffers[one][1],
        lambda one: -buffers[one][2] * (buffers[one][1] - buffers[one][0]),
    ]
    orders = [sorted(range(len(buffers)), key=key) for key in keys]
    order = min(orders, key=lambda order: above(place(buffers, order)))
    best = place(buffers, order)
    waste = above(best)
    for _ in range(2000):
        if not waste:
            break
        changed = order[:]
        changed.insert(chance.randrange(len(order)), changed.pop(chance.randrange(len(order))))
        offsets = place(buffers, changed)
        if above(offsets) <= waste:
            order, waste, best = changed, above(offsets), offsets
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "h-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "h", "role": "test", "needs": ["setup"]}
def race(problems, what):
    """Check every plan, and compare what all of them waste with what best fit wastes."""
    heights = [
        buffer_plan.checked_height(plan(buffers), buffers, name=f"{what} {number}")
        for number, buffers in enumerate(problems, start=1)
    ]
    buffer_plan.assert_heights(heights, problems, [height(buffers, best_fit(buffers)) for buffers in problems], 0.2)


buffer_plan.checked_height(plan([(0, 2, 10), (1, 3, 5), (2, 4, 10)]), [(0, 2, 10), (1, 3, 5), (2, 4, 10)])
race(PROBLEMS, "problem")
### BEGIN HIDDEN TESTS
draw = grading.Draws("h")
race([buffer_plan.draw_problem(draw, 40, 20, 1000) for _ in range(12)], "problem of the hidden tests,")
### END HIDDEN TESTS
scorecard.passed("h")

# %% [markdown]
# ## Challenge: waste nothing
#
# The problems of h were made by cutting a rectangle into 40 pieces, of which four were taken out again where that does
# not lower the bound. So for each of them there is a plan that reaches the lower bound exactly. Write
# `perfect_plan(buffers)`, which finds such a plan: **its height must be the lower bound**. The problems have 36 buffers
# again. When the lab is graded, four problems must be solved in less than 5 seconds.
#
# <details><summary>Hint 1</summary>
# Your search of question h comes close. When it gets stuck, what stops it? Print how the waste falls over the moves.
# </details>
# <details><summary>Hint 2</summary>
# A search that only goes downhill ends in a place from which no single move leads further down. After some hundred moves
# without success, make a few moves whatever they cost, and go on from there. From time to time, return to the best
# order so far.
# </details>
# <details><summary>Hint 3</summary>
# Speed counts: note once for each buffer which others it meets, and let <code>place</code> look only at those. A plan
# with 36 buffers then takes about 0.1 ms, so there is time for more than 10,000 moves in each of the four problems. Most
# problems need less than 1,000, a few need ten times as many.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-plan", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup", "g", "h"], "title": "Challenge: waste nothing"}
def perfect_plan(buffers):
    """Return offsets of a plan whose height is the lower bound."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("perfect_plan")
    import random

    chance = random.Random(0)
    count, bound = len(buffers), lower_bound(buffers)
    meets = [
        [other for other in range(count) if other != one and buffers[other][0] < upper and lower < buffers[other][1]]
        for one, (lower, upper, _) in enumerate(buffers)
    ]

    def placed(order):
        """Offsets in an order, and how far all buffers together reach above the lower bound."""
        offsets, above = [None] * count, 0
        for one in order:
            size, at = buffers[one][2], 0
            met = [
                (offsets[other], offsets[other] + buffers[other][2])
                for other in meets[one]
                if offsets[other] is not None
            ]
            for begin, end in sorted(met):
                if begin - at >= size:
                    break
                at = max(at, end)
            offsets[one] = at
            above += max(0, at + size - bound)
        return offsets, above

    def move(order):
        order.insert(chance.randrange(count), order.pop(chance.randrange(count)))

    order = sorted(range(count), key=lambda one: buffers[one][0] - buffers[one][1])
    planned, waste = placed(order)
    best, stuck = (waste, order), 0
    while waste:
        changed = order[:]
        for _ in range(chance.choice((1, 1, 2))):
            move(changed)
        found, above = placed(changed)
        stuck = 0 if above < waste else stuck + 1
        if above <= waste:
            order, waste, planned = changed, above, found
        best = min(best, (waste, order))
        if stuck > 400:
            stuck, order = 0, list(chance.choice((order, best[1])))
            for _ in range(3):
                move(order)
            planned, waste = placed(order)
    return list(planned)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
def check_perfect(buffers, what):
    """Check that a plan is one, and wastes nothing."""
    found = buffer_plan.checked_height(perfect_plan(buffers), buffers, name=what)
    least = lower_bound(buffers)
    assert found == least, f"{what}: the plan needs {found / least - 1:.1%} more than the lower bound"


check_perfect([(0, 2, 10), (1, 3, 5), (2, 4, 10)], "three buffers")
check_perfect(PROBLEMS[0], "the first problem")
check_perfect(PROBLEMS[1], "the second problem")
### BEGIN HIDDEN TESTS
draw = grading.Draws("challenge")
check_perfect(buffer_plan.draw_problem(draw, 40, 20, 1000), "the first hidden problem")
check_perfect(buffer_plan.draw_problem(draw, 40, 20, 1000), "the second hidden problem")
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# Here are three predictions by rules of thumb, and what your own functions count.


# %%
def show_gap(case, predicted, counted):
    print(f"{case}: predicted {predicted:,.0f}, counted {counted:,.0f}, {counted / predicted:.2f} times as much")


# 1. Loading is hidden, so the cycles are those in which inputs stream: 16 tiles of 8 inputs each.
show_gap("case 1, cycles", 16 * 8, product_cycles(8, 64, 64, 16, 16))

# 2. Cycles in proportion to the work: n grows from 1408 to 1536, on 132 multiprocessors with tiles of 128 x 128.
TILE = (128, 128, 64, 4)
before = tile_cycles(1536, 1408, 4096, TILE, GPU)
show_gap("case 2, cycles", before * 1536 / 1408, tile_cycles(1536, 1536, 4096, TILE, GPU))

# 3. An allocator needs as much memory as is live at the worst moment.
show_gap("case 3, bytes", lower_bound(PROBLEMS[2]), height(PROBLEMS[2], best_fit(PROBLEMS[2])))

# %% [markdown]
# Name the main cause of each gap. The choices:
#
# - `"skew"`: the inputs of later rows enter later, so the first and the last results need extra cycles.
# - `"loading"`: the next weights take longer to arrive than the inputs of this tile.
# - `"waves"`: the last blocks leave most of the multiprocessors without work.
# - `"latency"`: the chip waits for the first piece to arrive.
# - `"gaps"`: there is room, but not in one piece.
#
# <details><summary>Hint 1</summary>
# Case 1: how many cycles would the skew alone add, and how many are added? Look at <code>starts</code>.
# </details>
# <details><summary>Hint 2</summary>
# Case 2: how many blocks does C have before, and how many after? The latency is there in both.
# </details>
# <details><summary>Hint 3</summary>
# Case 1: 15 times the difference between 46 and 8 is far more than 30 cycles of filling and draining. Case 3: whenever
# best fit puts a buffer on top of everything, the free bytes below would often have been enough together.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and count differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
cause_1 = "loading"
cause_2 = "waves"
cause_3 = "gaps"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the five")
    known = ("skew", "loading", "waves", "latency", "gaps")
    assert cause in known, f"cause_{number} is {cause!r}; choose one of {', '.join(known)}"
### BEGIN HIDDEN TESTS
key = ("loading", "waves", "gaps")
for number, (cause, right) in enumerate(zip((cause_1, cause_2, cause_3), key, strict=True), start=1):
    assert cause == right, f"cause_{number}: {cause!r} does not make this gap; compare what each side counts"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted:

# %%
NORM = {
    "inputs": {"x": (64, 256), "share": (1, 1), "scale": (1, 256), "root": (64, 1)},
    "ops": [
        ("total", "row_sum", ("x",)),
        ("mean", "mul", ("total", "share")),
        ("rest", "sub", ("x", "mean")),
        ("square", "mul", ("rest", "rest")),
        ("squares", "row_sum", ("square",)),
        ("variance", "mul", ("squares", "share")),
        ("deviation", "max", ("variance", "root")),
        ("ratio", "div", ("rest", "deviation")),
        ("y", "mul", ("ratio", "scale")),
    ],
    "outputs": ["y"],
}
apart = fusion_plan.plan_bytes(NORM, [[result] for result, _, _ in NORM["ops"]])
steps = {"sms": 1, "shared": 232448, "sums": 16384, "latency": 600, "bytes": 16, "macs": 2048}
slow, fast = (tile_cycles(64, 64, 64 * 1000, (64, 64, 32, stages), steps) for stages in (1, 4))
worst = [height(buffers, best_fit(buffers)) / lower_bound(buffers) for buffers in PROBLEMS]
grading.compare(
    predictions,
    enough_inputs=min(m for m in range(1, 100) if product_cycles(m, 32, 32, 16, 16) == 46 + 4 * m),
    fused_share=100 * fusion_plan.plan_bytes(NORM, fuse(NORM)) / apart,
    four_stages=slow / fast,
    best_fit_waste=100 * (sum(worst) / len(worst) - 1),
)

# %% [markdown]
# The whole machine, once: your groups and your memory plan take the place of two stages of the compiler, which runs a
# network of four layers. The kernel that normalizes its result is launched from the text of your `emit`.

# %%
DEEP = {"inputs": {"x": (64, 64)}, "ops": [], "outputs": ["r4"]}
before, width = "x", 64
for layer, next_width in enumerate((256, 96, 256, 64), start=1):
    DEEP["inputs"] |= {f"w{layer}": (width, next_width), f"b{layer}": (1, next_width)}
    DEEP["ops"] += [(f"p{layer}", "matmul", (before, f"w{layer}")), (f"s{layer}", "add", (f"p{layer}", f"b{layer}"))]
    DEEP["ops"].append((f"r{layer}", "relu", (f"s{layer}",)))
    before, width = f"r{layer}", next_width

groups = fuse(DEEP)
compiled = fusion_plan.compile_groups(DEEP, groups, DEVICE, plan)
print(f"{len(DEEP['ops'])} operations in {len(groups)} kernels\n{compiled.stages['memory']}")
tensors = {name: torch.randn(shape, device=DEVICE) / 8 for name, shape in DEEP["inputs"].items()}
(hidden,), (right,) = compiled(*tensors.values()), evaluate(DEEP, tensors)
print(f"largest error of the network: {float((hidden - right).abs().max()):.0e}")
softmax = SOFTMAX | {"inputs": {"x": tuple(hidden.shape)}}
kernel = grading.written_kernel(emit(softmax), "fused_kernel")
(right,) = evaluate(softmax, {"x": hidden})
grading.check_kernel(kernel, {"BLOCK": 64}, [hidden], right, launch=launch_fused, what="its softmax")
print("the softmax of your text agrees with torch in float64")

# %% [markdown]
# Two pictures: your array at work on three tiles, and one memory problem as best fit and as your plan place it, with
# time from left to right. In the array, a PE is busy when it multiplies an input by a weight.

# %%
fig, ax, colors, plt = viz.setup_plot((5.6, 2.6))
for stream, color in ((6, "OrangeLine"), (18, "BlueLine")):
    tiles = [[[1] * 6 for _ in range(6)]] * 3
    history = simulate(feed(tiles, [[[1] * 6] * stream] * 3, 6, 6), 6, 6)
    busy = [100 * sum(pe[2] != 0 for line in grid for pe in line) / 36 for grid in history]
    ax.plot(range(len(busy)), busy, color=colors[color], label=f"{stream} inputs for each tile")
ax.set(xlabel="cycle", ylabel="busy PEs in %", ylim=(0, 135), yticks=range(0, 101, 25))
ax.legend(loc="upper center", ncols=2)
plt.show()

# %%
fig, ax, colors, plt = viz.setup_plot((5.6, 3.2))
buffers = PROBLEMS[0]
for begin, offsets, title in ((0, best_fit(buffers), "best fit"), (23, plan(buffers), "your plan")):
    for (lower, upper, size), offset in zip(buffers, offsets, strict=True):
        ax.bar(begin + lower, size, upper - lower, offset, align="edge", edgecolor="white", color=colors["BlueLine"])
    ax.text(begin + 10, -40, f"{title}: {height(buffers, offsets)}", ha="center", va="top")
ax.axhline(lower_bound(buffers), color=colors["OrangeLine"], label="lower bound")
ax.set(xlabel="time (twice from 0 to 20)", ylabel="offset", xticks=[])
ax.xaxis.labelpad = 20  # below the two titles
ax.legend(loc="upper right")
plt.show()

# %% [markdown]
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
