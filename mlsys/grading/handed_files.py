"""The files of a folder that somebody handed in: links, devices and names that lead elsewhere are refused."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from mlsys.errors import UserError
from mlsys.grading.reader import MAX_BYTES, Refused

MAX_FILES = 20_000
"""An LMS zip of a thousand students with twenty files each."""
MAX_DEPTH = 8

BAD_NAME = "its name leads out of the folder or holds characters that no file's name should"
LINK = "it is a link or a device, not a file"
NOTHING = "no file was handed in"
# Control characters, marks that turn the direction of writing, backslashes; names that begin elsewhere or climb.
_BAD_NAME = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\\\\]|^$" r"|^[A-Za-z]:|^/|(^|/)\.\.?(/|$)|//"
)


@dataclass(frozen=True)
class HandedFile:
    """A file: its path inside the source, its time if that is known, why it is refused if it is, and its content."""

    name: str
    time: datetime | None = None
    refused: str = ""
    content: Callable[[], bytes] = field(default=bytes, repr=False, compare=False)

    def read(self) -> bytes:
        """The content.

        Raises:
            Refused: the file is refused, too big, or cannot be read.
        """
        if self.refused:
            raise Refused(self.refused)
        return self.content()


def files_in(root: Path) -> Iterator[HandedFile]:
    """The files in a folder and its subfolders; an empty folder stands there as `name/`.

    Raises:
        UserError: too many files, or a folder that cannot be read.
    """
    found, unreadable = 0, list[OSError]()
    for folder, subfolders, names in os.walk(root, onerror=unreadable.append):
        here = Path(folder)
        links = [name for name in subfolders if (here / name).is_symlink()]
        subfolders[:] = [name for name in subfolders if name not in links]
        for name in [*names, *links]:
            yield _file(here / name, root)
        found += len(names)
        if found > MAX_FILES:
            raise UserError(f"{root} holds more than {MAX_FILES} files: name the folder of the submissions only")
        if len(here.relative_to(root).parts) == MAX_DEPTH and subfolders:
            subfolders.clear()
            yield HandedFile(_name(here, root) + "/", refused=f"folders lie deeper in each other than {MAX_DEPTH}")
        elif not names and not subfolders and here != root:
            yield HandedFile(_name(here, root) + "/", refused=NOTHING)
    for error in unreadable:
        if Path(error.filename) == root:
            raise UserError(f"{root} cannot be read ({error.strerror}): mend its permissions") from error
        yield HandedFile(_name(Path(error.filename), root) + "/", refused=f"it could not be read ({error.strerror})")


def _name(path: Path, root: Path) -> str:
    relative = path.relative_to(root).as_posix()
    return relative if safe_name(relative) else ascii(relative)[1:-1]


def _file(path: Path, root: Path) -> HandedFile:
    name = _name(path, root)
    if not safe_name(name):
        return HandedFile(name, refused=BAD_NAME)
    try:
        status = path.lstat()
    except OSError as error:
        return HandedFile(name, refused=f"it could not be read ({error.strerror})")
    if not stat.S_ISREG(status.st_mode):
        return HandedFile(name, refused=LINK)
    return HandedFile(name, utc_time(status.st_mtime), content=partial(_read_file, path, status.st_size))


def utc_time(seconds: float) -> datetime | None:
    """The time that a file system counts from 1970 in seconds, or None for one beyond the calendar."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def safe_name(name: str) -> bool:
    """Whether a path stays inside its folder and can be shown: no `..`, no drive, no backslash or control character."""
    return not _BAD_NAME.search(name)


def _read_file(path: Path, size: int) -> bytes:
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
