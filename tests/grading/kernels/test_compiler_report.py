import pytest
import torch
import triton
import triton.language as tl

from mlsys.errors import UserError
from mlsys.grading.kernels.compiler_report import compiler_report
from mlsys.grading.verdicts import NotAKernel

FACTOR = 3.0


@triton.jit
def scaled(x):
    return x * FACTOR


@triton.jit
def scale_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index, mask=index < count, other=0.0)
    y = scaled(x)
    tl.store(y_ptr + index, y / tl.sum(y, 0), mask=index < count)


@triton.jit
def unshaped_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + tl.arange(0, BLOCK + 1)))


@triton.jit
def foreign_kernel(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
    print(torch.zeros(3))


def launch(kernel, constants, y, x):
    kernel[(1,)](x, y, x.numel(), **constants)


def report(kernel, configs, capabilities=(90,)):
    x = torch.empty(4096, device="meta")
    return compiler_report(kernel, configs, x, x, launch=launch, capabilities=capabilities)


def test_fewer_warps_take_more_registers_until_they_spill():
    configs = [{"BLOCK": 8192, "num_warps": warps} for warps in (8, 2, 1)]
    easy, tight, full = report(scale_kernel, configs)
    assert 32 <= easy.registers < tight.registers <= full.registers <= 255
    assert easy.spilled_bytes == 0
    # One warp would hold 256 numbers per thread, more than a thread has registers.
    assert full.spilled_bytes > 0


def test_one_report_per_configuration_and_architecture():
    reports = report(scale_kernel, [{"BLOCK": 1024}, {"BLOCK": 2048}], (75, 80))
    assert [(r.constants["BLOCK"], r.capability) for r in reports] == [(1024, 75), (1024, 80), (2048, 75), (2048, 80)]


def test_a_kernel_that_does_not_compile_says_why():
    with pytest.raises(UserError, match="power of 2"):
        report(unshaped_kernel, [{"BLOCK": 1024}])


def test_python_in_a_kernel_is_refused():
    with pytest.raises(NotAKernel, match="uses torch.zeros"):
        report(foreign_kernel, [{"BLOCK": 1024}])
