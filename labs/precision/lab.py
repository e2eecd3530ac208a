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
#     lab: precision
#     version: "1"
#     withheld: [mlsys.numerics, mlsys.ops, mlsys.sparsity]
# ---

# %% mlsys={"role": "variants"}
from mlsys.course.term import drawn

# Questions b and the challenge: the weight in each nibble of a word, from the lowest bits up.
ORDER = drawn((0, 2, 4, 6, 1, 3, 5, 7), (1, 3, 5, 7, 0, 2, 4, 6), (0, 1, 2, 3, 4, 5, 6, 7))
TERM_ORDER = ", ".join(map(str, ORDER))
TERM_LOWER_AT, TERM_UPPER_AT, TERM_PAIRS_SAID = {
    0: ("2 * i", "(2 * i + 1)", "2 i and 2 i + 1"),
    1: ("(2 * i + 1)", "2 * i", "2 i + 1 and 2 i"),
    4: ("i", "(i + 4)", "i and i + 4"),
}[4 if ORDER[1] == 1 else ORDER[0]]


def word(weights):
    """A word by its format, for the examples in the notebook."""
    return sum((weights[one] + 8) << (4 * place) for place, one in enumerate(ORDER))


TERM_WORD_OF_EIGHT = f"0x{word((-8, -7, -6, -5, -4, -3, -2, -1)):08x}"
TERM_WORD_OF_SEVENS = f"0x{word((7, 0, 0, 0, 0, 0, 0, -8)):08x}"

# Question e: the half of a group that is in the low nibbles of its bytes.
HALF = drawn("first", "second")
TERM_LOW_SAID, TERM_HIGH_SAID = ("first", "second") if HALF == "first" else ("second", "first")
TERM_LOW_AT, TERM_HIGH_AT = ("0", "GROUP // 2") if HALF == "first" else ("GROUP // 2", "0")
TERM_LOW_PART, TERM_HIGH_PART = ("0", "1") if HALF == "first" else ("1", "0")
TERM_NIBBLES = "low, high" if HALF == "first" else "high, low"

# Question h: which of the two places of a group is in the lower bits of its four.
LOWER = drawn("first", "second")
TERM_PLACES = "first + 4 * second" if LOWER == "first" else "second + 4 * first"
TERM_PLACES_BITS = "first | second << 2" if LOWER == "first" else "second | first << 2"
places = [(0, 3), (1, 2), (0, 1), (2, 3)]
codes = [first + 4 * second if LOWER == "first" else second + 4 * first for first, second in places]
TERM_META_1, TERM_META_2 = str(codes[0] + 16 * codes[1]), str(codes[2] + 16 * codes[3])

# Gap: the order of the cases.
GAPS = {
    "scales": """# NTH. 4 bits in place of 16, with a scale of 16 bits for every 32 weights: a quarter of the bytes. Counted: all bytes.
show_gap(NTH, "bytes", 4096 * 4096 * 2 // 4, weight_bytes(4096, 4096, 4, 32))""",
    "places": """# NTH. 2:4 keeps two of four numbers of 16 bits: half of the bytes. Counted: all bytes that a 2:4 matrix needs.
show_gap(NTH, "bytes", 4096 * 4096 * 2 // 2, bytes_24(4096, 4096, 16))""",
    "outlier": """# NTH. A row of 4,096 normal numbers in int8: steps of about 3.5 / 127, and an error of 0.29 steps. Counted: the error
#    of the same row if one of its numbers is 100.
row = torch.randn(1, 4096, generator=torch.Generator().manual_seed(1))
row[0, 7] = 100.0
q, scale = quantize_rows(row)
show_gap(NTH, "error", 0.29 * 3.5 / 127, (q.float() * scale[:, None] - row).square().mean().sqrt().item())""",
    "tile": """# NTH. One row of activations times 4,096 x 4,096 weights: multiply-adds. Counted: what tiles of 16 rows multiply.
show_gap(NTH, "multiply-adds", 1 * 4096 * 4096, triton.cdiv(1, 16) * 16 * 4096 * 4096)""",
}
TERM_CAUSE_1, TERM_CAUSE_2, TERM_CAUSE_3, TERM_CAUSE_4 = causes = drawn(
    ("scales", "tile", "outlier", "places"),
    ("outlier", "places", "tile", "scales"),
    ("tile", "scales", "places", "outlier"),
    ("places", "outlier", "scales", "tile"),
)
TERM_GAPS = "\n".join(GAPS[cause].replace("NTH", str(number)) for number, cause in enumerate(causes, start=1))
TERM_CASE_SCALES, TERM_CASE_PLACES, TERM_CASE_OUTLIER, TERM_CASE_TILE = (causes.index(cause) + 1 for cause in GAPS)

# %% [markdown]
# # Fewer bits: what pays, and where
#
# A language model spends its time in products of activations with weights. Fewer bits per number help in two ways: there
# are fewer bytes to load, and the tensor cores of a GPU multiply narrow numbers faster. Which of the two counts depends
# on the batch. When a model writes an answer word by word (**decode**), a product has few rows of activations, and the
# GPU waits for the weights. When it reads a long prompt (**prefill**), there are thousands of rows, and the GPU waits for
# its arithmetic.
#
# Narrow numbers also cost something. They are coarser, their scales are bytes too, and a kernel has to unpack them.
#
# **The question of this lab: which of int8, fp8, int4 and 2:4 sparsity makes which product faster, by how much, and with
# what error?**
#
# You will predict, count, write, measure, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with the truth at the end |
# | a | count bytes and FLOPs, and find up to which batch it waits for its weights | five formulas |
# | b | pack eight weights of 4 bits into a word | two functions in Python |
# | c | quantize rows and groups, and measure the error | three functions in PyTorch |
# | d | multiply int8 matrices in Triton | a kernel whose sums are exact |
# | e | multiply packed int4 weights by float16 activations | a kernel that unpacks as it loads |
# | f (GPU) | race it at batch 1, 16 and 64 | a share of a reference kernel's speed |
# | g (GPU with fp8) | multiply fp8 matrices | another race |
# | h | keep two of four weights | three functions, and a bound on what they bring |
# | challenge | unpack by bit tricks | a kernel without a conversion |
# | gap | explain why prediction and count differ | four causes |
#
# Plan for three to four hours. You need Python, and you should have written a tiled matrix product in Triton, as in the
# lab on tiling. Without a GPU you can finish everything except the two questions marked (GPU). Question g waits on
# every device without fp8, which GPUs have from compute capability 8.9 on (L4, H100 and later). Hints cost no points:
# each question has three, from a nudge to nearly the whole answer.
#
# Write only in the cells that hold `raise NotImplementedError`, `None`, `pass` or "Your answer". You may add cells. Read
# the test cells, and run them as often as you like. When the lab is graded, the original versions of these cells run,
# with more shapes.

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("mlsys") is None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "MLSYS_WHEEL_URL"], check=True)

from mlsys import Hardware, grading, ops
from mlsys.grading.compiler_report import compiler_report

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl

scorecard = grading.Scorecard(
    {"a": 10, "b": 10, "c": 10, "d": 15, "e": 20, "f": 5, "f-why": 5, "g": 5, "h": 10, "challenge": 5, "gap": 5},
    gpu=["f", "g"],
    read=["f-why"],
)

# %% [markdown]
# ## Predictions
#
# Before you count anything, note what you expect; a guess will do. You are not graded on how close you come. The point
# is to have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the
# time. So leave the cell alone once you have gone on.
#
# 1. `decode_gain`: one row of activations times 8,192 x 8,192 weights. The weights have 4 bits in place of 16, and every
#    128 of them share a scale of 16 bits. How many *times* fewer bytes does the product move?
# 2. `int4_rows`: with more rows of activations, the arithmetic takes longer, and loading the weights does not. Up to how
#    many rows does an H200, with 4.8 TB/s and 989 TFLOP/s in 16 bits, wait for int4 weights?
# 3. `int4_error`: normally distributed weights are rounded to 4 bits, with a scale for every 128. What is the root
#    mean square of the error, relative to that of the weights? Give a number such as 0.01.
# 4. `sparse_share`: of every four weights of 16 bits, the two smaller ones are left out. What share of the bytes is left?
# 5. `int4_speed`: how many *times* as fast as NVIDIA's library with 16-bit weights will your int4 kernel be at batch 1?
#    (Question f measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: decode_gain = None
#: int4_rows = None
#: int4_error = None
#: sparse_share = None
#: int4_speed = None
decode_gain = 4
int4_rows = 100
int4_error = 0.05
sparse_share = 0.5
int4_speed = 2
### END SOLUTION
predictions = grading.seal(
    decode_gain=decode_gain,
    int4_rows=int4_rows,
    int4_error=int4_error,
    sparse_share=sparse_share,
    int4_speed=int4_speed,
)

# %% [markdown]
# ## a. Count, and predict where each format pays
#
# A linear layer multiplies m rows of k activations by weights, which are n rows of k numbers: y = x wᵀ, with m rows of n
# results. Activations and results have 16 bits. The weights have `bits` bits each, and with `group` above 0 every `group`
# neighbors in a row share a scale of 16 bits; `group` divides k. Return plain ints from the first three functions and
# the last one:
#
# - `weight_bytes(n, k, bits, group)`: bytes of the weights with their scales.
# - `product_bytes(m, n, k, bits, group)`: all bytes that a product moves, if everything moves once.
# - `product_flops(m, n, k)`: its FLOPs, two per multiply-add.
# - `product_time(m, n, k, bits, group, bandwidth, peak)`: the **roofline**'s time in seconds: that of the bytes at
#   `bandwidth` bytes per second or that of the FLOPs at `peak` FLOP/s, whichever is longer.
# - `last_batch(bits, bandwidth, peak)`: the largest m at which loading the weights takes at least as long as the
#   arithmetic. Count the weights alone, without scales, as if n and k were endless. `bandwidth` and `peak` are ints.
#
# Do the counting yourself: `mlsys.ops` contains such counts, so it is removed from the package when the lab is graded,
# and an answer that calls it ends in an error. So are `mlsys.numerics` and `mlsys.sparsity`.
#
# <details><summary>Hint 1</summary>
# How many scales does a row of k weights have? How many bytes do eight weights of 4 bits need?
# </details>
# <details><summary>Hint 2</summary>
# Weights: <code>n * k * bits // 8</code>, and, with groups, <code>2 * n * k // group</code> for the scales. Activations and
# results: <code>2 * m * k + 2 * m * n</code>. For the last function, write both times for one weight: it has bits / 8 bytes, and
# it takes part in m multiply-adds.
# </details>
# <details><summary>Hint 3</summary>
# 2 m / peak is at most bits / 8 / bandwidth, so m is at most bits peak / (16 bandwidth): <code>bits * peak // (16 *
# bandwidth)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-counts", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count, and predict where each format pays"}
def weight_bytes(n, k, bits, group):
    """Return the bytes of the weights and their scales."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("weight_bytes")
    return n * k * bits // 8 + (2 * n * (k // group) if group else 0)
    ### END SOLUTION


def product_bytes(m, n, k, bits, group):
    """Return the bytes that a product moves."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_bytes")
    return 2 * m * k + weight_bytes(n, k, bits, group) + 2 * m * n
    ### END SOLUTION


def product_flops(m, n, k):
    """Return the FLOPs of a product."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_flops")
    return 2 * m * n * k
    ### END SOLUTION


def product_time(m, n, k, bits, group, bandwidth, peak):
    """Return the roofline's time of a product in seconds."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_time")
    return max(product_bytes(m, n, k, bits, group) / bandwidth, product_flops(m, n, k) / peak)
    ### END SOLUTION


def last_batch(bits, bandwidth, peak):
    """Return the largest m at which the weights take at least as long as the arithmetic."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("last_batch")
    return bits * peak // (16 * bandwidth)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
# 6 rows of 64 weights: 384 numbers. In 4 bits 192 bytes; with groups of 32, two scales a row, 24 bytes more.
for sizes, right in [((6, 64, 16, 0), 768), ((6, 64, 8, 0), 384), ((6, 64, 4, 0), 192), ((6, 64, 4, 32), 216)]:
    grading.assert_equal(weight_bytes(*sizes), right, what=f"weight_bytes{sizes}")
# 3 rows of 64 activations, 384 bytes, and 3 rows of 6 results, 36 bytes.
grading.assert_equal(product_bytes(3, 6, 64, 16, 0), 1188, what="product_bytes(3, 6, 64, 16, 0)")
grading.assert_equal(product_bytes(3, 6, 64, 4, 32), 636, what="product_bytes(3, 6, 64, 4, 32)")
grading.assert_equal(product_flops(3, 6, 64), 2304, what="product_flops(3, 6, 64)")


def check_time(sizes, right):
    """Compare product_time with the right number of seconds."""
    found = product_time(*sizes)
    if not abs(found - right) <= 1e-9 * right:
        raise grading.WrongAnswer(f"product_time{sizes} is {found}, should be {right}")


# 1188 bytes at 100 bytes per second; then 2304 FLOPs at 10 a second, which take longer.
check_time((3, 6, 64, 16, 0, 100, 1000), 11.88)
check_time((3, 6, 64, 16, 0, 100, 10), 230.4)
# A byte in the time of 200 FLOPs: a weight of 16 bits takes 400, that is 200 rows.
for bits, right in [(16, 200), (8, 100), (4, 50)]:
    grading.assert_equal(last_batch(bits, 10, 2000), right, what=f"last_batch({bits}, 10, 2000)")
grading.assert_equal(last_batch(4, 3, 1000), 83, what="last_batch(4, 3, 1000)")
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for bits, group in ((16, 0), (8, 64), (4, 32), (4, 128)):
    m, n, k = draw.integer(1, 300), draw.integer(1, 500), 128 * draw.integer(1, 9)
    weights = sum(bits for _ in range(n * k)) // 8 + (sum(16 for _ in range(0, n * k, group)) // 8 if group else 0)
    grading.assert_equal(weight_bytes(n, k, bits, group), weights, what="weight_bytes")
    moved = weights + (m * k + m * n) * 2
    grading.assert_equal(product_bytes(m, n, k, bits, group), moved, what="product_bytes")
    grading.assert_equal(product_flops(m, n, k), m * n * (k + k), what="product_flops")
    rate, most = draw.integer(1000, 9000), draw.integer(10**4, 10**6)
    slower = sorted((moved / rate, m * n * (k + k) / most))[1]
    if not abs(product_time(m, n, k, bits, group, rate, most) - slower) <= 1e-9 * slower:
        raise grading.WrongAnswer("product_time is wrong for other numbers")
    rows = 0
    while 16 * (rows + 1) * rate <= bits * most:
        rows += 1
    grading.assert_equal(last_batch(bits, rate, most), rows, what="last_batch")
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# **Where does each format pay?** The table predicts how many times as fast as 16 bits each format is on an H200, by its
# data sheet: int4 and int8 *weights* are multiplied in 16 bits, so they save bytes only; with int8 or fp8 on *both*
# sides the tensor cores are twice as fast as well. (The bytes of activations are counted with 16 bits in every row.)
# Small batches are decode, large ones prefill. The last batch of a row is the one up to which its weights take longer than
# its arithmetic. Above it, the gain of narrow *weights* falls, until the 16-bit product is limited by arithmetic too and
# nothing is gained. With narrow numbers on both sides, it stays near 2.

# %%
h200 = Hardware.get("h200")
bandwidth = round(h200.memory_bw.m_as("byte/s"))
peak_16, peak_8 = (round(h200.peak(name).m_as("FLOP/s")) for name in ("fp16", "fp8"))
ways = {  # bits and group of the weights, and the peak of the arithmetic
    "int8 weights": (8, 0, peak_16),
    "int4 weights": (4, 128, peak_16),
    "int8 or fp8, both": (8, 0, peak_8),
}
print("batch               ", *(f"{m:6}" for m in (1, 16, 64, 256, 1024, 4096)))
for way, (bits, group, peak) in ways.items():
    gains = [
        product_time(m, 8192, 8192, 16, 0, bandwidth, peak_16)
        / product_time(m, 8192, 8192, bits, group, bandwidth, peak)
        for m in (1, 16, 64, 256, 1024, 4096)
    ]
    print(f"{way:20}", *(f"{gain:6.2f}" for gain in gains), f"  last batch {last_batch(bits, bandwidth, peak)}")

# %% [markdown]
# ## b. Pack eight weights into a word
#
# Memory has no address for half a byte. So weights of 4 bits are packed: eight of them into a **word** of 32 bits. A
# weight is an int from -8 to 7. It is stored as weight + 8, which is 0 to 15 and fits four bits, a **nibble**. Nibble i
# has the bits 4 i to 4 i + 3 of the word. From the lowest nibble up, the nibbles hold the weights number
#
# ```
# TERM_ORDER
# ```
#
# Such an order is chosen for the kernel that unpacks them. A word has two halves of 16 bits with four nibbles each, and one
# shift and one mask get a weight out of each half at once. The order says which two weights come together. You will use
# that in the challenge.
#
# Write `pack(weights)`, which makes an int from 0 to 2³² - 1 of a list of eight ints, and `unpack(word)`, which makes the
# list of it.
#
# <details><summary>Hint 1</summary>
# Which nibble does weight number 0 go to, and which one does weight number 7 go to? <code>&lt;&lt;</code> moves a number
# to higher bits, and <code>|</code> puts two together.
# </details>
# <details><summary>Hint 2</summary>
# Go through the nibbles: nibble i holds the weight number ORDER[i], where ORDER is the list above. To unpack, start with
# a list of eight zeros and fill it in.
# </details>
# <details><summary>Hint 3</summary>
# <code>word |= (weights[one] + 8) &lt;&lt; (4 * i)</code> for <code>i, one in enumerate(ORDER)</code>, and
# <code>weights[one] = (word &gt;&gt; (4 * i) &amp; 15) - 8</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-packing", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "Pack eight weights into a word"}
def pack(weights):
    """Return the word that holds eight weights from -8 to 7."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("pack")
    return sum((weights[one] + 8) << (4 * place) for place, one in enumerate([TERM_ORDER]))
    ### END SOLUTION


def unpack(word):
    """Return the eight weights of a word."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("unpack")
    weights = [0] * 8
    for place, one in enumerate([TERM_ORDER]):
        weights[one] = (word >> (4 * place) & 15) - 8
    return weights
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
def check_word(weights, word):
    """Compare pack and unpack with a word that is known."""
    found = pack(list(weights))
    if type(found) is not int or found != word:
        said = f"0x{found:x}" if type(found) is int else repr(found)
        raise grading.WrongAnswer(f"pack({list(weights)}) is {said}, should be 0x{word:08x}")
    found = unpack(word)
    if not isinstance(found, (list, tuple)) or list(map(repr, found)) != list(map(repr, weights)):
        raise grading.WrongAnswer(f"unpack(0x{word:08x}) is {found}, should be {list(weights)}")


check_word((-8, -8, -8, -8, -8, -8, -8, -8), 0x00000000)
check_word((0, 0, 0, 0, 0, 0, 0, 0), 0x88888888)
check_word((7, 7, 7, 7, 7, 7, 7, 7), 0xFFFFFFFF)
check_word((7, 0, 0, 0, 0, 0, 0, -8), TERM_WORD_OF_SEVENS)
check_word((-8, -7, -6, -5, -4, -3, -2, -1), TERM_WORD_OF_EIGHT)
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for _ in range(12):
    weights = [draw.integer(-8, 7) for _ in range(8)]
    digits = "".join("0123456789abcdef"[weights[one] + 8] for one in reversed([TERM_ORDER]))
    found = pack(weights), unpack(int(digits, 16))
    right = repr(int(digits, 16)), repr(weights)
    if repr(found[0]) != right[0] or repr(list(found[1])) != right[1]:
        raise grading.WrongAnswer("pack or unpack is wrong for other weights")
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. Quantize, and measure the error
#
# To **quantize** numbers is to divide them by a scale and round the quotients to whole numbers, which are called codes.
# A code times the scale is near the number. Here every row, or every group in a row, has a scale of its own, chosen so
# that its number of the largest magnitude just gets the largest code.
#
# Write three functions in PyTorch:
#
# - `quantize_rows(x)`: x is (rows, cols) in float32. Return the codes as an int8 tensor of the same shape and the scales
#   as a float32 tensor of shape (rows,). The scale of a row is its largest magnitude divided by 127. The codes are x
#   divided by the scale, rounded to the nearest, halves to the even one, as `torch.round` does. A row of zeros has the
#   scale 1.
# - `quantize_groups(w, group)`: the same for every `group` neighbors in a row, with 7 in place of 127; `group` divides
#   cols. Return int8 codes of the shape of w, and float32 scales of shape (rows, cols / group).
# - `relative_error(found, exact)`: the root mean square of found - exact, divided by that of exact, as a Python float. The
#   tensors may be float16, so compute in float64.
#
# <details><summary>Hint 1</summary>
# What is the largest magnitude of each row, and what shape does it have? For groups, give the tensor a third dimension
# first.
# </details>
# <details><summary>Hint 2</summary>
# <code>x.abs().amax(1)</code>, divided by 127, and 1 where it is 0: <code>torch.where</code>. Groups are
# <code>w.reshape(rows, cols // group, group)</code>. The codes must be ints at the end: <code>.to(torch.int8)</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>scale = x.abs().amax(-1) / 127</code>; <code>scale = torch.where(scale == 0, 1.0, scale)</code>; <code>codes =
# (x / scale[..., None]).round().to(torch.int8)</code>. This is right for three dimensions as well. The error is
# <code>((f - e).norm() / e.norm()).item()</code> with both <code>.double()</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-quantize", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "Quantize, and measure the error"}
def quantize_rows(x):
    """Return int8 codes of x and a scale per row."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("quantize_rows")
    scale = x.abs().amax(1) / 127
    scale = torch.where(scale == 0, 1.0, scale)
    return (x / scale[:, None]).round().to(torch.int8), scale
    ### END SOLUTION


def quantize_groups(w, group):
    """Return codes from -7 to 7 as int8, and a scale for every `group` neighbors in a row."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("quantize_groups")
    rows, cols = w.shape
    parts = w.reshape(rows, cols // group, group)
    scale = parts.abs().amax(2) / 7
    scale = torch.where(scale == 0, 1.0, scale)
    return (parts / scale[:, :, None]).round().to(torch.int8).reshape(rows, cols), scale
    ### END SOLUTION


def relative_error(found, exact):
    """Return the root mean square of the difference, relative to that of `exact`."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("relative_error")
    found, exact = found.double(), exact.double()
    return ((found - exact).norm() / exact.norm()).item()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
def check_pair(found, codes, scales, what):
    """Compare codes exactly and scales within float32's tolerance."""
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise grading.WrongAnswer(f"{what}: return two tensors, codes and scales")
    for name, mine, due in (("codes", found[0], codes), ("scales", found[1], scales)):
        if not isinstance(mine, torch.Tensor) or mine.dtype != due.dtype or mine.shape != due.shape:
            is_now = f"{mine.dtype} {tuple(mine.shape)}" if isinstance(mine, torch.Tensor) else type(mine).__name__
            raise grading.WrongAnswer(f"{what}: {name} are {is_now}, should be {due.dtype} {tuple(due.shape)}")
        if not torch.allclose(mine.cpu().double(), due.double(), rtol=1e-5, atol=0):
            raise grading.WrongAnswer(
                f"{what}: {name} are {mine.tolist()}, should be {due.tolist()} (a half is rounded to the even code, and a "
                "row of zeros has the scale 1)"
            )


def check_codes(found, x, most, what):
    """Check codes and scales of (rows, groups, group) numbers: the largest gets the code `most`, errors are half steps."""
    if found[0].dtype != torch.int8:
        raise grading.WrongAnswer(f"{what}: codes are {found[0].dtype}, should be torch.int8")
    codes, scales = found[0].double().reshape(x.shape), found[1].double().reshape(x.shape[:2])
    grading.assert_close(found[1].reshape(x.shape[:2]).cpu(), (x.abs().amax(2) / most).cpu(), what=f"{what}, scales")
    if int(codes.abs().amax(2).min()) != most or int(codes.abs().max()) != most:
        raise grading.WrongAnswer(f"{what}: the largest magnitude of every row or group must get the code {most}")
    away = (codes * scales[..., None] - x.double().cpu()).abs() / scales[..., None]
    if not float(away.max()) < 0.5001:
        raise grading.WrongAnswer(f"{what}: a number is {float(away.max()):.2f} steps from its code; 0.5 is the most")


x = torch.tensor([[127.0, -64.0, 0.5, 1.5], [-6.35, 0.05, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
codes = torch.tensor([[127, -64, 0, 2], [-127, 1, 60, 0], [0, 0, 0, 0]], dtype=torch.int8)
check_pair(quantize_rows(x), codes, torch.tensor([1.0, 0.05, 1.0]), "quantize_rows, three rows by hand")
w = torch.tensor([[7.0, -2.0, 0.7, -0.12], [0.0, 0.0, -3.5, 1.8]])
codes = torch.tensor([[7, -2, 7, -1], [0, 0, -7, 4]], dtype=torch.int8)
scales = torch.tensor([[1.0, 0.1], [1.0, 0.5]])
check_pair(quantize_groups(w, 2), codes, scales, "quantize_groups, groups of 2 by hand")
draw = grading.Draws("c")
x = draw.matrix(9, 50)
check_codes(quantize_rows(x), x[:, None, :], 127, "quantize_rows of 9 x 50 normal numbers")
w = draw.matrix(5, 96)
check_codes(quantize_groups(w, 32), w.reshape(5, 3, 32), 7, "quantize_groups of 5 x 96 normal numbers, groups of 32")


def check_error(found, exact, right, what):
    """Compare relative_error with the right number."""
    said = relative_error(found, exact)
    if type(said) is not float:
        raise grading.WrongAnswer(f"relative_error, {what}: return a Python float, got a {type(said).__name__}")
    if not abs(said - right) <= 1e-6 * right:
        raise grading.WrongAnswer(f"relative_error, {what}: {said}, should be {right}; compute in float64")


check_error(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), 0.5, "[1, 2] for [2, 4]")
check_error(torch.tensor([[300.0, 0.0]]).half(), torch.tensor([[303.0, 0.0]]).half(), 3 / 303, "300 for 303 in float16")
### BEGIN HIDDEN TESTS
x = draw.matrix(draw.integer(2, 7), draw.ragged(20, 90), layout="sliced") * 10.0 ** draw.integer(-6, 6)
check_codes(quantize_rows(x), x[:, None, :], 127, "quantize_rows of other numbers")
for group in (16, 64):
    rows, count = draw.integer(2, 7), draw.integer(1, 5)
    w = draw.matrix(rows, count * group, layout="column") * 10.0 ** draw.integer(-6, 6)
    check_codes(quantize_groups(w, group), w.reshape(rows, count, group), 7, "quantize_groups of other numbers")
found, exact = draw.matrix(4, 30, dtype="float16") * 200, draw.matrix(4, 30, values="positive").half() * 300
right = (((found.double() - exact.double()) ** 2).sum() / (exact.double() ** 2).sum()) ** 0.5
if not abs(relative_error(found, exact) - float(right)) <= 1e-6 * float(right):
    raise grading.WrongAnswer("relative_error is wrong for other numbers")
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# ## d. int8 times int8
#
# When both sides are int8, the tensor cores multiply the codes, and the scales wait until the end. With a scale per row
# of x and per row of w,
#
# ```
# y[m, n]  =  sum over k  of  (a[m, k] a_scale[m]) (b[n, k] b_scale[n])  =  (sum over k of a[m, k] b[n, k])  a_scale[m] b_scale[n]
# ```
#
# The sum in brackets is a sum of ints. It fits int32, where it is exact. It fits neither int8 nor float16, and float32
# holds every int only up to 2²⁴.
#
# The **contract** of `int8_kernel`:
#
# - The grid has two dimensions. Program (i, j) computes rows i TILE_M ... (i + 1) TILE_M - 1 and columns j TILE_N ... (j + 1)
#   TILE_N - 1 of y.
# - a is (M, K) and b is (N, K), both int8. y is (M, N), float32 or float16. Each may have any strides. The scales are
#   float32 and contiguous, (M,) and (N,).
# - The kernel is right for all sizes from 1 up (K up to 100,000, whose sums still fit int32) and for tiles that do not
#   divide anything. TILE_K is 32 or more, because tensor cores take 32 numbers of 8 bits at a time.
# - **The sum is kept in int32**: `acc = tl.dot(a, b, acc, out_dtype=tl.int32)`, where acc is an int32 block. With an acc
#   of another dtype, or without `out_dtype`, Triton ends with an `AssertionError` that does not say why.
#
# Triton multiplies int8 on GPUs of compute capability 8.0 or more. On an older one, such as a T4, this question waits; in
# a runtime without a GPU, the interpreter checks it.
#
# The lab's own functions launch your kernels, so you write only kernels. They refuse what a kernel does not take, with
# the name of what is wrong. Use `run` to try things out.


# %% nbgrader={"grade": false, "grade_id": "launches", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def refuse(name, tensor, shape, dtypes, contiguous=False):
    """Raise an error if a tensor has another shape or dtype than a kernel takes."""
    if tensor.dtype not in dtypes:
        taken = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        raise ValueError(f"{name} is {tensor.dtype}: give {taken}")
    if tuple(tensor.shape) != tuple(shape) or 0 in tensor.shape:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: give {tuple(shape)}, each side 1 or more")
    if contiguous and not tensor.is_contiguous():
        raise ValueError(f"{name} has strides {tensor.stride()}: give it contiguous")


def refuse_tile(constants, name, least):
    """Raise an error if a side of a tile is not a power of two or too small for tensor cores."""
    value = constants[name]
    if type(value) is not int or value < least or value & (value - 1):
        raise ValueError(f"{name} is {value!r}: give a power of two, {least} or more")


def wait_for(capability, what, tensor):
    """Raise NeedsGpu on a GPU that is too old; the interpreter has no such limit."""
    if tensor.is_cuda and torch.cuda.get_device_capability(tensor.device) < capability:
        raise grading.NeedsGpu(
            f"{torch.cuda.get_device_name(tensor.device)}: Triton multiplies {what} from compute capability "
            f"{capability[0]}.{capability[1]} on, so this question waits for such a GPU, or for a runtime without any."
        )


def launch_int8(kernel, constants, y, a, b, a_scale, b_scale):
    """Launch one program per tile of TILE_M x TILE_N."""
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"a and b have shapes {tuple(a.shape)} and {tuple(b.shape)}: give (M, K) and (N, K)")
    (M, K), N = a.shape, b.shape[0]
    refuse("a", a, (M, K), [torch.int8])
    refuse("b", b, (N, K), [torch.int8])
    refuse("y", y, (M, N), [torch.float32, torch.float16])
    refuse("a_scale", a_scale, (M,), [torch.float32], contiguous=True)
    refuse("b_scale", b_scale, (N,), [torch.float32], contiguous=True)
    for name, least in (("TILE_M", 16), ("TILE_N", 16), ("TILE_K", 32)):
        refuse_tile(constants, name, least)
    wait_for((8, 0), "int8", a)
    grid = (triton.cdiv(M, constants["TILE_M"]), triton.cdiv(N, constants["TILE_N"]))
    kernel[grid](a, b, a_scale, b_scale, y, M, N, K, *a.stride(), *b.stride(), *y.stride(), **constants)


def launch_int8_turned(kernel, constants, y, *inputs):
    """Launch with a result whose columns are contiguous in memory."""
    turned = torch.empty_like(y.T, memory_format=torch.contiguous_format).T
    launch_int8(kernel, constants, turned, *inputs)
    y.copy_(turned)


def right_int8(a, b, a_scale, b_scale, dtype=torch.float32):
    """Return the right product: an exact sum of ints, then the scales in float64."""
    return ((a.double() @ b.double().T) * a_scale.double()[:, None] * b_scale.double()).to(dtype)


def draw_codes(draw, rows, cols, most=127, **how):
    """Draw ints from -most to most as int8."""
    matrix = draw.matrix(rows, cols, **how)
    return (matrix / float(matrix.abs().max()) * most).round_().to(torch.int8)


def laid_out(codes, layout):
    """Return codes with their memory in some layout: "row", "column" or "sliced"."""
    if layout == "column":
        return codes.T.contiguous().T
    if layout == "sliced":
        larger = torch.full((2 * codes.shape[0], 3 * codes.shape[1]), 99, dtype=codes.dtype, device=codes.device)
        larger[::2, 1::3] = codes
        return larger[::2, 1::3]
    return codes


def run(launch, kernel, constants, shape, dtype, *inputs):
    """Launch a kernel with a fresh result, and return it."""
    y = torch.full(shape, float("nan"), dtype=dtype, device=inputs[0].device)
    launch(kernel, constants, y, *inputs)
    return y


# %% [markdown]
# <details><summary>Hint 1</summary>
# Start from the tiled matrix product. What is different: b has a row per column of y, the masked loads get 0, which is an
# int, and the block of sums is int32.
# </details>
# <details><summary>Hint 2</summary>
# Load b turned, as a block of TILE_K x TILE_N: <code>b_ptr + n[None, :] * stride_bn + k[:, None] * stride_bk</code>. After
# the loop, load both scales with masks and multiply <code>acc.to(tl.float32)</code> by them.
# </details>
# <details><summary>Hint 3</summary>
# In the loop: <code>k = start + tl.arange(0, TILE_K)</code>, two loads with masks of m and k or of k and n and
# <code>other=0</code>, <code>acc = tl.dot(a, b, acc, out_dtype=tl.int32)</code>. After it: <code>y = acc.to(tl.float32) *
# a_scale[:, None] * b_scale[None, :]</code>, and a store of <code>y.to(y_ptr.dtype.element_ty)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "int8 times int8"}
@triton.jit
def int8_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, y_ptr,
    M, N, K,
    stride_am, stride_ak, stride_bn, stride_bk, stride_ym, stride_yn,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Compute a tile of TILE_M x TILE_N of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.int32)
    for start in range(0, K, TILE_K):
        k = start + tl.arange(0, TILE_K)
        a = tl.load(
            a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak, mask=(m < M)[:, None] & (k < K)[None, :], other=0
        )
        b = tl.load(
            b_ptr + n[None, :] * stride_bn + k[:, None] * stride_bk, mask=(n < N)[None, :] & (k < K)[:, None], other=0
        )
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)
    a_scale = tl.load(a_scale_ptr + m, mask=m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + n, mask=n < N, other=0.0)
    y = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]
    out = y_ptr + m[:, None] * stride_ym + n[None, :] * stride_yn
    tl.store(out, y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("int8_kernel: write it, then delete this line")
### END SOLUTION

# %% [markdown]
# The tests come in steps. Work on the first one that fails. They launch your kernel with bands of other numbers around
# every tensor. A store outside a tensor damages a band and is reported; without a GPU so is a load, with its line, program
# and lane. An element that no program writes shows up as a NaN.

# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
draw = grading.Draws("d", DEVICE)


def check_int8(a, b, what, tiles=(16, 16, 32), dtype=torch.float32, launch=launch_int8):
    """Compare int8_kernel with the exact product."""
    a_scale, b_scale = (draw.matrix(1, one.shape[0], values="positive")[0] / 64 for one in (a, b))
    right = right_int8(a, b, a_scale, b_scale, dtype)
    constants = dict(zip(("TILE_M", "TILE_N", "TILE_K"), tiles, strict=True))
    what = f"int8_kernel, {what}: a {tuple(a.shape)}, b {tuple(b.shape)}, {constants}"
    grading.check_kernel(int8_kernel, constants, [a, b, a_scale, b_scale], right, launch=launch, what=what)


def check_exact(rows, cols, depth, what):
    """Check a sum that climbs far above 2^24 and comes back: its last digits are missing if they were dropped on the way."""
    a = draw_codes(draw, rows, depth, values="climbing")
    b = draw_codes(draw, cols, depth, values="positive").abs()
    check_int8(a, b, what, (16, 16, 128))


check_int8(draw_codes(draw, 16, 32), draw_codes(draw, 16, 32), "one tile, one step")
check_int8(draw_codes(draw, 16, 96), draw_codes(draw, 16, 96), "three steps")
check_int8(draw_codes(draw, 32, 32), draw_codes(draw, 48, 32), "2 x 3 tiles")
check_int8(draw_codes(draw, 19, 32), draw_codes(draw, 21, 32), "rows and columns ragged")
check_int8(draw_codes(draw, 16, 45), draw_codes(draw, 16, 45), "k ragged")
check_int8(draw_codes(draw, 1, 7), draw_codes(draw, 5, 7), "one row")
check_int8(draw_codes(draw, 19, 45), draw_codes(draw, 37, 45), "other tiles", (32, 64, 32))
check_int8(laid_out(draw_codes(draw, 19, 45), "column"), draw_codes(draw, 21, 45), "a by columns")
check_int8(draw_codes(draw, 19, 45), laid_out(draw_codes(draw, 21, 45), "sliced"), "b with gaps")
check_int8(draw_codes(draw, 19, 45), draw_codes(draw, 21, 45), "y by columns", launch=launch_int8_turned)
check_int8(draw_codes(draw, 19, 45), draw_codes(draw, 21, 45), "y in float16", dtype=torch.float16)
check_exact(16, 16, 8192, "a long sum")
### BEGIN HIDDEN TESTS
for layout, other in [("row", "sliced"), ("column", "row"), ("sliced", "column")]:
    depth, wanted = draw.ragged(33, 150), (16 << draw.integer(0, 2), 16 << draw.integer(0, 2), 32 << draw.integer(0, 1))
    a = laid_out(draw_codes(draw, draw.ragged(3, 70), depth), layout)
    b = laid_out(draw_codes(draw, draw.ragged(3, 70), depth), other)
    for function in (launch_int8, launch_int8_turned):
        check_int8(a, b, f"strides {a.stride()} and {b.stride()}", wanted, launch=function)
check_exact(draw.ragged(3, 20), draw.ragged(3, 20), 8192, "another long sum")
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# ## e. int4 weights, float16 activations
#
# At small batches only the bytes of the weights count. So activations stay in float16, and the kernel turns packed
# weights into float16 after it has loaded them, in registers. No 16-bit copy of the weights is ever in memory.
#
# For this kernel two weights share a byte. A **group** is GROUP neighbors of a row; it has one scale and GROUP / 2 bytes.
# Each byte of a group holds two weights, and each weight is stored as weight + 8. In byte j,
#
# - the low nibble is weight j of the **TERM_LOW_SAID** half of the group,
# - the high nibble is weight j of the **TERM_HIGH_SAID** half.
#
# So the low nibbles of a group are a block of GROUP / 2 neighboring weights, and so are the high ones. Each block meets
# GROUP / 2 neighboring activations, and a step of the loop makes two products. In PyTorch, `pack_bytes` below
# does the packing.
#
# The **contract** of `int4_kernel`:
#
# - The grid is that of question d: program (i, j) computes tile (i, j) of y, TILE_M x TILE_N.
# - x is (M, K) in float16, with any strides. packed is (N, K / 2) in uint8, scales are (N, K / GROUP) in float16, y is (M,
#   N) in float16; these are contiguous. uint8 has no negative numbers: in uint8, 3 - 8 is 251.
# - GROUP divides K and is a power of two, 32 or more. M and N may be anything from 1 up, also smaller than a tile.
# - y[m, n] = sum over groups of scale[n, group] times (sum over the group of x w). Both sums are kept in float32: a group's
#   sum is scaled after it is complete.
#
# <details><summary>Hint 1</summary>
# How many steps does the loop have, and what does each step load? How do you get 0 ... 15 out of the low and out of the
# high nibble of a byte, and -8 ... 7 out of that?
# </details>
# <details><summary>Hint 2</summary>
# A step loads a block of bytes, GROUP / 2 x TILE_N; two blocks of x, TILE_M x GROUP / 2, which begin at
# <code>group * GROUP</code> and half a group later; and TILE_N scales. <code>low = (bytes &amp; 15).to(tl.float16) -
# 8</code>, <code>high = (bytes &gt;&gt; 4).to(tl.float16) - 8</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>part = tl.dot(x_low, low)</code>; <code>part = tl.dot(x_high, high, part)</code>; <code>acc += part *
# scale.to(tl.float32)[None, :]</code>. x_low begins at <code>group * GROUP + TERM_LOW_AT</code>, x_high at <code>group *
# GROUP + TERM_HIGH_AT</code>. Only m and n need masks.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def whole_weights(packed, scales):
    """Return packed weights as float32 numbers, (N, K)."""
    rows, groups = scales.shape
    parts = packed.reshape(rows, groups, -1).int()
    low, high = parts % 16 - 8, parts // 16 - 8
    return (torch.cat([TERM_NIBBLES], 2) * scales.float()[:, :, None]).reshape(rows, -1)


def pack_bytes(codes, group):
    """Pack codes from -8 to 7, (N, K), as int4_kernel reads them."""
    parts = codes.int().reshape(codes.shape[0], -1, 2, group // 2) + 8
    low, high = parts[:, :, TERM_LOW_PART], parts[:, :, TERM_HIGH_PART]
    return (low + 16 * high).to(torch.uint8).reshape(codes.shape[0], -1)


def launch_int4(kernel, constants, y, x, packed, scales):
    """Launch one program per tile of TILE_M x TILE_N; GROUP follows from the shapes."""
    if x.dim() != 2 or packed.dim() != 2 or scales.dim() != 2:
        raise ValueError("x, packed and scales must have two dimensions: (M, K), (N, K / 2) and (N, K / GROUP)")
    (M, K), (N, groups) = x.shape, scales.shape
    group = K // max(groups, 1)
    if group < 32 or group & (group - 1) or group * groups != K:
        raise ValueError(f"{K} columns in {groups} groups: give groups of equal size, a power of two, 32 or more")
    refuse("x", x, (M, K), [torch.float16])
    refuse("packed", packed, (N, K // 2), [torch.uint8], contiguous=True)
    refuse("scales", scales, (N, groups), [torch.float16], contiguous=True)
    refuse("y", y, (M, N), [torch.float16], contiguous=True)
    for name in ("TILE_M", "TILE_N"):
        refuse_tile(constants, name, 16)
    grid = (triton.cdiv(M, constants["TILE_M"]), triton.cdiv(N, constants["TILE_N"]))
    kernel[grid](x, packed, scales, y, M, N, K, *x.stride(), GROUP=group, **constants)


# %% nbgrader={"grade": false, "grade_id": "e-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "int4 weights, float16 activations"}
@triton.jit
def int4_kernel(
    x_ptr, packed_ptr, scale_ptr, y_ptr,
    M, N, K,
    stride_xm, stride_xk,
    GROUP: tl.constexpr, TILE_M: tl.constexpr, TILE_N: tl.constexpr,
):  # fmt: skip
    """Compute a tile of TILE_M x TILE_N of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    n = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    j = tl.arange(0, GROUP // 2)
    rows = x_ptr + m[:, None] * stride_xm
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for group in range(K // GROUP):
        byte = tl.load(
            packed_ptr + n[None, :] * (K // 2) + group * (GROUP // 2) + j[:, None], mask=(n < N)[None, :], other=0
        )
        scale = tl.load(scale_ptr + n * (K // GROUP) + group, mask=n < N, other=0.0)
        low = (byte & 15).to(tl.float16) - 8
        high = (byte >> 4).to(tl.float16) - 8
        start = group * GROUP + j
        x_low = tl.load(rows + (start + TERM_LOW_AT)[None, :] * stride_xk, mask=(m < M)[:, None], other=0.0)
        x_high = tl.load(rows + (start + TERM_HIGH_AT)[None, :] * stride_xk, mask=(m < M)[:, None], other=0.0)
        part = tl.dot(x_low, low)
        part = tl.dot(x_high, high, part)
        acc += part * scale.to(tl.float32)[None, :]
    out = y_ptr + m[:, None] * N + n[None, :]
    tl.store(out, acc.to(tl.float16), mask=(m < M)[:, None] & (n < N)[None, :])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("int4_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 20, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
draw = grading.Draws("e", DEVICE)


def check_int4(m, n, k, what, group=32, tiles=(16, 16), layout="row", turn=False, large=1):
    """Compare int4_kernel with the product in float64.

    With `turn` the sums climb and come back. The scales are `large` times as large, and x as much smaller.
    """
    x = draw.matrix(m, k, layout=layout, dtype="float16", values="climbing" if turn else "normal")
    codes = draw_codes(draw, n, k, 7, values="positive" if turn else "normal")
    codes[0, :2] = torch.tensor([-8, 7], dtype=torch.int8)
    packed = pack_bytes(codes, group)
    x /= large
    scales = (draw.matrix(n, k // group, values="positive") * (large / 8)).half()
    right = (x.double() @ whole_weights(packed, scales).double().T).half()
    constants = {"TILE_M": tiles[0], "TILE_N": tiles[1]}
    what = f"int4_kernel, {what}: x {tuple(x.shape)}, {n} rows of weights, groups of {group}, {constants}"
    grading.check_kernel(int4_kernel, constants, [x, packed, scales], right, launch=launch_int4, what=what)


check_int4(16, 16, 32, "one tile, one group")
check_int4(16, 16, 96, "three groups")
check_int4(16, 16, 128, "groups of 64", group=64)
check_int4(32, 48, 64, "2 x 3 tiles")
check_int4(16, 21, 64, "rows of weights ragged")
check_int4(19, 16, 64, "batch ragged")
check_int4(1, 5, 64, "one row")
check_int4(37, 70, 64, "other tiles", tiles=(32, 64))
check_int4(5, 21, 64, "x by columns", layout="column")
check_int4(5, 21, 128, "x with gaps", group=64, layout="sliced")
check_int4(5, 21, 128, "large scales: a weight times its scale is beyond float16", large=2**18)
# Sums climb and come back: digits that a short accumulator drops on the way are missing at the end.
check_int4(5, 21, 2048, "a long sum", group=64, turn=True)
### BEGIN HIDDEN TESTS
for kind in ("row", "offset", "sliced"):
    size = 32 << draw.integer(0, 2)
    tiles = 16 << draw.integer(0, 1), 16 << draw.integer(0, 2)
    check_int4(
        draw.ragged(1, 40), draw.ragged(3, 90), size * draw.integer(1, 4), f"x in layout {kind}", size, tiles, kind
    )
check_int4(draw.ragged(1, 9), draw.ragged(3, 40), 2048, "another long sum", 128, turn=True)
check_int4(draw.ragged(1, 9), draw.ragged(3, 40), 192, "large scales", 64, large=2**18)
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# **Do your kernels compile for a GPU?** The interpreter accepts some things that the compiler refuses. The next cell
# compiles your kernels of questions d and e for an A100, and shows how many registers a thread needs and how many bytes
# do not fit in them. It needs no GPU and runs for about ten seconds.


# %%
def empty(*shape, dtype):
    """Return a tensor that has a shape and no memory."""
    return torch.empty(shape, dtype=dtype, device="meta")


codes, rows, numbers = empty(4096, 4096, dtype=torch.int8), empty(4096, dtype=torch.float32), torch.float16
x, packed, scales = (
    empty(16, 4096, dtype=numbers), empty(4096, 2048, dtype=torch.uint8), empty(4096, 32, dtype=numbers)
)  # fmt: skip
tried = [
    (int8_kernel, launch_int8, {"TILE_M": 128, "TILE_N": 64, "TILE_K": 64}, 4096, (codes, codes, rows, rows)),
    (int4_kernel, launch_int4, {"TILE_M": 16, "TILE_N": 32}, 16, (x, packed, scales)),
]
for kernel, launch, tiles, batch, inputs in tried:
    constants, y = tiles | {"num_warps": 4, "num_stages": 3}, empty(batch, 4096, dtype=numbers)
    [report] = compiler_report(kernel, [constants], y, *inputs, launch=launch, capabilities=[80])
    print(f"{kernel.__name__}: {report.registers} registers, {report.spilled_bytes} bytes spilled")

# %% [markdown]
# ## f. The race (GPU, compute capability 8.0 or more)
#
# `grading.speed` runs `int4_kernel` with your `config` on weights of 8,192 x 8,192 in groups of 128, at batch 1, 16
# and 64, and compares every element with the library's. Then it times the two in turn, for several rounds: yours, the
# other, the other, yours. Here the other one makes 16-bit weights first and lets NVIDIA's library multiply them. When
# the lab is graded, your kernel runs against a Triton kernel that the lab's authors wrote, on the same GPU, in the
# same run. You get all the points from 0.8 of that kernel's speed on, none below 0.1, and a share in between. Without
# a GPU the cell compiles your kernel with your config, says what it needs, and ends with `NeedsGpu`; the points wait.
#
# Write `config((m, n, k), dtype)`. It returns a dict of four ints: `TILE_M`, `TILE_N`, `num_warps` and `num_stages`.
#
# At batch 1, TILE_M is 16 because tensor cores take no less, and 15 of the rows are empty. That costs nothing as long as
# memory is the limit. What counts is that all multiprocessors load at the same time (132 of them on an H100), and that
# each has many bytes on their way: `num_stages` times TILE_N x GROUP / 2 bytes. A batch that does not fit TILE_M makes
# the weights be loaded and unpacked more than once. The cell after the race also asks for batches of 256 and 1,024.
#
# <details><summary>Hint 1</summary>
# With 8,192 rows of weights, how many programs are there for TILE_N = 32, 64 and 128?
# </details>
# <details><summary>Hint 2</summary>
# Choose TILE_M so that one tile holds the batch. Then choose TILE_N so that there are about as many programs as
# multiprocessors, or more.
# </details>
# <details><summary>Hint 3</summary>
# TILE_M = 16, TILE_N = 32, 4 warps and 4 stages at batch 1 and 16; TILE_M = TILE_N = 64, 4 warps and 3 stages above. Try
# others: it takes a minute.
# </details>

# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(1, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


def race_inputs(draw, shape, dtype):
    """Return random activations, packed weights and scales, in groups of 128; 16 divides n."""
    m, n, k = shape
    codes = (draw.matrix(n // 16, k) * 3).round_().clamp_(-8, 7).to(torch.int8)  # each race mixes the copies below
    scales = (draw.matrix(n, k // 128, values="positive") / 8).half()
    return draw.matrix(m, k, dtype="float16"), pack_bytes(codes, 128).repeat(16, 1), scales


def right_race(x, packed, scales):
    """Return the library's result with weights of 16 bits."""
    return x @ whole_weights(packed, scales).half().T


def race_op(shape, dtype):
    """Return the operation; no kernel can be faster than the GPU does its arithmetic."""
    m, n, k = shape
    return ops.matmul(m=m, n=n, k=k, dtype=dtype)


# %% nbgrader={"grade": false, "grade_id": "f-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup", "e"], "title": "The race"}
def config(shape, dtype):
    """Return tile sizes, warps and stages for int4_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("config")
    m, _, _ = shape
    small = m <= 16
    return {
        "TILE_M": 16 if small else 64,
        "TILE_N": 32 if small else 64,
        "num_warps": 4,
        "num_stages": 4 if small else 3,
    }
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "f-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "speed", "needs": ["setup", "e"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    in_ptr, byte_ptr, factor_ptr, out_ptr, count, wide, deep, in_row, in_col,
    TILE_N: tl.constexpr, GROUP: tl.constexpr, TILE_M: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    row = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    which = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    lane = tl.arange(0, GROUP // 2)
    there, wanted = (row < count)[:, None], (which < wide)[None, :]
    source = in_ptr + row[:, None] * in_row + lane[None, :] * in_col
    pairs = byte_ptr + which[None, :] * (deep // 2) + lane[:, None]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for step in range(deep // GROUP):
        both = tl.load(pairs + step * (GROUP // 2), mask=wanted, other=0)
        factor = tl.load(factor_ptr + which * (deep // GROUP) + step, mask=which < wide, other=0.0)
        first = tl.load(source + (step * GROUP + TERM_LOW_AT) * in_col, mask=there, other=0.0)
        second = tl.load(source + (step * GROUP + TERM_HIGH_AT) * in_col, mask=there, other=0.0)
        sums = tl.dot(first, (both & 15).to(tl.float16) - 8)
        sums = tl.dot(second, (both >> 4).to(tl.float16) - 8, sums)
        total += sums * factor.to(tl.float32)[None, :]
    tl.store(out_ptr + row[:, None] * wide + which[None, :], total.to(tl.float16), mask=there & wanted)


def reference_config(shape, dtype):
    few = shape[0] <= 16
    return {"TILE_M": 16 if few else 64, "TILE_N": 32 if few else 64, "num_warps": 4, "num_stages": 4 if few else 3}


rival = (reference_kernel, reference_config)
### END HIDDEN TESTS
race = grading.speed(
    int4_kernel,
    config,
    shapes=RACES,
    inputs=race_inputs,
    launch=launch_int4,
    expected=right_race,
    dtype="fp16",
    reference=rival,
    capability=(8, 0),
    op=race_op,
)
scorecard.passed("f", race.fraction)
race

# %% [markdown]
# **Against 16-bit weights.** The race above does not answer the lab's question. The next cell does, if you have a GPU: it
# times your kernel beside the library's product with weights that are 16-bit numbers already, at batches from decode to
# prefill, and compares with the roofline's prediction for an H200.

# %%
measured = {}
if DEVICE == "cuda":
    from functools import partial

    from mlsys.measure.timing import rotate, time_pair

    draw = grading.Draws("against 16 bits", DEVICE)
    for batch in (1, 16, 64, 256, 1024):
        x, packed, scales = race_inputs(draw, (batch, 8192, 8192), "fp16")
        whole, y = whole_weights(packed, scales).half(), torch.empty(batch, 8192, dtype=torch.float16, device=DEVICE)
        constants = config((batch, 8192, 8192), "fp16")
        # Several copies take turns, as the layers of a model do, so that no cache has the weights from the call before.
        ours = rotate(partial(launch_int4, int4_kernel, constants, y, x), [(packed.clone(), scales) for _ in range(6)])
        theirs = rotate(partial(torch.nn.functional.linear, x), [(whole.clone(),) for _ in range(6)])
        measured[batch] = time_pair(ours, theirs, on_gpu=True, graph=True).ratio
        due = product_time(batch, 8192, 8192, 16, 0, bandwidth, peak_16) / product_time(
            batch, 8192, 8192, 4, 128, bandwidth, peak_16
        )
        print(f"batch {batch:5}: {measured[batch]:5.2f} times as fast as 16 bits; predicted {due:5.2f}")
else:
    print("No GPU: nothing is timed here.")

# %% [markdown]
# **Say why.** Answer in five to eight sentences. A service runs products with 8,192 x 8,192 weights on an H200. Take the
# table below question a. For decode at batch 16 and for prefill of 4,096 tokens, what is the limit, which format would
# you choose, and how much does it bring? Up to which batch does the product wait for int4 weights, and why does that batch
# follow from the bits and from the GPU alone? From which batch on do they bring nothing? A kernel with int4 weights can be
# *slower* than 16 bits at batch 1,024: what does it do there that the other one does not? A person reads your answer; it
# gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "f-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f-why", "role": "written", "needs": ["setup"], "title": "Say why"}
# ### BEGIN SOLUTION
# #: *Your answer*
# At batch 16 the product loads 134 MB of 16-bit weights for 2.1 GFLOP, 16 FLOPs per byte, so memory is the limit, and
# int4 weights bring 3.8 times the speed, not 4, because of the scales and the activations. At 4,096 rows it does
# 550 GFLOP, and arithmetic is the limit. Weights of 4 bits bring nothing there, because they are multiplied in 16 bits;
# int8 or fp8 on both sides doubles the peak, so it brings two times. Int4 weights wait for memory up to about batch 51:
# a weight has half a byte and takes part in m multiply-adds, so only bits, bandwidth and peak remain. From about batch
# 206 on the 16-bit product waits for arithmetic too, and nothing is gained. The int4 kernel still unpacks every weight,
# once for each tile of rows, with instructions that the other one does not have.
# ### END SOLUTION

# %% [markdown]
# ## g. fp8 times fp8 (GPU with fp8)
#
# fp8 has floating-point numbers of 8 bits. The format e4m3 has 4 bits of exponent and 3 of mantissa, and its largest
# number is 448. The tensor cores multiply it as fast as int8 and add in floating point. Outliers hurt it less than int8,
# because its steps grow with the number.
#
# Write `fp8_kernel`, which is simpler than `int8_kernel`, and `fp8_config((m, n, k), dtype)`, which returns `TILE_M`,
# `TILE_N`, `TILE_K`, `num_warps` and `num_stages`:
#
# - The grid has one dimension, `cdiv(M, TILE_M) * cdiv(N, TILE_N)` programs. You choose which program computes which tile.
#   Programs that run at the same time should share what they load, for the sake of the L2 cache.
# - a is (M, K) and b is (N, K), both fp8 e4m3; y is (M, N), in 16 or 32 bits. All are contiguous.
# - y = scale * (sum over k of a[m, k] b[n, k]), where scale is one float32 number in memory. The sum is
#   `acc = tl.dot(a, b, acc)` with a float32 acc. (On a Hopper GPU the tensor cores keep fewer digits inside of it.
#   `max_num_imprecise_acc` of `tl.dot` sets how often they hand their sum on to float32, which costs time; the test
#   allows for the default.)
# - All sizes from 1 up are possible. A masked load of fp8 gets `other=0.0`: a float, not the int 0 of question d.
#
# The race has the form of question f; the shapes are (4096, 4096, 2048) and (8192, 8192, 2048). It waits for a GPU of
# compute capability 8.9 or more. Triton's interpreter can multiply fp8 as well, so the cell after your kernel tries it on
# a small product if you have no GPU.
#
# <details><summary>Hint 1</summary>
# Copy your kernel of question d. What has become simpler? Which tile does program number i compute if neighbors go down
# the rows?
# </details>
# <details><summary>Hint 2</summary>
# The sum no longer needs <code>out_dtype</code>, and there is one scale for all. Neighbors share columns: <code>row =
# pid % tiles_m</code>, <code>column = pid // tiles_m</code>; better still are groups of 8 rows of tiles, as in the lab
# on tiling.
# </details>
# <details><summary>Hint 3</summary>
# Tiles of 128 x 256 x 128 with 8 warps and 3 stages, or 128 x 128 x 128 with 8 warps and 4 stages on an L4. The end:
# <code>y = acc * tl.load(scale_ptr)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "g-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
FP8 = torch.float8_e4m3fn
FP8_RACES = [(4096, 4096, 2048), (8192, 8192, 2048)]


def launch_fp8(kernel, constants, y, a, b, scale):
    """Launch one program per tile, numbered in one dimension; a and b are the bytes of fp8 numbers."""
    if a.dim() != 2 or b.dim() != 2:
        raise ValueError(f"a and b have shapes {tuple(a.shape)} and {tuple(b.shape)}: give (M, K) and (N, K)")
    (M, K), N = a.shape, b.shape[0]
    refuse("a", a, (M, K), [torch.uint8], contiguous=True)
    refuse("b", b, (N, K), [torch.uint8], contiguous=True)
    refuse("y", y, (M, N), [torch.float32, torch.float16, torch.bfloat16], contiguous=True)
    refuse("scale", scale, (1,), [torch.float32], contiguous=True)
    for name, least in (("TILE_M", 16), ("TILE_N", 16), ("TILE_K", 32)):
        refuse_tile(constants, name, least)
    wait_for((8, 9), "fp8", a)
    grid = (triton.cdiv(M, constants["TILE_M"]) * triton.cdiv(N, constants["TILE_N"]),)
    kernel[grid](a.view(FP8), b.view(FP8), scale, y, M, N, K, **constants)


def fp8_inputs(draw, shape, dtype):
    """Return the bytes of random fp8 matrices, and a scale."""
    m, n, k = shape
    a, b = (draw.matrix(rows, k).to(FP8).view(torch.uint8) for rows in (m, n))
    return a, b, draw.matrix(1, 1, values="positive")[0]


def right_fp8(a, b, scale):
    """Return the library's result; without a GPU, that of float32 numbers."""
    if not a.is_cuda:
        return (scale * (a.view(FP8).float() @ b.view(FP8).float().T)).bfloat16()
    one = torch.ones(1, device=a.device)
    return torch._scaled_mm(a.view(FP8), b.view(FP8).T, scale_a=scale, scale_b=one, out_dtype=torch.bfloat16)


# %% nbgrader={"grade": false, "grade_id": "g-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup"], "title": "fp8 times fp8"}
@triton.jit
def fp8_kernel(
    a_ptr, b_ptr, scale_ptr, y_ptr,
    M, N, K,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Compute a tile of TILE_M x TILE_N of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    tiles_m, tiles_n = tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N)
    # Eight rows of tiles at a time, down the rows first.
    number = tl.program_id(0)
    top = number // (8 * tiles_n) * 8
    high = min(tiles_m - top, 8)
    within = number % (8 * tiles_n)
    m = (top + within % high) * TILE_M + tl.arange(0, TILE_M)
    n = within // high * TILE_N + tl.arange(0, TILE_N)
    k = tl.arange(0, TILE_K)
    a_tile = a_ptr + m[:, None] * K + k[None, :]
    b_tile = b_ptr + n[None, :] * K + k[:, None]
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, K, TILE_K):
        left = K - start
        a = tl.load(a_tile + start, mask=(m < M)[:, None] & (k < left)[None, :], other=0.0)
        b = tl.load(b_tile + start, mask=(n < N)[None, :] & (k < left)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    y = acc * tl.load(scale_ptr)
    out = y_ptr + m[:, None] * N + n[None, :]
    tl.store(out, y.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (n < N)[None, :])
    ### END SOLUTION


def fp8_config(shape, dtype):
    """Return tile sizes, warps and stages for fp8_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("fp8_config")
    return {"TILE_M": 128, "TILE_N": 256, "TILE_K": 128, "num_warps": 8, "num_stages": 3}
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("fp8_kernel: write it, then delete this line")
### END SOLUTION

# %%
if DEVICE == "cpu":
    draw = grading.Draws("try fp8")
    a, b, scale = fp8_inputs(draw, (37, 41, 70), "fp8")
    y = run(launch_fp8, fp8_kernel, {"TILE_M": 16, "TILE_N": 32, "TILE_K": 32}, (37, 41), torch.float32, a, b, scale)
    right = scale * (a.view(FP8).float() @ b.view(FP8).float().T)
    error = float((y - right).abs().max() / right.abs().max())
    said = "right" if error < 1e-5 else "WRONG: look at masks, at the order of the tiles and at the scale"
    print(f"37 x 41 x 70 in the interpreter: the largest error is {error:.1e} of the largest result. This is {said}.")


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "g-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "speed", "needs": ["setup"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def fp8_reference(
    left_ptr, right_ptr, factor_ptr, out_ptr, high, wide, deep,
    TILE_K: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    down, across = tl.cdiv(high, TILE_M), tl.cdiv(wide, TILE_N)
    band = tl.program_id(0) // (8 * across)
    rows = min(down - 8 * band, 8)
    place = tl.program_id(0) % (8 * across)
    row = (8 * band + place % rows) * TILE_M + tl.arange(0, TILE_M)
    column = place // rows * TILE_N + tl.arange(0, TILE_N)
    lane = tl.arange(0, TILE_K)
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for step in range(0, deep, TILE_K):
        there = lane < deep - step
        left_tile = tl.load(
            left_ptr + row[:, None] * deep + (step + lane)[None, :],
            mask=(row < high)[:, None] & there[None, :],
            other=0.0,
        )
        right_tile = tl.load(
            right_ptr + column[None, :] * deep + (step + lane)[:, None],
            mask=(column < wide)[None, :] & there[:, None],
            other=0.0,
        )
        total = tl.dot(left_tile, right_tile, total)
    total *= tl.load(factor_ptr)
    inside = (row < high)[:, None] & (column < wide)[None, :]
    tl.store(out_ptr + row[:, None] * wide + column[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)


def fp8_reference_config(shape, dtype):
    return {"TILE_M": 128, "TILE_N": 256, "TILE_K": 128, "num_warps": 8, "num_stages": 3}


rival = (fp8_reference, fp8_reference_config)
### END HIDDEN TESTS
fp8_race = grading.speed(
    fp8_kernel,
    fp8_config,
    shapes=FP8_RACES,
    inputs=fp8_inputs,
    launch=launch_fp8,
    expected=right_fp8,
    dtype="fp8",
    reference=rival,
    capability=(8, 9),
    op=race_op,
)
scorecard.passed("g", fp8_race.fraction)
fp8_race

# %% [markdown]
# ## h. Two of four
#
# Another way to have fewer bits is to leave numbers out. Tensor cores from the A100 on can skip half of a product if
# the weights are **2:4 sparse**: of every four neighbors in a row, at most two are not zero. The matrix is stored as the
# two values of each group of four and their places, in two bits each.
#
# Write three functions. The first two work with lists of Python numbers:
#
# - `keep_two(group)`: the places of the two numbers of the largest magnitude, as a pair (first, second) with first <
#   second. Of equal magnitudes the earlier one is kept.
# - `pack_24(row)`: the row's length is a multiple of eight. Return a pair of lists: the values that are kept, in order; and
#   the metadata, bytes as ints. The four bits of a group are `TERM_PLACES`. Two groups share a byte, the first of them in
#   its lower half.
# - `bytes_24(n, k, bits)`: bytes of n rows of k weights of `bits` bits, values and metadata; k is a multiple of eight.
#
# <details><summary>Hint 1</summary>
# Sort the places 0 to 3 by magnitude, the largest first. Python's <code>sorted</code> leaves equal ones in their order.
# </details>
# <details><summary>Hint 2</summary>
# <code>sorted(range(4), key=lambda place: -abs(group[place]))[:2]</code>, sorted once more. How many bits of metadata does
# a group of four have, and how many bytes does a row of eight need?
# </details>
# <details><summary>Hint 3</summary>
# The code of a group is <code>TERM_PLACES_BITS</code>, and a byte is <code>code_1 | code_2 &lt;&lt; 4</code>. Bytes: half of
# the values, n k bits / 16, and half a byte for every four weights, n k / 8.
# </details>


# %% nbgrader={"grade": false, "grade_id": "h-sparse", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "h", "role": "solution", "needs": ["setup"], "title": "Two of four"}
def keep_two(group):
    """Return the places of the two numbers of the largest magnitude."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("keep_two")
    return tuple(sorted(sorted(range(4), key=lambda place: -abs(group[place]))[:2]))
    ### END SOLUTION


def pack_24(row):
    """Return the values that are kept and the bytes of metadata."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("pack_24")
    values, codes = [], []
    for start in range(0, len(row), 4):
        first, second = keep_two(row[start : start + 4])
        values += [row[start + first], row[start + second]]
        codes.append(TERM_PLACES_BITS)
    return values, [low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True)]
    ### END SOLUTION


def bytes_24(n, k, bits):
    """Return the bytes of a 2:4 sparse matrix."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("bytes_24")
    return n * k * bits // 16 + n * k // 8
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "h-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "h", "role": "test", "needs": ["setup"]}
def check_24(found, right, what):
    """Compare pairs and lists of plain numbers."""
    if repr(found) != repr(right):
        raise grading.WrongAnswer(f"{what} is {found}, should be {right}")


check_24(keep_two([3, 0, -1, 2]), (0, 3), "keep_two([3, 0, -1, 2])")
check_24(keep_two([1, -5, 4, 0]), (1, 2), "keep_two([1, -5, 4, 0])")
check_24(keep_two([2, -2, 2, 2]), (0, 1), "keep_two([2, -2, 2, 2])")
check_24(keep_two([0, 0, 0, 7]), (0, 3), "keep_two([0, 0, 0, 7])")
row = [3, 0, -1, 2, 1, -5, 4, 0, 2, -2, 2, 2, 0.5, 0.25, -1.5, 8]
check_24(pack_24(row), ([3, 2, -5, 4, 2, -2, -1.5, 8], [TERM_META_1, TERM_META_2]), f"pack_24({row})")
# 2 rows of 16: 16 values are kept, 32 bytes of 16 bits; 8 groups have 32 bits of metadata.
for sizes, right in [((2, 16, 16), 36), ((2, 16, 8), 20), ((5, 8, 4), 15)]:
    grading.assert_equal(bytes_24(*sizes), right, what=f"bytes_24{sizes}")
### BEGIN HIDDEN TESTS
draw = grading.Draws("h")
for _ in range(6):
    row = [draw.integer(-9, 9) for _ in range(8 * draw.integer(1, 4))]
    values, nibbles = [], []
    for start in range(0, len(row), 4):
        group = row[start : start + 4]
        places = []
        while len(places) < 2:
            best = max(abs(number) for place, number in enumerate(group) if place not in places)
            places.append(next(one for one in range(4) if one not in places and abs(group[one]) == best))
        first, second = min(places), max(places)
        if list(keep_two(group)) != [first, second]:
            raise grading.WrongAnswer("keep_two is wrong for another group")
        values += [group[first], group[second]]
        nibbles.append(TERM_PLACES)
    packed = pack_24(row)
    if repr(list(packed[0])) != repr(values):
        raise grading.WrongAnswer("the values of pack_24 are wrong for another row")
    if repr(list(packed[1])) != repr([nibbles[one] + 16 * nibbles[one + 1] for one in range(0, len(nibbles), 2)]):
        raise grading.WrongAnswer("the metadata of pack_24 are wrong for another row")
n, k = draw.integer(1, 99), 8 * draw.integer(1, 99)
for bits in (16, 8, 4):
    grading.assert_equal(bytes_24(n, k, bits), n * (k // 4) * (2 * bits + 4) // 8, what="bytes_24")
### END HIDDEN TESTS
scorecard.passed("h")

# %% [markdown]
# **Why not twice as fast?** In decode the bytes decide, and more than half of them are left. In prefill the arithmetic
# decides: half of it is skipped, and the sparse peak in the data sheet is twice the dense one. The next cell prints both
# bounds, and measures on your GPU, if you have one, what is left of them.

# %%
for batch in (1, 4096):
    dense = product_time(batch, 8192, 8192, 16, 0, bandwidth, peak_16)
    moved = 2 * batch * 8192 + bytes_24(8192, 8192, 16) + 2 * batch * 8192
    sparse = max(moved / bandwidth, product_flops(batch, 8192, 8192) / (2 * peak_16))
    print(f"2:4 at batch {batch}: at most {dense / sparse:.2f} times as fast as dense, by an H200's data sheet")
sparse_gains = {}
if DEVICE == "cuda" and torch.cuda.get_device_capability() >= (8, 0):
    from mlsys.measure.timing import time_pair

    for side in (4096, 8192):
        x = torch.randn(side, side, device=DEVICE, dtype=torch.float16)
        weight = torch.tensor([0, 1, 0, 1], device=DEVICE).tile(side, side // 4).half()
        sparse = torch.sparse.to_sparse_semi_structured(weight)
        sparse_gains[side] = time_pair(lambda: sparse @ x, lambda: weight @ x, on_gpu=True).ratio  # noqa: B023
        print(f"2:4, {side} x {side} times {side} x {side}: {sparse_gains[side]:.2f} times as fast as dense, measured")
else:
    print("No GPU with sparse tensor cores here: nothing is measured.")

# %% [markdown]
# ## Challenge: unpack by bit tricks
#
# To turn an int into a float16, a GPU has a conversion instruction, which is several times slower than an addition. For
# weights of 4 bits there is a way without it. The float16 number 1024 has the bits 0x6400. Its mantissa has ten bits, and
# at 1024 the last of them counts 1. So 0x6400 with a nibble in its last four bits *is* the number 1024 + nibble.
# Subtract 1032, and you have the weight. Every step is exact.
#
# Write `unpack_kernel`, which turns words of question b into float16 weights. It may use shifts, `&`, `|`, a **bitcast** and a
# subtraction, but no conversion of an int to a number: `.to(tl.float16, bitcast=True)` takes the bits of an int16 block for
# float16 numbers. `.to(tl.int16)` of an int32 block only drops the upper bits, and is allowed. The tests compare numbers,
# so they cannot see a conversion; whether you did without one is for you to say.
#
# - Program i unpacks words i BLOCK ... (i + 1) BLOCK - 1. There are `count` words, as int32. BLOCK is a power of two.
# - Number j of `unpack(word)`, for word w, goes to y[8 w + j]. y is float16 and contiguous.
# - One shift and one mask can serve two weights: `(words >> 4 * i) & 0x000F000F` has one in each half of 16 bits.
#
# <details><summary>Hint 1</summary>
# After the mask, put <code>0x64006400</code> in by <code>|</code>: both halves are float16 numbers. How do you get each
# half as an int16?
# </details>
# <details><summary>Hint 2</summary>
# The lower half is <code>pair.to(tl.int16)</code>, the upper one <code>(pair &gt;&gt; 16).to(tl.int16)</code>. Which weights
# are they? In the loop <code>for i in tl.static_range(4)</code>, i is the same for all words.
# </details>
# <details><summary>Hint 3</summary>
# Nibble i and nibble i + 4 hold the weights number ORDER[i] and ORDER[i + 4] of question b. In this lab's order these
# are TERM_PAIRS_SAID. Store each with <code>tl.store(y_ptr + 8 * w + number, half.to(tl.float16, bitcast=True) - 1032.0,
# mask=w &lt; count)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_unpack(kernel, constants, y, words):
    """Launch one program per BLOCK words."""
    if words.dim() != 1:
        raise ValueError(f"words has shape {tuple(words.shape)}: give one dimension")
    refuse("words", words, words.shape, [torch.int32], contiguous=True)
    refuse("y", y, (8 * len(words),), [torch.float16], contiguous=True)
    refuse_tile(constants, "BLOCK", 1)
    kernel[(triton.cdiv(len(words), constants["BLOCK"]),)](words, y, len(words), **constants)


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: unpack by bit tricks"}
@triton.jit
def unpack_kernel(words_ptr, y_ptr, count, BLOCK: tl.constexpr):
    """Unpack BLOCK words per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    w = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    words = tl.load(words_ptr + w, mask=w < count, other=0)
    for i in tl.static_range(4):
        pair = ((words >> (4 * i)) & 0x000F000F) | 0x64006400
        lower = pair.to(tl.int16).to(tl.float16, bitcast=True) - 1032.0
        upper = (pair >> 16).to(tl.int16).to(tl.float16, bitcast=True) - 1032.0
        tl.store(y_ptr + 8 * w + TERM_LOWER_AT, lower, mask=w < count)
        tl.store(y_ptr + 8 * w + TERM_UPPER_AT, upper, mask=w < count)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("unpack_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
draw = grading.Draws("challenge", DEVICE)


def check_unpack(digits, what, block):
    """Compare unpack_kernel with words that are written digit by digit."""
    weights = [["0123456789abcdef".index(digit) - 8 for digit in word[::-1]] for word in digits]
    in_order = [[word[[TERM_ORDER].index(one)] for one in range(8)] for word in weights]
    numbers = [int(word, 16) for word in digits]
    words = torch.tensor([one - 2**32 if one >= 2**31 else one for one in numbers], dtype=torch.int32, device=DEVICE)
    right = torch.tensor(in_order, device=DEVICE).flatten().half()
    what = f"unpack_kernel, {what}: {len(digits)} words, BLOCK {block}"
    grading.check_kernel(unpack_kernel, {"BLOCK": block}, [words], right, launch=launch_unpack, what=what)


check_unpack(["01234567"], "one word", 1)
check_unpack(["89abcdef", "00000000", "ffffffff", "80000008"], "the highest bit is set", 4)
check_unpack(["76543210", "fedcba98", "02468ace"], "words ragged", 2)
### BEGIN HIDDEN TESTS
for block in (8, 32):
    digits = ["".join("0123456789abcdef"[draw.integer(0, 15)] for _ in range(8)) for _ in range(draw.ragged(9, 70))]
    check_unpack(digits, "other words", block)
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# A rule of thumb is a prediction. Here are four cases in which a count gives another number.


# %%
def show_gap(case, what, predicted, counted):
    print(
        f"case {case}, {what}: predicted {predicted:,.4g}, counted {counted:,.4g}, {counted / predicted:.3f} times as much"
    )


TERM_GAPS

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"scales"`: the scales of the groups are bytes too.
# - `"places"`: it must be stored which numbers were kept.
# - `"outlier"`: one large number makes the steps coarse for all that share its scale.
# - `"tile"`: tensor cores multiply whole tiles, and most rows of this one are empty.
# - `"activations"`: activations and results move as well, not only weights.
# - `"overflow"`: a sum leaves the range of its format.
#
# <details><summary>Hint 1</summary>
# Two of the six causes do not fit any case: no case counts activations, and no case adds anything up in a narrow format.
# </details>
# <details><summary>Hint 2</summary>
# Cases TERM_CASE_SCALES and TERM_CASE_PLACES have the same factor. In which of them do all numbers stay?
# </details>
# <details><summary>Hint 3</summary>
# Case TERM_CASE_SCALES: 16 bits for 32 weights are half a bit each, 4.5 / 4 = 1.125. Case TERM_CASE_PLACES: four bits for
# two values of 16, 36 / 32 = 1.125. Case TERM_CASE_TILE: 16 rows for one. Case TERM_CASE_OUTLIER: steps of 100 / 127.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and count differ"}
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
        raise NotImplementedError(f"cause_{number} is still None: choose one of the six")
    choices = ("scales", "places", "outlier", "tile", "activations", "overflow")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("TERM_CAUSE_1", "TERM_CAUSE_2", "TERM_CAUSE_3", "TERM_CAUSE_4")
for number, (said, true) in enumerate(zip((cause_1, cause_2, cause_3, cause_4), key, strict=True), start=1):
    assert said == true, f"cause_{number}: {said!r} does not make this gap; do the sums of the hints"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted and measured:

# %%
weights = torch.randn(256, 4096, generator=torch.Generator().manual_seed(2))
codes, scales = quantize_groups(weights, 128)
rounded = (codes.float().reshape(256, 32, 128) * scales[:, :, None]).reshape(256, 4096)
grading.compare(
    predictions,
    decode_gain=product_bytes(1, 8192, 8192, 16, 0) / product_bytes(1, 8192, 8192, 4, 128),
    int4_rows=last_batch(4, bandwidth, peak_16),
    int4_error=relative_error(rounded, weights),
    sparse_share=bytes_24(8192, 8192, 16) / weight_bytes(8192, 8192, 16, 0),
    int4_speed=measured.get(1),
)

# %% [markdown]
# **Error and speed in one picture.** Each format has an error, which your functions of question c measure on a product
# with normal numbers, and two speeds relative to 16 bits, in decode at batch 1 and in prefill at batch 4,096. The marks
# are the roofline's predictions for an H200, by your own counts. A cross is what your int4 kernel reached on your GPU.
# Formats at the lower right are better. No format is best at both ends.

# %%
from mlsys import viz

x = torch.randn(64, 4096, generator=torch.Generator().manual_seed(3))
exact = x.double() @ weights.double().T


def by_rows(matrix):
    """Return a matrix as its int8 codes give it back."""
    codes, scale = quantize_rows(matrix)
    return codes.double() * scale.double()[:, None]


def by_groups(matrix, group):
    """Return a matrix as its int4 codes give it back."""
    codes, scale = quantize_groups(matrix, group)
    return (codes.double().reshape(*scale.shape, group) * scale.double()[:, :, None]).reshape(matrix.shape)


pruned = weights.reshape(-1, 4)
kept = pruned.abs().argsort(1, descending=True)[:, :2]
pruned = torch.zeros_like(pruned).scatter(1, kept, pruned.gather(1, kept)).reshape(weights.shape)
products = {  # the product, and the bits, group and peak of the format
    "int8, both": (by_rows(x) @ by_rows(weights).T, (8, 0, peak_8)),
    "fp8, both": (x.to(FP8).double() @ weights.to(FP8).double().T, (8, 0, peak_8)),
    "int8 weights": (x.double() @ by_rows(weights).T, (8, 0, peak_16)),
    "int4 weights, groups of 128": (x.double() @ by_groups(weights, 128).T, (4, 128, peak_16)),
    "int4 weights, groups of 32": (x.double() @ by_groups(weights, 32).T, (4, 32, peak_16)),
    "2:4, not trained further": (x.double() @ pruned.double().T, (9, 0, 2 * peak_16)),
}  # 2:4 has 9 bits per weight: half of 16, and half of two places of 2 bits
fig, ax, COLORS, plt = viz.setup_plot(figsize=(7, 4.5))
shades = [COLORS[name] for name in ("BlueLine", "GreenLine", "OrangeLine", "RedLine", "VioletLine", "BrownLine")]
for (name, (product, (bits, group, peak))), color in zip(products.items(), shades, strict=True):
    error = relative_error(product, exact)
    speeds = {
        batch: product_time(batch, 8192, 8192, 16, 0, bandwidth, peak_16)
        / product_time(batch, 8192, 8192, bits, group, bandwidth, peak)
        for batch in (1, 4096)
    }
    ax.plot(list(speeds.values()), [error, error], color=color, linewidth=1)
    ax.plot(speeds[1], error, "o", color=color, label=name, markersize=11, markerfacecolor="none")
    ax.plot(speeds[4096], error, "s", color=color)
    print(f"{name:28} error {error:.4f}, decode {speeds[1]:.2f} times as fast, prefill {speeds[4096]:.2f} times")
    if name.endswith("of 128") and measured:
        ax.plot(measured[1], error, "x", color=color, markersize=10)
ax.set_yscale("log")
ax.set_xlabel("times as fast as 16 bits; circles: decode, squares: prefill")
ax.set_ylabel("relative error of the product")
ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=2, fontsize=9)

# %% [markdown]
# The fastest kernels that this course has for narrow numbers go further in three ways. The TMA (tensor memory
# accelerator) of newer GPUs brings their tiles. The weights are packed so that each thread finds what its tensor core
# needs, and are unpacked as in the challenge. At small batches several programs share one tile, so that enough bytes
# are on their way.
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
