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
#     lab: convolution
#     version: "1"
#     withheld: [mlsys.ops]
# ---

# %% mlsys={"role": "variants"}
from mlsys.course.term import drawn

# Question a: the third of three steps, and the numbers that it adds to those of convolution and bias.
THIRD = drawn("relu", "sum", "factor")
TERM_THIRD_SAID, TERM_THIRD, TERM_EXTRA, TERM_FUSED_EXTRA, TERM_THIRD_NUMBERS, TERM_FUSED_NUMBERS = {
    "relu": ("applies ReLU, max(y, 0)", "ReLU", "4 * result + k", "k", "y + y", "k"),
    "sum": (
        "adds another result of the same shape",
        "another result that is added",
        "5 * result + k",
        "result + k",
        "y + y + y",
        "k + y",
    ),
    "factor": (
        "multiplies with a factor, which has a number per filter",
        "a factor per filter",
        "4 * result + 2 * k",
        "2 * k",
        "y + k + y",
        "k + k",
    ),
}[THIRD]
TERM_SEPARATE_SAID, TERM_FUSED_SAID = {
    "relu": ("5 results + k", "result + k"),
    "sum": ("6 results + k", "2 results + k"),
    "factor": ("5 results + 2 k", "result + 2 k"),
}[THIRD]
counts = {"result": 2 * 25 * 4, "k": 4}  # of the layer in the visible test
TERM_SEPARATE_BYTES, TERM_FUSED_BYTES = (2 * (458 + eval(extra, counts)) for extra in (TERM_EXTRA, TERM_FUSED_EXTRA))

# Question b: the order in which j counts rows r, columns s and channels c of a filter, the slowest first.
ORDER = drawn("rsc", "crs", "src")
TERM_J, TERM_J_FAST, TERM_FAST, TERM_FAST_SIZE = {
    "rsc": ("(r S + s) C + c", "channels", "c", "C"),
    "crs": ("(c R + r) S + s", "columns of the filter", "s", "S"),
    "src": ("(s R + r) C + c", "channels", "c", "C"),
}[ORDER]
TERM_J_ROW, TERM_J_COLUMN, TERM_J_CHANNEL = {
    "rsc": ("j // (c * taps)", "j // c % taps", "j % c"),
    "crs": ("j // taps % taps", "j % taps", "j // taps**2"),
    "src": ("j // c % taps", "j // (c * taps)", "j % c"),
}[ORDER]
TERM_J_AXES = ", ".join(str({"r": 2, "s": 3, "c": 1}[one]) for one in ORDER)


def place(r, s, c, sizes=(("r", 3), ("s", 3), ("c", 2))):
    """Number of an element of a window with 3 x 3 taps and 2 channels."""
    j = 0
    for one in ORDER:
        j = j * dict(sizes)[one] + {"r": r, "s": s, "c": c}[one]
    return j


TERM_J_OF_CHANNEL_1, TERM_J_OF_COLUMN_1, TERM_J_OF_ROW_1 = place(0, 0, 1), place(0, 1, 0), place(1, 0, 0)
TERM_J_OF_MIDDLE, TERM_J_OF_MIDDLE_1 = place(1, 1, 0), place(1, 1, 1)

# Questions c to g and the challenge: filters that are read backwards, along their rows, their columns, both or neither.
BACK_R, BACK_S = drawn((False, False), (True, True), (True, False), (False, True))
TERM_TAP_R, TERM_TAP_S = "(R - 1 - r)" if BACK_R else "r", "(S - 1 - s)" if BACK_S else "s"
TERM_TAP_I, TERM_TAP_TAP = TERM_TAP_R.replace("r)", "i)") if BACK_R else "i", "(S - 1 - tap)" if BACK_S else "tap"
TERM_TAP_R_SAID, TERM_TAP_S_SAID = "R - 1 - r" if BACK_R else "r", "S - 1 - s" if BACK_S else "s"
axes = ", ".join(axis for axis, back in (("1", BACK_R), ("2", BACK_S)) if back)
TERM_FLIPPED = f"f.flip({axes})" if axes else "f"
TERM_STEP, TERM_STEP_SAID = "start", "The numbers of a filter follow each other in the order of the loop."
TERM_REFERENCE_STEP = "first"
if axes:
    TERM_STEP = f"(({TERM_TAP_R} * S + {TERM_TAP_S}) * C + c)"
    TERM_STEP_SAID = (
        f"The numbers of a filter for this tap begin at <code>({TERM_TAP_R} * S + {TERM_TAP_S}) * C</code>."
    )
    TERM_REFERENCE_STEP = (
        f"(({TERM_TAP_I} * S + {TERM_TAP_S.replace('s)', 'j)') if BACK_S else 'j'}) * depth + channel)"
    )
named = " and ".join(name for name, back in (("rows", BACK_R), ("columns", BACK_S)) if back)
TERM_BACKWARDS = f" Mind the filter: its {named} are read backwards." if axes else ""

# Gap: the order of the cases.
GAPS = {
    "overlap": """# NTH. 3 x 3 taps on 56 x 56 pixels: every window fetches its pixels. Counted: pixels that come from memory to the
#    chip, where a cache of 200 pixels keeps what was used last.
kept, fetched = {}, 0
for pixel in range(56 * 56):
    for tap in range(9):
        row, col = pixel // 56 - 1 + tap // 3, pixel % 56 - 1 + tap % 3
        if 0 <= row < 56 and 0 <= col < 56:
            fetched += (row, col) not in kept
            kept.pop((row, col), None)
            kept[row, col] = True
            if len(kept) > 200:
                del kept[next(iter(kept))]
show_gap(NTH, "pixels fetched", 9 * 56 * 56, fetched)""",
    "ragged": """# NTH. One image of 7 x 7, 512 channels to 512: multiply-adds. Counted: what tiles of 64 pixels x 64 filters multiply.
show_gap(NTH, "multiply-adds", 7 * 7 * 512 * 9 * 512, 64 * 512 * 9 * 512)""",
    "border": """# NTH. One image of 7 x 7, 512 channels to 512. Counted: multiply-adds whose pixel is in the image.
real = sum(0 <= p + r - 1 < 7 for p in range(7) for r in range(3))
show_gap(NTH, "multiply-adds", 7 * 7 * 512 * 9 * 512, real**2 * 512 * 512)""",
    "narrow": """# NTH. 64 pixels, 3 x 3 taps, 128 channels and 128 filters in 32 groups: a 32nd of the multiply-adds. Counted: what
#    tiles of 64 pixels x 16 filters and steps of 16 multiply, if each group has tiles of its own.
show_gap(NTH, "multiply-adds", 64 * 128 * 9 * 128 // 32, 32 * 64 * 16 * 16 * triton.cdiv(9 * 4, 16))""",
}
TERM_CAUSE_1, TERM_CAUSE_2, TERM_CAUSE_3, TERM_CAUSE_4 = causes = drawn(
    ("overlap", "ragged", "border", "narrow"),
    ("border", "narrow", "overlap", "ragged"),
    ("narrow", "overlap", "ragged", "border"),
    ("ragged", "border", "narrow", "overlap"),
)
TERM_GAPS = "\n".join(GAPS[cause].replace("NTH", str(number)) for number, cause in enumerate(causes, start=1))
TERM_CASE_OVERLAP, TERM_CASE_RAGGED, TERM_CASE_BORDER, TERM_CASE_NARROW = (causes.index(cause) + 1 for cause in GAPS)

# %% [markdown]
# # Convolution as a matrix product
#
# A convolution slides filters over an image. At every position it multiplies a small window of the image with each
# filter and adds up the products. Nearly all the work of networks such as ResNet is in convolutions, and a GPU is
# fastest at one thing, the product of matrices. So the windows become the rows of a matrix, and the filters the columns
# of another.
#
# The matrix of windows is several times as large as the image, because each pixel is in many windows. A good kernel
# never stores it. It computes, for every element of the matrix, where that element is in the image, and loads it from
# there. This is called **implicit GEMM** (general matrix multiplication).
#
# **The question of this lab: how does a convolution become a matrix product without a copy of its windows, and what
# does it take to write that kernel so that it is right for every padding, stride and layout, and fast?**
#
# You will predict, count, write, measure, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with the truth at the end |
# | a | count bytes with and without the copy, and with fusion | six formulas |
# | b | find an element of the window matrix in the image | a function in Python |
# | c | write the convolution in Triton | a kernel for every padding, stride and layout |
# | d | add groups, bias and ReLU | a kernel that does three steps in one |
# | e | take the division out of the loop | a kernel for images with the channels last |
# | f (GPU) | race it on layers of ResNet-50 | a share of a reference kernel's speed |
# | g | write tests for a convolution | a share of twelve wrong kernels |
# | challenge | a convolution with one filter per channel | a kernel without a matrix product |
# | gap | explain why prediction and count differ | four causes |
#
# Plan for three to four hours. You need Python, and you should have written a tiled matrix product in Triton, as in the
# lab on tiling. Without a GPU you can finish everything except the question marked (GPU). Hints cost no points: each
# question has three, from a nudge to nearly the whole answer.
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
    {"a": 10, "b": 10, "c": 20, "d": 15, "e": 15, "f": 5, "f-why": 5, "g": 5, "challenge": 10, "gap": 5},
    gpu=["f"],
    read=["f-why"],
)

# %% [markdown]
# ## Predictions
#
# Before you count anything, note what you expect; a guess will do. You are not graded on how close you come. The point
# is to have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the
# time. So leave the cell alone once you have gone on.
#
# 1. `windows_grow`: filters of 3 x 3 **taps** slide over an image of 56 x 56 pixels, one pixel at a time, with a border
#    of zeros so that the result has the same size. How many *times* as many numbers as the image does the matrix of all
#    windows have?
# 2. `zero_share`: the same filters on an image of 7 x 7 pixels. What share of all multiplications has a zero of the
#    border as a factor? Give a number between 0 and 1.
# 3. `fused_gain`: a convolution of 1 x 1 taps turns 64 channels into 256. Then come a bias and TERM_THIRD. As three
#    kernels or as one: how many *times* fewer bytes does the single kernel move?
# 4. `pieces`: memory delivers pieces of 32 bytes. A program loads 32 channels of one pixel, in numbers of 2 bytes. If
#    the channels of a pixel are neighbors in memory, that is 2 pieces. How many is it if each channel is stored as an
#    image of its own?
# 5. `share_of_library`: what share of the speed of NVIDIA's library will your kernel reach on a layer of ResNet-50 with
#    3 x 3 taps, bias and ReLU? Give a number such as 0.1, 0.5 or 1. (Question f measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: windows_grow = None
#: zero_share = None
#: fused_gain = None
#: pieces = None
#: share_of_library = None
windows_grow = 9
zero_share = 0.1
fused_gain = 3
pieces = 32
share_of_library = 0.5
### END SOLUTION
predictions = grading.seal(
    windows_grow=windows_grow,
    zero_share=zero_share,
    fused_gain=fused_gain,
    pieces=pieces,
    share_of_library=share_of_library,
)

# %% [markdown]
# ## What is computed
#
# There are n images x, each with height h, width w and c **channels** (three for a color photograph, hundreds inside a
# network). There are k filters f, each with r x s taps for every channel. The result y has one channel per filter. With
# a **stride** of t and a **padding** of z rows and columns of zeros on every side,
#
# ```
# y[n, p, q, k]  =  sum over r, s, c  of   x[n, p t + r - z, q t + s - z, c]  *  f[k, TERM_TAP_R_SAID, TERM_TAP_S_SAID, c]
# ```
#
# where x counts as zero outside the image.TERM_BACKWARDS In words: the window of result pixel (p, q) begins at row
# p t - z and column q t - z of the image.
#
# This lab writes the indices of a tensor in the order image, row, column, channel. In memory, the channels of a pixel
# may be neighbors, which is called **channels last** or NHWC; or each channel may be an image of its own, **channels
# first** or NCHW. That is only a matter of strides, as the next cell shows. (PyTorch writes the indices in the order
# image, channel, row, column, whatever the memory looks like.)

# %%
last = torch.zeros(2, 7, 5, 4)  # 2 images of 7 x 5 pixels and 4 channels
first = torch.zeros(2, 4, 7, 5).permute(0, 2, 3, 1)  # the same shape, channels first in memory
print("channels last: ", tuple(last.shape), last.stride())
print("channels first:", tuple(first.shape), first.stride())

# %% [markdown]
# ## a. Count
#
# The images are square, with `size` rows and columns, and so are the filters, with `taps` rows and columns. Every number
# has `itemsize` bytes. Return plain ints:
#
# - `output_size(size, taps, stride, padding)`: rows (and columns) of the result. Only windows that are wholly inside the
#   padded image count.
# - `multiply_adds(n, size, c, k, taps, stride, padding)`: all of them, those with zeros of the border included.
# - `copied_bytes(...)`: a first kernel reads the images and writes the matrix of all windows, which has a row per result
#   pixel and a column per tap and channel. A second one reads that matrix and the filters and writes the result. Count
#   the bytes of both.
# - `implicit_bytes(...)`: one kernel; images and filters are read once, and the result is written once.
# - `separate_bytes(...)`: that kernel, then one that adds a bias, which has a number per filter, and then one that
#   TERM_THIRD_SAID. Each kernel reads all its inputs and writes all its results.
# - `fused_bytes(...)`: all three steps in one kernel.
#
# Do the counting yourself: `mlsys.ops` contains such counts, so it is removed from the package when the lab is graded,
# and an answer that calls it ends in an error.
#
# <details><summary>Hint 1</summary>
# How many places can a window of 3 have on 5 pixels? And if it may only be at every second place? Draw it.
# </details>
# <details><summary>Hint 2</summary>
# The padded image has size + 2 padding rows. The last window begins at row size + 2 padding - taps or before. For the
# bytes, count numbers of each tensor: images n size size c, windows n p p taps taps c, filters k taps taps c, result n p
# p k, where p is the output size.
# </details>
# <details><summary>Hint 3</summary>
# <code>(size + 2 * padding - taps) // stride + 1</code>. Copied: images + 2 windows + filters + result. Separate:
# images + filters + TERM_SEPARATE_SAID. Fused: images + filters + TERM_FUSED_SAID.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-counts", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count"}
def output_size(size, taps, stride, padding):
    """Return the rows of the result."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("output_size")
    return (size + 2 * padding - taps) // stride + 1
    ### END SOLUTION


def multiply_adds(n, size, c, k, taps, stride, padding):
    """Return the multiply-adds of the convolution."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("multiply_adds")
    return n * output_size(size, taps, stride, padding) ** 2 * k * taps**2 * c
    ### END SOLUTION


def copied_bytes(n, size, c, k, taps, stride, padding, itemsize):
    """Return the bytes with a copy of all windows."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("copied_bytes")
    windows = n * output_size(size, taps, stride, padding) ** 2 * taps**2 * c
    return implicit_bytes(n, size, c, k, taps, stride, padding, itemsize) + 2 * windows * itemsize
    ### END SOLUTION


def implicit_bytes(n, size, c, k, taps, stride, padding, itemsize):
    """Return the bytes without that copy."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("implicit_bytes")
    result = n * output_size(size, taps, stride, padding) ** 2 * k
    return (n * size**2 * c + k * taps**2 * c + result) * itemsize
    ### END SOLUTION


def separate_bytes(n, size, c, k, taps, stride, padding, itemsize):
    """Return the bytes of the three steps as three kernels."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("separate_bytes")
    result = n * output_size(size, taps, stride, padding) ** 2 * k
    return implicit_bytes(n, size, c, k, taps, stride, padding, itemsize) + (TERM_EXTRA) * itemsize
    ### END SOLUTION


def fused_bytes(n, size, c, k, taps, stride, padding, itemsize):
    """Return the bytes of the three steps as one kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("fused_bytes")
    result = n * output_size(size, taps, stride, padding) ** 2 * k
    return implicit_bytes(n, size, c, k, taps, stride, padding, itemsize) + (TERM_FUSED_EXTRA) * itemsize
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
# Windows of 3 on 5 pixels: at 0, 1, 2; with a border of one, 5 places; every second of those, 3; on 6 pixels too.
for sizes, right in [((5, 3, 1, 0), 3), ((5, 3, 1, 1), 5), ((5, 3, 2, 1), 3), ((6, 3, 2, 1), 3), ((4, 1, 3, 0), 2)]:
    grading.assert_equal(output_size(*sizes), right, what=f"output_size{sizes}")
# 2 images of 5 x 5 with 3 channels: 75 numbers each. 4 filters of 3 x 3 taps: 108 numbers. The result: 2 x 25 x 4 = 200.
layer = (2, 5, 3, 4, 3, 1, 1)
grading.assert_equal(multiply_adds(*layer), 5400, what=f"multiply_adds{layer}: 200 numbers, 27 products each")
grading.assert_equal(copied_bytes(*layer, 2), 6316, what=f"copied_bytes{(*layer, 2)}: windows of 50 x 27 numbers")
grading.assert_equal(implicit_bytes(*layer, 2), 916, what=f"implicit_bytes{(*layer, 2)}: 150 + 108 + 200 numbers")
grading.assert_equal(
    separate_bytes(*layer, 2), TERM_SEPARATE_BYTES, what=f"separate_bytes{(*layer, 2)}: two more kernels"
)
grading.assert_equal(fused_bytes(*layer, 2), TERM_FUSED_BYTES, what=f"fused_bytes{(*layer, 2)}: all in one kernel")
layer = (1, 6, 2, 3, 3, 2, 1)
grading.assert_equal(multiply_adds(*layer), 486, what=f"multiply_adds{layer}: 27 numbers, 18 products each")
grading.assert_equal(implicit_bytes(*layer, 4), 612, what=f"implicit_bytes{(*layer, 4)}: a stride of 2")
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for itemsize in (1, 2, 4):
    taps, stride, padding = draw.integer(1, 5), draw.integer(1, 4), draw.integer(0, 3)
    size, c, k = draw.integer(5, 40), draw.integer(1, 70), draw.integer(1, 70)
    places = len([row for row in range(-padding, size + padding) if row + taps <= size + padding][::stride])
    pixels = sum(places for _ in range(3 * places))  # 3 images
    x, f, y, windows = 3 * size * size * c, k * taps * taps * c, pixels * k, pixels * taps * taps * c
    layer = (3, size, c, k, taps, stride, padding)
    grading.assert_equal(output_size(size, taps, stride, padding), places, what=f"output_size for {layer}")
    grading.assert_equal(multiply_adds(*layer), windows * k, what=f"multiply_adds{layer}")
    for count, numbers in [
        (copied_bytes, (x + windows) + (windows + f + y)),
        (implicit_bytes, x + f + y),
        (separate_bytes, (x + f + y) + (y + k + y) + (TERM_THIRD_NUMBERS)),
        (fused_bytes, x + f + y + TERM_FUSED_NUMBERS),
    ]:
        grading.assert_equal(count(*layer, itemsize), numbers * itemsize, what=f"a count of bytes for {layer}")
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. Find an element of the window matrix
#
# As a matrix product, the convolution has
#
# - one row per result pixel: pixel m of all, where m = (n P + p) Q + q, and P x Q is the size of a result;
# - one column per filter;
# - and a sum over j, which counts taps and channels: j = TERM_J, with the TERM_J_FAST running fastest.
#
# The matrix of windows, A, has an element for each m and j. It is never stored, so you must be able to say where the
# element comes from. Write `window_element(m, j, size, c, taps, stride, padding)` for square images and filters. It
# returns four ints (n, row, column, channel), the place in the images; or `None` if that place is in the border of
# zeros.
#
# <details><summary>Hint 1</summary>
# Undo the two formulas. If j = TERM_J with TERM_FAST below TERM_FAST_SIZE, then TERM_FAST is what remains after a
# division of j by TERM_FAST_SIZE. What is the quotient?
# </details>
# <details><summary>Hint 2</summary>
# <code>channel = TERM_J_CHANNEL</code>, <code>s = TERM_J_COLUMN</code>, <code>r = TERM_J_ROW</code>. The same with m, Q and
# P. The window of pixel (p, q) begins at row p stride - padding.
# </details>
# <details><summary>Hint 3</summary>
# <code>row = m // places % places * stride - padding + r</code>, where <code>places</code> is the output size; the same
# with <code>m % places</code> and s for the column, and the image is <code>m // (places * places)</code>. A row below 0
# or from <code>size</code> on is in the border.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-element", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup", "a"], "title": "Find an element of the window matrix"}
def window_element(m, j, size, c, taps, stride, padding):
    """Return (n, row, column, channel) of element (m, j) of the window matrix, or None in the border."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("window_element")
    places = (size + 2 * padding - taps) // stride + 1
    row = m // places % places * stride - padding + TERM_J_ROW
    column = m % places * stride - padding + TERM_J_COLUMN
    inside = 0 <= row < size and 0 <= column < size
    return (m // places**2, row, column, TERM_J_CHANNEL) if inside else None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup", "a"]}
def check_element(m, j, sizes, right):
    """Compare window_element(m, j, *sizes) with the right place."""
    found = window_element(m, j, *sizes)
    found = tuple(found) if isinstance(found, list) else found
    if found != right:
        should = "" if right == "hidden" else f", should be {right}"
        raise grading.WrongAnswer(f"window_element{(m, j, *sizes)} is {found}{should}")


# 5 x 5 pixels, 2 channels, 3 x 3 taps, stride 1, no border: results of 3 x 3, windows of 18 numbers.
check_element(0, 0, (5, 2, 3, 1, 0), (0, 0, 0, 0))
check_element(0, TERM_J_OF_CHANNEL_1, (5, 2, 3, 1, 0), (0, 0, 0, 1))  # the next channel
check_element(0, TERM_J_OF_COLUMN_1, (5, 2, 3, 1, 0), (0, 0, 1, 0))  # the next column of the filter
check_element(0, TERM_J_OF_ROW_1, (5, 2, 3, 1, 0), (0, 1, 0, 0))  # its next row
check_element(4, 17, (5, 2, 3, 1, 0), (0, 3, 3, 1))  # pixel (1, 1), the last tap
check_element(9, 0, (5, 2, 3, 1, 0), (1, 0, 0, 0))  # the second image
# With a border of 1, the first window begins outside.
check_element(0, 0, (5, 2, 3, 1, 1), None)
check_element(0, TERM_J_OF_MIDDLE, (5, 2, 3, 1, 1), (0, 0, 0, 0))
check_element(24, 17, (5, 2, 3, 1, 1), None)
# A stride of 2: results of 3 x 3.
check_element(4, TERM_J_OF_MIDDLE, (5, 2, 3, 2, 1), (0, 2, 2, 0))
check_element(5, TERM_J_OF_MIDDLE_1, (5, 2, 3, 2, 1), (0, 2, 4, 1))
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for _ in range(4):
    size, channels, taps = draw.integer(5, 9), draw.integer(1, 5), draw.integer(1, 4)
    stride, padding = draw.integer(1, 3), draw.integer(0, 2)
    # Images of their own places, counted from 1, unfolded by the library; zeros are the border.
    places = torch.arange(1.0, 1 + 3 * size * size * channels).reshape(3, size, size, channels)
    unfolded = torch.nn.functional.unfold(places.permute(0, 3, 1, 2), taps, padding=padding, stride=stride)
    unfolded = unfolded.reshape(3, channels, taps, taps, -1).permute(0, 4, TERM_J_AXES).flatten(0, 1).flatten(1)
    for _ in range(6):
        m, j = draw.integer(0, unfolded.shape[0] - 1), draw.integer(0, unfolded.shape[1] - 1)
        place = int(unfolded[m, j]) - 1
        there = [int(index) for index in torch.unravel_index(torch.tensor(place), places.shape)] if place >= 0 else None
        found = window_element(m, j, size, channels, taps, stride, padding)
        if (list(found) if isinstance(found, (list, tuple)) else found) != there:
            raise grading.WrongAnswer(f"window_element is wrong for {(size, channels, taps, stride, padding)}")
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. The convolution in Triton
#
# Now write the kernel. It is a tiled matrix product whose left operand is found as in question b. A tile of the result
# is TILE_M pixels times TILE_N filters, and each step of the loop takes the next TILE_K values of j.
#
# The **contract**:
#
# - The grid has two dimensions. Program (i, l), that is `tl.program_id(0)` and `tl.program_id(1)`, computes pixels i
#   TILE_M ... (i + 1) TILE_M - 1 and filters l TILE_N ... (l + 1) TILE_N - 1.
# - x is (N, H, W, C), f is (K, R, S, C) and y is (N, P, Q, K). Each may have any strides. R, S, STRIDE and PADDING are
#   constants.
# - The kernel is right for all sizes from 1 up, any stride, any padding, and tiles that do not divide anything. The sides
#   of tiles are powers of two, 16 or more.
# - All three have the same dtype, float32 or float16. **The sum is always kept in float32.** Write `tl.dot(a, b, acc,
#   input_precision="ieee")`; without that option a GPU may round float32 inputs to 10 bits, which the interpreter does
#   not show.
#
# The order of j is yours to choose in a kernel.TERM_BACKWARDS On blocks, `//` and `%` work as they do on numbers, as long
# as nothing is negative. So take the quotients of m and j, which are never negative, before you subtract the padding.
#
# The lab's own functions launch your kernels, so you write only kernels. They refuse what a kernel does not take, with
# the name of what is wrong. Use `run` to try things out: `run(launch_conv, conv_kernel, {"STRIDE": 1, "PADDING": 0} |
# TILES, x, f)` returns y, with NaN where nothing was written.


# %% nbgrader={"grade": false, "grade_id": "launches", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def refuse_inputs(x, f, stride, padding, groups=1):
    """Raise an error if the tensors and numbers do not make a convolution."""
    for name, value, least in (("STRIDE", stride, 1), ("PADDING", padding, 0), ("GROUPS", groups, 1)):
        if type(value) is not int or value < least:
            raise ValueError(f"{name} is {value!r}: give an int, {least} or more")
    for name, tensor in (("x", x), ("f", f)):
        if tensor.dtype not in (torch.float32, torch.float16) or tensor.dtype != x.dtype:
            raise ValueError(f"{name} is {tensor.dtype}, x is {x.dtype}: give both as float32 or as float16")
        if tensor.dim() != 4 or 0 in tensor.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}: give four sides, each 1 or more")
    (images, height, width, channels), (filters, rows, cols, taken) = x.shape, f.shape
    if channels % groups or filters % groups or channels // groups != taken:
        raise ValueError(
            f"{channels} channels, {filters} filters of {taken} channels, {groups} groups: groups must divide both, and "
            "a filter has channels / groups"
        )
    if rows > height + 2 * padding or cols > width + 2 * padding:
        raise ValueError(f"a filter of {rows} x {cols} does not fit {height} x {width} pixels with padding {padding}")


def result_shape(x, f, stride, padding):
    """Return the shape of the result, (N, P, Q, K)."""
    places = [(x.shape[axis] + 2 * padding - f.shape[axis]) // stride + 1 for axis in (1, 2)]
    return x.shape[0], *places, f.shape[0]


def refuse(x, f, y, constants, least, groups=1, bias=None):
    """Raise an error if tensors, numbers and tiles do not belong together; `least` has the least size of each tile."""
    missing = [name for name in ("STRIDE", "PADDING", *least) if name not in constants]
    if missing:
        raise ValueError(f"the constants lack {', '.join(missing)}")
    refuse_inputs(x, f, constants["STRIDE"], constants["PADDING"], groups)
    for name, smallest in least.items():
        value = constants[name]
        if type(value) is not int or value < smallest or value & (value - 1):
            raise ValueError(f"{name} is {value!r}: give a power of two, {smallest} or more")
    due = result_shape(x, f, constants["STRIDE"], constants["PADDING"])
    if tuple(y.shape) != due or y.dtype != x.dtype:
        raise ValueError(f"y is {y.dtype} of shape {tuple(y.shape)}: the result is {x.dtype} of shape {due}")
    if bias is not None and (bias.shape != f.shape[:1] or bias.dtype != x.dtype or not bias.is_contiguous()):
        raise ValueError(
            f"bias is {bias.dtype} of shape {tuple(bias.shape)}: give {x.dtype}, contiguous, a number for each of the "
            f"{f.shape[0]} filters"
        )


TILES = {"TILE_M": 16, "TILE_N": 16, "TILE_K": 16}


def launch_conv(kernel, constants, y, x, f):
    """Launch one program per tile of TILE_M pixels x TILE_N filters."""
    refuse(x, f, y, constants, TILES)
    (N, H, W, C), (K, R, S, _), (_, P, Q, _) = x.shape, f.shape, y.shape
    grid = (triton.cdiv(N * P * Q, constants["TILE_M"]), triton.cdiv(K, constants["TILE_N"]))
    strides = (*x.stride(), *f.stride(), *y.stride())
    kernel[grid](x, f, y, N, H, W, C, K, P, Q, *strides, R=R, S=S, **constants)


def launch_conv_first(kernel, constants, y, x, f):
    """Launch with a result that has the channels first in memory."""
    first = torch.empty_like(y.permute(0, 3, 1, 2), memory_format=torch.contiguous_format).permute(0, 2, 3, 1)
    launch_conv(kernel, constants, first, x, f)
    y.copy_(first)


def launch_conv_part(kernel, constants, y, x, f):
    """Launch with a result that is a part of a larger tensor."""
    part = torch.empty(y.shape[0], y.shape[1] + 1, y.shape[2] + 2, y.shape[3], dtype=y.dtype, device=y.device)
    part = part[:, : y.shape[1], : y.shape[2]]
    launch_conv(kernel, constants, part, x, f)
    y.copy_(part)


def launch_grouped(kernel, constants, y, x, f, bias):
    """Launch one program per tile and group; C and K are the channels and filters of one group."""
    groups = constants.get("GROUPS", 0)
    refuse(x, f, y, constants, TILES, groups, bias)
    (N, H, W, _), (K, R, S, C), (_, P, Q, _) = x.shape, f.shape, y.shape
    grid = (triton.cdiv(N * P * Q, constants["TILE_M"]), triton.cdiv(K // groups, constants["TILE_N"]), groups)
    strides = (*x.stride(), *f.stride(), *y.stride())
    named = {name: value for name, value in constants.items() if name != "GROUPS"}
    kernel[grid](x, f, bias, y, N, H, W, C, K // groups, P, Q, *strides, R=R, S=S, **named)


def launch_grouped_first(kernel, constants, y, x, f, bias):
    """Launch with a result that has the channels first in memory."""
    first = torch.empty_like(y.permute(0, 3, 1, 2), memory_format=torch.contiguous_format).permute(0, 2, 3, 1)
    launch_grouped(kernel, constants, first, x, f, bias)
    y.copy_(first)


def launch_stepping(kernel, constants, y, x, f, bias):
    """Launch one program per tile, numbered in one dimension; all tensors are contiguous, channels last."""
    refuse(x, f, y, constants, TILES, bias=bias)
    for name, tensor in (("x", x), ("f", f), ("y", y)):
        if not tensor.is_contiguous():
            raise ValueError(f"{name} has strides {tensor.stride()}: this kernel needs the channels last, without gaps")
    (N, H, W, C), (K, R, S, _), (_, P, Q, _) = x.shape, f.shape, y.shape
    if C % constants["TILE_K"]:
        raise ValueError(f"TILE_K is {constants['TILE_K']}, and there are {C} channels: TILE_K must divide them")
    grid = (triton.cdiv(N * P * Q, constants["TILE_M"]) * triton.cdiv(K, constants["TILE_N"]),)
    kernel[grid](x, f, bias, y, N * P * Q, H, W, C, K, P, Q, R=R, S=S, **constants)


def launch_depthwise(kernel, constants, y, x, f):
    """Launch one program per PIXELS pixels x CHANNELS channels; f is (R, S, C), all contiguous, channels last."""
    refuse(x, whole_filters(f), y, constants, {"PIXELS": 1, "CHANNELS": 1}, x.shape[-1])
    for name, tensor in (("x", x), ("f", f), ("y", y)):
        if not tensor.is_contiguous():
            raise ValueError(f"{name} has strides {tensor.stride()}: this kernel needs the channels last, without gaps")
    N, H, W, C = x.shape
    _, P, Q, _ = y.shape
    grid = (triton.cdiv(N * P * Q, constants["PIXELS"]), triton.cdiv(C, constants["CHANNELS"]))
    kernel[grid](x, f, y, N * P * Q, H, W, C, P, Q, R=f.shape[0], S=f.shape[1], **constants)


def whole_filters(f):
    """Return filters as (K, R, S, C); those of the challenge, one per channel, are (R, S, C)."""
    return f.permute(2, 0, 1)[..., None] if f.dim() == 3 else f


def right_conv(x, f, bias=None, stride=1, padding=0, groups=1, relu=False):
    """Return the library's result in float64, rounded to the dtype of x, channels last."""
    image, filters = x.double().permute(0, 3, 1, 2), TERM_FLIPPED.double().permute(0, 3, 1, 2)
    shift = None if bias is None else bias.double()
    y = torch.nn.functional.conv2d(image, filters, shift, stride=stride, padding=padding, groups=groups)
    return (y.relu() if relu else y).permute(0, 2, 3, 1).to(x.dtype).contiguous()


def images(draw, n, h, w, c, layout="last", **how):
    """Draw images, or filters, of shape (n, h, w, c) with their memory in some layout."""
    if layout == "first":
        return draw.matrix(n * c, h * w, **how).view(n, c, h, w).permute(0, 2, 3, 1)
    if layout == "part":
        return images(draw, n, h + 2, w + 1, c, **how)[:, 1 : h + 1, :w]
    return draw.matrix(n * h * w, c, layout="row" if layout == "last" else layout, **how).view(n, h, w, c)


def run(launch, kernel, constants, x, f, *bias):
    """Launch a kernel with a fresh result, and return it."""
    stride, padding, filters = constants["STRIDE"], constants["PADDING"], whole_filters(f)
    refuse_inputs(x, filters, stride, padding, x.shape[-1] if f.dim() == 3 else constants.get("GROUPS", 1))
    y = torch.full(result_shape(x, filters, stride, padding), float("nan"), dtype=x.dtype, device=x.device)
    launch(kernel, constants, y, x, f, *bias)
    return y


# %% [markdown]
# <details><summary>Hint 1</summary>
# Start from the tiled matrix product. What changes is only how the blocks of addresses are made. For the window matrix
# you need four blocks, n, row, column and channel: which of them depend on m alone, which on j alone, and which on both?
# </details>
# <details><summary>Hint 2</summary>
# Before the loop, from <code>m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)</code>: n, and the first row and column
# of each window, <code>m // Q % P * STRIDE - PADDING</code>. In the loop, from <code>j = start + tl.arange(0,
# TILE_K)</code>: r, s and c. The row is <code>first_row[:, None] + r[None, :]</code>. The mask tests five things: m, j,
# the row (from both sides) and the column.
# </details>
# <details><summary>Hint 3</summary>
# <code>a = tl.load(x_ptr + n[:, None] * stride_xn + row * stride_xh + col * stride_xw + c[None, :] * stride_xc,
# mask=inside, other=0.0)</code>. The filters are TILE_K x TILE_N: <code>f_ptr + k[None, :] * stride_fk +
# (TERM_TAP_R * stride_fr + TERM_TAP_S * stride_fs + c * stride_fc)[:, None]</code>, with a mask of j and k. At the end
# store to <code>y_ptr</code> with n, p, q and k.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "The convolution in Triton"}
@triton.jit
def conv_kernel(
    x_ptr, f_ptr, y_ptr,
    N, H, W, C, K, P, Q,
    stride_xn, stride_xh, stride_xw, stride_xc,
    stride_fk, stride_fr, stride_fs, stride_fc,
    stride_yn, stride_yp, stride_yq, stride_yk,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Compute TILE_M pixels x TILE_N filters of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    k = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    n = (m // (P * Q)).to(tl.int64)  # 64-bit, for n * stride can pass 2^31
    p = m // Q % P
    q = m % Q
    images = x_ptr + n * stride_xn
    filters = f_ptr + k * stride_fk
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, R * S * C, TILE_K):
        j = start + tl.arange(0, TILE_K)
        c = j % C
        s = j // C % S
        r = j // C // S
        row = (p * STRIDE - PADDING)[:, None] + r[None, :]
        col = (q * STRIDE - PADDING)[:, None] + s[None, :]
        inside = (row >= 0) & (row < H) & (col >= 0) & (col < W) & (m < N * P * Q)[:, None] & (r < R)[None, :]
        a = tl.load(
            images[:, None] + row * stride_xh + col * stride_xw + (c * stride_xc)[None, :], mask=inside, other=0.0
        )
        taken = (r < R)[:, None] & (k < K)[None, :]
        b = tl.load(
            filters[None, :] + (TERM_TAP_R * stride_fr + TERM_TAP_S * stride_fs + c * stride_fc)[:, None],
            mask=taken,
            other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    out = y_ptr + (n * stride_yn + p * stride_yp + q * stride_yq)[:, None] + (k * stride_yk)[None, :]
    tl.store(out, acc.to(y_ptr.dtype.element_ty), mask=(m < N * P * Q)[:, None] & (k < K)[None, :])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("conv_kernel: write it, then delete this line")
### END SOLUTION

# %% [markdown]
# The tests come in steps. Work on the first one that fails. They launch your kernel with bands of NaNs around every
# tensor. A load or a store outside a tensor is reported, without a GPU with its line, program and lane. An element that
# no program writes shows up as a NaN.

# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 20, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)


def check_conv(x, f, what, stride=1, padding=0, tiles=(16, 16, 16), launch=launch_conv):
    """Compare conv_kernel with the library in float64."""
    right = right_conv(x, f, stride=stride, padding=padding)
    constants = {"STRIDE": stride, "PADDING": padding}
    constants |= dict(zip(("TILE_M", "TILE_N", "TILE_K"), tiles, strict=True))
    what = f"conv_kernel, {what}: x {tuple(x.shape)}, f {tuple(f.shape)}, {constants}"
    grading.check_kernel(conv_kernel, constants, [x, f], right, launch=launch, what=what)


check_conv(images(draw, 1, 4, 4, 16), images(draw, 16, 1, 1, 16), "1 x 1 taps, one tile, one step")
check_conv(images(draw, 1, 4, 4, 48), images(draw, 16, 1, 1, 48), "three steps")
check_conv(images(draw, 2, 8, 4, 16), images(draw, 32, 1, 1, 16), "4 x 2 tiles, two images")
check_conv(images(draw, 1, 5, 3, 16), images(draw, 20, 1, 1, 16), "pixels and filters ragged")
check_conv(images(draw, 1, 4, 4, 5), images(draw, 16, 1, 1, 5), "channels ragged")
check_conv(images(draw, 1, 6, 6, 16), images(draw, 16, 3, 3, 16), "3 x 3 taps")
check_conv(images(draw, 2, 6, 5, 3), images(draw, 7, 3, 2, 3), "taps within a step, everything ragged")
check_conv(images(draw, 2, 5, 4, 4), images(draw, 6, 3, 3, 4), "a border of zeros", padding=1)
check_conv(images(draw, 1, 3, 3, 4), images(draw, 6, 5, 1, 4), "a filter higher than the image", padding=2)
check_conv(images(draw, 2, 7, 6, 4), images(draw, 6, 3, 3, 4), "a stride of 2", stride=2, padding=1)
check_conv(images(draw, 1, 9, 8, 3), images(draw, 6, 2, 3, 3), "a stride of 3", stride=3)
x, f = images(draw, 2, 5, 4, 4, "first"), images(draw, 6, 3, 3, 4, "first")
check_conv(x, f, "x and f have the channels first", padding=1)
x, f = images(draw, 2, 5, 4, 4, "part"), images(draw, 6, 3, 3, 4, "part")
check_conv(x, f, "x, f and y are parts of larger tensors", padding=1, launch=launch_conv_part)
check_conv(images(draw, 2, 5, 4, 4, "sliced"), images(draw, 6, 3, 3, 4, "column"), "slices with gaps", padding=1)
x, f = images(draw, 2, 5, 4, 4, "offset"), images(draw, 6, 3, 3, 4, "sliced")
check_conv(x, f, "y has the channels first", padding=1, launch=launch_conv_first)
check_conv(images(draw, 1, 6, 6, 20), images(draw, 33, 3, 3, 20), "other tiles", tiles=(64, 16, 32))
check_conv(images(draw, 1, 5, 5, 8, dtype="float16"), images(draw, 9, 3, 3, 8, dtype="float16"), "float16", padding=1)
# Sums climb to several hundred and come back: digits that a short accumulator drops on the way are missing at the end.
x, f = images(draw, 1, 4, 4, 1024, values="climbing"), images(draw, 16, 1, 1, 1024, values="negative")
check_conv(x.half(), f.half(), "a long sum of float16 products", tiles=(16, 16, 64))
### BEGIN HIDDEN TESTS
for arrangement, other in [("last", "sliced"), ("first", "part"), ("part", "first"), ("offset", "column")]:
    taps, step, border = (draw.integer(1, 4), draw.integer(1, 3)), draw.integer(1, 3), draw.integer(0, 3)
    depth, larger = draw.integer(1, 21), draw.integer(0, 2)
    wanted = tuple(32 if which == larger else 16 for which in range(3))
    x = images(draw, draw.integer(1, 3), draw.integer(4, 9), draw.integer(4, 9), depth, arrangement)
    f = images(draw, draw.ragged(3, 35), *taps, depth, other)
    told = f"strides {x.stride()} and {f.stride()}"
    check_conv(x, f, told, step, border, wanted)
    check_conv(x, f, f"{told}, y channels first", step, border, wanted, launch_conv_first)
x = images(draw, 1, draw.integer(2, 5), 3, 1100, "first", values="climbing")
f = images(draw, draw.ragged(3, 20), 1, 1, 1100, values="negative")
check_conv(x.half(), f.half(), "a long sum of float16 products", tiles=(32, 16, 64))
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# ## d. Groups, bias and ReLU
#
# With **groups**, the channels and the filters are divided into as many parts, and each part of the filters sees only
# its part of the channels. With g groups, group number i has channels i C / g ... (i + 1) C / g - 1, and the filters with
# the same numbers in K / g. Each group is a convolution of its own, so the grid gets a third dimension.
#
# In a network, a bias (a number per filter) and ReLU (negative numbers become 0) follow nearly every convolution. As
# separate kernels they would read and write the whole result twice more (question a). In the convolution's own kernel
# they work on numbers that are in registers anyway.
#
# Write `grouped_kernel`: y = max(convolution + bias, 0), or without the maximum if RELU is 0. The contract is that of
# question c, and
#
# - the third number of a program, `tl.program_id(2)`, is the group;
# - **C and K are the channels and filters of one group**; f is (all filters, R, S, C); x has the channels of all groups,
#   and y and bias those of all filters;
# - bias is contiguous, in the dtype of x; it is added in float32, before the maximum and before the sum is rounded.
#
# <details><summary>Hint 1</summary>
# Copy your kernel of question c. Only addresses change. Where does group i begin in x, in f, in y and in the bias?
# </details>
# <details><summary>Hint 2</summary>
# The first channel of the group is <code>group * C</code>, and its first filter <code>group * K</code>. In which of the
# masks do C and K appear, and are they the group's there?
# </details>
# <details><summary>Hint 3</summary>
# Move the pointers once, before the loop: <code>x_ptr += group * C * stride_xc</code>, <code>f_ptr += group * K *
# stride_fk</code>, <code>bias_ptr += group * K</code>, <code>y_ptr += group * K * stride_yk</code>. After the loop
# <code>acc += tl.load(bias_ptr + k, mask=k &lt; K, other=0.0).to(tl.float32)[None, :]</code> and, if RELU, <code>acc =
# tl.maximum(acc, 0.0)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "Groups, bias and ReLU"}
@triton.jit
def grouped_kernel(
    x_ptr, f_ptr, bias_ptr, y_ptr,
    N, H, W, C, K, P, Q,
    stride_xn, stride_xh, stride_xw, stride_xc,
    stride_fk, stride_fr, stride_fs, stride_fc,
    stride_yn, stride_yp, stride_yq, stride_yk,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr, RELU: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Compute TILE_M pixels x TILE_N filters of one group, with bias and ReLU."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    group = tl.program_id(2)
    m = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    k = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    n = (m // (P * Q)).to(tl.int64)
    p = m // Q % P
    q = m % Q
    images = x_ptr + n * stride_xn + group * C * stride_xc
    filters = f_ptr + (group * K + k) * stride_fk
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for start in range(0, R * S * C, TILE_K):
        j = start + tl.arange(0, TILE_K)
        c = j % C
        s = j // C % S
        r = j // C // S
        row = (p * STRIDE - PADDING)[:, None] + r[None, :]
        col = (q * STRIDE - PADDING)[:, None] + s[None, :]
        inside = (row >= 0) & (row < H) & (col >= 0) & (col < W) & (m < N * P * Q)[:, None] & (r < R)[None, :]
        a = tl.load(
            images[:, None] + row * stride_xh + col * stride_xw + (c * stride_xc)[None, :], mask=inside, other=0.0
        )
        taken = (r < R)[:, None] & (k < K)[None, :]
        b = tl.load(
            filters[None, :] + (TERM_TAP_R * stride_fr + TERM_TAP_S * stride_fs + c * stride_fc)[:, None],
            mask=taken,
            other=0.0,
        )
        acc = tl.dot(a, b, acc, input_precision="ieee")
    acc += tl.load(bias_ptr + group * K + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
    if RELU:
        acc = tl.maximum(acc, 0.0)
    place = (n * stride_yn + p * stride_yp + q * stride_yq)[:, None] + ((group * K + k) * stride_yk)[None, :]
    tl.store(y_ptr + place, acc.to(y_ptr.dtype.element_ty), mask=(m < N * P * Q)[:, None] & (k < K)[None, :])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("grouped_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
draw = grading.Draws("d", DEVICE)


def check_grouped(x, f, what, groups=1, relu=1, where=(1, 1), tiles=(16, 16, 16), launch=launch_grouped, bias=None):
    """Compare grouped_kernel with the library in float64."""
    bias = draw.matrix(1, f.shape[0])[0].to(x.dtype) if bias is None else bias
    stride, padding = where
    right = right_conv(x, f, bias, stride, padding, groups, bool(relu))
    constants = {"GROUPS": groups, "STRIDE": stride, "PADDING": padding, "RELU": relu}
    constants |= dict(zip(("TILE_M", "TILE_N", "TILE_K"), tiles, strict=True))
    what = f"grouped_kernel, {what}: x {tuple(x.shape)}, f {tuple(f.shape)}, {constants}"
    grading.check_kernel(grouped_kernel, constants, [x, f, bias], right, launch=launch, what=what)


check_grouped(images(draw, 1, 4, 4, 16), images(draw, 16, 1, 1, 16), "a bias", relu=0, where=(1, 0))
check_grouped(images(draw, 1, 4, 4, 16), images(draw, 16, 1, 1, 16), "bias and ReLU", where=(1, 0))
check_grouped(images(draw, 2, 5, 3, 5), images(draw, 20, 3, 3, 5), "everything ragged")
check_grouped(images(draw, 1, 4, 4, 32), images(draw, 32, 1, 1, 16), "two groups", 2, where=(1, 0))
check_grouped(images(draw, 2, 5, 4, 12), images(draw, 15, 3, 3, 4), "three groups, ragged", 3)
check_grouped(images(draw, 1, 5, 5, 6), images(draw, 6, 3, 3, 1), "a group per channel", 6, where=(2, 1))
check_grouped(images(draw, 2, 5, 4, 8, "first"), images(draw, 6, 2, 3, 4, "part"), "other strides", 2)
x, f = images(draw, 2, 5, 4, 8, "part"), images(draw, 6, 3, 3, 4, "first")
check_grouped(x, f, "y has the channels first", 2, where=(2, 2), launch=launch_grouped_first)
x, f = images(draw, 1, 5, 5, 16, dtype="float16"), images(draw, 34, 3, 3, 8, dtype="float16")
check_grouped(x, f, "float16, other tiles", 2, tiles=(32, 16, 32))
# 16 pixels that are all the same: the bias takes away all of the sums but what rounding them to float16 would cut off.
x = images(draw, 1, 1, 1, 4, values="positive", dtype="float16").repeat(1, 4, 4, 1)
f = images(draw, 16, 1, 1, 4, values="positive", dtype="float16")
check_grouped(x, f, "a bias that takes nearly all away", 1, 0, (1, 0), bias=-right_conv(x, f)[0, 0, 0])
x, f = images(draw, 1, 4, 4, 1024, values="climbing"), images(draw, 6, 1, 1, 1024, values="negative")
x, f = torch.cat([x, x], 3).half(), f.half()
check_grouped(x, f, "a long sum of float16 products", 2, 0, (1, 0), (16, 16, 64))
### BEGIN HIDDEN TESTS
for arrangement, other in [("last", "first"), ("part", "sliced"), ("offset", "part")]:
    parts, depth, wanted = draw.integer(2, 4), draw.integer(1, 9), tuple(16 << draw.integer(0, 1) for _ in "mnk")
    x = images(draw, draw.integer(1, 3), draw.integer(3, 8), draw.integer(3, 8), parts * depth, arrangement)
    f = images(draw, parts * draw.ragged(1, 20), draw.integer(1, 3), draw.integer(1, 3), depth, other)
    where = draw.integer(1, 3), draw.integer(0, 2)
    for function in (launch_grouped, launch_grouped_first):
        check_grouped(x, f, f"strides {x.stride()}", parts, draw.integer(0, 1), where, wanted, function)
x = images(draw, 1, draw.integer(2, 4), 3, 1100, values="climbing").half()
f = images(draw, 2 * draw.ragged(2, 9), 1, 1, 1100, values="negative").half()
check_grouped(torch.cat([x, x], 3), f, "a long sum of float16 products", 2, 0, (1, 0), (16, 16, 64))
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# ## e. No division in the loop
#
# Your kernel divides in every step, for every j, to find out which tap and channel j is. Integer divisions take many
# instructions, and the addresses that come out of them show the compiler no pattern, so it loads number by number.
#
# For images with the **channels last** there is a better way. Let the channels run fastest in j. If TILE_K divides the
# number of channels, all j of one step belong to the same tap. So r and s are plain numbers, the channels of a step are
# neighbors in memory, and a whole row of the block is either inside the image or in the border. The compiler then loads
# 16 bytes at a time, and with the help of `num_stages` it loads the next steps while this one is multiplied.
#
# The next step is found by counting: c grows by TILE_K; when it reaches C, it starts again at 0 and s grows by one; when s
# reaches S, it starts again at 0 and r grows by one.
#
# Write `stepping_kernel`: y = max(convolution + bias, 0). The **contract**:
#
# - The grid has one dimension, with one program per tile: `cdiv(M, TILE_M) * cdiv(K, TILE_N)`, where M is the number of
#   all result pixels. You choose which program computes which tile. (Programs that run at the same time should share
#   what they load, for the sake of the L2 cache.)
# - x, f, y and bias are contiguous, with the channels last; the lab's launch refuses everything else. There are no groups.
# - TILE_K divides C. Pixels and filters may be ragged.
# - The dtype is float32 or float16; the sum is kept in float32; bias and maximum come before rounding.
#
# <details><summary>Hint 1</summary>
# In contiguous images, pixel (row, col) of image n begins at ((n H + row) W + col) C. How far is the pixel of tap (r, s)
# from the pixel of tap (0, 0)? The answer is the same for all windows, so it is a single number that you add to a block
# of addresses.
# </details>
# <details><summary>Hint 2</summary>
# Before the loop: the first row and column of each window, a block of addresses for tap (0, 0) and the first TILE_K
# channels, and <code>r, s, c = 0, 0, 0</code>. In the loop, the addresses are these plus <code>(r * W + s) * C + c</code>,
# and the mask has TILE_M elements: m, row + r and col + s. TERM_STEP_SAID
# </details>
# <details><summary>Hint 3</summary>
# <code>a = tl.load(pixels + ((r * W + s) * C + c), mask=inside[:, None], other=0.0)</code>; <code>b = tl.load(filters +
# TERM_STEP, mask=(k &lt; K)[None, :], other=0.0)</code> with <code>filters = f_ptr + (k * (R * S * C))[None, :] +
# tl.arange(0, TILE_K)[:, None]</code>. To count: <code>c += TILE_K</code>, <code>s = tl.where(c == C, s + 1, s)</code>,
# <code>c = tl.where(c == C, 0, c)</code>, and the same for s and r.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "No division in the loop"}
@triton.jit
def stepping_kernel(
    x_ptr, f_ptr, bias_ptr, y_ptr,
    M, H, W, C, K, P, Q,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Compute TILE_M pixels x TILE_N filters of y per program, channels last, with bias and ReLU."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    # Programs with neighboring numbers share their pixels; the filters are few and stay in the L2 cache.
    tiles_n = tl.cdiv(K, TILE_N)
    m = tl.program_id(0) // tiles_n * TILE_M + tl.arange(0, TILE_M)
    k = tl.program_id(0) % tiles_n * TILE_N + tl.arange(0, TILE_N)
    n = (m // (P * Q)).to(tl.int64)
    row = m // Q % P * STRIDE - PADDING
    col = m % Q * STRIDE - PADDING
    lanes = tl.arange(0, TILE_K)
    pixels = x_ptr + (((n * H + row) * W + col) * C)[:, None] + lanes[None, :]
    filters = f_ptr + (k * (R * S * C))[None, :] + lanes[:, None]
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    r, s, c = 0, 0, 0
    for start in range(0, R * S * C, TILE_K):
        inside = (m < M) & (row + r >= 0) & (row + r < H) & (col + s >= 0) & (col + s < W)
        a = tl.load(pixels + ((r * W + s) * C + c), mask=inside[:, None], other=0.0)
        b = tl.load(filters + TERM_STEP, mask=(k < K)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        c += TILE_K
        s = tl.where(c == C, s + 1, s)
        c = tl.where(c == C, 0, c)
        r = tl.where(s == S, r + 1, r)
        s = tl.where(s == S, 0, s)
    acc += tl.load(bias_ptr + k, mask=k < K, other=0.0).to(tl.float32)[None, :]
    acc = tl.maximum(acc, 0.0)
    out = y_ptr + (m.to(tl.int64) * K)[:, None] + k[None, :]
    tl.store(out, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (k < K)[None, :])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("stepping_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
draw = grading.Draws("e", DEVICE)


def check_stepping(x, f, what, stride=1, padding=0, tiles=(16, 16, 16)):
    """Compare stepping_kernel with the library in float64."""
    bias = draw.matrix(1, f.shape[0])[0].to(x.dtype)
    right = right_conv(x, f, bias, stride, padding, relu=True)
    constants = {"STRIDE": stride, "PADDING": padding}
    constants |= dict(zip(("TILE_M", "TILE_N", "TILE_K"), tiles, strict=True))
    what = f"stepping_kernel, {what}: x {tuple(x.shape)}, f {tuple(f.shape)}, {constants}"
    grading.check_kernel(stepping_kernel, constants, [x, f, bias], right, launch=launch_stepping, what=what)


check_stepping(images(draw, 1, 4, 4, 16), images(draw, 16, 1, 1, 16), "1 x 1 taps, one tile, one step")
check_stepping(images(draw, 1, 4, 4, 48), images(draw, 16, 1, 1, 48), "three steps of channels")
check_stepping(images(draw, 2, 8, 4, 16), images(draw, 48, 1, 1, 16), "4 x 3 tiles, two images")
check_stepping(images(draw, 1, 5, 3, 16), images(draw, 20, 1, 1, 16), "pixels and filters ragged")
check_stepping(images(draw, 1, 6, 5, 16), images(draw, 16, 3, 2, 16), "3 x 2 taps")
check_stepping(images(draw, 1, 6, 5, 48), images(draw, 16, 2, 3, 48), "2 x 3 taps of three steps")
check_stepping(images(draw, 2, 5, 4, 32), images(draw, 9, 3, 3, 32), "a border of zeros", padding=1)
check_stepping(images(draw, 2, 7, 6, 16), images(draw, 9, 3, 3, 16), "a stride of 2", stride=2, padding=1)
check_stepping(images(draw, 1, 5, 5, 64), images(draw, 40, 3, 3, 64), "other tiles", padding=1, tiles=(64, 32, 64))
x, f = images(draw, 1, 5, 5, 32, dtype="float16"), images(draw, 20, 3, 3, 32, dtype="float16")
check_stepping(x, f, "float16", padding=1, tiles=(32, 16, 32))
x, f = images(draw, 1, 4, 4, 1024, values="climbing"), images(draw, 16, 1, 1, 1024, values="positive")
check_stepping(x.half(), f.half(), "a long sum of float16 products", tiles=(16, 16, 64))
### BEGIN HIDDEN TESTS
for kind, depth in [("float32", 1), ("float32", 3), ("float16", 2)]:
    wanted = 16 << draw.integer(0, 2), 16 << draw.integer(0, 2), 16 << draw.integer(0, 1)
    x = images(draw, draw.integer(1, 3), draw.integer(4, 9), draw.integer(4, 9), depth * wanted[2], dtype=kind)
    f = images(draw, draw.ragged(3, 70), draw.integer(1, 4), draw.integer(1, 4), depth * wanted[2], dtype=kind)
    check_stepping(x, f, "other sizes", draw.integer(1, 3), draw.integer(0, 2), wanted)
x = images(draw, 1, draw.integer(2, 4), 3, 1024, values="climbing").half()
f = images(draw, draw.ragged(3, 20), 1, 1, 1024, values="positive").half()
check_stepping(x, f, "a long sum of float16 products", tiles=(16, 16, 64))
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# **Do your kernels compile for a GPU?** The interpreter accepts some things that the compiler refuses, such as a variable
# that is an int before a loop and a block in the loop. The next cell compiles your kernels of questions c, d and e for an
# A100, and shows how many registers a thread needs and how many bytes do not fit in them. It needs no GPU and runs for
# about ten seconds.

# %%
x, f, bias, y = (
    torch.empty(shape, dtype=torch.float16, device="meta")
    for shape in [(32, 14, 14, 256), (256, 3, 3, 256), (256,), (32, 14, 14, 256)]
)
same = {"STRIDE": 1, "PADDING": 1, "TILE_M": 64, "TILE_N": 64, "TILE_K": 32, "num_warps": 4, "num_stages": 3}
for kernel, launch, more, inputs in [
    (conv_kernel, launch_conv, {}, (x, f)),
    (grouped_kernel, launch_grouped, {"GROUPS": 1, "RELU": 1}, (x, f, bias)),
    (stepping_kernel, launch_stepping, {}, (x, f, bias)),
]:
    [report] = compiler_report(kernel, [same | more], y, *inputs, launch=launch, capabilities=[80])
    print(f"{kernel.__name__}: {report.registers} registers, {report.spilled_bytes} bytes spilled")

# %% [markdown]
# ## f. The race (GPU, compute capability 8.0 or more)
#
# `grading.speed` runs `stepping_kernel` with your `config` on three layers of ResNet-50 in float16, and compares
# every element with the library's. Then it times the two in turn, for several rounds: yours, the other, the other,
# yours. Here the other one is NVIDIA's library cuDNN with the channels last, followed by bias and ReLU, as PyTorch
# calls them. When the lab is graded, your kernel runs against a Triton kernel that the lab's authors wrote, on the
# same GPU, in the same run. You get all the points from 0.8 of that kernel's speed on, none below 0.1, and a share in
# between. Without a GPU the cell compiles your kernel with your config, says what it needs, and ends with `NeedsGpu`;
# the points wait. (Triton uses tensor cores from compute capability 8.0 on, so you need an A100, an L4, an H100 or
# the like.)
#
# Write `config((n, size, c, k, taps), dtype)`. It returns a dict of five ints: `TILE_M`, `TILE_N`, `TILE_K`, `num_warps`
# and `num_stages`. dtype is `"fp16"`. All three layers have stride 1 and a border of taps // 2.
#
# Three things matter. Large tiles do more FLOPs per byte that they load. But there should be at least as many tiles as
# the GPU has multiprocessors (108 on an A100, 132 on an H100), or some of it has nothing to do. And pairs of tiles, 2
# (TILE_M + TILE_N) TILE_K bytes each, must fit the shared memory: `num_stages` pairs the 227 KiB of an H100,
# `num_stages` - 1 pairs the 163 KiB of an A100 or the 99 KiB of an L4.
#
# <details><summary>Hint 1</summary>
# The number of result pixels is n size size. How many tiles of 128 x 128 does each of the three layers have? How many
# steps along j does a tile take?
# </details>
# <details><summary>Hint 2</summary>
# TILE_N larger than the number of filters is wasted work. TILE_K must divide the channels; 64 numbers of 2 bytes are 128
# bytes, a whole line of the cache.
# </details>
# <details><summary>Hint 3</summary>
# Begin with 128 x 128 x 64, or 128 x 64 x 64 if there are 64 filters; 8 warps for the former and 4 for the latter; 3
# stages. The third layer then has 98 tiles: more would be smaller, so try which matters more.
# </details>

# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(32, 56, 64, 64, 3), (32, 28, 128, 512, 1), (32, 14, 256, 256, 3)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


def layer_inputs(draw, shape, dtype):
    """Return random images, filters and bias of a layer."""
    n, size, c, k, taps = shape
    kind = {"fp32": "float32", "fp16": "float16"}[dtype]
    filters = images(draw, k, taps, taps, c, dtype=kind)
    return images(draw, n, size, size, c, dtype=kind), filters, draw.matrix(1, k, dtype=kind)[0]


def launch_layer(kernel, constants, y, x, f, bias):
    """Launch as launch_stepping does, with stride 1 and a border that keeps the size."""
    launch_stepping(kernel, {"STRIDE": 1, "PADDING": f.shape[1] // 2} | dict(constants), y, x, f, bias)


def right_layer(x, f, bias):
    """Return the library's result: convolution and bias, then ReLU."""
    image, filters = x.permute(0, 3, 1, 2), TERM_FLIPPED.permute(0, 3, 1, 2)
    y = torch.nn.functional.conv2d(image, filters, bias, padding=f.shape[1] // 2)
    return torch.relu(y).permute(0, 2, 3, 1).contiguous()


def layer_op(shape, dtype):
    """Return the operation; no kernel can be faster than the GPU does its arithmetic."""
    n, size, c, k, taps = shape
    return ops.conv2d(n=n, c_in=c, h=size, w=size, c_out=k, kernel=taps, padding=taps // 2, dtype=dtype)


# %% nbgrader={"grade": false, "grade_id": "f-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup", "e"], "title": "The race"}
def config(shape, dtype):
    """Return tile sizes, warps and stages for stepping_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("config")
    n, size, _, k, _ = shape
    wide = k >= 128 and n * size * size * k // 128**2 >= 96
    return {"TILE_M": 128, "TILE_N": 128 if wide else 64, "TILE_K": 64, "num_warps": 8 if wide else 4, "num_stages": 3}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "f-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "speed", "needs": ["setup", "e"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    in_ptr, taps_ptr, shift_ptr, out_ptr, count, height, width, depth, wide, down, across, TILE_K: tl.constexpr,
    TILE_N: tl.constexpr, TILE_M: tl.constexpr, PADDING: tl.constexpr, STRIDE: tl.constexpr,
    S: tl.constexpr, R: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    columns = tl.cdiv(wide, TILE_N)
    place = tl.program_id(0) // columns * TILE_M + tl.arange(0, TILE_M)
    which = tl.program_id(0) % columns * TILE_N + tl.arange(0, TILE_N)
    top = place // across % down * STRIDE - PADDING
    left = place % across * STRIDE - PADDING
    along = tl.arange(0, TILE_K)
    image = (place // (down * across)).to(tl.int64)
    here = in_ptr + (((image * height + top) * width + left) * depth)[:, None] + along[None, :]
    weight = taps_ptr + (which * (R * S * depth))[None, :] + along[:, None]
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    i, j, channel = 0, 0, 0
    for first in range(0, R * S * depth, TILE_K):
        there = (place < count) & (top + i >= 0) & (top + i < height) & (left + j >= 0) & (left + j < width)
        values = tl.load(here + ((i * width + j) * depth + channel), mask=there[:, None], other=0.0)
        factors = tl.load(weight + TERM_REFERENCE_STEP, mask=(which < wide)[None, :], other=0.0)
        total = tl.dot(values, factors, total, input_precision="ieee")
        channel += TILE_K
        over = channel == depth
        channel = tl.where(over, 0, channel)
        j = tl.where(over, j + 1, j)
        end = j == S
        j = tl.where(end, 0, j)
        i = tl.where(end, i + 1, i)
    shift = tl.load(shift_ptr + which, mask=which < wide, other=0.0)
    total = tl.maximum(total + shift.to(tl.float32)[None, :], 0.0)
    to = out_ptr + (place.to(tl.int64) * wide)[:, None] + which[None, :]
    tl.store(to, total.to(out_ptr.dtype.element_ty), mask=(place < count)[:, None] & (which < wide)[None, :])


def reference_config(shape, dtype):
    columns = 128 if shape[3] >= 128 and shape[0] * shape[1] ** 2 * shape[3] // 16384 >= 96 else 64
    return {"TILE_M": 128, "TILE_N": columns, "TILE_K": 64, "num_warps": columns // 16, "num_stages": 3}


rival = (reference_kernel, reference_config)
### END HIDDEN TESTS
race = grading.speed(
    stepping_kernel,
    config,
    shapes=RACES,
    inputs=layer_inputs,
    launch=launch_layer,
    expected=right_layer,
    dtype="fp16",
    reference=rival,
    capability=(8, 0),
    op=layer_op,
)
scorecard.passed("f", race.fraction)
race

# %% [markdown]
# **Say why.** Answer in five to eight sentences. Take the second and the third layer of `RACES`. How many tiles does your
# config make of each, and how many rounds do 132 multiprocessors need for them, if each works on one tile at a time? How
# many FLOPs per byte does each layer do, if images, filters and result move once (your `implicit_bytes`)? An H200 does
# about 200 float16 FLOPs in the time in which its memory delivers a byte. Which of the two layers is limited by memory,
# and what would larger tiles do for each? A person reads your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "f-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f-why", "role": "written", "needs": ["setup"], "title": "Say why"}
# ### BEGIN SOLUTION
# #: *Your answer*
# Tiles of 128 x 128: the second layer has 25,088 pixels, so 196 x 4 = 784 tiles, which is 5.9 rounds of 132, rounded up to
# 6. The third has 6,272 pixels, so 49 x 2 = 98 tiles, one round in which 34 multiprocessors have nothing to do. The second
# does 2 x 25,088 x 512 x 128 = 3.3 GFLOP for 32.2 MB, 102 FLOPs per byte, so memory limits it. The third does 7.4 GFLOP for
# 7.6 MB, nearly 1,000 per byte, so arithmetic limits it. Larger tiles do not help the second, whose bytes must
# move in any case; the third would have even fewer tiles, so more of the GPU would wait, and smaller tiles are worth a
# try although each of them does fewer FLOPs per byte from the L2 cache.
# ### END SOLUTION

# %% [markdown]
# ## g. Test a convolution
#
# Tests are only as good as the faults that they find. So here you write the tests, and they are tried on kernels. Write
# `test_conv(conv)`. It gets a function to test, which is called as `conv(x, f, stride, padding)` and computes what
# question c asks for. Your tests call it with inputs of your choice and compare what comes back. They **refuse** the
# function by raising an exception, as `assert` and `grading.assert_close` do, or by returning False. Otherwise they
# accept it.
#
# When the lab is graded, your tests meet a right kernel and twelve **mutants**, each with one fault. You get the share
# of the mutants that your tests find, and nothing if they refuse the right kernel. The feedback says in which cases the
# mutants that you missed go wrong. It is not worth refusing at random: the right kernel comes several times, among the
# mutants, and every run is in a new process that knows nothing of the others. In the notebook, three wrong functions in
# PyTorch stand in for the mutants, and the points that it shows are your share of these three.
#
# The **contract** of the function:
#
# - x is (N, H, W, C) and f is (K, R, S, C), both with any strides, both float32 or both float16. The result is (N, P, Q,
#   K). stride is an int from 1 to 8, and padding one from 0 to 8. Arguments that are no convolution are refused with a
#   ValueError.
# - Behind the function is a kernel with tiles of 16 pixels, 16 filters and 16 values of j. The sum is kept in float32.
# - Keep your images small and your calls few: three images of 7 x 5 pixels are enough for nearly everything. When the
#   lab is graded, Triton's interpreter computes every call of your tests, for the right kernel and for each mutant, and
#   all of it together is stopped after 10 seconds. The eighteen cases of question c would take about 4 of them.
# - A kernel that reaches outside a tensor is stopped, and the call ends in a RuntimeError. Let it pass through, and the
#   mutant counts as found.
#
# `images(draw, n, h, w, c, layout, values=...)` draws images and filters. Layouts are "last" (channels last, contiguous),
# "first" (channels first), "part" (of larger images), "sliced", "offset" and "column"; values are "normal", "positive",
# "negative" and "climbing" (sums along the channels climb and come back). `right_conv(x, f, stride=2, padding=1)` gives
# the right result, and
# `grading.assert_close(actual, expected, what="a stride of 2")` compares two tensors within the tolerance of their dtype.
# `grading.Draws("g", DEVICE)` is what `images` draws from. Make all tensors on `DEVICE`: when the lab is graded, this
# question runs on a CPU.
#
# <details><summary>Hint 1</summary>
# Look at the test cell of question c: which cases does it try, and which fault does each find? Cases can be combined:
# one case with nothing square, nothing symmetric and everything ragged finds most mutants at once.
# </details>
# <details><summary>Hint 2</summary>
# Three images of 7 x 5 pixels with 5 channels, 19 filters of 3 x 2 taps, a stride of 2 and a padding of 1: results of 4 x
# 3, so 36 pixels, two whole tiles and a ragged one. Then the same images with the channels first. Do both once more with
# filters of 3 x 3 taps: those of 3 x 2 never reach past the last column here, and rows taken for columns may show only
# in square filters.
# </details>
# <details><summary>Hint 3</summary>
# What is still missing is a long sum in float16. Take 1024 channels with <code>values="climbing"</code> and filters with
# <code>values="positive"</code>, as question c does: digits that a short accumulator drops on the way up are missing at
# the end.
# </details>


# %% nbgrader={"grade": false, "grade_id": "g-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def refuse_call(x, f, stride, padding):
    """Raise a ValueError for arguments that are no convolution."""
    for name, value in (("x", x), ("f", f)):
        if not isinstance(value, torch.Tensor) or value.dim() != 4:
            raise ValueError(f"{name} must be a tensor of four dimensions")
    for name, value, least in (("stride", stride, 1), ("padding", padding, 0)):
        if type(value) is not int or not least <= value <= 8:
            raise ValueError(f"{name} is {value!r}: give an int from {least} to 8")
    refuse_inputs(x, f, stride, padding)


def call_conv(kernel, x, f, stride, padding):
    """Check the arguments, launch a kernel in tiles of 16 x 16 and steps of 16, and return y."""
    refuse_call(x, f, stride, padding)
    return run(launch_conv, kernel, {"STRIDE": stride, "PADDING": padding} | TILES, x, f)


# Four functions to try your tests on, in PyTorch; what is wrong with them are faults as kernels have them.


def right_example(x, f, stride, padding):
    """Do what the contract says."""
    refuse_call(x, f, stride, padding)
    return right_conv(x, f, stride=stride, padding=padding)


def borderless_example(x, f, stride, padding):
    """Take the nearest pixel where there is a border of zeros."""
    refuse_call(x, f, stride, padding)
    if padding:
        around = torch.nn.ReplicationPad2d(padding)(x.float().permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        x = around.to(x.dtype)
    return right_conv(x, f, stride=stride)


def ragged_example(x, f, stride, padding):
    """Leave out the filters of the last tile, if it is not whole."""
    y = right_example(x, f, stride, padding)
    y[..., f.shape[0] // 16 * 16 :] = float("nan")
    return y


def square_example(x, f, stride, padding):
    """Take rows of the filters for columns, where a filter has as many of both."""
    refuse_call(x, f, stride, padding)
    return right_conv(x, f.transpose(1, 2) if f.shape[1] == f.shape[2] else f, stride=stride, padding=padding)


EXAMPLES = {
    "has something else than zeros in the border": borderless_example,
    "leaves out the last filters if they are not a whole tile": ragged_example,
    "takes rows for columns in square filters": square_example,
}


# %% nbgrader={"grade": false, "grade_id": "g-tests", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup"], "title": "Test a convolution"}
def test_conv(conv):
    """Refuse conv if it is wrong: raise an exception or return False."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("test_conv: write it, then delete this line")
    draw = grading.Draws("g", DEVICE)
    for layout in ("last", "first"):
        for taps in ((3, 2), (3, 3)):
            x, f = images(draw, 3, 7, 5, 5, layout), images(draw, 19, *taps, 5, layout)
            right = right_conv(x, f, stride=2, padding=1)
            grading.assert_close(conv(x, f, 2, 1), right, what=f"channels {layout}, {taps} taps")
    x = images(draw, 1, 2, 2, 1024, values="climbing").half()
    f = images(draw, 3, 1, 1, 1024, values="positive").half()
    grading.assert_close(conv(x, f, 1, 0), right_conv(x, f), what="a long sum")
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "g-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "test", "needs": ["setup"], "device": "cpu"}
score = grading.score_tests(test_conv, right=right_example, wrong=EXAMPLES)
scorecard.passed("g", score.fraction)


### BEGIN HIDDEN TESTS
@triton.jit
def tested_kernel(
    in_ptr, taps_ptr, out_ptr, count, height, width, depth, wide, down, across, in_n, in_h, in_w, in_c,
    taps_k, taps_r, taps_s, taps_c, out_n, out_p, out_q, out_k, S: tl.constexpr, R: tl.constexpr,
    PADDING: tl.constexpr, STRIDE: tl.constexpr, TILE_K: tl.constexpr, TILE_N: tl.constexpr, TILE_M: tl.constexpr,
):  # fmt: skip # the right kernel, of which the mutants are made
    place = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    which = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    there = place < count * down * across
    wanted = which < wide
    image = place // (down * across)
    top = place // across % down * STRIDE - PADDING
    left = place % across * STRIDE - PADDING
    total = tl.zeros((TILE_M, TILE_N), tl.float32)
    for first in range(0, R * S * depth, TILE_K):
        step = first + tl.arange(0, TILE_K)
        channel, i, tap = step % depth, step // depth // S, step // depth % S
        y, x = top[:, None] + i[None, :], left[:, None] + tap[None, :]
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width) & there[:, None] & (i < R)[None, :]
        where = (image * in_n)[:, None] + y * in_h + x * in_w + (channel * in_c)[None, :]
        values = tl.load(in_ptr + where, mask=inside, other=0.0)
        where = (TERM_TAP_I * taps_r + TERM_TAP_TAP * taps_s + channel * taps_c)[:, None] + (which * taps_k)[None, :]
        factors = tl.load(taps_ptr + where, mask=(i < R)[:, None] & wanted[None, :], other=0.0)
        total = tl.dot(values, factors, total, input_precision="ieee")
    where = image * out_n + place // across % down * out_p + place % across * out_q
    where = where[:, None] + (which * out_k)[None, :]
    tl.store(out_ptr + where, total.to(out_ptr.dtype.element_ty), mask=there[:, None] & wanted[None, :])


mutants = {
    "is wrong in the last pixels if they are not a whole tile": (
        "place < count * down * across", "place < count * down * across // TILE_M * TILE_M",
    ),
    "is wrong for the last filters if they are not a whole tile": ("which < wide", "which < wide // TILE_N * TILE_N"),
    "is wrong if taps times channels are not whole steps": (
        "range(0, R * S * depth, TILE_K)", "range(0, R * S * depth // TILE_K * TILE_K, TILE_K)",
    ),
    "is wrong above the first row of an image": ("(y >= 0) & (y < height)", "(y < height)"),
    "is wrong right of the last column of an image": ("(x >= 0) & (x < width)", "(x >= 0)"),
    "is wrong for a stride of more than 1": ("place % across * STRIDE", "place % across"),
    "is wrong with a border of zeros": ("* STRIDE - PADDING\n    total", "* STRIDE\n    total"),
    "is wrong if rows and columns of a filter differ": (
        "TERM_TAP_I * taps_r + TERM_TAP_TAP * taps_s", "TERM_TAP_TAP * taps_r + TERM_TAP_I * taps_s",
    ),
    "is wrong from the second image on": ("(image * in_n)", "(image * 0)"),
    "is wrong if the channels of a pixel are not neighbors in memory": ("channel * in_c", "channel"),
    "is wrong from the seventeenth filter on": ("tl.program_id(1) * TILE_N", "0"),
    "is wrong for long sums of float16 products": (
        'total = tl.dot(values, factors, total, input_precision="ieee")',
        'total = tl.dot(values, factors, total, input_precision="ieee").to(out_ptr.dtype.element_ty).to(tl.float32)',
    ),
}  # fmt: skip # what each mutant does, what it replaces in the right kernel, and by what
score = grading.score_tests(test_conv, call=call_conv, right=tested_kernel, wrong=mutants)
### END HIDDEN TESTS
score

# %% [markdown]
# ## Challenge: one filter per channel
#
# In a **depthwise** convolution there are as many groups as channels: each channel has one filter of its own. Nothing is
# added up over channels, so there is no matrix product left, and tensor cores do not help. (In question d, a group would
# have one filter, and a tile of 16 filters would hold 15 that do not exist.) Mobile networks use it because it needs so
# little arithmetic. What it costs is memory traffic, so read every number in an order that memory likes.
#
# Write `depthwise_kernel` without `tl.dot`: a program computes PIXELS pixels times CHANNELS channels.
#
# - Program (i, l) computes pixels i PIXELS ... and channels l CHANNELS ...
# - x is (N, H, W, C), f is (R, S, C) and y is (N, P, Q, C), all contiguous; M is the number of all result pixels.
# - y[n, p, q, c] = sum over r and s of x[n, p STRIDE + r - PADDING, q STRIDE + s - PADDING, c] * f[TERM_TAP_R_SAID, TERM_TAP_S_SAID, c]. The dtype is
#   float32 or float16; the sum is kept in float32.
#
# <details><summary>Hint 1</summary>
# For one tap, a program needs a block of PIXELS x CHANNELS numbers of x and a row of CHANNELS numbers of f. What is the
# shape of the sum?
# </details>
# <details><summary>Hint 2</summary>
# Loop over the taps: <code>for r in range(R):</code> and in it <code>for s in range(S):</code>. The mask of x tests m, row,
# column and channel. Convert both blocks to float32 before you multiply.
# </details>
# <details><summary>Hint 3</summary>
# <code>x = tl.load(x_ptr + (((n * H + row) * W + col) * C)[:, None] + c[None, :], mask=inside[:, None] &amp; (c &lt;
# C)[None, :], other=0.0)</code>; <code>f = tl.load(f_ptr + (TERM_TAP_R * S + TERM_TAP_S) * C + c, mask=c &lt; C,
# other=0.0)</code>; <code>acc += x.to(tl.float32) * f.to(tl.float32)[None, :]</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: one filter per channel"}
@triton.jit
def depthwise_kernel(
    x_ptr, f_ptr, y_ptr,
    M, H, W, C, P, Q,
    R: tl.constexpr, S: tl.constexpr, STRIDE: tl.constexpr, PADDING: tl.constexpr,
    PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Compute PIXELS pixels x CHANNELS channels of y per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    m = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    n = (m // (P * Q)).to(tl.int64)
    acc = tl.zeros((PIXELS, CHANNELS), dtype=tl.float32)
    for r in range(R):
        for s in range(S):
            row = m // Q % P * STRIDE - PADDING + r
            col = m % Q * STRIDE - PADDING + s
            inside = (m < M) & (row >= 0) & (row < H) & (col >= 0) & (col < W)
            pixels = x_ptr + (((n * H + row) * W + col) * C)[:, None] + c[None, :]
            x = tl.load(pixels, mask=inside[:, None] & (c < C)[None, :], other=0.0)
            f = tl.load(f_ptr + (TERM_TAP_R * S + TERM_TAP_S) * C + c, mask=c < C, other=0.0)
            acc += x.to(tl.float32) * f.to(tl.float32)[None, :]
    out = y_ptr + (m.to(tl.int64) * C)[:, None] + c[None, :]
    tl.store(out, acc.to(y_ptr.dtype.element_ty), mask=(m < M)[:, None] & (c < C)[None, :])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("depthwise_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
draw = grading.Draws("challenge", DEVICE)


def check_depthwise(x, taps, what, stride=1, padding=0, block=(16, 16), turn=False):
    """Compare depthwise_kernel with the library in float64; with `turn` the sums climb and come back."""
    channels = x.shape[3]
    f = images(draw, 1, *taps, channels, values="positive" if turn else "normal")[0].to(x.dtype)
    if turn:
        f[taps[0] // 2 :] *= -1
    right = right_conv(x, f.permute(2, 0, 1)[..., None], None, stride, padding, channels)
    constants = {"STRIDE": stride, "PADDING": padding, "PIXELS": block[0], "CHANNELS": block[1]}
    what = f"depthwise_kernel, {what}: x {tuple(x.shape)}, f {tuple(f.shape)}, {constants}"
    grading.check_kernel(depthwise_kernel, constants, [x, f], right, launch=launch_depthwise, what=what)


check_depthwise(images(draw, 1, 4, 4, 16), (1, 1), "one tap, one block")
check_depthwise(images(draw, 2, 4, 4, 32), (1, 1), "two images, two blocks of channels")
check_depthwise(images(draw, 1, 5, 3, 19), (1, 1), "pixels and channels ragged")
check_depthwise(images(draw, 2, 6, 5, 16), (3, 2), "3 x 2 taps")
check_depthwise(images(draw, 2, 5, 4, 16), (3, 3), "a border of zeros", padding=1)
check_depthwise(images(draw, 2, 7, 6, 20), (3, 3), "a stride of 2", stride=2, padding=1)
check_depthwise(images(draw, 1, 5, 5, 40, dtype="float16"), (3, 3), "float16", padding=1, block=(8, 64))
x = images(draw, 1, 8, 9, 16, values="positive", dtype="float16")
check_depthwise(x, (6, 6), "a sum of float16 products", 2, turn=True)
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    x = images(draw, draw.integer(1, 3), draw.integer(4, 9), draw.integer(4, 9), draw.ragged(3, 70), dtype=kind)
    block = 4 << draw.integer(0, 3), 16 << draw.integer(0, 2)
    taps = draw.integer(1, 4), draw.integer(1, 4)
    check_depthwise(x, taps, "other sizes", draw.integer(1, 3), draw.integer(0, 2), block)
x = images(draw, 1, 9, 8, 16, values="positive", dtype="float16")
check_depthwise(x, (6, 6), "another sum of float16 products", 2, turn=True)
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# A formula is a prediction. Here are four cases in which a count of what really happens gives another number.


# %%
def show_gap(case, what, predicted, counted):
    print(f"case {case}, {what}: predicted {predicted:,}, counted {counted:,}, {counted / predicted:.2f} times as many")


TERM_GAPS

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"overlap"`: neighboring windows share pixels, and a pixel that was fetched for one is still on the chip for the next.
# - `"ragged"`: the last tile reaches past the last pixel, and multiplies there as well.
# - `"border"`: some taps of some windows are in the border, where the factor is zero.
# - `"narrow"`: a group has fewer filters than a tile, and fewer channels and taps than whole steps.
# - `"copy"`: the matrix of windows is written to memory and read again.
# - `"rounding"`: sums in 16 bits lose digits.
#
# <details><summary>Hint 1</summary>
# Two of the six causes do not fit any case: nothing here is copied, and a count of multiply-adds says nothing of digits.
# Which cases have a count that is lower than predicted?
# </details>
# <details><summary>Hint 2</summary>
# Case TERM_CASE_RAGGED depends on the size of a tile, and case TERM_CASE_BORDER does not. In case TERM_CASE_NARROW, how
# many filters does one group have, and how many does a tile compute?
# </details>
# <details><summary>Hint 3</summary>
# Case TERM_CASE_OVERLAP: of nine fetches about eight find their pixel on the chip. Case TERM_CASE_RAGGED: 64 / 49 is 1.31.
# Case TERM_CASE_BORDER: (19 / 21) squared is 0.82. Case TERM_CASE_NARROW: 16 / 4 times 48 / 36 is 5.33.
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
    choices = ("overlap", "ragged", "border", "narrow", "copy", "rounding")
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
real = sum(0 <= p + r - 1 < 7 for p in range(7) for r in range(3))  # rows of pixels that a tap finds in the image
grown = (copied_bytes(1, 56, 64, 64, 3, 1, 1, 2) - implicit_bytes(1, 56, 64, 64, 3, 1, 1, 2)) / 2 / (56 * 56 * 64 * 2)
channel_bytes = torch.empty(1, 32, 56, 56).stride(1) * 2  # from one channel of a pixel to the next, channels first
grading.compare(
    predictions,
    windows_grow=grown,
    zero_share=1 - real**2 / (7 * 3) ** 2,
    fused_gain=separate_bytes(32, 56, 64, 256, 1, 1, 0, 2) / fused_bytes(32, 56, 64, 256, 1, 1, 0, 2),
    pieces=len({channel * channel_bytes // 32 for channel in range(32)}),
    share_of_library=race.pairs[RACES[2]].ratio if "race" in globals() else None,
)

# %% [markdown]
# The **roofline** shows how fast a kernel with a given number of FLOPs per byte can be at most. Under the sloping line
# memory is the limit; under the flat line arithmetic is. The points are layers of ResNet-50 for 32 images, by your own
# counts. The layers with 1 x 1 taps and few channels are limited by memory, so for them the bytes of bias and ReLU matter
# most.

# %%
from dataclasses import replace

from mlsys.roofline import Roofline

layers = {"3 x 3, 64 channels": RACES[0], "1 x 1, 128 to 512": RACES[1], "3 x 3, 256 channels": RACES[2]}
points = []
for name, (n, size, c, k, taps) in layers.items():
    for how, count in (("fused", fused_bytes), ("three kernels", separate_bytes)):
        op = layer_op((n, size, c, k, taps), "fp16")
        moved = count(n, size, c, k, taps, 1, taps // 2, 2)
        points.append(replace(op, name=f"{name}, {how}", read_count=moved - op.write_count))
axes = Roofline.of(Hardware.get("h200"), "fp16").plot(points)
axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncol=2, fontsize=9)

# %% [markdown]
# The fastest convolution that this course has in Triton goes further in two ways: the TMA (tensor memory accelerator)
# of newer GPUs fetches a whole box of pixels and fills the border with zeros by itself, and each layer has tiles of its
# own.
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
