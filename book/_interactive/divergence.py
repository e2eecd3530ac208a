"""The divergence player: a warp executes a small program slot by slot, and the lanes that are not on the path wait."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from _interactive.content import Content, Table
from mlsys import viz
from mlsys.formatting import fmt
from mlsys.hardware.simt import Branch, Loop, Run, Statement, Step, issue
from mlsys.traffic.coalescing import WARP_LANES


def _positive(x: int) -> bool:
    return x > 0


_ROUND = Step("x = x - 1", lambda x: x - 1)
_THEN = [Step("y = a * x"), Step("y = y + b"), Step("y = y * y")]
_ELSE = [Step("y = c * x"), Step("y = y - d"), Step("y = abs(y)")]

PROGRAMS: dict[str, list[Statement]] = {
    "if and else": [Branch("if x > 0:", _positive, _THEN, _ELSE), Step("store(y)")],
    "if alone": [Branch("if x > 0:", _positive, _THEN), Step("store(y)")],
    "no branch: compute both sides, then select": [
        *(Step(step.text.replace("y", "u")) for step in _THEN),
        *(Step(step.text.replace("y", "v")) for step in _ELSE),
        Step("y = u if x > 0 else v"),
        Step("store(y)"),
    ],
    "a loop of x rounds": [Loop("while x > 0:", _positive, [Step("y = a * y + b"), _ROUND]), Step("store(y)")],
    "a branch in a loop": [
        Loop(
            "while x > 0:",
            _positive,
            [Branch("if x % 2 == 1:", lambda x: x % 2 == 1, [Step("y = y * a")], [Step("y = y * y")]), _ROUND],
        ),
        Step("store(y)"),
    ],
    "four paths": [
        Branch(
            "if x % 4 < 2:",
            lambda x: x % 4 < 2,
            [Branch("if x % 2 == 0:", lambda x: x % 2 == 0, [Step("y = a * x")], [Step("y = b * x")])],
            [Branch("if x % 4 == 2:", lambda x: x % 4 == 2, [Step("y = c * x")], [Step("y = d * x")])],
        ),
        Step("store(y)"),
    ],
}
"""The programs that a reader can choose."""

PATTERNS: dict[str, tuple[int, int, Callable[[int, int], int]]] = {
    "x is 1 in the first k lanes, 0 in the others": (0, WARP_LANES, lambda lane, k: int(lane < k)),
    "x is k in all lanes": (0, 8, lambda lane, k: k),
    "x is the lane's number modulo k": (1, 8, lambda lane, k: lane % k),
    "x is k in lane 0, 1 in the others": (0, 8, lambda lane, k: 1 if lane else k),
}
"""How x differs between lanes: the least and the greatest k, and the value of a lane for a k."""

FIRST: dict[str, Any] = {"program": "if and else", "pattern": "x is 1 in the first k lanes, 0 in the others", "k": 8}


def listing(program: Sequence[Statement], indent: int = 0) -> Iterator[str]:
    """The lines of a program, tests with what depends on them below."""
    for statement in program:
        yield 4 * indent * " " + statement.text
        if isinstance(statement, Loop):
            yield from listing(statement.body, indent + 1)
        elif isinstance(statement, Branch):
            yield from listing(statement.then, indent + 1)
            if statement.otherwise:
                yield 4 * indent * " " + "else:"
                yield from listing(statement.otherwise, indent + 1)


def run(program: str, pattern: str, k: int) -> Run:
    """The issue slots of one choice."""
    value = PATTERNS[pattern][2]
    return issue(PROGRAMS[program], [value(lane, k) for lane in range(WARP_LANES)])


def content() -> Content:
    """The numbers and the fallback of the divergence player."""
    programs: list[dict[str, Any]] = [
        {"name": name, "lines": list(listing(program))} for name, program in PROGRAMS.items()
    ]
    runs: dict[str, Any] = {
        program["name"]: {
            pattern: [_written(run(program["name"], pattern, k), program["lines"]) for k in range(low, high + 1)]
            for pattern, (low, high, _) in PATTERNS.items()
        }
        for program in programs
    }
    first = run(FIRST["program"], FIRST["pattern"], FIRST["k"])
    return Content(
        title="Divergence",
        numbers={
            "programs": programs,
            "patterns": [{"name": name, "low": low, "high": high} for name, (low, high, _) in PATTERNS.items()],
            "runs": runs,
            "lanes": WARP_LANES,
            "first": FIRST,
        },
        picture=_picture,
        alt=f"A grid of {WARP_LANES} lanes against {len(first.slots)} issue slots. All lanes execute the test. In the "
        f"next three slots only the first {FIRST['k']} lanes work, in the three after them only the others, and in the "
        "last slot all of them.",
        tables=(_table(),),
    )


def _written(done: Run, lines: Sequence[str]) -> dict[str, Any]:
    """A run as the script reads it: the line and the lanes of each slot, lane 0 as the lowest bit."""
    texts = [line.strip() for line in lines]
    return {
        "line": [texts.index(slot.text) for slot in done.slots],
        "on": [sum(on << lane for lane, on in enumerate(slot.active)) for slot in done.slots],
        "needed": done.slots_needed,
        "longest": done.longest_lane,
    }


def _table() -> Table:
    rows = []
    for program in PROGRAMS:
        for pattern, k in zip(PATTERNS, (8, 3, 4, 8), strict=True):
            done = run(program, pattern, k)
            rows.append(
                (program, f"{pattern}, k = {k}", str(len(done.slots)), str(done.slots_needed), fmt(100 * done.share, 0))
            )
    head = ("program", "values of x", "slots used", "slots needed", "lanes at work on average, %")
    return Table("Issue slots of a warp", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 3.0))
    done = run(FIRST["program"], FIRST["pattern"], FIRST["k"])
    for column, slot in enumerate(done.slots):
        for lane, on in enumerate(slot.active):
            fill = colors["BlueLine"] if on else colors["grid"]
            ax.add_patch(Rectangle((column + 0.04, lane + 0.08), 0.92, 0.84, facecolor=fill, edgecolor="none"))
    ax.set(xlim=(0, len(done.slots)), ylim=(WARP_LANES, 0), ylabel="lane")
    ax.set_xticks([column + 0.5 for column in range(len(done.slots))])
    ax.set_xticklabels([slot.text.replace(" = ", "=\n") for slot in done.slots], fontsize=8)
    ax.set_yticks([0, 8, 16, 24, 32])
    ax.tick_params(length=0)
    ax.grid(visible=False)
    return fig
