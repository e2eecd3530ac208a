"""A job in pieces, walked piece by piece: what the closed form and the drawn bars are held to."""

from collections.abc import Sequence


def walked(stages: Sequence[float], pieces: int, cost: float) -> float:
    """Walk every piece through every stage: it starts when its last stage and the piece before it have ended."""
    ended = [0.0] * len(stages)
    for _ in range(pieces):
        arrived = 0.0
        for place, stage in enumerate(stages):
            ended[place] = arrived = max(arrived, ended[place]) + stage / pieces + cost
    return ended[-1]
