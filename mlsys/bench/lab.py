"""What the benchmarks of labs share; each `labs/<lab>/bench.py` measures the kernels that its lab defines."""

import importlib.util
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from mlsys.bench.row import row
from mlsys.bench.suite.setting import Setting, Work
from mlsys.measure.records import Row


class LabBench:
    """Measurements of a lab's kernels, replayed from CUDA graphs, so that the host's launches do not count.

    Args:
        names: what the lab's setup and solutions define.
        setting: ceilings, device and sizes.
    """

    def __init__(self, names: dict[str, Any], setting: Setting) -> None:
        self.names = names
        self.setting = setting

    def bandwidth_row(
        self,
        name: str,
        variant: str,
        shape: tuple[int, ...],
        dtype: str,
        *,
        call: Callable[[], object],
        peers: Mapping[str, Work],
        moved: float,
        mix: str,
    ) -> Row:
        """Measure one row in GB/s; `moved` is the bytes of a call, `mix` the mix of reads and writes of its ceiling."""
        return row(
            "lab",
            name,
            variant,
            shape,
            dtype,
            call=call,
            peers=peers,
            work=moved / 1e9,
            ceiling=self.setting.ceilings.bandwidth(mix).m_as("GB/s"),
            on_gpu=self.setting.on_gpu,
            rate_unit="GB/s",
            graph=True,
        )

    def launched(self, launch: str, kernel: str, constants: dict[str, int], out: torch.Tensor, *inputs: Any) -> Work:
        """Return a call of one of the lab's kernels, with the lab's launch function, into an output of its own."""

        def call() -> torch.Tensor:
            self.names[launch](self.names[kernel], constants, out, *inputs)
            return out

        return call


@cache
def lab_module(path: Path) -> ModuleType:
    """Import a file of a lab that no package holds, such as its `fast.py`."""
    name = f"{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module
