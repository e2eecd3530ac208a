"""A class that hands in before a deadline, simulated: the wait for verdicts, the machines that it needs, the cost.

Hand-ins arrive before the deadline and wait in one queue; whichever worker is free takes the one that has waited
longest. A worker judges one hand-in at a time. With arrivals at random at a steady rate, service times that are
exponential, and c workers, this is the M/M/c queue, whose mean wait is known (Erlang's C formula).

How close to the deadline people hand in is an assumption: the time before it is exponential, so that of all hand-ins
1 - exp(-t / mean) come within the last t. Not modeled: workers that fail, people who hand in again because they wait,
and hand-ins after the deadline.

>>> import numpy as np
>>> served = serve_in_turn(np.array([0.0, 0.0, 1.0]), np.array([2.0, 3.0, 1.0]), workers=2)
>>> served.started_s.tolist(), served.ended_s.tolist()
([0.0, 0.0, 2.0], [2.0, 3.0, 3.0])
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, factorial

import numpy as np

from mlsys.core.arguments import non_negative, positive_int
from mlsys.costs.prices import PriceRange
from mlsys.errors import InvalidValue
from mlsys.runtime.batching import Floats, Served


@dataclass(frozen=True)
class Deadline:
    """How a class hands in one lab.

    Attributes:
        students: How many there are.
        hand_ins_each: How often each hands in, on average.
        mean_before_s: Mean time before the deadline, in seconds.
        service_s: Measured seconds of judging one hand-in, to draw from.
    """

    students: int
    hand_ins_each: float
    mean_before_s: float
    service_s: Sequence[float]

    @property
    def hand_ins(self) -> int:
        """How many hand-ins come altogether."""
        return ceil(self.students * self.hand_ins_each)

    @property
    def work_s(self) -> float:
        """Expected seconds of judging altogether."""
        return self.hand_ins * float(np.mean(self.service_s))

    def in_last(self, seconds: float) -> float:
        """Return the share of the hand-ins that come within the last seconds before the deadline."""
        return 1 - exp(-non_negative("seconds", seconds) / self.mean_before_s)

    def simulate(self, workers: int, seed: int = 0) -> Served:
        """Return when each hand-in came, was begun and was judged; the deadline is at 0.

        Args:
            workers: How many judge side by side.
            seed: Seed of the arrivals and of the draws from the measured times.

        Raises:
            InvalidValue: A count below 1, or no measured times.
        """
        draws = np.random.default_rng(seed)
        if not len(self.service_s):
            raise InvalidValue("service_s is empty: give measured seconds of judging")
        arrived = np.sort(-draws.exponential(self.mean_before_s, positive_int("hand_ins", self.hand_ins)))
        return serve_in_turn(arrived, draws.choice(np.asarray(self.service_s, float), len(arrived)), workers)

    def workers_for(self, wait_s: float, percent: float = 95, seed: int = 0) -> int:
        """Return the fewest workers with which this percentage of the hand-ins is begun within `wait_s` seconds.

        Raises:
            InvalidValue: A negative wait, or a percentage outside 0 to 100.
        """
        non_negative("wait_s", wait_s)
        if not 0 <= percent <= 100:
            raise InvalidValue(f"percent is {percent}; it must be from 0 to 100")

        def is_enough(workers: int) -> bool:
            return waited(self.simulate(workers, seed), percent) <= wait_s

        high = 1
        while not is_enough(high):
            high *= 2
        low = high // 2
        while high - low > 1:  # low is too few, high is enough
            middle = (low + high) // 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high


@dataclass(frozen=True)
class Bill:
    """What a number of rented GPUs costs: GPU-hours, and the lowest and the highest price in USD."""

    hours: float
    low: float
    high: float

    @classmethod
    def of(cls, hours: float, rent: PriceRange) -> "Bill":
        """Return the bill for GPU-hours: hours x rent, at both ends of what was quoted."""
        low, high = (float(one.value.m_as("USD/hour")) for one in (rent.low, rent.high))
        return cls(hours, hours * low, hours * high)


def serve_in_turn(arrived_s: Floats, service_s: Floats, workers: int) -> Served:
    """Serve requests in the order in which they arrive, each at the worker that is free first.

    Args:
        arrived_s: When each arrives, in seconds and in order.
        service_s: How long each takes, in seconds.
        workers: How many are served at a time.

    Raises:
        InvalidValue: Fewer workers than one, arrivals out of order, or negative times.
    """
    workers = positive_int("workers", workers)
    if len(arrived_s) != len(service_s) or bool(np.any(np.diff(arrived_s) < 0)):
        raise InvalidValue("arrived_s must be in order, with a service time for each arrival")
    if bool(np.any(service_s < 0)):
        raise InvalidValue(f"service_s has {service_s.min():g}; each must be 0 or more seconds")
    free = [float("-inf")] * workers
    started, ended = np.empty(len(arrived_s)), np.empty(len(arrived_s))
    for place, (arrived, service) in enumerate(zip(arrived_s.tolist(), service_s.tolist(), strict=True)):
        start = max(arrived, free[0])
        heapq.heapreplace(free, start + service)
        started[place], ended[place] = start, start + service
    return Served(arrived_s, started, ended, (1,) * len(arrived_s))


def waited(served: Served, percent: float) -> float:
    """Return the wait before judging that this percentage of the hand-ins does not exceed, in seconds."""
    return float(np.percentile(served.started_s - served.arrived_s, percent))


def mean_wait_mmc(*, rate: float, service_s: float, workers: int) -> float:
    """Return the mean wait of an M/M/c queue in seconds, by Erlang's C formula.

    With a = rate x service time, the probability of waiting is C = (a^c / c!) / ((1 - a/c) sum_{k<c} a^k / k! +
    a^c / c!), and the mean wait is C x service time / (c - a).

    Args:
        rate: Arrivals per second.
        service_s: Mean seconds of service.
        workers: c, how many serve at once.

    Raises:
        InvalidValue: Negative numbers, or at least as much work as the workers can do: the queue would grow for ever.

    >>> round(mean_wait_mmc(rate=0.5, service_s=1, workers=1), 3)  # M/M/1: 0.5 / (1 - 0.5)
    1.0
    """
    offered, c = non_negative("rate", rate) * non_negative("service_s", service_s), positive_int("workers", workers)
    if offered >= c:
        raise InvalidValue(f"{offered:g} workers would be busy all the time, and there are {c}: add workers")
    last = offered**c / factorial(c)
    waits = last / ((1 - offered / c) * sum(offered**k / factorial(k) for k in range(c)) + last)
    return waits * service_s / (c - offered)
