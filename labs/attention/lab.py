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
#     lab: attention
#     version: "1"
#     withheld: [mlsys.ops]
# ---

# %% [markdown]
# # Attention in one kernel
#
# Attention lets every token of a text look at all the others. Each token has a query, a key and a value. A token
# compares its query with all keys, turns the scores into shares that add up to one, and takes the average of all values
# with these shares. If each of these steps is a kernel, there are three kernels, and between them is a matrix with a
# score for every pair of tokens. For long texts that matrix is larger than everything else together.
#
# The matrix need not exist. A kernel can go over the keys in blocks, keep the largest score, the sum and the output so
# far, and correct all three when a larger score turns up. The result is the same up to rounding.
#
# **The question of this lab: how do three kernels become one that never stores a score, and what does it take to make it
# right for every length, mask and number of heads, and fast?**
#
# You will predict, count, write, measure, and explain:
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with the truth at the end |
# | a | count FLOPs and bytes for three kernels and for one | five formulas |
# | b | take one block into account, by hand | a function in Python |
# | c | attention of one query at a time | a kernel with a fused softmax |
# | d | attention of a block of queries | a kernel for every length and stride |
# | e | let no token see what comes later | a count of blocks, and a kernel that skips the others |
# | f | share keys and values between heads | a kernel that also stores what training needs |
# | g (GPU) | race it | a share of a reference kernel's speed |
# | challenge | the backward pass | two kernels that compute the scores again |
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

from dataclasses import replace

from mlsys import Hardware, grading, ops
from mlsys.grading.compiler_report import compiler_report

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl

scorecard = grading.Scorecard(
    {"a": 10, "b": 10, "c": 10, "d": 20, "e": 15, "f": 10, "g": 5, "g-why": 5, "challenge": 10, "gap": 5},
    gpu=["g"],
    read=["g-why"],
)

# %% [markdown]
# ## Predictions
#
# Before you count anything, note what you expect; a guess will do. You are not graded on how close you come. The point
# is to have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the
# time. So leave the cell alone once you have gone on.
#
# 1. `bytes_ratio`: one head has 4,096 queries, keys and values of 64 numbers each, 2 bytes a number. One way is three
#    kernels: scores, softmax, average. The other is one kernel that reads every input once. How many *times* as many
#    bytes do the three kernels move?
# 2. `doubled`: a fused kernel has one program for every 128 queries, and each program reads all keys and values. The
#    text becomes twice as long. How many *times* as many bytes do all programs read and write together?
# 3. `rescaled`: the scores so far have a maximum of 3, and the sum of their exp(score - 3) is 10. The next score is 5.
#    What are the 10 worth once 5 is the maximum?
# 4. `causal_share`: no token may look at later ones. The scores of 1,024 tokens are computed in blocks of 64 x 64, and
#    blocks in which nothing is visible are skipped. What share of the blocks remains? Give a number between 0 and 1.
# 5. `share_of_library`: what share of the speed of PyTorch's own fused attention will your causal kernel reach with 4,096
#    tokens and heads of 64? Give a number such as 0.1, 0.5 or 1.1. (Question g measures it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: bytes_ratio = None
#: doubled = None
#: rescaled = None
#: causal_share = None
#: share_of_library = None
bytes_ratio = 30
doubled = 2
rescaled = 1.4
causal_share = 0.5
share_of_library = 0.5
### END SOLUTION
predictions = grading.seal(
    bytes_ratio=bytes_ratio,
    doubled=doubled,
    rescaled=rescaled,
    causal_share=causal_share,
    share_of_library=share_of_library,
)

# %% [markdown]
# ## What is computed
#
# There are H **heads**. Each has n queries, m keys and m values, and each of these is a row of d numbers. So q is (H, n,
# d), and k and v are (H, m, d). For every head and every query i,
#
# ```
# x[i, j] = scale * sum over c of  q[i, c] k[j, c]            the scores
# p[i, j] = exp(x[i, j]) / sum over j of exp(x[i, j])         the shares, a softmax of each row
# y[i, c] = sum over j of  p[i, j] v[j, c]                    the average of the values
# ```
#
# with scale = 1 / sqrt(d). A batch of several texts only means more heads, so this lab has no dimension for it.
#
# The exponential of a score above 88 is too large for float32. So every softmax subtracts the row's maximum first, which
# changes nothing: with exp(x - max) in the numerator and in the sum, the shares are the same. The next cell shows both.

# %%
scores = torch.tensor([1.0, 2.0, 3.0]) + 100
print("as written:          ", scores.exp() / scores.exp().sum())
print("less the maximum:    ", (scores - scores.max()).exp() / (scores - scores.max()).exp().sum())

# %% [markdown]
# ## a. Count
#
# There are `heads` heads with as many queries as keys and values, `n`, each of `d` numbers with `itemsize` bytes. Return
# plain ints:
#
# - `product_flops(heads, n, d)`: FLOPs of the two products, q times k and p times v. A multiply and an add are two.
# - `separate_bytes(heads, n, d, itemsize)`: three kernels. The first reads q and k and writes x. The second reads x and
#   writes p. The third reads p and v and writes y.
# - `fused_bytes(heads, n, d, itemsize)`: one kernel that reads q, k and v once and writes y once.
# - `blocked_bytes(heads, n, d, block, itemsize)`: one kernel, in which a program computes `block` queries of one head and
#   reads all keys and values of that head. Count the bytes of all programs. `block` need not divide n.
# - `shared_bytes(heads, kv_heads, n, d, itemsize)`: as `fused_bytes`, but k and v have only `kv_heads` heads, and several
#   heads of queries use the same ones.
#
# Do the counting yourself: `mlsys.ops` contains such counts, so it is removed from the package when the lab is graded,
# and an answer that calls it ends in an error.
#
# <details><summary>Hint 1</summary>
# How many numbers does q have, and how many does x have? Every count here is a sum of these two, a few times each.
# </details>
# <details><summary>Hint 2</summary>
# q, k, v and y have heads n d numbers each, x and p heads n n each. A score takes d multiply-adds, and so does its part
# in the average.
# </details>
# <details><summary>Hint 3</summary>
# FLOPs: <code>4 * heads * n * n * d</code>. Separate: four times the numbers of q and four times those of x. Blocked: q
# and y once, k and v <code>-(-n // block)</code> times. Shared: <code>2 * (heads + kv_heads) * n * d</code> numbers.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-counts", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count"}
def product_flops(heads, n, d):
    """Return the FLOPs of the two products."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("product_flops")
    return 4 * heads * n * n * d
    ### END SOLUTION


def separate_bytes(heads, n, d, itemsize):
    """Return the bytes of three kernels."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("separate_bytes")
    return 4 * heads * (n * d + n * n) * itemsize
    ### END SOLUTION


def fused_bytes(heads, n, d, itemsize):
    """Return the bytes of one kernel that moves everything once."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("fused_bytes")
    return 4 * heads * n * d * itemsize
    ### END SOLUTION


def blocked_bytes(heads, n, d, block, itemsize):
    """Return the bytes of programs that each read all keys and values of a head."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("blocked_bytes")
    programs = -(-n // block)
    return 2 * heads * n * d * (1 + programs) * itemsize
    ### END SOLUTION


def shared_bytes(heads, kv_heads, n, d, itemsize):
    """Return the bytes of one kernel whose heads of queries share keys and values."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("shared_bytes")
    return 2 * (heads + kv_heads) * n * d * itemsize
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
# 3 heads, 5 tokens, 4 numbers: q, k, v and y have 60 numbers each, x and p have 75.
grading.assert_equal(product_flops(3, 5, 4), 1200, what="product_flops(3, 5, 4): twice 75 x 4 multiply-adds")
grading.assert_equal(separate_bytes(3, 5, 4, 2), 1080, what="separate_bytes(3, 5, 4, 2): 4 x 60 + 4 x 75 numbers")
grading.assert_equal(fused_bytes(3, 5, 4, 2), 480, what="fused_bytes(3, 5, 4, 2): 4 x 60 numbers")
grading.assert_equal(blocked_bytes(3, 5, 4, 5, 2), 480, what="blocked_bytes(3, 5, 4, 5, 2): one block")
grading.assert_equal(
    blocked_bytes(3, 5, 4, 2, 2), 960, what="blocked_bytes(3, 5, 4, 2, 2): three blocks, the last of 1"
)
grading.assert_equal(shared_bytes(6, 2, 5, 4, 4), 1280, what="shared_bytes(6, 2, 5, 4, 4): 2 x 120 + 2 x 40 numbers")
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for itemsize in (1, 2, 4):
    kv_heads, n, d = draw.integer(1, 9), draw.integer(2, 300), draw.integer(1, 130)
    heads, block = kv_heads * draw.integer(1, 5), draw.integer(1, n)
    queries, scores = heads * n * d, sum(heads * n for _ in range(n))
    for count, numbers, given in [
        (separate_bytes, (2 * queries + scores) + (scores + scores) + (scores + 2 * queries), (heads, n, d)),
        (fused_bytes, queries + queries + queries + queries, (heads, n, d)),
        (blocked_bytes, 2 * queries + sum(2 * queries for _ in range(0, n, block)), (heads, n, d, block)),
        (shared_bytes, 2 * queries + 2 * queries // (heads // kv_heads), (heads, kv_heads, n, d)),
    ]:
        grading.assert_equal(count(*given, itemsize), numbers * itemsize, what=f"a count of bytes for {given}")
    grading.assert_equal(product_flops(heads, n, d), 2 * (scores * d) + 2 * (scores * d), what="product_flops")
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. Take one block into account
#
# A softmax seems to need the whole row before it can begin: its maximum and its sum. It does not. Keep three things
# about the keys so far, the **state** of a query:
#
# - m, the largest score;
# - l, the sum of exp(x - m);
# - o, the sum of exp(x - m) times value: d numbers, not yet divided by anything.
#
# A new block of scores may bring a larger maximum, m'. Every old term exp(x - m) should then have been exp(x - m'), and
# that is the old term times exp(m - m'). The factor is the same for all of them, so it corrects l and o without the
# scores, which are gone.
#
# Write `absorb(state, scores, values)`. The state is a tuple (m, l, o) of a float, a float and a list of floats; scores is
# a list of floats; and values has a list of floats for each score. It returns the new state. Before the first block the
# state is (-inf, 0.0, [0.0, ..., 0.0]). A score may be minus infinity: its key is not visible. If a block has only such
# scores, the state does not change, and this may happen in the first block, too. The exponential of a number is
# `math.exp`.
#
# <details><summary>Hint 1</summary>
# Take scores 1 and 2, then 3. After the first two m is 2 and l is exp(-1) + 1. Write down l for all three, and divide
# it by the old one as far as you can.
# </details>
# <details><summary>Hint 2</summary>
# First the new maximum, then <code>factor = math.exp(m - new)</code>, then weights <code>math.exp(x - new)</code>. Minus
# infinity less minus infinity is not a number, so leave early if the new maximum is minus infinity.
# </details>
# <details><summary>Hint 3</summary>
# <code>new = max(m, *scores)</code>; <code>l * factor + sum(weights)</code>; and for each of the d numbers <code>o[c] *
# factor + sum(w * value[c] for w, value in zip(weights, values, strict=True))</code>. <code>math.exp(-math.inf)</code> is 0.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-absorb", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "Take one block into account"}
import math


def absorb(state, scores, values):
    """Return the state (m, l, o) after one more block of scores and values."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("absorb")
    m, l, o = state
    new = max(m, *scores)
    if new == -math.inf:
        return state
    factor = math.exp(m - new)
    weights = [math.exp(x - new) for x in scores]
    sums = [o[c] * factor + sum(w * value[c] for w, value in zip(weights, values, strict=True)) for c in range(len(o))]
    return new, l * factor + sum(weights), sums
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
def check_state(found, right, what):
    """Compare a state with the right one, in float64."""
    if not isinstance(found, (tuple, list)) or len(found) != 3 or not isinstance(found[2], (tuple, list)):
        raise grading.WrongAnswer(f"{what}: return a tuple (m, l, o) with a list o")
    numbers = [found[0], found[1], *found[2]]
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise grading.WrongAnswer(f"{what}: m, l and every number of o must be floats")
    right = torch.tensor([right[0], right[1], *right[2]], dtype=torch.float64)
    grading.assert_close(torch.tensor(numbers, dtype=torch.float64), right, what=f"{what}: the list [m, l, *o]")


def check_blocks(scores, values, sizes, what):
    """Absorb blocks of these sizes and compare every state with the plain formula."""
    state, done = (float("-inf"), 0.0, [0.0] * values.shape[1]), 0
    for number, size in enumerate(sizes, start=1):
        state = absorb(state, scores[done : done + size].tolist(), values[done : done + size].tolist())
        done += size
        largest = scores[:done].max()
        weights = torch.where(scores[:done] == -torch.inf, 0.0, (scores[:done] - largest).exp())
        right = float(largest), float(weights.sum()), (weights @ values[:done]).tolist()
        check_state(state, right, f"{what}, after block {number}")


numbers = torch.tensor([1.0, 2.0, 3.0, 3.0, -1.0, 0.0], dtype=torch.float64)
rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, -1.0], [0.5, 0.5], [-3.0, 4.0]], dtype=torch.float64)
check_blocks(numbers, rows, [6], "one block")
check_blocks(numbers, rows, [2, 2, 2], "a maximum that grows, then stays")
check_blocks(numbers.flip(0), rows, [1, 1, 4], "blocks of one")
check_blocks(300 * numbers, rows, [3, 3], "scores of several hundred")
hidden = numbers.clone()
hidden[3:5] = -torch.inf
check_blocks(hidden, rows, [1, 2, 2, 1], "a block in which nothing is visible")
hidden = numbers.clone()
hidden[:2] = -torch.inf
check_blocks(hidden, rows, [2, 2, 2], "a first block in which nothing is visible")
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for spread in (1.0, 40.0):
    sizes = [draw.integer(1, 9) for _ in range(draw.integer(2, 5))]
    drawn_scores = draw.matrix(1, sum(sizes))[0].double() * spread
    drawn_scores[draw.integer(0, sum(sizes) - 2)] = -torch.inf
    check_blocks(drawn_scores, draw.matrix(sum(sizes), draw.integer(1, 6)).double(), sizes, "drawn blocks")
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# ## c. One query at a time
#
# Now in Triton. Begin with one program per query. It goes over the keys in blocks, and in registers it has the state of
# question b: two numbers and a row of D. Scores are never stored.
#
# The **contract** of `row_kernel`:
#
# - Program (i, h), that is `tl.program_id(0)` and `tl.program_id(1)`, computes query i of head h.
# - q and y are (heads, N, D), and k and v are (heads, M, D), all contiguous. Head h of q begins at h N D.
# - M may be any number from 1 up; D is a power of two from 16 to 128; BLOCK is a power of two.
# - All tensors are float32, or all are float16. **Scores and state are float32 in both cases.**
#
# Use no `tl.dot`: with `q[None, :] * k`, a block of BLOCK x D products, and `tl.sum(..., axis=1)`, you get the scores. The
# average is a sum along the other axis.
#
# The lab's own functions launch your kernels, so you write only kernels. They refuse what a kernel does not take, with
# the name of what is wrong. Use `run` to try things out.


# %% nbgrader={"grade": false, "grade_id": "launches", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
SIZES = (16, 32, 64, 128)


def refuse(q, k, v, y, group=1):
    """Raise an error if the tensors do not make an attention that the lab's kernels take."""
    for name, tensor in (("q", q), ("k", k), ("v", v), ("y", y)):
        if tensor.dtype not in (torch.float32, torch.float16) or tensor.dtype != q.dtype:
            raise ValueError(f"{name} is {tensor.dtype}, q is {q.dtype}: give all as float32 or all as float16")
        if tensor.dim() != 3 or 0 in tensor.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}: give (heads, rows, d), each 1 or more")
    heads, _, d = q.shape
    if d not in SIZES:
        raise ValueError(f"a head has {d} numbers: give {', '.join(map(str, SIZES))}")
    if type(group) is not int or group < 1 or heads % group:
        raise ValueError(f"GROUP is {group!r} and there are {heads} heads of queries: it must divide them")
    if k.shape != v.shape or k.shape[0] != heads // group or k.shape[2] != d:
        raise ValueError(
            f"k has shape {tuple(k.shape)} and v {tuple(v.shape)}: give both as ({heads // group}, keys, {d})"
        )
    if y.shape != q.shape:
        raise ValueError(f"y has shape {tuple(y.shape)}: the result has {tuple(q.shape)}")


def launch_rows(kernel, constants, y, q, k, v):
    """Launch one program per query; all tensors are contiguous."""
    refuse(q, k, v, y)
    for name, tensor in (("q", q), ("k", k), ("v", v), ("y", y)):
        if not tensor.is_contiguous():
            raise ValueError(f"{name} has strides {tensor.stride()}: this kernel needs contiguous tensors")
    heads, n, d = q.shape
    kernel[(n, heads)](q, k, v, y, n, k.shape[1], d**-0.5, D=d, **constants)


def launch_attention(kernel, constants, y, q, k, v):
    """Launch one program per BLOCK_Q queries and head, with any strides."""
    refuse(q, k, v, y)
    heads, n, d = q.shape
    grid = (triton.cdiv(n, constants["BLOCK_Q"]), heads)
    strides = (*q.stride(), *k.stride(), *v.stride(), *y.stride())
    kernel[grid](q, k, v, y, n, k.shape[1], d**-0.5, *strides, D=d, **constants)


def launch_tokens_first(kernel, constants, y, q, k, v):
    """Launch with a result in which the heads of a token are neighbors in memory."""
    first = torch.empty_like(y.permute(1, 0, 2), memory_format=torch.contiguous_format).permute(1, 0, 2)
    launch_attention(kernel, constants, first, q, k, v)
    y.copy_(first)


def launch_first_rows(kernel, constants, y, q, k, v):
    """Launch for all queries, and keep the first rows of the result, as many as y has."""
    whole = torch.empty_like(q, memory_format=torch.contiguous_format)
    launch_attention(kernel, constants, whole, q, k, v)
    y.copy_(whole[:, : y.shape[1]])


def launch_both(kernel, constants, y, logsum, q, k, v):
    """Launch one program per BLOCK_Q queries and head; GROUP heads of queries share a head of k and v."""
    refuse(q, k, v, y, constants["GROUP"])
    heads, n, d = q.shape
    grid = (triton.cdiv(n, constants["BLOCK_Q"]), heads)
    strides = (*q.stride(), *k.stride(), *v.stride(), *y.stride())
    kernel[grid](q, k, v, y, logsum, n, k.shape[1], d**-0.5, *strides, D=d, **constants)


def launch_gqa(kernel, constants, y, q, k, v):
    """Launch, and keep y."""
    launch_both(kernel, constants, y, torch.empty(q.shape[:2], device=q.device), q, k, v)


def launch_logsum(kernel, constants, logsum, q, k, v):
    """Launch, and keep L."""
    launch_both(kernel, constants, torch.empty_like(q, memory_format=torch.contiguous_format), logsum, q, k, v)


def launch_dq(kernel, constants, dq, q, k, v, dy, logsum, delta):
    """Launch one program per BLOCK_Q queries and head; all tensors are contiguous."""
    refuse(q, k, v, dq)
    heads, n, d = q.shape
    grid = (triton.cdiv(n, constants["BLOCK_Q"]), heads)
    kernel[grid](q, k, v, dy, logsum, delta, dq, n, k.shape[1], d**-0.5, D=d, **constants)


def launch_dkdv(kernel, constants, both, q, k, v, dy, logsum, delta):
    """Launch one program per BLOCK_K keys and head; `both` has dk and dv, (2, heads, M, D)."""
    refuse(q, k, v, dy)
    heads, n, d = q.shape
    grid = (triton.cdiv(k.shape[1], constants["BLOCK_K"]), heads)
    kernel[grid](q, k, v, dy, logsum, delta, both[0], both[1], n, k.shape[1], d**-0.5, D=d, **constants)


def launch_dq_first(kernel, constants, first, q, *others):
    """Launch for all queries, and keep the gradients of the first ones."""
    dq = torch.empty_like(q)
    launch_dq(kernel, constants, dq, q, *others)
    first.copy_(dq[:, : first.shape[1]])


def launch_dkdv_last(kernel, constants, last, q, k, *others):
    """Launch for all keys, and keep the gradients of the last ones."""
    both = torch.empty(2, *k.shape, dtype=k.dtype, device=k.device)
    launch_dkdv(kernel, constants, both, q, k, *others)
    last.copy_(both[:, :, -last.shape[2] :])


def right_scores(q, k, causal=False):
    """Return all scores in float64; those that a query may not see are minus infinity."""
    k = k.double().repeat_interleave(q.shape[0] // k.shape[0], 0)
    x = q.double() @ k.mT / q.shape[2] ** 0.5
    return x.masked_fill(torch.ones_like(x[0]).triu(1).bool(), -torch.inf) if causal else x


def right_attention(q, k, v, causal=False):
    """Return the result in float64, rounded to the dtype of q."""
    v = v.double().repeat_interleave(q.shape[0] // v.shape[0], 0)
    return (right_scores(q, k, causal).softmax(2) @ v).to(q.dtype)


def rows_of(draw, heads, rows, d, layout="row", **how):
    """Draw a tensor (heads, rows, d) with its memory in some layout; "tokens" has the heads of a row as neighbors."""
    if layout == "tokens":
        return draw.matrix(rows * heads, d, **how).view(rows, heads, d).permute(1, 0, 2)
    return draw.matrix(heads * rows, d, layout=layout, **how).view(heads, rows, d)


def large(draw, heads, kv_heads, n, m, d):
    """Draw q, k and v in float16 whose scores are far above 88, where a plain exponential ends."""
    q, k, v = (rows_of(draw, *side, d, dtype="float16") for side in ((heads, n), (kv_heads, m), (kv_heads, m)))
    return q - 9, (k * torch.linspace(0, 1, m, device=k.device)[:, None] - 4).half(), v


def run(launch, kernel, constants, q, k, v):
    """Launch a kernel with a fresh result, and return it."""
    y = torch.full(q.shape, float("nan"), dtype=q.dtype, device=q.device)
    launch(kernel, constants, y, q, k, v)
    return y


# %% [markdown]
# <details><summary>Hint 1</summary>
# Which of the three numbers of the state are single numbers, and which is a block of D? Write the loop of question b for
# one query, with a block of keys in the place of the list.
# </details>
# <details><summary>Hint 2</summary>
# The last block reaches past the last key. Load 0 there, and set the scores to minus infinity with <code>tl.where(j &lt;
# M, x, float("-inf"))</code>: then they take no part in the maximum, and their exponentials are 0.
# </details>
# <details><summary>Hint 3</summary>
# <code>x = tl.sum(q[None, :] * k, axis=1) * scale</code>; <code>new = tl.maximum(m, tl.max(x, axis=0))</code>;
# <code>factor = tl.exp(m - new)</code>; <code>p = tl.exp(x - new)</code>; <code>l = l * factor + tl.sum(p,
# axis=0)</code>; <code>o = o * factor + tl.sum(p[:, None] * v, axis=0)</code>; <code>m = new</code>. Store o / l. Convert
# q, k and v to float32 when you load them.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "One query at a time"}
@triton.jit
def row_kernel(q_ptr, k_ptr, v_ptr, y_ptr, N, M, scale, D: tl.constexpr, BLOCK: tl.constexpr):
    """Compute one query of one head per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i, h = tl.program_id(0), tl.program_id(1)
    c = tl.arange(0, D)
    q = tl.load(q_ptr + (h * N + i) * D + c).to(tl.float32)
    m = float("-inf")
    l = 0.0
    o = tl.zeros((D,), dtype=tl.float32)
    for start in range(0, M, BLOCK):
        j = start + tl.arange(0, BLOCK)
        rows = (h * M + j)[:, None] * D + c[None, :]
        k = tl.load(k_ptr + rows, mask=(j < M)[:, None], other=0.0).to(tl.float32)
        v = tl.load(v_ptr + rows, mask=(j < M)[:, None], other=0.0).to(tl.float32)
        x = tl.sum(q[None, :] * k, axis=1) * scale
        x = tl.where(j < M, x, float("-inf"))
        new = tl.maximum(m, tl.max(x, axis=0))
        factor = tl.exp(m - new)
        p = tl.exp(x - new)
        l = l * factor + tl.sum(p, axis=0)
        o = o * factor + tl.sum(p[:, None] * v, axis=0)
        m = new
    tl.store(y_ptr + (h * N + i) * D + c, (o / l).to(y_ptr.dtype.element_ty))
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("row_kernel: write it, then delete this line")
### END SOLUTION

# %% [markdown]
# The tests come in steps. Work on the first one that fails. They launch your kernel with bands of NaNs around every
# tensor. Without a GPU, every load and store outside a tensor is reported with its line, program and lane. On a GPU, a
# store outside damages a band and is reported, and a load outside brings a NaN into the result. An element that no
# program writes also shows up as a NaN.

# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)


def check_rows(q, k, v, what, block=16):
    """Compare row_kernel with the formula in float64."""
    what = f"row_kernel, {what}: q {tuple(q.shape)}, k {tuple(k.shape)}, BLOCK {block}"
    grading.check_kernel(
        row_kernel, {"BLOCK": block}, [q, k, v], right_attention(q, k, v), launch=launch_rows, what=what
    )


def three(draw, heads, n, m, d, **how):
    """Draw q, k and v."""
    return [rows_of(draw, heads, rows, d, **how) for rows in (n, m, m)]


check_rows(*three(draw, 1, 1, 16, 16), "one query, one block")
check_rows(*three(draw, 1, 3, 48, 16), "three blocks")
check_rows(*three(draw, 3, 2, 32, 32), "three heads")
check_rows(*three(draw, 2, 3, 21, 16), "keys ragged (their shares must be 0 from key M on)")
check_rows(*three(draw, 1, 2, 5, 64), "fewer keys than a block", block=32)
q, k, v = three(draw, 2, 2, 40, 16)
climb = k.abs() * torch.linspace(0, 5, 40, device=DEVICE)[:, None]
check_rows(q.abs(), climb, v, "a maximum that grows from block to block")
check_rows(*three(draw, 2, 2, 37, 32, dtype="float16"), "float16", block=32)
check_rows(*large(draw, 2, 2, 2, 40, 16), "scores above 88, float16")
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    size, width = 16 << draw.integer(0, 2), 8 << draw.integer(0, 3)
    given = three(draw, draw.integer(1, 3), draw.integer(1, 4), draw.ragged(3, 70), size, dtype=kind)
    check_rows(*given, "other sizes", block=width)
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# ## d. A block of queries
#
# A program with one query reads every key for the sake of a few multiply-adds. With BLOCK_Q queries it reads the keys
# once for all of them, and both products become tiles, which `tl.dot` computes. The state is now a column: m and l have
# BLOCK_Q numbers, and o is BLOCK_Q x D.
#
# The **contract** of `attention_kernel`:
#
# - Program (b, h) computes queries b BLOCK_Q ... (b + 1) BLOCK_Q - 1 of head h.
# - q and y are (heads, N, D), k and v are (heads, M, D), each with any strides. In a model, the heads of a token are often
#   neighbors in memory: then only strides differ.
# - The kernel is right for all N and M from 1 up, and blocks need not divide them. BLOCK_Q and BLOCK_K are powers of two,
#   16 or more. D is 16, 32, 64 or 128.
# - All tensors have the same dtype, float32 or float16. **Scores, state and sums are float32.** Write `tl.dot(...,
#   input_precision="ieee")`; without that option Triton may round float32 inputs to 10 bits. Convert p to the dtype of v
#   before the second product.
#
# In the hints, h is the program's head, i are the numbers of its queries, j those of a block's keys, and c is
# `tl.arange(0, D)`.
#
# <details><summary>Hint 1</summary>
# Start from question c. What was a row of BLOCK scores is now a block of BLOCK_Q x BLOCK_K. Along which axis do maximum
# and sum go? Which of the blocks in <code>o * factor</code> needs a <code>[:, None]</code>?
# </details>
# <details><summary>Hint 2</summary>
# Load k as a block of D x BLOCK_K, with the key along the columns: then <code>tl.dot(q, k)</code> needs no transpose.
# Queries past N may compute whatever they like, as long as nothing is stored for them; their loads need a mask even so.
# </details>
# <details><summary>Hint 3</summary>
# <code>k = tl.load(k_ptr + h * stride_kh + j[None, :] * stride_kn + c[:, None] * stride_kd, mask=(j &lt; M)[None, :],
# other=0.0)</code>; <code>x = tl.where((j &lt; M)[None, :], tl.dot(q, k, input_precision="ieee") * scale,
# float("-inf"))</code>; <code>o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee")</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "A block of queries"}
@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr,
    N, M, scale,
    stride_qh, stride_qn, stride_qd,
    stride_kh, stride_kn, stride_kd,
    stride_vh, stride_vn, stride_vd,
    stride_yh, stride_yn, stride_yd,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head per program."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    h = tl.program_id(1).to(tl.int64)  # 64-bit, for h * stride can pass 2^31
    c = tl.arange(0, D)
    queries = q_ptr + h * stride_qh + i[:, None] * stride_qn + c[None, :] * stride_qd
    q = tl.load(queries, mask=(i < N)[:, None], other=0.0)
    m = tl.full((BLOCK_Q,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    o = tl.zeros((BLOCK_Q, D), dtype=tl.float32)
    for start in range(0, M, BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        keys = k_ptr + h * stride_kh + j[None, :] * stride_kn + c[:, None] * stride_kd
        k = tl.load(keys, mask=(j < M)[None, :], other=0.0)
        x = tl.dot(q, k, input_precision="ieee") * scale
        x = tl.where((j < M)[None, :], x, float("-inf"))
        new = tl.maximum(m, tl.max(x, axis=1))
        factor = tl.exp(m - new)
        p = tl.exp(x - new[:, None])
        l = l * factor + tl.sum(p, axis=1)
        values = v_ptr + h * stride_vh + j[:, None] * stride_vn + c[None, :] * stride_vd
        v = tl.load(values, mask=(j < M)[:, None], other=0.0)
        o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee")
        m = new
    out = y_ptr + h * stride_yh + i[:, None] * stride_yn + c[None, :] * stride_yd
    tl.store(out, (o / l[:, None]).to(y_ptr.dtype.element_ty), mask=(i < N)[:, None])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("attention_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 20, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
draw = grading.Draws("d", DEVICE)


def check_attention(q, k, v, what, blocks=(16, 16), launch=launch_attention):
    """Compare attention_kernel with the formula in float64."""
    constants = dict(zip(("BLOCK_Q", "BLOCK_K"), blocks, strict=True))
    what = f"attention_kernel, {what}: q {tuple(q.shape)}, k {tuple(k.shape)}, {constants}"
    right = right_attention(q, k, v)
    grading.check_kernel(attention_kernel, constants, [q, k, v], right, launch=launch, what=what)


def some(draw, heads, n, m, d, layouts=("row", "row", "row"), **how):
    """Draw q, k and v, each in a layout of its own."""
    return [rows_of(draw, heads, rows, d, one, **how) for rows, one in zip((n, m, m), layouts, strict=True)]


check_attention(*some(draw, 1, 16, 16, 16), "one block")
check_attention(*some(draw, 1, 16, 48, 16), "three blocks of keys")
check_attention(*some(draw, 2, 32, 16, 16), "two blocks of queries, two heads")
check_attention(*some(draw, 1, 11, 32, 16), "queries ragged")
check_attention(*some(draw, 2, 16, 21, 16), "keys ragged (their shares must be 0 from key M on)")
check_attention(*some(draw, 2, 37, 5, 32), "everything ragged", blocks=(16, 32))
check_attention(*large(draw, 1, 1, 20, 50, 16), "scores above 88, float16")
check_attention(*some(draw, 3, 18, 20, 16, ("tokens", "row", "row")), "the heads of a token are neighbors in q")
check_attention(*some(draw, 3, 18, 20, 16, ("row", "tokens", "row")), "the heads of a token are neighbors in k")
check_attention(*some(draw, 3, 18, 20, 16, ("row", "row", "tokens")), "the heads of a token are neighbors in v")
given = some(draw, 2, 18, 20, 16, ("sliced", "column", "offset"))
check_attention(*given, "slices with gaps, and y with the heads of a token as neighbors", launch=launch_tokens_first)
check_attention(*some(draw, 2, 40, 70, 64), "other blocks", blocks=(32, 64))
check_attention(*some(draw, 2, 18, 37, 32, dtype="float16"), "float16")
# Every score is 0, so all shares are equal. Sums climb to several hundred and come back: digits that a short sum drops on
# the way are missing at the end.
climbing = draw.matrix(16, 1024, values="climbing").T.contiguous()[None].half()
still, keys = torch.zeros(1, 16, 16, dtype=torch.float16, device=DEVICE), rows_of(draw, 1, 1024, 16, dtype="float16")
check_attention(still, keys, climbing, "a long sum of float16 products", blocks=(16, 64))
### BEGIN HIDDEN TESTS
for layouts in [("row", "sliced", "tokens"), ("tokens", "offset", "column"), ("column", "tokens", "sliced")]:
    wanted, size = tuple(16 << draw.integer(0, 2) for _ in "qk"), 16 << draw.integer(0, 1)
    given = some(draw, draw.integer(1, 3), draw.ragged(3, 60), draw.ragged(3, 60), size, layouts)
    check_attention(*given, "other strides", wanted)
    check_attention(*given, "other strides, y with the heads of a token as neighbors", wanted, launch_tokens_first)
given = some(draw, 2, draw.ragged(3, 40), draw.ragged(3, 80), 32, dtype="float16")
check_attention(*given, "other sizes in float16", blocks=(16, 32))
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# ## e. No token sees what comes later
#
# A model that writes text must not look ahead. Under a **causal** mask, query i sees the keys j with j <= i, and the
# other scores count as minus infinity. For a program with BLOCK_Q queries there are three kinds of blocks of keys:
#
# - all of its queries see all of the block's keys: no mask is needed;
# - some pairs are visible and others are not, or the block reaches past the last key: the mask is needed;
# - no query of the program sees any key: **the block is neither read nor multiplied**. That is what saves time.
#
# First write `key_blocks(block, block_q, block_k, n, m)`: for program number `block`, return two ints, the number of
# blocks of the first kind and of the second. Queries from n on do not exist. Here block_q and block_k may be any positive
# ints.
#
# Then write `causal_kernel`. Its contract is that of question d, and query i sees the keys 0 to i only. A program must not
# read blocks of the third kind: the tests put NaNs into their values, and 0 times NaN is NaN.
#
# <details><summary>Hint 1</summary>
# Draw a square of 4 x 4 blocks and the diagonal. What is the last key that any query of program 1 sees? And what is the
# last key that all of them see?
# </details>
# <details><summary>Hint 2</summary>
# The program's last query is <code>min((block + 1) * block_q, n) - 1</code>, and it sees as many keys as its number plus
# one, but no more than m. The first query, <code>block * block_q</code>, decides how many blocks all of them see whole.
# </details>
# <details><summary>Hint 3</summary>
# <code>seen = min((block + 1) * block_q, n, m)</code> keys, so <code>-(-seen // block_k)</code> blocks are read; free of a
# mask are <code>min(block * block_q + 1, m) // block_k</code>. In the kernel the loop ends at
# <code>tl.minimum(tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, N), M)</code>, and the mask is <code>(j[None, :] &lt;=
# i[:, None]) &amp; (j &lt; M)[None, :]</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "No token sees what comes later"}
def key_blocks(block, block_q, block_k, n, m):
    """Return how many blocks of keys a program reads without a mask, and how many with one."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("key_blocks")
    seen = min((block + 1) * block_q, n, m)
    free = min(block * block_q + 1, m) // block_k
    return free, -(-seen // block_k) - free
    ### END SOLUTION


@triton.jit
def causal_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr,
    N, M, scale,
    stride_qh, stride_qn, stride_qd,
    stride_kh, stride_kn, stride_kd,
    stride_vh, stride_vn, stride_vd,
    stride_yh, stride_yn, stride_yd,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head per program, each over the keys up to its own number."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    queries = q_ptr + h * stride_qh + i[:, None] * stride_qn + c[None, :] * stride_qd
    q = tl.load(queries, mask=(i < N)[:, None], other=0.0)
    m = tl.full((BLOCK_Q,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    o = tl.zeros((BLOCK_Q, D), dtype=tl.float32)
    seen = tl.minimum(tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, N), M)
    for start in range(0, seen, BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        keys = k_ptr + h * stride_kh + j[None, :] * stride_kn + c[:, None] * stride_kd
        k = tl.load(keys, mask=(j < M)[None, :], other=0.0)
        x = tl.dot(q, k, input_precision="ieee") * scale
        x = tl.where((j[None, :] <= i[:, None]) & (j < M)[None, :], x, float("-inf"))
        new = tl.maximum(m, tl.max(x, axis=1))
        factor = tl.exp(m - new)
        p = tl.exp(x - new[:, None])
        l = l * factor + tl.sum(p, axis=1)
        values = v_ptr + h * stride_vh + j[:, None] * stride_vn + c[None, :] * stride_vd
        v = tl.load(values, mask=(j < M)[:, None], other=0.0)
        o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee")
        m = new
    out = y_ptr + h * stride_yh + i[:, None] * stride_yn + c[None, :] * stride_yd
    tl.store(out, (o / l[:, None]).to(y_ptr.dtype.element_ty), mask=(i < N)[:, None])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("causal_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
draw = grading.Draws("e", DEVICE)


def check_key_blocks(given, right):
    """Compare key_blocks(*given) with the right two numbers."""
    found = key_blocks(*given)
    found = tuple(found) if isinstance(found, list) else found
    if type(found) is not tuple or len(found) != 2:
        raise grading.WrongAnswer(f"key_blocks{given} must be two ints")
    for number, due, kind in zip(found, right, ("without", "with"), strict=True):
        grading.assert_equal(number, due, what=f"key_blocks{given}, blocks {kind} a mask")


def check_causal(q, k, v, what, blocks=(16, 16), launch=launch_attention):
    """Compare causal_kernel with the formula in float64."""
    constants = dict(zip(("BLOCK_Q", "BLOCK_K"), blocks, strict=True))
    what = f"causal_kernel, {what}: q {tuple(q.shape)}, k {tuple(k.shape)}, {constants}"
    right = right_attention(q, k, v, causal=True)
    grading.check_kernel(causal_kernel, constants, [q, k, v], right, launch=launch, what=what)


def check_skipped(q, k, v, rows, blocks):
    """Keep the first rows of a result whose program may not read values past them: NaN is there."""
    constants = dict(zip(("BLOCK_Q", "BLOCK_K"), blocks, strict=True))
    what = f"causal_kernel, the first {rows} queries of {q.shape[1]}, later values are NaN, {constants}"
    right = right_attention(q[:, :rows], k[:, :rows], v[:, :rows], causal=True)
    v[:, rows:] = float("nan")
    grading.check_kernel(causal_kernel, constants, [q, k, v], right, launch=launch_first_rows, what=what)


def three_of(draw, heads, n, m, d, layouts=("row", "row", "row"), **how):
    """Draw q, k and v, each in a layout of its own."""
    return [rows_of(draw, heads, rows, d, one, **how) for rows, one in zip((n, m, m), layouts, strict=True)]


# Blocks of 16 x 16, 64 tokens: one block on the diagonal, and all those before it need no mask.
check_key_blocks((0, 16, 16, 64, 64), (0, 1))
check_key_blocks((3, 16, 16, 64, 64), (3, 1))
check_key_blocks((1, 64, 16, 128, 128), (4, 4))  # the diagonal crosses four blocks of keys
check_key_blocks((1, 16, 64, 64, 64), (0, 1))  # one block of keys holds the whole of it
check_key_blocks((2, 16, 16, 37, 37), (2, 1))  # the last queries are 32 to 36
check_key_blocks((1, 32, 16, 37, 64), (2, 1))  # and they see no key past 36
check_key_blocks((3, 16, 16, 64, 20), (1, 1))  # 20 keys: the second block reaches past the last
check_causal(*three_of(draw, 1, 16, 16, 16), "one block")
check_causal(*three_of(draw, 2, 48, 48, 16), "three blocks of each")
check_causal(*three_of(draw, 1, 37, 37, 16), "ragged")
check_causal(*three_of(draw, 2, 64, 64, 16), "tall blocks", blocks=(32, 16))
check_causal(*three_of(draw, 2, 50, 50, 16), "wide blocks", blocks=(16, 64))
check_causal(*three_of(draw, 1, 20, 45, 16), "more keys than queries")
check_causal(*three_of(draw, 1, 45, 20, 16), "more queries than keys")
check_causal(
    *three_of(draw, 3, 21, 21, 16, ("tokens", "sliced", "column")), "other strides", launch=launch_tokens_first
)
check_causal(*three_of(draw, 2, 37, 37, 32, dtype="float16"), "float16", blocks=(32, 16))
check_skipped(*three_of(draw, 1, 48, 48, 16), 16, (16, 16))
check_skipped(*three_of(draw, 2, 64, 64, 16), 32, (32, 16))
### BEGIN HIDDEN TESTS
for layouts in [("row", "tokens", "sliced"), ("tokens", "column", "row")]:
    wanted, n = tuple(16 << draw.integer(0, 1) for _ in "qk"), draw.ragged(5, 70)
    check_causal(*three_of(draw, 2, n, n, 16, layouts), "other sizes", wanted, launch_tokens_first)
    check_skipped(*three_of(draw, 1, 80, 80, 16, layouts), 32, wanted)
for _ in range(6):
    height, width, n, m = (draw.integer(1, 20) for _ in range(4))
    visible = torch.ones(n, m).tril().bool()
    block = draw.integer(0, -(-n // height) - 1)
    pieces = [visible[block * height : (block + 1) * height, first : first + width] for first in range(0, m, width)]
    whole = sum(bool(piece.all()) and piece.shape[1] == width for piece in pieces)
    check_key_blocks((block, height, width, n, m), (whole, sum(bool(piece.any()) for piece in pieces) - whole))
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# ## f. Heads that share keys and values
#
# When a model writes, it keeps keys and values of all tokens so far, and that takes a lot of memory. So in many models
# several heads of queries share one head of keys and values. This is **grouped-query attention** (GQA). With groups of
# GROUP heads, head h of the queries uses head h // GROUP of k and v.
#
# Training needs one more thing. Its backward pass computes all shares again, and for that it needs, for each query, the
# number L = m + ln(l), since then p[i, j] = exp(x[i, j] - L[i]). So the kernel also stores L.
#
# Write `gqa_kernel`. Its contract is that of `causal_kernel`, and
#
# - k and v have heads / GROUP heads, and GROUP is a constant;
# - `l_ptr` points to L, which is (heads, N), contiguous, in float32.
#
# This kernel will race in question g. So make it fast here. Three things help. `tl.exp2` is the exponential that the
# hardware has; `tl.exp` multiplies by log2(e) first, for every score. If you multiply `scale` by log2(e) = 1.44269504
# once, exp2 does the rest. Then m is log2(e) times the largest score, and L is ln(2) = 0.69314718 times (m + log2(l)).
# Second, only the last blocks need a mask: take two loops, one without and one with it. Third, begin with the programs
# that have most to do, so that none of them is left over at the end: let `tl.program_id(0)` count from the last block of
# queries. (Programs begin in the order of this number, head after head, so this orders those of one head.)
#
# <details><summary>Hint 1</summary>
# Copy your kernel of question e. Only the head in the addresses of k and v changes, and there is one more store. Make it
# right first, then fast.
# </details>
# <details><summary>Hint 2</summary>
# <code>shared = h // GROUP</code> in the addresses of k and v. The loop without a mask ends at the smaller one of the
# program's first query and M, rounded down to a multiple of BLOCK_K. (Question e has the first query plus one: with
# blocks that are powers of two, 16 or more, both give the same.) The loop with a mask begins there. The reversed
# number of a block is <code>tl.num_programs(0) - 1 - tl.program_id(0)</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>for masked in tl.static_range(2):</code> around the loop writes it out twice; <code>if masked:</code> then costs
# nothing. With exp2: <code>x = tl.dot(q, k, input_precision="ieee") * (scale * 1.44269504)</code>, <code>tl.exp2(x -
# new[:, None])</code>. At the end <code>tl.store(l_ptr + h * N + i, (m + tl.log2(l)) * 0.69314718, mask=i &lt; N)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "f-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup"], "title": "Heads that share keys and values"}
@triton.jit
def gqa_kernel(
    q_ptr, k_ptr, v_ptr, y_ptr, l_ptr,
    N, M, scale,
    stride_qh, stride_qn, stride_qd,
    stride_kh, stride_kn, stride_kd,
    stride_vh, stride_vn, stride_vd,
    stride_yh, stride_yn, stride_yd,
    D: tl.constexpr, GROUP: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute BLOCK_Q queries of one head, causal; GROUP heads share k and v. Store y and L."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_Q  # those with most keys begin
    i = first + tl.arange(0, BLOCK_Q)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    shared_k = k_ptr + h // GROUP * stride_kh
    shared_v = v_ptr + h // GROUP * stride_vh
    queries = q_ptr + h * stride_qh + i[:, None] * stride_qn + c[None, :] * stride_qd
    q = tl.load(queries, mask=(i < N)[:, None], other=0.0)
    m = tl.full((BLOCK_Q,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_Q,), dtype=tl.float32)
    o = tl.zeros((BLOCK_Q, D), dtype=tl.float32)
    seen = tl.minimum(tl.minimum(first + BLOCK_Q, N), M)
    free = tl.minimum(first, M) // BLOCK_K * BLOCK_K
    for masked in tl.static_range(2):
        if masked:
            begin, end = free, seen
        else:
            begin, end = 0, free
        for start in range(begin, end, BLOCK_K):
            j = start + tl.arange(0, BLOCK_K)
            keys = shared_k + j[None, :] * stride_kn + c[:, None] * stride_kd
            values = shared_v + j[:, None] * stride_vn + c[None, :] * stride_vd
            if masked:
                k = tl.load(keys, mask=(j < M)[None, :], other=0.0)
                v = tl.load(values, mask=(j < M)[:, None], other=0.0)
            else:
                k = tl.load(keys)
                v = tl.load(values)
            x = tl.dot(q, k, input_precision="ieee") * (scale * 1.44269504)
            if masked:
                x = tl.where((j[None, :] <= i[:, None]) & (j < M)[None, :], x, float("-inf"))
            new = tl.maximum(m, tl.max(x, axis=1))
            factor = tl.exp2(m - new)
            p = tl.exp2(x - new[:, None])
            l = l * factor + tl.sum(p, axis=1)
            o = tl.dot(p.to(v.dtype), v, o * factor[:, None], input_precision="ieee")
            m = new
    out = y_ptr + h * stride_yh + i[:, None] * stride_yn + c[None, :] * stride_yd
    tl.store(out, (o / l[:, None]).to(y_ptr.dtype.element_ty), mask=(i < N)[:, None])
    tl.store(l_ptr + h * N + i, (m + tl.log2(l)) * 0.69314718, mask=i < N)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("gqa_kernel: write it, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup"]}
draw = grading.Draws("f", DEVICE)


def check_gqa(q, k, v, what, blocks=(16, 16), both=True):
    """Compare the results of gqa_kernel, or only y, with the formulas in float64."""
    constants = {"GROUP": q.shape[0] // k.shape[0]} | dict(zip(("BLOCK_Q", "BLOCK_K"), blocks, strict=True))
    what = f"gqa_kernel, {what}: q {tuple(q.shape)}, k {tuple(k.shape)}, {constants}"
    right = right_attention(q, k, v, causal=True)
    grading.check_kernel(gqa_kernel, constants, [q, k, v], right, launch=launch_gqa, what=what)
    if not both:
        return
    logsum = right_scores(q, k, causal=True).logsumexp(2).float()
    grading.check_kernel(gqa_kernel, constants, [q, k, v], logsum, launch=launch_logsum, what=f"{what}, L")


def grouped(draw, heads, kv_heads, n, m, d, layouts=("row", "row", "row"), **how):
    """Draw q with `heads` heads, and k and v with `kv_heads`."""
    sides = ((heads, n), (kv_heads, m), (kv_heads, m))
    return [rows_of(draw, *side, d, one, **how) for side, one in zip(sides, layouts, strict=True)]


check_gqa(*grouped(draw, 2, 2, 16, 16, 16), "groups of one")
check_gqa(*grouped(draw, 4, 2, 16, 16, 16), "two groups of two")
check_gqa(*grouped(draw, 3, 1, 48, 48, 16), "one group of three, three blocks")
check_gqa(*grouped(draw, 6, 3, 37, 37, 16), "ragged")
check_gqa(*grouped(draw, 2, 1, 60, 60, 16), "tall blocks", blocks=(32, 16))
check_gqa(*grouped(draw, 2, 1, 60, 60, 16), "wide blocks", blocks=(16, 32))
check_gqa(*grouped(draw, 2, 1, 50, 20, 16), "more queries than keys")
check_gqa(*grouped(draw, 4, 2, 21, 30, 16, ("tokens", "sliced", "column")), "other strides")
check_gqa(*grouped(draw, 4, 1, 37, 37, 32, dtype="float16"), "float16", blocks=(32, 16))
check_gqa(*large(draw, 2, 1, 40, 40, 16), "scores above 88, float16")
# All shares of a query are equal, and so are all values. Past 256, a sum in float16 has no room for the tenth that each step
# of 16 keys brings.
still, keys = torch.zeros(1, 1024, 16, dtype=torch.float16, device=DEVICE), rows_of(draw, 1, 1024, 16, dtype="float16")
values = torch.full_like(keys, 0.50625)
check_gqa(still, keys, values, "a long sum of float16 products", blocks=(256, 16), both=False)
### BEGIN HIDDEN TESTS
for layouts in [("row", "tokens", "sliced"), ("tokens", "row", "offset")]:
    parts, each, n = draw.integer(1, 3), draw.integer(2, 4), draw.ragged(5, 70)
    wanted = tuple(16 << draw.integer(0, 1) for _ in "qk")
    check_gqa(*grouped(draw, parts * each, parts, n, n, 16, layouts), "other sizes", wanted)
check_gqa(*grouped(draw, 4, 2, draw.ragged(5, 50), draw.ragged(5, 50), 32, dtype="float16"), "other sizes in float16")
### END HIDDEN TESTS
scorecard.passed("f")

# %% [markdown]
# **Do your kernels compile for a GPU?** The interpreter accepts some things that the compiler refuses, such as a variable
# that is an int before a loop and a block in the loop. The next cell compiles your kernels of questions c to f for an
# A100, and shows how many registers a thread needs and how many bytes do not fit in them. It needs no GPU and runs for
# about ten seconds.

# %%
q, y = (torch.empty(8, 2048, 64, dtype=torch.float16, device="meta") for _ in range(2))
k, v = (torch.empty(2, 2048, 64, dtype=torch.float16, device="meta") for _ in range(2))
own = (q, torch.empty_like(q), torch.empty_like(q))
square = {"BLOCK_Q": 64, "BLOCK_K": 64, "num_warps": 4, "num_stages": 2}
for kernel, launch, constants, inputs in [
    (row_kernel, launch_rows, {"BLOCK": 64, "num_warps": 4}, own),
    (attention_kernel, launch_attention, square, own),
    (causal_kernel, launch_attention, square, own),
    (gqa_kernel, launch_gqa, square | {"GROUP": 4}, (q, k, v)),
]:
    [report] = compiler_report(kernel, [constants], y, *inputs, launch=launch, capabilities=[80])
    print(f"{kernel.__name__}: {report.registers} registers, {report.spilled_bytes} bytes spilled")

# %% [markdown]
# ## g. The race (GPU, compute capability 8.0 or more)
#
# `grading.speed` runs `gqa_kernel` with your `config` on three shapes in float16, and compares every element with the
# library's. Then it times the two in turn, for several rounds: yours, the other, the other, yours. Here the other one
# is PyTorch's own fused attention. When the lab is graded, your kernel runs against a Triton kernel that the lab's
# authors wrote, on the same GPU, in the same run. You get all the points from 0.8 of that kernel's speed on, none
# below 0.1, and a share in between. Without a GPU the cell compiles your kernel with your config, says what it needs,
# and ends with `NeedsGpu`; the points wait. (Triton uses tensor cores from compute capability 8.0 on, so you need an
# A100, an L4, an H100 or the like.)
#
# Write `config((heads, kv_heads, n, d), dtype)`. It returns a dict of four ints: `BLOCK_Q`, `BLOCK_K`, `num_warps` and
# `num_stages`. dtype is `"fp16"`.
#
# A larger BLOCK_Q means fewer passes over keys and values. But o and the scores live in registers: BLOCK_Q (d + BLOCK_K)
# numbers of 4 bytes, spread over 32 num_warps threads with at most 255 registers each. And num_stages
# blocks of k and of v, 4 num_stages BLOCK_K d bytes, must fit the shared memory: 163 KiB on an A100, 99 KiB on an L4. On
# an H100, with 227 KiB, the 2 BLOCK_Q d bytes of q are there too.
#
# <details><summary>Hint 1</summary>
# How many registers does a thread need for o and the scores with BLOCK_Q = 128, BLOCK_K = 64, d = 64 and 4 warps? With 8?
# </details>
# <details><summary>Hint 2</summary>
# Let o and the scores take about half of the registers: p in 16 bits, the next scores and the addresses need the others.
# Try 8 warps for d = 128, and 4 for d = 64.
# </details>
# <details><summary>Hint 3</summary>
# Begin with 128 x 64 and 3 stages for d = 64, and with 128 x 64, 8 warps and 2 stages for d = 128.
# </details>

# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(64, 16, 1000, 64), (32, 8, 4096, 64), (32, 8, 4096, 128)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


def race_inputs(draw, shape, dtype):
    """Return random q, k and v."""
    heads, kv_heads, n, d = shape
    kind = {"fp32": "float32", "fp16": "float16"}[dtype]
    return tuple(rows_of(draw, count, n, d, dtype=kind) for count in (heads, kv_heads, kv_heads))


def launch_race(kernel, constants, y, q, k, v):
    """Launch as launch_gqa does, with the group that the shapes have."""
    launch_gqa(kernel, dict(constants) | {"GROUP": q.shape[0] // k.shape[0]}, y, q, k, v)


def right_race(q, k, v):
    """Return the library's result."""
    fused = torch.nn.functional.scaled_dot_product_attention
    return fused(q[None], k[None], v[None], is_causal=True, enable_gqa=True)[0].contiguous()


def race_op(shape, dtype):
    """Return the operation with half the FLOPs, as the mask leaves them; no kernel can be faster than its arithmetic."""
    heads, kv_heads, n, d = shape
    op = ops.attention(batch=1, heads=heads, kv_heads=kv_heads, seq=n, head_dim=d, dtype=dtype)
    return replace(op, flop_count=op.flop_count // 2)


# %% nbgrader={"grade": false, "grade_id": "g-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup", "f"], "title": "The race"}
def config(shape, dtype):
    """Return block sizes, warps and stages for gqa_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("config")
    wide = shape[3] > 64
    return {"BLOCK_Q": 128, "BLOCK_K": 64, "num_warps": 8 if wide else 4, "num_stages": 2 if wide else 3}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "g-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "speed", "needs": ["setup", "f"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    ask_ptr, key_ptr, give_ptr, out_ptr, log_ptr, count, many, factor_in,
    ask_h, ask_n, ask_d, key_h, key_n, key_d, give_h, give_n, give_d, out_h, out_n, out_d,
    BLOCK_K: tl.constexpr, BLOCK_Q: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    low = (tl.num_programs(0) - 1 - tl.program_id(0)) * BLOCK_Q
    head = tl.program_id(1).to(tl.int64)
    row, along = low + tl.arange(0, BLOCK_Q), tl.arange(0, D)
    key_at = key_ptr + head // GROUP * key_h
    give_at = give_ptr + head // GROUP * give_h
    where = ask_ptr + head * ask_h + row[:, None] * ask_n + along[None, :] * ask_d
    ask = tl.load(where, mask=(row < count)[:, None], other=0.0)
    top = tl.full((BLOCK_Q,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_Q,), tl.float32)
    mean = tl.zeros((BLOCK_Q, D), tl.float32)
    last = tl.minimum(tl.minimum(low + BLOCK_Q, count), many)
    whole = tl.minimum(low, many) // BLOCK_K * BLOCK_K
    for part in tl.static_range(2):
        if part == 0:
            one, other = 0, whole
        else:
            one, other = whole, last
        for at in range(one, other, BLOCK_K):
            col = at + tl.arange(0, BLOCK_K)
            key_where = key_at + col[None, :] * key_n + along[:, None] * key_d
            give_where = give_at + col[:, None] * give_n + along[None, :] * give_d
            if part == 0:
                key, give = tl.load(key_where), tl.load(give_where)
            else:
                key = tl.load(key_where, mask=(col < many)[None, :], other=0.0)
                give = tl.load(give_where, mask=(col < many)[:, None], other=0.0)
            score = tl.dot(ask, key, input_precision="ieee") * (factor_in * 1.44269504)
            if part == 1:
                score = tl.where((col[None, :] <= row[:, None]) & (col < many)[None, :], score, float("-inf"))
            higher = tl.maximum(top, tl.max(score, axis=1))
            shrink = tl.exp2(top - higher)
            share = tl.exp2(score - higher[:, None])
            total = total * shrink + tl.sum(share, axis=1)
            mean = tl.dot(share.to(give.dtype), give, mean * shrink[:, None], input_precision="ieee")
            top = higher
    to = out_ptr + head * out_h + row[:, None] * out_n + along[None, :] * out_d
    tl.store(to, (mean / total[:, None]).to(out_ptr.dtype.element_ty), mask=(row < count)[:, None])
    tl.store(log_ptr + head * count + row, (top + tl.log2(total)) * 0.69314718, mask=row < count)


def reference_config(shape, dtype):
    warps, stages = (8, 2) if shape[3] > 64 else (4, 3)
    return {"BLOCK_Q": 128, "BLOCK_K": 64, "num_warps": warps, "num_stages": stages}


rival = (reference_kernel, reference_config)
### END HIDDEN TESTS
race = grading.speed(
    gqa_kernel,
    config,
    shapes=RACES,
    inputs=race_inputs,
    launch=launch_race,
    expected=right_race,
    dtype="fp16",
    reference=rival,
    capability=(8, 0),
    op=race_op,
)
scorecard.passed("g", race.fraction)
race

# %% [markdown]
# **Say why.** Answer in three to six sentences. Take the last shape of `RACES` and your config. How many registers of a
# thread do o and a block of scores take? How many FLOPs per byte does a program do while it goes over the keys, if each
# block of k and v comes from memory: what does BLOCK_Q have to do with it, and what does BLOCK_K? An H200 does about 200
# float16 FLOPs in the time in which its memory delivers a byte; is that what limits your kernel, and what else might? A
# person reads your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "g-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g-why", "role": "written", "needs": ["setup"], "title": "Say why"}
# ### BEGIN SOLUTION
# #: *Your answer*
# With 128 queries, 64 keys and d = 128, o has 16,384 numbers and the scores 8,192; over 256 threads that is 64 + 32 = 96
# registers of 255. For one block of keys a program does 4 x 128 x 64 x 128 FLOPs and loads 2 x 64 x 128 numbers of 2 bytes,
# so 128 FLOPs per byte: as many as there are queries, whatever BLOCK_K is. That is below 200, so if every program fetched
# its keys from memory, memory would limit it; but the keys and values of a head are 2 MiB and stay in the L2 cache, where
# the next program finds them. What limits the kernel then is that products, exponentials and copies wait for each other: the
# exponentials of a block use none of the tensor cores, and nothing else is computed meanwhile unless warps take turns.
# ### END SOLUTION

# %% [markdown]
# ## Challenge: the backward pass
#
# Training needs the gradients of a number with respect to q, k and v, given dy, its gradient with respect to y. The usual
# formulas read the shares p. Storing p would bring the big matrix back, so it is computed again, from q, k and L:
#
# ```
# p[i, j]  = exp(x[i, j] - L[i])                       0 where j > i
# dp[i, j] = sum over c of  dy[i, c] v[j, c]
# ds[i, j] = p[i, j] (dp[i, j] - delta[i])             with delta[i] = sum over c of  dy[i, c] y[i, c]
# dq[i, c] = scale * sum over j of  ds[i, j] k[j, c]
# dk[j, c] = scale * sum over i of  ds[i, j] q[i, c]
# dv[j, c] = sum over i of  p[i, j] dy[i, c]
# ```
#
# dq is a sum over keys, and dk and dv are sums over queries. So there are two kernels: in `dq_kernel` a program has BLOCK_Q
# queries and goes over the keys, and in `dkdv_kernel` it has BLOCK_K keys and goes over the queries. No two programs add
# to the same number, so no atomics are needed. The contract:
#
# - Everything is causal and contiguous; q, dy and dq are (heads, N, D); k, v, dk and dv are (heads, M, D); L and delta are
#   (heads, N) in float32. There are no groups.
# - Program (b, h) has block b of head h. N and M may be anything from 1 up; D, BLOCK_Q and BLOCK_K are powers of two, 16 or
#   more.
# - The dtype is float32 or float16; sums are float32. For a product, p and ds are converted to the inputs' dtype, as
#   tensor cores need it. Every `tl.dot` needs `input_precision="ieee"`, as in question d (only a GPU shows the
#   difference); the hints leave it out for brevity.
# - A kernel must skip blocks in which nothing is visible: the tests put NaNs there. A key that no query sees has gradients
#   of 0, and they must be stored.
#
# <details><summary>Hint 1</summary>
# <code>dq_kernel</code> is your causal kernel without a maximum: L takes its place. For <code>dkdv_kernel</code>, which
# queries see a key? Where does the loop begin?
# </details>
# <details><summary>Hint 2</summary>
# In <code>dkdv_kernel</code>, work with blocks of BLOCK_K x BLOCK_Q, keys down and queries across: then p and ds are
# ready to be multiplied by dy and q. If <code>first_key</code> is the program's first key, the loop begins at
# <code>first_key // BLOCK_Q * BLOCK_Q</code>. Masked pairs must have p = 0.
# </details>
# <details><summary>Hint 3</summary>
# <code>p = tl.where(visible, tl.exp(x - L[None, :]), 0.0)</code>; <code>dv = tl.dot(p.to(dy.dtype), dy, dv)</code>;
# <code>dp = tl.dot(v, dy_t)</code> with dy loaded once more as D x BLOCK_Q, or <code>tl.trans(dy)</code>; <code>ds = p * (dp
# - delta[None, :])</code>; <code>dk = tl.dot(ds.to(q.dtype), q, dk)</code>; store <code>dk * scale</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup"], "title": "Challenge: the backward pass"}
@triton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, dy_ptr, l_ptr, delta_ptr, dq_ptr, N, M, scale,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of BLOCK_Q queries of one head."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i = tl.program_id(0) * BLOCK_Q + tl.arange(0, BLOCK_Q)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    mine = (h * N + i)[:, None] * D + c[None, :]
    q = tl.load(q_ptr + mine, mask=(i < N)[:, None], other=0.0)
    dy = tl.load(dy_ptr + mine, mask=(i < N)[:, None], other=0.0)
    logsum = tl.load(l_ptr + h * N + i, mask=i < N, other=0.0)
    delta = tl.load(delta_ptr + h * N + i, mask=i < N, other=0.0)
    dq = tl.zeros((BLOCK_Q, D), dtype=tl.float32)
    seen = tl.minimum(tl.minimum((tl.program_id(0) + 1) * BLOCK_Q, N), M)
    for start in range(0, seen, BLOCK_K):
        j = start + tl.arange(0, BLOCK_K)
        theirs = (h * M + j)[:, None] * D + c[None, :]
        k = tl.load(k_ptr + theirs, mask=(j < M)[:, None], other=0.0)
        v = tl.load(v_ptr + theirs, mask=(j < M)[:, None], other=0.0)
        x = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        visible = (j[None, :] <= i[:, None]) & (j < M)[None, :] & (i < N)[:, None]
        p = tl.exp(tl.where(visible, x - logsum[:, None], float("-inf")))
        dp = tl.dot(dy, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + mine, (dq * scale).to(dq_ptr.dtype.element_ty), mask=(i < N)[:, None])
    ### END SOLUTION


@triton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, dy_ptr, l_ptr, delta_ptr, dk_ptr, dv_ptr, N, M, scale,
    D: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of BLOCK_K keys and values of one head."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    j = tl.program_id(0) * BLOCK_K + tl.arange(0, BLOCK_K)
    h = tl.program_id(1).to(tl.int64)
    c = tl.arange(0, D)
    mine = (h * M + j)[:, None] * D + c[None, :]
    k = tl.load(k_ptr + mine, mask=(j < M)[:, None], other=0.0)
    v = tl.load(v_ptr + mine, mask=(j < M)[:, None], other=0.0)
    dk = tl.zeros((BLOCK_K, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_K, D), dtype=tl.float32)
    for start in range(tl.program_id(0) * BLOCK_K // BLOCK_Q * BLOCK_Q, N, BLOCK_Q):
        i = start + tl.arange(0, BLOCK_Q)
        theirs = (h * N + i)[:, None] * D + c[None, :]
        q = tl.load(q_ptr + theirs, mask=(i < N)[:, None], other=0.0)
        dy = tl.load(dy_ptr + theirs, mask=(i < N)[:, None], other=0.0)
        logsum = tl.load(l_ptr + h * N + i, mask=i < N, other=0.0)
        delta = tl.load(delta_ptr + h * N + i, mask=i < N, other=0.0)
        x = tl.dot(k, tl.trans(q), input_precision="ieee") * scale
        visible = (j[:, None] <= i[None, :]) & (i < N)[None, :] & (j < M)[:, None]
        p = tl.exp(tl.where(visible, x - logsum[None, :], float("-inf")))
        dv = tl.dot(p.to(dy.dtype), dy, dv, input_precision="ieee")
        dp = tl.dot(v, tl.trans(dy), input_precision="ieee")
        ds = p * (dp - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")
    tl.store(dk_ptr + mine, (dk * scale).to(dk_ptr.dtype.element_ty), mask=(j < M)[:, None])
    tl.store(dv_ptr + mine, dv.to(dv_ptr.dtype.element_ty), mask=(j < M)[:, None])
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("dq_kernel and dkdv_kernel: write them, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup"]}
draw = grading.Draws("challenge", DEVICE)


def gradients(q, k, v, dy):
    """Return what the kernels get, L and delta, and what they must give, by PyTorch's own gradients in float64."""
    exact = [tensor.double().requires_grad_() for tensor in (q, k, v)]
    x = right_scores(exact[0], exact[1], causal=True)
    y = x.softmax(2) @ exact[2]
    y.backward(dy.double())
    delta = (dy.double() * y).sum(2).detach().float()
    dq, dk, dv = (tensor.grad.to(q.dtype) for tensor in exact)
    return x.logsumexp(2).detach().float(), delta, dq, torch.stack([dk, dv])


def check_backward(heads, n, m, d, what, blocks=(16, 16), dtype="float32"):
    """Compare both kernels with PyTorch's gradients."""
    q, k, v, dy = (rows_of(draw, heads, rows, d, dtype=dtype) for rows in (n, m, m, n))
    logsum, delta, dq, both = gradients(q, k, v, dy)
    constants = dict(zip(("BLOCK_Q", "BLOCK_K"), blocks, strict=True))
    inputs = [q, k, v, dy, logsum, delta]
    what = f"{what}: q {tuple(q.shape)}, k {tuple(k.shape)}, {constants}"
    grading.check_kernel(dq_kernel, constants, inputs, dq, launch=launch_dq, what=f"dq_kernel, {what}")
    grading.check_kernel(dkdv_kernel, constants, inputs, both, launch=launch_dkdv, what=f"dkdv_kernel, {what}")


def check_skipped_backward(heads, n, rows, blocks):
    """Put NaN where a program may not read: keys past the first rows, and queries before the others."""
    q, k, v, dy = (rows_of(draw, heads, n, 16) for _ in range(4))
    logsum, delta, dq, both = gradients(q, k, v, dy)
    constants = dict(zip(("BLOCK_Q", "BLOCK_K"), blocks, strict=True))
    later, before = [k.clone(), v.clone()], [q.clone(), dy.clone()]
    for tensor in later:
        tensor[:, rows:] = float("nan")
    for tensor in before:
        tensor[:, :rows] = float("nan")
    what = f"of {n} queries and keys, {constants}"
    inputs, right = [q, *later, dy, logsum, delta], dq[:, :rows].contiguous()
    said = f"dq_kernel, the first {rows} {what}: later keys and values are NaN"
    grading.check_kernel(dq_kernel, constants, inputs, right, launch=launch_dq_first, what=said)
    inputs, right = [before[0], k, v, before[1], logsum, delta], both[:, :, rows:].contiguous()
    said = f"dkdv_kernel, all but the first {rows} {what}: earlier queries and gradients are NaN"
    grading.check_kernel(dkdv_kernel, constants, inputs, right, launch=launch_dkdv_last, what=said)


check_backward(1, 16, 16, 16, "one block")
check_backward(2, 48, 48, 16, "three blocks, two heads")
check_backward(1, 37, 37, 16, "ragged")
check_backward(1, 50, 50, 16, "tall blocks", blocks=(32, 16))
check_backward(2, 50, 50, 16, "wide blocks", blocks=(16, 32))
check_backward(1, 21, 53, 16, "keys that no query sees")
check_backward(1, 53, 21, 16, "more queries than keys")
check_backward(2, 37, 37, 32, "float16", blocks=(32, 32), dtype="float16")
check_skipped_backward(1, 48, 16, (16, 16))
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    n, m, wanted = draw.ragged(5, 70), draw.ragged(5, 70), tuple(16 << draw.integer(0, 1) for _ in "qk")
    check_backward(draw.integer(1, 3), n, m, 16, "other sizes", wanted, kind)
check_skipped_backward(2, 64, 32, tuple(16 << draw.integer(0, 1) for _ in "qk"))
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# A formula is a prediction. Here are four cases in which a count of what really happens gives another number.


# %%
def show_gap(case, what, predicted, counted):
    print(f"case {case}, {what}: predicted {predicted:,}, counted {counted:,}, {counted / predicted:.2f} times as many")


# 1. One head, 4,096 tokens, d = 64, 2 bytes: every tensor moves once. Counted: what programs of 128 queries read and write.
show_gap(1, "bytes", 4 * 4096 * 64 * 2, 2 * (2 * 4096 * 64 + 32 * 2 * 4096 * 64))
# 2. Scores of one head with 1,024 tokens under a causal mask. Counted: those in blocks of 128 x 128 that are not skipped.
show_gap(2, "scores", 1024 * 1025 // 2, sum(row + 1 for row in range(8)) * 128 * 128)
# 3. Scores of one head with 1,000 tokens, no mask. Counted: those in blocks of 128 x 128.
show_gap(3, "scores", 1000 * 1000, triton.cdiv(1000, 128) ** 2 * 128 * 128)
# 4. Microseconds for 64 heads of 4,096 tokens, d = 64, at 989 TFLOP/s. Counted: products and exponentials one
#    after the other, as in a kernel whose warps all do the same at the same time; 3.9 million exponentials take 1 us.
products = round(4 * 64 * 4096**2 * 64 / 989e6)
show_gap(4, "microseconds", products, products + round(64 * 4096**2 / 3.9e6))

# %% [markdown]
# (The two rates of case 4 are those of an H100 in float16, as the authors of FlashAttention-3 give them.)
#
# Name the cause of each gap. The choices:
#
# - `"passes"`: keys and values are read again for every block of queries.
# - `"diagonal"`: some blocks are only half visible, and are computed whole.
# - `"ragged"`: the last blocks reach past the last token, and are computed there as well.
# - `"exponentials"`: the softmax takes time on other units, and the tensor cores wait for it.
# - `"matrix"`: the scores are written to memory and read again.
# - `"rounding"`: shares in 16 bits lose digits.
#
# <details><summary>Hint 1</summary>
# Two of the six causes do not fit any case: nothing here stores scores, and no count depends on digits. Which case is about
# time?
# </details>
# <details><summary>Hint 2</summary>
# Cases 2 and 3 both compute more scores than are needed. In which of them do the blocks divide the number of tokens?
# </details>
# <details><summary>Hint 3</summary>
# Case 1: keys and values are read 32 times, not once. Case 2: 36 blocks of 64, of which 8 are on the diagonal. Case 3:
# (1024 / 1000) squared is 1.05. Case 4: one exponential for each 256 FLOPs.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and count differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
#: cause_4 = None
cause_1 = "passes"
cause_2 = "diagonal"
cause_3 = "ragged"
cause_4 = "exponentials"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3, cause_4), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the six")
    choices = ("passes", "diagonal", "ragged", "exponentials", "matrix", "rounding")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("passes", "diagonal", "ragged", "exponentials")
for number, (said, true) in enumerate(zip((cause_1, cause_2, cause_3, cause_4), key, strict=True), start=1):
    assert said == true, f"cause_{number}: {said!r} does not make this gap; do the sums of the hints"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted and measured:

# %%
kept = [sum(key_blocks(block, 64, 64, 1024, 1024)) for block in range(16)]
grading.compare(
    predictions,
    bytes_ratio=separate_bytes(1, 4096, 64, 2) / fused_bytes(1, 4096, 64, 2),
    doubled=blocked_bytes(1, 8192, 64, 128, 2) / blocked_bytes(1, 4096, 64, 128, 2),
    rescaled=absorb((3.0, 10.0, [0.0]), [5.0], [[0.0]])[1] - 1,
    causal_share=sum(kept) / 16**2,
    share_of_library=race.pairs[RACES[1]].ratio if "race" in globals() else None,
)

# %% [markdown]
# The **roofline** shows how fast a kernel with a given number of FLOPs per byte can be at most. Under the sloping line
# memory is the limit; under the flat line arithmetic is. The points are one head of 4,096 tokens, by your own counts: with
# three kernels, with one whose programs each read all keys, and with one that moves everything once.

# %%
from mlsys.roofline import Roofline

points = []
for name, moved in {
    "three kernels": separate_bytes(1, 4096, 64, 2),
    "blocks of 128 queries": blocked_bytes(1, 4096, 64, 128, 2),
    "everything once": fused_bytes(1, 4096, 64, 2),
}.items():
    op = ops.attention(batch=1, heads=1, seq=4096, head_dim=64, dtype="fp16")
    points.append(replace(op, name=name, flop_count=product_flops(1, 4096, 64), read_count=moved - op.write_count))
axes = Roofline.of(Hardware.get("h200"), "fp16").plot(points)
axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncol=2, fontsize=9)

# %% [markdown]
# The fastest attention that this course has in Triton goes further in two ways: the TMA (tensor memory accelerator) of
# newer GPUs fetches the blocks, and heads take turns in groups whose keys and values fit the L2 cache together. Kernels
# that reach the last tenths let one group of warps compute exponentials while another multiplies.
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
