"""The occupancy of own kernels, by the CUDA driver: `python -m pytest tests/hardware/test_occupancy_gpu.py -m gpu`.

Each kernel loads so many values, waits at a barrier and stores them, so the compiler must keep them in registers. The
driver compiles its PTX, reports its registers, and says how many of its blocks an SM holds.
"""

import ctypes
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from helpers.on_gpu import needs_gpu

from mlsys import Hardware
from mlsys.hardware.occupancy import SM, occupancy

CHIP_OF = {(7, 5): "t4", (8, 0): "a100-80gb-sxm", (8, 9): "l4", (9, 0): "h100-sxm", (10, 0): "b200"}
VALUES = (4, 20, 28, 40, 60, 90, 120, 160, 200)
"""How many values a kernel keeps; about as many registers as a thread has."""
NUM_REGS, MAX_DYNAMIC_SHARED, CARVEOUT = 4, 8, 9
"""Numbers of the attributes of a function, in the enumeration CUfunction_attribute of `cuda.h`."""


def ptx(values: int, capability: tuple[int, int]) -> str:
    """A kernel that keeps so many values alive across a barrier."""
    loads = "\n".join(f"ld.volatile.global.f32 %f{i}, [%rd2+{4 * i}];" for i in range(values))
    stores = "\n".join(f"st.volatile.global.f32 [%rd2+{4 * i}], %f{i};" for i in range(values))
    major, minor = capability
    return f"""
.version {"8.6" if major >= 10 else "7.8"}
.target sm_{major}{minor}
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry keep(.param .u64 where) {{
.reg .f32 %f<{values}>;
.reg .b64 %rd<3>;
ld.param.u64 %rd1, [where];
cvta.to.global.u64 %rd2, %rd1;
{loads}
bar.sync 0;
{stores}
ret;
}}
"""


class Driver:
    """The few calls of the CUDA driver that the test needs, each checked."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        assert status == 0, f"{name} returned {status}"

    def kernel(self, text: str, shared: int) -> tuple[int, Callable[[int, int], int]]:
        """Load a kernel; its registers, and its resident blocks by threads and bytes of shared memory."""
        module, function, found = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"keep")
        self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED, shared)
        self.call("cuFuncSetAttribute", function, CARVEOUT, 100)  # all that the SM can give
        self.call("cuFuncGetAttribute", ctypes.byref(found), NUM_REGS, function)

        def resident(threads: int, dynamic: int) -> int:
            blocks = ctypes.c_int()
            self.call(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                ctypes.byref(blocks),
                function,
                threads,
                ctypes.c_size_t(dynamic),
            )
            return blocks.value

        return found.value, resident


@pytest.mark.gpu
@needs_gpu
def test_the_driver_counts_as_many_resident_blocks() -> None:
    torch.cuda.init()
    torch.zeros(1, device="cuda")  # makes the context current
    capability = torch.cuda.get_device_capability()
    if capability not in CHIP_OF:
        pytest.skip(f"no data for compute capability {capability}")
    chip, driver, different, seen = Hardware.get(CHIP_OF[capability]), Driver(), [], set()
    most = SM.of(chip).shared_bytes_per_block
    for values in VALUES:
        registers, resident = driver.kernel(ptx(values, capability), most)
        seen.add(registers)
        shared = (0, 1, 127, 1000, 8192, 20000, 49152, 65000, most // 2, most)
        for threads, dynamic in product((1, 32, 33, 96, 128, 250, 256, 320, 384, 512, 768, 1024), shared):
            ours = occupancy(chip, threads=threads, registers=registers, shared_bytes=dynamic).blocks
            theirs = resident(threads, dynamic)
            if ours != theirs:
                different.append((threads, registers, dynamic, ours, theirs))
    assert different == []
    assert len(seen) > 6, f"the kernels differ in their registers: {sorted(seen)}"
