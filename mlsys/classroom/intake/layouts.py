"""Layouts of submissions: an nbgrader tree, a flat folder, Canvas's or Moodle's download. Each says whose a file is.

    ann/tiling/tiling.ipynb                                        nbgrader
    ann.ipynb                                                      flat
    bakerann_LATE_12345_67890_tiling-1.ipynb                       Canvas
    Ann Baker_4711_assignsubmission_file_/tiling.ipynb             Moodle
    Ann Baker_4711_assignsubmission_file_tiling.ipynb              Moodle, without folders

One folder that holds everything may lie above, and then nbgrader's `submitted`. What comes next, the outermost name,
says whose a file is; the student chose whatever is deeper, so it says nothing. Where a name can be read in several
ways, the file is nobody's and is listed as in doubt.

The times of files are those of a download or a copy, so they do not say when somebody handed in. That comes from
nbgrader's `timestamp.txt`, or from what the LMS exports (`mlsys.classroom.students.hand_ins`). `lms_names` takes names
of Canvas and Moodle apart.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from mlsys.classroom.intake.files import NOTHING, SUBMITTED, SubmittedFile, is_debris, safe_name
from mlsys.classroom.intake.lms_names import Reading, canvas_readings, moodle_readings, the_one
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.students.deadlines import BadTime, parse_time
from mlsys.classroom.students.identity import Person, find
from mlsys.classroom.students.roster import Student

NOTEBOOK = ".ipynb"
STAMP = "timestamp.txt"
"""Where nbgrader writes when a submission came in; only the one beside the notebook is nbgrader's."""

_BROWSERS_COPY = re.compile(r" ?\(\d+\)$")
_NO_STUDENTS = (SUBMITTED, "source", "release", "autograded", "feedback")
"""Folders of an nbgrader tree, which are students only where the roster says so."""


@dataclass(frozen=True)
class Upload:
    """A file that somebody handed in: who, under what name, and what the LMS says about it.

    Attributes:
        file: the file.
        person: who handed it in.
        key: what the student is called where the roster knows nobody like that.
        title: the file's name as the student chose it, with the student's own folders.
        origin: the kind of source.
        place: holds together what one person handed in: the person's folder or file, or the LMS's number of the person.
        number: the LMS's number of the upload, which grows.
        late: whether the LMS says that it is late; None where it says nothing.
        time: when it was handed in, if something says so.
        doubt: why its time is not known.
    """

    file: SubmittedFile
    person: Person
    key: str
    title: str
    origin: str
    place: str = ""
    number: int | None = None
    late: bool | None = None
    time: datetime | None = None
    doubt: str = ""

    @property
    def is_notebook(self) -> bool:
        """Whether it has the ending of a notebook."""
        return self.title.lower().endswith(NOTEBOOK)


@dataclass(frozen=True)
class Ignored:
    """A file that is nobody's submission, and why."""

    name: str
    reason: str


class InDoubt(Exception):
    """A name that can be read in several ways; the message says which, and what to do."""


def place(
    files: Iterable[SubmittedFile], lab: str, students: Collection[Student] = (), *, below: bool = True
) -> tuple[list[Upload], list[Ignored]]:
    """Split `files` into uploads and others.

    Args:
        files: all files of the source.
        lab: the lab, which names folders in an nbgrader tree.
        students: those of the roster, who decide between several readings of a name.
        below: whether the submissions may lie in one folder that holds everything, or in `submitted`.
    """
    ignored, named = [], []
    for file in files:
        if safe_name(file.name):
            named.append((unicodedata.normalize("NFC", file.name), file))
        else:
            ignored.append(Ignored(file.name, file.refused))
    real = [name for name, _ in named if not is_debris(name)]
    layout = _Layout(lab, students, "", below)
    shared = _shared_folder(real) if below else ""
    if shared and not layout.passes(shared):
        inner = replace(layout, shared=shared)
        possible = [one for one in (layout, inner) if any(one.fits(name) for name in real)]
        if len(possible) > 1:
            possible = [one for one in possible if any(one.knows(name) for name in real)] or possible
        if len(possible) > 1:
            reason = f"in doubt: {shared!r} may be a student's folder or hold those of all: move out what is in it"
            return [], [*ignored, Ignored(f"{shared}/", reason)]
        layout = possible[0] if possible else inner
    handed: list[Upload] = []
    silent: list[Upload] = []
    for name, file in named:
        try:
            found = layout.upload_of(file, name)
        except InDoubt as doubt:
            ignored.append(Ignored(file.name, f"in doubt: {doubt}"))
            continue
        if is_debris(name) or (found and found.origin == "nbgrader" and found.title == STAMP):
            silent += [found] if found and not is_debris(found.place) else []
        elif found:
            handed.append(found)
        else:
            nobody = "it is not placed like a submission: its name says no student"
            ignored.append(Ignored(file.name, (file.refused if name.endswith("/") else "") or nobody))
    return _timed(handed, silent, lab), ignored


@dataclass(frozen=True)
class _Layout:
    """How the files of a source lie: below one folder that holds everything, below `submitted`, or neither."""

    lab: str
    students: Collection[Student]
    shared: str
    below: bool

    def passes(self, name: str) -> bool:
        """Return whether a folder of this name is nbgrader's for all submissions."""
        return name == SUBMITTED and not self._is_student(name)

    def fits(self, name: str) -> bool:
        """Return whether a file in such a place is somebody's, or in doubt."""
        try:
            return self.upload_of(SubmittedFile(name), name) is not None
        except InDoubt:
            return True

    def knows(self, name: str) -> bool:
        """Return whether a file in such a place is that of a student of the roster."""
        try:
            found = self.upload_of(SubmittedFile(name), name)
        except InDoubt:
            return False
        return found is not None and find(found.person, self.students).student is not None

    def upload_of(self, file: SubmittedFile, name: str) -> Upload | None:
        """Return whose file it is by the outermost name alone.

        Raises:
            InDoubt: that name can be read in several ways.
        """
        parts = name.rstrip("/").split("/")
        skipped = 1 if self.shared and parts[0] == self.shared else 0
        skipped += self.below and self.passes("".join(parts[skipped : skipped + 1]))
        top, *deeper = parts[skipped:] or [""]
        is_file = not deeper and not name.endswith("/")
        found = None
        if readings := moodle_readings(top):
            found = _moodle(file, self._the_one(readings), deeper, top if is_file else "")
        elif deeper[:1] == [self.lab] and (deeper[1:] or name.endswith("/")):
            # The folder as it is spelled on disk: two spellings of one id are two folders.
            found = self._nbgrader(file, top, deeper[1:], "/".join(file.name.split("/")[: skipped + 2]))
        elif is_file and (readings := canvas_readings(top)):
            found = _canvas(file, self._the_one(readings))
        elif is_file and top.lower().endswith(NOTEBOOK):
            found = self._flat(file, top)
        if found is None or not name.endswith("/"):
            return found
        # A folder that is empty, or refused as a whole.
        return replace(found, title=f"{found.title}/" if found.title else f"{self.lab}{NOTEBOOK}")

    def _nbgrader(self, file: SubmittedFile, student: str, deeper: list[str], folder: str) -> Upload | None:
        odd = student in _NO_STUDENTS or (bool(self.shared) and student == self.lab)
        if odd and not self._is_student(student):
            return None
        return Upload(file, Person(student=student, name=student), student, "/".join(deeper), "nbgrader", folder)

    def _flat(self, file: SubmittedFile, name: str) -> Upload:
        stem = _BROWSERS_COPY.sub("", name[: -len(NOTEBOOK)])
        if self.shared and stem == self.lab and not self._is_student(stem):
            raise InDoubt(f"it may be of a student {self.shared!r} or of one called {stem!r}: call it <student>.ipynb")
        return Upload(file, Person(student=stem, name=stem), stem, name, "flat", file.name)

    def _the_one(self, readings: list[Reading]) -> Reading:
        reading = the_one(readings, self.students)
        if reading is None:
            several = " or ".join(map(str, readings[:3])) + (" or others" if len(readings) > 3 else "")
            raise InDoubt(f"it may be {several}: see in the LMS whose it is, and call it <student>.ipynb")
        return reading

    def _is_student(self, name: str) -> bool:
        return any(student.id == name for student in self.students)


def _moodle(file: SubmittedFile, reading: Reading, deeper: list[str], top: str) -> Upload:
    title = "/".join([*filter(None, [reading.title]), *deeper]) or top
    title = f"online text {title}" if reading.is_text and not reading.title else title
    who = reading.person
    return Upload(file, who, reading.key, title, "moodle", f"{who.name} {reading.key}")


def _canvas(file: SubmittedFile, reading: Reading) -> Upload:
    user = reading.person.canvas_id
    where = f"Canvas's user {user}" if user else reading.key
    handed = Upload(file, reading.person, reading.key, reading.title, "canvas", where)
    return replace(handed, number=reading.number, late=reading.late)


def _shared_folder(names: Collection[str]) -> str:
    """Return the one folder that holds all files, where a zip of a folder was made rather than of its contents."""
    firsts = {name.partition("/")[0] for name in names}
    first = firsts.pop() if len(firsts) == 1 else ""
    # What Moodle calls a student's folder is never one for all.
    return first if all("/" in name for name in names) and not moodle_readings(first) else ""


def _timed(handed: list[Upload], silent: list[Upload], lab: str) -> list[Upload]:
    """Return the files with the times that nbgrader wrote, and with those who handed in nothing but debris."""
    stamps: dict[str, list[SubmittedFile]] = {}
    for item in silent:
        if item.title == STAMP:
            stamps.setdefault(item.place, []).append(item.file)
    times = {place: stamped_time(files) for place, files in stamps.items()}
    result = []
    for item in handed:
        if item.place in times:
            time, doubt = times[item.place]
            item = replace(item, time=time, doubt=doubt)
        result.append(item)
    places = {item.place for item in handed}
    for item in silent:
        if item.place not in places:
            places.add(item.place)
            nothing = SubmittedFile(f"{item.file.name.rpartition('/')[0]}/", refused=NOTHING)
            result.append(replace(item, file=nothing, title=f"{lab}{NOTEBOOK}"))
    return result


def stamped_time(stamps: list[SubmittedFile]) -> tuple[datetime | None, str]:
    """Return the time in nbgrader's `timestamp.txt`, or why it is not known."""
    try:
        if len(stamps) > 1:
            raise Refused("it is there twice")
        return parse_time(stamps[0].read()[:100].decode("ascii", "replace").strip()), ""
    except (BadTime, Refused) as error:
        # Without a time, rather than with that of the file: whoever needs it is told.
        return None, f"{STAMP}: {error}"
