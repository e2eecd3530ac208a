"""Draw the figures of the architecture page: `docs/layers.svg` from the import contract, and `docs/trust.svg`.

    python scripts/architecture.py

The layers are those of `[tool.importlinter]` in pyproject.toml, which `make lint` holds, so the figure cannot show an
order that the code does not keep. A test compares both files with what this draws.
"""

import tomllib
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).parents[1]

ROOMS = {
    "cli": "the command mlsys",
    "fleet": "many machines judge",
    "submit": "hand in at any time: receipts, verdicts, pages",
    "classroom": "grade a class: intake, records, pages",
    "bench": "measure kernels for the record",
    "judge": "judge one question, in a sandbox",
    "grading": "what a lab calls",
    "course": "write, release and publish labs",
    "compiler": "from a graph to Triton, one stage a module",
    "runtime": "memory plans, streams, batches",
    "roofline": "peak, bandwidth, ops",
    "feasibility": "will it run?",
    "dataflow": "loop orders and mappings",
    "costs": "money, energy, carbon",
    "soc": "blocks, clocks and heat of one chip",
    "constants": "numbers by short names",
    "hardware": "chips, links, memories, energies",
    "models": "networks as lists of ops",
    "formulas": "laws of the course",
    "ops": "FLOPs and bytes of one op",
    "numerics": "number formats",
    "sparsity": "CSR, BSR, N:M",
    "systolic": "arrays, cycle by cycle",
    "traffic": "bytes between memories",
    "scaling": "many chips",
    "growth": "growth laws",
    "measure": "the device at hand, timed",
    "registry": "seeds and versions",
    "receipt": "signed proofs of hand-ins",
    "core": "arguments, data files, cells",
    "viz": "one look of figures",
    "formatting": "numbers as text",
    "units": "quantities",
    "errors": "what is wrong, what to do",
}
"""Every room with a few words."""

PLANNED: dict[str, dict[str, str]] = {}
"""Rooms that come later, on the floor of a room that is there: drawn with dashed lines."""

PLANNED_FLOORS: dict[str, dict[str, str]] = {}
"""Floors that come later, above that of a room that is there."""

INK, GROUND, LINE = "#1f2937", "#ffffff", "#1b63b0"
FILLS = ("#d3e4f7", "#d2eddf", "#fbe3c8", "#e6dbf3", "#f8d9d6", "#ecdfd6")
_WIDTH = 800
_LINE, _GAP, _MARGIN = 17, 8, 12


def layers() -> list[list[str]]:
    """Return the floors of the contract, top first, each with its rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    floors = next(contract["layers"] for contract in contracts if contract.get("containers") == ["mlsys"])
    return [[room.strip() for room in floor.split("|")] for floor in floors]


def draw_layers() -> str:
    """Return the figure of the floors: each uses those below it, never one beside it or above."""
    parts: list[str] = []
    floors = []
    for rooms in layers():
        floors += [[(*one, True) for one in PLANNED_FLOORS[room].items()] for room in rooms if room in PLANNED_FLOORS]
        planned = {name: words for room in rooms for name, words in PLANNED.get(room, {}).items()}
        floors.append([(room, ROOMS[room], False) for room in rooms] + [(*one, True) for one in planned.items()])
    y = float(_MARGIN)
    for number, shown in enumerate(floors):
        width = (_WIDTH - 2 * _MARGIN - _GAP * (len(shown) - 1)) / len(shown)
        lines = [wrap(words, int(width / 8)) for _, words, _ in shown]
        height = 36 + _LINE * max(map(len, lines))
        for place, (room, _, dashed) in enumerate(shown):
            x = _MARGIN + place * (width + _GAP)
            parts += _box(x, y, width, height, FILLS[number % len(FILLS)], dashed)
            parts += _text(x + width / 2, y + 23, [room], bold=True)
            parts += _text(x + width / 2, y + 43, lines[place])
        y += height + _GAP
    height = y - _GAP + _MARGIN
    return _svg(
        _WIDTH,
        height,
        parts,
        "The folders of mlsys in layers: each uses lower layers only; dashed folders are planned.",
    )


PROCESSES = {
    "judge": (
        (14, 14, 932, 88),
        [
            "holds the hidden tests and the expected values, and gives the verdict",
            "reads a kernel's text, refuses what is no kernel, and passes on the text that it has checked",
        ],
    ),
    "fork server": (
        (30, 226, 280, 104),
        ["has imported torch and Triton", "forks a process for each question", "tells how a process ended"],
    ),
    "student's process": (
        (340, 226, 280, 104),
        ["runs the student's cells", "what it claims is never believed", "has ended before anything is timed"],
    ),
    "launchers": (
        (650, 226, 280, 104),
        [
            "run checked text and nothing else",
            "one launches the student's kernel,",
            "one the reference, each timed by us",
        ],
    ),
}
"""The processes of one question: where each stands, and what it holds or may do."""

CROSSINGS = {
    170: ("down: fork this one", "up: its number, and its end"),
    480: ("down: cells, calls, input tensors", "up: copies of values and tensors"),
    790: ("down: checked text, input tensors", "up: outputs to compare, and times"),
}
"""What crosses between the judge and each process below it, at the place of the line between them."""


def draw_trust() -> str:
    """Return the figure of trust: which process holds what, what crosses, and who may claim what."""
    parts = [
        f'<rect x="14" y="208" width="932" height="140" rx="8" fill="none" stroke="{INK}" stroke-dasharray="3 4"/>'
    ]
    parts += _text(
        480, 368, ["one sandbox: a user of its own, no network, no files of the course, limits on time and memory"]
    )
    for x, words in CROSSINGS.items():
        parts.append(
            f'<line x1="{x}" y1="102" x2="{x}" y2="226" stroke="{LINE}" stroke-width="2" '
            'marker-start="url(#tip)" marker-end="url(#tip)"/>'
        )
        parts.append(f'<rect x="{x - 150}" y="136" width="300" height="44" fill="{GROUND}"/>')
        parts += _text(x, 152, words)
    for (name, ((x, y, width, height), lines)), fill in zip(PROCESSES.items(), FILLS, strict=False):
        parts += _box(x, y, width, height, fill, dashed=False)
        parts += _text(x + width / 2, y + 26, [name], bold=True)
        parts += _text(x + width / 2, y + 48, lines)
    return _svg(960, 384, parts, "The processes of one question: what each holds, and what crosses between them.")


def _box(x: float, y: float, width: float, height: float, fill: str, dashed: bool) -> Iterator[str]:
    style = 'stroke-dasharray="6 4" fill="none"' if dashed else f'fill="{fill}"'
    yield f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" stroke="{INK}" {style}/>'


def _text(x: float, y: float, lines: Iterable[str], *, bold: bool = False) -> Iterator[str]:
    weight = ' font-weight="bold"' if bold else ""
    for number, line in enumerate(lines):
        yield (
            f'<text x="{x:g}" y="{y + _LINE * number:g}" font-size="{16 if bold else 14}"{weight} text-anchor="middle" '
            f'fill="{INK}">{escape(line)}</text>'
        )


def _svg(width: float, height: float, parts: Iterable[str], title: str) -> str:
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
            'font-family="DejaVu Sans, Verdana, sans-serif">',
            f"<title>{escape(title)}</title>",
            '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse">'
            f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker>',
            f'<rect width="{width:g}" height="{height:g}" fill="{GROUND}"/>',
            *parts,
            "</svg>\n",
        )
    )


def main() -> None:
    """Write both figures."""
    (ROOT / "docs" / "layers.svg").write_text(draw_layers(), encoding="utf-8")
    (ROOT / "docs" / "trust.svg").write_text(draw_trust(), encoding="utf-8")


if __name__ == "__main__":
    main()
