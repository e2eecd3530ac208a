"""Growth laws: Moore, Huang, the demand of models, the memory wall, and the S-curves of technologies.

>>> from mlsys import growth
>>> growth.moore(10), round(growth.huang(1), 2)
(32.0, 2.0)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import linear_regression

from mlsys.core.sourced import Catalog, Entry, Number, Sourced, data_file
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


@dataclass(frozen=True)
class GrowthLaw:
    """Something that grows by a constant factor in every period.

    Attributes:
        name: its key in `data/growth.toml`.
        factor: growth in one period, with its source.
        period: the period, with its source.
    """

    name: str
    factor: Sourced
    period: Sourced

    def after(self, years: float) -> float:
        """Growth over a number of years (negative: back in time): factor^(years / period).

        >>> round(law("compute").after(20))
        59049
        """
        return float(self.factor.value.m_as("dimensionless") ** (years / self.period.value.m_as("year")))

    @property
    def per_year(self) -> float:
        """Growth in one year."""
        return self.after(1)

    @property
    def doubling_time(self) -> Quantity:
        """Time in which it doubles, in months."""
        return doubling_time(self.per_year)


@dataclass(frozen=True)
class TrainingRun:
    """A model by the arithmetic that its training took.

    Attributes:
        id: its key in `data/history.toml`.
        name: what it is called.
        announced: the year in which it came out, with its source.
        compute: operations of the final run, with their source; `condition` says if they are an outsider's estimate.
    """

    id: str
    name: str
    announced: Sourced
    compute: Sourced

    @property
    def year(self) -> int:
        """The year in which it came out."""
        return int(self.announced.value.m)

    @property
    def flops(self) -> Quantity:
        """Operations of the final run."""
        return self.compute.value


class _LawEntry(Entry, frozen=True, kw_only=True):
    factor: Number
    period: Number


LAWS = Catalog(
    "growth law",
    lambda: data_file("growth.toml", dict[str, _LawEntry]),
    lambda name, entry: GrowthLaw(name, entry.factor.sourced, entry.period.sourced),
)
"""Every growth law."""


class _RunEntry(Entry, frozen=True, kw_only=True):
    name: str
    announced: Number
    compute: Number


class _History(Entry, frozen=True, kw_only=True):
    training_runs: dict[str, _RunEntry]
    huang_parts: dict[str, Number]


def training_runs() -> dict[str, TrainingRun]:
    """Training runs among the largest of their time, by id, the oldest first.

    >>> training_runs()["gpt-3"].flops.m_as("flop")
    3.14e+23
    """
    entries = data_file("history.toml", _History).training_runs
    return {key: TrainingRun(key, run.name, run.announced.sourced, run.compute.sourced) for key, run in entries.items()}


def huang_parts() -> dict[str, Sourced]:
    """The factors into which the author of the thousandfold gain of `huang` divides it; their product is the gain.

    Source: Dally, Hardware for Deep Learning, Hot Chips 2023.

    >>> round(math.prod(part.value.m_as("") for part in huang_parts().values()))
    1000
    """
    return {name: part.sourced for name, part in data_file("history.toml", _History).huang_parts.items()}


def laws() -> dict[str, GrowthLaw]:
    """All laws by name.

    >>> sorted(laws())
    ['compute', 'demand', 'demand-2018', 'huang', 'interconnect-bandwidth', 'memory-bandwidth', 'moore']
    """
    return LAWS.by_name()


def law(name: str) -> GrowthLaw:
    """The law with this name.

    Raises:
        UnknownName: with the nearest name and all of them.

    >>> round(law("demand-2018").per_year, 1)
    11.5
    """
    return LAWS.get(name)


def moore(years: float) -> float:
    """Growth of transistors on a chip: 2 every two years.

    Source: Moore, Progress in Digital Integrated Electronics, IEDM 1975.

    >>> moore(4)
    4.0
    """
    return law("moore").after(years)


def huang(years: float) -> float:
    """Growth of one GPU's inference rate: 1000 in ten years, narrower number formats and sparsity included.

    Source: Dally, Hardware for Deep Learning, Hot Chips 2023.

    >>> round(huang(10))
    1000
    """
    return law("huang").after(years)


def model_demand(years: float, since_2010: bool = True) -> float:
    """Growth of the computing that training takes: 4.6 a year since 2010, or the steeper trend seen in 2012-2018.

    Source: Epoch AI (2024); Amodei and Hernandez, AI and Compute, OpenAI 2018 (doubling in 3.4 months).

    Args:
        years: number of years.
        since_2010: the fit to notable models since 2010 instead of that to the largest runs of 2012-2018.

    >>> round(model_demand(2), 1), round(model_demand(1, since_2010=False), 1)
    (21.2, 11.5)
    """
    return law("demand" if since_2010 else "demand-2018").after(years)


def wall_gap(years: float, resource: str = "memory-bandwidth") -> float:
    """How far computing outgrows a resource: growth of peak FLOP/s over growth of that bandwidth.

    Source: Gholami et al., AI and Memory Wall, IEEE Micro 2024.

    Args:
        years: number of years.
        resource: "memory-bandwidth" or "interconnect-bandwidth".

    Raises:
        UnknownName: if there is no law of that name.

    >>> round(wall_gap(2), 3)
    1.875
    """
    return law("compute").after(years) / law(resource).after(years)


def growth_per_year(factor: float, years: float) -> float:
    """Yearly growth behind a total: factor^(1 / years).

    Raises:
        InvalidValue: if factor or years are not positive.

    >>> round(growth_per_year(250, 10), 2)
    1.74
    """
    if not (factor > 0 and years > 0):
        raise InvalidValue(f"factor is {factor!r}, years is {years!r}: both must be more than 0")
    return float(factor ** (1 / years))


def doubling_time(per_year: float) -> Quantity:
    """Months to double at a yearly growth: 12 log 2 / log(per_year).

    Raises:
        InvalidValue: if nothing grows (per_year of 1 or less).

    >>> round(doubling_time(1.74), 1)
    <Quantity(15.0, 'month')>
    """
    if not per_year > 1:
        raise InvalidValue(f"per_year is {per_year!r}: only growth above 1 a year ever doubles")
    return ureg.Quantity(12 * math.log(2) / math.log(per_year), "month")


def fit_growth(years: Sequence[float], values: Sequence[float]) -> float:
    """Yearly growth of a table: least squares of log(value) against the year.

    Args:
        years: two or more different years.
        values: a positive value for each.

    Raises:
        InvalidValue: if the table is too short, ragged, or not positive.

    >>> round(fit_growth([2012, 2014, 2016], [1, 4, 16]), 9)
    2.0
    """
    if len(years) != len(values) or len(set(years)) < 2:
        raise InvalidValue(f"{len(years)} years and {len(values)} values: give one value for each of two or more years")
    if min(values) <= 0:
        raise InvalidValue(f"{min(values)} cannot grow exponentially: values must be more than 0")
    return math.exp(linear_regression(years, [math.log(value) for value in values]).slope)


@dataclass(frozen=True)
class SCurve:
    """A technology that takes off and saturates: ceiling / (1 + exp(-rate (year - midpoint))).

    Attributes:
        ceiling: value that it approaches.
        rate: steepness, per year.
        midpoint: year in which it reaches half of the ceiling.

    >>> SCurve(ceiling=100, rate=0.25, midpoint=2000).at(2000)
    50.0
    """

    ceiling: float
    rate: float
    midpoint: float

    def at(self, year: float) -> float:
        """The value in a year."""
        x = self.rate * (year - self.midpoint)
        decay = math.exp(-abs(x))  # never overflows, on either side of the midpoint
        return self.ceiling * (1 if x >= 0 else decay) / (1 + decay)


GENERAL_PURPOSE = SCurve(ceiling=100, rate=0.25, midpoint=2000)
"""Schematic curve of general-purpose processors: chosen to be drawn, fitted to no data."""

DOMAIN_SPECIFIC = SCurve(ceiling=10_000, rate=0.35, midpoint=2022)
"""Schematic curve of domain-specific processors: chosen to be drawn, fitted to no data."""
