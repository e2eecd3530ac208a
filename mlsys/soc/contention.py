"""One memory for all: who gets how much of its bandwidth.

Whoever asks for less than an equal share gets all of it, and the others divide the rest equally: max-min fairness. With
priorities, the higher ones are served first and the lower ones get what is left.

>>> share({"camera": 10, "gpu": 40, "npu": 30}, capacity=50)
{'camera': 10, 'gpu': 20.0, 'npu': 20.0}
>>> share({"camera": 10, "gpu": 40, "npu": 30}, capacity=50, priority={"npu": 1})
{'camera': 10, 'gpu': 10.0, 'npu': 30}
"""

from collections.abc import Mapping

from mlsys.core.arguments import non_negative


def share(demands: Mapping[str, float], capacity: float, priority: Mapping[str, int] | None = None) -> dict[str, float]:
    """Divide a bandwidth among those who ask for it.

    Args:
        demands: bytes per second that each could use.
        capacity: bytes per second that there are.
        priority: the higher number is served first; who is not listed has 0.

    Returns:
        Bytes per second for each, at most what it asked for; together the capacity, or all that was asked for.

    Raises:
        InvalidValue: if a demand or the capacity is negative or not finite.
    """
    left = float(non_negative("capacity", capacity))
    levels = priority or {}
    granted: dict[str, float] = {name: non_negative(f"demand of {name!r}", demand) for name, demand in demands.items()}
    for level in sorted({levels.get(name, 0) for name in demands}, reverse=True):
        waiting = sorted((name for name in demands if levels.get(name, 0) == level), key=lambda name: demands[name])
        for place, name in enumerate(waiting):
            granted[name] = min(demands[name], left / (len(waiting) - place))
            left -= granted[name]
    return granted
