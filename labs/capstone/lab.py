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
#     lab: capstone
#     version: "1"
#     withheld: [mlsys.costs, mlsys.formulas, mlsys.models.kv_cache, mlsys.models.model, mlsys.models.transformer, mlsys.ops]
# ---

# %% [markdown]
# # Capstone: one token of GPT-2
#
# When a language model writes for one reader, it makes one token at a time. For each of them it reads every weight that
# it has, and uses it once. GPT-2 with 124 million parameters does a quarter of a GFLOP for a token, which a large GPU
# does in less than a microsecond. It reads a quarter of a GB, which takes the same GPU some sixty microseconds. Called
# from Python, one operation after the other, the token takes milliseconds.
#
# **The question of this lab: how fast can a GPU make one token, what keeps a program from that speed, and how do you
# write the kernels that get there?**
#
# Everything in this course comes together here: counting bytes, the roofline, reductions, fusion, attention with an
# online softmax, launches, and finally a kernel that goes from layer to layer without ending.
#
# | | what you do | what comes out |
# |---|---|---|
# | predictions | guess five numbers | compared with the truth at the end |
# | a | count the bytes of a token | three formulas |
# | b | count kernels and what lies between them | three formulas |
# | c | normalize and multiply | queries, keys and values in one kernel |
# | d | attend to the cache | two kernels, with the tokens of a head split over programs |
# | e | the MLP | two kernels, with GELU and the residual |
# | f | a token of a real model | your kernels write text |
# | g (GPU) | race it on GPT-2's shapes | a share of a reference kernel's speed |
# | challenge | the persistent kernel | a whole token in one launch |
# | gap | explain why prediction and count differ | four causes |
#
# Plan for four to five hours. You should have written a layer normalization and a softmax of long rows, as in the lab on
# fusion, and read the chapter on attention. Without a GPU you can finish everything except the question marked (GPU).
# Hints cost no points: each question has three, from a nudge to nearly the whole answer.
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

from mlsys import grading
from mlsys.grading.compiler_report import compiler_report
from mlsys.models import decoder

DEVICE = grading.use_device()  # before triton is imported: without a GPU it turns on Triton's interpreter

import torch
import triton
import triton.language as tl

scorecard = grading.Scorecard(
    {
        "a": 10, "b": 10, "c": 15, "d": 20, "e": 15, "f": 10, "g": 5, "g-why": 5, "challenge": 5, "gap": 5,
    },
    gpu=["g"],
    read=["g-why"],
)  # fmt: skip

# %% [markdown]
# ## Predictions
#
# Before you count anything, note what you expect; a guess will do. You are not graded on how close you come. The point
# is to have something to be surprised by. Running the cell **seals** the numbers: it stores them together with the
# time. So leave the cell alone once you have gone on.
#
# 1. `best_us`: GPT-2 has 12 layers of width 768 and 50,257 tokens. Its weights have 2 bytes each, and memory delivers 4
#    TB/s. How many *microseconds* does it take to read what a token needs, with an empty cache?
# 2. `cache_share`: with 1,024 tokens in the cache, what share of all bytes are the keys and values? Give a number
#    between 0 and 1.
# 3. `mlp_share`: what share of a layer's weights is in the MLP (the two matrices behind attention)?
# 4. `idle_share`: attention with one program per head has 12 programs. What share of 132 multiprocessors has nothing to
#    do?
# 5. `times_library`: as a CUDA graph with weights in 16 bits, how many *times* as fast will your kernels be as PyTorch's
#    operations in 32 bits, also as a graph, with the conversion of the weights to 32 bits counted? (Question g measures
#    it if you have a GPU.)

# %% nbgrader={"grade": false, "grade_id": "gap-predictions", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "predict", "needs": ["setup"]}
### BEGIN SOLUTION
#: best_us = None
#: cache_share = None
#: mlp_share = None
#: idle_share = None
#: times_library = None
best_us = 60
cache_share = 0.1
mlp_share = 0.7
idle_share = 0.9
times_library = 3
### END SOLUTION
predictions = grading.seal(
    best_us=best_us,
    cache_share=cache_share,
    mlp_share=mlp_share,
    idle_share=idle_share,
    times_library=times_library,
)

# %% [markdown]
# ## What is computed
#
# A GPT-2 of **width** W keeps W numbers for a token, called x. A **layer** changes x twice. `norm` is layer normalization,
# and each W with an index is a matrix with one row per result:
#
# ```
# q, k, v = W_qkv norm(x) + b_qkv          3 W numbers: a query, a key and a value
# x = x + W_projection attention(q) + b    attention looks at the keys and values of all tokens so far
# h = gelu(W_up norm(x) + b_up)            4 W numbers
# x = x + W_down h + b_down
# ```
#
# At first, x is a row of the table of tokens plus a row of the table of positions. At the end, `norm(x)` is multiplied
# with every row of the table of tokens: these are the **scores** (logits) of the token that comes next. The **KV cache**
# keeps k and v of every token and layer, so that they need not be computed again.
#
# The package comes with a small GPT-2, of 2 layers and width 96, which we trained on the pages of this course, one
# character per token. It has learned our words but little else. Its reference in PyTorch, `model.step`, computes one
# token with one operation after the other:


# %%
model = decoder.shipped()
text = "The memory of a GPU "
print({name: tuple(tensor.shape) for name, tensor in model.tensors.items()})
print(text + decoder.decoded(model.sampled(decoder.encoded(text), 100)))

# %% [markdown]
# If you have the weights of the published GPT-2 (the file `model.safetensors` or `pytorch_model.bin`), the same functions
# take them: `decoder.from_state(torch.load("pytorch_model.bin", weights_only=True))`. A tensor of a wrong shape is named,
# with both shapes. The tokens of that model are pieces of words, which you need its own tokenizer for.
#
# ## a. Count the bytes
#
# A step makes one token. It reads every weight once: the matrices and biases of all layers, gains and shifts of their
# normalizations and of the last one, and the whole table of tokens, which the scores need. (The row of the token
# itself is part of that table.) Of the table of positions it reads one row. Every number has `itemsize` bytes. Return:
#
# - `weight_bytes(layers, width, vocabulary, itemsize)`: bytes of all weights that a step reads, a plain int.
# - `cache_bytes(layers, width, tokens, itemsize)`: bytes of the cache that a step reads and writes, a plain int, where
#   `tokens` counts the newest too: it reads the keys and values of the tokens before, and writes those of the newest.
# - `best_seconds(layers, width, vocabulary, tokens, itemsize, bandwidth)`: the time of these bytes at `bandwidth` bytes
#   per second. No program is faster on that memory.
#
# Do the counting yourself: `mlsys.models.gpt2` and `mlsys.ops` contain such counts, so they are removed from the package
# when the lab is graded, and an answer that calls them ends in an error.
#
# <details><summary>Hint 1</summary>
# Print the shapes of the small model above, and count its numbers: what grows with the square of the width?
# </details>
# <details><summary>Hint 2</summary>
# A layer has matrices of 3 W x W, W x W, 4 W x W and W x 4 W, biases of 3 W, W, 4 W and W, and two normalizations of 2 W
# each.
# </details>
# <details><summary>Hint 3</summary>
# Numbers: <code>layers * (12 * width**2 + 13 * width) + vocabulary * width + 3 * width</code>. Cache: a key and a value
# of <code>width</code> numbers for each token and layer.
# </details>


# %% nbgrader={"grade": false, "grade_id": "a-bytes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "a", "role": "solution", "needs": ["setup"], "title": "Count the bytes"}
def weight_bytes(layers, width, vocabulary, itemsize):
    """Return the bytes of the weights that a step reads."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("weight_bytes")
    return (layers * (12 * width**2 + 13 * width) + vocabulary * width + 3 * width) * itemsize
    ### END SOLUTION


def cache_bytes(layers, width, tokens, itemsize):
    """Return the bytes of the cache that a step reads and writes."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("cache_bytes")
    return 2 * layers * width * tokens * itemsize
    ### END SOLUTION


def best_seconds(layers, width, vocabulary, tokens, itemsize, bandwidth):
    """Return the least time of a step."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("best_seconds")
    moved = weight_bytes(layers, width, vocabulary, itemsize) + cache_bytes(layers, width, tokens, itemsize)
    return moved / bandwidth
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "a-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "a", "role": "test", "needs": ["setup"]}
def check_number(found, right, what):
    """Compare a float with the right one, to nine digits."""
    if type(found) not in (int, float):
        raise grading.WrongAnswer(f"{what}: return a plain number, not a {type(found).__name__}")
    if not abs(found - right) <= 1e-9 * abs(right):
        raise grading.WrongAnswer(f"{what} is wrong" if right in secret else f"{what} is {found}, should be {right}")


secret = set()
# One layer of width 1 and one token: 12 weights, 9 biases, 4 of the layer's normalizations; table 1, last norm 2, row 1.
grading.assert_equal(weight_bytes(1, 1, 1, 1), 29, what="weight_bytes(1, 1, 1, 1)")
# Two layers of width 2: 2 (48 + 18 + 8) = 148; 5 tokens: 10; the last normalization 4; a row of positions 2.
grading.assert_equal(weight_bytes(2, 2, 5, 2), 328, what="weight_bytes(2, 2, 5, 2)")
grading.assert_equal(cache_bytes(1, 4, 1, 2), 16, what="cache_bytes(1, 4, 1, 2): only the newest is written")
grading.assert_equal(cache_bytes(3, 4, 10, 2), 480, what="cache_bytes(3, 4, 10, 2): nine are read, one is written")
check_number(best_seconds(2, 2, 5, 10, 2, 1000), 0.488, what="best_seconds(2, 2, 5, 10, 2, 1000): 328 + 160 bytes")
### BEGIN HIDDEN TESTS
draw = grading.Draws("a")
for itemsize in (1, 2, 4):
    layers, width, vocabulary, tokens = (draw.integer(2, most) for most in (48, 2000, 60000, 2048))
    linear = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    each = sum(inner * outer + outer for inner, outer in linear) + 4 * width
    numbers = layers * each + vocabulary * width + width + 2 * width
    where = f"({layers}, {width}, {vocabulary}, {itemsize})"
    found = weight_bytes(layers, width, vocabulary, itemsize)
    grading.assert_equal(found, numbers * itemsize, what=f"weight_bytes{where}")
    kept = sum((tokens - 1) * 2 * width + 2 * width for _ in range(layers)) * itemsize
    grading.assert_equal(cache_bytes(layers, width, tokens, itemsize), kept, what="cache_bytes of other sizes")
    right = (numbers * itemsize + kept) / 3e12
    secret.add(right)
    found = best_seconds(layers, width, vocabulary, tokens, itemsize, 3e12)
    check_number(found, right, what="best_seconds of other sizes")
### END HIDDEN TESTS
scorecard.passed("a")

# %% [markdown]
# ## b. Count the kernels
#
# The bytes are not the whole time. A kernel begins when the one before has ended. Then its programs are placed, and the first
# addresses travel to memory, while nothing arrives. Call that loss the **boundary** of a kernel, in seconds. It is paid
# once for each kernel, and if the host launches kernel after kernel, it is as long as the host takes for a launch. A
# CUDA graph hands over all launches of a token at once. A simple model of a step is
#
# ```
# time = bytes / bandwidth + kernels x boundary
# ```
#
# Return:
#
# - `kernels(layers, a_layer, others)`: the kernels of a step, a plain int: `a_layer` in each layer, and `others`.
# - `step_seconds(moved, bandwidth, count, boundary)`: the time by this model for `moved` bytes and `count` kernels.
# - `most_a_layer(target, moved, bandwidth, boundary, layers, others)`: how many kernels a layer may have at most so that
#   a step takes no longer than `target` seconds. A plain int; 0 if even one is too many, or if the bytes take too long.
#   Floats are rounded, so a step that misses the target by a millionth of a boundary is still in time.
#
# <details><summary>Hint 1</summary>
# Solve the model for the kernels of a layer. What may be left of the target when the bytes and the others are paid?
# </details>
# <details><summary>Hint 2</summary>
# <code>(target - moved / bandwidth) / boundary</code> kernels are allowed in all. Only whole kernels count.
# </details>
# <details><summary>Hint 3</summary>
# <code>max(0, math.floor((allowed - others) / layers + 1e-6))</code>, with <code>import math</code> inside the function.
# </details>


# %% nbgrader={"grade": false, "grade_id": "b-kernels", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "b", "role": "solution", "needs": ["setup"], "title": "Count the kernels"}
def kernels(layers, a_layer, others):
    """Return the kernels of a step."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("kernels")
    return layers * a_layer + others
    ### END SOLUTION


def step_seconds(moved, bandwidth, count, boundary):
    """Return the time of a step: its bytes, and the boundaries of its kernels."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("step_seconds")
    return moved / bandwidth + count * boundary
    ### END SOLUTION


def most_a_layer(target, moved, bandwidth, boundary, layers, others):
    """Return the most kernels of a layer with which a step takes at most `target` seconds."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("most_a_layer")
    import math

    return max(0, math.floor(((target - moved / bandwidth) / boundary - others) / layers + 1e-6))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "b-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "b", "role": "test", "needs": ["setup"]}
def check_seconds(found, right, what):
    """Compare a time with the right one, to nine digits."""
    if type(found) not in (int, float) or not abs(found - right) <= 1e-9 * right:
        raise grading.WrongAnswer(f"{what}: not the right number of seconds")


grading.assert_equal(kernels(12, 5, 2), 62, what="kernels(12, 5, 2)")
grading.assert_equal(kernels(1, 1, 0), 1, what="kernels(1, 1, 0)")
check_seconds(step_seconds(1000, 1000, 10, 0.5), 6.0, what="step_seconds(1000, 1000, 10, 0.5): 1 s and ten times 0.5 s")
grading.assert_equal(most_a_layer(11.0, 1000, 1000, 0.5, 4, 2), 4, what="most_a_layer: 20 kernels in all, 2 others")
grading.assert_equal(most_a_layer(11.0, 1000, 1000, 0.5, 4, 3), 4, what="most_a_layer: 17 kernels for 4 layers")
just = step_seconds(1000, 1000, 4 * 4 + 2, 0.1)
grading.assert_equal(most_a_layer(just, 1000, 1000, 0.1, 4, 2), 4, what="most_a_layer: 18 kernels take just the target")
grading.assert_equal(most_a_layer(2.0, 1000, 1000, 0.5, 4, 2), 0, what="most_a_layer: no time for kernels")
grading.assert_equal(most_a_layer(0.5, 1000, 1000, 0.5, 4, 2), 0, what="most_a_layer: the bytes take longer")
### BEGIN HIDDEN TESTS
draw = grading.Draws("b")
for _ in range(4):
    layers, a_layer, others = draw.integer(2, 48), draw.integer(3, 20), draw.integer(1, 6)
    moved, bandwidth, boundary = draw.integer(1, 900) * 1_000_000, draw.integer(1, 8) * 1e12, draw.integer(5, 80) * 1e-7
    count = sum(a_layer for _ in range(layers)) + others
    grading.assert_equal(kernels(layers, a_layer, others), count, what="kernels of other sizes")
    time = moved / bandwidth + count * boundary
    check_seconds(step_seconds(moved, bandwidth, count, boundary), time, what="step_seconds of other sizes")
    a_layer = draw.integer(3, 20)  # one that no other function was asked about
    time = moved / bandwidth + (layers * a_layer + others) * boundary
    for more, right in draw.shuffled([(0.25, a_layer), (layers - 0.25, a_layer), (-0.25, a_layer - 1)]):
        found = most_a_layer(time + more * boundary, moved, bandwidth, boundary, layers, others)
        grading.assert_equal(found, right, what="most_a_layer of other sizes")
### END HIDDEN TESTS
scorecard.passed("b")

# %% [markdown]
# Look at what your formulas say about GPT-2 with 512 tokens, in 16 bits, at 4 TB/s. Suppose that a boundary costs 5
# microseconds if the host launches, and 1.5 microseconds in a graph, and that every operation of a layer is a kernel,
# some twenty of them.

# %%
moved = weight_bytes(12, 768, 50257, 2) + cache_bytes(12, 768, 512, 2)
for how, a_layer, boundary in [
    ("host, 20 a layer", 20, 5e-6),
    ("graph, 20 a layer", 20, 1.5e-6),
    ("graph, 5", 5, 1.5e-6),
]:
    print(f"{how:20} {step_seconds(moved, 4e12, kernels(12, a_layer, 2), boundary) * 1e6:6.0f} us a token")
print(f"{'bytes alone':20} {best_seconds(12, 768, 50257, 512, 2, 4e12) * 1e6:6.0f} us a token")

# %% [markdown]
# Five kernels a layer are possible, and you write them now:
#
# 1. normalize x, and compute queries, keys and values (question c);
# 2. attend to the cache (d);
# 3. project the result of attention, and add it to x (d);
# 4. normalize x, and compute the MLP's hidden numbers, with GELU (e);
# 5. compute its second product, and add it to x (e).
#
# **All kernels** of this lab keep one rule, which the challenge will need: they are right for **any number of programs**.
# The work is cut into blocks, and with P programs, which is `tl.num_programs(0)`, program p does blocks p, p + P, p + 2 P
# and so on. If there are as many programs as blocks, that is one block each.
#
# x, the query and the hidden numbers are float32. Weights, biases, gains and shifts are float32 or float16 (the launches also
# take bfloat16), all alike; **calculate in float32**. All tensors are contiguous. The lab's own functions launch your kernels, so you write only
# kernels. They refuse what a kernel does not take, with the name of what is wrong.


# %% nbgrader={"grade": false, "grade_id": "launches", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
EPSILON = 1e-5
WEIGHTS = (torch.float32, torch.float16, torch.bfloat16)


def refuse(shapes, kinds, **tensors):
    """Raise an error if a tensor has another shape, dtype or device than a kernel takes, or gaps."""
    first = next(iter(tensors.values()))
    for name, tensor in tensors.items():
        due = kinds.get(name, WEIGHTS)
        if tensor.dtype not in due:
            raise ValueError(f"{name} is {tensor.dtype}: give {' or '.join(map(str, due))}")
        if tuple(tensor.shape) != tuple(shapes[name]) or 0 in tensor.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}: give {tuple(shapes[name])}, each 1 or more")
        if tensor.device != first.device:
            raise ValueError(
                f"{name} is on {tensor.device}, and {next(iter(tensors))} on {first.device}: give both alike"
            )
        if not tensor.is_contiguous():
            raise ValueError(f"{name} has strides {tensor.stride()}: call .contiguous()")


FLOAT = dict.fromkeys(("x", "out", "hidden", "parts", "q"), (torch.float32,))


def block_of(width, constants):
    """Return BLOCK, which must hold a row of WIDTH numbers."""
    block = constants.get("BLOCK", triton.next_power_of_2(width))
    if block < width:
        raise ValueError(f"BLOCK is {block}, and a row has {width} numbers: give a power of two that holds it")
    return block


def launch_norm_linear(kernel, constants, out, x, gain, shift, weight, bias):
    """Launch on the rows of a weight; results from number SPLIT on go to a place of their own."""
    n, width = weight.shape
    shapes = {"x": (width,), "gain": (width,), "shift": (width,), "weight": (n, width), "bias": (n,), "out": (n,)}
    refuse(shapes, FLOAT, x=x, gain=gain, shift=shift, weight=weight, bias=bias, out=out)
    split = constants.get("SPLIT", n)
    y, rest = (torch.empty(max(1, some), device=out.device) for some in (min(split, n), n - split))
    programs = constants.get("PROGRAMS") or triton.cdiv(n, constants["ROWS"])
    kernel[(programs,)](
        x, gain, shift, weight, bias, y, rest, width, n, split, EPSILON,
        ROWS=constants["ROWS"], BLOCK=block_of(width, constants),
    )  # fmt: skip
    out[:split], out[split:] = y[: min(split, n)], rest[: max(0, n - split)]


def launch_up(kernel, constants, out, x, gain, shift, weight, bias):
    """Launch on the rows of a weight."""
    n, width = weight.shape
    shapes = {"x": (width,), "gain": (width,), "shift": (width,), "weight": (n, width), "bias": (n,), "out": (n,)}
    refuse(shapes, FLOAT, x=x, gain=gain, shift=shift, weight=weight, bias=bias, out=out)
    programs = constants.get("PROGRAMS") or triton.cdiv(n, constants["ROWS"])
    block = block_of(width, constants)
    kernel[(programs,)](
        x, gain, shift, weight, bias, out, width, n, EPSILON, ROWS=constants["ROWS"], BLOCK=block
    )  # fmt: skip


def launch_attention(kernel, constants, out, q, cache, newest):
    """Launch on shares of the tokens of each head; `cache` has a row per token, the newest one's not yet filled."""
    tokens, _, width = cache.shape
    head, splits = constants["HEAD"], constants["SPLITS"]
    heads = width // head
    if heads * head != width:
        raise ValueError(f"HEAD is {head}, and the width {width}: HEAD must divide it")
    shapes = {"q": (width,), "cache": (tokens, 2, width), "newest": (2, width), "out": (heads, splits, head + 2)}
    refuse(shapes, FLOAT, q=q, cache=cache, newest=newest, out=out)
    programs = constants.get("PROGRAMS") or heads * splits
    kernel[(programs,)](
        q, cache, newest, out, tokens, width, heads, HEAD=head, SPLITS=splits, KEYS=constants["KEYS"]
    )  # fmt: skip


def launch_project(kernel, constants, out, parts, weight, bias, x):
    """Launch on the rows of a weight."""
    width = x.shape[0]
    head, splits = constants["HEAD"], constants["SPLITS"]
    shapes = {"x": (width,), "out": (width,), "bias": (width,), "weight": (width, width)}
    refuse(
        shapes | {"parts": (width // head, splits, head + 2)},
        FLOAT,
        x=x,
        out=out,
        bias=bias,
        weight=weight,
        parts=parts,
    )
    programs = constants.get("PROGRAMS") or triton.cdiv(width, constants["ROWS"])
    kernel[(programs,)](
        parts, weight, bias, x, out, width,
        HEAD=head, SPLITS=splits, ROWS=constants["ROWS"], BLOCK=block_of(width, constants),
    )  # fmt: skip


def launch_down(kernel, constants, out, hidden, weight, bias, x):
    """Launch on the rows of a weight, which may be longer than BLOCK."""
    n, long = weight.shape
    shapes = {"hidden": (long,), "weight": (n, long), "bias": (n,), "x": (n,), "out": (n,)}
    refuse(shapes, FLOAT, hidden=hidden, weight=weight, bias=bias, x=x, out=out)
    programs = constants.get("PROGRAMS") or triton.cdiv(n, constants["ROWS"])
    kernel[(programs,)](hidden, weight, bias, x, out, long, n, ROWS=constants["ROWS"], BLOCK=constants["BLOCK"])


def right_norm(x, gain, shift):
    """Return layer normalization in float64."""
    x = x.double()
    return (x - x.mean()) / (x.var(correction=0) + EPSILON).sqrt() * gain.double() + shift.double()


def right_linear(x, weight, bias):
    """Return weight times x plus bias in float64."""
    return weight.double() @ x.double() + bias.double()


def right_parts(q, cache, newest, head, splits):
    """Return (heads, splits, head + 2): sums, maximum and total of each share of the tokens, in float64."""
    tokens, width = cache.shape[0], cache.shape[2]
    kept = torch.cat([cache[: tokens - 1], newest[None]]).double().view(tokens, 2, width // head, head)
    scores = torch.einsum("hd,thd->ht", q.double().view(-1, head), kept[:, 0]) * head**-0.5
    share = -(-tokens // splits)
    parts = torch.zeros(width // head, splits, head + 2, dtype=torch.float64, device=q.device)
    parts[..., head] = -float("inf")
    for split in range(splits):
        some = scores[:, split * share : (split + 1) * share]
        if some.shape[1]:
            top = some.amax(1, keepdim=True)
            weights = (some - top).exp()
            values = kept[split * share : (split + 1) * share, 1]
            parts[:, split, :head] = torch.einsum("ht,thd->hd", weights, values)
            parts[:, split, head], parts[:, split, head + 1] = top[:, 0], weights.sum(1)
    return parts


def right_joined(parts):
    """Return attention's result, one row of `head` numbers after the other, from the shares of its tokens."""
    head = parts.shape[2] - 2
    weights = (parts[..., head] - parts[..., head].amax(1, keepdim=True)).exp()
    total = (weights * parts[..., head + 1]).sum(1, keepdim=True)
    return ((weights[..., None] * parts[..., :head]).sum(1) / total).reshape(-1)


def vector(draw, length, dtype="float32", **how):
    """Draw a vector."""
    return draw.matrix(1, length, dtype=dtype, **how)[0]


# %% [markdown]
# ## c. Normalize and multiply
#
# At batch 1, a matrix is multiplied with a vector, so every weight is used once and `tl.dot` has nothing to gain. A
# program takes ROWS rows of the weight and multiplies each with the vector, element by element.
#
# Layer normalization needs all of x before the first product. As a kernel of its own it would cost a boundary. It is
# cheap, so every program repeats it: 768 numbers come from the cache on the chip.
#
# Write `norm_linear_kernel`: y = weight norm(x) + bias. The **contract**:
#
# - Block i has results i ROWS ... (i + 1) ROWS - 1 of N. A row has WIDTH numbers; BLOCK holds a row. ROWS and BLOCK are
#   powers of two, and in question d KEYS and HEAD are.
# - norm(x) = (x - mean) / sqrt(variance + epsilon) * gain + shift, over the WIDTH numbers of x. Take the variance of x -
#   mean: the mean of the squares less the square of the mean loses digits when x is far from zero, as in the tests.
# - Results below SPLIT go to `y_ptr` in order, and those from SPLIT on to `rest_ptr` in order: queries are needed once, and
#   keys and values go to the cache. Convert each result to the dtype of the tensor that it goes to.
#
# <details><summary>Hint 1</summary>
# Begin with layer normalization of one row, as in the lab on fusion: elements beyond WIDTH must count neither in the
# mean nor in the variance. Then think of the weight as a block of ROWS x BLOCK numbers.
# </details>
# <details><summary>Hint 2</summary>
# The loop over blocks is <code>for block in range(tl.program_id(0), tl.cdiv(N, ROWS), tl.num_programs(0))</code>, and x is
# normalized before it. In it, <code>n = block * ROWS + tl.arange(0, ROWS)</code>. The row n of the weight begins at
# <code>n * WIDTH</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>total = tl.sum(weight.to(tl.float32) * normed[None, :], 1)</code>. Two stores: to <code>y_ptr + n</code> with the
# mask <code>(n &lt; N) &amp; (n &lt; SPLIT)</code>, and to <code>rest_ptr + n - SPLIT</code> with <code>(n &lt; N) &amp; (n &gt;=
# SPLIT)</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "c-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "c", "role": "solution", "needs": ["setup"], "title": "Normalize and multiply"}
@triton.jit
def norm_linear_kernel(
    x_ptr, gain_ptr, shift_ptr, weight_ptr, bias_ptr, y_ptr, rest_ptr,
    WIDTH, N, SPLIT, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute blocks of ROWS results of weight norm(x) + bias."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < WIDTH, other=0.0)
    centered = tl.where(i < WIDTH, x - tl.sum(x, 0) / WIDTH, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, 0) / WIDTH + epsilon)
    gain = tl.load(gain_ptr + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    normed = centered * scale * gain + shift
    for block in range(tl.program_id(0), tl.cdiv(N, ROWS), tl.num_programs(0)):
        n = block * ROWS + tl.arange(0, ROWS)
        inside = (n < N)[:, None] & (i < WIDTH)[None, :]
        weight = tl.load(weight_ptr + (n * WIDTH)[:, None] + i[None, :], mask=inside, other=0.0)
        total = tl.sum(weight.to(tl.float32) * normed[None, :], 1)
        total += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + n, total.to(y_ptr.dtype.element_ty), mask=(n < N) & (n < SPLIT))
        tl.store(rest_ptr + n - SPLIT, total.to(rest_ptr.dtype.element_ty), mask=(n < N) & (n >= SPLIT))
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("norm_linear_kernel: write it, then delete this line")
### END SOLUTION

# %% [markdown]
# The tests come in steps. Work on the first one that fails. They launch your kernel with bands of NaNs around every
# tensor. Without a GPU, every load and store outside a tensor is reported with its line, program and lane. On a GPU, a
# store outside damages a band and is reported, and a load outside brings a NaN into the result. An element that no
# program writes also shows up as a NaN.

# %% nbgrader={"grade": true, "grade_id": "c-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "c", "role": "test", "needs": ["setup"]}
draw = grading.Draws("c", DEVICE)


def check_norm_linear(width, n, what, dtype="float32", x=None, **constants):
    """Compare norm_linear_kernel with float64."""
    x = vector(draw, width) if x is None else x
    gain, shift, bias = (vector(draw, size, dtype) for size in (width, width, n))
    weight = draw.matrix(n, width, dtype=dtype)
    right = right_linear(right_norm(x, gain, shift), weight, bias).float()
    constants = {"ROWS": 16} | constants
    what = f"norm_linear_kernel, {what}: WIDTH {width}, N {n}, {constants}"
    inputs = [x, gain, shift, weight, bias]
    grading.check_kernel(norm_linear_kernel, constants, inputs, right, launch=launch_norm_linear, what=what)


check_norm_linear(16, 16, "one block")
check_norm_linear(16, 48, "three blocks, three programs")
check_norm_linear(16, 48, "three blocks, one program", PROGRAMS=1)
check_norm_linear(16, 80, "five blocks, two programs", PROGRAMS=2)
check_norm_linear(16, 16, "more programs than blocks", PROGRAMS=3)
check_norm_linear(24, 16, "a width that is no power of two")
check_norm_linear(24, 16, "a block that is twice as long as a row", BLOCK=64)
check_norm_linear(16, 21, "a ragged number of results")
check_norm_linear(16, 48, "a third to y_ptr, the rest to rest_ptr", SPLIT=16)
check_norm_linear(24, 72, "a split inside a block", SPLIT=24, PROGRAMS=2)
check_norm_linear(40, 33, "float16 weights", "float16", SPLIT=11)
check_norm_linear(96, 30, "x far from zero", x=vector(draw, 96) + 8)
check_norm_linear(256, 20, "products of float16 weights summed in float32", "float16", ROWS=4, x=vector(draw, 256) * 50)
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    wide, many = draw.ragged(17, 120), draw.ragged(17, 90)
    more = {"ROWS": 4 << draw.integer(0, 3), "PROGRAMS": draw.integer(1, 4), "SPLIT": draw.integer(1, many - 1)}
    check_norm_linear(wide, many, "other sizes", kind, **more)
    check_norm_linear(wide, many, "other values", kind, x=30 * vector(draw, wide) - 50)
### END HIDDEN TESTS
scorecard.passed("c")

# %% [markdown]
# ## d. Attend to the cache
#
# Head h has HEAD numbers of the query, of every key and of every value: those from h HEAD on. Its result is the average
# of the values, weighted with the softmax of the scores q . k / sqrt(HEAD).
#
# GPT-2 has twelve heads, and a program per head would leave most of a GPU without work. So the T tokens of a head are
# **split** into SPLITS shares of `tl.cdiv(T, SPLITS)` tokens (the last ones may have fewer, or none). Each share is attended
# to on its own, and the next kernel puts the shares together. For every share, `attention_kernel` stores HEAD + 2 numbers:
#
# ```
# part[h, s, d]         sum over the share's tokens t of exp(score_t - m) v_t[d]
# part[h, s, HEAD]      m, the largest score of the share; minus infinity if it has no token
# part[h, s, HEAD + 1]  l, the sum of exp(score_t - m); 0 if it has no token
# ```
#
# The **contract** of `attention_kernel`:
#
# - Block i of HEADS x SPLITS is head i // SPLITS, share i % SPLITS. A program takes KEYS tokens at a time.
# - The cache has 2 WIDTH numbers for each token, one token after the other: its key, and then its value. The newest token,
#   number T - 1, is not in it yet: its key and its value are at `new_ptr`. A load of its row in the cache is
#   reported as an unwritten read.
# - The cache and the newest token are both float32 or both float16; q and the parts are float32.
#
# `project_kernel` then computes y = x + weight a + bias, where a is attention's result, WIDTH numbers: with m the largest
# of the head's m_s,
#
# ```
# a[h HEAD + d] = (sum over s of exp(m_s - m) part[h, s, d]) / (sum over s of exp(m_s - m) l_s)
# ```
#
# Every program computes all of a for itself. Share 0 always has a token. x and y may be the same memory: read an element of x
# only in the program that writes it.
#
# <details><summary>Hint 1</summary>
# For one share, this is the softmax of long rows of the lab on fusion: keep a maximum, a sum, and here HEAD sums more, and
# correct them when the maximum grows. What does a key's address depend on, and what does it depend on for the newest?
# </details>
# <details><summary>Hint 2</summary>
# With <code>t = start + tl.arange(0, KEYS)</code>, the addresses of rows are <code>tl.where(t == T - 1, new_ptr, cache_ptr
# + t * 2 * WIDTH)</code>, and a block of keys is at <code>row[:, None] + head * HEAD + d[None, :]</code>. The loop begins
# at <code>share * tl.cdiv(T, SPLITS)</code>. In <code>project_kernel</code>, element i of a belongs to head <code>i //
# HEAD</code>; go through the shares with <code>for s in range(SPLITS)</code>, with the same correction.
# </details>
# <details><summary>Hint 3</summary>
# <code>m_new = tl.maximum(m, tl.max(scores, 0))</code>, <code>p = tl.exp(scores - m_new)</code>, <code>old = tl.exp(m -
# m_new)</code>, <code>total = total * old + tl.sum(p, 0)</code>, <code>acc = acc * old + tl.sum(p[:, None] * v, 0)</code>; tokens
# beyond the share get the score minus infinity. Begin with <code>m = tl.full((), -float("inf"), tl.float32)</code>. In
# <code>project_kernel</code>, m, total and acc are blocks of BLOCK numbers, and part s of element i begins at <code>part_ptr +
# (i // HEAD * SPLITS + s) * (HEAD + 2)</code>. Beyond WIDTH load 0
# for m and for the sums, and 1 for l: minus infinity less minus infinity is NaN, and so is 0 / 0.
# </details>


# %% nbgrader={"grade": false, "grade_id": "d-kernels", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "d", "role": "solution", "needs": ["setup"], "title": "Attend to the cache"}
@triton.jit
def attention_kernel(
    q_ptr, cache_ptr, new_ptr, part_ptr,
    T, WIDTH, HEADS,
    HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr,
):  # fmt: skip
    """Attend to shares of the tokens of a head."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    d = tl.arange(0, HEAD)
    share = tl.cdiv(T, SPLITS)
    for block in range(tl.program_id(0), HEADS * SPLITS, tl.num_programs(0)):
        head = block // SPLITS
        first = block % SPLITS * share
        end = tl.minimum(first + share, T)
        q = tl.load(q_ptr + head * HEAD + d)
        m = tl.full((), -float("inf"), tl.float32)
        total = tl.zeros((), tl.float32)
        acc = tl.zeros((HEAD,), tl.float32)
        for start in range(first, end, KEYS):
            t = start + tl.arange(0, KEYS)
            row = tl.where(t == T - 1, new_ptr, cache_ptr + t * 2 * WIDTH)
            place = row[:, None] + head * HEAD + d[None, :]
            k = tl.load(place, mask=(t < end)[:, None], other=0.0).to(tl.float32)
            v = tl.load(place + WIDTH, mask=(t < end)[:, None], other=0.0).to(tl.float32)
            scores = tl.where(t < end, tl.sum(k * q[None, :], 1) * HEAD**-0.5, -float("inf"))
            m_new = tl.maximum(m, tl.max(scores, 0))
            p = tl.exp(scores - m_new)
            old = tl.exp(m - m_new)
            total = total * old + tl.sum(p, 0)
            acc = acc * old + tl.sum(p[:, None] * v, 0)
            m = m_new
        part = part_ptr + block * (HEAD + 2)
        tl.store(part + d, acc)
        tl.store(part + HEAD, m)
        tl.store(part + HEAD + 1, total)
    ### END SOLUTION


@triton.jit
def project_kernel(
    part_ptr, weight_ptr, bias_ptr, x_ptr, y_ptr,
    WIDTH,
    HEAD: tl.constexpr, SPLITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Put the shares together, and compute blocks of ROWS results of x + weight a + bias."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i = tl.arange(0, BLOCK)
    m = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for s in range(SPLITS):
        part = part_ptr + (i // HEAD * SPLITS + s) * (HEAD + 2)
        m_s = tl.load(part + HEAD, mask=i < WIDTH, other=0.0)
        m_new = tl.maximum(m, m_s)
        old, new = tl.exp(m - m_new), tl.exp(m_s - m_new)
        total = total * old + tl.load(part + HEAD + 1, mask=i < WIDTH, other=1.0) * new
        acc = acc * old + tl.load(part + i % HEAD, mask=i < WIDTH, other=0.0) * new
        m = m_new
    a = acc / total
    for block in range(tl.program_id(0), tl.cdiv(WIDTH, ROWS), tl.num_programs(0)):
        n = block * ROWS + tl.arange(0, ROWS)
        inside = (n < WIDTH)[:, None] & (i < WIDTH)[None, :]
        weight = tl.load(weight_ptr + (n * WIDTH)[:, None] + i[None, :], mask=inside, other=0.0)
        y = tl.sum(weight.to(tl.float32) * a[None, :], 1)
        y += tl.load(bias_ptr + n, mask=n < WIDTH, other=0.0).to(tl.float32)
        tl.store(y_ptr + n, y + tl.load(x_ptr + n, mask=n < WIDTH, other=0.0), mask=n < WIDTH)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("attention_kernel and project_kernel: write them, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "d-test", "locked": true, "points": 20, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "d", "role": "test", "needs": ["setup"]}
draw = grading.Draws("d", DEVICE)


def check_attention(heads, tokens, what, dtype="float32", values="normal", size=1.0, **constants):
    """Compare attention_kernel with float64; the newest token's row of the cache holds NaN."""
    constants = {"HEAD": 16, "SPLITS": 1, "KEYS": 16} | constants
    width = heads * constants["HEAD"]
    q = vector(draw, width) * size
    cache = draw.matrix(2 * tokens, width, dtype=dtype, values=values).view(tokens, 2, width)
    newest = draw.matrix(2, width, dtype=dtype, values=values)
    cache[tokens - 1] = float("nan")
    right = right_parts(q, cache, newest, constants["HEAD"], constants["SPLITS"]).float()
    what = f"attention_kernel, {what}: {heads} heads, T {tokens}, {constants}"
    grading.check_kernel(attention_kernel, constants, [q, cache, newest], right, launch=launch_attention, what=what)


def check_project(heads, what, dtype="float32", empty=0, high=0.0, **constants):
    """Compare project_kernel with float64; the last `empty` shares have no token."""
    constants = {"HEAD": 16, "SPLITS": 2, "ROWS": 16} | constants
    head, splits, width = constants["HEAD"], constants["SPLITS"], heads * constants["HEAD"]
    parts = draw.matrix(heads * splits, head + 2).view(heads, splits, head + 2)
    parts[..., head] += high
    parts[..., head + 1] = 1 + parts[..., head + 1].abs()
    if empty:
        parts[:, splits - empty :] = 0
        parts[:, splits - empty :, head] = -float("inf")
    weight, bias, x = draw.matrix(width, width, dtype=dtype), vector(draw, width, dtype), vector(draw, width)
    right = (right_linear(right_joined(parts.double()), weight, bias) + x.double()).float()
    what = f"project_kernel, {what}: {heads} heads, {constants}"
    inputs = [parts, weight, bias, x]
    grading.check_kernel(project_kernel, constants, inputs, right, launch=launch_project, what=what)


check_attention(1, 1, "one token: only the newest")
check_attention(1, 16, "one block of tokens")
check_attention(1, 37, "three blocks of tokens, the last one ragged")
check_attention(2, 20, "two heads")
check_attention(1, 32, "two shares", SPLITS=2)
check_attention(2, 29, "three shares, the last one shorter", SPLITS=3)
check_attention(1, 5, "eight shares, of which three have no token", SPLITS=8)
check_attention(3, 19, "six blocks, two programs", SPLITS=2, PROGRAMS=2)
check_attention(1, 40, "tokens in blocks of four, heads of 32", HEAD=32, KEYS=4, SPLITS=2)
check_attention(2, 33, "a cache in float16", "float16", SPLITS=2)
check_attention(1, 30, "negative scores only", values="negative", size=-3.0, KEYS=8)
check_attention(1, 40, "large scores", size=60.0, KEYS=8)
check_project(1, "one head, two shares")
check_project(2, "two heads")
check_project(2, "one share", SPLITS=1)
check_project(3, "a width that is no power of two", SPLITS=3)
check_project(1, "heads of 32, ragged rows", HEAD=32, ROWS=64)
check_project(2, "two shares have no token", SPLITS=4, empty=2)
check_project(3, "three blocks, two programs", PROGRAMS=2)
check_project(2, "float16 weights", "float16", SPLITS=4)
check_project(2, "large maxima", SPLITS=4, high=300.0)
check_project(2, "maxima far below zero", SPLITS=4, high=-300.0)
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    pieces, some = draw.integer(2, 6), draw.integer(2, 4)
    more = {"SPLITS": pieces, "HEAD": 16 << draw.integer(0, 1)}
    check_attention(some, draw.integer(1, 60), "other sizes", kind, KEYS=8 << draw.integer(0, 2), PROGRAMS=some, **more)
    check_project(some, "other sizes", kind, ROWS=8 << draw.integer(0, 2), PROGRAMS=draw.integer(1, 3), **more)
check_attention(1, draw.integer(20, 50), "large scores", size=80.0, SPLITS=2, KEYS=4)
check_project(2, "other maxima", SPLITS=5, empty=draw.integer(1, 4), high=200.0)
### END HIDDEN TESTS
scorecard.passed("d")

# %% [markdown]
# ## e. The MLP
#
# Two kernels are left. `up_kernel` computes y = gelu(weight norm(x) + bias): your kernel of question c with one place to
# store, and GELU before it. GPT-2 uses the form
#
# ```
# gelu(u) = u / 2 (1 + tanh(c (u + 0.044715 u^3)))  =  u sigmoid(2 c (u + 0.044715 u^3)),  2 c = 1.5957691216057308
# ```
#
# and Triton has `tl.sigmoid`. `down_kernel` computes y = x + weight h + bias, where h has LONG numbers. A row is too long
# to hold, so it takes BLOCK numbers at a time, which need not divide LONG.
#
# Both keep the rules from above. In `down_kernel`, x and y may be the same memory, as in `project_kernel`. Each question is
# graded with its own cells, so write the normalization once more, or put a helper with `@triton.jit` into a cell of your
# own.
#
# <details><summary>Hint 1</summary>
# In <code>down_kernel</code>, a sum of ROWS numbers goes through a loop over the BLOCKs of a row. What must the mask of the
# last one test?
# </details>
# <details><summary>Hint 2</summary>
# <code>acc = tl.zeros((ROWS,), tl.float32)</code>, and <code>for start in range(0, LONG, BLOCK)</code> inside the loop over
# blocks of rows. A row of the weight begins at <code>n * LONG</code>.
# </details>
# <details><summary>Hint 3</summary>
# <code>i = start + tl.arange(0, BLOCK)</code>; the weight's mask is <code>(n &lt; N)[:, None] &amp; (i &lt; LONG)[None, :]</code>;
# <code>acc += tl.sum(weight.to(tl.float32) * h[None, :], 1)</code>. For GELU: <code>total * tl.sigmoid(1.5957691216057308 *
# (total + 0.044715 * total * total * total))</code>.
# </details>


# %% nbgrader={"grade": false, "grade_id": "e-kernels", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "e", "role": "solution", "needs": ["setup"], "title": "The MLP"}
@triton.jit
def up_kernel(
    x_ptr, gain_ptr, shift_ptr, weight_ptr, bias_ptr, y_ptr,
    WIDTH, N, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute blocks of ROWS results of gelu(weight norm(x) + bias)."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < WIDTH, other=0.0)
    centered = tl.where(i < WIDTH, x - tl.sum(x, 0) / WIDTH, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, 0) / WIDTH + epsilon)
    gain = tl.load(gain_ptr + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    shift = tl.load(shift_ptr + i, mask=i < WIDTH, other=0.0).to(tl.float32)
    normed = centered * scale * gain + shift
    for block in range(tl.program_id(0), tl.cdiv(N, ROWS), tl.num_programs(0)):
        n = block * ROWS + tl.arange(0, ROWS)
        inside = (n < N)[:, None] & (i < WIDTH)[None, :]
        weight = tl.load(weight_ptr + (n * WIDTH)[:, None] + i[None, :], mask=inside, other=0.0)
        total = tl.sum(weight.to(tl.float32) * normed[None, :], 1)
        total += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        y = total * tl.sigmoid(1.5957691216057308 * (total + 0.044715 * total * total * total))
        tl.store(y_ptr + n, y, mask=n < N)
    ### END SOLUTION


@triton.jit
def down_kernel(
    hidden_ptr, weight_ptr, bias_ptr, x_ptr, y_ptr,
    LONG, N,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute blocks of ROWS results of x + weight hidden + bias, with rows of LONG numbers."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    for block in range(tl.program_id(0), tl.cdiv(N, ROWS), tl.num_programs(0)):
        n = block * ROWS + tl.arange(0, ROWS)
        acc = tl.zeros((ROWS,), tl.float32)
        for start in range(0, LONG, BLOCK):
            i = start + tl.arange(0, BLOCK)
            inside = (n < N)[:, None] & (i < LONG)[None, :]
            weight = tl.load(weight_ptr + (n * LONG)[:, None] + i[None, :], mask=inside, other=0.0)
            hidden = tl.load(hidden_ptr + i, mask=i < LONG, other=0.0)
            acc += tl.sum(weight.to(tl.float32) * hidden[None, :], 1)
        acc += tl.load(bias_ptr + n, mask=n < N, other=0.0).to(tl.float32)
        tl.store(y_ptr + n, acc + tl.load(x_ptr + n, mask=n < N, other=0.0), mask=n < N)
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("up_kernel and down_kernel: write them, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "e-test", "locked": true, "points": 15, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "e", "role": "test", "needs": ["setup"]}
draw = grading.Draws("e", DEVICE)


def right_gelu(u):
    """Return the tanh form in float64."""
    return 0.5 * u * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (u + 0.044715 * u**3)))


def check_up(width, n, what, dtype="float32", x=None, **constants):
    """Compare up_kernel with float64."""
    x = vector(draw, width) if x is None else x
    gain, shift, bias = (vector(draw, size, dtype) for size in (width, width, n))
    weight = (draw.matrix(n, width) / width**0.5).to(bias.dtype)
    right = right_gelu(right_linear(right_norm(x, gain, shift), weight, bias)).float()
    constants = {"ROWS": 16} | constants
    what = f"up_kernel, {what}: WIDTH {width}, N {n}, {constants}"
    grading.check_kernel(up_kernel, constants, [x, gain, shift, weight, bias], right, launch=launch_up, what=what)


def check_down(n, long, what, dtype="float32", **constants):
    """Compare down_kernel with float64."""
    hidden, weight = vector(draw, long), draw.matrix(n, long, dtype=dtype)
    bias, x = vector(draw, n, dtype), vector(draw, n)
    right = (right_linear(hidden, weight, bias) + x.double()).float()
    constants = {"ROWS": 16, "BLOCK": 32} | constants
    what = f"down_kernel, {what}: N {n}, LONG {long}, {constants}"
    grading.check_kernel(down_kernel, constants, [hidden, weight, bias, x], right, launch=launch_down, what=what)


check_up(16, 16, "one block")
check_up(24, 37, "ragged rows, a width that is no power of two")
check_up(16, 80, "five blocks, two programs", PROGRAMS=2)
check_up(40, 33, "float16 weights", "float16")
check_up(96, 24, "x far from zero", x=vector(draw, 96) - 6)
check_down(16, 32, "one block of rows, one of numbers")
check_down(16, 96, "three blocks of numbers")
check_down(16, 75, "LONG is ragged")
check_down(21, 32, "rows are ragged")
check_down(80, 40, "five blocks of rows, two programs", PROGRAMS=2)
check_down(37, 75, "float16 weights", "float16", BLOCK=16)
check_down(20, 200, "a block longer than a row", BLOCK=256)
### BEGIN HIDDEN TESTS
for kind in ("float32", "float16"):
    more = {"ROWS": 4 << draw.integer(0, 3), "PROGRAMS": draw.integer(1, 4)}
    check_up(draw.ragged(17, 120), draw.ragged(17, 90), "other sizes", kind, **more)
    check_down(draw.ragged(17, 90), draw.ragged(33, 300), "other sizes", kind, BLOCK=32 << draw.integer(0, 2), **more)
### END HIDDEN TESTS
scorecard.passed("e")

# %% [markdown]
# ## f. A token of a real model
#
# Now put them together. `token_kernel` does one **phase** of a token, which its constant PHASE names, by calling your
# kernels; a kernel with `@triton.jit` may call another. The lab launches it phase after phase: phase 0; then 1 to 5 for
# every layer; then 6. PHASE is a constant, so the compiler makes a small kernel of each phase, and a token takes five
# kernels a layer.
#
# | PHASE | what | from | to |
# |---|---|---|---|
# | 0 | row `token` of the table of tokens plus row T - 1 of the table of positions | | x |
# | 1 | normalize, queries, keys, values | x | q, and the layer's place in `new` |
# | 2 | attention | q, the layer's cache, the layer's place in `new` | part |
# | 3 | projection, added to x | part, x | x |
# | 4 | normalize, up, GELU | x | hidden |
# | 5 | down, added to x | hidden, x | x |
# | 6 | normalize, times the table of tokens: no bias | x | logits |
#
# Each tensor of weights has all layers, one after the other, so the weight of queries, keys and values of layer `layer`
# begins at `layer * 3 * WIDTH * WIDTH`. The cache has room for LONGEST tokens in every layer, LONGEST x 2 x WIDTH numbers,
# and `new` has 2 x WIDTH for each layer. Phase 0 has one program. Phase 6 needs no kernel of its own: `zeros_ptr` points
# to VOCABULARY zeros, which serve as its bias.
#
# <details><summary>Hint 1</summary>
# Phase 1 is a call of <code>norm_linear_kernel</code>. Which tensor is <code>y_ptr</code>, which is <code>rest_ptr</code>, and
# what are N and SPLIT?
# </details>
# <details><summary>Hint 2</summary>
# For each pointer of a layer, write down how many numbers a layer has: WIDTH for gains and shifts, 3 WIDTH, WIDTH, 4 WIDTH
# and WIDTH for the biases, and the products for the weights. Phases 3 and 5 pass <code>x_ptr</code> twice.
# </details>
# <details><summary>Hint 3</summary>
# Phase 1: <code>norm_linear_kernel(x_ptr, norm1_gain_ptr + layer * WIDTH, norm1_shift_ptr + layer * WIDTH, qkv_weight_ptr +
# layer * 3 * WIDTH * WIDTH, qkv_bias_ptr + layer * 3 * WIDTH, q_ptr, new_ptr + layer * 2 * WIDTH, WIDTH, 3 * WIDTH, WIDTH,
# epsilon, ROWS, BLOCK)</code>. Phase 6 passes <code>logits_ptr</code> as both places, with N and SPLIT both VOCABULARY.
# </details>


# %% nbgrader={"grade": false, "grade_id": "token-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
import gc

ROWS_OF = {1: "QKV_ROWS", 3: "PROJECTION_ROWS", 4: "UP_ROWS", 5: "DOWN_ROWS", 6: "HEAD_ROWS"}
SMALL = {"QKV_ROWS": 128, "PROJECTION_ROWS": 128, "UP_ROWS": 128, "DOWN_ROWS": 128, "HEAD_ROWS": 128}
SMALL |= {"HEAD": 32, "SPLITS": 2, "KEYS": 16}


def workspace(cache, weights, constants):
    """Return what the phases of a token pass on: new, x, q, part, hidden, and the zeros of the last phase."""
    (layers, _, _, width), vocabulary = cache.shape, weights[0].shape[0]
    numbers = {"dtype": torch.float32, "device": cache.device}
    new = torch.empty(layers, 2, width, dtype=cache.dtype, device=cache.device)
    parts = torch.empty(width // constants["HEAD"], constants["SPLITS"], constants["HEAD"] + 2, **numbers)
    x, q, hidden = (torch.empty(size, **numbers) for size in (width, width, 4 * width))
    return new, x, q, parts, hidden, torch.zeros(vocabulary, dtype=weights[0].dtype, device=cache.device)


def refuse_model(cache, weights):
    """Raise an error if weights and cache do not belong together."""
    (layers, longest, _, width), vocabulary = cache.shape, weights[0].shape[0]
    names = list(decoder.shipped().tensors)
    sizes = {
        "tokens": (vocabulary, width), "positions": (longest, width), "norm_gain": (width,), "norm_shift": (width,),
        "qkv_weight": (layers, 3 * width, width), "projection_weight": (layers, width, width),
        "up_weight": (layers, 4 * width, width), "down_weight": (layers, width, 4 * width),
        "qkv_bias": (layers, 3 * width), "projection_bias": (layers, width),
        "up_bias": (layers, 4 * width), "down_bias": (layers, width),
    }  # fmt: skip
    sizes |= {name: (layers, width) for name in names if name.startswith(("norm1", "norm2"))}
    refuse(sizes, dict.fromkeys(names[1:], (weights[0].dtype,)), **dict(zip(names, weights, strict=True)))


def launch_phases(kernel, constants, logits, token, tokens, cache, new, weights, work):
    """Launch a token phase by phase; `tokens` counts the newest."""
    (layers, longest, _, width), vocabulary = cache.shape, weights[0].shape[0]
    heads, block = width // constants["HEAD"], block_of(width, constants)
    x, q, parts, hidden, zeros = work
    results = {1: 3 * width, 3: width, 4: 4 * width, 5: width, 6: vocabulary}
    options = {name: constants[name] for name in ("num_warps", "num_stages") if name in constants}
    phases = [(0, 0), *((one, layer) for layer in range(layers) for one in range(1, 6)), (6, 0)]
    if "PHASE" in constants:  # one phase alone, to be compiled
        phases = [(constants["PHASE"], 0)]
    for phase, layer in phases:
        rows = constants[ROWS_OF[phase]] if phase in ROWS_OF else 1
        programs = 1 if phase == 0 else heads * constants["SPLITS"] if phase == 2 else triton.cdiv(results[phase], rows)
        kernel[(programs,)](
            *weights, zeros, cache, new, x, q, parts, hidden, logits,
            token, tokens, layer, longest, vocabulary, width, heads, EPSILON,
            PHASE=phase, HEAD=constants["HEAD"], SPLITS=constants["SPLITS"], KEYS=constants["KEYS"],
            ROWS=rows, BLOCK=block, **options,
        )  # fmt: skip
        if phase >= 5 and cache.device.type == "cpu":
            gc.collect()  # inspected launches leave copies of all tensors behind


def launch_token(kernel, constants, logits, cache, *weights):
    """Launch one token, number TOKEN, with LENGTH tokens in all; the cache stays as it is."""
    refuse_model(cache, weights)
    new, *work = workspace(cache, weights, constants)
    token, length = constants.get("TOKEN", 1), constants.get("LENGTH", cache.shape[1])
    launch_phases(kernel, constants, logits, token, length, cache, new, weights, work)


def launch_greedy(kernel, constants, out, first, cache, *weights):
    """Launch as many tokens as `out` has: the first one is given, and then always the one with the best score."""
    refuse_model(cache, weights)
    new, *work = workspace(cache, weights, constants)
    kept, token = cache.clone(), int(first)
    for number in range(out.numel()):
        logits = torch.empty(weights[0].shape[0], device=cache.device)
        launch_phases(kernel, constants, logits, token, constants["LENGTH"] + number, kept, new, weights, work)
        kept[:, constants["LENGTH"] + number - 1] = new
        token = int(logits.argmax())
        out[number] = token


# %% nbgrader={"grade": false, "grade_id": "f-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "f", "role": "solution", "needs": ["setup", "c", "d", "e"], "title": "A token of a real model"}
@triton.jit
def token_kernel(
    tokens_ptr, positions_ptr,
    norm1_gain_ptr, norm1_shift_ptr, qkv_weight_ptr, qkv_bias_ptr, projection_weight_ptr, projection_bias_ptr,
    norm2_gain_ptr, norm2_shift_ptr, up_weight_ptr, up_bias_ptr, down_weight_ptr, down_bias_ptr,
    norm_gain_ptr, norm_shift_ptr,
    zeros_ptr, cache_ptr, new_ptr, x_ptr, q_ptr, part_ptr, hidden_ptr, logits_ptr,
    token, T, layer, LONGEST, VOCABULARY, WIDTH, HEADS, epsilon,
    PHASE: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Do one phase of a token."""
    ### BEGIN SOLUTION
    #: pass  # if PHASE == 0: ... if PHASE == 1: norm_linear_kernel(...) ... and so on
    if PHASE == 0:
        i = tl.arange(0, BLOCK)
        x = tl.load(tokens_ptr + token * WIDTH + i, mask=i < WIDTH, other=0.0).to(tl.float32)
        x += tl.load(positions_ptr + (T - 1) * WIDTH + i, mask=i < WIDTH, other=0.0).to(tl.float32)
        tl.store(x_ptr + i, x, mask=i < WIDTH)
    if PHASE == 1:
        norm_linear_kernel(
            x_ptr, norm1_gain_ptr + layer * WIDTH, norm1_shift_ptr + layer * WIDTH,
            qkv_weight_ptr + layer * 3 * WIDTH * WIDTH, qkv_bias_ptr + layer * 3 * WIDTH,
            q_ptr, new_ptr + layer * 2 * WIDTH, WIDTH, 3 * WIDTH, WIDTH, epsilon, ROWS, BLOCK,
        )  # fmt: skip
    if PHASE == 2:
        attention_kernel(
            q_ptr, cache_ptr + layer * LONGEST * 2 * WIDTH, new_ptr + layer * 2 * WIDTH, part_ptr,
            T, WIDTH, HEADS, HEAD, SPLITS, KEYS,
        )  # fmt: skip
    if PHASE == 3:
        project_kernel(
            part_ptr, projection_weight_ptr + layer * WIDTH * WIDTH, projection_bias_ptr + layer * WIDTH,
            x_ptr, x_ptr, WIDTH, HEAD, SPLITS, ROWS, BLOCK,
        )  # fmt: skip
    if PHASE == 4:
        up_kernel(
            x_ptr, norm2_gain_ptr + layer * WIDTH, norm2_shift_ptr + layer * WIDTH,
            up_weight_ptr + layer * 4 * WIDTH * WIDTH, up_bias_ptr + layer * 4 * WIDTH,
            hidden_ptr, WIDTH, 4 * WIDTH, epsilon, ROWS, BLOCK,
        )  # fmt: skip
    if PHASE == 5:
        down_kernel(
            hidden_ptr, down_weight_ptr + layer * 4 * WIDTH * WIDTH, down_bias_ptr + layer * WIDTH,
            x_ptr, x_ptr, 4 * WIDTH, WIDTH, ROWS, BLOCK,
        )  # fmt: skip
    if PHASE == 6:
        norm_linear_kernel(
            x_ptr, norm_gain_ptr, norm_shift_ptr, tokens_ptr, zeros_ptr,
            logits_ptr, logits_ptr, WIDTH, VOCABULARY, VOCABULARY, epsilon, ROWS, BLOCK,
        )  # fmt: skip
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("token_kernel: write it, then delete this line")
### END SOLUTION

# %% [markdown]
# **Which phase is wrong?** A wrong score does not say. The next cell runs each of your phases alone, on a model of one layer
# and with the right inputs, and stops at the first one whose result is wrong.


# %%
def launch_phase(kernel, constants, out, x, q, new, parts, hidden, cache, *weights):
    """Launch one phase of the only layer, so that `out` gets its result: in phase 1, q and then `new`."""
    width, phase = cache.shape[3], constants["PHASE"]
    zeros = logits = torch.zeros(weights[0].shape[0], dtype=weights[0].dtype, device=cache.device)
    if phase in (0, 3, 5):
        x = out.copy_(x)
    elif phase == 1:
        q, new = out.split([width, 2 * width])
    elif phase == 2:
        parts = out
    elif phase == 4:
        hidden = out
    else:
        logits = out
    launch_phases(kernel, constants, logits, 5, 7, cache, new, weights, (x, q, parts, hidden, zeros))


def check_phases(kernel, width=64, heads=2):
    """Compare the result of each phase with PyTorch's, for token number 5 with 7 tokens in all."""
    made = decoder.random_decoder(layers=1, width=width, heads=heads, vocabulary=70, positions=9, seed=1, device=DEVICE)
    weights = list(made.tensors.values())
    cache = torch.randn(1, 9, 2, width, generator=torch.Generator().manual_seed(1)).to(DEVICE)

    def norm(row, gain, shift):
        return torch.nn.functional.layer_norm(row, (width,), gain.view(width), shift.view(width), EPSILON)

    start = made.tokens[5] + made.positions[6]
    qkv = made.qkv_weight[0] @ norm(start, made.norm1_gain, made.norm1_shift) + made.qkv_bias[0]
    q, new = qkv[:width].contiguous(), qkv[width:].contiguous()
    keys, values = torch.cat([cache[0, :6], new.view(1, 2, width)]).view(7, 2, heads, -1).permute(1, 2, 0, 3)
    scores = torch.einsum("htd,hd->ht", keys, q.view(heads, -1)) / (width // heads) ** 0.5
    parts = []
    for share in (slice(0, 4), slice(4, 7)):  # two splits of 7 tokens
        top = scores[:, share].amax(1, keepdim=True)
        exps = torch.exp(scores[:, share] - top)
        sums = torch.einsum("ht,htd->hd", exps, values[:, share])
        parts.append(torch.cat([sums, top, exps.sum(1, keepdim=True)], 1))
    parts = torch.stack(parts, 1).contiguous()
    seen = torch.einsum("ht,htd->hd", scores.softmax(1), values).reshape(width)
    middle = start + made.projection_weight[0] @ seen + made.projection_bias[0]
    inner = made.up_weight[0] @ norm(middle, made.norm2_gain, made.norm2_shift) + made.up_bias[0]
    hidden = torch.nn.functional.gelu(inner, approximate="tanh")
    end = middle + made.down_weight[0] @ hidden + made.down_bias[0]
    logits = made.tokens @ norm(end, made.norm_gain, made.norm_shift)
    before = {4: middle, 5: middle, 6: end}
    left = [("x", start), ("q, then new", qkv), ("part", parts), ("x", middle), ("hidden", hidden), ("x", end)]
    for phase, (name, right) in enumerate([*left, ("logits", logits)]):
        inputs = [before.get(phase, start), q, new, parts, hidden, cache, *weights]
        what = f"phase {phase}: {name}"
        grading.check_kernel(kernel, SMALL | {"PHASE": phase}, inputs, right, launch=launch_phase, what=what)
        print(f"phase {phase} is right")


check_phases(token_kernel)

# %% [markdown]
# The first tests compare scores on random models. The last ones let your kernels write: the reference reads the beginning
# of a text and leaves its keys and values in the cache; your kernels go on from there, and must find the same characters
# as the reference. Only texts are used in which the best character leads clearly, so that rounding decides nothing.

# %% nbgrader={"grade": true, "grade_id": "f-test", "locked": true, "points": 10, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "f", "role": "test", "needs": ["setup", "c", "d", "e"]}
draw = grading.Draws("f", DEVICE)


def random_model(layers, heads, vocabulary, longest, dtype=torch.float32):
    """Return a random model with heads of 32, whose scores differ clearly, and its cache with random content."""
    sizes = {"layers": layers, "heads": heads, "vocabulary": vocabulary, "positions": longest}
    small = decoder.random_decoder(width=32 * heads, seed=draw.integer(0, 2**31), device=DEVICE, **sizes)
    larger = {
        name: (tensor * (5 if name.endswith("weight") else 1)).to(dtype).contiguous()
        for name, tensor in small.tensors.items()
    }
    small = decoder.Decoder(heads, **larger)
    cache = draw.matrix(layers * longest * 2, 32 * heads).view(layers, longest, 2, 32 * heads)
    return small, cache.to(dtype)


def check_token(layers, heads, vocabulary, length, what, dtype=torch.float32, **constants):
    """Compare the scores of one token with the reference in float64."""
    small, cache = random_model(layers, heads, vocabulary, length + 3, dtype)
    token = draw.integer(1, vocabulary - 1)
    right = small.to(torch.float64).step(token, length - 1, cache.double()).float()
    constants = SMALL | {"TOKEN": token, "LENGTH": length} | constants
    what = f"token_kernel, {what}: {layers} layers of width {32 * heads}, {vocabulary} tokens, T {length}"
    inputs = [cache, *small.tensors.values()]
    grading.check_kernel(token_kernel, constants, inputs, right, launch=launch_token, what=what)


def check_greedy(beginning, count, what):
    """Let the kernels continue a text with the shipped model, and compare the characters."""
    trained = decoder.shipped().to(DEVICE)
    text = decoder.encoded(beginning)
    cache = trained.empty_cache()
    trained.read(text[:-1], cache)
    right, _ = trained.greedy(text, count)
    constants = SMALL | {"LENGTH": len(text)}
    inputs = [torch.tensor(text[-1:], device=DEVICE), cache, *trained.tensors.values()]
    expected = torch.tensor(right, device=DEVICE)
    grading.check_kernel(token_kernel, constants, inputs, expected, launch=launch_greedy, what=what)


check_token(1, 2, 100, 1, "one layer, the first token")  # more tokens than the width
check_token(2, 3, 70, 19, "two layers, three heads, ragged everywhere")
check_greedy("The roofline of a ", 2, what="token_kernel on the shipped model, two characters")
### BEGIN HIDDEN TESTS
check_token(2, 1, draw.integer(30, 90), draw.integer(2, 30), "other sizes", SPLITS=3)
words = "memory kernel warp tile bandwidth model cache token program number layer chip thread energy".split()
for _ in range(40):
    some = [words[draw.integer(0, len(words) - 1)] for _ in range(2)]
    beginning = f"The {some[0]} of the {some[1]} "
    if decoder.shipped().greedy(decoder.encoded(beginning), 2)[1] > 0.2:
        break
check_greedy(beginning, 2, what="token_kernel on the shipped model, another text")
### END HIDDEN TESTS
scorecard.passed("f")

# %% [markdown]
# **Do your kernels compile for a GPU?** The interpreter accepts some things that the compiler refuses. The next cell
# compiles all phases for an A100 on GPT-2's shapes, and shows how many registers a thread needs and how many bytes do not
# fit in them. It needs no GPU and runs for about ten seconds. For question g, put your own numbers into `sizes`.

# %%
GPT2 = {
    "tokens": (50257, 768), "positions": (512, 768), "norm1_gain": (12, 768), "norm1_shift": (12, 768),
    "qkv_weight": (12, 2304, 768), "qkv_bias": (12, 2304), "projection_weight": (12, 768, 768),
    "projection_bias": (12, 768), "norm2_gain": (12, 768), "norm2_shift": (12, 768), "up_weight": (12, 3072, 768),
    "up_bias": (12, 3072), "down_weight": (12, 768, 3072), "down_bias": (12, 768), "norm_gain": (768,),
    "norm_shift": (768,),
}  # fmt: skip
large = {name: torch.empty(shape, dtype=torch.float16, device="meta") for name, shape in GPT2.items()}
cache, logits = torch.empty(12, 512, 2, 768, dtype=torch.float16, device="meta"), torch.empty(50257, device="meta")
sizes = {"HEAD": 64, "SPLITS": 8, "KEYS": 64, "num_warps": 4}
sizes |= {"QKV_ROWS": 8, "PROJECTION_ROWS": 4, "UP_ROWS": 8, "DOWN_ROWS": 4, "HEAD_ROWS": 16}
phases = [sizes | {"PHASE": phase} for phase in range(7)]
for report in compiler_report(
    token_kernel, phases, logits, cache, *large.values(), launch=launch_token, capabilities=[80]
):
    print(f"phase {report.constants['PHASE']}: {report.registers} registers, {report.spilled_bytes} bytes spilled")

# %% [markdown]
# ## g. The race (GPU, compute capability 8.0 or more)
#
# `grading.speed` runs `token_kernel` with your `config` on GPT-2's shapes: 12 layers of width 768, 50,257 tokens, 512
# tokens in the cache, random weights in float16. All launches of a token are in one CUDA graph, so the host does not
# count. Here the other side is PyTorch, one operation after the other in float32, in a graph as well. Its time includes
# converting weights and cache from 16 bits, about 800 MB of traffic. When the lab is graded, your kernels run against kernels that the lab's authors wrote, on the same GPU, in the same run. You get all
# the points from 0.8 of their speed on, none below 0.1, and a share in between. Without a GPU the cell compiles your
# kernel with your config, says what it needs, and ends with `NeedsGpu`; the points wait.
#
# Write `config((layers, width, vocabulary, tokens), dtype)`. It returns a dict of positive ints: `QKV_ROWS`,
# `PROJECTION_ROWS`, `UP_ROWS`, `DOWN_ROWS` and `HEAD_ROWS`, rows of a block in phases 1, 3, 4, 5 and 6; `SPLITS` and
# `KEYS` of attention; `BLOCK`, which holds a row; and `num_warps`. Rows, KEYS and BLOCK are powers of two. HEAD is 64.
#
# Two things matter. There should be at least as many blocks as the GPU has multiprocessors (108 on an A100, 132 on an
# H100), or too few loads are under way at once. And a block of ROWS x BLOCK weights should fit in the registers of its
# warps, so that all of it is on its way at once.
#
# <details><summary>Hint 1</summary>
# How many blocks do 768 results make with 16 rows each, and how many with 4? And 3,072?
# </details>
# <details><summary>Hint 2</summary>
# With BLOCK 1024 and 4 warps, ROWS rows are 8 ROWS weights per thread. The compile cell above tells you when they spill.
# </details>
# <details><summary>Hint 3</summary>
# Begin with 8 rows in phases 1 and 4, 4 in phases 3 and 5, 16 in phase 6, 8 splits, 64 keys, BLOCK 1024, 4 warps.
# </details>

# %% nbgrader={"grade": false, "grade_id": "race-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
RACES = [(12, 768, 50257, 512)]
# What your kernel is timed against: None is the library. The grader puts a kernel of the lab's own here.
rival = None


def model_inputs(draw, shape, dtype):
    """Return a cache with keys and values, and random weights as GPT-2 begins with; `dtype` is "fp16".

    What a layer adds to the vector has a mean that is not zero, so that a wrong variance shows.
    """
    layers, width, vocabulary, tokens = shape
    longest = tokens

    def drawn(*sides, deviation=0.02, mean=0.0):
        rows = draw.matrix(max(1, torch.Size(sides[:-1]).numel()), sides[-1])
        return rows.mul_(deviation).add_(mean).half().view(sides)

    each = {1: (width,), 3: (3 * width,), 4: (4 * width,)}
    linear = [(each[3], (width,)), (each[1], (width,)), (each[4], (width,)), (each[1], each[4])]
    weights = [drawn(layers, *rows, *row) for rows, row in linear]
    biases = [drawn(layers, *rows, mean=0.05 if rows == each[1] else 0.0) for rows, _ in linear]
    norms = [part for _ in range(2) for part in (drawn(layers, width, mean=1.0), drawn(layers, width))]
    qkv, projection, up, down = (pair for pair in zip(weights, biases, strict=True))
    return (
        drawn(layers, longest, 2, width, deviation=0.5),
        drawn(vocabulary, width),
        drawn(longest, width),
        *norms[:2], *qkv, *projection, *norms[2:], *up, *down, drawn(width, mean=1.0), drawn(width),
    )  # fmt: skip


def launch_race(kernel, constants, logits, cache, *weights):
    """Launch token 1 behind a full cache; heads have 64 numbers, as in GPT-2."""
    launch_token(kernel, {"HEAD": 64} | dict(constants), logits, cache, *weights)


def right_scores(cache, *weights):
    """Return the scores by PyTorch's operations, in float32, as float16."""
    width = cache.shape[3]
    model = decoder.Decoder(width // 64, *(weight.float() for weight in weights))
    return model.step(1, cache.shape[1] - 1, cache.float()).half()


# %% nbgrader={"grade": false, "grade_id": "g-config", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g", "role": "solution", "needs": ["setup", "f"], "title": "The race"}
def config(shape, dtype):
    """Return rows, splits, keys, block and warps for token_kernel."""
    ### BEGIN SOLUTION
    #: raise NotImplementedError("config")
    rows = {"QKV_ROWS": 8, "PROJECTION_ROWS": 4, "UP_ROWS": 8, "DOWN_ROWS": 4, "HEAD_ROWS": 16}
    return rows | {"SPLITS": 8, "KEYS": 64, "BLOCK": 1024, "num_warps": 4}
    ### END SOLUTION


# %% tags=["raises-exception"] nbgrader={"grade": true, "grade_id": "g-speed", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "g", "role": "speed", "needs": ["setup", "f"], "device": "gpu"}
### BEGIN HIDDEN TESTS
@triton.jit
def reference_kernel(
    table, places, first_gain, first_shift, three, three_more, back, back_more, second_gain, second_shift, wider,
    wider_more, closer, closer_more, last_gain, last_shift, nothing, kept, fresh, state, asks, shares, inner, scores,
    number, count, which, room, words, wide, groups, tiny, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    KEYS: tl.constexpr, SPLITS: tl.constexpr, HEAD: tl.constexpr, PHASE: tl.constexpr,
):  # fmt: skip # the kernel that a student's is raced against
    lane = tl.arange(0, BLOCK)
    here = lane < wide
    if PHASE < 1:
        start = tl.load(table + number * wide + lane, mask=here, other=0.0).to(tl.float32)
        start += tl.load(places + (count - 1) * wide + lane, mask=here, other=0.0).to(tl.float32)
        tl.store(state + lane, start, mask=here)
    if (PHASE == 1) or (PHASE == 4) or (PHASE == 6):
        if PHASE < 2:
            weight, more, results = three + which * 3 * wide * wide, three_more + which * 3 * wide, 3 * wide
            factor, term = first_gain + which * wide, first_shift + which * wide
        elif PHASE == 4:
            weight, more, results = wider + which * 4 * wide * wide, wider_more + which * 4 * wide, 4 * wide
            factor, term = second_gain + which * wide, second_shift + which * wide
        else:
            weight, more, results = table, nothing, words
            factor, term = last_gain, last_shift
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        there = (row < results)[:, None] & here[None, :]
        values = tl.load(weight + (row * wide)[:, None] + lane[None, :], mask=there, other=0.0)
        given = tl.load(state + lane, mask=here, other=0.0)
        given = tl.where(here, given - tl.sum(given, 0) / wide, 0.0)
        given *= tl.rsqrt(tl.sum(given * given, 0) / wide + tiny)
        given = given * tl.load(factor + lane, mask=here, other=0.0).to(tl.float32)
        given += tl.load(term + lane, mask=here, other=0.0).to(tl.float32)
        found = tl.sum(values.to(tl.float32) * given[None, :], 1)
        found += tl.load(more + row, mask=row < results, other=0.0).to(tl.float32)
        if PHASE < 2:
            tl.store(asks + row, found, mask=row < wide)
            to = fresh + which * 2 * wide + row - wide
            tl.store(to, found.to(fresh.dtype.element_ty), mask=(row >= wide) & (row < results))
        elif PHASE == 4:
            found *= tl.sigmoid(1.5957691216057308 * (found + 0.044715 * found * found * found))
            tl.store(inner + row, found, mask=row < results)
        else:
            tl.store(scores + row, found.to(scores.dtype.element_ty), mask=row < results)
    if PHASE == 2:
        group, part = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
        inside = tl.arange(0, HEAD)
        each = tl.cdiv(count, SPLITS)
        stop = tl.minimum((part + 1) * each, count)
        ask = tl.load(asks + group * HEAD + inside) * (HEAD**-0.5)
        top = tl.full((), -float("inf"), tl.float32)
        total = tl.zeros((), tl.float32)
        gathered = tl.zeros((HEAD,), tl.float32)
        for begin in range(part * each, stop, KEYS):
            when = begin + tl.arange(0, KEYS)
            line = tl.where(when == count - 1, fresh + which * 2 * wide, kept + (which * room + when) * 2 * wide)
            where = line[:, None] + group * HEAD + inside[None, :]
            keys = tl.load(where, mask=(when < stop)[:, None], other=0.0).to(tl.float32)
            values = tl.load(where + wide, mask=(when < stop)[:, None], other=0.0).to(tl.float32)
            grades = tl.where(when < stop, tl.sum(keys * ask[None, :], 1), -float("inf"))
            higher = tl.maximum(top, tl.max(grades, 0))
            lower = tl.exp(top - higher)
            grades = tl.exp(grades - higher)
            total = total * lower + tl.sum(grades, 0)
            gathered = gathered * lower + tl.sum(grades[:, None] * values, 0)
            top = higher
        to = shares + tl.program_id(0) * (HEAD + 2)
        tl.store(to + inside, gathered)
        tl.store(to + HEAD, top)
        tl.store(to + HEAD + 1, total)
    if PHASE == 3:
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        there = (row < wide)[:, None] & here[None, :]
        values = tl.load(back + which * wide * wide + (row * wide)[:, None] + lane[None, :], mask=there, other=0.0)
        top = tl.full((BLOCK,), -float("inf"), tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        gathered = tl.zeros((BLOCK,), tl.float32)
        for part in range(SPLITS):
            one = shares + (lane // HEAD * SPLITS + part) * (HEAD + 2)
            best = tl.load(one + HEAD, mask=here, other=0.0)
            higher = tl.maximum(top, best)
            lower, new = tl.exp(top - higher), tl.exp(best - higher)
            total = total * lower + tl.load(one + HEAD + 1, mask=here, other=1.0) * new
            gathered = gathered * lower + tl.load(one + lane % HEAD, mask=here, other=0.0) * new
            top = higher
        found = tl.sum(values.to(tl.float32) * (gathered / total)[None, :], 1)
        found += tl.load(back_more + which * wide + row, mask=row < wide, other=0.0).to(tl.float32)
        tl.store(state + row, found + tl.load(state + row, mask=row < wide, other=0.0), mask=row < wide)
    if PHASE == 5:
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        found = tl.zeros((ROWS,), tl.float32)
        for begin in range(0, 4 * wide, BLOCK):
            along = begin + lane
            there = (row < wide)[:, None] & (along < 4 * wide)[None, :]
            place = closer + which * 4 * wide * wide + (row * 4 * wide)[:, None] + along[None, :]
            values = tl.load(place, mask=there, other=0.0).to(tl.float32)
            found += tl.sum(values * tl.load(inner + along, mask=along < 4 * wide, other=0.0)[None, :], 1)
        found += tl.load(closer_more + which * wide + row, mask=row < wide, other=0.0).to(tl.float32)
        tl.store(state + row, found + tl.load(state + row, mask=row < wide, other=0.0), mask=row < wide)


def reference_config(shape, dtype):
    narrow = {"PROJECTION_ROWS": 4, "DOWN_ROWS": 4, "HEAD_ROWS": 16, "QKV_ROWS": 8, "UP_ROWS": 8}
    return narrow | {"num_warps": 4, "BLOCK": 1024, "KEYS": 64, "SPLITS": 8}


rival = (reference_kernel, reference_config)
### END HIDDEN TESTS
race = grading.speed(
    token_kernel,
    config,
    shapes=RACES,
    inputs=model_inputs,
    launch=launch_race,
    expected=right_scores,
    dtype="fp16",
    reference=rival,
    capability=(8, 0),
)
scorecard.passed("g", race.fraction)
race

# %% [markdown]
# **Say why.** Answer in three to six sentences. Take GPT-2 with 512 tokens in the cache, 16 bits, and a memory of 4 TB/s.
# How long do the bytes of a token take (your `best_seconds`), and what share of them is the cache? If your step took 180
# microseconds with 62 kernels, how long would a boundary be by your model? How long do the bytes of each of the five kernels
# of a layer take, beside a boundary? What would you change first to get below 120 microseconds, and how many times as fast
# would memory have to be to get there alone? A person reads your answer; it gives up to 5 points.

# %% [markdown] nbgrader={"grade": true, "grade_id": "g-why", "locked": false, "points": 5, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "g-why", "role": "written", "needs": ["setup"], "title": "Say why"}
# ### BEGIN SOLUTION
# #: *Your answer*
# Weights of 247 MB and 19 MB of cache, together 266 MB, take 67 us at 4 TB/s; the cache is 7% of them. The other 113 us
# are 62 boundaries of 1.8 us each. A layer's queries, keys and values are 3.5 MB, 0.9 us; the cache 1.6 MB, 0.4 us; the
# projection 1.2 MB, 0.3 us; up and down 4.7 MB, 1.2 us each: all five are worth less than a boundary. So fewer or shorter
# boundaries come first: a persistent kernel with a barrier in place of a launch, which fetches the next weights while it
# waits. Memory alone has 120 - 113 = 7 us for what takes 67 now, so it would have to be ten times as fast.
# ### END SOLUTION

# %% [markdown]
# ## Challenge: the persistent kernel
#
# Between two kernels the GPU drains, and fills again. A **persistent** kernel is launched once for the whole token: as
# many programs as the GPU has multiprocessors, which go through all phases together. Between two phases, all must wait
# until the last one has finished the first, because they need its results. Write that **barrier** yourself:
#
# - `barrier(count_ptr, due)`: every program adds 1 to the number at `count_ptr`, and waits until it is at least `due`.
#   The number is 0 at the launch and is never set back, so the first barrier has `due` = P, the second 2 P, and so on.
# - `persistent_kernel`: all phases of a token, with a barrier behind each one except the last. There are 5 layers + 1 of
#   them. It gets rows for each phase by name. Phase 0 is done by program 0 alone.
#
# Your kernels are right for any number of programs, so this one calls them as they are. All programs must run at the same
# time, or those that run would wait for others that cannot begin; the lab's launch asks the driver for that. Without a GPU
# the kernel is tested with one program, so only the count of the barriers is: whether they really wait shows on a GPU. If
# the test does not end, a program waits for more than will ever come: stop the cell, and look at `due`.
#
# Three things can go wrong that no single program shows. All threads of a program must have stored their results before
# one of them tells the others: `tl.debug_barrier()` waits for a program's own threads. What is stored must be visible to
# other multiprocessors: give the addition `sem="acq_rel"`. And the number must be read anew each time: a `tl.load` may be
# taken out of the loop, `tl.atomic_add(count_ptr, 0, sem="acquire")` may not.
#
# <details><summary>Hint 1</summary>
# The barrier has four steps: own threads, add, wait, own threads. A loop that does nothing is <code>while ...: pass</code>.
# </details>
# <details><summary>Hint 2</summary>
# Call <code>token_kernel</code> with a number for PHASE and the rows of that phase for ROWS, inside <code>for layer in
# range(LAYERS):</code>. Count <code>due</code> up by <code>tl.num_programs(0)</code> before every barrier.
# </details>
# <details><summary>Hint 3</summary>
# Phase 0: <code>if tl.program_id(0) == 0:</code>. All arguments after <code>token, T</code> are the layer, LONGEST and so
# on, in the order of <code>token_kernel</code>. Behind phase 5 of the last layer there is a barrier too; behind phase 6
# there is none.
# </details>


# %% nbgrader={"grade": false, "grade_id": "challenge-given", "locked": true, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "setup", "role": "setup"}
def launch_persistent(kernel, constants, logits, cache, *weights):
    """Launch a whole token once; on a GPU with as many programs as run at the same time, which the driver checks."""
    refuse_model(cache, weights)
    new, *work = workspace(cache, weights, constants)
    (layers, longest, _, width), vocabulary = cache.shape, weights[0].shape[0]
    x, q, parts, hidden, zeros = work
    count = torch.zeros(1, dtype=torch.int32, device=cache.device)
    programs, options = 1, {name: constants[name] for name in ("num_warps", "num_stages") if name in constants}
    if cache.device.type == "cuda":
        programs = torch.cuda.get_device_properties(cache.device).multi_processor_count
        options["launch_cooperative_grid"] = True
    kernel[(programs,)](
        *weights, zeros, cache, new, x, q, parts, hidden, logits, count,
        constants.get("TOKEN", 1), constants.get("LENGTH", longest), layers, longest, vocabulary, width,
        width // constants["HEAD"], EPSILON,
        **{name: constants[name] for name in (*ROWS_OF.values(), "HEAD", "SPLITS", "KEYS")},
        BLOCK=block_of(width, constants), **options,
    )  # fmt: skip
    if cache.device.type != "meta" and int(count) != (5 * layers + 1) * programs:
        raise grading.WrongAnswer(
            f"{programs} programs have come to a barrier {int(count)} times in all: it should be {5 * layers + 1} "
            "barriers, each once by every program"
        )


# %% nbgrader={"grade": false, "grade_id": "challenge-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "challenge", "role": "solution", "needs": ["setup", "f"], "title": "Challenge: the persistent kernel"}
@triton.jit
def barrier(count_ptr, due):
    """Wait until all programs are here."""
    ### BEGIN SOLUTION
    #: pass  # your barrier
    tl.debug_barrier()
    tl.atomic_add(count_ptr, 1, sem="acq_rel")
    while tl.atomic_add(count_ptr, 0, sem="acquire") < due:
        pass
    tl.debug_barrier()
    ### END SOLUTION


@triton.jit
def persistent_kernel(
    tokens_ptr, positions_ptr,
    norm1_gain_ptr, norm1_shift_ptr, qkv_weight_ptr, qkv_bias_ptr, projection_weight_ptr, projection_bias_ptr,
    norm2_gain_ptr, norm2_shift_ptr, up_weight_ptr, up_bias_ptr, down_weight_ptr, down_bias_ptr,
    norm_gain_ptr, norm_shift_ptr,
    zeros_ptr, cache_ptr, new_ptr, x_ptr, q_ptr, part_ptr, hidden_ptr, logits_ptr, count_ptr,
    token, T, LAYERS, LONGEST, VOCABULARY, WIDTH, HEADS, epsilon,
    QKV_ROWS: tl.constexpr, PROJECTION_ROWS: tl.constexpr, UP_ROWS: tl.constexpr, DOWN_ROWS: tl.constexpr,
    HEAD_ROWS: tl.constexpr, HEAD: tl.constexpr, SPLITS: tl.constexpr, KEYS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Do all phases of a token."""
    ### BEGIN SOLUTION
    #: pass  # your kernel
    programs = tl.num_programs(0)
    due = programs
    if tl.program_id(0) == 0:
        token_kernel(
            tokens_ptr, positions_ptr, norm1_gain_ptr, norm1_shift_ptr, qkv_weight_ptr, qkv_bias_ptr,
            projection_weight_ptr, projection_bias_ptr, norm2_gain_ptr, norm2_shift_ptr, up_weight_ptr, up_bias_ptr,
            down_weight_ptr, down_bias_ptr, norm_gain_ptr, norm_shift_ptr, zeros_ptr, cache_ptr, new_ptr, x_ptr, q_ptr,
            part_ptr, hidden_ptr, logits_ptr, token, T, 0, LONGEST, VOCABULARY, WIDTH, HEADS, epsilon,
            0, HEAD, SPLITS, KEYS, 1, BLOCK,
        )  # fmt: skip
    barrier(count_ptr, due)
    for layer in range(LAYERS):
        for phase in tl.static_range(1, 6):
            token_kernel(
                tokens_ptr, positions_ptr, norm1_gain_ptr, norm1_shift_ptr, qkv_weight_ptr, qkv_bias_ptr,
                projection_weight_ptr, projection_bias_ptr, norm2_gain_ptr, norm2_shift_ptr, up_weight_ptr,
                up_bias_ptr, down_weight_ptr, down_bias_ptr, norm_gain_ptr, norm_shift_ptr, zeros_ptr, cache_ptr,
                new_ptr, x_ptr, q_ptr, part_ptr, hidden_ptr, logits_ptr, token, T, layer, LONGEST, VOCABULARY, WIDTH,
                HEADS, epsilon, phase, HEAD, SPLITS, KEYS,
                QKV_ROWS if phase == 1 else PROJECTION_ROWS if phase == 3 else UP_ROWS if phase == 4 else DOWN_ROWS,
                BLOCK,
            )  # fmt: skip
            due += programs
            barrier(count_ptr, due)
    token_kernel(
        tokens_ptr, positions_ptr, norm1_gain_ptr, norm1_shift_ptr, qkv_weight_ptr, qkv_bias_ptr,
        projection_weight_ptr, projection_bias_ptr, norm2_gain_ptr, norm2_shift_ptr, up_weight_ptr, up_bias_ptr,
        down_weight_ptr, down_bias_ptr, norm_gain_ptr, norm_shift_ptr, zeros_ptr, cache_ptr, new_ptr, x_ptr, q_ptr,
        part_ptr, hidden_ptr, logits_ptr, token, T, 0, LONGEST, VOCABULARY, WIDTH, HEADS, epsilon,
        6, HEAD, SPLITS, KEYS, HEAD_ROWS, BLOCK,
    )  # fmt: skip
    ### END SOLUTION


### BEGIN SOLUTION
#: raise NotImplementedError("barrier and persistent_kernel: write them, then delete this line")
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "challenge-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "challenge", "role": "test", "needs": ["setup", "f"]}
draw = grading.Draws("challenge", DEVICE)


def check_persistent(layers, heads, vocabulary, length, what, **constants):
    """Compare the scores of one token with the reference in float64."""
    small = decoder.random_decoder(
        layers=layers, width=32 * heads, heads=heads, vocabulary=vocabulary, positions=length + 2,
        seed=draw.integer(0, 2**31), device=DEVICE,
    )  # fmt: skip
    larger = {
        name: (tensor * (5 if name.endswith("weight") else 1)).contiguous() for name, tensor in small.tensors.items()
    }
    small = decoder.Decoder(heads, **larger)
    cache = draw.matrix(layers * (length + 2) * 2, 32 * heads).view(layers, length + 2, 2, 32 * heads)
    token = draw.integer(1, vocabulary - 1)
    right = small.to(torch.float64).step(token, length - 1, cache.double()).float()
    constants = SMALL | {"TOKEN": token, "LENGTH": length} | constants
    what = f"persistent_kernel, {what}: {layers} layers of width {32 * heads}, {vocabulary} tokens, T {length}"
    inputs = [cache, *small.tensors.values()]
    grading.check_kernel(persistent_kernel, constants, inputs, right, launch=launch_persistent, what=what)


check_persistent(1, 1, 40, 1, "one layer, the first token")
check_persistent(2, 2, 50, 12, "two layers")
if DEVICE == "cuda":  # often enough that a missing barrier shows
    for _ in range(5):
        check_persistent(
            6, 4, 500, 60, "six layers", QKV_ROWS=2, PROJECTION_ROWS=1, UP_ROWS=2, DOWN_ROWS=1, HEAD_ROWS=2
        )
### BEGIN HIDDEN TESTS
check_persistent(3, draw.integer(1, 3), draw.integer(30, 90), draw.integer(2, 30), "other sizes", SPLITS=3, KEYS=8)
check_persistent(1, 1, 520, 3, "more blocks than a GPU has multiprocessors", HEAD_ROWS=2)
### END HIDDEN TESTS
scorecard.passed("challenge")

# %% [markdown]
# ## Gap: why do prediction and count differ?
#
# A formula is a prediction. Here are four cases in which a count of what really happens gives another number.


# %%
def show_gap(case, what, predicted, counted):
    print(
        f"case {case}, {what}: predicted {predicted:,.4g}, counted {counted:,.4g}, {counted / predicted:.2f} times as many"
    )


weights_of_gpt2 = weight_bytes(12, 768, 50257, 2)
# 1. Microseconds of a token at 4 TB/s. Counted: with 62 kernels that cost 1.5 us each, whatever they do.
show_gap(1, "us", weights_of_gpt2 / 4e6, step_seconds(weights_of_gpt2, 4e12, 62, 1.5e-6) * 1e6)
# 2. Turns of 132 multiprocessors for 144 blocks of 16 rows. Counted: a turn lasts until its last block is done.
show_gap(2, "turns", 144 / 132, triton.cdiv(144, 132))
# 3. Bytes of a step for 32 texts at once, from the weights, which all share. Counted: each text has 1,024 tokens.
show_gap(3, "bytes", weights_of_gpt2, weights_of_gpt2 + 32 * cache_bytes(12, 768, 1024, 2))
# 4. Bytes that come from memory for ten tokens of the small model. Counted: the chip keeps 50 MB of what it used last.
small_bytes = weight_bytes(2, 96, 96, 2)
show_gap(4, "bytes", 10 * small_bytes, sum(small_bytes for number in range(10) if number == 0 or small_bytes > 50e6))

# %% [markdown]
# Name the cause of each gap. The choices:
#
# - `"boundaries"`: between two kernels, memory waits.
# - `"turns"`: the last turn has fewer blocks than there are multiprocessors.
# - `"context"`: keys and values are read for each text alone, and grow with its tokens.
# - `"kept"`: what was fetched for one token is still on the chip for the next.
# - `"padding"`: a block of a power of two holds more elements than a row has.
# - `"rounding"`: numbers of 16 bits lose digits.
#
# <details><summary>Hint 1</summary>
# Two of the six causes do not fit any case: nothing here counts elements of a block, and a count of bytes says nothing of
# digits. Which case has a count that is lower than predicted?
# </details>
# <details><summary>Hint 2</summary>
# In case 2, what do 120 of the 132 multiprocessors do in the second turn? In case 3, what do the texts not share?
# </details>
# <details><summary>Hint 3</summary>
# Case 1: 62 times 1.5 is 93. Case 2: 144 = 132 + 12. Case 3: 32 texts with 37.7 MB each. Case 4: 0.5 MB fit in 50 MB.
# </details>

# %% nbgrader={"grade": false, "grade_id": "gap-causes", "locked": false, "schema_version": 3, "solution": true, "task": false} mlsys={"question": "gap", "role": "solution", "needs": ["setup"], "title": "Why prediction and count differ"}
### BEGIN SOLUTION
#: cause_1 = None
#: cause_2 = None
#: cause_3 = None
#: cause_4 = None
cause_1 = "boundaries"
cause_2 = "turns"
cause_3 = "context"
cause_4 = "kept"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "gap-test", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false} mlsys={"question": "gap", "role": "test", "needs": ["setup"]}
for number, cause in enumerate((cause_1, cause_2, cause_3, cause_4), start=1):
    if cause is None:
        raise NotImplementedError(f"cause_{number} is still None: choose one of the six")
    choices = ("boundaries", "turns", "context", "kept", "padding", "rounding")
    assert cause in choices, f"cause_{number} is {cause!r}; choose one of {', '.join(choices)}"
### BEGIN HIDDEN TESTS
key = ("boundaries", "turns", "context", "kept")
for number, (said, true) in enumerate(zip((cause_1, cause_2, cause_3, cause_4), key, strict=True), start=1):
    assert said == true, f"cause_{number}: {said!r} does not make this gap; do the sums of the hints"
### END HIDDEN TESTS
scorecard.answered("gap")

# %% [markdown]
# ## What came out
#
# Your predictions beside what was counted and measured:

# %%
grading.compare(
    predictions,
    best_us=best_seconds(12, 768, 50257, 1, 2, 4e12) * 1e6,
    cache_share=cache_bytes(12, 768, 1024, 2) / (weight_bytes(12, 768, 50257, 2) + cache_bytes(12, 768, 1024, 2)),
    mlp_share=8 * 768**2 / (12 * 768**2),
    idle_share=1 - 12 / 132,
    times_library=race.pairs[RACES[0]].ratio if "race" in globals() else None,
)

# %% [markdown]
# The picture shows your model of a step: the time of its bytes, and what the boundaries add, for as many kernels a layer
# as you like. The slope is 12 layers times a boundary. Fusing moves you along a line; a graph and a persistent kernel put
# you on a flatter one.

# %%
from mlsys import viz

_, axes, _, plt = viz.setup_plot(figsize=(6.5, 3.8))
counts = list(range(1, 25))
moved = weight_bytes(12, 768, 50257, 2) + cache_bytes(12, 768, 512, 2)
for label, boundary in [
    ("boundary of 5 us: launched by the host", 5e-6),
    ("1.5 us: in a graph", 1.5e-6),
    ("0.9 us: a barrier", 0.9e-6),
]:
    times = [step_seconds(moved, 4e12, kernels(12, count, 2), boundary) * 1e6 for count in counts]
    axes.plot(counts, times, label=label)
axes.axhline(moved / 4e6, linestyle=":", color="gray", label="bytes at 4 TB/s")
axes.set(xlabel="kernels a layer", ylabel="us a token", ylim=(0, None))
axes.legend(fontsize=9, loc="upper left")
plt.show()

# %% [markdown]
# The course's own kernels for this model go further in three ways. The best score is found in the kernel that computes
# the scores, and the next token's first kernel takes it from memory, so one CUDA graph serves all tokens. Every program
# fetches its weights before it looks at x. And the persistent kernel has no barriers: a program waits only for the numbers
# that it needs, and before it waits, it loads its weights of this phase and asks the L2 cache for those of the next layer.
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
