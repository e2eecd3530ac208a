"""Submissions read and made canonical in the helper process: what takes too long or too much memory is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from nbformat import NotebookNode

from mlsys.classroom.intake.canonical import canonical_notebook
from mlsys.classroom.intake.reader import OfAnotherLab, Refused, notebook_from, read_submission
from mlsys.classroom.processes.limited import LimitExceeded, imported_first, limited
from mlsys.course.digest import digest
from mlsys.course.term import present_term, tree_of
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

imported_first(__name__)

MAX_READ_S = 30.0
"""Seconds until a submission must have been read and made canonical; the worst of the largest size takes 10."""
MAX_KEPT_BYTES = 200_000_000
"""Most bytes of submissions whose canonical notebooks are kept until they are judged; others are read again."""

_T = TypeVar("_T")


class ReadingFailed(Refused):
    """A submission that may be gradable although this run cannot make it canonical; the next run tries again."""


@dataclass(frozen=True)
class Canonical:
    """A submission made canonical, or the reason why it cannot be.

    Attributes:
        notebook: the canonical notebook.
        refused: why there is none.
        unreadable: whether the file is no notebook at all, of whichever lab.
        other_lab: whether it is a notebook of another lab.
        failed: whether the fault may be ours: a limit was met, or an error that nobody foresaw.
    """

    notebook: NotebookNode | None = None
    refused: str = ""
    unreadable: bool = False
    other_lab: bool = False
    failed: bool = False


class LabReader:
    """Reads the submissions of one run to one lab, each of them once."""

    def __init__(self, tree: CourseTree, lab: str) -> None:
        self._tree = CourseTree(tree.root.absolute())
        self._lab = lab
        self._term = present_term(tree)
        self._kept: dict[str, Canonical] = {}
        self._kept_bytes = 0

    def check(self, data: bytes) -> None:
        """Read what was handed in now, and keep what is made of it until it is asked for.

        Raises:
            OfAnotherLab: `data` is a notebook of another lab.
            Refused: `data` is no notebook, or takes too much time or memory to read.
        """
        found = self._read(data, self._term)
        if found.failed:
            check_notebook(data)  # is the fault in reading it, or in what comes after?
        if self._kept_bytes + len(data) <= MAX_KEPT_BYTES:
            self._kept_bytes += len(data)
            self._kept[digest(data)] = found
        if found.other_lab:
            raise OfAnotherLab(found.refused)
        if found.unreadable:
            raise Refused(found.refused)

    def canonical(self, data: bytes, term: str | None = None) -> NotebookNode:
        """Return the canonical notebook of a submission, with repairs and the digest of its file in its metadata.

        Args:
            data: the submission.
            term: name of the term in which it came in; the present one when None.

        Raises:
            Refused: `data` is no notebook of the lab.
            ReadingFailed: it takes too much time or memory to read, or meets an error that nobody foresaw.
        """
        term = self._term if term is None else term
        kept = self._kept.pop(digest(data), None) if term == self._term else None
        found = kept or self._read(data, term)
        if found.notebook is None:
            raise (ReadingFailed if found.failed else Refused)(found.refused)
        return found.notebook

    def _read(self, data: bytes, term: str) -> Canonical:
        try:
            return _refused_beyond(_read, tree_of(self._tree, self._lab, term), self._lab, data)
        except Refused as reason:
            return Canonical(refused=str(reason), failed=True)
        except UserError:
            raise  # the helper process does not start
        except Exception as error:  # no submission ends the run
            text = f"it could not be made canonical ({type(error).__name__}: {error}); look at it by hand"
            return Canonical(refused=text, failed=True)


def check_notebook(data: bytes) -> None:
    """Read a submission to see whether it is a notebook.

    Raises:
        Refused: it is none, or takes too much time or memory to read.
    """
    _refused_beyond(notebook_from, data)


def read_with_limits(path: Path) -> NotebookNode:
    """Return the notebook in `path`, cleaned.

    Raises:
        Refused: it cannot be graded, or takes too much time or memory to read.
    """
    return _refused_beyond(read_submission, path.absolute())


def canonical_with_limits(
    tree: CourseTree, lab: str, submitted: NotebookNode, submission: str, term: str
) -> NotebookNode:
    """Return the canonical notebook of a submission that has been read.

    Args:
        tree: the course.
        lab: the lab.
        submitted: the notebook, as `read_with_limits` gives it.
        submission: digest of its file.
        term: name of the term in which it came in.

    Raises:
        Refused: it is not a notebook of this lab, or takes too much time or memory.
    """
    tree = tree_of(CourseTree(tree.root.absolute()), lab, term)
    return _refused_beyond(_canonical, tree, lab, submitted, submission)


def _read(tree: CourseTree, lab: str, data: bytes) -> Canonical:
    try:
        submitted = notebook_from(data)
    except Refused as reason:
        return Canonical(refused=str(reason), unreadable=True)
    try:
        return Canonical(_canonical(tree, lab, submitted, digest(data)))
    except Refused as reason:
        return Canonical(refused=str(reason), other_lab=isinstance(reason, OfAnotherLab))


def _canonical(tree: CourseTree, lab: str, submitted: NotebookNode, submission: str) -> NotebookNode:
    canonical = canonical_notebook(tree, lab, submitted)
    canonical.metadata["mlsys"]["repairs"] += submitted.metadata["mlsys"].get("left_out", [])
    canonical.metadata["mlsys"]["submitted_digest"] = submission
    return canonical


def _refused_beyond(work: Callable[..., _T], *arguments: object) -> _T:
    try:
        return limited(work, *arguments, time_s=MAX_READ_S)
    except LimitExceeded as reason:
        raise Refused(
            f"the notebook could not be read ({reason}): clear its outputs, remove pasted data from its cells, and "
            "hand it in again"
        ) from reason
