"""One row of a record: time an implementation alone, and in turn with each of its peers."""

from collections.abc import Callable, Mapping

from mlsys.measure.records import Row
from mlsys.measure.timing import time_kernel, time_pair


def row(
    suite: str,
    name: str,
    variant: str,
    shape: tuple[int, ...],
    dtype: str,
    *,
    call: Callable[[], object],
    peers: Mapping[str, Callable[[], object]] | None = None,
    work: float | None = None,
    ceiling: float | None = None,
    rate_unit: str | None = None,
    on_gpu: bool = True,
    cold: bool = False,
    graph: bool = False,
    budget_s: float = 0.5,
    error: float | None = None,
) -> Row:
    """Time one implementation alone, and in turn with each peer; achieved = work / median time.

    Args:
        suite: "lab" or "book".
        name: what is measured.
        variant: which version of it.
        shape: sizes.
        dtype: number format.
        call: runs it once.
        peers: other implementations of the same work, by name.
        work: how much one call does, in the unit of `rate_unit` times seconds: TFLOP or GB; None if a time is all.
        ceiling: the measured ceiling of this device, in `rate_unit`; None like `work`.
        rate_unit: "TFLOP/s" or "GB/s"; None like `work`.
        on_gpu: time with CUDA events, and read the GPU's clock and power meanwhile.
        cold: empty the caches before every call.
        graph: replay the calls from a CUDA graph, so that the host's launches do not count.
        budget_s: see `time_kernel`.
        error: relative error of the result, where the caller has measured it.
    """
    timing = time_kernel(call, on_gpu=on_gpu, cold=cold, graph=graph, metered=on_gpu, budget_s=budget_s)
    pairs = {
        peer: time_pair(call, other, on_gpu=on_gpu, cold=cold, graph=graph) for peer, other in (peers or {}).items()
    }
    return Row(
        suite,
        name,
        variant,
        shape,
        dtype,
        timing.median_s,
        timing.p20_s,
        timing.p80_s,
        None if work is None else work / timing.median_s,
        ceiling,
        rate_unit,
        {peer: round(pair.ratio, 4) for peer, pair in pairs.items()},
        {peer: (round(pair.low, 4), round(pair.high, 4)) for peer, pair in pairs.items()},
        {peer: pair.reference_s for peer, pair in pairs.items()},
        timing.readings.sm_clock_mhz,
        timing.readings.power_w,
        error,
    )
