"""The timeline of specialized chips: what pattern each cast in silicon, what that gained, and at what price."""

import tomllib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pybtex.database import Entry, parse_file

from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.formatting import fmt

REFERENCES = Path(__file__).parents[1] / "references.bib"
ROWS = ("precision", "throughput", "integration", "one job")
"""What held programs back; the last row has chips that are made for a single algorithm."""
FIRST = 1980
"""The year that is shown first."""


@dataclass(frozen=True)
class Milestone:
    """A dated chip.

    Attributes:
        year: year of announcement, of first use, or of the paper.
        name: what it is called.
        row: an entry of `ROWS`.
        pattern: the computation that it cast in silicon.
        gain: what that gained, with the condition.
        cost: what it gave up.
        later: what became of it.
        cite: key in `references.bib`.
    """

    year: int
    name: str
    row: str
    pattern: str
    gain: str
    cost: str
    later: str
    cite: str


@cache
def milestones() -> tuple[Milestone, ...]:
    """The chips of the timeline, the oldest first."""
    v1, v100, b200 = (Hardware.get(chip) for chip in ("tpu-v1", "v100-sxm2", "b200"))
    computed = {
        "v1_side": v1.field("array_dim").value,
        "v100_units": v100.peak("fp16") / v100.peak("fp32", engine="vector"),
        "b200_fp4": b200.peak("fp4") / b200.peak("fp16"),
    }
    texts = {name: fmt(number.m_as(""), 0) for name, number in computed.items()}
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["chip"]
    filled: list[dict[str, Any]] = [
        {key: text.format(**texts) if isinstance(text, str) else text for key, text in chip.items()} for chip in found
    ]
    return tuple(Milestone(**chip) for chip in filled)


@cache
def _references() -> dict[str, Entry]:
    return dict(parse_file(str(REFERENCES)).entries)


def citation(key: str) -> str:
    """First author, title and year of an entry of the bibliography.

    Raises:
        KeyError: if the bibliography has no such entry.
    """
    entry = _references()[key]
    people = entry.persons.get("author", [])
    first = " ".join(people[0].last_names) if people else entry.fields.get("institution", "")
    title = " ".join(entry.fields["title"].translate(str.maketrans("", "", "{}\\")).split())
    return f"{first}{' and others' if len(people) > 1 else ''}, {title}, {entry.fields['year']}"


def content() -> Content:
    """The numbers and the fallback of the timeline."""
    found = milestones()
    return Content(
        title="Timeline of specialized chips",
        numbers={
            "rows": ROWS,
            "chips": [asdict(chip) | {"source": citation(chip.cite)} for chip in found],
            "first": FIRST,
        },
        picture=_picture,
        alt=f"Four rows of dots along the years {found[0].year} to {found[-1].year}, each dot with the name of a chip. "
        "The row for precision has dots in the 1980s, that for throughput around 2000, that for integration from 2015 "
        "on, and the row of chips for one job has dots between 2010 and 2018.",
        tables=(_table(),),
    )


def _table() -> Table:
    head = ("year", "chip", "pattern", "gain", "price", "source")
    rows = [(str(c.year), c.name, c.pattern, c.gain, c.cost, citation(c.cite)) for c in milestones()]
    return Table("Chips of the timeline", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.9))
    tones = dict(zip(ROWS, ("OrangeLine", "BlueLine", "GreenLine", "VioletLine"), strict=True))
    for index, chip in enumerate(milestones()):
        place = ROWS.index(chip.row)
        ax.plot(chip.year, place, "o", color=colors[tones[chip.row]])
        side, align = (7, "bottom") if index % 2 == 0 else (-7, "top")
        style: dict[str, Any] = {"fontsize": 8, "ha": "center", "va": align, "color": colors[tones[chip.row]]}
        ax.annotate(chip.name, (chip.year, place), xytext=(0, side), textcoords="offset points", **style)
    ax.set(xlim=(1975, 2029), ylim=(len(ROWS) - 0.4, -0.6))
    ax.set_yticks(range(len(ROWS)), ROWS)
    ax.grid(visible=False, axis="y")
    return fig
