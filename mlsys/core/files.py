"""Files that no reader, and no run after a kill, sees half, and folders that cannot be written."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from mlsys.errors import UserError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file of which no reader, and no run after a kill, sees half.

    Raises:
        UserError: the disk is full, or the folder cannot be written.
    """
    draft = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        make_room(draft)
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): make room or correct its permissions") from error


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner can read: whole and then put there, so that a kill or a full disk leaves none.

    The draft has the number of the process in its name: two that write at once do not write into each other's.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def writing_to(folder: Path, option: str) -> Iterator[None]:
    """Turn what writing to a folder raises into one message; other errors, as for a file elsewhere, stay as they are.

    Args:
        folder: where files are written.
        option: the option of the command that names another folder, such as `--out`.

    Raises:
        UserError: the disk is full, or the folder cannot be made or written.
    """
    try:
        yield
    except OSError as error:
        if not _is_about(folder, error):
            raise
        raise UserError(f"{folder} cannot be written ({error.strerror}): name another folder with {option}") from error


def _is_about(folder: Path, error: OSError) -> bool:
    """Return whether an error names the folder, what is in it or what it is in, or is that of a full disk."""
    if error.filename is None:  # as when a file is open already
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    named = Path(str(error.filename))
    return named.is_relative_to(folder) or folder.is_relative_to(named)


def make_room(path: Path) -> None:
    """Take away what is no file where a file is to be written: in `submitted/`, students may have put it there.

    A folder is kept, under the next name that is free.
    """
    try:
        kind = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(kind):
        names = (path.with_name(f"{path.name}.folder-{number}") for number in count(1))
        path.rename(next(name for name in names if not name.exists()))
    elif not stat.S_ISREG(kind):
        path.unlink()
