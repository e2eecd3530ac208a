"""What is recorded about the grading of one submission."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlsys.grading.verdicts import VERDICTS, Verdict

REFUSED = "refused"
"""Stands in place of a verdict for every question of a submission that cannot be graded."""
MARKED = "marked"
"""Stands in place of a verdict where a person gave the points."""
WAITING = ("needs gpu", "needs review")
"""Verdicts whose points are still open."""


@dataclass(frozen=True)
class QuestionRecord:
    """How one question came out; `points` are those of the verdict, before a person's mark.

    `picture` is what `ErrorMap.read` reads; `lost` says that its process was killed from outside in the last try.
    """

    question: str
    title: str
    grade_id: str
    verdict: str
    points: float
    max_points: float
    message: str = ""
    detail: str = ""
    seconds: float = 0.0
    picture: dict[str, Any] | None = None
    lost: bool = False

    @property
    def waiting(self) -> float:
        """Points that may still come."""
        return self.max_points if self.verdict in WAITING else 0.0

    @property
    def taught(self) -> str:
        """What the verdict means and what to do next."""
        return VERDICTS.get(self.verdict, "")

    def marked(self, points: float) -> "QuestionRecord":
        """Return the same question with the points that a person gave."""
        return replace(self, verdict=MARKED, points=points, message="", detail="", picture=None)

    @classmethod
    def of(
        cls, verdict: Verdict, *, question: str, title: str, grade_id: str, max_points: float, seconds: float
    ) -> "QuestionRecord":
        """Return the record of a verdict."""
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
            picture=verdict.picture.plain() if verdict.picture else None,
            lost=verdict.lost,
        )


@dataclass(frozen=True)
class Record:
    """The grading of one submission.

    `submission` is the digest of the file that was graded, and `state` tells whether it has to be graded again. `run`
    is the secret of the run whose random inputs it met, and `seed` follows from it.
    """

    student: str
    lab: str
    version: str
    graded_at: str
    state: str = ""
    submission: str = ""
    device: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    run: str = ""
    seed: int = 0
    sandboxed: bool = True
    refused: str = ""
    repairs: tuple[str, ...] = ()
    questions: tuple[QuestionRecord, ...] = ()

    @property
    def points(self) -> float:
        """Points of all questions."""
        return sum(question.points for question in self.questions)

    @property
    def seconds(self) -> float:
        """Time that judging took, in seconds."""
        return sum(question.seconds for question in self.questions)

    @property
    def waits_for_gpu(self) -> bool:
        """Whether points of a question wait for a GPU."""
        return any(question.verdict == "needs gpu" for question in self.questions)

    def marked(self, given: Mapping[tuple[str, str], float]) -> "Record":
        """Return the record with the points that people gave.

        Args:
            given: points by student and grade_id.
        """
        questions = (
            question.marked(given[key]) if (key := (self.student, question.grade_id)) in given else question
            for question in self.questions
        )
        return replace(self, questions=tuple(questions))
