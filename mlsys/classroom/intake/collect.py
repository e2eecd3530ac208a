"""Take in what students handed in, from wherever it comes, and put the attempt that counts where it is graded.

Every attempt is kept, and every file and student of either side is accounted for: graded, refused with the reason,
unknown to the roster, or missing.
"""

import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mlsys.classroom.intake.archive import check_total, open_source
from mlsys.classroom.intake.files import NOTHING, SUBMITTED, SubmittedFile, read_file
from mlsys.classroom.intake.groups import Group, groups_of, share
from mlsys.classroom.intake.layouts import STAMP, Ignored, Upload, stamped_time
from mlsys.classroom.intake.notebook_choice import left_out, notebook_of
from mlsys.classroom.intake.reader import OfAnotherLab, Refused
from mlsys.classroom.intake.reading import check_notebook
from mlsys.classroom.intake.roster_matching import Matched, by_student
from mlsys.classroom.lms.hand_ins import HandIns
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.attempt_policy import POLICIES, Choice, candidates
from mlsys.classroom.students.deadlines import BadTime, plausible
from mlsys.classroom.students.history import Attempt, History
from mlsys.classroom.students.ledger import Ledger
from mlsys.classroom.students.roster import Roster
from mlsys.core.files import make_room, write_atomically
from mlsys.course.digest import digest
from mlsys.course.term import present_term
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@dataclass(frozen=True)
class Collected:
    """What came in.

    Attributes:
        choices: for each student who handed in, what has to be graded: one choice, or several under "best". One
            alone is in the tree's `submitted/` already.
        histories: all their attempts.
        unknown: students that the roster does not have, and why; they are graded under the name of their file.
        ignored: files that belong to nobody, and why.
        doubtful: attempts whose time is not known, and why.
        beside: notebooks that do not count beside the one that does.
        missing: students of the roster who handed in nothing here.
        before: the attempts before these came in.
        ruled: students for whom late days cost points.
        groups: by student, the group that handed in once; its members have the same attempts.
    """

    choices: Mapping[str, tuple[Choice, ...]]
    histories: Mapping[str, History]
    unknown: tuple[Ignored, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    doubtful: tuple[Ignored, ...] = ()
    beside: tuple[Ignored, ...] = ()
    missing: tuple[str, ...] = ()
    before: Mapping[str, History] = field(default_factory=dict, compare=False)
    groups: Mapping[str, Group] = field(default_factory=dict)
    ruled: frozenset[str] = frozenset()

    @property
    def students(self) -> list[str]:
        """Return who handed in, in alphabetical order."""
        return sorted(self.choices)

    @property
    def refused(self) -> dict[str, str]:
        """Return whose submission cannot be graded, and why."""
        return {student: choices[0].reason for student, choices in self.choices.items() if choices[0].reason}

    def digests(self, student: str) -> tuple[str, ...]:
        """Return the digests of a student's attempts that may count, each once."""
        attempts = (choice.attempt for choice in self.choices[student])
        return tuple(dict.fromkeys(attempt.digest for attempt in attempts if attempt))

    def members(self, student: str) -> tuple[str, ...]:
        """Return who hands in together with a student, the student included."""
        return self.groups[student].members if student in self.groups else (student,)


def collect(
    source: Path | None,
    tree: CourseTree,
    lab: str,
    roster: Roster | None = None,
    *,
    store: Store | None = None,
    policy: str = "newest",
    hand_ins: HandIns | None = None,
    now: datetime | None = None,
    check: Callable[[bytes], None] = check_notebook,
) -> Collected:
    """Keep every attempt of `source`, and put each student's attempt that counts into the tree, if that is known.

    Collecting again, also after a kill, changes nothing: an attempt met again is the same attempt.

    Args:
        source: an nbgrader tree, a folder of `<student>.ipynb`, or an LMS download, as a folder or zip (`layouts` lists
            the names); None for what is in the tree's own `submitted/`.
        tree: the nbgrader tree.
        lab: the lab.
        roster: gives the students' ids, due times and late days.
        store: where attempts are kept; the files of the tree when None.
        policy: one of `POLICIES`.
        hand_ins: what the LMS says of times.
        now: the present, with time zone; times after it are in doubt.
        check: reads what was handed in now, and raises `Refused` for what is no notebook.

    Raises:
        UserError: no such source, a zip beyond the limits, an unknown policy, a policy that needs due times which the
            roster does not have, a source more than half of which is another lab's, or a folder that cannot be
            written.
    """
    candidates((), policy)
    store, term = store or store_of(tree), present_term(tree)
    with ExitStack() as stack:
        if source is not None:
            files = stack.enter_context(open_source(source, lab))
        elif tree.submissions.is_dir():
            files = stack.enter_context(open_source(tree.submissions, lab))
            # Not those of other labs. What a student calls a folder of her own does not matter.
            files = [file for file in files if _is_of(lab, file)]
        else:
            files = []
        handed = by_student(files, lab, roster, hand_ins or HandIns(), below=source is not None)
        if source is not None:
            every = (item.file.size for items in handed.students.values() for item in items if item.is_notebook)
            check_total(source, every)
        _check_policy(policy, handed, roster, lab)
        arrived: dict[str, _Arrived] = {}
        for student, items in handed.students.items():
            intake = _Intake(store, lab, student, check, term)
            history = store.history(lab, student)
            if source is not None:
                history = intake.with_earlier(history, tree.submitted(lab, student))
            arrived[student] = _Arrived(intake, history, intake.attempts(items, history, now or datetime.now(UTC)))
        if source is not None:
            _check_lab(source, lab, arrived.values())
        histories, doubtful = {}, []
        for student, (intake, history, attempts) in arrived.items():
            for attempt, doubt in attempts:
                if doubt:
                    doubtful.append(Ignored(attempt.name, doubt))
                if source is not None or not _was_put_there(attempt, history):
                    history = intake.with_attempt(history, attempt)
            histories[student] = history
        before = {student: one.history for student, one in arrived.items()}
        groups = [group for group in groups_of(roster, lab) if any(member in histories for member in group.members)]
        for group in groups:
            before |= {member: store.history(lab, member) for member in group.members if member not in before}
            had = {member: before[member] for member in group.members}
            now_has = {member: histories[member] for member in group.members if member in histories}
            history, doubts = share(store, lab, group, had, now_has)
            histories |= dict.fromkeys(group.members, history)
            doubtful += doubts
    choices: dict[str, tuple[Choice, ...]] = {}
    ruled = set()
    ledger = Ledger(roster, partial(counted_time, store)) if roster else None
    for student, history in histories.items():
        rule = ledger.rule(student, lab) if ledger and roster and student in roster.students else None
        if rule and rule.percent:
            ruled.add(student)
        choices[student] = tuple(candidates(history.attempts, policy, rule))
        if len(choices[student]) == 1:  # else the best of them, once they are judged
            put(tree, store, lab, student, choices[student][0])
    missing = [student for student in roster.students if student not in choices] if roster else []
    return Collected(
        choices,
        histories,
        tuple(handed.unknown),
        tuple(handed.ignored),
        tuple(doubtful),
        tuple(note for one in arrived.values() for note in one.intake.beside),
        tuple(sorted(missing)),
        before,
        {member: group for group in groups for member in group.members},
        frozenset(ruled),
    )


def take_back(collected: Collected, tree: CourseTree, store: Store, lab: str, student: str, digest: str) -> None:
    """Forget what came in of a student now, and put the attempt with this digest back where it is graded."""
    history = collected.before[student]
    store.save_history(lab, student, history)
    kept = [attempt for attempt in history.attempts if attempt.digest == digest]
    if kept:
        put(tree, store, lab, student, Choice(kept[-1]))


def _is_of(lab: str, file: SubmittedFile) -> bool:
    """Return whether a file of `submitted/` is one of the lab's, or a student's folder that cannot be read."""
    second = file.name.split("/")[1:2]
    return second == [lab] or (second == [""] and file.refused != NOTHING)


def put(tree: CourseTree, store: Store, lab: str, student: str, choice: Choice) -> None:
    """Put the attempt that counts where nbgrader looks for it; where none does, leave nothing of an earlier one."""
    target, attempt = tree.submitted(lab, student), choice.attempt
    stamp = target.with_name(STAMP)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The folder in the tree may be what the student handed in.
    make_room(target)
    make_room(stamp)
    if attempt is None or not attempt.digest:
        target.unlink(missing_ok=True)
        stamp.unlink(missing_ok=True)
        return
    data = store.content(lab, student, attempt.digest)
    if not target.is_file() or target.is_symlink() or target.read_bytes() != data:
        write_atomically(target, data)
    if attempt.time is not None:
        # nbgrader reads this file, and takes it for UTC.
        write_atomically(stamp, f"{attempt.time.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC\n".encode())
    else:
        stamp.unlink(missing_ok=True)


def _was_put_there(attempt: Attempt, history: History) -> bool:
    """Return whether what is in the tree is what `put` left: an attempt that is known, or nothing."""
    nothing = attempt.name.endswith("/")
    return bool(history.attempts) if nothing else attempt.digest in {one.digest for one in history.attempts}


def _check_lab(source: Path, lab: str, arrived: Iterable["_Arrived"]) -> None:
    """Refuse a source that is mostly another lab's: the wrong file was named, and nothing may come of it.

    Raises:
        UserError: more than half of what came in are notebooks of other labs.
    """
    attempts = [attempt for one in arrived for attempt, _ in one.attempts]
    others = [attempt for one in arrived for attempt, _ in one.attempts if attempt.digest in one.intake.other_lab]
    if 2 * len(others) > len(attempts):
        raise UserError(
            f"{len(others)} of the {len(attempts)} notebooks in {source} are not of lab {lab!r} ({others[0].name}: "
            f"{others[0].refused}). Nothing was changed: name the file of this lab, or the lab of this file"
        )


def _check_policy(policy: str, handed: Matched, roster: Roster | None, lab: str) -> None:
    origins = {item.origin for items in handed.students.values() for item in items}
    if policy == "on-time" and not (roster and lab in roster.labs) and origins - {"canvas"}:
        raise UserError(
            f"the policy 'on-time' needs due times: give a roster with a column 'due {lab}', or choose another policy "
            f"({', '.join(name for name in POLICIES if name != policy)})"
        )


@dataclass(frozen=True)
class _Intake:
    """The taking in of one student's files."""

    store: Store
    lab: str
    student: str
    check: Callable[[bytes], None]
    term: str
    beside: list[Ignored] = field(default_factory=list)  # notebooks that do not count
    other_lab: set[str] = field(default_factory=set)  # digests of notebooks that are another lab's

    def with_attempt(self, history: History, attempt: Attempt) -> History:
        """Return the history with one attempt more, kept in the store, unless it is known already."""
        longer = history.with_attempt(attempt)
        if longer is not history:
            self.store.save_history(self.lab, self.student, longer)
        return longer

    def with_earlier(self, history: History, submitted: Path) -> History:
        """Return the history with what was put into the tree before attempts were listed, or by nbgrader."""
        if any(path.is_symlink() for path in (submitted, submitted.parent, submitted.parent.parent)):
            return history
        try:
            status = submitted.lstat()
        except OSError:  # there is none
            return history
        if not stat.S_ISREG(status.st_mode):
            return history
        stamp = submitted.with_name(STAMP)
        time, _ = stamped_time([SubmittedFile(stamp.name, content=partial(read_file, stamp, 0))])
        earlier = Attempt("", submitted.name, SUBMITTED, time, term=self.term)
        try:
            data = read_file(submitted, status.st_size)
        except Refused as reason:
            return self.with_attempt(history, replace(earlier, refused=str(reason)))
        if digest(data) in {attempt.digest for attempt in history.attempts}:
            return history
        return self.with_attempt(history, self._checked(replace(earlier, digest=digest(data)), data))

    def attempts(self, items: list[Upload], history: History, now: datetime) -> list[tuple[Attempt, str]]:
        """Return the attempts in the student's files, each with the doubt about its time."""
        try:
            chosen = notebook_of(items, self.lab)
        except Refused as reason:
            names = sorted(item.file.name for item in items)
            name = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            return [(Attempt("", name, items[0].origin, refused=str(reason), term=self.term), "")]
        result = []
        counts = ", ".join(item.title for item in chosen)
        for title in left_out(items, chosen):
            self.beside.append(
                Ignored(f"{self.student}: {title}", f"{counts} is graded, because it has the lab's name")
            )
        for item in chosen:
            time, doubt = item.time, item.doubt
            try:
                time = plausible(time, now, "its time") if time else None
            except BadTime as error:
                time, doubt = None, str(error)
            attempt = Attempt(
                "",
                item.file.name,
                item.origin,
                time,
                item.number,
                item.late,
                canvas_id=item.person.canvas_id,
                term=self.term,
            )
            try:
                data = item.file.read()
                attempt = replace(attempt, digest=digest(data))
                if not history.knows(attempt):
                    attempt = self._checked(attempt, data)
            except Refused as reason:
                attempt = replace(attempt, refused=str(reason))
            result.append((attempt, doubt))
        return result

    def _checked(self, attempt: Attempt, data: bytes) -> Attempt:
        """Return the attempt with its content kept, and refused if that is no notebook."""
        self.store.save_content(self.lab, self.student, attempt.digest, data)
        try:
            self.check(data)
        except Refused as reason:
            if isinstance(reason, OfAnotherLab):
                self.other_lab.add(attempt.digest)
            return replace(attempt, refused=str(reason))
        return attempt


class _Arrived(NamedTuple):
    """What came in of one student, before it is kept; each attempt with the doubt about its time."""

    intake: _Intake
    history: History
    attempts: list[tuple[Attempt, str]]


def counted_time(store: Store, lab: str, student: str) -> datetime | None:
    """Return when the submission was handed in that counts: that of the record, or the newest before there is one."""
    record = store.record(lab, student)
    if record and (record.refused or record.handed_in.time):
        return None if record.refused else datetime.fromisoformat(record.handed_in.time)
    attempts = [one for one in store.history(lab, student).attempts if not record or one.digest == record.submission]
    return attempts[-1].time if attempts else None
