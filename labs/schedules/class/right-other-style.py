# Everything right, written otherwise: the elements enter in the opposite order of k, closed formulas, NumPy for the tiles,
# a recursive search with a cache, tuples for lists, an exploratory cell that fails. Points: all.

# %% solve=gap-predictions,gap-causes

# %% replace=a-schedule
import numpy as np


def output_stationary(m, n, k):
    # the last element of each row first
    rows, cols, depth = np.arange(m)[:, None], np.arange(n)[None, :], k - 1 - np.arange(k)
    return {"b": (TERM_FIRST + depth[:, None] + cols).tolist(), "a": (TERM_FIRST + rows + depth[None, :]).tolist()}

# %% add after=a-test
print(output_stationary(2, 2, 2)["c"])

# %% replace=b-schedule
def weight_stationary(m, n, k):
    schedule = dict(a=[], b=[], c=[])
    for p in range(k):
        schedule["b"].append((TERM_FIRST + k - 1 - p,) * n)
    for i in range(m):
        row = TERM_FIRST + m - 1 - i  # the last input first
        schedule["a"].append(tuple(range(k + row, 2 * k + row)))
        schedule["c"].append(tuple(range(2 * k + row - 1, 2 * k + row - 1 + n)))
    return schedule

# %% replace=c-cycles
from math import ceil


def product_cycles(m, n, k, rows, cols, dataflow):
    if dataflow == "os":
        m, k = k, m
    down, across = ceil(k / rows), ceil(n / cols)
    return 2 * k * across + n * down + down * across * (m - 2)


def half_busy_batch(n, k, rows, cols):
    def half_busy(m):
        return 2 * m * n * k >= rows * cols * product_cycles(m, n, k, rows, cols, "ws")

    high = 1
    while not half_busy(high):
        high *= 2
        if high > 10**15:
            return None
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if half_busy(middle) else (middle, high)
    return high

# %% replace=c-why
Busy share at batch 8: 2% on the large array and 8% on small ones; at 4096: 91% and 98%. Small arrays for single users, with four
times the reads of inputs; large ones for training. Requests can be batched.

# %% replace=d-choice
choices = (TERM_CHOICES)

# %% replace=e-plan
from functools import cache

import numpy as np


def plan(layers, chip):
    memory, bandwidth = chip["memory"], chip["bandwidth"]

    @cache
    def fastest(layer, flow):
        first, second, inner = ORDER[flow]
        side = dict(zip("mnk", layer))
        best = None
        parts = np.unique(-(-side[first] // np.arange(1, side[first] + 1)))
        for inner_tile in (1, side[inner]):
            room = np.minimum(side[second], (memory - parts * inner_tile) // (parts + inner_tile))
            for one, other in zip(parts[room > 0].tolist(), room[room > 0].tolist()):
                tile = {first: one, second: other, inner: inner_tile}
                tile = tile["m"], tile["n"], tile["k"]
                found = layer_cycles(layer, flow, tile, chip), tile
                best = found if best is None else min(best, found)
        return best

    @cache
    def rest(number, flow):
        """Least cycles from a layer on, given its dataflow, and the dataflow of the next layer."""
        layer = layers[number]
        own = fastest(layer, flow)[0]
        if number + 1 == len(layers):
            return own, None
        change = -(-2 * layer[0] * layer[1] // bandwidth)
        return min((own + rest(number + 1, x)[0] + (x != flow) * change, x) for x in ORDER)

    flow = min(ORDER, key=lambda x: rest(0, x)[0])
    steps = []
    for number, layer in enumerate(layers):
        steps.append([flow, list(fastest(layer, flow)[1])])
        flow = rest(number, flow)[1]
    return tuple(steps)

# %% replace=challenge-schedule
def double_buffered(folds, m, rows, cols):
    between = m if m >= 2 * rows else 2 * rows - 1
    a, b, swap, now = [], [], [], TERM_FIRST + rows
    for _ in range(folds):
        swap.append(now)
        # the weights of the next fold as early as the last row allows
        start = now - between + rows - 1 if b else TERM_FIRST
        b.append([[start + j + rows - 1 - p for j in range(cols)] for p in range(rows)])
        a.append([[now + i + p for p in range(rows)] for i in range(m)])
        now += between
    return {"a": a, "b": b, "swap": swap}
