"""The timeline of specialized chips: what pattern each cast in silicon, what that gained, and at what price."""

from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

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


def _ratio(chip: str, narrow: str, engine: str) -> str:
    found = Hardware.get(chip)
    return fmt((found.peak(narrow) / found.peak("fp32", engine=engine)).m_as(""), 0)


@cache
def milestones() -> tuple[Milestone, ...]:
    """The chips of the timeline, the oldest first."""
    v1, b200 = Hardware.get("tpu-v1"), Hardware.get("b200")
    side = int(v1.field("array_dim").value.m_as(""))
    fp4 = fmt((b200.peak("fp4") / b200.peak("fp16")).m_as(""), 0)
    return (
        Milestone(
            1980, "Intel 8087", "precision", "floating-point arithmetic",
            "single operations up to 100 times as fast as in software",
            "a second chip, which does nothing else", "part of every CPU of its family since 1989", "palmer1980intel",
        ),
        Milestone(
            1983, "TI TMS32010", "precision", "the multiply-add of a digital filter",
            "a product of two 16-bit numbers in every cycle, added up in 32 bits",
            "integers only, little memory, and assembly language",
            "its multiply-adds are now in every CPU and phone", "lyons2011understanding",
        ),
        Milestone(
            1989, "Intel 486DX", "precision", "the 8087, on the CPU's own chip",
            "no trip to another chip for each operation", "area in every chip sold, used or not",
            "the cycle is closed: the special unit has become general", "patterson2021hardware",
        ),
        Milestone(
            1999, "GeForce 256", "throughput", "transform and light the corners of triangles",
            "the CPU no longer computes the scene for each image", "a fixed sequence of steps that no program could change",
            "programmable in 2001, and general lanes in 2006", "lindholm2008nvidia",
        ),
        Milestone(
            2002, "Intel IXP2800", "throughput", "look at a packet, change it, send it on",
            "packets at 10 Gbit/s, with a program on 16 small engines", "memories of several kinds, placed by hand",
            "its kind of work now runs in network cards", "adiletta2002ixp",
        ),
        Milestone(
            2006, "GeForce 8800", "throughput", "one program for all corners and all pixels",
            "the same lanes serve every step, so none is idle while another is full",
            "branches that differ between neighbors cost time", "with CUDA, the chip on which networks were trained",
            "lindholm2008nvidia",
        ),
        Milestone(
            2010, "H.264 encoder", "one job", "compress video, as a circuit",
            "500 times less energy than software on four general cores", "it encodes this format and no other",
            "a video circuit is in every phone, renewed for each format", "hameed2010understanding",
        ),
        Milestone(
            2013, "Bitcoin miners", "one job", "one hash function, again and again",
            "a thousand to a hundred thousand times the CPU's hashes per joule", "scrap, if the function is ever changed",
            "miners on CPUs and GPUs could not compete", "taylor2017evolution",
        ),
        Milestone(
            2015, "Google TPU v1", "integration", f"products of INT8 matrices, on {side} × {side} multipliers",
            "15 to 30 times as fast as a CPU or GPU of its time", "no training, and no use without a host",
            "its successors compute in BF16 and train", "jouppi2017tpu",
        ),
        Milestone(
            2017, "NVIDIA V100", "integration", "products of small FP16 matrices, as an instruction",
            f"{_ratio('v100-sxm2', 'fp16', 'vector')} times the peak of its own FP32 lanes",
            "only FP16 inputs, and no gain without products of matrices", "in every large GPU since", "nvidia2017v100",
        ),
        Milestone(
            2018, "Darwin", "one job", "align the pieces of a genome",
            "up to 15,000 times as fast as software, in a simulated design", "it aligns, and does nothing else",
            "an approach to copy more than a chip to buy", "turakhia2018darwin",
        ),
        Milestone(
            2024, "NVIDIA B200", "integration", "products of FP4 numbers with a scale for each block",
            f"{fp4} times the chip's own dense peak in FP16", "someone must find out which steps survive four bits",
            "too early to say", "nvidia2024blackwell",
        ),
    )  # fmt: skip


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
        alt=f"Four rows of dots along the years {found[0].year} to {found[-1].year}, each dot with the name of a chip. The "
        "row for precision has dots in the 1980s, that for throughput around 2000, that for integration from 2015 on, "
        "and the row of chips for one job has dots between 2010 and 2018.",
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
        above = index % 2 == 0
        ax.annotate(
            chip.name, (chip.year, place), xytext=(0, 7 if above else -7), textcoords="offset points", fontsize=8,
            ha="center", va="bottom" if above else "top", color=colors[tones[chip.row]],
        )  # fmt: skip
    ax.set(xlim=(1975, 2029), ylim=(len(ROWS) - 0.4, -0.6))
    ax.set_yticks(range(len(ROWS)), ROWS)
    ax.grid(visible=False, axis="y")
    return fig
