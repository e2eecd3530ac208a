"""Whose file is it? The ways in which submissions come: an nbgrader tree, a flat folder, Canvas's or Moodle's download.

    ann/tiling/tiling.ipynb                                        nbgrader, with or without submitted/ above
    ann.ipynb                                                      flat
    bakerann_LATE_12345_67890_tiling-1.ipynb                       Canvas: name, late?, user, file, its name
    Ann Baker_4711_assignsubmission_file_/tiling.ipynb             Moodle: name, number in this assignment
    Ann Baker_4711_assignsubmission_file_tiling.ipynb              Moodle, without folders

Canvas's form is that of `lib/content_zipper.rb` of https://github.com/instructure/canvas-lms. Both download only the
newest hand-in, and the times in their zips are those of the download: they are not taken for the student's.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mlsys.grading.deadlines import BadTime, parse_time
from mlsys.grading.handed_files import HandedFile, safe_name
from mlsys.grading.identity import Person
from mlsys.grading.reader import Refused

NOTEBOOK = ".ipynb"

_CANVAS = re.compile(
    r"(?:(?P<hidden>late_)?(?P<anonymous>anon_[^\W_]+)|(?P<name>\w+?)(?P<late>_late)?_(?P<user>\d+))"
    r"_(?P<file>\d+)_(?P<title>[^/]+)",
    re.I,
)
_MOODLE = re.compile(r"(?P<name>[^/]+)_(?P<number>\d+)_assignsubmission_(?P<kind>file|onlinetext)_?(?P<title>[^/]*)")
_DEBRIS = re.compile(r"(^|/)(__MACOSX|\.ipynb_checkpoints|\.DS_Store|Thumbs\.db|\._[^/]*)(/|$)")
_COPY = re.compile(r"([ -]?\(\d+\)|-\d+)$")


@dataclass(frozen=True)
class Handed:
    """A file that somebody handed in: who, under what name, and what the LMS says about it.

    `number` grows with every upload; `late` is None where the LMS does not say; `doubt` is why its time is not known;
    `key` holds together what one person handed in, before it is known which student that is.
    """

    file: HandedFile
    person: Person
    key: str
    title: str
    origin: str
    number: int | None = None
    late: bool | None = None
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


def place(files: Iterable[HandedFile], lab: str) -> tuple[list[Handed], list[Ignored]]:
    """The handed-in files among `files`, and the others.

    Args:
        files: all files of the source.
        lab: the lab, which names folders in an nbgrader tree.
    """
    files = list(files)
    shared = _shared_folder(files)
    handed, ignored = [], []
    times = {}
    for file in files:
        name = unicodedata.normalize("NFC", file.name)
        if not safe_name(file.name):
            ignored.append(Ignored(file.name, file.refused))
        elif _DEBRIS.search(name):
            continue
        elif name.endswith(f"/{lab}/timestamp.txt"):
            times[name.rpartition("/")[0]] = file
        elif found := _owner(file, name, lab, shared):
            handed.append(found)
        else:
            ignored.append(Ignored(file.name, "it is not placed like a submission: its name says no student"))
    return [_timed(item, times) for item in handed], ignored


def _owner(file: HandedFile, name: str, lab: str, shared: str) -> Handed | None:
    path = PurePosixPath(name)
    for part in path.parts:
        if match := _MOODLE.fullmatch(part):
            who = match["name"].replace("_", " ").strip()
            person = Person(name=who)
            title = match["title"] or (path.name if match["kind"] == "file" else f"online text {path.name}")
            return Handed(replace(file, time=None), person, f"{_slug(who)}_{match['number']}", title, "moodle")
    is_folder = name.endswith("/")
    folder = path if is_folder else path.parent
    if folder.name == lab and folder.parent.name:
        student = folder.parent.name
        title = f"{lab}{NOTEBOOK}" if is_folder else path.name
        return Handed(file, Person(student=student, name=student), student, title, "nbgrader")
    if is_folder or str(path.parent) not in (".", shared):
        return None
    if match := _CANVAS.fullmatch(path.name):
        late, number = bool(match["late"] or match["hidden"]), int(match["file"])
        key = match["anonymous"] or f"{match['name']}_{match['user']}"
        person = Person(name=match["name"] or "", canvas_id=match["user"] or "")
        return Handed(replace(file, time=None), person, key, match["title"], "canvas", number, late)
    if path.suffix.lower() == NOTEBOOK:
        person = Person(student=path.stem, name=path.stem, sis_login_id=path.stem)
        return Handed(file, person, path.stem, path.name, "flat")
    return None


def _shared_folder(files: Iterable[HandedFile]) -> str:
    """The one folder that holds all files, where a zip of a folder was made rather than of its contents."""
    firsts = {file.name.partition("/")[0] for file in files if not _DEBRIS.search(file.name)}
    return firsts.pop() if len(firsts) == 1 else "."


def _slug(name: str) -> str:
    return "-".join(re.findall(r"\w+", name))


def _timed(handed: Handed, times: dict[str, HandedFile]) -> Handed:
    """With the time that nbgrader wrote beside the notebook."""
    stamp = times.get(unicodedata.normalize("NFC", handed.file.name).rpartition("/")[0])
    if stamp is None or handed.origin != "nbgrader":
        return handed
    try:
        time = parse_time(stamp.read()[:100].decode("ascii", "replace").strip())
    except (BadTime, Refused) as error:
        # Without a time, rather than with that of the file: whoever needs it is told.
        return replace(handed, file=replace(handed.file, time=None), doubt=f"timestamp.txt: {error}")
    return replace(handed, file=replace(handed.file, time=time))


def notebook_of(handed: list[Handed], lab: str) -> list[Handed]:
    """Those of one person's files that are attempts at the lab, oldest first.

    Files called like the lab (`tiling.ipynb`, `tiling-1.ipynb`, `tiling (2).ipynb`) count before all others; otherwise
    the only notebook does, whatever its name.

    Raises:
        Refused: no notebook, or several of other names.
    """
    notebooks = [item for item in handed if item.is_notebook]
    if not notebooks:
        names = ", ".join(sorted(item.title for item in handed))
        raise Refused(f"no notebook was handed in, only {names}: hand in {lab}{NOTEBOOK}")
    named = [item for item in notebooks if _COPY.sub("", item.title[: -len(NOTEBOOK)]).lower() == lab.lower()]
    chosen = named or notebooks
    if len(chosen) > 1 and (not named or any(item.number is None for item in named)):
        exact = [item for item in named if item.title == f"{lab}{NOTEBOOK}"]
        if len(exact) == 1:
            return exact
        names = ", ".join(sorted(item.title for item in chosen))
        raise Refused(f"several notebooks were handed in ({names}): hand in one, called {lab}{NOTEBOOK}")
    return sorted(chosen, key=lambda item: item.number or 0)
