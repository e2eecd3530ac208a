"""The files of a zip, with everything refused that no honest submission needs.

Nothing is unpacked to disk: names are only compared, contents only read, each up to the size that a notebook may have.
"""

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from mlsys.classroom.intake.files import (
    BAD_NAME,
    LINK,
    MAX_DEPTH,
    MAX_FILES,
    NOTHING,
    TOO_DEEP,
    SubmittedFile,
    check_size,
    files_in,
    safe_name,
)
from mlsys.classroom.intake.reader import MAX_BYTES, Refused
from mlsys.errors import InvalidValue, UserError

MAX_TOTAL_BYTES = 4_000_000_000
"""What the notebooks of one zip may come to: a thousand of 4 MB."""
MAX_RATIO = 100
RATIO_COUNTS_FROM_BYTES = 5_000_000
"""A notebook this big that was packed by more than `MAX_RATIO` holds one thing repeated."""
_UTF_8 = 0x800
"""Flag of an entry whose name is UTF-8."""
ENTRY_BYTES = 246
"""What a file takes in a zip's directory: 46 bytes, and up to 200 for its name and extra fields."""
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    ValueError,  # and UnicodeDecodeError
    RuntimeError,  # and NotImplementedError
    ArithmeticError,
    LookupError,
    MemoryError,
)
"""What `zipfile` raises on bytes that are no zip, or one of a kind that it does not read."""


class BadArchive(InvalidValue):
    """A zip that is not read at all; the message says why and what to do."""


@contextmanager
def open_source(source: Path, lab: str = "") -> Iterator[list[SubmittedFile]]:
    """Yield the files of a folder or a zip, in order of their names; an empty folder is listed as `name/`.

    Args:
        source: the folder or zip.
        lab: the lab, whose folder is looked at before others that one student has.

    Raises:
        UserError: it is neither, or beyond the limits.
    """
    if source.is_dir():
        yield sorted(files_in(source, lab), key=lambda file: file.name)
    elif source.is_file() and _is_zip(source):
        with opened(source) as archive:
            yield sorted(members(source, archive), key=lambda file: file.name)
    else:
        what = "is no zip and no folder" if source.exists() else "does not exist"
        raise UserError(f"{source} {what}: name a folder of <student>.ipynb, an nbgrader tree, or the LMS's zip")


def check_total(source: Path, sizes: Iterable[int]) -> None:
    """Refuse a zip whose notebooks are too big together.

    Raises:
        BadArchive: they are.
    """
    if source.is_file() and sum(sizes) > MAX_TOTAL_BYTES:
        limit = f"{MAX_TOTAL_BYTES / 1e9:g} GB"
        raise BadArchive(f"{source} holds notebooks of more than {limit}: grade it in several parts")


def _is_zip(path: Path) -> bool:
    try:
        return zipfile.is_zipfile(path)
    except DAMAGED as error:
        raise BadArchive(f"{path} is damaged ({_said(error)}): download it again") from error


def opened(path: Path) -> zipfile.ZipFile:
    """Open the zip at `path`, and close it afterwards.

    Raises:
        BadArchive: it is damaged, or lists more files than the limit.
    """
    try:
        count = _count(path)
        if count > MAX_FILES:
            raise BadArchive(f"{path} holds {count} files, the limit is {MAX_FILES}: download the submissions again")
        return zipfile.ZipFile(path)
    except BadArchive:
        raise
    except DAMAGED as error:
        raise BadArchive(f"{path} is damaged ({_said(error)}): download it again") from error


def _said(error: Exception) -> str:
    # A damaged name or number in the message may be long, and may hold what a terminal obeys.
    return ascii(str(error) or type(error).__name__)[1:-1][:100]


def _count(path: Path) -> int:
    """Return about how many entries a zip has, if they are too many: from its directory's size, before that is read."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 66_000))
        tail = file.read()
    end = tail.rfind(b"PK\x05\x06")
    (length,) = struct.unpack("<L", tail[end + 12 : end + 16])
    large = tail.rfind(b"PK\x06\x06")
    if large >= 0:
        (length,) = struct.unpack("<Q", tail[large + 40 : large + 48])
    return int(length) // ENTRY_BYTES if length > MAX_FILES * ENTRY_BYTES else 0


def members(path: Path, archive: zipfile.ZipFile) -> Iterator[SubmittedFile]:
    """Return the files of an open zip; those that no honest submission needs are refused.

    Raises:
        BadArchive: too many files, or entries that overlap.
    """
    entries = archive.infolist()
    if len(entries) > MAX_FILES:
        raise BadArchive(f"{path} holds {len(entries)} files, the limit is {MAX_FILES}: download the submissions again")
    if sum(member.compress_size for member in entries) > path.stat().st_size:
        raise BadArchive(f"{path} holds files that overlap, as no honest zip does: download the submissions again")
    # Some programs begin every name with the folder itself.
    names = [_decoded(member, member.filename).removeprefix("./") for member in entries]
    folders = {parent for name in names if not _too_deep(name) for parent in _folders(name)}
    for member, name in zip(entries, names, strict=True):
        if member.orig_filename == "./":
            continue
        original = _decoded(member, member.orig_filename)
        if not safe_name(original.removeprefix("./")):
            yield SubmittedFile(ascii(original)[1:-1], refused=BAD_NAME)
        elif _too_deep(name):
            yield SubmittedFile(name, refused=TOO_DEEP)
        elif not name.endswith("/"):
            reason = _fault(member)
            # What is refused is not read, and so counts for nothing.
            size = 0 if reason else member.file_size
            yield SubmittedFile(name, reason, size, partial(_extract, archive, member))
        elif name not in folders:
            yield SubmittedFile(name, refused=NOTHING)


def _decoded(member: zipfile.ZipInfo, name: str) -> str:
    """Return a name of an entry, decoded.

    macOS and Info-ZIP write UTF-8 without the flag that says so, and `zipfile` then takes the bytes for code page 437.
    Bytes that happen to be UTF-8 and were meant otherwise are very rare.
    """
    if member.flag_bits & _UTF_8:
        return name
    try:
        return name.encode("cp437").decode()
    except UnicodeError:
        return name


def _too_deep(name: str) -> bool:
    return name.rstrip("/").count("/") > MAX_DEPTH


def _folders(name: str) -> list[str]:
    """Return the folders that hold a file or a folder, each with a slash at its end."""
    return [name[: index + 1] for index, letter in enumerate(name[:-1]) if letter == "/"]


def _fault(member: zipfile.ZipInfo) -> str:
    kind = member.external_attr >> 16
    if stat.S_IFMT(kind) not in (0, stat.S_IFREG):
        return LINK
    if member.flag_bits & 1:
        return "it is encrypted: hand it in without a password"
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "it is packed in a way that is not read here: use a plain zip"
    try:
        check_size(member.file_size)
    except Refused as reason:
        return str(reason)
    if member.file_size > max(RATIO_COUNTS_FROM_BYTES, MAX_RATIO * member.compress_size):
        return f"it unpacks to more than {MAX_RATIO} times its size: clear the notebook's outputs and hand it in again"
    return ""


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    try:
        with archive.open(member) as file:
            # No more comes than the size that was checked, and a size that is a lie breaks the check sum.
            return file.read(MAX_BYTES)
    except DAMAGED as error:
        raise Refused(f"it is damaged inside the zip ({_said(error)}): hand it in again") from error
