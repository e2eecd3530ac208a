"""What goes to a worker and what comes back: values only, so that a worker may be on another machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from nbformat import NotebookNode

from mlsys.classroom.store.record import REFUSED, HandedIn, QuestionRecord, Record
from mlsys.classroom.store.run import Terms
from mlsys.course.lab import Lab


@dataclass(frozen=True)
class Task:
    """A submission to judge.

    Attributes:
        student: whose submission it is.
        lab: the lab.
        version: the version in which the lab is released.
        notebook: the canonical notebook.
        submission: digest of the submitted file.
        terms: what the submission is judged under.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.
        time_limit_s: seconds after which the judging is given up.
        only: names of the questions to judge; all of them when empty.
        later: names of the questions that are judged later, in a task of their own.
        hidden: whether hidden tests run too; without them, only questions with visible tests are judged.
    """

    student: str
    lab: str
    version: str
    notebook: NotebookNode
    submission: str
    terms: Terms
    device: str
    cpu_limit_s: int
    time_limit_s: int
    only: tuple[str, ...] = ()
    later: tuple[str, ...] = ()
    hidden: bool = True


@dataclass(frozen=True)
class Judged:
    """A judged submission: the verdicts, or why it is refused, and all that its record says.

    Attributes:
        student: whose submission it is.
        submission: digest of the submitted file.
        questions: the verdict of each question.
        refused: why it cannot be graded.
        notebook: the canonical notebook; None where the submission is refused or was judged in an earlier run.
        terms: what the submission was judged under; None where it is refused.
        device: "cpu" or "gpu", on the machine that judged.
        gpu: name and UUID of the GPU that judged; empty on a CPU.
        versions: those of python, torch and triton on the machine that judged.
        seconds: how long judging took.
        failed: whether the judge itself failed, so that the submission is to be judged again in the next run.
        handed_in: how the submission was handed in.
    """

    student: str
    submission: str
    questions: tuple[QuestionRecord, ...] = ()
    refused: str = ""
    notebook: NotebookNode | None = None
    terms: Terms | None = None
    device: str = ""
    gpu: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    failed: bool = False
    handed_in: HandedIn = field(default_factory=HandedIn)

    @property
    def lost(self) -> tuple[str, ...]:
        """Names of the questions whose process was killed from outside or lost with its sandbox."""
        return tuple(question.question for question in self.questions if question.lost)

    @property
    def points(self) -> float:
        """Points of all questions; less than none for a refused submission."""
        return -1.0 if self.refused else sum(question.points for question in self.questions)

    def with_questions(self, again: Sequence[QuestionRecord]) -> "Judged":
        """Return the same with what was found for some questions in another try."""
        found = {question.question: question for question in again}
        return replace(self, questions=tuple(found.get(one.question, one) for one in self.questions))

    def with_later(self, later: "Judged") -> "Judged":
        """Return the same with what was found for the questions that waited, and the machine on which that was."""
        both = self.with_questions(later.questions)
        seconds = self.seconds + later.seconds
        return replace(both, device=later.device, gpu=later.gpu, versions=later.versions, seconds=seconds)

    @classmethod
    def recorded(cls, record: Record) -> "Judged":
        """Return what an earlier run found, from its record."""
        return cls(
            record.student,
            record.submission,
            () if record.refused else record.questions,
            record.refused,
            terms=None if record.refused else Terms(record.run, record.seed, record.sandboxed, record.term),
            device=record.device,
            gpu=record.gpu,
            versions=record.versions,
            seconds=record.seconds,
            handed_in=record.handed_in,
        )

    def record(self, lab: Lab, state: str = "") -> Record:
        """Return the record of this submission.

        Args:
            lab: the lab as it is released now.
            state: tells a later run whether the submission has to be judged again; empty if it has to be.
        """
        common = Record(
            student=self.student,
            lab=lab.name,
            version=lab.version,
            graded_at=datetime.now(UTC).isoformat(timespec="seconds"),
            state=state,
            submission=self.submission,
            handed_in=self.handed_in,
        )
        if self.refused or self.terms is None:
            questions = (
                QuestionRecord(one.name, one.title, one.graded.id, REFUSED, 0.0, one.points, self.refused)
                for one in lab.questions
            )
            return replace(common, refused=self.refused, questions=tuple(questions))
        about = self.notebook.metadata["mlsys"] if self.notebook else {}
        return replace(
            common,
            version=about.get("submitted_version", lab.version),
            device=self.device,
            gpu=self.gpu,
            versions=dict(self.versions),
            run=self.terms.run,
            seed=self.terms.seed,
            sandboxed=self.terms.sandboxed,
            repairs=tuple(about.get("repairs", ())),
            questions=self.questions,
            term=self.terms.term,
        )
