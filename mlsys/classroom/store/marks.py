"""What people gave a student for a lab, as it was last seen in the gradebook."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Marks:
    """Points and comments by grade_id, and the points that are taken off for handing in late."""

    points: Mapping[str, float] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    penalty: float = 0.0


@dataclass(frozen=True)
class KeptMarks:
    """The marks of a lab by student, as the store keeps them."""

    students: dict[str, Marks] = field(default_factory=dict)
