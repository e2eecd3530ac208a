"""Heat: a body that stores it and loses it to the room, and governors that lower the clock before it is too hot.

One body with heat capacity C that loses heat through a resistance R to air at T_air:

    C dT/dt = P - (T - T_air) / R

For a constant power the temperature moves from T_0 to T_air + P R exponentially, with the time constant R C. So a short
test says nothing about the power that can be sustained, (T_limit - T_air) / R.

>>> phone = Body(ambient_c=25, limit_c=43, kelvin_per_w=4.5, joule_per_kelvin=180)
>>> phone.sustained_w, round(phone.time_constant_s / 60, 1)
(4.0, 13.5)
>>> round(phone.after(phone.ambient_c, power_w=8, seconds=60), 1)
27.6
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlsys.core.arguments import non_negative, one_of, positive_amount
from mlsys.errors import InvalidValue


@dataclass(frozen=True)
class Body:
    """What the heat goes into, as one temperature.

    Attributes:
        ambient_c: temperature of the air, in degrees Celsius.
        limit_c: highest temperature that is allowed.
        kelvin_per_w: R, kelvins above the air for each watt, once nothing changes any more.
        joule_per_kelvin: C, joules that warm the body by one kelvin.
    """

    ambient_c: float
    limit_c: float
    kelvin_per_w: float
    joule_per_kelvin: float

    def __post_init__(self) -> None:
        """Refuse a body that could not be heated or is too hot in a room."""
        positive_amount("kelvin_per_w", self.kelvin_per_w, "")
        positive_amount("joule_per_kelvin", self.joule_per_kelvin, "")
        if self.limit_c <= self.ambient_c:
            raise InvalidValue(
                f"the limit of {self.limit_c} C is not above the air's {self.ambient_c} C: nothing could ever run; "
                "raise the limit or cool the room"
            )

    @property
    def sustained_w(self) -> float:
        """The power at which the body stays at its limit: (limit - ambient) / R."""
        return (self.limit_c - self.ambient_c) / self.kelvin_per_w

    @property
    def time_constant_s(self) -> float:
        """R C, in seconds: after this time, 63% of a change of temperature has happened."""
        return self.kelvin_per_w * self.joule_per_kelvin

    def steady_c(self, power_w: float) -> float:
        """Return the temperature that a constant power leads to, in degrees Celsius."""
        return self.ambient_c + non_negative("power_w", power_w) * self.kelvin_per_w

    def after(self, start_c: float, power_w: float, seconds: float) -> float:
        """Return the temperature after some time at a constant power; exact for any length of time."""
        end = self.steady_c(power_w)
        return end + (start_c - end) * math.exp(-non_negative("seconds", seconds) / self.time_constant_s)

    def time_to_limit_s(self, start_c: float, power_w: float) -> float:
        """Return the seconds until the limit is reached at a constant power; infinite if it never is.

        >>> phone = Body(ambient_c=25, limit_c=43, kelvin_per_w=4.5, joule_per_kelvin=180)
        >>> round(phone.time_to_limit_s(25, 8) / 60, 1), phone.time_to_limit_s(25, 3)
        (9.4, inf)
        """
        end = self.steady_c(power_w)
        if start_c >= self.limit_c:
            return 0.0
        if end <= self.limit_c:
            return math.inf
        return self.time_constant_s * math.log((end - start_c) / (end - self.limit_c))


@dataclass(frozen=True)
class Sample:
    """What the governor did in one step.

    Attributes:
        time_s: when the step began.
        temperature_c: temperature at that moment.
        clock: clock during the step, a share of the top clock.
        power_w: power during the step.
    """

    time_s: float
    temperature_c: float
    clock: float
    power_w: float


def govern(
    body: Body,
    clocks: Sequence[float],
    power_w: Callable[[float], float],
    *,
    seconds: float,
    policy: str = "budget",
    step_s: float = 1.0,
    start_c: float | None = None,
    margin_c: float = 0.5,
    gain_w_per_kelvin: float = 2.0,
) -> tuple[Sample, ...]:
    """Simulate a governor that reads the temperature every `step_s` and then sets the clock.

    "budget" takes the highest clock whose power is at most sustained power + gain (limit - temperature). "step" goes to
    the next lower clock at the limit or above it, to the next higher one more than `margin_c` below it, and otherwise
    leaves the clock. Linux has a governor of each kind, power_allocator and step_wise. Neither can go below the lowest
    clock.

    Args:
        body: what is heated.
        clocks: the operating points, in any order; "step" starts at the highest.
        power_w: power at a clock, in watts.
        seconds: how long to simulate.
        policy: "budget" or "step".
        step_s: seconds between two readings.
        start_c: temperature at the start; without it, that of the air.
        margin_c: kelvins below the limit at which "step" dares to go faster.
        gain_w_per_kelvin: watts that "budget" adds for each kelvin below the limit.

    Raises:
        InvalidValue: if there is no clock, the policy is unknown, or a time is not positive.
    """
    positive_amount("seconds", seconds, "second")
    positive_amount("step_s", step_s, "second")
    one_of("policy", policy, ("budget", "step"))
    steps = sorted(set(clocks))
    if not steps:
        raise InvalidValue("no clocks: give at least one operating point")
    powers = [power_w(clock) for clock in steps]
    top = len(steps) - 1

    def within_budget(temperature_c: float) -> int:
        allowed = body.sustained_w + gain_w_per_kelvin * (body.limit_c - temperature_c)
        return max((place for place, power in enumerate(powers) if power <= allowed), default=0)

    now = body.ambient_c if start_c is None else start_c
    place = within_budget(now) if policy == "budget" else top
    found = []
    for number in range(math.ceil(seconds / step_s)):
        found.append(Sample(number * step_s, now, steps[place], powers[place]))
        now = body.after(now, powers[place], step_s)
        if policy == "budget":
            place = within_budget(now)
        elif now >= body.limit_c:
            place = max(place - 1, 0)
        elif now < body.limit_c - margin_c:
            place = min(place + 1, top)
    return tuple(found)


def mean_clock(samples: Sequence[Sample], from_s: float = 0.0) -> float:
    """Return the mean clock from a moment on: the rate that is left of the top rate.

    Raises:
        InvalidValue: if no sample is that late.
    """
    late = [sample.clock for sample in samples if sample.time_s >= from_s]
    if not late:
        raise InvalidValue(f"no sample from {from_s:g} s on; the last is at {samples[-1].time_s:g} s")
    return sum(late) / len(late)
