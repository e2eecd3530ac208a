"""Imports and a first kernel, done once in the fork server so that no question pays for them.

Triton's interpreter loads and compiles parts of itself on its first call: 33 ms without this, 9 ms with it. On a GPU
each process would compile Triton's own driver in C and read all of Triton for its version: 0.7 s (Triton 3.6).
"""

import os

import numpy  # noqa: F401
import torch
import triton
import triton.language as tl

from mlsys.grading import inspect
from mlsys.hardware import Hardware
from mlsys.judge.sandbox.inside.quick_interpreter import skip_unread_work
from mlsys.measure.device import interpreter_fault

torch.set_num_threads(1)


@triton.jit  # type: ignore[untyped-decorator]
def warm_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: D103
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    square = tl.reshape(x, (16, 16))
    total = tl.sum(tl.dot(square, tl.trans(square), input_precision="ieee"), axis=1)
    tl.store(y_ptr + offsets, tl.where(x > 0, tl.exp(x), x) + tl.max(total, axis=0), mask=inside)


def load_gpu_driver() -> None:
    """Load what launches need, short of CUDA itself, which no fork survives."""
    import triton.experimental.gluon
    from triton.backends.nvidia.driver import CudaDriver
    from triton.runtime.cache import triton_key

    triton.runtime.driver.set_active(CudaDriver())
    triton_key()
    if torch.cuda.is_initialized():
        raise RuntimeError("CUDA was started before the fork")


Hardware.all()  # labs ask for chips, and to read the file of three takes 16 ms
interpreter_fault()  # each asks for versions, and to list what is installed takes 4 ms
if os.environ.get("TRITON_INTERPRET") == "1":
    skip_unread_work()
    warm_kernel[(2,)](torch.ones(300), torch.empty(300), 300, BLOCK=256)
    inspect(warm_kernel, (2,), torch.ones(300), torch.empty(300), 300, BLOCK=256)
else:
    load_gpu_driver()
