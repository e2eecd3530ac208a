"""Dynamic batching, simulated: requests arrive at random, wait for company, and are served in batches.

The server is one device. When it is free and requests wait, it starts a batch as soon as `max_batch` of them wait, or
the oldest has waited for `max_wait_s`, whichever is first. Requests arrive at the times of a Poisson process, which has
exponential gaps with mean 1 / rate. With batches of one, no waiting and a constant service time s this is the M/D/1
queue, whose mean wait is known (Pollaczek and Khinchine):

    mean wait = utilization * s / (2 (1 - utilization)),   utilization = rate * s

>>> from mlsys.runtime.batching import mean_wait_md1, serve
>>> served = serve(lambda batch: 1e-3, rate=500, requests=50_000, max_batch=1, max_wait_s=0)
>>> round(1e3 * mean_wait_md1(rate=500, service_s=1e-3), 2), round(1e3 * served.mean_wait_s, 1)
(0.5, 0.5)
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from numpy.typing import NDArray

from mlsys.core.arguments import non_negative, positive_int
from mlsys.errors import InvalidValue

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Served:
    """What became of the requests.

    Attributes:
        arrived_s: When each request arrived.
        started_s: When its batch started.
        ended_s: When its batch ended.
        batches: The sizes of the batches, in order.
    """

    arrived_s: Floats
    started_s: Floats
    ended_s: Floats
    batches: tuple[int, ...]

    @property
    def latency_s(self) -> Floats:
        """Seconds from arrival to the end, for each request."""
        return self.ended_s - self.arrived_s

    @property
    def mean_wait_s(self) -> float:
        """Mean of the seconds from arrival to the start of the batch."""
        return float((self.started_s - self.arrived_s).mean())

    @property
    def mean_batch(self) -> float:
        """Requests per batch."""
        return len(self.arrived_s) / len(self.batches)

    def percentile(self, percent: float) -> float:
        """Return the latency that this percentage of the requests does not exceed, in seconds.

        Raises:
            InvalidValue: A percentage below 0 or above 100.
        """
        if not 0 <= percent <= 100:
            raise InvalidValue(f"percent is {percent}; it must be from 0 to 100")
        return float(np.percentile(self.latency_s, percent))


def serve(
    service_time: Callable[[int], float],
    *,
    rate: float,
    requests: int,
    max_batch: int,
    max_wait_s: float,
    seed: int = 0,
) -> Served:
    """Serve random arrivals in batches, and return when each request started and ended.

    Args:
        service_time: Seconds that a batch of a given size takes, for example from a roofline.
        rate: Requests per second, on average.
        requests: How many arrive.
        max_batch: Most requests of a batch.
        max_wait_s: Longest time for which a free server lets a request wait for company.
        seed: Seed of the arrivals.

    Raises:
        InvalidValue: A rate that is not above 0, counts below 1, a negative wait, or a service time that is not a
            finite number of 0 or more.
    """
    if non_negative("rate", rate) == 0:
        raise InvalidValue("rate is 0, so no request would ever arrive; give requests per second")
    requests, max_batch = positive_int("requests", requests), positive_int("max_batch", max_batch)
    non_negative("max_wait_s", max_wait_s)
    arrived = np.cumsum(np.random.default_rng(seed).exponential(1 / rate, requests))
    times = arrived.tolist()
    started, ended = np.empty(requests), np.empty(requests)
    batches: list[int] = []
    first, free = 0, 0.0
    while first < requests:
        full = first + max_batch - 1
        full_at = times[full] if full < requests else inf
        start = max(free, min(full_at, times[first] + max_wait_s))
        count = bisect_right(times, start, first, min(first + max_batch, requests)) - first
        took = service_time(count)
        if not isfinite(took) or took < 0:
            raise InvalidValue(f"service_time({count}) is {took}; it must be a finite number of seconds, 0 or more")
        started[first : first + count] = start
        ended[first : first + count] = free = start + took
        batches.append(count)
        first += count
    return Served(arrived, started, ended, tuple(batches))


def mean_wait_md1(*, rate: float, service_s: float) -> float:
    """Return the mean wait of an M/D/1 queue in seconds: utilization * s / (2 (1 - utilization)).

    Args:
        rate: Requests per second.
        service_s: Seconds that each takes, always the same.

    Raises:
        InvalidValue: Negative numbers, or a utilization rate * service_s of 1 or more: the queue would grow for ever.

    >>> mean_wait_md1(rate=900, service_s=1e-3)
    0.0045...
    """
    utilization = non_negative("rate", rate) * non_negative("service_s", service_s)
    if utilization >= 1:
        raise InvalidValue(f"the utilization is {utilization:g}; from 1 on the queue grows for ever: lower the rate")
    return utilization * service_s / (2 * (1 - utilization))
