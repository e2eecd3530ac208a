"""Time of `grading.inspect` beside Triton's interpreter, on the kernels of the labs."""

import statistics
import time
import warnings
from functools import cache

import pytest
from helpers.lab_mutants import kernels_of_labs

from mlsys.grading import inspect

MOST = 2.0
"""Largest ratio of the times."""
ROUNDS = 5


@cache
def kernels():
    return kernels_of_labs()


def seconds(call):
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def test_inspection_takes_at_most_twice_the_interpreters_time(benchmark):
    """Both run a launch in turn, so that both meet the same machine; the ratio is that of the medians."""
    ratios = {}
    warnings.simplefilter("ignore")  # the interpreter computes with whatever is in masked lanes
    for (lab, name), (kernel, launches) in kernels().items():
        interpreted = inspected = 0.0
        for launch in launches:
            args, kwargs = launch.fresh()
            plain = lambda: kernel[launch.grid](*args, **kwargs)  # noqa: B023, E731
            checked = lambda: inspect(kernel, launch.grid, *args, **kwargs)  # noqa: B023, E731
            pairs = [(seconds(plain), seconds(checked)) for _ in range(ROUNDS + 1)][1:]
            one, other = (statistics.median(column) for column in zip(*pairs, strict=True))
            interpreted, inspected = interpreted + one, inspected + other
        ratios[f"{lab}: {name}"] = inspected / interpreted
    benchmark.extra_info |= {"ratios": ratios, "limit": MOST}
    benchmark.pedantic(lambda: None, rounds=1)
    print("\n".join(f"{name:40} {ratio:.2f}" for name, ratio in ratios.items()))
    assert ratios
    assert {name: ratio for name, ratio in ratios.items() if ratio > MOST} == {}


if __name__ == "__main__":
    pytest.main([__file__, "-s"])
