"""Where the suite runs and how large its tensors are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch

from mlsys.bench.row import row
from mlsys.grading.checks.assertions import assert_close
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row
from mlsys.measure.roofs import RoofSizes

Work = Callable[[], Any]

CHECKED_ROWS = 1024
"""Rows of a result that are compared with the peers' before anything is timed."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of the suite's tensors; the defaults suit a GPU."""

    copy_bytes: int = 2**30
    working_sets: tuple[int, ...] = tuple(
        2**20 * mib for mib in (1, 2, 4, 8, 16, 24, 32, 40, 48, 64, 96, 128, 256, 1024)
    )
    stride_elements: int = 2**26
    strides: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    chased_bytes: tuple[int, ...] = tuple(
        2**10 * kib for kib in (16, 64, 128, 192, 512, *(2**10 * mib for mib in (2, 8, 16, 24, 32, 48, 64, 128, 1024)))
    )
    chase_steps: int = 2**16
    waiting_programs: tuple[int, ...] = (1, 8, *(33 * 2**power for power in range(7)))
    waiting_bytes: int = 2**28
    link_bytes: tuple[int, ...] = tuple(4**power for power in range(6, 15))
    add_elements: tuple[int, ...] = tuple(2**power for power in range(20, 29))
    pieces: int = 8
    piece_side: int = 4096
    piece_layers: int = 3
    matmul: tuple[int, ...] = (1024, 2048, 4096, 8192)
    aligned: tuple[int, ...] = (4064, 4080, 4088, 4092, 4094, 4095, 4096, 4097, 4098, 4100, 4104, 4112, 4128)
    sparse_matmul: tuple[int, ...] = (4096, 8192)  # below, the host takes longer to prepare the call than the GPU
    density_side: int = 8192
    density_block: int = 64
    densities: tuple[float, ...] = (0.5, 0.25, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
    dense_side: int = 2048
    batches: tuple[int, ...] = tuple(2**power for power in range(10))
    images: tuple[int, ...] = (1, 32, 256)
    image_side: int = 224
    decoders: tuple[str, ...] = ("small", "xl")
    context: int = 512
    prompts: tuple[int, ...] = (1, 8)
    sequences: tuple[int, ...] = (1, 8, 64)
    layout_images: tuple[int, int, int, int] = (32, 128, 56, 56)
    layout_filters: int = 256
    rows: int = 65536
    columns: tuple[int, ...] = (1024, 4096, 8192)
    chain_columns: int = 4096
    norm_columns: int = 8192
    norm_warps: tuple[int, ...] = (32, 16, 8, 4, 2, 1)
    table_bytes: int = 2**30
    bags: int = 65536
    bag_size: int = 32
    row_elements: tuple[int, ...] = (16, 64, 256)
    launch_elements: tuple[int, ...] = tuple(4**power for power in range(0, 13, 2))
    host_add_elements: tuple[int, ...] = (2**20, 2**24, 2**28)
    host_array_bytes: int = 2**28
    roofs: RoofSizes = field(default_factory=RoofSizes)


@dataclass(frozen=True)
class Setting:
    """The ceilings that rows are held against, the torch device, and the sizes.

    A GPU is what the suite is for; on "cpu", with small sizes, the same code runs and shows that it works.
    """

    ceilings: Ceilings
    device: str = "cuda"
    sizes: Sizes = Sizes()
    budget_s: float = 0.2

    @property
    def on_gpu(self) -> bool:
        """Whether CUDA events time the calls."""
        return self.device != "cpu"

    @property
    def half(self) -> str:
        """The 16-bit format that this device works in: bf16, or fp16 where it has none."""
        return "bf16" if self.ceilings.device.has_bf16 else "fp16"

    def randn(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """Draw random normal numbers on the device."""
        return torch.randn(shape, device=self.device, dtype=dtype)

    def row(self, name: str, variant: str, shape: tuple[int, ...], dtype: str, **how: Any) -> Row:
        """Measure one row; see `mlsys.bench.row.row`."""
        how = {"on_gpu": self.on_gpu, "budget_s": self.budget_s} | how
        return row("book", name, variant, shape, dtype, **how)

    def bandwidth_row(self, name: str, variant: str, shape: tuple[int, ...], dtype: str, **how: Any) -> Row:
        """Measure one row in GB/s; `moved` is the bytes of a call, `mix` the mix of reads and writes of its ceiling."""
        moved, mix = how.pop("moved"), how.pop("mix")
        ceiling = self.ceilings.bandwidth(mix).m_as("GB/s")
        return self.row(name, variant, shape, dtype, work=moved / 1e9, ceiling=ceiling, rate_unit="GB/s", **how)

    def peers(self, call: Work, others: Mapping[str, Work]) -> dict[str, Work]:
        """Select those of `others` that run here and agree with `call`; print why the rest is left out.

        Work returns a tensor or a tuple of tensors.
        """
        expected = _checked(call())
        found = {}
        for name, other in others.items():
            try:
                for number, (found_part, part) in enumerate(zip(_checked(other()), expected, strict=True), start=1):
                    assert_close(found_part, part, what=f"result {number} of {name}" if len(expected) > 1 else name)
            except Exception as error:
                # Any failure of a peer, in its compiler say, is a reason to go without it.
                print(f"  without {name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}", flush=True)
            else:
                found[name] = other
        return found


def _checked(made: torch.Tensor | tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    return [part[:CHECKED_ROWS] for part in (made if isinstance(made, tuple) else (made,))]


def compiled(function: Callable[..., Any], *inputs: Any) -> dict[str, Work]:
    """Make the peer torch.compile, in its default mode, for inputs of just this shape."""
    return {"torch.compile": partial(torch.compile(function, dynamic=False), *inputs)}


def liger(function: str, *inputs: Any) -> dict[str, Work]:
    """Make the peer liger-kernel, by the name of its autograd function; none where it is not installed."""
    if find_spec("liger_kernel") is None:
        return {}

    def call() -> Any:
        return getattr(import_module("liger_kernel.ops"), function).apply(*inputs)

    return {"liger-kernel": call}
