"""Speed and memory of the calculation package: `make bench`, with the limits that each case must keep.

These are no part of `make test`: a busy machine would fail them for nothing. Results go to `_build/bench/package.json`.
"""

import statistics
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from mlsys import Hardware, models
from mlsys.dataflow.loop_nest import convolution
from mlsys.dataflow.search import exhaustive_search, pruned_search
from mlsys.roofline import Roofline
from mlsys.systolic import gemm_cycles, simulate

M, N, K, SIDE = 256, 256, 768, 32
LAYER = convolution(batch=4, filters=128, channels=64, kernel=3, height=56, width=56, padding=1)
TILE = {"n": [2], "m": [32], "c": [16], "p": [14], "q": [14], "r": [1], "s": [1]}
MOST_BYTES = 500 * 10**6


def gemm_cycles_closed_form():
    return gemm_cycles(M, N, K, rows=SIDE, cols=SIDE, dataflow="ws")


def systolic(dataflow):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 8, (M, K)), rng.integers(-8, 8, (K, N))
    return lambda: simulate(a, b, rows=SIDE, cols=SIDE, dataflow=dataflow)


def exhaustive_mapping_search():
    return exhaustive_search(LAYER, memory=1 << 20, tiles=TILE)


def pruned_mapping_search():
    return pruned_search(LAYER, memory=1 << 20, tiles=TILE)


def llama_roofline():
    return Roofline.of(Hardware.Cloud.H100, "fp16").time(models.llama2_70b().ops)


CASES = {
    "closed-form GEMM cycles": (gemm_cycles_closed_form, 20e-6),
    "systolic array ws, 256 x 256 x 768 at 32 x 32": (systolic("ws"), 50e-3),
    "systolic array os, the same": (systolic("os"), 50e-3),
    "systolic array is, the same": (systolic("is"), 50e-3),
    "5,040 loop orders, exhaustive": (exhaustive_mapping_search, 1.0),
    "5,040 loop orders, pruned": (pruned_mapping_search, 1.0),
    "roofline of Llama-2 70B": (llama_roofline, 20e-3),
}


@pytest.mark.parametrize("name", CASES)
def test_time(name, benchmark):
    case, limit_s = CASES[name]
    benchmark.extra_info["limit_s"] = limit_s
    benchmark(case)
    assert benchmark.stats.stats.median < limit_s


@pytest.mark.parametrize("name", CASES)
def test_memory(name):
    tracemalloc.start()
    CASES[name][0]()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST_BYTES


def import_time_s(package):
    code = f"import time; start = time.perf_counter(); import {package}; print(time.perf_counter() - start)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_import_takes_at_most_twice_as_long_as_pint(benchmark):
    """Alternating runs, so that both meet the same machine."""
    times = [(import_time_s("mlsys"), import_time_s("pint")) for _ in range(15)]
    ours, pints = (statistics.median(column) for column in zip(*times, strict=True))
    benchmark.extra_info |= {"mlsys_s": ours, "pint_s": pints, "ratio": ours / pints}
    benchmark.pedantic(import_time_s, args=("mlsys",), rounds=1)
    assert ours <= 2 * pints
