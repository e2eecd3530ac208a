"""Roster matching: which student each submitted file belongs to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mlsys.classroom.intake.files import MAX_STUDENT_FILES, SubmittedFile, too_many_files
from mlsys.classroom.intake.layouts import NOTEBOOK, Ignored, Upload, place
from mlsys.classroom.lms.hand_ins import HandIn, HandIns
from mlsys.classroom.students.identity import find
from mlsys.classroom.students.roster import Roster, as_a_disk_sees, id_fault

MAX_STUDENT_BYTES = 100_000_000
"""What the notebooks of one student may come to: five of the largest size."""


@dataclass
class Matched:
    """Uploads by student; students that the roster does not know; files that belong to nobody."""

    students: dict[str, list[Upload]] = field(default_factory=dict)
    unknown: list[Ignored] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)


@dataclass(frozen=True)
class _Claim:
    """What one person handed in, the student that it is, and why the roster does not know that student."""

    student: str
    items: list[Upload]
    unknown: str = ""

    def __str__(self) -> str:
        more = len(self.items) - 1
        return self.items[0].file.name + (f" and {more} more" if more else "")


def by_student(
    files: Iterable[SubmittedFile], lab: str, roster: Roster | None, hand_ins: HandIns, *, below: bool = True
) -> Matched:
    """Find which student handed in which of `files`.

    A student who hands in too much is refused alone. Where two persons of the source would be one student, neither is.

    Args:
        files: all files of a source.
        lab: the lab.
        roster: says who is who; without one, students are called as their files are.
        hand_ins: what the LMS says of persons and times.
        below: whether the submissions may lie in one folder that holds everything, or in `submitted`.
    """
    students = roster.students if roster else {}
    placed, ignored = place(files, lab, students.values(), below=below, zone=roster.zone if roster else None)
    result = Matched(ignored=ignored)
    by_place: dict[str, list[Upload]] = {}
    for found in placed:
        item = replace(found, person=hand_ins.identified(found.person))
        by_place.setdefault(item.place, []).append(item)
    claims: dict[str, list[_Claim]] = {}
    on_disk = {as_a_disk_sees(student): student for student in students}
    for _, items in sorted(by_place.items()):
        claim = _claim(items, roster, on_disk)
        if isinstance(claim, Ignored):
            result.ignored.append(claim)
        else:
            claims.setdefault(as_a_disk_sees(claim.student), []).append(claim)
    own = hand_ins.by_student(students.values())
    for same in claims.values():
        for claim in same:
            if len(same) > 1:
                others = ", ".join(str(other) for other in same[:4] if other is not claim)
                reason = f"in doubt: it would be {claim.student}'s, as would {others}: keep what is right"
                result.ignored.append(Ignored(str(claim), reason))
            else:
                items = _within_limits(claim.items, lab)
                result.students[claim.student] = _with_times(items, hand_ins, own.get(claim.student, []))
                if claim.unknown:
                    result.unknown.append(Ignored(claim.student, claim.unknown))
    return result


def _claim(items: list[Upload], roster: Roster | None, on_disk: dict[str, str]) -> _Claim | Ignored:
    """Return the student whom one person's files belong to, or why that is nobody."""
    key, name = items[0].key, str(_Claim("", items))
    people = {item.person for item in items}
    matches = [find(person, roster.students.values()) for person in people] if roster else []
    found = {match.student.id if match.student else "" for match in matches}
    if len(found) > 1 or (not any(found) and any(item.key != key for item in items)):
        keys = ", ".join(sorted({item.key for item in items})[:4])
        return Ignored(name, f"in doubt: {items[0].place} has several names here ({keys}): keep the right one's files")
    match = matches[0] if matches else None
    if match and match.student:
        return _Claim(match.student.id, items)
    if match and match.several:
        files = " or ".join(f"{student}.ipynb" for student in match.several[:4])
        cure = f"call it {files}, or give the roster their ids in the LMS"
        return Ignored(name, f"in doubt: whose is it? {match.reason}: {cure}")
    fault = match.reason if roster and key in roster.students and match else id_fault(key)
    if fault:
        return Ignored(name, f"{key!r} cannot be a student's id: {fault}")
    if other := on_disk.get(as_a_disk_sees(key)):
        return Ignored(name, f"in doubt: {key!r} is nobody's id: call it {other!r} if that is who it is")
    return _Claim(key, items, match.reason if match else "")


def _within_limits(items: Sequence[Upload], lab: str) -> list[Upload]:
    size = sum(item.file.size for item in items if item.is_notebook)
    if len(items) > MAX_STUDENT_FILES:
        reason = too_many_files()
    elif size > MAX_STUDENT_BYTES:
        limit = f"{MAX_STUDENT_BYTES / 1e6:.0f} MB"
        reason = f"its notebooks have {size / 1e6:.0f} MB, the limit is {limit}: hand in one, without outputs"
    else:
        return list(items)
    folder = SubmittedFile(items[0].file.name, refused=reason)
    return [replace(items[0], file=folder, title=f"{lab}{NOTEBOOK}")]


def _with_times(items: Sequence[Upload], hand_ins: HandIns, own: Sequence[HandIn]) -> list[Upload]:
    """Return the uploads with the times that the LMS says, in place of those that came with them."""
    if not hand_ins.entries:
        return list(items)
    result = []
    for item in items:
        if time := hand_ins.time(item.person, item.number, own):
            result.append(replace(item, time=time, doubt=""))
        elif item.time:
            result.append(item)
        else:
            result.append(replace(item, doubt=item.doubt or "the LMS's list of times has none for it"))
    return result
