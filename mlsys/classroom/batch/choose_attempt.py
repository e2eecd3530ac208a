"""Judge every attempt that may count, and choose the one that does.

Under "newest" and "on-time" a student has one such attempt; under "best" all of them are judged, side by side, and each
is recorded beside the kept attempt, so that none is judged twice.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mlsys.classroom.batch.pool import JudgePool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.intake.collect import Collected, put
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.reading import LabReader, ReadingFailed
from mlsys.classroom.store.run import Terms
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.attempt_policy import Choice, best
from mlsys.course.lab import Lab
from mlsys.course.tree import CourseTree


@dataclass(frozen=True)
class Judging:
    """The judging of some students' attempts.

    Attributes:
        tree: the course.
        store: where attempts are kept and their records go.
        lab: the lab as it is released now.
        collected: what the students handed in.
        reader: makes submissions canonical.
        terms: what each attempt is judged under, by student and digest.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.
        time_limit_s: seconds after which the judging of one attempt is given up.
        pool: where they are judged.
        later: names of the questions that are judged apart, when those of other submissions are.
        only: tells for a student which questions to judge; all of them when empty.
        state: that of package, tests and device; an attempt that was judged in another state is judged again.
        advance: called when an attempt is judged.
    """

    tree: CourseTree
    store: Store
    lab: Lab
    collected: Collected
    reader: LabReader
    terms: Mapping[tuple[str, str], Terms]
    device: str
    cpu_limit_s: int
    time_limit_s: int
    pool: JudgePool
    later: tuple[str, ...]
    only: Callable[[str], tuple[str, ...]]
    state: str
    advance: Callable[[], None]

    def all(self, students: Sequence[str]) -> Iterator[Judged]:
        """Yield each student's attempt that counts, as soon as it is known; nbgrader then finds it in the tree."""
        found: dict[str, dict[str, Judged]] = {}
        open_ones: list[tuple[str, str]] = []
        for student in students:
            if reason := self.collected.refused.get(student):
                attempt = self._choices(student)[0].attempt
                self.advance()
                yield Judged(student, attempt.digest if attempt else "", refused=reason)
                continue
            known = {digest: self._known(student, digest) for digest in self.collected.digests(student)}
            found[student] = {digest: judged for digest, judged in known.items() if judged}
            open_ones += [(student, digest) for digest, judged in known.items() if judged is None]
            for _ in found[student]:
                self.advance()
            if all(known.values()):
                yield self._counting(student, found.pop(student))
        tasks = (self._task(student, digest) for student, digest in open_ones)
        for judged in self.pool.judge_all(tasks):
            self.advance()
            student = judged.student
            if len(self._choices(student)) > 1 and not judged.failed:
                self.store.save_attempt_record(judged.record(self.lab, self.state))
            found[student][judged.submission] = judged
            if len(found[student]) == len(self.collected.digests(student)):
                yield self._counting(student, found.pop(student))

    def _choices(self, student: str) -> tuple[Choice, ...]:
        return self.collected.choices[student]

    def _task(self, student: str, digest: str) -> Task | Judged:
        """Return an attempt as a worker takes it, or refused already."""
        under = self.terms[student, digest]
        try:
            notebook = self.reader.canonical(self.store.content(self.lab.name, student, digest), under.term)
        except Refused as reason:
            return Judged(student, digest, refused=str(reason), failed=isinstance(reason, ReadingFailed))
        only = self.only(student)
        return Task(
            student=student,
            lab=self.lab.name,
            version=notebook.metadata["mlsys"]["version"],
            notebook=notebook,
            submission=digest,
            terms=under,
            device=self.device,
            cpu_limit_s=self.cpu_limit_s,
            time_limit_s=self.time_limit_s,
            only=only,
            later=() if only else self.later,
        )

    def _known(self, student: str, digest: str) -> Judged | None:
        """Return what was found for one of several attempts before, if nothing has changed since."""
        if len(self._choices(student)) == 1:
            return None
        record = self.store.attempt_record(self.lab.name, student, digest)
        return Judged.recorded(record) if record and record.state == self.state else None

    def _counting(self, student: str, judged: Mapping[str, Judged]) -> Judged:
        """Return the one that counts of all attempts of a student, with its canonical notebook."""
        choices = self._choices(student)
        chosen = best(choices, {digest: one.points for digest, one in judged.items()})
        assert chosen.attempt is not None
        counting = judged[chosen.attempt.digest]
        failed = any(one.failed for one in judged.values())
        if len(choices) > 1:
            put(self.tree, self.store, self.lab.name, student, chosen)
        if counting.notebook is None and not counting.refused:
            try:
                content = self.store.content(self.lab.name, student, counting.submission)
                term = self.terms[student, counting.submission].term
                counting = replace(counting, notebook=self.reader.canonical(content, term))
            except Refused as reason:
                counting = replace(counting, refused=str(reason))
                failed = failed or isinstance(reason, ReadingFailed)
        return replace(counting, failed=failed)
