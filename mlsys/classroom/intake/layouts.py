"""Layouts of submissions: an nbgrader tree, a flat folder, a platform's download. Each says whose a file is.

    ann/tiling/tiling.ipynb                                        nbgrader
    ann.ipynb                                                      flat
    bakerann_LATE_12345_67890_tiling-1.ipynb                       Canvas
    Ann Baker_4711_assignsubmission_file_/tiling.ipynb             Moodle
    Ann Baker_4711_assignsubmission_file_tiling.ipynb              Moodle, without folders
    Tiling_ab1_attempt_2026-11-20-22-58-03_tiling.ipynb            Blackboard
    12-345 - Ann Baker - Nov 20, 2026 1058 PM/tiling.ipynb         Brightspace
    submission_901/tiling.ipynb, and submission_metadata.yml       Gradescope
    tiling-annsgithub/tiling.ipynb                                 GitHub Classroom, where the roster has GitHub logins

One folder that holds everything may lie above, and then nbgrader's `submitted`. What comes next, the outermost name,
says whose a file is; the student chose whatever is deeper, so it says nothing. Where a name can be read in several
ways, the file is nobody's and is listed as in doubt.

The times of files are those of a download or a copy, so they do not say when somebody handed in. That comes from
nbgrader's `timestamp.txt`, from a name or list of the platform, or from what it exports
(`mlsys.classroom.lms.hand_ins`). `mlsys.classroom.lms.names` takes names apart.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from mlsys.classroom.intake.files import NOTHING, SUBMITTED, SubmittedFile, is_debris, safe_name
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.lms.gradescope import GRADESCOPES_LIST, BadGradescope, gradescope_list
from mlsys.classroom.lms.names import (
    Reading,
    blackboard_readings,
    brightspace_readings,
    canvas_readings,
    moodle_readings,
    the_one,
)
from mlsys.classroom.students.deadlines import BadTime, parse_time
from mlsys.classroom.students.identity import Person, find
from mlsys.classroom.students.roster import Student

NOTEBOOK = ".ipynb"
STAMP = "timestamp.txt"
"""Where nbgrader writes when a submission came in; only the one beside the notebook is nbgrader's."""

_OF_PLATFORMS = ("index.html",)
"""What Brightspace adds to its download."""
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
    files: Iterable[SubmittedFile],
    lab: str,
    students: Collection[Student] = (),
    *,
    below: bool = True,
    zone: ZoneInfo | None = None,
) -> tuple[list[Upload], list[Ignored]]:
    """Split `files` into uploads and others.

    Args:
        files: all files of the source.
        lab: the lab, which names folders in an nbgrader tree.
        students: those of the roster, who decide between several readings of a name.
        below: whether the submissions may lie in one folder that holds everything, or in `submitted`.
        zone: of the clock whose times are in names of files.

    Raises:
        BadGradescope: Gradescope's list cannot be read.
    """
    ignored, named = [], []
    for file in files:
        if safe_name(file.name):
            named.append((unicodedata.normalize("NFC", file.name), file))
        else:
            ignored.append(Ignored(file.name, file.refused))
    real = [name for name, _ in named if not is_debris(name)]
    layout = _Layout(lab, students, "", below, zone, _gradescope(named))
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
        elif name.rpartition("/")[2] not in (GRADESCOPES_LIST, *_OF_PLATFORMS):
            ignored.append(Ignored(file.name, (file.refused if name.endswith("/") else "") or layout.astray(name)))
    return _timed(handed, silent, lab), ignored


@dataclass(frozen=True)
class _Layout:
    """How the files of a source lie: below one folder that holds everything, below `submitted`, or neither."""

    lab: str
    students: Collection[Student]
    shared: str
    below: bool
    zone: ZoneInfo | None = None
    gradescope: Mapping[str, Sequence[Reading]] = field(default_factory=dict)

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

    def astray(self, name: str) -> str:
        """Say why a file is nobody's, with the cure for one or a folder that is called like a student of the roster."""
        top, below, _ = name.removeprefix(f"{self.shared}/" if self.shared else "").partition("/")
        called = top if below else top.rpartition(".")[0]
        student = find(Person(student=called, name=called), self.students).student if called else None
        if student is None:
            return "it is not placed like a submission: its name says no student"
        if not below:
            return f"it is called like {student.id}, but is no notebook: put {student.id}{NOTEBOOK} in its place"
        right = f"{top}/{self.lab}/"
        return (
            f"it is in a folder of {student.id}, but not in {right}: move it there, or call it {student.id}{NOTEBOOK}"
        )

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
        self._check_one_platform(top, is_file=is_file)
        if readings := moodle_readings(top):
            found = _moodle(file, self._the_one(readings), deeper, top if is_file else "")
        elif top in self.gradescope and not is_file:
            found = self._by_platform(file, self._submitter(top), deeper, "gradescope", top)
        elif readings := brightspace_readings(top):
            found = self._by_platform(file, self._the_one(readings), deeper, "brightspace", "")
        elif is_file and (readings := blackboard_readings(top)):
            found = self._by_platform(file, self._login(readings), deeper, "blackboard", "")
        elif not is_file and not self._is_student(top) and (student := self._on_github(top)):
            person = Person(student=student.id, name=student.name)
            found = Upload(file, person, student.id, "/".join(deeper), "github", top)
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

    def _by_platform(self, file: SubmittedFile, reading: Reading, deeper: list[str], origin: str, place: str) -> Upload:
        clock = reading.clock
        if clock is not None and clock.tzinfo is None:
            clock = clock.replace(tzinfo=self.zone) if self.zone else None
        title = "/".join([*filter(None, [reading.title]), *deeper])
        return Upload(
            file,
            reading.person,
            reading.key,
            title,
            origin,
            place or f"{origin} {reading.key}",
            reading.number,
            time=clock,
        )

    def _check_one_platform(self, top: str, *, is_file: bool) -> None:
        """Make sure that no title that a student chose makes one platform's name look like another's."""
        possible = {"Moodle": moodle_readings(top), "Brightspace": brightspace_readings(top)}
        if is_file:
            possible |= {"Blackboard": blackboard_readings(top), "Canvas": canvas_readings(top)}
        found = [platform for platform, readings in possible.items() if readings]
        if len(found) > 1:
            raise InDoubt(
                f"{' or '.join(found)} may have made this name: see there whose it is, and call it <student>.ipynb"
            )

    def _submitter(self, folder: str) -> Reading:
        found = self.gradescope[folder]
        if len(found) != 1:
            names = " and ".join(reading.person.name or reading.key for reading in found) or "nobody"
            raise InDoubt(f"Gradescope says that {names} handed it in: put a copy for each as <student>.ipynb")
        return found[0]

    def _login(self, readings: list[Reading]) -> Reading:
        fitting = [reading for reading in readings if find(reading.person, self.students).student]
        if len(fitting) > 1:
            several = " or ".join(reading.key for reading in fitting[:4])
            raise InDoubt(f"it may be of {several}: see in Blackboard whose it is, and call it <student>.ipynb")
        return (fitting or readings)[0]

    def _on_github(self, folder: str) -> Student | None:
        """Return the one student whose repository of an assignment is called like this."""
        name = folder.casefold()
        found = [student for end, student in self._repositories if name.endswith(end) and len(name) > len(end)]
        # Where ann-b and b are logins, tiling-ann-b may be of either: of b, if the assignment is tiling-ann.
        if len(found) > 1:
            several = " or ".join(student.id for student in found[:4])
            raise InDoubt(f"it may be the repository of {several}: call it as their ids are, <student>/{self.lab}/")
        return found[0] if found else None

    def _the_one(self, readings: list[Reading]) -> Reading:
        reading = the_one(readings, self.students)
        if reading is None:
            several = " or ".join(map(str, readings[:3])) + (" or others" if len(readings) > 3 else "")
            raise InDoubt(f"it may be {several}: see in the LMS whose it is, and call it <student>.ipynb")
        return reading

    def _is_student(self, name: str) -> bool:
        return name in self._ids

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(student.id for student in self.students)

    @cached_property
    def _repositories(self) -> list[tuple[str, Student]]:
        """How the names of students' repositories end."""
        return [(f"-{one.github_login.casefold()}", one) for one in self.students if one.github_login]


def _gradescope(named: Iterable[tuple[str, SubmittedFile]]) -> dict[str, list[Reading]]:
    """Return what Gradescope's list says, if there is one at the top or in the one folder that holds everything."""
    for name, file in named:
        if name.rpartition("/")[2] == GRADESCOPES_LIST and name.count("/") <= 1:
            try:
                return gradescope_list(name, file.read())
            except Refused as reason:
                raise BadGradescope(f"{name}: {reason}") from reason
    return {}


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
    # What Moodle or Brightspace calls a student's folder is never one for all.
    of_one = moodle_readings(first) or brightspace_readings(first)
    return first if all("/" in name for name in names) and not of_one else ""


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
