"""Grade a class: every submission of a folder or zip through nbgrader, and how everybody came out.

A submission that cannot be graded is refused with its reason and listed like the others; no submission ends the batch.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from mlsys.classroom.batch.choose_attempt import Judging
from mlsys.classroom.batch.reference_solution import LabFault, check_own_answers
from mlsys.classroom.gradebook.nbgrader import configured_cpu_limit_s, marks
from mlsys.classroom.gradebook.record_results import disk_faults, enter
from mlsys.classroom.intake.collect import Collected, collect
from mlsys.classroom.plan import Work, open_work
from mlsys.classroom.processes.limited import helper_ends
from mlsys.classroom.progress import tracked
from mlsys.classroom.regrade import Change, changes_of, with_gpu_results
from mlsys.classroom.report import safe
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Run, one_at_a_time, terms
from mlsys.classroom.students.roster import Roster
from mlsys.course.lab import Lab, find_lab, find_labs
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError


@dataclass(frozen=True)
class Options:
    """How a class is graded.

    Attributes:
        submissions: where they come from, as `submissions.collect` takes it; the tree's own `submitted` when None.
        workers: processes that judge side by side.
        student: only this one, or everybody when empty.
        accept_changes: write scores that a regrade of an unchanged submission changes.
        roster: who the students are, with due times and late days.
        policy: which attempt counts, one of `attempt_policy.POLICIES`.
        sample_class: hand in the lab's sample class first, and grade that.
        unsafe_no_sandbox: go on without the sandbox where it cannot run.
        arguments: how the command line said all this, for a later `--resume`.
    """

    submissions: Path | None = None
    workers: int = os.cpu_count() or 1
    student: str = ""
    accept_changes: bool = False
    roster: Roster | None = None
    policy: str = "newest"
    sample_class: bool = False
    unsafe_no_sandbox: bool = False
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Batch:
    """A graded class.

    Attributes:
        lab: the lab, as it is released now.
        records: by student, with the points that a person gave.
        results: the same of everybody whose submission was ever graded, in this run or not; of the sample class only
            where this run grades it.
        graded_now: how many of them were graded in this run.
        collected: what came in, with everybody who is unknown, missing, or in doubt.
        changes: scores of unchanged submissions that this run changes.
        withheld: whether the changes wait for a yes.
        minutes: how long this run took.
        unreadable: students whose record is damaged or of another version of the package, so not in `results`.
    """

    lab: Lab
    records: dict[str, Record]
    results: dict[str, Record]
    graded_now: int
    collected: Collected
    changes: tuple[Change, ...] = ()
    withheld: bool = False
    minutes: float = 0.0
    unreadable: tuple[str, ...] = ()


def grade_class(root: Path, tree: CourseTree, name: str, options: Options, console: Console) -> Batch:
    """Grade what is new or changed, and return the records of all.

    Each submission is written down as it is done, so a run that is killed goes on where it was.

    Args:
        root: the course repository.
        tree: the nbgrader tree.
        name: the lab.
        options: whose submissions, and how.
        console: where progress is shown.

    Raises:
        SandboxError: student code cannot be shut in on this machine, and `unsafe_no_sandbox` is not set.
        LabFault: the lab's own answers do not pass its tests here.
        UserError: unknown lab (also in the roster) or student, no submissions, a folder that cannot be written,
            a full disk, another run at work, or a missing package.
    """
    started_s = time.monotonic()
    path = find_lab(root, name)
    if options.roster:
        options.roster.check_labs(find_labs(root))
    with disk_faults(tree), helper_ends():
        tree.create()
        with one_at_a_time(tree):
            release(root, tree, [name])
            source = options.submissions
            if options.sample_class:
                source = tree.root / "sample-class" / name
                hand_in(path, source, tree)
            collected = collect(source, tree, name, options.roster, policy=options.policy)
            students = _students(collected, source or tree.root / "submitted", name, options.student)
            work = open_work(tree, name, students, collected, options.unsafe_no_sandbox, (root, source or root))
            changes = _judge_and_enter(tree, work, collected, options, console) if work.states else []
            graded = {file.stem for file in tree.record(name, "any").parent.glob("*.json")}
            samples = {file.stem for file in (path.parent / "class").glob("*")} - set(students)
            read = {student: Record.read(tree.record(name, student)) for student in sorted(graded - samples)}
            results = _with_marks(tree, name, {student: record for student, record in read.items() if record})
    minutes = (time.monotonic() - started_s) / 60
    withheld = bool(changes) and not options.accept_changes
    records = {student: results[student] for student in students if student in results}
    unreadable = tuple(student for student, record in read.items() if not record)
    return Batch(work.lab, records, results, len(work.states), collected, tuple(changes), withheld, minutes, unreadable)


def _students(collected: Collected, source: Path, lab: str, only: str) -> list[str]:
    students = collected.students
    if not students:
        others = "".join(f"\n  {safe(note.name)}: {safe(note.reason)}" for note in collected.ignored[:10])
        raise UserError(f"{source} holds no submissions to {lab}: put <student>.ipynb there{others}")
    if only and only not in students:
        raise UnknownName.of("student", only, students)
    return [only] if only else students


def _judge_and_enter(
    tree: CourseTree, work: Work, collected: Collected, options: Options, console: Console
) -> list[Change]:
    """Judge what is open, write each submission down, and return the scores that change."""
    name, cpu_limit_s = work.lab.name, configured_cpu_limit_s(tree)
    choices = {student: collected.choices[student] for student in work.states}
    changes: list[Change] = []
    with _run(tree, work, options) as entered:
        under = {
            terms(tree, name, student, choice.attempt.digest)
            for student in choices.keys() - collected.refused.keys()
            for choice in choices[student]
            if choice.attempt
        }
        with console.status(f"Judging the own answers of {name} first"):
            check_own_answers(tree, name, under, device=work.device, cpu_limit_s=cpu_limit_s)
        with tracked(f"Grading {name}", sum(map(len, choices.values())), console) as advance:
            judging = Judging(
                tree,
                name,
                list(work.states),
                collected,
                workers=options.workers,
                device=work.device,
                cpu_limit_s=cpu_limit_s,
                state=work.attempt_state,
                advance=advance,
            )
            for judged in judging.all():
                old, state = work.old[judged.student], work.states[judged.student]
                result = with_gpu_results(old, judged) if old and old.state == state and old.sandboxed else judged
                found = changes_of(old, result)
                changes += found
                if options.accept_changes or not found:
                    enter(tree, work.lab, result, "" if judged.student in judging.failed else state)
                    entered.append(judged.student)
    return changes


@contextmanager
def _run(tree: CourseTree, work: Work, options: Options) -> Iterator[list[str]]:
    """Begin a run or go on with one; yields the list of students that this call enters.

    An error leaves the run to be gone on with, unless it began here and nobody was entered.
    """
    name = work.lab.name
    last = Run.read(tree, name)
    begins = last is None or last.finished
    run = Run.begin(tree, name, sandboxed=work.sandboxed, arguments=options.arguments)
    entered: list[str] = []
    try:
        yield entered
    except Exception as error:
        if isinstance(error, LabFault) or (begins and not entered):
            run.finish(tree, name)  # so that the next call draws anew
        raise
    run.finish(tree, name)


def _with_marks(tree: CourseTree, lab: str, records: dict[str, Record]) -> dict[str, Record]:
    """The records with the points that a person gave in nbgrader."""
    if not records:
        return {}
    given = marks(tree, lab)
    return {student: replace(record, questions=_marked(record, given)) for student, record in records.items()}


def _marked(record: Record, given: dict[tuple[str, str], float]) -> tuple[QuestionRecord, ...]:
    return tuple(
        question.marked(given[key]) if (key := (record.student, question.grade_id)) in given else question
        for question in record.questions
    )
