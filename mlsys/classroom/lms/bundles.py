"""Bundles of feedback pages, in the form in which a platform gives each student the right one.

- Canvas: a zip for *Upload submissions* in the gradebook. It knows whose a file is by the first two numbers in the
  name, the user's and the uploaded file's, so a page is called like the file that it is about
  (`infer_comment_context_from_filename` of https://github.com/instructure/canvas-lms).
- Moodle: a zip for *Upload multiple feedback files in a zip*, with the folders of the download
  (`mod/assign/feedback/file/importziplib.php` of https://github.com/moodle/moodle).
- Mail: a zip with the pages and a list of names and addresses for a mail merge.
"""

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mlsys.classroom.lms.csv_file import guarded
from mlsys.classroom.lms.names import canvas_readings, moodle_readings
from mlsys.classroom.students.history import Attempt
from mlsys.classroom.students.identity import same_name

CANVAS, MOODLE, MAIL = "canvas", "moodle", "mail"
KINDS = (CANVAS, MOODLE, MAIL)


@dataclass(frozen=True)
class Page:
    """A student's feedback page: whose it is, with the address if it is known, and the attempts, oldest first.

    Attributes:
        student: the student's id.
        name: the student's name.
        address: where mail goes; empty if it is not known.
        digest: of the attempt that the page is about.
        attempts: all attempts.
        html: the page.
        canvas_id: the student's number in Canvas, if it is known.
    """

    student: str
    name: str
    address: str
    digest: str
    attempts: Sequence[Attempt]
    html: bytes
    canvas_id: str = ""

    @property
    def attempt(self) -> Attempt | None:
        """The attempt that the page is about; the newest one if none counts, and the page says why."""
        newest = self.attempts[-1] if self.attempts else None
        return next((one for one in reversed(self.attempts) if one.digest == self.digest), newest)

    @property
    def is_about_own_file(self) -> bool:
        """Whether the student is known to have handed the attempt in; for a group, another member may have."""
        attempt = self.attempt
        if attempt is None or attempt.origin != MOODLE:
            return attempt is not None and attempt.canvas_id == self.canvas_id != ""
        readings = [reading for part in attempt.name.split("/") for reading in moodle_readings(part)]
        return any(same_name(reading.person.name, self.name) for reading in readings)


@dataclass(frozen=True)
class Bundle:
    """A zip, how many pages are in it, and students whose pages are not, with the reasons."""

    data: bytes
    count: int
    left_out: tuple[tuple[str, str], ...]


def bundle(pages: Iterable[Page], lab: str, kind: str) -> Bundle:
    """Return the pages as a zip of one kind.

    Args:
        pages: of the students.
        lab: the lab, which names the pages.
        kind: one of `KINDS`.
    """
    files: dict[str, bytes] = {}
    left_out, rows = [], []
    claims: dict[str, list[Page]] = {}
    for page in pages:
        place, reason = _PLACES[kind](page, lab)
        if place:
            claims.setdefault(place, []).append(page)
        else:
            left_out.append((page.student, reason))
    for place, members in claims.items():
        first = next((page for page in members if page.is_about_own_file), members[0])
        files[place] = first.html
        rows.append((first.address, first.name, first.student, place))
        reason = f"the group handed in one file, so one page goes back: that of {first.student}, with the same points"
        left_out += [(page.student, reason) for page in members if page is not first]
    count = len(files)
    if kind == MAIL:
        files["mail.csv"] = _list(rows).encode("utf-8-sig")  # Excel reads UTF-8 by this mark only
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return Bundle(buffer.getvalue(), count, tuple(left_out))


def _canvas_place(page: Page, lab: str) -> tuple[str, str]:
    attempt = page.attempt
    if attempt is None or attempt.origin != CANVAS:
        return "", "what counts did not come from Canvas's download"
    name = PurePosixPath(attempt.name).name
    readings = canvas_readings(name)
    numbers = [word for word in name.split("_") if word.isdecimal()][:2]
    wanted = [str(attempt.canvas_id), str(attempt.number)]
    if not readings or numbers != wanted:
        return "", f"Canvas would not know whose {name} is: attach the page in SpeedGrader"
    return str(PurePosixPath(name).with_suffix(".html")), ""


def _moodle_place(page: Page, lab: str) -> tuple[str, str]:
    attempt = page.attempt
    parts = attempt.name.split("/") if attempt and attempt.origin == MOODLE else []
    for part in parts:
        for reading in moodle_readings(part):
            folder = part[: len(part) - len(reading.title)].rstrip("_")
            return f"{folder}_/{lab}.html", ""
    return "", "what counts did not come from Moodle's download"


def _mail_place(page: Page, lab: str) -> tuple[str, str]:
    if not page.address:
        return (
            "",
            "no address is known: the ids or SIS login IDs of the roster, which --roster names, must be addresses",
        )
    return f"{page.student}.html", ""


_PLACES = {CANVAS: _canvas_place, MOODLE: _moodle_place, MAIL: _mail_place}


def _list(rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(("address", "name", "student", "file"))
    writer.writerows(map(guarded, row) for row in rows)
    return out.getvalue()
