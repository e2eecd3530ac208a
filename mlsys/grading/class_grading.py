"""Grade a class: every submission of a folder through nbgrader, and one table of how everybody came out.

A submission that cannot be graded is refused with its reason and listed like the others; no submission ends the batch.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track

from mlsys.course.digest import digest, package_digest
from mlsys.course.lab import Lab
from mlsys.course.nbgrader_steps import (
    NbgraderFailed,
    autograde,
    configured_cpu_limit_s,
    configured_device,
    enter_refusal,
    generate_feedback,
    marks,
)
from mlsys.course.release import release
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError
from mlsys.grading.feedback import Page, render
from mlsys.grading.nbgrader_plugin import found_verdicts
from mlsys.grading.pool import Judged, judge_all
from mlsys.grading.records import REFUSED, QuestionRecord, Record
from mlsys.grading.regrade import Change, changes_of
from mlsys.grading.runner import device_and_versions
from mlsys.grading.submission import released_lab

_STUDENT = re.compile(r"[\w][\w.@+ -]{0,99}")


@dataclass(frozen=True)
class Batch:
    """A graded class: records by student, how many were graded now, and changes that wait for a yes."""

    lab: Lab
    records: dict[str, Record]
    graded_now: int
    changes: tuple[Change, ...] = ()
    withheld: bool = False


@dataclass(frozen=True)
class Options:
    """How a class is graded.

    Attributes:
        submissions: a folder of `<student>.ipynb`, or one laid out as `[submitted/]<student>/<lab>/<lab>.ipynb`; the
            tree's own `submitted` when None.
        workers: processes that judge side by side.
        student: only this one, or everybody when empty.
        accept_changes: write scores that a regrade of an unchanged submission changes.
    """

    submissions: Path | None = None
    workers: int = os.cpu_count() or 1
    student: str = ""
    accept_changes: bool = False


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
        UserError: unknown lab or student, no submissions, a folder that cannot be written, or a missing package.
    """
    release(root, tree, [name])
    lab = released_lab(tree, name)
    with _one_at_a_time(tree):
        students = _students(tree, name, options)
        course = digest(package_digest(), tree.secret(), *(path.read_bytes() for path in _versions(tree, name)))
        states = {student: _state(tree, name, student, course) for student in students}
        old = {student: Record.read(tree.record(name, student)) for student in students}
        open_ones = [student for student in students if not _is_done(tree, name, student, old[student], states)]
        device = configured_device(tree)
        if open_ones:
            device_and_versions(device)  # before the first submission, for a missing package is no student's fault
        judged = judge_all(
            tree,
            name,
            open_ones,
            workers=min(options.workers, len(open_ones)),
            device=device,
            cpu_limit_s=configured_cpu_limit_s(tree),
        )
        changes: list[Change] = []
        shown = track(judged, f"Grading {name}", total=len(open_ones), console=console, transient=True)
        for result in shown if open_ones else ():
            found = changes_of(old[result.student], result)
            changes += found
            if options.accept_changes or not found:
                _write(tree, lab, result, states[result.student])
        records = {student: Record.read(tree.record(name, student)) for student in students}
        kept = {student: record for student, record in records.items() if record}
        marked = _with_marks(tree, name, kept)
    withheld = bool(changes) and not options.accept_changes
    return Batch(lab, marked, len(open_ones), tuple(changes), withheld)


def _students(tree: CourseTree, lab: str, options: Options) -> list[str]:
    source = options.submissions
    students = tree.students(lab) if source is None else collect(source, tree, lab)
    if not students:
        raise UserError(f"{source or tree.root / 'submitted'} holds no submissions to {lab}: put <student>.ipynb there")
    _check_names(students)
    if options.student and options.student not in students:
        raise UnknownName.of("student", options.student, students)
    return [options.student] if options.student else students


def _is_done(tree: CourseTree, lab: str, student: str, record: Record | None, states: dict[str, str]) -> bool:
    return bool(record and record.state == states[student] and tree.feedback(lab, student).is_file())


def collect(folder: Path, tree: CourseTree, lab: str) -> list[str]:
    """Copy the submissions of `folder` into the tree and return the students' names; older attempts are kept.

    Raises:
        UserError: no such folder, or a name that cannot be a student's.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: name the folder that holds the submissions")
    if (folder / "submitted").is_dir():
        folder = folder / "submitted"
    found = {path.stem: path for path in sorted(folder.glob("*.ipynb"))}
    for path in sorted(folder.glob(f"*/{lab}")):
        notebooks = sorted(path.glob("*.ipynb"))
        # A notebook under another name, such as a copy, counts when it is the only one.
        found[path.parent.name] = notebooks[0] if len(notebooks) == 1 else path / f"{lab}.ipynb"
    _check_names(found)
    for student, source in found.items():
        target = tree.submitted(lab, student)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink() or not source.is_file():
            continue
        if target.is_file() and target.read_bytes() != source.read_bytes():
            kept = tree.root / "attempts" / student / lab / f"{digest(target.read_bytes())}.ipynb"
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, kept)
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            shutil.copyfile(source, target)
    return sorted(found)


def _check_names(students: Iterable[str]) -> None:
    for student in students:
        if not _STUDENT.fullmatch(student):
            raise UserError(f"{student!r} cannot be a student's name: use letters, digits, spaces and . @ + - _ only")


def _versions(tree: CourseTree, lab: str) -> list[Path]:
    return sorted((tree.root / "versions" / lab).glob("*.ipynb"))


def _state(tree: CourseTree, lab: str, student: str, course_state: str) -> str:
    path = tree.submitted(lab, student)
    return digest(course_state, path.read_bytes() if path.is_file() else b"")


def _write(tree: CourseTree, lab: Lab, judged: Judged, state: str) -> None:
    """Enter one judged submission into gradebook, record and feedback."""
    student = judged.student
    tree.record(lab.name, student).unlink(missing_ok=True)  # until the new one is whole, this student is open
    if judged.refused:
        _refuse(tree, lab, student, judged.refused, state if judged.submission else "")
        return
    found_verdicts[lab.name, judged.submission] = judged.questions
    try:
        autograde(tree, lab.name, student)
        generate_feedback(tree, lab.name, student)
    except NbgraderFailed as error:
        # Without a state it is tried again next time: the fault may not be the student's.
        _refuse(tree, lab, student, f"nbgrader could not grade it ({error})", state="")
        return
    finally:
        found_verdicts.pop((lab.name, judged.submission), None)
    record = Record.read(tree.record(lab.name, student))
    if record is None:
        _refuse(tree, lab, student, "nbgrader left no record; look at its log", state="")
        return
    replace(record, state=state).write(tree.record(lab.name, student))


def _refuse(tree: CourseTree, lab: Lab, student: str, reason: str, state: str) -> None:
    enter_refusal(tree, lab.name, student, reason)
    shutil.rmtree(tree.autograded(lab.name, student).parent, ignore_errors=True)
    page = tree.feedback(lab.name, student)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(Page(lab.title, student, refused=reason)), encoding="utf-8")
    record = Record(
        student=student,
        lab=lab.name,
        version=lab.version,
        graded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        state=state,
        refused=reason,
        questions=tuple(
            QuestionRecord(question.name, question.title, question.graded.id, REFUSED, 0.0, question.points, reason)
            for question in lab.questions
        ),
    )
    record.write(tree.record(lab.name, student))


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


@contextmanager
def _one_at_a_time(tree: CourseTree) -> Iterator[None]:
    with (tree.root / "grading.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(f"another grading run works in {tree.root}: wait until it has ended") from error
        yield
