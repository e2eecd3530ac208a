"""A pass on a GPU elsewhere: what waits for one goes there in a file, and what was found comes back in a file.

The first file is a small course: the submissions that wait, their records, the released tests and the secrets from
which hidden inputs are drawn. On the machine with the GPU it is graded as any course. The second file holds the
records. When it is merged, only questions that still wait here change, so people may mark and grade here in the
meantime.
"""

import io
import json
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from rich.console import Console

from mlsys.classroom.batch.task import Judged
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.quote_answers import read_unquoted
from mlsys.classroom.gradebook.record_results import record_result
from mlsys.classroom.intake.archive import DAMAGED
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.collect import put
from mlsys.classroom.plan import tests_digest
from mlsys.classroom.regrade import with_gpu_results
from mlsys.classroom.store.backup import back_up
from mlsys.classroom.store.codec import Unreadable, decode
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.attempt_policy import Choice
from mlsys.classroom.students.history import Attempt, History
from mlsys.course.term import archives
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError
from mlsys.measure.device import torch_sees_gpu

_ABOUT = "gpu-pass.json"
_COURSE = "course"
_ON_A_GPU = "\nc.RunQuestions.device = 'gpu'\nc.CourseDirectory.pop('db_url', None)\n"


class BadPass(InvalidValue):
    """A file that is no pass, or not one of this lab or step; the message says what to do."""


@dataclass(frozen=True)
class About:
    """What a file of a pass says of itself: the lab, the digest of tests and package, whether it was graded."""

    lab: str
    tests: str
    graded: bool = False


@dataclass(frozen=True)
class Merged:
    """Whose waiting points are filled in, and whose are not, with the reasons."""

    filled: tuple[str, ...]
    left: tuple[tuple[str, str], ...]


def pack(tree: CourseTree, lab: str) -> tuple[bytes, int]:
    """Return the file for the machine with the GPU, and how many submissions are in it.

    Raises:
        UserError: nothing waits for a GPU.
    """
    store = store_of(tree)
    waiting = [record for record in store.records(lab).values() if record and record.waits_for_gpu]
    waiting = [record for record in waiting if record == _members(store, record)[0]]
    if not waiting:
        raise UserError(f"no submission to {lab} in {tree.root} waits for a GPU")
    with TemporaryDirectory() as folder:
        small = CourseTree(Path(folder) / _COURSE)
        small.create()
        other = store_of(small)
        shutil.copy(tree.root / "secret.txt", small.root)
        shutil.copytree(tree.root / "versions" / lab, small.root / "versions" / lab)
        if tree.terms.is_file():
            shutil.copy(tree.terms, small.terms)
        for archive in archives(tree, lab):
            for part in ("source", "release", "versions"):
                place = (archive.root / part / lab).relative_to(tree.root)
                shutil.copytree(tree.root / place, small.root / place)
        if tree.config.is_file():
            shutil.copy(tree.config, small.config)
        with small.config.open("a", encoding="utf-8") as config:
            config.write(_ON_A_GPU)
        if run := store.run(lab):
            other.save_run(lab, replace(run, finished=True, arguments={}))
        for record in waiting:
            student, digest = record.student, record.submission
            kept = [one for one in store.history(lab, student).attempts if one.digest == digest]
            attempt = kept[-1] if kept else Attempt(digest, f"{lab}.ipynb", "submitted")
            other.save_content(lab, student, digest, store.content(lab, student, digest))
            other.save_history(lab, student, History((attempt,)))
            other.save_record(record)
            put(small, other, lab, student, Choice(attempt))
        about = About(lab, tests_digest(tree, store, lab))
        return _zipped(small.root, about), len(waiting)


def grade_pack(root: Path, path: Path, options: Options, console: Console) -> tuple[bytes, int]:
    """Grade what is in a file on this machine's GPU, and return the file to bring back with the count of submissions.

    Args:
        root: the course repository, at the same state as where the file was packed.
        path: the file.
        options: how to grade: workers and sandbox.
        console: where progress is shown.

    Raises:
        UserError: no such file, another state of the repository, no GPU, or what `grade_class` raises.
    """
    with _unpacked(path, graded=False) as (tree, about):
        store = store_of(tree)
        _check_tests(tree, store, about)
        if not torch_sees_gpu():
            raise UserError(f"no GPU here that torch can use: take {path} to one that has one")
        batch = grade_class(root, tree, about.lab, replace(options, accept_changes=True), console)
        _check_tests(tree, store, about)  # the lab of this repository is released by now
        if all(record.waits_for_gpu for record in batch.results.values()):
            raise UserError("every submission still waits for a GPU: this machine has none that can be used")
        return _zipped(tree.root, replace(about, graded=True), only="records"), len(batch.results)


def merge(tree: CourseTree, lab: str, path: Path) -> Merged:
    """Fill in the points that wait here from a file that was graded elsewhere.

    Raises:
        UserError: no such file, or one of another lab, or of other tests than the course has now.
    """
    store = store_of(tree)
    filled, left = [], []
    with _unpacked(path, graded=True) as (elsewhere, about), store.lock():
        if about.lab != lab:
            raise BadPass(f"{path} is of lab {about.lab!r}, not of {lab!r}: name the right one")
        _check_tests(tree, store, about)
        back_up(tree, lab)
        released = released_lab(tree, lab)
        for found in sorted(elsewhere.records(lab).glob("*.json")):
            try:
                new = decode(found.read_bytes(), Record)
            except Unreadable as error:
                raise BadPass(f"{path} is damaged ({error}): bring it over again") from error
            old = store.record(lab, new.student)
            if reason := _obstacle(old, new):
                left.append((new.student, reason))
                continue
            assert old is not None
            for member in _members(store, old):
                judged = with_gpu_results(member, Judged.recorded(new))
                judged = replace(
                    judged,
                    student=member.student,
                    notebook=read_unquoted(tree.autograded(lab, member.student)),
                    handed_in=member.handed_in,
                )
                record_result(tree, store, released, judged, member.state)
                filled.append(member.student)
    return Merged(tuple(filled), tuple(left))


def _members(store: Store, record: Record) -> list[Record]:
    """Return the records of a group's members whose points wait too: a group's work goes over once."""
    if not record.handed_in.group:
        return [record]
    key = record.handed_in.group, record.submission, record.run
    found = (one for one in store.records(record.lab).values() if one and one.waits_for_gpu)
    return [one for one in found if (one.handed_in.group, one.submission, one.run) == key]


def _obstacle(old: Record | None, new: Record) -> str:
    """Return why what was found elsewhere does not belong to the record here; empty if it does."""
    if old is None or old.submission != new.submission:
        return "another submission counts by now: pack again"
    if new.refused or new.waits_for_gpu:
        return f"it was not graded there: {new.refused or 'it still waits for a GPU'}"
    if not old.waits_for_gpu:
        return "nothing waits here any more"
    if (old.run, old.seed) != (new.run, new.seed):
        return "it was graded again here, with other random inputs: pack again"
    return ""


def _check_tests(tree: CourseTree, store: Store, about: About) -> None:
    if tests_digest(tree, store, about.lab) != about.tests:
        raise BadPass(
            f"the tests of {about.lab} or the package differ from those with which the file was packed: check out the "
            "same commit of the repository on both machines, or pack again"
        )


def _zipped(folder: Path, about: About, only: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_ABOUT, json.dumps(asdict(about)))
        for path in sorted((folder / only).rglob("*")):
            if path.is_file():
                archive.write(path, f"{_COURSE}/{path.relative_to(folder)}")
    return buffer.getvalue()


@contextmanager
def _unpacked(path: Path, *, graded: bool) -> Iterator[tuple[CourseTree, About]]:
    """Yield the course in a file of a pass, in a folder that goes afterwards.

    Raises:
        BadPass: it is none, or one of the other step.
    """
    with TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                about = msgspec.json.decode(archive.read(_ABOUT), type=About)
                archive.extractall(folder)
        except FileNotFoundError as error:
            raise BadPass(f"{path} does not exist: name the file of the pass") from error
        except (*DAMAGED, msgspec.DecodeError) as error:
            raise BadPass(f"{path} is no file of `mlsys gpu-pass`, or damaged: bring it over again") from error
        if about.graded != graded:
            step = (
                "was graded already: merge it" if about.graded else "was not graded yet: use --grade where the GPU is"
            )
            raise BadPass(f"{path} {step}")
        yield CourseTree(Path(folder) / _COURSE), about
