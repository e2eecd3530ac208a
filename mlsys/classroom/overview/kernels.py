"""The kernels of a class beside the roofs of the GPU that raced them: a table, and a roofline where FLOPs are known."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from mlsys.classroom.store.record import Record
from mlsys.errors import UserError
from mlsys.grading.timed import Timed
from mlsys.measure import records

WIDTH, HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 12, 44
ROOFS = "independent roofs"
"""Name of the rows of a benchmark record that hold the roofs."""


@dataclass(frozen=True)
class Raced:
    """One student's kernel at one shape of a question."""

    student: str
    question: str
    timed: Timed


@dataclass(frozen=True)
class Roof:
    """The measured roofs of a device for one number format: bytes per second and FLOP per second."""

    bytes_per_s: float
    flops_per_s: float


@dataclass(frozen=True)
class Races:
    """All kernels of one question that one device raced; `chart` is empty if the question gives no FLOPs."""

    question: str
    device: str
    raced: Sequence[Raced]
    chart: Markup
    note: str


def races_of(found: Iterable[Record]) -> list[Races]:
    """Return the races in the records of a class, by question and device."""
    groups: dict[tuple[str, str], list[Raced]] = {}
    for record in found:
        for question in record.questions:
            for timed in question.timed:
                key = question.question, timed.device
                groups.setdefault(key, []).append(Raced(record.student, question.question, timed))
    return [_races(question, device, raced) for (question, device), raced in groups.items()]


def roof_of(device: str, dtype: str) -> Roof | None:
    """Return the roofs of a device in its benchmark record; None if there is no record, or nothing at that format."""
    try:
        rows = records.load(records.slug(device)).named(ROOFS)
    except UserError:
        return None
    bandwidth = [row.achieved for row in rows if row.rate_unit == "GB/s" and row.achieved]
    peak = [row.achieved for row in rows if row.rate_unit == "TFLOP/s" and row.dtype == dtype and row.achieved]
    return Roof(max(bandwidth) * 1e9, max(peak) * 1e12) if bandwidth and peak else None


def _races(question: str, device: str, raced: Sequence[Raced]) -> Races:
    drawn = [one for one in raced if one.timed.flops and one.timed.moved_bytes]
    if not drawn:
        return Races(question, device, raced, Markup(), "This question gives no FLOPs, so there are ratios only.")
    roof = roof_of(device, drawn[0].timed.dtype)
    note = (
        "The roofs are those of this device's benchmark record."
        if roof
        else f"There is no benchmark record of {device}, so no roofs are drawn: run mlsys bench on it."
    )
    return Races(question, device, raced, chart(drawn, roof), note)


def chart(raced: Sequence[Raced], roof: Roof | None) -> Markup:
    """Return a roofline as SVG: FLOP/s over FLOP/byte, both logarithmic; a point for each kernel and shape.

    The intensity counts each tensor once, so all kernels of one shape are above each other. Rings are the references.
    """
    points = [(*_place(one.timed, one.timed.time_s), one) for one in raced]
    rings = {(one.timed.shape, *_place(one.timed, one.timed.reference_s)) for one in raced}
    rates = [y for _, y, _ in points] + [y for *_, y in rings] + ([roof.flops_per_s] if roof else [])
    xs = [x for x, *_ in points] + ([roof.flops_per_s / roof.bytes_per_s] if roof else [])
    x_low, x_high = _decades(xs)
    y_low, y_high = _decades(rates)

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - x_low) / (x_high - x_low)
        up = (math.log10(y) - y_low) / (y_high - y_low)
        return _LEFT + across * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - up * (HEIGHT - _TOP - _BOTTOM)

    parts = [*_axes(x_low, x_high, y_low, y_high, at)]
    if roof:
        ridge = roof.flops_per_s / roof.bytes_per_s
        begin = max(10.0**x_low, 10.0**y_low / roof.bytes_per_s)
        corners = [(begin, begin * roof.bytes_per_s), (ridge, roof.flops_per_s), (10.0**x_high, roof.flops_per_s)]
        line = " ".join("{:.1f},{:.1f}".format(*at(x, y)) for x, y in corners)
        parts.append(f'<polyline class="roof" points="{line}"/>')
    for _, x, y in sorted(rings):
        parts.append('<circle class="reference" cx="{:.1f}" cy="{:.1f}" r="7"/>'.format(*at(x, y)))
    for x, y, one in points:
        about = f"{one.student}, {one.timed.shape}: {y / 1e12:.3g} TFLOP/s, {one.timed.ratio:.2f} of the reference"
        place = 'cx="{:.1f}" cy="{:.1f}"'.format(*at(x, y))
        parts.append(f'<circle class="kernel" {place} r="4"><title>{escape(about)}</title></circle>')
    students = len({one.student for one in raced})
    words = f"Roofline with {len(points)} times of {students} students; the table below has the values."
    drawn = "".join(parts)  # numbers, and texts that are escaped
    return Markup(f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}">{drawn}</svg>')


def _place(timed: Timed, time_s: float) -> tuple[float, float]:
    return timed.flops / timed.moved_bytes, timed.flops / time_s


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 0.05)
    return low, max(high, low + 1)


def _axes(x_low: int, x_high: int, y_low: int, y_high: int, at) -> Iterable[str]:  # type: ignore[no-untyped-def]
    bottom, left = HEIGHT - _BOTTOM, _LEFT
    for power in range(x_low, x_high + 1):
        x, _ = at(10.0**power, 10.0**y_low)
        yield f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>'
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{10.0**power:g}</text>'
    for power in range(y_low, y_high + 1):
        _, y = at(10.0**x_low, 10.0**power)
        yield f'<line class="grid" x1="{left}" y1="{y:.1f}" x2="{WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        yield f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{10.0 ** (power - 12):g}</text>'
    label = "FLOP per byte, each tensor counted once"
    yield f'<text x="{(left + WIDTH) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{label}</text>'
    middle = (_TOP + bottom) / 2
    yield f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">TFLOP/s</text>'
