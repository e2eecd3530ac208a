"""Amdahl's law: how much of a job's speed a faster part can bring."""

import math
from collections.abc import Sequence

from mlsys.errors import InvalidValue


def amdahl(p: float, s: float) -> float:
    """Speedup of a job of which the share p runs s times faster.

    Formula: 1 / ((1 - p) + p / s).
    Source: Amdahl, Validity of the Single Processor Approach to Achieving Large Scale Computing Capabilities,
    AFIPS 1967.

    Args:
        p: share of the original time that is accelerated, 0 to 1.
        s: speedup of that share, more than 0; infinite is allowed.

    Raises:
        InvalidValue: if p or s lie outside.

    >>> round(amdahl(0.95, 500), 1), round(amdahl(0.9, float("inf")), 6)
    (19.3, 10.0)
    """
    _check_share(p)
    if not s > 0:
        raise InvalidValue(f"s is {s!r}: the speedup of the accelerated part must be more than 0; 1 changes nothing")
    time = (1 - p) + p / s
    return math.inf if time == 0 else 1 / time


def amdahl_ceiling(p: float) -> float:
    """The speedup that no accelerator exceeds: 1 / (1 - p), infinite for p = 1.

    Args:
        p: share of the original time that is accelerated, 0 to 1.

    Raises:
        InvalidValue: if p is out of range.

    >>> round(amdahl_ceiling(0.8), 9)
    5.0
    """
    return amdahl(p, math.inf)


def required_share(speedup: float, s: float) -> float:
    """Share of the time that must be accelerated s times for the whole job to gain `speedup`.

    Formula: p = (1 - 1/speedup) / (1 - 1/s), Amdahl's law solved for p.

    Args:
        speedup: wanted speedup of the whole job, 1 or more.
        s: speedup of the accelerated part, at least as much and more than 1.

    Raises:
        InvalidValue: if the whole cannot become that much faster.

    >>> round(required_share(50, s=100), 3)
    0.99
    """
    if not 1 <= speedup <= s or s == 1:
        raise InvalidValue(f"speedup is {speedup!r} with s = {s!r}: it must be at least 1 and at most s, and s above 1")
    return (1 - 1 / speedup) / (1 - 1 / s)


def amdahl_grid(shares: Sequence[float], speedups: Sequence[float]) -> list[list[float]]:
    """Amdahl's speedups for every pair, to draw as a heatmap: one row per share, one column per speedup.

    Args:
        shares: values of p, bottom row first.
        speedups: values of s.

    Raises:
        InvalidValue: if a value is outside what `amdahl` accepts.

    >>> [[round(x, 2) for x in row] for row in amdahl_grid([0.8, 0.999], [1, 1000])]
    [[1.0, 4.98], [1.0, 500.25]]
    """
    return [[amdahl(p, s) for s in speedups] for p in shares]


def _check_share(p: float) -> None:
    if not 0 <= p <= 1:
        raise InvalidValue(f"p is {p!r}: a share of the time must be between 0 and 1; nearest: {1 if p > 1 else 0}")
