"""Which student of the roster each handed-in file belongs to."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from mlsys.grading.handed_files import HandedFile
from mlsys.grading.identity import find
from mlsys.grading.layouts import Handed, Ignored, place
from mlsys.grading.roster import STUDENT_ID, Roster


@dataclass
class Owners:
    """Handed-in files by student; students that the roster does not know; files that belong to nobody."""

    students: dict[str, list[Handed]] = field(default_factory=dict)
    unknown: list[Ignored] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)


def by_student(files: Iterable[HandedFile], lab: str, roster: Roster | None) -> Owners:
    """Which student handed in which of `files`.

    Args:
        files: all files of a source.
        lab: the lab.
        roster: says who is who; without one, students are called as their files are.
    """
    placed, ignored = place(files, lab)
    result = Owners(ignored=ignored)
    by_key: dict[str, list[Handed]] = {}
    for item in placed:
        by_key.setdefault(item.key, []).append(item)
    for key, items in sorted(by_key.items()):
        match = find(items[0].person, roster.students.values()) if roster else None
        if match and match.student:
            result.students.setdefault(match.student.id, []).extend(items)
        elif not STUDENT_ID.fullmatch(key) or (roster and key in roster.students):
            why = match.reason if match else "use letters, digits, spaces and . @ + - _ only"
            result.ignored += [Ignored(item.file.name, f"{key!r} cannot be a student's id: {why}") for item in items]
        else:
            result.students.setdefault(key, []).extend(items)
            if match:
                result.unknown.append(Ignored(key, match.reason))
    return result
