"""What the lab on first kernels measures for the record: the fused step, sums in one step and in two, two histograms.

All are replayed from CUDA graphs, so the host's launches do not count, for the peers either.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from mlsys.bench.lab import LabBench
from mlsys.bench.suite.setting import Setting, Work, compiled
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row

ROWS, COLUMNS = 16384, (1000, 4096)
ADDED = 2**26
COUNTED, BINS = 2**24, 256
FP32_BYTES = 4

BLOCK = {"BLOCK": 4096, "num_warps": 8}
"""Numbers per program or loop step of the sums: 16 per thread."""


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the lab's kernels on random data, beside the same work in more passes and by PyTorch."""
    bench = FirstKernelsBench(names, Setting(ceilings))
    for columns in COLUMNS:
        yield bench.shift_scale(columns)
    yield bench.sum()
    yield bench.histogram("any value", torch.randint(BINS, (COUNTED,), dtype=torch.int32, device=bench.setting.device))
    yield bench.histogram("one value", torch.zeros(COUNTED, dtype=torch.int32, device=bench.setting.device))


class FirstKernelsBench(LabBench):
    """The measurements."""

    def row(
        self,
        name: str,
        variant: str,
        shape: tuple[int, ...],
        call: Work,
        others: dict[str, Work],
        moved: float,
        mix: str,
    ) -> Row:
        """One row in GB/s of `moved` bytes, after the peers have agreed with `call`; see `Setting.peers`."""
        dtype = "fp32" if name != "first histogram" else "int32"
        peers = self.setting.peers(call, others)
        return self.bandwidth_row(name, variant, shape, dtype, call=call, peers=peers, moved=moved, mix=mix)

    def shift_scale(self, columns: int) -> Row:
        """The fused step, beside the same kernel in two passes, eager torch and torch.compile."""
        x, shift, scale = self.setting.randn(ROWS, columns), self.setting.randn(ROWS), self.setting.randn(ROWS)
        zeros, ones = torch.zeros_like(shift), torch.ones_like(scale)
        constants = self.names["tile_config"]((ROWS, columns), "fp32")
        launched = partial(self.launched, "launch_shift_scale", "shift_scale_kernel", constants)
        call = launched(torch.empty_like(x), x, shift, scale)
        between = torch.empty_like(x)
        first = launched(between, x, shift, ones)
        second = launched(torch.empty_like(x), between, zeros, scale)

        def two_passes() -> torch.Tensor:
            first()
            return second()

        library = self.names["right_shift_scale"]
        others = {"two passes": two_passes, "eager torch": partial(library, x, shift, scale)}
        others |= compiled(library, x, shift, scale)
        moved = self.names["one_pass_bytes"](ROWS, columns, FP32_BYTES)
        return self.row("first shift and scale", "one pass", (ROWS, columns), call, others, moved, "copy")

    def sum(self) -> Row:
        """A sum in two steps, beside one step, atomics and torch."""
        x = torch.rand(ADDED, device=self.setting.device)
        programs = 8 * (self.setting.ceilings.device.multiprocessors or 1)

        def launched(launch: str, kernel: str, constants: dict[str, int]) -> Work:
            return self.launched(launch, kernel, constants, torch.empty(1, device=x.device), x)

        call = launched("launch_two_steps", "sum_kernel", BLOCK | {"PROGRAMS": programs})
        others = {
            "one step": launched("launch_sums", "sum_kernel", BLOCK),
            "atomics": launched("launch_total", "total_kernel", BLOCK),
            "torch": lambda: x.sum()[None],
        }
        return self.row("first sum", "two steps", (ADDED,), call, others, x.nbytes, "read")

    def histogram(self, variant: str, x: torch.Tensor) -> Row:
        """A histogram by atomics in memory, beside one whose programs count for themselves."""
        programs = 4 * (self.setting.ceilings.device.multiprocessors or 1)

        def launched(launch: str, kernel: str, constants: dict[str, int]) -> Work:
            return self.launched(launch, kernel, constants, torch.empty(BINS, dtype=torch.int32, device=x.device), x)

        call = launched("launch_histogram", "histogram_kernel", {"BLOCK": 1024})
        private = launched(
            "launch_private_histogram", "private_histogram_kernel", {"BLOCK": 1024, "PROGRAMS": programs}
        )
        shape = (x.numel(), BINS)
        return self.row("first histogram", variant, shape, call, {"own counts": private}, x.nbytes, "read")
