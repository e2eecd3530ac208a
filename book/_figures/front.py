"""Pictures of the front page, one for each kind of reader; all of them are drawn from the course's own data."""

import csv
from pathlib import Path

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mlsys import Hardware, viz
from mlsys.measure import records

ROOT = Path(__file__).parents[2]
SIZE = (3.6, 2.7)
"""Inches: three stand beside each other, and one fills a phone."""

MARKS = {"passed": "GreenL", "needs gpu": "BlueL", "needs review": "OrangeL"}
"""Colors of the verdicts that are no failure; all others share one."""


def reader() -> Figure:
    """Time of a vector addition against its size: predicted from the data sheet, and measured."""
    fig, ax, colors, _ = viz.setup_plot(figsize=SIZE)
    rows = records.load("nvidia-h200").named("vector add")
    bandwidth = Hardware.get("h200").memory_bw.m_as("byte/s")
    sizes = np.array([row.shape[0] for row in rows])
    ax.loglog(sizes, 3 * 4 * sizes / bandwidth * 1e6, color=colors["BlueLine"])
    ax.loglog(sizes, [row.median_s * 1e6 for row in rows], "o", color=colors["RedLine"])
    ax.text(sizes[3], 8, "predicted", color=colors["BlueLine"])
    ax.text(sizes[1], 60, "measured", color=colors["RedLine"])
    ax.set(xlabel="numbers in a vector", ylabel="addition, µs")
    ax.set_yticks([10, 100], ["10", "100"])
    ax.minorticks_off()
    return fig


def student(side: int = 76, depth: int = 40, tile: int = 16) -> Figure:
    """Which elements of a product are wrong when a kernel is started for whole tiles only."""
    fig, ax, colors, _ = viz.setup_plot(figsize=SIZE)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((side, depth)), rng.standard_normal((depth, side))
    written = side // tile * tile
    found = np.zeros((side, side))
    found[:written, :written] = a[:written] @ b[:, :written]
    wrong = ~np.isclose(found, a @ b)
    ax.imshow(wrong, cmap=ListedColormap([colors["GreenL"], colors["RedLine"]]), vmin=0, vmax=1)
    ax.set_xticks(np.arange(0, side, tile))
    ax.set_yticks(np.arange(0, side, tile))
    ax.set(xlabel="columns of your result", ylabel="rows")
    ax.legend(
        handles=[Patch(color=colors["GreenL"], label="right"), Patch(color=colors["RedLine"], label="wrong")],
        loc="upper left",
        bbox_to_anchor=(1, 1),
    )
    return fig


def instructor(lab: str = "tiling") -> Figure:
    """Verdicts of a lab's sample class: a row for each student, a column for each question."""
    fig, ax, colors, _ = viz.setup_plot(figsize=SIZE)
    with (ROOT / "labs" / lab / "class" / "expected.csv").open(encoding="utf-8") as file:
        verdicts = {(row["student"], row["question"]): row["verdict"] for row in csv.DictReader(file)}
    students, questions = (list(dict.fromkeys(key[place] for key in verdicts)) for place in (0, 1))
    kinds = [*MARKS, "other"]
    cells = [[kinds.index(_kind(verdicts[student, question])) for question in questions] for student in students]
    fills = [colors[MARKS.get(kind, "RedL")] for kind in kinds]
    ax.pcolormesh(cells, cmap=ListedColormap(fills), vmin=-0.5, vmax=len(kinds) - 0.5, edgecolor="white", linewidth=1.5)
    ax.invert_yaxis()
    ax.grid(visible=False)
    ax.set_xticks(np.arange(len(questions)) + 0.5, questions, rotation=90, fontsize=8)
    ax.set_yticks(np.arange(len(students)) + 0.5, students, fontsize=7)
    ax.tick_params(length=0)
    names = ["passed", "needs a GPU", "needs a person", "failed or refused"]
    ax.legend(
        handles=[Patch(color=fill, label=name) for fill, name in zip(fills, names, strict=True)],
        loc="lower center",
        bbox_to_anchor=(0.3, 1.0),
        ncols=2,
        fontsize=8,
        handlelength=1,
        columnspacing=1,
    )
    return fig


def _kind(verdict: str) -> str:
    return verdict if verdict in MARKS else "other"
