"""What is recorded about the grading of one submission."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlsys.classroom.students.late import Late
from mlsys.grading.timed import Timed
from mlsys.grading.verdicts import VERDICTS, Verdict

REFUSED = "refused"
"""Stands in place of a verdict for every question of a submission that cannot be graded."""
MARKED = "marked"
"""Stands in place of a verdict where a person gave the points."""
LATE = "late work"
"""Stands in place of a question, and of a verdict, where points are taken off for handing in late."""
WAITING = ("needs gpu", "needs review")
"""Verdicts whose points are still open."""


@dataclass(frozen=True)
class QuestionRecord:
    """How one question came out; `points` are those of the verdict, before a person's mark.

    `picture` is what `ErrorMap.read` reads; `lost` says that its process was killed from outside in the last try;
    `timed` are the times of a race; `private` is for whoever marks and never for the student: it may quote the inputs
    of a hidden test.
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
    timed: tuple[Timed, ...] = ()
    private: str = ""

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
        return replace(self, verdict=MARKED, points=points, message="", detail="", private="", picture=None)

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
            private=verdict.private,
            seconds=round(seconds, 3),
            picture=verdict.picture.plain() if verdict.picture else None,
            lost=verdict.lost,
            timed=verdict.timed,
        )


@dataclass(frozen=True)
class HandedIn:
    """How a submission was handed in: its time with its distance from UTC, how late it was, and by which group.

    `time` is empty and `late` None if nothing says so.
    """

    time: str = ""
    late: Late | None = None
    group: str = ""

    @property
    def off(self) -> float:
        """Part of the points that is taken off, from 0 to 1."""
        return self.late.off if self.late else 0.0

    @property
    def cost(self) -> str:
        """What was needed, what there was, and what is taken off, as far as a roster says it."""
        return self.late.cost if self.late else "no rule of a roster holds"


@dataclass(frozen=True)
class Record:
    """The grading of one submission.

    `submission` is the digest of the file that was graded, and `state` tells whether it has to be graded again. `run`
    is the secret of the run whose random inputs it met, and `seed` follows from it. `term` is the term whose lab it was
    graded with. `gpu` is name and UUID of the GPU that judged, empty on a CPU. `nbgraders_penalty` is what a rule of
    nbgrader's own takes off, as the gradebook has it.
    """

    student: str
    lab: str
    version: str
    graded_at: str
    state: str = ""
    submission: str = ""
    device: str = ""
    gpu: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    run: str = ""
    seed: int = 0
    sandboxed: bool = True
    refused: str = ""
    repairs: tuple[str, ...] = ()
    questions: tuple[QuestionRecord, ...] = ()
    term: str = ""
    handed_in: HandedIn = field(default_factory=HandedIn)
    nbgraders_penalty: float = 0.0

    @property
    def penalty(self) -> float:
        """Points that are taken off for handing in late: by the roster's rule, or by nbgrader's if that is set up."""
        given = sum(question.points for question in self.questions)
        off = given * self.handed_in.off if self.ruled else self.nbgraders_penalty
        return min(given, round(off, 4))

    @property
    def ruled(self) -> bool:
        """Whether the roster says what late work costs."""
        return self.handed_in.late is not None and self.handed_in.late.percent > 0

    @property
    def points(self) -> float:
        """Points of all questions, less what is taken off for handing in late."""
        return sum(question.points for question in self.questions) - self.penalty

    @property
    def seconds(self) -> float:
        """Time that judging took, in seconds."""
        return sum(question.seconds for question in self.questions)

    @property
    def waits_for_gpu(self) -> bool:
        """Whether points of a question wait for a GPU."""
        return any(question.verdict == "needs gpu" for question in self.questions)

    def marked(self, given: Mapping[tuple[str, str], float], nbgraders_penalty: float = 0.0) -> "Record":
        """Return the record with the points that people gave.

        Args:
            given: points by student and grade_id.
            nbgraders_penalty: points that the gradebook takes off; the roster's rule holds before it.
        """
        questions = (
            question.marked(given[key]) if (key := (self.student, question.grade_id)) in given else question
            for question in self.questions
        )
        return replace(self, questions=tuple(questions), nbgraders_penalty=nbgraders_penalty)
