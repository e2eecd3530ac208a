"""Positions against NumPy: the element that each picks from a tensor of consecutive numbers."""

import math
import random
from itertools import product

import numpy as np
import pytest

from mlsys.compiler.ir.expression import axis, flatten, unflatten, walk


def value_of(position, at):
    if position.op == "axis":
        return at[position]
    inner = [value_of(arg, at) for arg in position.args]
    if position.op == "linear":
        factors, constant = position.detail
        return constant + sum(value * factor for value, factor in zip(inner, factors, strict=True))
    assert inner[0] >= 0, "a kernel divides towards zero"
    return inner[0] // position.detail if position.op == "floordiv" else inner[0] % position.detail


def split(rng, size):
    """Return a random shape of a number of elements."""
    shape = []
    while size > 1 and len(shape) < 4:
        factor = rng.choice([n for n in range(1, size + 1) if size % n == 0])
        shape.append(factor)
        size //= factor
    return (*shape, size)


@pytest.mark.parametrize("seed", range(60))
def test_chains_of_views_pick_the_elements_that_numpy_picks(seed):
    rng = random.Random(seed)
    expected = np.arange(rng.choice([24, 36, 60])).reshape(-1)
    steps = []
    for _ in range(rng.randint(1, 5)):
        before = expected.shape
        kind = rng.choice(["reshape", "transpose", "reverse", "cut"])
        if kind == "reshape":
            expected = expected.reshape(split(rng, expected.size))
            steps.append(lambda p, new=expected.shape, old=before: unflatten(flatten(p, new), old))
        elif kind == "transpose":
            order = rng.sample(range(len(before)), len(before))
            expected = expected.transpose(order)
            steps.append(lambda p, order=order: tuple(p[order.index(n)] for n in range(len(order))))
        elif kind == "reverse":
            expected = expected[::-1]
            steps.append(lambda p, last=before[0] - 1: (p[0] * -1 + last, *p[1:]))
        elif before[0] > 1:
            expected = expected[1:]
            steps.append(lambda p: (p[0] + 1, *p[1:]))
    axes = places = tuple(axis(f"i{n}", extent) for n, extent in enumerate(expected.shape))
    for step in reversed(steps):
        places = step(places)
    (position,) = places  # of the tensor of one dimension at the beginning
    low, high = position.bounds
    for at in product(*(range(extent) for extent in expected.shape)):
        found = value_of(position, dict(zip(axes, at, strict=True)))
        assert found == expected[at]
        assert low <= found <= high


def test_there_and_back_is_the_plain_index():
    axes = (axis("a", 4), axis("b", 6), axis("c", 10))
    for shape in ((24, 10), (4, 60), (2, 2, 3, 2, 5, 2), (240,), (4, 2, 3, 10)):
        assert math.prod(shape) == 240
        assert unflatten(flatten(unflatten(flatten(axes, (4, 6, 10)), shape), shape), (4, 6, 10)) == axes


def test_positions_print_as_python_reads_them():
    a, b = axis("a", 4), axis("b", 6)
    position = (a * 6 + b) // 4 * 3 + (b + 5) % 4
    assert any(part.op == "mod" for part in walk(position))
    for at in product(range(4), range(6)):
        names = {"a": at[0], "b": at[1]}
        assert eval(str(position), names) == value_of(position, dict(zip((a, b), at, strict=True)))
