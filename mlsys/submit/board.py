"""The race board: each student's ratio to the reference under a pseudonym, with the reference and the ceiling drawn in.

The ceiling is the ratio of a kernel that would run at the roofs of the device's benchmark record.
"""

import hmac
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median

from markupsafe import Markup

from mlsys.classroom.overview.kernels import roof_of
from mlsys.classroom.store.record import QuestionRecord
from mlsys.grading.timed import Timed

FIRST = (
    *("amber", "brisk", "calm", "clever", "coral", "cosmic", "crisp", "dapper", "eager", "gentle", "golden", "hazel"),
    *("humble", "indigo", "jolly", "keen", "lively", "lucky", "mellow", "merry", "misty", "nimble", "olive", "opal"),
    *("patient", "plucky", "quiet", "rapid", "rustic", "silver", "steady", "sunny", "swift", "tidy", "velvet", "vivid"),
)
SECOND = (
    *("badger", "beaver", "bison", "crane", "dolphin", "eagle", "falcon", "ferret", "finch", "gecko", "heron", "ibis"),
    *("jackal", "koala", "lemur", "lynx", "magpie", "marten", "newt", "ocelot", "otter", "owl", "panda", "pelican"),
    *("puffin", "quail", "raven", "robin", "salmon", "seal", "sparrow", "stork", "tapir", "toucan", "walrus", "wren"),
)
"""Words of pseudonyms."""

_WIDTH, _NAMES, _VALUES = 400, 140, 36
_ROW, _TOP, _BOTTOM = 26, 26, 30


@dataclass(frozen=True)
class Lane:
    """One student's best ratio, under a pseudonym."""

    pseudonym: str
    ratio: float


@dataclass(frozen=True)
class Race:
    """All students at one shape of a question, on one device.

    Attributes:
        question: name of the question.
        shape: the shape that was timed.
        dtype: number format.
        device: name of the GPU.
        lanes: the students, the fastest first.
        ceiling: the ratio at the device's roofs; None if it is not known.
    """

    question: str
    shape: str
    dtype: str
    device: str
    lanes: Sequence[Lane]
    ceiling: float | None

    @property
    def note(self) -> str:
        """What the lines are."""
        reference = "The full line is the reference"
        if self.ceiling is None:
            return f"{reference}. No ceiling is drawn: this device has no benchmark record, or the question no FLOPs."
        return f"{reference}, the dashed one the ceiling: {self.ceiling:.2f} at this device's measured roofs."

    def chart(self, own: str = "") -> Markup:
        """Return the bars as SVG; that of the pseudonym `own` stands out."""
        most = max([1.0, self.ceiling or 0.0, *(lane.ratio for lane in self.lanes)]) * 1.05
        height = _TOP + _ROW * len(self.lanes) + _BOTTOM
        scale = (_WIDTH - _NAMES - _VALUES) / most
        parts = []
        for row, lane in enumerate(self.lanes):
            y = _TOP + _ROW * row
            kind = "bar own" if lane.pseudonym == own else "bar"
            name = escape(f"{lane.pseudonym} (you)" if lane.pseudonym == own else lane.pseudonym)
            parts += [
                f'<text x="{_NAMES - 8}" y="{y + 15}" text-anchor="end">{name}</text>',
                f'<rect class="{kind}" x="{_NAMES}" y="{y + 2}" width="{scale * lane.ratio:.1f}" height="{_ROW - 8}"/>',
                f'<text x="{_WIDTH - 2}" y="{y + 15}" text-anchor="end">{lane.ratio:.2f}</text>',
            ]
        lines = [("reference", 1.0)] + ([("ceiling", self.ceiling)] if self.ceiling else [])
        for place, (kind, ratio) in enumerate(lines):
            x = _NAMES + scale * ratio
            y = 14 if place == 0 else height - 8  # one above and one below, so that their words never meet
            anchor = "end" if ratio > most / 2 else "start"
            parts += [
                f'<line class="{kind}" x1="{x:.1f}" y1="{_TOP - 8}" x2="{x:.1f}" y2="{height - _BOTTOM + 8}"/>',
                f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{kind} {ratio:.2f}</text>',
            ]
        words = f"{len(self.lanes)} students by ratio to the reference, from {self.lanes[0].ratio:.2f} down."
        return Markup(
            f'<svg class="race" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{words}">{"".join(parts)}</svg>'
        )


def pseudonyms(secret: str, lab: str, students: Collection[str]) -> dict[str, str]:
    """Return a pseudonym for each student, which says nothing about the name and differs from lab to lab."""
    drawn = {one: hmac.digest(secret.encode(), f"board {lab} {one}".encode(), "sha256") for one in students}
    found: dict[str, str] = {}
    times: Counter[str] = Counter()
    for student in sorted(students, key=lambda one: drawn[one]):
        number = int.from_bytes(drawn[student][:8], "big")
        name = f"{FIRST[number % len(FIRST)]} {SECOND[number // len(FIRST) % len(SECOND)]}"
        times[name] += 1
        found[student] = name if times[name] == 1 else f"{name} {times[name]}"
    return found


def races(found: Iterable[tuple[str, Iterable[QuestionRecord]]], names: Mapping[str, str]) -> list[Race]:
    """Return the races in what judging found, by question, shape and device.

    Args:
        found: students with their questions, each student as often as there are verdicts; the best ratio counts.
        names: pseudonyms by student; whoever has none is left out.
    """
    groups: dict[tuple[str, str, str, str], dict[str, Timed]] = {}
    for student, questions in found:
        for question in questions if student in names else ():
            for timed in question.timed if question.verdict in ("passed", "slow") else ():
                lanes = groups.setdefault((question.question, timed.shape, timed.dtype, timed.device), {})
                if student not in lanes or timed.ratio > lanes[student].ratio:
                    lanes[student] = timed
    return [
        Race(*key, _lanes(lanes, names), _ceiling(key[3], list(lanes.values())))
        for key, lanes in sorted(groups.items())
    ]


def _lanes(lanes: Mapping[str, Timed], names: Mapping[str, str]) -> list[Lane]:
    found = [Lane(names[student], timed.ratio) for student, timed in lanes.items()]
    return sorted(found, key=lambda lane: (-lane.ratio, lane.pseudonym))


def _ceiling(device: str, timed: Sequence[Timed]) -> float | None:
    """Return reference time / max(bytes / bandwidth, FLOPs / peak), at the median time of the reference."""
    one = timed[0]
    roof = roof_of(device, one.dtype)
    if roof is None or not one.flops or not one.moved_bytes:
        return None
    least_s = max(one.moved_bytes / roof.bytes_per_s, one.flops / roof.flops_per_s)
    return median(each.reference_s for each in timed) / least_s
