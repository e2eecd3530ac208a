"""Measured roofs of a GPU: work that only one part of the chip limits.

A roof says little about a program if it was measured with that program. So the kernels here are none of those that a
chapter or a lab draws under a roof: "stream triad" is limited by the memory alone, "mma chain ..." by the tensor cores
alone (operations on int8 count as FLOP here), and "fma chain fp32" by the vector units alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from mlsys.errors import UnknownName
from mlsys.measure.device import Device
from mlsys.measure.timing import time_kernel
from mlsys.units import Quantity, ureg

TRIAD = "stream triad"
MMA = "mma chain"
FMA = "fma chain fp32"

MMA_TYPES: Mapping[str, torch.dtype] = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "tf32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}

DEPTH_BYTES = 128
"""Bytes of a row of either operand of an mma chain: as much as one access to shared memory delivers."""

CHECKED_ELEMENTS = 2**20
CHECKED_STEPS = 3
CHECK_ERROR = 0.01
"""Largest relative error of a chain's few checked steps: tf32 keeps 10 bits of each factor, fp8 sums about 13."""


@dataclass(frozen=True)
class RoofSizes:
    """Sizes of the roofs' work; the defaults suit a GPU.

    Attributes:
        triad_elements: float32 numbers in each of the triad's three vectors.
        programs: programs per multiprocessor.
        mma_steps: products that a program adds up, one after the other.
        fma_steps: multiply-adds of each chain, one after the other.
    """

    triad_elements: int = 2**28
    programs: int = 4
    mma_steps: int = 512
    fma_steps: int = 2048


@dataclass(frozen=True)
class Roof:
    """Work that one part of the chip limits.

    Attributes:
        call: does the work once.
        work: what one call does, in TFLOP or GB.
        rate_unit: "TFLOP/s" or "GB/s".
        shape: (elements,) of a triad, (m, n, k) of all products of a program together, (chains, steps).
        dtype: number format of the operands.
    """

    call: Callable[[], None]
    work: float
    rate_unit: str
    shape: tuple[int, ...]
    dtype: str

    def rate(self, budget_s: float) -> Quantity:
        """Measure the roof: work / median time."""
        timing = time_kernel(self.call, on_gpu=True, budget_s=budget_s)
        return ureg.Quantity(self.work / timing.median_s, self.rate_unit)


def roofs_of(device: Device) -> tuple[str, ...]:
    """Return the names of the roofs that can be measured on a device: mma chains from Ampere (8.0) on."""
    capability = device.capability or (0, 0)
    precisions = ("fp16", "bf16", "tf32", "int8", *(("fp8",) if capability >= (8, 9) else ()))
    chains = tuple(f"{MMA} {precision}" for precision in precisions) if device.has_triton_tensor_cores else ()
    return (TRIAD, *chains, FMA)


def roof(name: str, device: Device, sizes: RoofSizes | None = None) -> Roof:
    """Prepare the work of a roof on a device (on the CPU for a CPU), after a check of what its kernel computes.

    Raises:
        UnknownName: if there is no such roof.
        ArithmeticError: if the kernel's result is wrong, so that its rate would be one of other work.
    """
    sizes = sizes or RoofSizes()
    chains = {f"{MMA} {precision}": precision for precision in MMA_TYPES}
    if name == TRIAD:
        return _triad(device, sizes)
    if name == FMA:
        return _fma_chain(device, sizes)
    if name in chains:
        return _mma_chain(chains[name], device, sizes)
    raise UnknownName.of("measured roof", name, [TRIAD, *chains, FMA])


def _triad(device: Device, sizes: RoofSizes) -> Roof:
    """Prepare a = b + s c over vectors far larger than any cache (STREAM; McCalpin, 1995)."""
    from mlsys.measure import triton_kernels

    a, b, c = (torch.randn(sizes.triad_elements, device=_torch_device(device)) for _ in range(3))
    call = partial(triton_kernels.triad, a, b, c, 0.5)
    call()
    some = slice(None, None, max(1, a.numel() // CHECKED_ELEMENTS))
    _check(a[some], torch.add(b[some], c[some], alpha=0.5), TRIAD)
    return Roof(call, 3 * a.nbytes / 1e9, "GB/s", (a.numel(),), "fp32")


def _mma_chain(precision: str, device: Device, sizes: RoofSizes) -> Roof:
    """Prepare products of random normal tiles that stay on the chip, added up in registers.

    A Hopper chip needs the large tile: its tensor cores read B from shared memory, and 256 columns of it at once.
    """
    from mlsys.measure import triton_kernels

    dtype, where = MMA_TYPES[precision], _torch_device(device)
    large = (device.capability or (0, 0)) >= (9, 0)
    tile_m, tile_n, depth = 128, 256 if large else 128, DEPTH_BYTES // dtype.itemsize
    programs = sizes.programs * max(1, device.multiprocessors)
    a, b = (random_matrix(rows, depth, dtype, where) for rows in (programs * tile_m, tile_n))
    sums = torch.empty(len(a), device=where, dtype=torch.int32 if dtype == torch.int8 else torch.float32)
    launch = partial(triton_kernels.mma, sums, a, b, tile_m=tile_m, tf32=precision == "tf32")
    launch(steps=CHECKED_STEPS)
    _check(sums, CHECKED_STEPS * (a.double() @ b.double().sum(0)), f"{MMA} {precision}")
    k = depth * sizes.mma_steps
    work = 2 * len(a) * tile_n * k / 1e12
    return Roof(partial(launch, steps=sizes.mma_steps), work, "TFLOP/s", (len(a), tile_n, k), precision)


def random_matrix(rows: int, columns: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Draw normal numbers, or all of its whole numbers alike for int8."""
    if dtype == torch.int8:
        return torch.randint(-128, 128, (rows, columns), device=device, dtype=dtype)
    return torch.randn(rows, columns, device=device).to(dtype)


def _fma_chain(device: Device, sizes: RoofSizes) -> Roof:
    """Prepare chains of float32 multiply-adds in registers."""
    from mlsys.measure import triton_kernels

    chains = 4 * sizes.programs * max(1, device.multiprocessors) * triton_kernels.FMA_CHAINS
    out = torch.empty(chains, device=_torch_device(device))
    call = partial(triton_kernels.fma, out, sizes.fma_steps)
    work = 2 * chains * sizes.fma_steps / 1e12
    return Roof(call, work, "TFLOP/s", (chains, sizes.fma_steps), "fp32")


def _torch_device(device: Device) -> str:
    return "cuda" if device.kind == "gpu" else "cpu"


def _check(found: torch.Tensor, expected: torch.Tensor, name: str) -> None:
    """Raise `ArithmeticError` if a roof's kernel computes something else than its name says."""
    error = float((found.double() - expected).norm() / expected.double().norm())
    if not error < CHECK_ERROR:
        raise ArithmeticError(f"the {name} is wrong by {error:.1e} of its result: its rate would be that of other work")
