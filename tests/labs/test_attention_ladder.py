"""The ladder of attention kernels: every rung in Triton's interpreter, and compiled for a GPU that is not here."""

import os
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from helpers.known_lab import compile_kernels

from mlsys import Hardware
from mlsys.measure.device import torch_sees_gpu

pytestmark = pytest.mark.proof

LAB = Path(__file__).parents[2] / "labs/attention"
FOLDER = LAB / "ladder"
RUNGS = [path.stem for path in sorted(FOLDER.glob("[0-9][0-9]_*.py"))]
SHARED_BYTES = int(Hardware.get("h100-sxm").field("shared_memory_per_block").value.m_as("byte"))

on_cpu = pytest.mark.skipif(torch_sees_gpu(), reason="the rungs would run on the GPU")


@cache
def harness():
    return runpy.run_path(str(LAB / "bench.py"))["harness_module"]()


def test_there_is_a_rung_for_every_number_up_to_the_last():
    assert [rung[:2] for rung in RUNGS] == [f"{number:02}" for number in range(1, len(RUNGS) + 1)]
    assert len(RUNGS) >= 5
    assert harness().rungs() == RUNGS


@on_cpu
@pytest.mark.parametrize("rung", RUNGS)
def test_a_rung_computes_attention(rung):
    torch.manual_seed(1)
    for shape in harness().small_shapes():
        harness().check(harness().load(rung).attend, shape)


def test_a_wrong_result_is_told():
    def forgets_a_token(q, k, v, out):
        out.copy_(harness().library(q, k, v))
        out[:, -1] = 0

    with pytest.raises(ArithmeticError, match="relative error"):
        harness().check(forgets_a_token, (2, 40, 16))
    with pytest.raises(ArithmeticError, match="nan"):
        harness().check(lambda q, k, v, out: None, (2, 40, 16))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: t.float(), r"q is torch\.float32: give float16"),
        (lambda t: t[..., :8].contiguous(), "a head has 8 numbers: give 16, 32, 64 or 128"),
        (lambda t: t.transpose(0, 1), "give all four alike, contiguous"),
    ],
)
def test_tensors_that_no_rung_takes_are_refused_before_a_launch(change, says):
    tensors = [change(tensor) for tensor in harness().tensors(2, 3, 16)]
    for rung in RUNGS:
        with pytest.raises(ValueError, match=says):
            harness().load(rung).attend(*tensors)


@on_cpu
def test_a_rung_runs_by_itself():
    command = [sys.executable, FOLDER / "02_online_softmax.py"]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "in Triton's interpreter" in done.stdout
    assert done.stdout.count("right, relative error") == 2


def job(kernel, constants, warps, stages):
    return {
        "kernel": kernel,
        "dtype": "fp16",
        "capability": 90,
        "constants": constants,
        "num_warps": warps,
        "num_stages": stages,
        "types": {} if kernel in WITHOUT_SCALE else {"scale": "fp32"},
        "odd": ["N"] if kernel in WITHOUT_SCALE else ["N", "scale"],
    }


WITHOUT_SCALE = ("softmax_kernel", "average_kernel")
COMPILED = {
    "01_three_kernels": [
        ("scores_kernel", {"D": 128, "TILE": 64}, 4, 1),
        ("softmax_kernel", {"WIDE": 4096}, 8, 1),
        ("average_kernel", {"D": 128, "TILE": 64}, 4, 2),
    ],
    "02_online_softmax": [("online_kernel", {"D": 128, "BLOCK_Q": 32, "BLOCK_K": 32}, 8, 1)],
    "03_tensor_cores": [("tensor_kernel", {"D": 128, "BLOCK_Q": 64, "BLOCK_K": 64}, 4, 1)],
    "04_causal_skipping": [
        ("skipping_kernel", {"D": 128, "BLOCK_Q": 64, "BLOCK_K": 64}, 4, 1),
        ("skipping_kernel", {"D": 128, "BLOCK_Q": 128, "BLOCK_K": 64}, 8, 2),  # as rung 5 launches it
    ],
}


@pytest.mark.parametrize("rung", COMPILED)
def test_a_rung_compiles_for_hopper_and_uses_what_it_is_about(rung, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{FOLDER}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    needed = compile_kernels(FOLDER / f"{rung}.py", [job(*one) for one in COMPILED[rung]])
    for needs, (kernel, *_) in zip(needed, COMPILED[rung], strict=True):
        assert needs["spilled_bytes"] == 0, kernel
        assert needs["shared_bytes"] <= SHARED_BYTES, kernel
        assert needs["tensor_cores"] == (kernel not in ("softmax_kernel", "online_kernel")), kernel


def test_what_the_chapter_says_that_two_rungs_need(monkeypatch):
    """At the record's shape, whose tokens are a multiple of 16, which Triton uses."""
    monkeypatch.setenv("PYTHONPATH", f"{FOLDER}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    launches = COMPILED["04_causal_skipping"]
    needed = compile_kernels(FOLDER / "04_causal_skipping.py", [job(*one) | {"odd": ["scale"]} for one in launches])
    used = [
        (32 * warps, needs["registers"], needs["shared_bytes"])
        for needs, (_, _, warps, _) in zip(needed, launches, strict=True)
    ]
    figures = runpy.run_path(str(LAB.parents[1] / "book/_figures/attention.py"))
    assert used == list(figures["LADDER_NEEDS"].values())
