"""The files of a lab that a worker needs to judge it: as released now, in older versions, and in earlier terms.

They hold hidden tests. A worker keeps them in a folder that only its user can read and no sandbox shows.
"""

import io
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mlsys.course.digest import digest
from mlsys.course.term import archives
from mlsys.course.tree import CourseTree


@dataclass(frozen=True)
class LabFiles:
    """A lab's files as one value, known by its digest."""

    digest: str
    archive: bytes


def pack(tree: CourseTree, lab: str) -> LabFiles:
    """Return the files with which submissions to a lab are judged."""
    buffer = io.BytesIO()
    parts: list[str | bytes] = []
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _paths(tree, lab):
            name, data = str(path.relative_to(tree.root)), path.read_bytes()
            archive.writestr(name, data)
            parts += [name, data]
    return LabFiles(digest(*parts), buffer.getvalue())


def unpack(files: LabFiles, folder: Path) -> CourseTree:
    """Put a lab's files below a folder, unless they are there, and return them as a course."""
    tree = CourseTree(folder / files.digest)
    if not tree.root.is_dir():
        draft = folder / f"{files.digest}.part"
        shutil.rmtree(draft, ignore_errors=True)
        with zipfile.ZipFile(io.BytesIO(files.archive)) as archive:
            archive.extractall(draft)
        draft.rename(tree.root)
    return tree


def _paths(tree: CourseTree, lab: str) -> Iterator[Path]:
    for one in (tree, *archives(tree, lab)):
        yield one.source(lab)
        yield from one.versions(lab)
