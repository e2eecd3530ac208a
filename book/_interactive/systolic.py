"""The systolic array player: every register of a small array in every cycle, for three dataflows."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from _interactive.content import Content, Table
from mlsys import systolic, viz
from mlsys.systolic import Frame

Matrix = list[list[int]]

EXAMPLES: dict[str, tuple[str, int, Matrix, Matrix]] = {
    "two": ("2 × 2 elements, matrices of 2 × 2", 2, [[2, 4], [1, 3]], [[1, 3], [5, 2]]),
    "three": (
        "3 × 3 elements, matrices of 3 × 3",
        3,
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
        [[2, 0, 1], [1, 3, 2], [4, 1, 5]],
    ),
    "misfit": (
        "4 × 4 elements, A of 2 × 3, B of 3 × 4",
        4,
        [[1, 2, 3], [4, 5, 6]],
        [[2, 0, 1, 3], [1, 3, 2, 0], [4, 1, 5, 2]],
    ),
}
"""Small products to step through: label, side of the array, A, B. One that needs several folds is refused."""

DATAFLOWS: dict[str, dict[str, Any]] = {
    "os": {
        "label": "outputs stay",
        "operands": {"held": "C", "right": "A", "down": "B"},
        "compute": "Rows of A enter at the left, columns of B at the top, each a cycle after its neighbor. Every "
        "element multiplies the two numbers that meet in it, adds to its own sum, and passes both on.",
        "drain": "The sums move down and leave at the bottom.",
    },
    "ws": {
        "label": "weights stay",
        "operands": {"held": "B", "right": "A", "down": "C"},
        "load": "The weights B move down into their places, the last row first.",
        "compute": "Rows of A enter at the left, each number a cycle after the one above it. Every element multiplies "
        "what passes by its weight and adds to the sum that comes from above; finished sums leave at the bottom.",
    },
    "is": {
        "label": "inputs stay",
        "operands": {"held": "A", "right": "B", "down": "C"},
        "load": "The inputs A, transposed, move down into their places, the last row first.",
        "compute": "Columns of B enter at the left, each number a cycle after the one above it. Every element "
        "multiplies what passes by its input and adds to the sum that comes from above; finished sums leave at the "
        "bottom.",
    },
}
"""What each dataflow keeps in the elements, and what happens in its phases."""

FIRST_EXAMPLE, FIRST_DATAFLOW = "two", "os"


def content() -> Content:
    """The numbers and the fallback of the systolic array player."""
    runs = {
        key: {dataflow: _run(size, np.array(a), np.array(b), dataflow) for dataflow in DATAFLOWS}
        for key, (_, size, a, b) in EXAMPLES.items()
    }
    examples = {
        key: {"label": label, "size": size, "A": a, "B": b, "products": len(a) * len(b) * len(b[0]), "runs": runs[key]}
        for key, (label, size, a, b) in EXAMPLES.items()
    }
    return Content(
        title="Systolic array player",
        numbers={
            "examples": examples,
            "dataflows": DATAFLOWS,
            "first": {"example": FIRST_EXAMPLE, "dataflow": FIRST_DATAFLOW},
        },
        picture=_picture,
        alt="Six small grids of two by two elements, one per cycle. In the first only the upper left element "
        "multiplies, in the second and third its neighbors join, in the fourth only the lower right one is left. In "
        "the last two the finished sums move down and leave.",
        tables=(_cycle_table(), _register_table()),
    )


def _run(size: int, a: NDArray[np.int64], b: NDArray[np.int64], dataflow: str) -> list[dict[str, Any]]:
    """What there is to see in each cycle; empty places are none."""
    folding = systolic.Folding.of(len(a), b.shape[1], a.shape[1], rows=size, cols=size, dataflow=dataflow)
    if folding.folds > 1:
        raise ValueError(f"a product of {a.shape} by {b.shape} does not fit {size} x {size} elements in one piece")
    seen: list[dict[str, Any]] = []
    begun = np.zeros((size, size), dtype=bool)
    for frame in systolic.frames(a, b, rows=size, cols=size, dataflow=dataflow):
        begun |= frame.active
        step = sum(earlier["phase"] == frame.phase for earlier in seen)
        seen.append(_shown(frame, step, folding, begun))
    return seen


def _shown(frame: Frame, step: int, folding: systolic.Folding, begun: NDArray[np.bool_]) -> dict[str, Any]:
    """The registers that hold something in the given step of a phase, and the results that leave at the bottom."""
    rows, cols = frame.held.shape
    row, col = np.indices((rows, cols))
    in_rows, in_cols = row < folding.row_extent, col < folding.col_extent
    nowhere, streams = np.zeros((rows, cols), dtype=bool), frame.tag >= 0
    if frame.phase == "compute":
        held = begun if folding.dataflow == "os" else in_rows & in_cols
        where = {"held": held, "right": streams & in_rows, "down": streams & in_cols}
        names = frame.tag  # the row or column of C that passes here
    else:  # what moves down is row r of the operand that is loaded, or of the sums that are drained
        names = row + rows - 1 - step if frame.phase == "load" else row - step
        inside = (names >= row if frame.phase == "load" else names >= 0) & (names < folding.row_extent)
        where = {"held": nowhere, "right": nowhere, "down": inside & in_cols}
    leaving = frame.phase == "drain" or (frame.phase == "compute" and folding.dataflow != "os")
    results = [
        [*((j, int(names[-1, j])) if folding.dataflow == "is" else (int(names[-1, j]), j)), int(frame.down[-1, j])]
        for j in range(cols)
        if leaving and where["down"][-1, j]
    ]
    registers = {name: _visible(getattr(frame, name), mask) for name, mask in where.items()}
    product = _visible(frame.product, frame.active)
    return {"phase": frame.phase, "product": product, **registers, "leaves": results}


def _visible(values: NDArray[np.number], where: NDArray[np.bool_]) -> list[list[int | None]]:
    return [[int(values[r, c]) if where[r, c] else None for c in range(values.shape[1])] for r in range(len(values))]


def _cycle_table() -> Table:
    rows: list[tuple[str, ...]] = [("product", *(DATAFLOWS[dataflow]["label"] for dataflow in DATAFLOWS))]
    for label, size, a, b in EXAMPLES.values():
        m, n, k = len(a), len(b[0]), len(b)
        cycles = (systolic.gemm_cycles(m, n, k, rows=size, cols=size, dataflow=x, drain=True) for x in DATAFLOWS)
        rows.append((label, *(str(count) for count in cycles)))
    return Table("Cycles, loading and draining included", tuple(rows))


def _register_table() -> Table:
    _, size, a, b = EXAMPLES[FIRST_EXAMPLE]
    places = [(r, c) for r in range(size) for c in range(size)]
    rows: list[tuple[str, ...]] = [("cycle", *(f"row {r + 1}, column {c + 1}" for r, c in places), "leaves")]
    for number, seen in enumerate(_run(size, np.array(a), np.array(b), FIRST_DATAFLOW), 1):
        cells = (_worked(seen, r, c) for r, c in places)
        rows.append((str(number), *cells, ", ".join(f"C{i + 1}{j + 1} = {value}" for i, j, value in seen["leaves"])))
    return Table(f"{EXAMPLES[FIRST_EXAMPLE][0]}, {DATAFLOWS[FIRST_DATAFLOW]['label']}", tuple(rows))


def _worked(seen: dict[str, Any], r: int, c: int) -> str:
    if seen["product"][r][c] is None:
        moving = seen["down"][r][c]
        return "" if moving is None else f"{moving} moves down"
    return f"{seen['right'][r][c]} × {seen['down'][r][c]}, sum {seen['held'][r][c]}"


def _picture() -> Figure:
    _, size, a, b = EXAMPLES[FIRST_EXAMPLE]
    run = _run(size, np.array(a), np.array(b), FIRST_DATAFLOW)
    fig, ax, colors, _ = viz.setup_plot(figsize=(5.0, 3.9))
    ax.set(xlim=(-0.1, 8.5), ylim=(6.2, -0.7), aspect="equal")
    ax.axis("off")
    for number, seen in enumerate(run):
        left, top = 3.0 * (number % 3), 3.3 * (number // 3)
        verb = {"compute": "multiply", "drain": "drain"}[seen["phase"]]
        ax.text(left + 1.2, top - 0.2, f"cycle {number + 1}: {verb}", ha="center")
        for r in range(size):
            for c in range(size):
                busy, moving = seen["product"][r][c] is not None, seen["phase"] == "drain"
                x, y = left + 1.2 * c, top + 1.2 * r
                fill = colors["GreenL"] if busy or (moving and seen["down"][r][c] is not None) else "white"
                ax.add_patch(Rectangle((x, y), 1.14, 1.14, facecolor=fill, edgecolor=colors["primary"]))
                if busy:
                    ax.text(
                        x + 0.57, y + 0.3, f"{seen['right'][r][c]} × {seen['down'][r][c]}", ha="center", va="center"
                    )
                value = seen["down"][r][c] if moving else seen["held"][r][c]
                if value is not None:
                    ax.text(
                        x + 0.57,
                        y + 0.8,
                        str(value),
                        ha="center",
                        va="center",
                        color=colors["GreenLine"],
                        weight="bold",
                    )
    return fig
