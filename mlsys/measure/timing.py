"""Timing done right: one callable alone, or two interleaved, so that a device's changing clock hits both alike.

What is timed runs warm, is repeated until the interval of its median is narrow, and is told apart from what surrounds
it: `graph` takes away the host's launches, `cold` and `rotate` take away what a cache kept from the call before.
"""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any

from mlsys.errors import InvalidValue
from mlsys.measure.clock import Clock, Work, clock_of
from mlsys.measure.nvml import Meter, Readings

BATCH_S = 0.02
"""Seconds that one batch of a pair should last: long beside the resolution of CUDA events (about 0.5 us)."""

LAP_S = 0.001
"""Seconds that one lap of `time_kernel` should last, for the same reason."""

WARMUP_S = 0.05
"""Seconds of calls before any timing: an idle GPU takes some milliseconds to raise its clock."""

LAPS = 5
"""Laps between two looks at the interval; also the fewest that are timed."""

METERED_S = 0.2
"""Seconds of laps at least where clock and power are read too: ten readings."""


@dataclass(frozen=True)
class Timing:
    """Seconds of one call.

    Attributes:
        median_s: the median of all laps.
        p20_s: 20th percentile: how much single laps scatter.
        p80_s: 80th percentile.
        low_s: lower end of the interval that holds the median with about 95% probability, whatever the distribution.
        high_s: its upper end.
        laps: how many laps were timed.
        readings: the GPU's clock and power meanwhile, if `time_kernel` was to read them and could.
    """

    median_s: float
    p20_s: float
    p80_s: float
    low_s: float
    high_s: float
    laps: int
    readings: Readings = field(default_factory=Readings)

    @property
    def relative_error(self) -> float:
        """Half the interval's width over the median."""
        return (self.high_s - self.low_s) / 2 / self.median_s

    @classmethod
    def of(cls, times_s: Sequence[float]) -> "Timing":
        """Summarize a list of times.

        The interval is that of order statistics: of n sorted times, those of 0-based rank
        k = floor((n - 1.96 sqrt(n)) / 2) from either end (Conover, Practical Nonparametric Statistics, 3.2).

        Raises:
            InvalidValue: if there are no times, or one is not above zero.

        >>> Timing.of([3.0, 1.0, 2.0, 5.0, 4.0]).median_s
        3.0
        """
        if not times_s or min(times_s) <= 0:
            raise InvalidValue(f"cannot summarize the times {list(times_s)}: give one or more, all above zero")
        ordered, n = sorted(times_s), len(times_s)
        cuts = statistics.quantiles(ordered, n=5, method="inclusive") if n > 1 else ordered * 4
        rank = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
        return cls(statistics.median(ordered), cuts[0], cuts[3], ordered[rank], ordered[n - 1 - rank], n)


@dataclass(frozen=True)
class Pair:
    """Times of a candidate and a reference, in seconds per call, and reference / candidate.

    `low` and `high` are the least and the greatest ratio of a round. With n rounds the median lies between them with
    probability 1 - 2^(1-n), 94% for five, whatever the distribution.
    """

    candidate_s: float
    reference_s: float
    ratio: float
    low: float
    high: float


def time_kernel(
    call: Work,
    *,
    on_gpu: bool | None = None,
    cold: bool = False,
    graph: bool = False,
    metered: bool = False,
    rel_error: float = 0.005,
    budget_s: float = 0.5,
) -> Timing:
    """Time a callable until the interval of its median is narrower than +-`rel_error`, or `budget_s` is spent.

    Without `graph`, a GPU's calls are queued by the host, so work shorter than a launch takes as long as the launch.

    Args:
        call: called without arguments; its result is dropped. For changing inputs see `rotate`.
        on_gpu: time with CUDA events; None means wherever torch sees a GPU.
        cold: empty the caches before every call (L2 on a GPU); by default the calls follow each other.
        graph: replay the calls from a CUDA graph, so that the host's launches do not count.
        metered: also read the GPU's clock and power, and time for `METERED_S` at least.
        rel_error: half the width of the interval over the median, at which to stop.
        budget_s: seconds after which to stop in any case; at least 5 laps are timed.
    """
    laps = _prepare(call, clock_of(on_gpu), cold=cold, graph=graph, lap_s=LAP_S).laps
    start = time.perf_counter()
    least_s, most_s = METERED_S if metered else 0.0, max(budget_s, METERED_S if metered else 0.0)
    times: list[float] = []
    with Meter() if metered else nullcontext() as meter:
        while True:
            times += laps(LAPS)
            timing, spent_s = Timing.of(times), time.perf_counter() - start
            if spent_s >= most_s or (spent_s >= least_s and timing.relative_error <= rel_error):
                break
    return replace(timing, readings=meter.readings()) if meter else timing


def time_pair(
    candidate: Work,
    reference: Work,
    *,
    rounds: int = 5,
    on_gpu: bool | None = None,
    cold: bool = False,
    graph: bool = False,
    batch_s: float = BATCH_S,
) -> Pair:
    """Time two callables interleaved: each round runs candidate, reference, reference, candidate (ABBA).

    The order cancels a clock that drifts steadily. Both are called before any timing, so compilation does not count.

    Args:
        candidate: called without arguments; its result is dropped.
        reference: the same work, done by what the candidate is compared with.
        rounds: how many times ABBA is repeated, 3 or more.
        on_gpu: time with CUDA events; None means wherever torch sees a GPU.
        cold: empty the caches before every call.
        graph: replay both from CUDA graphs.
        batch_s: about how long one timed batch of calls lasts.

    Raises:
        InvalidValue: if there are fewer than 3 rounds.
    """
    if rounds < 3:
        raise InvalidValue(f"{rounds} rounds give no interval: use 3 or more")
    clock = clock_of(on_gpu)
    a, b = (_prepare(work, clock, cold=cold, graph=graph, lap_s=batch_s) for work in (candidate, reference))
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        a1, b1 = a.batch(), b.batch()
        b2, a2 = b.batch(), a.batch()
        times.append(((a1 + a2) / 2, (b1 + b2) / 2))
    ratios = sorted(b_s / a_s for a_s, b_s in times)
    return Pair(
        candidate_s=statistics.median(a_s for a_s, _ in times),
        reference_s=statistics.median(b_s for _, b_s in times),
        ratio=statistics.median(ratios),
        low=ratios[0],
        high=ratios[-1],
    )


def rotate(call: Callable[..., object], input_sets: Sequence[tuple[Any, ...]]) -> Work:
    """Make a callable that gives `call` one set of inputs after the other, so that no cache has them from before.

    Together the sets should be several times the cache.

    Raises:
        InvalidValue: if there are no sets.
    """
    if not input_sets:
        raise InvalidValue("no input sets to rotate: give at least one tuple of arguments")
    turns = cycle(input_sets)
    return lambda: call(*next(turns))


@dataclass(frozen=True)
class _Prepared:
    """Work that has run warm: `laps(n)` times n laps, in seconds per call; a batch is the mean of `batch_laps`."""

    laps: Callable[[int], list[float]]
    batch_laps: int

    def batch(self) -> float:
        return statistics.fmean(self.laps(self.batch_laps))


def _prepare(work: Work, clock: Clock, *, cold: bool, graph: bool, lap_s: float) -> _Prepared:
    calls = _calls_in(lap_s, _warm_up(work, clock))
    if cold:
        alone = clock.graph(work, 1) if graph else work
        return _Prepared(lambda laps: clock.cold_laps(alone, laps), calls)
    if graph:  # the calls so far include launches by the host, which the replay leaves out
        calls = _calls_in(lap_s, min(clock.laps(clock.graph(work, calls), 1, 2)) / calls)
        together = clock.graph(work, calls)
        return _Prepared(lambda laps: [lap / calls for lap in clock.laps(together, 1, laps)], 1)
    return _Prepared(lambda laps: clock.laps(work, calls, laps), 1)


def _calls_in(lap_s: float, call_s: float) -> int:
    return max(1, min(1000, round(lap_s / max(call_s, 1e-9))))


def _warm_up(work: Work, clock: Clock) -> float:
    """Call `work` for `WARMUP_S`; returns about how many seconds a call takes."""
    work()  # compiles
    start, calls = time.perf_counter(), 1
    while True:
        seconds = clock.laps(work, calls, 1)[0]
        if time.perf_counter() - start >= WARMUP_S:
            return seconds
        calls = min(2 * calls, 100)
