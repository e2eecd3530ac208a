"""Launch latency, and the size from which on the work of a kernel hides it."""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import torch

from mlsys.bench.suite.setting import Setting
from mlsys.measure.records import Row

NAME = "launch latency"


def launch_latency(setting: Setting) -> Iterator[Row]:
    """Add a number to vectors of growing length: queued back to back, in a graph, and waited for each time.

    Time is all there is here; these rows have no rate.
    """
    for elements in setting.sizes.launch_elements:
        x = setting.randn(elements)
        call = partial(torch.add, x, 1, out=torch.empty_like(x))
        yield setting.row(NAME, "back to back", (elements,), "fp32", call=call)
        yield setting.row(NAME, "graph", (elements,), "fp32", call=call, graph=True)
        if setting.on_gpu:
            wait = partial(_and_wait, call)
            yield setting.row(NAME, "launch and wait", (elements,), "fp32", call=wait, on_gpu=False)
    if find_spec("triton") is not None:
        from mlsys.measure.triton_kernels import empty

        yield setting.row(NAME, "empty Triton kernel", (1,), "fp32", call=empty)


def _and_wait(call: partial[torch.Tensor]) -> None:
    call()
    torch.cuda.synchronize()
