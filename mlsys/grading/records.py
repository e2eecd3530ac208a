"""What is written down about the grading of one submission."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mlsys.grading.verdicts import TAUGHT, Verdict

REFUSED = "refused"
"""Stands in place of a verdict for every question of a submission that cannot be graded."""
MARKED = "marked"
"""Stands in place of a verdict where a person gave the points."""
WAITING = ("needs gpu", "needs review")
"""Verdicts whose points are still open."""


@dataclass(frozen=True)
class QuestionRecord:
    """How one question came out; `points` are those of the verdict, before a person's mark."""

    question: str
    title: str
    grade_id: str
    verdict: str
    points: float
    max_points: float
    message: str = ""
    detail: str = ""
    seconds: float = 0.0

    @property
    def waiting(self) -> float:
        """Points that may still come."""
        return self.max_points if self.verdict in WAITING else 0.0

    @property
    def taught(self) -> str:
        """What the verdict means and what to do next."""
        return TAUGHT.get(self.verdict, "")

    def marked(self, points: float) -> "QuestionRecord":
        """The same question with the points that a person gave."""
        return replace(self, verdict=MARKED, points=points, message="", detail="")

    @classmethod
    def of(
        cls, verdict: Verdict, *, question: str, title: str, grade_id: str, max_points: float, seconds: float
    ) -> "QuestionRecord":
        """The record of a verdict."""
        return cls(
            question=question,
            title=title,
            grade_id=grade_id,
            verdict=verdict.name,
            points=round(verdict.fraction * max_points, 4),
            max_points=max_points,
            message=verdict.message,
            detail=verdict.detail,
            seconds=round(seconds, 3),
        )


@dataclass(frozen=True)
class Record:
    """The grading of one submission.

    `submission` is the digest of the file that was graded, and `state` tells whether it has to be graded again.
    """

    student: str
    lab: str
    version: str
    graded_at: str
    state: str = ""
    submission: str = ""
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    seed: int = 0
    refused: str = ""
    repairs: tuple[str, ...] = ()
    questions: tuple[QuestionRecord, ...] = ()

    def write(self, path: Path) -> None:
        """Write the record as JSON; a reader never sees half of it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> "Record | None":
        """The record in `path`, or None if there is none that this version can read."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            content["questions"] = tuple(QuestionRecord(**question) for question in content["questions"])
            content["repairs"] = tuple(content["repairs"])
            return cls(**content)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None
