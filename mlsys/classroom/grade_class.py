"""Grade a class: every submission of a folder or zip through nbgrader, and how everybody came out.

A submission that cannot be graded is refused with its reason and listed like the others; no submission ends the batch.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import median

from nbformat import NotebookNode
from rich.console import Console

from mlsys.classroom.batch.choose_attempt import Judging
from mlsys.classroom.batch.device_times import DeviceTime
from mlsys.classroom.batch.pool import JudgePool, Pool, time_limit_s
from mlsys.classroom.batch.reference_solution import LabFault, check_reference_solution, reference_tasks
from mlsys.classroom.batch.task import Judged
from mlsys.classroom.gradebook.marks import answers_to, check_marks, marked, read_class, void_marks, write_page
from mlsys.classroom.gradebook.nbgrader import configured_cpu_limit_s, enter_roster
from mlsys.classroom.gradebook.record_results import disk_faults, enter_again, record_result
from mlsys.classroom.intake.collect import Collected, collect, put, take_back
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.lms.hand_ins import HandIns
from mlsys.classroom.plan import Plan, make_plan
from mlsys.classroom.processes.limited import helper_ends
from mlsys.classroom.progress import tracked
from mlsys.classroom.regrade import Change, changes_of, lapsed_marks, late_change, with_gpu_results
from mlsys.classroom.report import safe
from mlsys.classroom.store.backup import back_up
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.marks import Marks
from mlsys.classroom.store.record import HandedIn, Record
from mlsys.classroom.store.run import Terms
from mlsys.classroom.store.store import Store
from mlsys.classroom.store.terms import begin_run, finish_run, term_of, terms
from mlsys.classroom.students.roster import Roster
from mlsys.course.lab import Lab, find_lab, find_labs
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError

PACKAGE_CHANGED = (
    "The part of the package that decides verdicts has changed since the last run, so everybody is judged again, with "
    "the same inputs as before."
)


@dataclass(frozen=True)
class Options:
    """How a class is graded.

    Attributes:
        submissions: where they come from, as `submissions.collect` takes it; the tree's own `submitted` when None.
        workers: processes that judge side by side.
        student: only this one, or everybody when empty.
        accept_changes: write scores that change without a newer submission, and let marks of changed answers lapse.
        roster: who the students are, with due times and late days.
        hand_ins: what the LMS says of the times of handing in.
        policy: which attempt counts, one of `attempt_policy.POLICIES`.
        sample_class: hand in the lab's sample class first, and grade that, in a tree of its own below the course's.
        unsafe_no_sandbox: go on without the sandbox where it cannot run.
        arguments: how the command line said all this, for a later `--resume`.
        open_pool: makes what judges the lab of a course, in place of processes of this machine.
    """

    submissions: Path | None = None
    workers: int = os.cpu_count() or 1
    student: str = ""
    accept_changes: bool = False
    roster: Roster | None = None
    hand_ins: HandIns = field(default_factory=HandIns)
    policy: str = "newest"
    sample_class: bool = False
    unsafe_no_sandbox: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)
    open_pool: Callable[[CourseTree, str], JudgePool] | None = None

    def pool(self, tree: CourseTree, lab: str, submissions: int) -> JudgePool:
        """Return what judges the submissions."""
        if self.open_pool:
            return self.open_pool(tree, lab)
        return Pool(tree.root.resolve(), min(self.workers, submissions))


@dataclass(frozen=True)
class Batch:
    """A graded class.

    Attributes:
        tree: where it is kept.
        lab: the lab, as it is released now.
        records: by student, with the points that a person gave.
        results: the same of everybody whose submission was ever graded, in this run or not.
        graded_now: how many of them were graded in this run.
        collected: what came in, with everybody who is unknown, missing, or in doubt.
        changes: scores of unchanged submissions that this run changes.
        withheld: whether the changes wait for a yes.
        minutes: how long this run took.
        unreadable: students whose record is damaged or of another version of the package, so not in `results`.
        device_times: how busy each GPU of this machine was.
    """

    tree: CourseTree
    lab: Lab
    records: dict[str, Record]
    results: dict[str, Record]
    graded_now: int
    collected: Collected
    changes: tuple[Change, ...] = ()
    withheld: bool = False
    minutes: float = 0.0
    unreadable: tuple[str, ...] = ()
    device_times: tuple[DeviceTime, ...] = ()


def grade_class(root: Path, tree: CourseTree, name: str, options: Options, console: Console) -> Batch:
    """Grade what is new or changed, and return the records of all.

    Each submission is recorded as it is done, so a run that is killed goes on where it was.

    Args:
        root: the course repository.
        tree: the nbgrader tree.
        name: the lab.
        options: whose submissions, and how.
        console: where progress is shown.

    Raises:
        SandboxError: student code cannot be shut in on this machine, and `unsafe_no_sandbox` is not set.
        LabFault: the lab's reference solution does not pass its tests here.
        NeedsYes: the gradebook lacks marks that people gave, and `accept_changes` is not set.
        UserError: unknown lab (also in the roster) or student, no submissions, a folder that cannot be written,
            a full disk, another run at work, or a missing package.
    """
    started_s = time.monotonic()
    course = tree
    if options.sample_class:
        tree = tree.sample_course
    path, store = find_lab(root, name), store_of(tree)
    if options.roster:
        options.roster.check_labs(find_labs(root))
    with disk_faults(tree), helper_ends():
        tree.create()
        if options.sample_class and course.terms.is_file():
            shutil.copy(course.terms, tree.terms)  # so that it tries what the class gets
        with store.lock():
            release(root, tree, [name])
            marks = check_marks(tree, store, name, accept=options.accept_changes)
            with _backed_up(tree, store, name):
                enter_again(tree, store, name)
                source = options.submissions
                if options.sample_class:
                    source = tree.sample_class(name)
                    hand_in(path, source, tree)
                _check_rules(store, name, options)
                reader = LabReader(tree, name)
                collected = collect(
                    source,
                    tree,
                    name,
                    options.roster,
                    store=store,
                    policy=options.policy,
                    hand_ins=options.hand_ins,
                    check=reader.check,
                )
                students = _students(collected, source, name, options.student)
                private = root, source or root
                with options.pool(tree, name, len(students)) as pool:
                    plan = make_plan(tree, store, name, students, collected, pool, options.unsafe_no_sandbox, private)
                    grading = _Grading(tree, store, plan, collected, reader, pool, marks, options, console)
                    changes = grading.judge_and_record() if plan.states else []
                    changes += grading.record_lateness(students)
                    device_times = pool.device_times() if plan.states else ()
            if options.roster:
                enter_roster(tree, name, options.roster)
            read = read_class(tree, store, name)
    minutes = (time.monotonic() - started_s) / 60
    withheld = bool(changes) and not options.accept_changes
    results = {student: record for student, record in read.items() if record}
    records = {student: results[student] for student in students if student in results}
    unreadable = tuple(student for student, record in read.items() if not record)
    return Batch(
        tree,
        plan.lab,
        records,
        results,
        len(plan.states),
        collected,
        tuple(changes),
        withheld,
        minutes,
        unreadable,
        device_times,
    )


@contextmanager
def _backed_up(tree: CourseTree, store: Store, lab: str) -> Iterator[None]:
    """Back up the class first; the backup of a call that began no run goes, for it is like the one before."""
    before = store.run(lab)
    goes_on = before is not None and not before.finished  # it has a backup from when it began
    backup = None if goes_on else back_up(tree, lab)
    try:
        yield
    finally:
        if backup and store.run(lab) == before:
            shutil.rmtree(backup)


def _students(collected: Collected, source: Path | None, lab: str, only: str) -> list[str]:
    students = collected.students
    if not students:
        others = "".join(f"\n  {safe(note.name)}: {safe(note.reason)}" for note in collected.ignored[:10])
        others += f"\n  and {len(collected.ignored) - 10} more" if len(collected.ignored) > 10 else ""
        if source is None:
            raise UserError(f"no submissions to {lab} have come in: name them with --submissions{others}")
        raise UserError(f"{source} holds no submissions to {lab}: put <student>.ipynb there{others}")
    if only and only not in students:
        raise UnknownName.of("student", only, students)
    return sorted(set(collected.members(only)) & set(students)) if only else students


def _check_rules(store: Store, lab: str, options: Options) -> None:
    """Refuse new submissions without the roster by whose rules the others lose points.

    Raises:
        UserError: some record has such a rule, submissions come in, and no roster is named.
    """
    if options.roster or options.submissions is None or options.sample_class:
        return
    ruled = sum(bool(record and record.ruled) for record in store.records(lab).values())
    if ruled:
        raise UserError(
            f"this run names no roster, and {ruled} submissions to {lab} were graded with one in which late days cost "
            "points: add --roster FILE"
        )


@dataclass(frozen=True)
class _Grading:
    """The judging and recording of what is open."""

    tree: CourseTree
    store: Store
    plan: Plan
    collected: Collected
    reader: LabReader
    pool: JudgePool
    marks: Mapping[str, Marks]
    options: Options
    console: Console

    def judge_and_record(self) -> list[Change]:
        """Judge what is open, record each submission, and return the scores that change."""
        lab, plan = self.plan.lab, self.plan
        cpu_limit_s = configured_cpu_limit_s(self.tree)
        changes: list[Change] = []
        with self._run() as recorded:
            under = self._terms()
            with self.console.status(f"Judging the reference solution of {lab.name} first"):
                first = reference_tasks(
                    self.tree, lab.name, set(under.values()), device=plan.device, cpu_limit_s=cpu_limit_s
                )
                reference_s = check_reference_solution(self.pool, first)
            copies, leaders = self._of_groups()
            attempts = sum(len(self.collected.digests(student)) or 1 for student in leaders)
            expected_s = self._expected_s(attempts, reference_s)
            with tracked(f"Grading {lab.name}", attempts, self.console, expected_s=expected_s) as advance:
                judging = Judging(
                    self.tree,
                    self.store,
                    lab,
                    self.collected,
                    self.reader,
                    under,
                    device=plan.device,
                    cpu_limit_s=cpu_limit_s,
                    time_limit_s=time_limit_s(lab, plan.kind, cpu_limit_s),
                    pool=self.pool,
                    later=self._later(),
                    only=self._waiting_for_gpu,
                    state=plan.attempt_state,
                    advance=advance,
                )
                for judged in self._members_too(chain(copies, judging.all(leaders))):
                    old, state = plan.old[judged.student], plan.states[judged.student]
                    result = with_gpu_results(old, judged) if old and self._is_up_to_date(old) else judged
                    result = replace(result, handed_in=self._handed_in(result.student, result.submission, old))
                    lapsed = self._lapsed_marks(old, result)
                    # Who joins a group gets its work without having handed in anything.
                    newer = self._is_newer(old, result) and not (old and old.handed_in.group != result.handed_in.group)
                    found = [*changes_of(old, result, newer=newer), *lapsed.values()]
                    if old and old.submission == result.submission and not result.refused:
                        found += filter(None, [late_change(self._marked(old), result.handed_in)])
                    changes += found
                    if self.options.accept_changes or not found:
                        if lapsed:
                            void_marks(self.tree, lab.name, judged.student, lapsed)
                        record_result(self.tree, self.store, lab, result, "" if judged.failed else state)
                        recorded.append(judged.student)
                    elif old and self.options.submissions:
                        take_back(self.collected, self.tree, self.store, lab.name, judged.student, old.submission)
        return changes

    def _is_up_to_date(self, old: Record) -> bool:
        """Return whether a record is open only because points in it wait for a GPU."""
        return old.state == self.plan.states[old.student] and old.sandboxed

    def _waiting_for_gpu(self, student: str) -> tuple[str, ...]:
        """Return the names of the questions to judge where only those count that wait for a GPU; else none.

        What is found counts for all members of a group, so the records of all who are open must wait for the same.
        """
        if self.plan.kind != "gpu" or len(self.collected.choices[student]) > 1:
            return ()
        found = set()
        for member in set(self.collected.members(student)) & self.plan.states.keys():
            old = self.plan.old[member]
            known = old.questions if old and self._is_up_to_date(old) else ()
            found.add(tuple(one.question for one in known if one.verdict == "needs gpu"))
        return found.pop() if len(found) == 1 else ()

    def _later(self) -> tuple[str, ...]:
        """Return the names of the questions that are timed on a GPU of this machine, which others use meanwhile."""
        on_gpu = self.plan.kind == "gpu" and not self.pool.elsewhere
        return tuple(one.name for one in self.plan.lab.questions if one.device == "gpu") if on_gpu else ()

    def _expected_s(self, attempts: int, reference_s: float) -> float:
        """Return how long judging should take in seconds, by the records of earlier runs, or by the reference."""
        known = self.store.records(self.plan.lab.name).values()
        took_s = [record.seconds for record in known if record and record.seconds and not record.refused]
        each_s = median(took_s) if took_s else reference_s
        return attempts * each_s / max(1, min(self.pool.workers, attempts))

    def record_lateness(self, students: Sequence[str]) -> list[Change]:
        """Write how submissions that are graded already were handed in, where that has changed; return other scores."""
        changes, quiet = [], []
        for student in students:
            old = self.plan.old[student]
            if student in self.plan.states or old is None or old.refused:
                continue
            new = replace(old, handed_in=self._handed_in(student, old.submission, old))
            if new.handed_in != old.handed_in:
                change = late_change(self._marked(old), new.handed_in)
                changes += [change] if change else []
                quiet += [] if change and not self.options.accept_changes else [new]
        if quiet:
            with self._run() as recorded:
                for record in quiet:
                    self.store.save_record(record)
                    write_page(self.tree, self.store, self.plan.lab.name, record.student, self.marks)
                    recorded.append(record.student)
        return changes

    def _handed_in(self, student: str, submission: str, old: Record | None) -> HandedIn:
        """Return how a submission was handed in; without a roster, a record of the same one goes on saying it."""
        choices = self.collected.choices[student]
        same = [one for one in choices if one.attempt and one.attempt.digest == submission] or list(choices)
        time = same[-1].attempt.time if same[-1].attempt else None
        if self.options.roster is None and old and old.submission == submission:
            return old.handed_in
        group = self.collected.groups.get(student)
        return HandedIn(time.isoformat() if time else "", same[-1].late, group.name if group else "")

    def _marked(self, record: Record) -> Record:
        return marked(record, self.marks)

    def _of_groups(self) -> tuple[list[Judged], list[str]]:
        """Return the members of groups whose work is graded already, as another's, and all others who are to be judged.

        A group's work is judged once, so that all members have the same score.
        """
        name, copies, leaders = self.plan.lab.name, [], []
        led: set[str] = set()
        for student, state in self.plan.states.items():
            others = [one for one in self.collected.members(student) if one not in self.plan.states]
            records = [record for one in others if (record := self.store.record(name, one)) and record.state == state]
            notebook = self._canonical(student, records[0].submission) if records and not records[0].refused else None
            if notebook is not None:
                copies.append(replace(Judged.recorded(records[0]), student=student, notebook=notebook))
            elif student not in led:
                leaders.append(student)
                led |= set(self.collected.members(student))
        return copies, leaders

    def _members_too(self, found: Iterable[Judged]) -> Iterator[Judged]:
        """Yield what was found for each student, and the same for the others of the student's group."""
        copied: set[str] = set()
        for judged in found:
            for member in self.collected.members(judged.student):
                if member not in self.plan.states or member in copied:
                    continue
                copied.add(member)
                choices = self.collected.choices[member]
                if member != judged.student and len(choices) > 1:
                    counting = [one for one in choices if one.attempt and one.attempt.digest == judged.submission]
                    put(self.tree, self.store, self.plan.lab.name, member, counting[-1])
                yield replace(judged, student=member, notebook=deepcopy(judged.notebook))

    def _is_newer(self, old: Record | None, judged: Judged) -> bool:
        """Return whether what counts now was handed in after what counted before."""
        digests = [attempt.digest for attempt in self.collected.histories[judged.student].attempts]
        if old is None or old.submission not in digests or judged.submission not in digests:
            return True
        return digests[::-1].index(judged.submission) < digests[::-1].index(old.submission)

    def _lapsed_marks(self, old: Record | None, judged: Judged) -> dict[str, Change]:
        """Return the marks that people gave to answers that are others now, by grade_id."""
        marks = self.marks.get(judged.student)
        if old is None or marks is None or not marks.points or old.submission == judged.submission:
            return {}
        before = self._canonical(judged.student, old.submission)

        def is_same(question: str) -> bool:
            if before is None or judged.notebook is None:
                return False
            return answers_to(before, question) == answers_to(judged.notebook, question)

        return lapsed_marks(old, judged, marks.points, is_same)

    def _canonical(self, student: str, submission: str) -> NotebookNode | None:
        """Return the canonical notebook of an earlier submission, if it can still be read."""
        try:
            content = self.store.content(self.plan.lab.name, student, submission)
            return self.reader.canonical(content, term_of(self.store, self.plan.lab.name, student, submission))
        except (Refused, FileNotFoundError, IsADirectoryError):
            return None

    def _terms(self) -> dict[tuple[str, str], Terms]:
        """Return the terms of every attempt that may count, by student and digest."""
        name = self.plan.lab.name
        return {
            (student, digest): terms(self.store, name, student, digest)
            for student in self.plan.states.keys() - self.collected.refused.keys()
            for digest in self.collected.digests(student)
        }

    def _judges_again(self) -> bool:
        """Return whether a submission is judged again that was graded and is the same as before."""
        before = ((student, self.plan.old[student]) for student in self.plan.states)
        return any(old and old.state and old.submission in self.collected.digests(student) for student, old in before)

    @contextmanager
    def _run(self) -> Iterator[list[str]]:
        """Begin a run or go on with one; yield the list of students that this call records.

        An error leaves the run to be gone on with, unless it began here and nobody was recorded.
        """
        name = self.plan.lab.name
        last = self.store.run(name)
        begins = last is None or last.finished
        if last and last.package != self.plan.package and self._judges_again():
            self.console.print(PACKAGE_CHANGED)
        run = begin_run(
            self.store,
            name,
            sandboxed=self.plan.sandboxed,
            arguments=self.options.arguments,
            package=self.plan.package,
        )
        recorded: list[str] = []
        try:
            yield recorded
        except Exception as error:
            if isinstance(error, LabFault) or (begins and not recorded):
                finish_run(self.store, name, run)  # so that the next call draws anew
            raise
        finish_run(self.store, name, run)
