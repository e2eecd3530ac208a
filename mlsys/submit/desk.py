"""The desk at which work is handed in: what is refused, the time that counts, the place in the queue, the receipt.

A file may be anything, and it is looked at in the web process, in the time of a request. So two of its fields are
decoded and nothing else: whatever is in the cells stays text. What takes longer to find out is found when it is judged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from sqlalchemy.engine import Connection

from mlsys.classroom.intake.reader import MAX_BYTES
from mlsys.classroom.students.deadlines import EARLIEST
from mlsys.errors import UserError
from mlsys.receipt import CLOCK_TOLERANCE, Receipt, Signer, parse_receipt, sha256
from mlsys.submit.queue import WAITING, HandIn, Queue
from mlsys.submit.settings import Settings


class Refused(UserError):
    """A file that is not taken in; the message says why, for the student."""


class _About(msgspec.Struct):
    lab: str = ""


class _Metadata(msgspec.Struct):
    mlsys: _About = msgspec.field(default_factory=_About)


class _Notebook(msgspec.Struct):
    cells: msgspec.Raw  # ten million of them would fill the memory as objects
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


KEPT = "Nothing was handed in; what you handed in before stays"
"""What a refusal ends with."""


def check_size(size: int) -> None:
    """Refuse a file that is larger than a notebook may be.

    Raises:
        Refused: it is.
    """
    if size > MAX_BYTES:
        raise Refused(
            f"the file is {size / 1e6:.0f} MB, and the limit is {MAX_BYTES / 1e6:.0f} MB: clear the notebook's "
            f"outputs, save it, and hand it in again. {KEPT}"
        )


def check_file(data: bytes, lab: str) -> None:
    """Refuse what is no notebook, or the notebook of another lab.

    Raises:
        Refused: it is.
    """
    check_size(len(data))
    if not data.strip():
        raise Refused(f"the file is empty: save the notebook, then hand it in. {KEPT}")
    try:
        notebook = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Notebook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"the file is not a notebook, or is damaged ({error}): hand in {lab}.ipynb. {KEPT}") from error
    if not bytes(notebook.cells).startswith(b"["):
        raise Refused(f"the file is not a notebook: it has no list of cells. Hand in {lab}.ipynb. {KEPT}")
    said = notebook.metadata.mlsys.lab
    if said and said != lab:
        raise Refused(f"the notebook is of lab {said[:40]!r}, and this is {lab!r}: choose that lab. {KEPT}")


class TooOften(Refused):
    """A hand-in beyond the limit; the message says when the next one is possible."""


@dataclass(frozen=True)
class Answer:
    """What a student gets for a hand-in: the receipt, and what there is to say beside it."""

    receipt: Receipt
    notes: tuple[str, ...] = ()


def _now() -> datetime:
    return datetime.now(UTC)


def _in_milliseconds(time: datetime) -> datetime:
    """Return a time as receipts write it, so that what is kept is what the receipt says."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)


@dataclass(frozen=True)
class Desk:
    """Takes work in. Several processes may have one: what they share is in the queue.

    Attributes:
        queue: where it is kept.
        signer: signs the receipts.
        settings: the limits.
        clock: gives the time, which a student's own clock has no part in.
    """

    queue: Queue
    signer: Signer
    settings: Settings
    clock: Callable[[], datetime] = _now

    def check_clock(self) -> None:
        """Make sure that this machine's clock is not behind the receipts that were given.

        Raises:
            UserError: it is.
        """
        newest, now = self.queue.newest_time(), self.clock()
        if newest and newest > now + CLOCK_TOLERANCE:
            raise UserError(
                f"this machine's clock shows {now:%Y-%m-%d %H:%M} UTC, and a receipt was given at "
                f"{newest:%Y-%m-%d %H:%M} UTC: set the clock right, then start again"
            )

    def hand_in(self, student: str, lab: str, data: bytes, *, hidden: bool = False, term: str = "") -> Answer:
        """Take a file in and return its receipt. The same file again, as after a lost reply, gives the same receipt.

        Args:
            student: who hands in.
            lab: the lab.
            data: the file.
            hidden: whether hidden tests are asked for too.
            term: name of the present term.

        Raises:
            Refused: it is no notebook of this lab.
            TooOften: the student has handed in too often.
        """
        check_file(data, lab)
        digest = sha256(data)
        with self.queue.write() as connection:
            # Numbers and times grow together, also where a clock is set back.
            now = max(_in_milliseconds(self.clock()), self.queue.newest_time(connection) or EARLIEST)
            granted, notes = self._hidden(connection, student, lab, now) if hidden else (False, ())
            before = self.queue.newest(connection, student, lab)
            if before and before.sha256 == digest:
                if granted and not before.hidden:
                    self.queue.ask_for_hidden_tests(connection, before.number, now)
                same = "This file is the one that you handed in last, so the receipt is that one's."
                return Answer(parse_receipt(before.receipt), (same, *notes))
            self._check_often(connection, student, lab, now)
            row = HandIn(0, student, lab, digest, len(data), now, term, b"", WAITING, granted, None)
            number = self.queue.add(connection, row, data)
            place, time = self.queue.waiting(connection), now.isoformat(timespec="milliseconds")
            receipt = self.signer.signed(Receipt(number, student, lab, digest, len(data), time, place, ""))
            self.queue.save_receipt(connection, number, receipt.to_json())
        return Answer(receipt, notes)

    def _check_often(self, connection: Connection, student: str, lab: str, now: datetime) -> None:
        most = self.settings.hand_ins_per_hour
        times = self.queue.since(connection, student, lab, now - timedelta(hours=1))
        if len(times) >= most:
            minutes = max(1, round((times[-most] + timedelta(hours=1) - now).total_seconds() / 60))
            raise TooOften(
                f"you have handed in {lab} {len(times)} times within an hour, which is the limit: the next one is "
                f"possible in {minutes} minutes. {KEPT}"
            )

    def _hidden(self, connection: Connection, student: str, lab: str, now: datetime) -> tuple[bool, tuple[str, ...]]:
        """Return whether a student gets hidden tests now, and what to say if not."""
        most = self.settings.hidden_tests_per_day
        if not most:
            return False, ("Hidden tests are not offered in this course, so the visible ones run.",)
        if self.queue.hidden_since(connection, student, lab, now - timedelta(days=1)) >= most:
            times = "once" if most == 1 else f"{most} times"
            return False, (f"Hidden tests run {times} a day, which you have used, so the visible ones run.",)
        return True, ()
