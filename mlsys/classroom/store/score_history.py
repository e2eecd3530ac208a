"""The history of a student's scores: how each question stood, from when on, and why it changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mlsys.classroom.store.record import LATE, MARKED, Record


@dataclass(frozen=True)
class Score:
    """How one question stood from some time on.

    Attributes:
        time: when that was first seen, in UTC.
        question: the question, or `LATE` for what is taken off for handing in late.
        verdict: its verdict, or `MARKED`.
        points: its points.
        submission: digest of the file that counted.
        why: what changed it, in a few words.
    """

    time: str
    question: str
    verdict: str
    points: float
    submission: str
    why: str


@dataclass(frozen=True)
class ScoreHistory:
    """All scores of one student at one lab, oldest first."""

    student: str
    scores: tuple[Score, ...] = ()

    def latest(self) -> Mapping[str, Score]:
        """Return the last score of each question."""
        return {score.question: score for score in self.scores}

    def last_marked(self, question: str) -> Score | None:
        """Return the last score of a question that a person gave, or None."""
        return next((one for one in reversed(self.scores) if (one.question, one.verdict) == (question, MARKED)), None)

    def with_record(self, record: Record, time: str) -> "ScoreHistory":
        """Return the history with what a record, with the points that people gave, says anew; itself if nothing."""
        before = self.latest()
        found = []
        for question in record.questions:
            was = before.get(question.question)
            now = Score(time, question.question, question.verdict, question.points, record.submission, "")
            if was is None or (was.verdict, was.points) != (now.verdict, now.points):
                found.append(replace(now, why=_why(was, now)))
        late = Score(time, LATE, LATE, -record.penalty or 0.0, record.submission, record.handed_in.cost)
        if late.points != (before[LATE].points if LATE in before else 0.0):
            found.append(late)
        return replace(self, scores=(*self.scores, *found)) if found else self


def _why(was: Score | None, now: Score) -> str:
    if now.verdict == MARKED:
        return "marked by a person"
    if was is None:
        return "first graded"
    if was.submission != now.submission:
        return "another attempt counts" + (", so the mark no longer holds" if was.verdict == MARKED else "")
    if was.verdict == MARKED:
        return "the mark was taken back"
    return "graded on a GPU" if was.verdict == "needs gpu" else "graded again"
