"""Submitted files in a folder: links, devices and names that lead elsewhere are refused."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from mlsys.classroom.intake.reader import MAX_BYTES, Refused
from mlsys.classroom.lms.names import brightspace_readings, moodle_readings
from mlsys.errors import UserError

MAX_FILES = 200_000
"""Files of a whole source, so that its list fits into memory: a thousand students with two hundred files each."""
MAX_STUDENT_FILES = 2_000
"""Files and folders of one student; a student who hands in more is refused, and nobody else is."""
MAX_DEPTH = 8
SUBMITTED = "submitted"
"""The folder of an nbgrader tree that holds the students' folders."""

BAD_NAME = "its name leads out of the folder or holds characters that no file's name should"
LINK = "it is a link or a device, not a file"
NOTHING = "no file was handed in"
TOO_DEEP = f"folders lie deeper in each other than {MAX_DEPTH}"
_DEBRIS = re.compile(r"(^|/)(__MACOSX|\.git|\.ipynb_checkpoints|\.DS_Store|Thumbs\.db|\._[^/]*)(/|$)")
# Control characters, marks that turn the direction of writing, backslashes; names that begin elsewhere or climb.
_BAD_NAME = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\\\\]|^$" r"|^[A-Za-z]:|^/|(^|/)\.\.?(/|$)|//"
)


@dataclass(frozen=True)
class SubmittedFile:
    """A file: its path inside the source, why it is refused if it is, its bytes, and its content."""

    name: str
    refused: str = ""
    size: int = 0
    content: Callable[[], bytes] = field(default=bytes, repr=False, compare=False)

    def read(self) -> bytes:
        """Return the content.

        Raises:
            Refused: the file is refused, too big, or cannot be read.
        """
        if self.refused:
            raise Refused(self.refused)
        return self.content()


def files_in(root: Path, lab: str = "") -> Iterator[SubmittedFile]:
    """Yield the files in a folder and its subfolders; an empty folder is listed as `name/`.

    A student's folder that holds more than `MAX_STUDENT_FILES`, or that cannot be read, is listed as `name/` too,
    with the reason why it is refused.

    Args:
        root: the folder.
        lab: the lab, whose folder is looked at before others that one student has.

    Raises:
        UserError: too many files together, or `root` cannot be read.
    """
    for found, file in enumerate(_shared(root, root, lab, levels=2)):
        if found == MAX_FILES:
            raise UserError(f"{root} holds more than {MAX_FILES} files: name the folder of the submissions only")
        yield file


def too_many_files() -> str:
    """Say why a student with more than `MAX_STUDENT_FILES` is refused."""
    return f"it holds more than {MAX_STUDENT_FILES} files: hand in the notebook only"


def is_debris(name: str) -> bool:
    """Return whether a path is one that file managers and Jupyter leave behind."""
    return bool(_DEBRIS.search(name))


def _shared(folder: Path, root: Path, lab: str, levels: int) -> Iterator[SubmittedFile]:
    """Yield the files in a folder of many students' files; up to `levels` further ones lie in each other."""
    count, folders = 0, list[Path]()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                count += not is_debris(entry.name)
                if not entry.is_dir(follow_symlinks=False):
                    yield _file(Path(entry.path), root)
                elif len(folders) <= MAX_FILES:  # one more, and the source is refused below
                    folders.append(Path(entry.path))
    except OSError as error:
        if folder == root:
            raise UserError(f"{root} cannot be read ({error.strerror}): correct its permissions") from error
        yield _unreadable(folder, root, error)
        return
    for below in folders:
        if moodle_readings(below.name) or brightspace_readings(below.name):
            yield from _of_one([below], root)
        elif levels and (below.name == SUBMITTED or count == 1):
            yield from _shared(below, root, lab, levels - 1)
        else:
            yield from _by_lab(below, root, lab)
    if not count and folder != root:
        yield SubmittedFile(_name(folder, root) + "/", refused=NOTHING)


def _by_lab(folder: Path, root: Path, lab: str) -> Iterator[SubmittedFile]:
    """Yield the files of one student in an nbgrader tree: the lab's may be as many as all others together."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, MAX_STUDENT_FILES + 1))
    except OSError as error:
        yield _unreadable(folder, root, error)
        return
    if not found:
        yield SubmittedFile(_name(folder, root) + "/", refused=NOTHING)
    folders = [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False) and entry.name != ".git"]
    ours = [folder / lab] if (folder / lab).is_dir() and not (folder / lab).is_symlink() else []
    for path in ours:
        yield from _of_one([path], root)
    if len(found) > MAX_STUDENT_FILES:
        yield SubmittedFile(_name(folder, root) + "/", refused=too_many_files())
        return
    yield from (_file(Path(entry.path), root) for entry in found if not entry.is_dir(follow_symlinks=False))
    yield from _of_one([path for path in folders if path not in ours], root)


def _of_one(folders: list[Path], root: Path) -> list[SubmittedFile]:
    """Return what one student has in some folders; no more than the folders themselves if it is too much."""
    found: list[SubmittedFile] = []
    count, left = 0, list(folders)
    while left:
        here = left.pop()
        before = count
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.name == ".git":
                        continue
                    count += 1
                    if count > MAX_STUDENT_FILES:
                        return [
                            SubmittedFile(_name(folder, root) + "/", refused=too_many_files()) for folder in folders
                        ]
                    path = Path(entry.path)
                    if not entry.is_dir(follow_symlinks=False):
                        found.append(_file(path, root))
                    elif len(path.relative_to(root).parts) > MAX_DEPTH:
                        found.append(SubmittedFile(_name(path, root) + "/", refused=TOO_DEEP))
                    else:
                        left.append(path)
        except OSError as error:
            found.append(_unreadable(here, root, error))
            continue
        if count == before:
            found.append(SubmittedFile(_name(here, root) + "/", refused=NOTHING))
    return found


def _unreadable(folder: Path, root: Path, error: OSError) -> SubmittedFile:
    return SubmittedFile(_name(folder, root) + "/", refused=f"it could not be read ({error.strerror})")


def _name(path: Path, root: Path) -> str:
    relative = path.relative_to(root).as_posix()
    return relative if safe_name(relative) else ascii(relative)[1:-1]


def _file(path: Path, root: Path) -> SubmittedFile:
    name = _name(path, root)
    if not safe_name(name):
        return SubmittedFile(name, refused=BAD_NAME)
    try:
        status = path.lstat()
    except OSError as error:
        return SubmittedFile(name, refused=f"it could not be read ({error.strerror})")
    if not stat.S_ISREG(status.st_mode):
        return SubmittedFile(name, refused=LINK)
    size = status.st_size
    return SubmittedFile(name, size=size, content=partial(read_file, path, size))


def safe_name(name: str) -> bool:
    """Return whether a path stays in its folder and can be shown: no `..`, drive, backslash or control character."""
    return not _BAD_NAME.search(name)


def read_file(path: Path, size: int) -> bytes:
    """Return the content of a file that was looked at and had `size` bytes.

    Raises:
        Refused: it is too big, or cannot be read, or is a link by now.
    """
    check_size(size)
    try:
        # A link put there after the look above is not followed.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused(f"the file could not be read ({error.strerror})") from error
    check_size(len(data))
    return data


def check_size(size: int) -> None:
    """Refuse a file bigger than a notebook may be.

    Raises:
        Refused: it is.
    """
    if size > MAX_BYTES:
        raise Refused(f"the file has {size / 1e6:.0f} MB, the limit is {MAX_BYTES / 1e6:.0f} MB: clear its outputs")
