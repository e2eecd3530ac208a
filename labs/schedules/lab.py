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
#     lab: schedules
#     version: "1"
#     withheld: [mlsys.dataflow, mlsys.grading.replays.network_plan, mlsys.systolic, mlsys.traffic]
# ---

# %% mlsys={"role": "variants"}
from mlsys import systolic
from mlsys.course.term import drawn

# Questions a, b and the challenge: the number of the first cycle.
TERM_FIRST = drawn(0, 1, 10, 5)

# Question d: the layers and the array.
TERM_SIDE = drawn(64, 32, 128)
TERM_FILL = 3 * TERM_SIDE - 2
TERM_FILLED = round(100 * 49 / (-(-49 // TERM_SIDE) * TERM_SIDE))
LAYERS = drawn(
    [(3136, 64, 64), (3136, 256, 64), (196, 256, 2304), (196, 1024, 256), (49, 512, 4608), (49, 2048, 512)],
    [(49, 512, 4608), (3136, 256, 64), (49, 2048, 512), (196, 256, 2304), (3136, 64, 64), (196, 1024, 256)],
    [(196, 1024, 256), (49, 512, 4608), (3136, 64, 64), (49, 2048, 512), (196, 256, 2304), (3136, 256, 64)],
    [(49, 2048, 512), (196, 256, 2304), (196, 1024, 256), (3136, 64, 64), (3136, 256, 64), (49, 512, 4608)],
)
TERM_LAYERS = "\n".join(f"{layer}," for layer in LAYERS)
TERM_CHOICES = ", ".join(
    '"{}"'.format(
        min(
            ("ws", "os", "is"),
            key=lambda one: systolic.gemm_cycles(*layer, rows=TERM_SIDE, cols=TERM_SIDE, dataflow=one),
        )
    )
    for layer in LAYERS
)

# Gap: the order of the cases.
GAPS = {
    "loading": """# NTH. The rule T / (T + R + C - 2) for the busy share, for a batch of 256 on one fold of 128 x 128.
percent = 100 * 256 / product_cycles(256, 128, 128, 128, 128, "ws")
show_gap("case NTH, busy share in %", 100 * systolic.stream_efficiency(256, rows=128, cols=128), percent)
""",
    "edges": """# NTH. Cycles in proportion to the work: n grows from 256 to 260 on an array of 128 x 128, with k = 256 and m = 512.
cycles = product_cycles(512, 256, 256, 128, 128, "ws")
show_gap("case NTH, cycles", cycles * 260 / 256, product_cycles(512, 260, 256, 128, 128, "ws"))
""",
    "order": """# NTH. Every layer of ResNet-50 by itself with its best dataflow and tile, added up; then these choices as one network.
alone = [plan([layer], CHIP)[0] for layer in RESNET]
added = sum(layer_cycles(layer, *step, CHIP) for layer, step in zip(RESNET, alone, strict=True))
show_gap("case NTH, cycles", added, plan_cycles(alone, RESNET, CHIP))
""",
}
TERM_CAUSE_1, TERM_CAUSE_2, TERM_CAUSE_3 = causes = drawn(
    ("loading", "edges", "order"), ("edges", "order", "loading"), ("order", "loading", "edges")
)
TERM_GAPS = "\n".join(GAPS[cause].replace("NTH", str(number)) for number, cause in enumerate(causes, 1)).rstrip()
TERM_CASE_LOADING, TERM_CASE_EDGES, TERM_CASE_ORDER = (causes.index(cause) + 1 for cause in GAPS)

# %% [markdown]
# # Schedules for systolic arrays
#
# A systolic array is a grid of multipliers that pass their operands on to their neighbors. It has no caches and no
# instructions for the single multiplier. Whether it computes the right product, and how long it takes, is decided
# entirely by the schedule: which number enters which row or column in which cycle.
#
# **The question of this lab: what must a schedule look like so that the right numbers meet in every cycle, and how much
# of the array works then, for the layers of a real network?**
#
# You will predict, write, search, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess four numbers | compared with the truth at the end |
# | a | schedule an array that keeps its sums | a table of cycles, replayed cycle by cycle |
# | b | schedule an array that keeps its weights | the same, with loading |
# | c | count the cycles of a large product | two functions, and a few sentences that say what follows |
# | d | choose a dataflow for six layers | six choices |
# | e | plan a whole network | a search that is fast and within 5% of the best plan |
# | challenge | load weights while computing | a schedule for an array with double buffering |
# | gap | explain why prediction and count differ | three causes |
#
# Plan for three to four hours. You need Python and the chapter on systolic arrays; you need no GPU. Hints cost no
# points: each question has three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None` or "Your answer". You may add cells. Read the
# test cells, and run them as often as you like. When the lab is graded, the original versions of these cells run, with
# more sizes and more networks. Do the counting yourself: `mlsys.systolic`, `mlsys.dataflow` and `mlsys.traffic` are
# removed from the package when the lab is graded, and an answer that calls them ends in an error. To look at an array
# in cells of your own, you may use all of them.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import grading, models, systolic, viz
from mlsys.grading.replays import array_schedule, network_plan

scorecard = grading.Scorecard(
    {"a": 15, "b": 20, "c": 15, "c-why": 5, "d": 10, "e": 20, "challenge": 10, "gap": 5},
    read=["c-why"],
)

# %% [markdown]
# ## Predictions
#
# Write down what you expect, before you calculate anything. You are not graded on how close you come. The point is to
# have something to be surprised by.
#
# 1. `half_busy`: an array of 128 x 128 multipliers keeps 128 x 128 weights. It first loads them, one row per cycle, and
#    then a batch of inputs streams past. How many inputs must the batch have so that half of all multiplier slots do
#    useful work, if loading counts too?
# 2. `one_more_column`: on the same array, a batch of 1,000 streams past a layer with 128 x 128 weights, and then past
#    one with 128 x 129. How many *times* as many cycles does the second layer take?
# 3. `wrong_dataflow`: a late layer of ResNet-50 multiplies a 49 x 4608 by a 4608 x 512 matrix. On an array of 64 x 64,
#    how many *times* as many cycles does the slowest of the three dataflows take as the fastest?
# 4. `overlap_saves`: sixteen sets of weights follow each other on an array of 32 x 32, and 64 inputs stream past each.
#    How many *times* faster does this get if the array loads the next weights while it computes?

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: half_busy = None
#: one_more_column = None
#: wrong_dataflow = None
#: overlap_saves = None
half_busy = 256
one_more_column = 2
wrong_dataflow = 2
overlap_saves = 1.5
### END SOLUTION
predictions = grading.seal(
    half_busy=half_busy,
    one_more_column=one_more_column,
    wrong_dataflow=wrong_dataflow,
    overlap_saves=overlap_saves,
)

# %% [markdown]
# ## a. An array that keeps its sums
#
# From here on, A has m rows and k columns, B has k rows and n columns, and C = A B. Rows and columns are counted from 0.
# **Cycles are counted from TERM_FIRST.**
#
# This array has m rows and n columns of processing elements (PEs). PE (i, j) adds up c[i,j]. The elements of row i of A
# enter row i of the array at the left, one per cycle at most, and move one PE to the right per cycle. The elements of
# column j of B enter column j at the top and move one PE down per cycle. In every cycle, a PE multiplies what has
# arrived from the left with what has arrived from above:
#
# ```
#                          b[0,0]     b[0,1]
#                             |          |
#                             v          v
#              a[0,0]  --> PE (0,0) -> PE (0,1)
#                             |          |
#                             v          v
#              a[1,0]  --> PE (1,0) -> PE (1,1)
# ```
#
# A number can be multiplied in the cycle in which it enters: if a[0,0] and b[0,0] both enter in the first cycle, PE (0,0)
# multiplies them in that cycle, and PE (0,1) can use a[0,0] in the next one.
#
# Write `output_stationary(m, n, k)`. It returns a dict with two nested lists of plain ints:
#
# - `"a"`: m lists of k ints; `["a"][i][p]` is the cycle in which a[i,p] enters row i;
# - `"b"`: k lists of n ints; `["b"][p][j]` is the cycle in which b[p,j] enters column j.
#
# The schedule must bring every a[i,p] together with b[p,j] in PE (i, j), and it must be as short as possible: m + n + k
# - 2 cycles, from the first cycle to the last multiplication. The test replays your schedule. It moves names instead of
# numbers, and it stops at the first PE where a number meets nothing or the wrong partner.
#
# <details><summary>Hint 1</summary>
# Begin with a 1 x 1 array, then 1 x 2, then 2 x 2, with k = 2, on paper. In which cycle does a[0,0] reach PE (0,1)? So
# when must b[0,1] enter?
# </details>
# <details><summary>Hint 2</summary>
# If a[i,p] enters in cycle s, it is in PE (i, j) in cycle s + j. If b[p,j] enters in cycle t, it is in PE (i, j) in
# cycle t + i. Both must be the same for all i and j.
# </details>
# <details><summary>Hint 3</summary>
# s + j = t + i holds for all i and j if s = i + something and t = j + something, where the something depends only on p.
# The elements of one row must enter one after the other, a[0,0] in the first cycle, number TERM_FIRST.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-schedule", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "An array that keeps its sums"}
def output_stationary(m, n, k):
    """Return the cycles in which the elements of A and B enter an m x n array that keeps its sums."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("output_stationary")
    return {
        "a": [[TERM_FIRST + i + p for p in range(k)] for i in range(m)],
        "b": [[TERM_FIRST + p + j for j in range(n)] for p in range(k)],
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
def replay(m, n, k):
    """Replay the schedule of an m x n array."""
    array_schedule.assert_output_stationary(output_stationary(m, n, k), m, n, k, first=TERM_FIRST)


for sides in [(1, 1, 2), (1, 3, 2), (2, 2, 2), (2, 3, 4), (4, 3, 2)]:
    replay(*sides)
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for _ in range(5):
    replay(*(draw.integer(2, 7) for _ in "mnk"))
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. An array that keeps its weights
#
# This array has k rows and n columns. PE (p, j) keeps the weight b[p,j].
#
# - **Loading.** Weights enter column j at the top. When one enters, all weights that are in the column already move one
#   row down, and when none enters, they stay. A weight can be multiplied from the cycle *after* its entry.
# - **Inputs.** a[i,p] enters row p at the left and moves one PE to the right per cycle.
# - **Sums.** The sum for c[i,j] starts in row 0 when a[i,0] meets b[0,j] there. In each cycle it moves one row down, to
#   the PE that adds the next product. In row k - 1 it is finished and leaves the array.
#
# Write `weight_stationary(m, n, k)`. It returns a dict with three nested lists of plain ints:
#
# - `"b"`: k lists of n ints, the cycle in which b[p,j] enters column j;
# - `"a"`: m lists of k ints, the cycle in which a[i,p] enters row p;
# - `"c"`: m lists of n ints, the cycle in which row k - 1 adds the last product to c[i,j].
#
# The whole must take 2 k + m + n - 2 cycles, from the first cycle to the last product. The first is still TERM_FIRST.
# That is the chapter's formula 2R + C + L - 2, with R = k, C = n, and L = m, the side that streams. This lab writes T for
# L.
#
# <details><summary>Hint 1</summary>
# Load first. Which weight of a column must enter first, so that it ends up at the bottom?
# </details>
# <details><summary>Hint 2</summary>
# The weights of a column enter in k cycles, in the order of their rows from the bottom up, and all columns can load at
# the same time. In the next cycle a[0,0] may enter. The sum for c[0,0] is in row 1 one cycle later, so when must a[0,1]
# enter?
# </details>
# <details><summary>Hint 3</summary>
# b[p,j] enters k - 1 - p cycles after the first. a[i,p] must enter i + p cycles after a[0,0], and a[0,0] enters k cycles
# after the first. a[i,k-1] needs j more cycles to reach column j, where it finishes c[i,j].
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-schedule", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "An array that keeps its weights"}
def weight_stationary(m, n, k):
    """Return the cycles in which A and B enter a k x n array that keeps B, and in which each sum is finished."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("weight_stationary")
    return {
        "b": [[TERM_FIRST + k - 1 - p for j in range(n)] for p in range(k)],
        "a": [[TERM_FIRST + k + i + p for p in range(k)] for i in range(m)],
        "c": [[TERM_FIRST + k + i + (k - 1) + j for j in range(n)] for i in range(m)],
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 20, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
def replay(m, n, k):
    """Replay the schedule of a k x n array."""
    array_schedule.assert_weight_stationary(weight_stationary(m, n, k), m, n, k, first=TERM_FIRST)


for sides in [(1, 1, 1), (2, 1, 2), (1, 3, 2), (2, 2, 2), (4, 3, 2), (2, 3, 4)]:
    replay(*sides)
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for _ in range(5):
    replay(*(draw.integer(2, 7) for _ in "mnk"))
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. Many folds, and ragged edges
#
# A real array has a fixed size, `rows` x `cols`, and products come in all sizes. So the operand that stays is cut into
# pieces of at most `rows` x `cols`. Each piece is a **fold**, and the folds run one after the other.
#
# | dataflow | along the rows | along the columns | streams |
# |---|---|---|---|
# | `"ws"`, weights stay | k | n | m |
# | `"os"`, sums stay | m | n | k |
#
# The chapter counts every fold as a full one. Our array is smarter: a fold at the edge that uses only r rows and c
# columns takes as long as your schedule for an r x c array, because the control starts the next fold as soon as the
# last product is done. For `"os"`, r cycles follow in which the sums move out at the bottom; after your schedule of b
# the sums are already out.
#
# ```
#           cols      cols    rest
#         +---------+---------+---+
#    rows |  full   |  full   | c |     k = 2 rows + r,  n = 2 cols + c:
#         +---------+---------+---+     4 full folds, 2 that use c columns,
#    rows |  full   |  full   | c |     2 that use r rows, and the corner
#         +---------+---------+---+
#    rest |    r    |    r    |r,c|
#         +---------+---------+---+
# ```
#
# Write two functions:
#
# - `product_cycles(m, n, k, rows, cols, dataflow)`: the cycles of all folds, an int.
# - `half_busy_batch(n, k, rows, cols)`: the smallest m for which a weight-stationary array does useful work in at least
#   half of its slots, or `None` if no m is large enough. The slots are `rows * cols` in each of the cycles that
#   `product_cycles` counts; m n k of them do useful work.
#
# <details><summary>Hint 1</summary>
# One fold of r x c takes 2 r + c + T - 2 cycles in both dataflows, where T is the side that streams. Loop over the
# folds and add up.
# </details>
# <details><summary>Hint 2</summary>
# A ragged product has folds of r = min(rows, what is left). For the batch, write the cycles as folds * m + S, where S
# collects all that does not depend on m. What is S for the example with 128 x 128 weights on 128 x 128?
# </details>
# <details><summary>Hint 3</summary>
# Half busy means 2 m n k &gt;= rows * cols * (folds * m + S). Solve for m and round up. If 2 n k is not larger than
# rows * cols * folds, no m fulfils it. S is <code>product_cycles(m, ...) - folds * m</code> for any m.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-cycles", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "Many folds, and ragged edges"}
def product_cycles(m, n, k, rows, cols, dataflow):
    """Return the cycles of C[m, n] = A[m, k] B[k, n], fold after fold, for "ws" or "os"."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_cycles")
    down, stream = (k, m) if dataflow == "ws" else (m, k)
    total = 0
    for row in range(0, down, rows):
        for col in range(0, n, cols):
            total += 2 * min(rows, down - row) + min(cols, n - col) + stream - 2
    return total
    ### END SOLUTION


def half_busy_batch(n, k, rows, cols):
    """Return the least m for which half of the slots of a weight-stationary array do useful work, or None."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("half_busy_batch")
    folds = -(-k // rows) * -(-n // cols)
    waiting = product_cycles(1, n, k, rows, cols, "ws") - folds
    gain = 2 * n * k - rows * cols * folds  # slots won by each row of the batch
    return -(-rows * cols * waiting // gain) if gain > 0 else None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
# One fold that fills the array: 2 rows + cols + T - 2.
grading.assert_equal(product_cycles(5, 4, 4, 4, 4, "ws"), 15, what='product_cycles(5, 4, 4, 4, 4, "ws")')
grading.assert_equal(product_cycles(4, 4, 5, 4, 4, "os"), 15, what='product_cycles(4, 4, 5, 4, 4, "os")')
# A fold that uses 2 rows and 3 columns of the same array: 2 * 2 + 3 + 5 - 2.
grading.assert_equal(product_cycles(5, 3, 2, 4, 4, "ws"), 10, what='product_cycles(5, 3, 2, 4, 4, "ws")')
# k = 4 + 2 and n = 4 + 3: folds of 4 x 4, 4 x 3, 2 x 4 and 2 x 3 take 15 + 14 + 11 + 10 cycles.
grading.assert_equal(product_cycles(5, 7, 6, 4, 4, "ws"), 50, what='product_cycles(5, 7, 6, 4, 4, "ws")')
# An array of 4 x 3, ragged folds: of C, with k = 5 streaming through each, and of B, with m = 5.
grading.assert_equal(product_cycles(9, 7, 5, 4, 3, "os"), 102, what='product_cycles(9, 7, 5, 4, 3, "os")')
grading.assert_equal(product_cycles(5, 7, 6, 4, 3, "ws"), 68, what='product_cycles(5, 7, 6, 4, 3, "ws")')
# 128 x 128 weights: a full fold takes 382 cycles more than the batch has rows.
grading.assert_equal(half_busy_batch(128, 128, 128, 128), 382, what="half_busy_batch(128, 128, 128, 128)")
# 100 x 100 weights: 2 m 100 100 >= 128 128 (m + 298).
grading.assert_equal(half_busy_batch(100, 100, 128, 128), 1351, what="half_busy_batch(100, 100, 128, 128)")
grading.assert_equal(half_busy_batch(96, 300, 128, 64), 1432, what="half_busy_batch(96, 300, 128, 64), several folds")
assert half_busy_batch(64, 128, 128, 128) is None, "64 x 128 weights fill just half of 128 x 128: return None"
assert half_busy_batch(60, 60, 128, 128) is None, "60 x 60 weights fill less than a quarter of 128 x 128: return None"
### BEGIN HIDDEN TESTS
draw = grading.Draws("c")


def simulated(m, n, k, rows, cols, dataflow):
    """Cycles of the simulated array, each fold on an array of the size that it uses."""
    down, stream = (k, m) if dataflow == "ws" else (m, k)
    cycles = 0
    for row in range(0, down, rows):
        for col in range(0, n, cols):
            r, c = min(rows, down - row), min(cols, n - col)
            shape = (stream, c, r) if dataflow == "ws" else (r, c, stream)
            a, b = [[1] * shape[2]] * shape[0], [[1] * shape[1]] * shape[2]
            cycles += systolic.simulate(a, b, rows=r, cols=c, dataflow=dataflow).cycles
    return cycles


for dataflow in ("ws", "os", "ws", "os"):
    m, n, k = (draw.integer(3, 40) for _ in "mnk")
    rows, cols = draw.ragged(4, 12, tile=5), draw.ragged(4, 12, tile=7)
    what = f"product_cycles({m}, {n}, {k}, {rows}, {cols}, {dataflow!r})"
    right = simulated(m, n, k, rows, cols, dataflow)
    grading.assert_equal(product_cycles(m, n, k, rows, cols, dataflow), right, what=what)


def busy_slots(m, n, k, rows, cols):
    """Useful slots and all slots, with the cycles of each fold by the package's formula."""
    cycles = 0
    for row in range(0, k, rows):
        for col in range(0, n, cols):
            r, c = min(rows, k - row), min(cols, n - col)
            cycles += systolic.gemm_cycles(m, c, r, rows=r, cols=c, dataflow="ws")
    return m * n * k, rows * cols * cycles


for rows, cols in [(8, 8), (6, 10), (32, 32), (16, 24)]:
    for n, k in [
        (cols * draw.integer(1, 4), rows * draw.integer(1, 4)),
        (cols * draw.integer(2, 4) + 1, rows * draw.integer(2, 4) - 1),
        (draw.integer(1, cols // 2), draw.integer(1, rows - 1)),
    ]:
        found = half_busy_batch(n, k, rows, cols)
        what = f"half_busy_batch({n}, {k}, {rows}, {cols})"
        useful, slots = busy_slots(10**12, n, k, rows, cols)
        if 2 * useful < slots:
            assert found is None, f"{what}: however large the batch, less than half of the slots are busy; return None"
            continue
        assert type(found) is int, f"{what}: return a plain int"
        assert 1 <= found <= 10**12, f"{what}: the batch must be 1 or more, and there is one that is large enough"
        useful, slots = busy_slots(found, n, k, rows, cols)
        assert 2 * useful >= slots, f"{what}: at your batch less than half of the slots are busy"
        useful, slots = busy_slots(found - 1, n, k, rows, cols) if found > 1 else (0, 1)
        assert 2 * useful < slots, f"{what}: a smaller batch is enough"
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# **Say what follows.** A company can build its chip with one array of 128 x 128 or with sixteen arrays of 32 x 32; both
# have the same number of multipliers. The small arrays share the folds of a layer equally and run at the same time.
# Answer in four to eight sentences. For a layer with 4,096 x 4,096 weights and batches of 8 and of 4,096, what share of
# the slots is busy on each chip? Use `product_cycles`. Which chip would you build for which use, and what do the small
# arrays cost, if every number that enters an array is read from on-chip memory? What can the software do about a small
# batch? A person reads your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "c-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c-why", "role": "written", "needs": ["setup"], "title": "Say what follows"}
# ### BEGIN SOLUTION
# #: *Your answer*
# On the 128 x 128 array there are 32 x 32 = 1,024 folds of 2 x 128 + 128 + T - 2 cycles. At batch 8 that is 390 cycles,
# of which 8 do useful work in each multiplier: 2.1% busy. At batch 4,096 it is 4,478 cycles and 91%. A 32 x 32 array
# needs 94 + T cycles: 102 at batch 8, which is 7.8% busy, and 4,190 at batch 4,096, 98%. The small arrays have 16,384
# folds, shared by sixteen of them, so each does 1,024 folds too and the chip is almost four times as fast at batch 8,
# but only 7% faster at batch 4,096. An input that enters a 32 x 32 array serves 32 columns instead of 128, so inputs
# are read from on-chip memory four times as often, and the sixteen arrays have four times as many edge ports in all.
# Inputs and sums cost bandwidth and energy. I would build the large array for training and large batches, the small
# ones for answers with low delay. Software can batch the requests of several users, or choose a dataflow in which a
# long side streams.
# ### END SOLUTION

# %% [markdown]
# ## d. Choose a dataflow for six layers
#
# Inputs can stay too: in the dataflow `"is"`, A stays, k runs along the rows, m along the columns, and the n columns of
# B stream past. From here on we count as the chapter does, every fold as a full one: 2 rows + cols + T - 2 cycles. A
# convolution becomes a matrix product when each output position is a row of A: m counts the positions, n the filters,
# and k the weights of one filter. Here are six layers of ResNet-50:

# %% nbgrader={"grade": false, "grade_id": "d-layers", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "setup"}
SIX_LAYERS = [  # (m, n, k)
    TERM_LAYERS
]

# %% [markdown]
# An array of TERM_SIDE x TERM_SIDE runs them one after the other. For each layer, choose the dataflow with the fewest
# cycles: `"ws"`, `"os"` or `"is"`. Decide by hand before you let Python calculate: which of the three sides should
# stream?
#
# <details><summary>Hint 1</summary>
# Of the cycles of one fold, 2 rows + cols - 2 are spent on loading, filling and draining. What makes this part small
# compared with the rest?
# </details>
# <details><summary>Hint 2</summary>
# A long stream makes few, long folds. Write down for each layer which side streams in each dataflow: m for
# <code>"ws"</code>, k for <code>"os"</code>, n for <code>"is"</code>.
# </details>
# <details><summary>Hint 3</summary>
# Look at both effects: the longest side should stream, and sides that are smaller than TERM_SIDE or slightly above a
# multiple of it waste a part of every fold. 49 rows fill TERM_FILLED% of the folds that they take. Where the two disagree,
# calculate <code>folds * (TERM_FILL + T)</code>.
# </details>

# %% nbgrader={"grade": false, "grade_id": "d-choice", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "Choose a dataflow for six layers"}
### BEGIN SOLUTION
#: choices = [None, None, None, None, None, None]
choices = [TERM_CHOICES]
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
assert isinstance(choices, list | tuple), "choices must be a list"
assert len(choices) == len(SIX_LAYERS), f"choices must have one entry for each of the {len(SIX_LAYERS)} layers"
for number, choice in enumerate(choices):
    if choice is None:
        raise NotImplementedError(f"choices[{number}] is still None")
    assert choice in ("ws", "os", "is"), f"choices[{number}] must be 'ws', 'os' or 'is'"
### BEGIN HIDDEN TESTS
for number, (choice, layer) in enumerate(zip(choices, SIX_LAYERS, strict=True)):
    cycles = {x: systolic.gemm_cycles(*layer, rows=TERM_SIDE, cols=TERM_SIDE, dataflow=x) for x in systolic.DATAFLOWS}
    assert cycles[choice] == min(cycles.values()), (
        f"choices[{number}]: {choice} takes {cycles[choice] / min(cycles.values()):.2f} times the cycles of another "
        "choice; compare the lengths of the streams, and how well the other two sides fill the array"
    )
### END HIDDEN TESTS
scorecard.answered("d")

# %% [markdown]
# ## e. Plan a network
#
# Now the memory. The chip has an on-chip memory beside its array. Each layer is computed tile by tile: three tiles, of
# A, B and C, must be in the memory at once, and DRAM delivers `bandwidth` elements per cycle. The dataflow decides what
# stays in the *memory* too: `"ws"` keeps a tile of B there while the loop over m runs, `"os"` a tile of C while the
# loop over k runs, `"is"` a tile of A while the loop over n runs. This chip does not overlap anything, so a layer takes
#
# - the cycles of the array, 2 rows + cols + T - 2 for every fold, as in question d; tiles do not change them;
# - plus the cycles in which all its tiles move between DRAM and the memory.
#
# One more rule couples the layers. Each dataflow writes its result in another order. If the next layer has *another*
# dataflow, the result must be read from DRAM and written back once in the order that the next one needs, which moves 2
# m n elements. (Only the order of the list matters. We leave out pooling and shortcuts.)
#
# The functions below count all this, by the rules of `mlsys.systolic` and `mlsys.dataflow`. Read them; you may call
# them.


# %% nbgrader={"grade": false, "grade_id": "e-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "setup"}
ORDER = {"ws": "nkm", "os": "mnk", "is": "mkn"}  # loops over tiles, the outermost first


def moved_elements(layer, dataflow, tile):
    """Return the elements that cross between DRAM and the on-chip memory, for the sides (m, n, k) of layer and tile."""
    extent = dict(zip("mnk", layer, strict=True))
    tiles = {loop: -(-extent[loop] // size) for loop, size in zip("mnk", tile, strict=True)}
    total = 0
    for operand in ("mk", "kn", "mn"):  # A, B and C, by the loops that choose a tile of it
        times, changes = 1, False
        for loop in reversed(ORDER[dataflow]):  # from the innermost loop out
            if loop in operand:
                changes = changes or tiles[loop] > 1
            elif changes:  # the loops inside have brought other tiles: all of it comes again in each round of this loop
                times *= tiles[loop]
        moved = times * extent[operand[0]] * extent[operand[1]]
        # Sums are written every time, and read every time but the first.
        total += 2 * moved - extent["m"] * extent["n"] if operand == "mn" else moved
    return total


def layer_cycles(layer, dataflow, tile, chip):
    """Return the cycles of one layer: those of the array, and after them those of the transfers."""
    m, n, k = layer
    tile_m, tile_n, tile_k = tile
    needed = tile_m * tile_k + tile_k * tile_n + tile_m * tile_n
    if needed > chip["memory"]:
        raise ValueError(f"tiles {tile} need {needed:,} elements, and the memory holds {chip['memory']:,}")
    down, across, stream = {"ws": (k, n, m), "os": (m, n, k), "is": (k, m, n)}[dataflow]
    folds = -(-down // chip["rows"]) * -(-across // chip["cols"])
    array = folds * (2 * chip["rows"] + chip["cols"] + stream - 2)
    return array + -(-moved_elements(layer, dataflow, tile) // chip["bandwidth"])


def change_cycles(layer, chip):
    """Return the cycles in which the result of a layer is brought into another order."""
    m, n, _ = layer
    return -(-2 * m * n // chip["bandwidth"])


def plan_cycles(plan, layers, chip):
    """Return the cycles of a network; plan holds (dataflow, tile) for each layer."""
    total = sum(layer_cycles(layer, *step, chip) for layer, step in zip(layers, plan, strict=True))
    for layer, before, after in zip(layers, plan, plan[1:], strict=False):
        if before[0] != after[0]:
            total += change_cycles(layer, chip)
    return total


CHIP = {"rows": 64, "cols": 64, "memory": 65536, "bandwidth": 32}  # memory in elements, bandwidth in elements per cycle

RESNET = []  # all convolutions of ResNet-50 for one image, as products (m, n, k)
for op in models.resnet50(batch=1, dtype="fp16").ops:
    if op.kind == "conv2d":
        positions = op.flop_count // (2 * op.params)
        filters = op.write_count // (2 * positions)
        RESNET.append((positions, filters, op.params // filters))

# %%
step = ("os", (64, 64, 64))
print(f"{len(RESNET)} layers, the first ones {RESNET[:4]}")
print(f"the first layer with {step}: {layer_cycles(RESNET[0], *step, CHIP):,} cycles")

# %% [markdown]
# Write `plan(layers, chip)`. It returns a list with one `(dataflow, (tile_m, tile_n, tile_k))` for each layer, where
# the tile sizes are plain ints from 1 to the sides of the layer. The test counts the cycles of your plan, and those of
# the best plan there is, which it finds by going through every choice. **Yours may take at most 1.05 times as many.**
#
# There is a time limit too. When the lab is graded, your function plans eleven networks with up to 53 layers, for
# several chips, and all this must take **less than 5 seconds**. (It is stopped after 10, so that a slow machine costs
# nobody points.) A product with sides of 3,136, 256 and 64 alone has 154 million choices for the tiles and the dataflow,
# and 53 layers have $3^{53}$ sequences of dataflows. So do not try everything: think about which choices can be best. A
# good search plans ResNet-50 in less than a second.
#
# The visible tests include two small networks on which simple ideas fail. It is worth finding out why.
#
# <details><summary>Hint 1</summary>
# Two questions that you can answer one after the other. First: for one layer and one dataflow, which tile is fastest?
# Then: given those cycles for all layers and all three dataflows, which sequence of dataflows is fastest? Taking the
# fastest one for each layer ignores the changes. Looking only one layer back is not enough either.
# </details>
# <details><summary>Hint 2</summary>
# For the tile: only the number of tiles along each side matters, so of all tile sizes that give the same number, the
# smallest is as good as any and takes the least memory. And the innermost loop's tile need only be 1 or the whole side.
# When two of the three sizes are chosen, how large can the third be?
# For the sequence: the best plan for the first ten layers that ends in "ws" begins with the best plan for the first
# nine layers that ends in one of the three dataflows.
# </details>
# <details><summary>Hint 3</summary>
# Tile: for the order (x, y, z), loop over the sizes <code>tile_x</code> = side divided by 1, 2, 3, ..., rounded up, and
# over <code>tile_z</code> in (1, side z). From tile_x tile_y + tile_y tile_z + tile_z tile_x &lt;= memory follows the
# largest <code>tile_y</code>. Keep the fastest.
# Sequence: keep, for each dataflow, the least cycles of all plans so far that end in it, and the plan itself. For the
# next layer, extend each of the three plans by each of the three dataflows, add <code>change_cycles</code> of the layer
# before if they differ, and keep again the best plan for each last dataflow.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-plan", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "Plan a network"}
def plan(layers, chip):
    """Return a (dataflow, (tile_m, tile_n, tile_k)) for each layer, such that the network takes few cycles."""

    ### BEGIN SOLUTION
    #: raise NotImplementedError("plan")
    def fastest(layer, dataflow):
        """Least cycles of one layer with one dataflow, and the tile that gives them."""
        extent = dict(zip("mnk", layer, strict=True))
        x, y, z = ORDER[dataflow]
        found = []
        for tile_x in {-(-extent[x] // parts) for parts in range(1, extent[x] + 1)}:
            for tile_z in {1, extent[z]}:
                tile_y = min(extent[y], (chip["memory"] - tile_x * tile_z) // (tile_x + tile_z))
                if tile_y >= 1:
                    sizes = {x: tile_x, y: tile_y, z: tile_z}
                    tile = (sizes["m"], sizes["n"], sizes["k"])
                    found.append((layer_cycles(layer, dataflow, tile, chip), tile))
        return min(found)

    ending = {dataflow: (0, []) for dataflow in ORDER}  # by the last dataflow: cycles and plan so far
    change = 0
    for sides in layers:
        longer = {}
        for dataflow in ORDER:
            before = [(cycles + (change if last != dataflow else 0), steps) for last, (cycles, steps) in ending.items()]
            cycles, steps = min(before, key=lambda one: one[0])
            own, tile = fastest(sides, dataflow)
            longer[dataflow] = (cycles + own, [*steps, (dataflow, tile)])
        ending, change = longer, change_cycles(sides, chip)
    return min(ending.values(), key=lambda one: one[0])[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 20, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
network_plan.assert_plan(plan([(49, 512, 4608)], CHIP), [(49, 512, 4608)], CHIP, name="one layer")
network_plan.assert_plan(plan(RESNET[:2], CHIP), RESNET[:2], CHIP, name="two layers")
small = {"rows": 32, "cols": 32, "memory": 16384, "bandwidth": 16}
layers = [(16, 1024, 1024), (16, 256, 1024), (16, 1024, 256), (16, 256, 1024)]
layers += [(1024, 32, 256), (1024, 32, 32), (2048, 512, 32), (2048, 64, 512)]
network_plan.assert_plan(plan(layers, small), layers, small, name="a network that grows and shrinks")
layers = [(16, 128, 32), (16, 32, 128), (512, 512, 32), *[(512, 64, 512), (512, 512, 64)] * 2, (512, 64, 512)]
network_plan.assert_plan(plan(layers, CHIP), layers, CHIP, name="a network with a small first part")
network_plan.assert_plan(plan(RESNET, CHIP), RESNET, CHIP, name="ResNet-50")
narrow = CHIP | {"memory": 8192, "bandwidth": 8}
network_plan.assert_plan(plan(RESNET, narrow), RESNET, narrow, name="ResNet-50 on a chip with little memory")
### BEGIN HIDDEN TESTS
draw = grading.Draws("e")
bases = [
    ((16, 256, 512), (16, 64, 256), (16, 256, 64), (16, 64, 256), (3136, 32, 64), (128, 512, 32)),
    ((2048, 512, 64), (2048, 64, 512), (2048, 512, 64), (2048, 64, 512))
    + ((512, 128, 64), (512, 64, 128)) * 3
    + ((16, 2048, 64), *((16, 256, 2048), (16, 2048, 256)) * 2, (16, 256, 2048)),
    ((1024, 128, 64), (1024, 128, 128), (1024, 128, 128), (64, 32, 128), (64, 512, 32), (64, 512, 512)),
    ((64, 32, 64), *((64, 32, 32),) * 3, (512, 512, 32), *((512, 64, 512), (512, 512, 64)) * 3, (512, 64, 512)),
]
for number, (base, chip) in enumerate(zip(bases, (small, small, CHIP, CHIP), strict=True), start=1):
    # Every size is a little smaller, the same one everywhere in the same way.
    sizes = {size: size * draw.integer(92, 100) // 100 for size in sorted({size for layer in base for size in layer})}
    layers = [tuple(sizes[size] for size in layer) for layer in base]
    network_plan.assert_plan(plan(layers, chip), layers, chip, name=f"network {number} of the hidden tests")
chip = CHIP | {"memory": draw.integer(7000, 9000), "bandwidth": draw.integer(4, 12)}
network_plan.assert_plan(plan(RESNET, chip), RESNET, chip, name="ResNet-50 on another chip")
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# ## Challenge: load while computing
#
# In question b the array waits while weights are loaded. Real arrays do not: each PE has a second weight register.
#
# - **Loading.** Weights enter column j at the top exactly as in b, but they move down through the *second* registers, at
#   the end of a cycle: a weight that enters moves all others of its column down by one. The PE does not multiply with
#   these.
# - **Swapping.** A fold begins with a swap signal. It is in PE (0, 0) in the cycle `swap[fold]` and moves with the
#   inputs; it reaches PE (p, j) in the cycle `swap[fold] + p + j`. When it passes, the PE copies the weight that its
#   second register has held since the cycle before. It multiplies with this copy from that same cycle on, until the
#   next signal passes.
# - **Inputs and sums** move as in b.
#
# `folds` products of the same size follow each other, each with its own inputs A_f (m x rows) and weights B_f (rows x
# cols). Write `double_buffered(folds, m, rows, cols)`, which returns a dict of plain ints:
#
# - `"swap"`: a list of `folds` cycles;
# - `"b"`: for each fold a nested list, `["b"][f][p][j]` is the cycle in which the weight b[p,j] of fold f enters column
#   j;
# - `"a"`: for each fold a nested list, `["a"][f][i][p]` is the cycle in which a[i,p] of fold f enters row p.
#
# The schedule must be as short as possible, and its first cycle is TERM_FIRST. If the batch is long enough, a fold
# costs m cycles and nothing else: only the first one waits for its weights, and only the last one for the wave to
# leave. The message of the test says how many cycles are enough. With a short batch, the weights are the bottleneck:
# find out from which m on loading costs nothing. (The replay follows 1,000 cycles, so keep what you try small.)
#
# <details><summary>Hint 1</summary>
# Solve one fold first: it is question b, with a swap signal that enters PE (0, 0) in the same cycle as the first input.
# Which weights are in the second registers of column j, and when must the last of them have entered?
# </details>
# <details><summary>Hint 2</summary>
# The weights of the next fold may enter column j only when the signal of this fold has passed its last row: a weight
# that enters moves all others down. A weight may already enter in the cycle in which the last row copies, because
# weights move at the end of a cycle.
# </details>
# <details><summary>Hint 3</summary>
# The last row of column j copies in cycle swap[f] + rows - 1 + j. Then <code>rows</code> weights enter, one per cycle,
# and PE (0, j) may copy in the cycle after the last one. So two swaps are at least 2 rows - 1 cycles apart, and at
# least m cycles, because m inputs enter row 0. b[p,j] of fold f can enter in the cycle swap[f] + j - 1 - p.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-schedule", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: load while computing"}
def double_buffered(folds, m, rows, cols):
    """Return the cycles of the swaps, and those in which the elements of all folds enter."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("double_buffered")
    swap = [TERM_FIRST + rows + fold * max(m, 2 * rows - 1) for fold in range(folds)]
    return {
        "swap": swap,
        "b": [[[start + j - 1 - p for j in range(cols)] for p in range(rows)] for start in swap],
        "a": [[[start + i + p for p in range(rows)] for i in range(m)] for start in swap],
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
def replay(folds, m, rows, cols):
    """Replay the schedule of a rows x cols array with double buffering."""
    array_schedule.assert_double_buffered(double_buffered(folds, m, rows, cols), folds, m, rows, cols, first=TERM_FIRST)


for sizes in [(1, 2, 2, 2), (2, 3, 2, 2), (3, 8, 3, 2), (3, 2, 3, 2), (2, 1, 1, 3)]:
    replay(*sizes)
### BEGIN HIDDEN TESTS
draw = grading.Draws("challenge")
for shortest, longest in [(1, 4), (4, 9), (9, 14), (1, 14)]:
    replay(draw.integer(2, 5), draw.integer(shortest, longest), draw.integer(2, 5), draw.integer(2, 5))
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# Here are three predictions by rules of thumb, and what is counted when every cycle is followed.


# %%
def show_gap(case, predicted, counted):
    print(f"{case}: predicted {predicted:,.0f}, counted {counted:,.0f}, {counted / predicted:.2f} times as much")


TERM_GAPS

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"fill"`: the wave needs time to cross the array.
# - `"loading"`: weights enter the array before the first input.
# - `"edges"`: a fold that uses only a few columns costs nearly as much as a full one.
# - `"order"`: a result must be brought into the order that the next dataflow needs.
# - `"sums"`: unfinished sums leave the array and come back.
#
# <details><summary>Hint 1</summary>
# Which parts of the machine does the prediction already contain? R + C - 2 in case TERM_CASE_LOADING is one of the
# five.
# </details>
# <details><summary>Hint 2</summary>
# Case TERM_CASE_EDGES: how many folds are there before, and how many after? Case TERM_CASE_ORDER: the layers are the same
# on both sides; what does <code>plan_cycles</code> add that <code>layer_cycles</code> does not?
# </details>
# <details><summary>Hint 3</summary>
# Two of the five causes cannot be right in any case: case TERM_CASE_LOADING predicts the crossing of the array, and
# sums move between array and memory in the same cycles in which the array computes.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and count differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
cause_1 = "TERM_CAUSE_1"
cause_2 = "TERM_CAUSE_2"
cause_3 = "TERM_CAUSE_3"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the five")
    known = ("fill", "loading", "edges", "order", "sums")
    assert cause in known, f"cause_{number} is {cause!r}; choose one of {', '.join(known)}"
### BEGIN HIDDEN TESTS
key = ("TERM_CAUSE_1", "TERM_CAUSE_2", "TERM_CAUSE_3")
for number, (cause, right) in enumerate(zip((cause_1, cause_2, cause_3), key, strict=True), start=1):
    assert cause == right, f"cause_{number}: {cause!r} does not make this gap; compare what each side counts"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted:

# %%
late = [systolic.gemm_cycles(49, 512, 4608, rows=64, cols=64, dataflow=dataflow) for dataflow in ORDER]
try:
    sixteen = double_buffered(16, 64, 32, 32)
    last = max(max(row) for row in sixteen["a"][-1]) + 32 - 1  # the last input passes 32 columns
    overlap_saves = 16 * product_cycles(64, 32, 32, 32, 32, "ws") / (last + 1 - TERM_FIRST)
except NotImplementedError:
    overlap_saves = None  # it waits for the challenge
grading.compare(
    predictions,
    half_busy=half_busy_batch(128, 128, 128, 128),
    one_more_column=product_cycles(1000, 129, 128, 128, 128, "ws") / product_cycles(1000, 128, 128, 128, 128, "ws"),
    wrong_dataflow=max(late) / min(late),
    overlap_saves=overlap_saves,
)

# %% [markdown]
# The last picture is your own `product_cycles`: the busy share of arrays of three sizes while a batch streams past
# 1,024 x 1,024 weights. The dashed lines load the next weights while they compute, so each fold but the first costs
# what streams, or the time to load if that is longer.

# %%
fig, ax, colors, plt = viz.setup_plot((5.6, 3.4))
batches = [2**x for x in range(13)]
for side, color in ((32, "BlueLine"), (128, "OrangeLine"), (256, "GreenLine")):
    folds = (1024 // side) ** 2
    useful = [batch * 1024**2 / side**2 for batch in batches]
    plain = [product_cycles(batch, 1024, 1024, side, side, "ws") for batch in batches]
    overlapped = [(folds - 1) * max(batch, 2 * side - 1) + 3 * side + batch - 2 for batch in batches]
    for cycles, style, label in ((plain, "-", f"{side} x {side}"), (overlapped, "--", None)):
        busy = [100 * x / y for x, y in zip(useful, cycles, strict=True)]
        ax.plot(batches, busy, style, color=colors[color], label=label)
ax.set_xscale("log", base=2)
ax.set_xticks(batches[::3], [f"{batch:,}" for batch in batches[::3]])
ax.set(xlabel="batch", ylabel="busy share in %")
ax.legend(loc="upper left")
plt.show()

# %% [markdown]
# With overlap the busy share grows in proportion to the batch, until the batch is about twice the side of the array.
# From there on the array is nearly always busy. Below that, loading is the limit, and a larger array only waits longer.
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
