"""The record of two GPUs of one host, if there is one: `tests/scaling/test_two_gpus.py` writes it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "tests/scaling/results"
FIRST = "nvidia-h200"
"""The device whose record is shown where there are several."""
WAITING = "not yet measured"
"""What a page says in the place of a time that no record has."""


@dataclass(frozen=True)
class Record:
    """What two GPUs of one host took.

    Attributes:
        label: device, versions and day, for a caption.
        links: times of collectives and copies by what they are and the bytes of a buffer, in seconds.
        steps: times of shared steps by width of the blocks and sequences; the keys are those of the record.
    """

    label: str
    links: Mapping[tuple[str, int], float]
    steps: Mapping[tuple[int, int], Mapping[str, Any]]


def load() -> Record | None:
    """Return the record of two H200s, or else that of another GPU, or None if there is none."""
    found = sorted(FOLDER.glob("*.json"), key=lambda path: (path.stem != FIRST, path.stem))
    return read(json.loads(found[0].read_text(encoding="utf-8"))) if found else None


def read(data: Mapping[str, Any]) -> Record:
    """Return a record from what its file holds."""
    links: Sequence[Mapping[str, Any]] = data["links"]
    steps: Sequence[Mapping[str, Any]] = data["steps"]
    return Record(
        f"two {data['device']} of one host, torch {data['versions']['torch']}, NCCL {data['nccl']}, "
        f"{data['measured_on']}",
        {(row["what"], row["bytes"]): row["measured_s"] for row in links},
        {(row["width"], row["sequences"]): row for row in steps},
    )


def time_of(record: Record | None, what: str, size: int) -> float | None:
    """Return the seconds of an operation on the link, or None if no record has it."""
    return record.links.get((what, size)) if record else None


def step_of(record: Record | None, width: int, sequences: int, name: str) -> float | None:
    """Return the seconds of a step, such as "tensor_s", or None if no record has it."""
    return record.steps.get((width, sequences), {}).get(name) if record else None
