"""A submitted file, read and made canonical in the helper process: what takes too long is refused by name."""

from collections.abc import Callable
from pathlib import Path

from nbformat import NotebookNode

from mlsys.classroom.intake.canonical import canonical_notebook
from mlsys.classroom.intake.reader import Refused, read_submission
from mlsys.classroom.processes.limited import LimitExceeded, imported_first, limited
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree

imported_first(__name__)

READ_S = 30.0
"""Seconds until a file must have been read; the worst of the largest size takes 10."""


def read_with_limits(path: Path) -> NotebookNode:
    """The notebook in `path`, cleaned.

    Raises:
        Refused: it cannot be graded, or takes too much time or memory to read.
    """
    return _refused_beyond(read_submission, path.absolute())


def canonical_with_limits(
    tree: CourseTree, lab: str, student: str, submitted: NotebookNode | None = None
) -> NotebookNode:
    """The canonical notebook of a submission, with repairs and the digest of its file in its metadata.

    Args:
        tree: the course.
        lab: the lab.
        student: whose submission it is.
        submitted: the notebook, if it has been read already.

    Raises:
        Refused: it is not a notebook of this lab, or takes too much time or memory to read.
    """
    return _refused_beyond(_canonical, CourseTree(tree.root.absolute()), lab, student, submitted)


def _canonical(tree: CourseTree, lab: str, student: str, submitted: NotebookNode | None) -> NotebookNode:
    path = tree.submitted(lab, student)
    submitted = submitted or read_submission(path)
    canonical = canonical_notebook(tree, lab, submitted)
    canonical.metadata["mlsys"]["repairs"] += submitted.metadata["mlsys"].get("left_out", [])
    canonical.metadata["mlsys"]["submitted_digest"] = digest(path.read_bytes())
    return canonical


def _refused_beyond(work: Callable[..., NotebookNode], *arguments: object) -> NotebookNode:
    try:
        return limited(work, *arguments, time_s=READ_S)
    except LimitExceeded as reason:
        raise Refused(
            f"the notebook could not be read ({reason}): clear its outputs, remove pasted data from its cells, and "
            "hand it in again"
        ) from reason
