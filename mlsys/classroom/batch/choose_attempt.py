"""Judging every attempt that may count, and choosing the one that does.

Under "newest" and "on-time" a student has one such attempt; under "best" all of them are judged, one after the other,
and each is written down beside the kept attempt, so that none is judged twice.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mlsys.classroom.batch.pool import Judged, judge_all
from mlsys.classroom.intake.collect import Collected, put
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.run import attempt_record, terms
from mlsys.classroom.students.attempt_policy import Choice, best
from mlsys.course.tree import CourseTree


@dataclass
class Judging:
    """The judging of some students' attempts.

    Attributes:
        tree: the course.
        lab: the lab.
        students: whose.
        collected: what they handed in.
        workers: processes that judge side by side.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.
        state: that of package, tests and device; an attempt that was judged in another state is judged again.
        advance: called when an attempt is judged.
        failed: students on whose attempt the judge itself failed; they are to be tried again.
    """

    tree: CourseTree
    lab: str
    students: Sequence[str]
    collected: Collected
    workers: int
    device: str
    cpu_limit_s: int
    state: str
    advance: Callable[[], None]
    failed: set[str] = field(default_factory=set)

    def all(self) -> Iterator[Judged]:
        """Each student's attempt that counts, which then lies in the tree, as soon as it is known."""
        found: dict[str, list[Judged]] = {student: [] for student in self.students}
        for student in self.students:
            if reason := self.collected.refused.get(student):
                self.advance()
                attempt = self._choices(student)[0].attempt
                yield Judged(student, attempt.digest if attempt else "", refused=reason)
                del found[student]
        number = 0
        while found:
            for judged in self._judge_attempt(number, list(found)):
                self.advance()
                found[judged.student].append(judged)
                if len(found[judged.student]) == len(self._choices(judged.student)):
                    yield self._best(judged.student, found.pop(judged.student))
            number += 1

    def _choices(self, student: str) -> tuple[Choice, ...]:
        return self.collected.choices[student]

    def _judge_attempt(self, number: int, students: list[str]) -> Iterator[Judged]:
        """Judge one attempt of each student."""
        left = []
        for student in students:
            choice = self._choices(student)[number]
            known = self._known(student, choice)
            if known:
                yield known
            else:
                put(self.tree, self.lab, student, self.collected.histories[student], choice)
                left.append(student)
        workers = min(self.workers, len(left))
        found = judge_all(self.tree, self.lab, left, workers=workers, device=self.device, cpu_limit_s=self.cpu_limit_s)
        for judged in found:
            if not judged.submission:
                self.failed.add(judged.student)
                attempt = self._choices(judged.student)[number].attempt
                yield replace(judged, submission=attempt.digest if attempt else "")
                continue
            if len(self._choices(judged.student)) > 1:
                self._write_down(judged)
            yield judged

    def _known(self, student: str, choice: Choice) -> Judged | None:
        """What was found for one of several attempts before, if nothing has changed since."""
        if len(self._choices(student)) == 1 or choice.attempt is None:
            return None
        record = Record.read(attempt_record(self.tree, self.lab, student, choice.attempt.digest))
        if record is None or record.state != self.state:
            return None
        return Judged(student, record.submission, record.questions, record.refused)

    def _write_down(self, judged: Judged) -> None:
        under = terms(self.tree, self.lab, judged.student, judged.submission)
        record = Record(
            student=judged.student,
            lab=self.lab,
            version="",
            graded_at=datetime.now(UTC).isoformat(timespec="seconds"),
            state=self.state,
            submission=judged.submission,
            run=under.run,
            seed=under.seed,
            sandboxed=under.sandboxed,
            refused=judged.refused,
            questions=judged.questions,
        )
        record.write(attempt_record(self.tree, self.lab, judged.student, judged.submission))

    def _best(self, student: str, judged: Sequence[Judged]) -> Judged:
        """The one that counts of all attempts of a student, put into the tree."""
        choices = self._choices(student)
        if len(choices) == 1:
            return judged[0]
        by_digest = {choice.attempt.digest: one for choice, one in zip(choices, judged, strict=True) if choice.attempt}
        points = {
            digest: -1.0 if one.refused else sum(question.points for question in one.questions)
            for digest, one in by_digest.items()
        }
        chosen = best(choices, points)
        assert chosen.attempt is not None
        put(self.tree, self.lab, student, self.collected.histories[student], chosen)
        return by_digest[chosen.attempt.digest]
