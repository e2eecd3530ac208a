"""What the labs launch on a T4, which Colab has: it compiles and fits there, or its question waits for another GPU."""

import ast
from functools import cache

import pytest
import torch
from helpers.as_on_gpu import LabOnGpu, shared_bytes
from helpers.known_lab import ROOT, KnownLab

from mlsys.cli import doctor
from mlsys.course.lab import SPEED, TEST, find_labs
from mlsys.hardware import Hardware
from mlsys.measure.device import Device, torch_sees_gpu

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(torch_sees_gpu(), reason="labs run on the GPU here, not in the interpreter"),
]

LABS = [name for name in find_labs(ROOT) if name != "schedules"]  # that one has no kernels
T4, H100 = (7, 5), (9, 0)
SHARED_BYTES = Hardware.get("t4").field("shared_memory_per_block").value.m_as("byte")

REFUSED = {
    ("precision", "d"): {"int8_kernel"},  # Triton multiplies no int8 there
    ("precision", "g"): {"fp8_kernel", "fp8_reference"},  # nor does it have fp8
    ("attention", "g"): {"gqa_kernel", "reference_kernel"},  # the race's blocks take too much shared memory
}
"""Kernels that do not compile for a T4, or do not fit into it, by lab and question."""

TOO_SLOW = {("tiling", "challenge"), ("convolution", "f"), ("precision", "f"), ("capstone", "g")}
"""Questions that wait on a T4 because they are about the speed of tensor cores; their kernels are not compiled here."""


on_gpu = cache(LabOnGpu)


def misfits(launches):
    """Return a line for each launch whose kernel does not compile for a T4, or takes too much of its shared memory."""
    different = list({launch.key[1:]: launch for launch in launches}.values())  # questions may share a launch
    return [
        f"{launch.kernel.__name__}, {launch.kwargs}: {found}"
        for launch, found in zip(different, shared_bytes(different, T4), strict=True)
        if not isinstance(found, int) or found > SHARED_BYTES
    ]


@pytest.mark.parametrize("name", LABS)
def test_what_a_lab_launches_on_a_t4_compiles_and_fits(name):
    assert misfits(on_gpu(name, T4).launches.values()) == []


@pytest.mark.parametrize("name", LABS)
def test_the_questions_that_a_t4_cannot_run_wait_and_no_others(name):
    waiting = on_gpu(name, T4).waiting
    assert set(waiting) == {question for lab, question in {*REFUSED, *TOO_SLOW} if lab == name}
    assert all("waits for such a" in why for why in waiting.values()), waiting


@pytest.mark.parametrize(("name", "question"), REFUSED)
def test_a_kernel_that_is_said_not_to_run_on_a_t4_does_not(name, question):
    launches = [one for one in on_gpu(name, H100).launches.values() if one.question == question]
    assert {one.kernel.__name__ for one in launches} == REFUSED[name, question]
    for kernel in REFUSED[name, question]:  # the largest tiles are launched last
        assert any(misfits([one]) for one in reversed(launches) if one.kernel.__name__ == kernel), kernel


@pytest.mark.parametrize("name", LABS)
def test_every_kernel_of_a_lab_is_launched_or_said_not_to_run_on_a_t4(name):
    launches = on_gpu(name, T4).launches.values()
    texts = "\n".join({one.text for one in launches})
    known = {one.kernel.__name__ for one in launches}.union(*(REFUSED[key] for key in REFUSED if key[0] == name))
    for cell in KnownLab(name).lab.cells:
        for kernel in jit_functions(cell) if cell.role not in (TEST, SPEED) else ():
            assert kernel in known or f"{kernel}(" in texts.replace(f"def {kernel}(", ""), kernel


def jit_functions(cell):
    if cell.kind != "code":
        return []
    functions = (node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.FunctionDef))
    return [one.name for one in functions if "triton.jit" in map(ast.unparse, one.decorator_list)]


@pytest.mark.parametrize("name", LABS)
def test_no_lab_makes_bfloat16_on_a_t4(name):
    tensors = [arg for one in on_gpu(name, T4).launches.values() for arg in one.args if torch.is_tensor(arg)]
    assert torch.bfloat16 not in {tensor.dtype for tensor in tensors}
    for cell in KnownLab(name).lab.cells:
        if cell.kind == "code":
            nodes = list(ast.walk(ast.parse(cell.source)))
            asked = [node for node in nodes if isinstance(node, ast.If) and "has_bf16" in ast.unparse(node.test)]
            behind = [call for node in asked for call in calls_with_bfloat16(ast.walk(node))]
            assert calls_with_bfloat16(nodes) == behind


def calls_with_bfloat16(nodes):
    """The calls that give the name of the format, in order of their lines."""
    calls = (node for node in nodes if isinstance(node, ast.Call))
    named = (one for one in calls for value in ast.walk(one) if getattr(value, "value", None) == "bfloat16")
    return sorted({ast.unparse(one): one for one in named}.values(), key=lambda one: one.lineno)


def test_the_doctor_says_the_same_of_a_t4(monkeypatch):
    monkeypatch.setattr(doctor, "other_jobs", lambda: "")
    said = {finding.text: finding.mark for finding in doctor.abilities(Device("gpu", "Tesla T4", T4))}
    assert said["labs, compiled for this GPU, and speed questions in fp32"] == "yes"
    assert said["bf16 in kernels"] == "no"
    waits = "int8 products and speed questions for tensor cores: they wait for compute capability 8.0"
    assert said[waits] == "no"
