"""Whole networks on a GPU against torch: `python -m pytest tests/compiler/test_models_gpu.py -m gpu`.

Each network runs in float32 as compiled, twice: the first call compiles the kernels, the second launches them again.
Both are held to torch in float64, and what was found is written to `tests/compiler/results`.
"""

import time
from pathlib import Path

import pytest
import torch
from compiler.test_models import FULL
from helpers import compiled_models as nets
from helpers.on_gpu import needs_gpu, read_records, write_record

from mlsys.compiler import compile

RESULTS = Path(__file__).parent / "results"
TOLERANCE = 1e-5
"""Largest difference from float64, relative to the largest result; products are sums of three tf32 products."""


def compare(name):
    torch.manual_seed(0)
    model, inputs = FULL[name]()
    model, inputs = nets.seeded(model).cuda().requires_grad_(False), [value.cuda() for value in inputs]
    start = time.perf_counter()
    compiled = compile(model, inputs, "cuda")
    first = compiled(*inputs)[0].double()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    torchs = model(*inputs).double()
    want = model.double()(*(value.double() if value.is_floating_point() else value for value in inputs))
    error = {}
    for who, got in (("first call", first), ("second call", compiled(*inputs)[0].double()), ("torch", torchs)):
        error[who] = ((got - want).abs().max() / want.abs().max()).item()
    return {"kernels": compiled.source.count("    launch("), "compile_s": round(seconds, 2), "error": error}


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(500)
def test_networks_agree_with_float64_on_a_gpu():
    found = {}
    for name in FULL:
        try:
            found[name] = compare(name)
        except Exception as failure:
            found[name] = {"failed": f"{type(failure).__name__}: {failure}"[:500]}
        print(name, found[name], flush=True)
    write_record(RESULTS, {"networks": found})
    check(found)


@pytest.mark.parametrize("record", read_records(RESULTS), ids=lambda record: record["device"])
def test_networks_agreed_with_float64_where_they_were_run(record):
    check(record["networks"])


def check(found):
    assert set(found) == set(FULL)
    for name, what in found.items():
        assert "failed" not in what, what
        for call in ("first call", "second call"):
            assert what["error"][call] <= TOLERANCE, (name, what)
