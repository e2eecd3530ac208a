"""Figures of the chapter on threads and SMs: their numbers, and that nothing leaves the picture."""

import sys
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import chip as boxes  # noqa: E402
from _figures import gpu as figures  # noqa: E402

from mlsys.viz import COLORS  # noqa: E402

pytestmark = pytest.mark.usefixtures("closed_figures")


def draw_map(chip: str, clusters: bool = False) -> None:
    figures.mapping(chip, {name: path.label for name, path in boxes.paths(chip).items()}, clusters)


def texts() -> list[str]:
    return [text.get_text().replace("\n", " ") for ax in plt.gcf().axes for text in ax.texts]


@pytest.mark.parametrize(
    ("chip", "words"),
    [
        (
            "a100-80gb-sxm",
            ["16 lanes", "64 KiB of registers", "192 KiB L1", "108 SMs", "40 MiB", "117 TB/s", "2.0 TB/s"],
        ),
        ("h100-sxm", ["32 lanes", "64 KiB of registers", "256 KiB L1", "132 SMs", "50 MiB", "401 TB/s", "3.4 TB/s"]),
    ],
)
def test_a_map_shows_the_chip_of_its_data_sheet(chip: str, words: list[str]) -> None:
    draw_map(chip)
    shown = " ".join(texts())
    assert [word for word in words if word not in shown] == []


def test_only_a_chip_with_clusters_shows_them() -> None:
    draw_map("h100-sxm", clusters=True)
    assert any("a cluster: up to" in text for text in texts())
    plt.close("all")
    draw_map("a100-80gb-sxm")
    assert not any("cluster" in text for text in texts())


def test_a_padding_column_spreads_the_column_over_all_banks() -> None:
    figures.banks(side=8, column=2)
    left, right = (
        [text.get_text() for text in ax.texts if text.get_color() == COLORS["OrangeLine"]] for ax in plt.gcf().axes
    )
    assert left == ["2"] * 8
    assert sorted(right) == list("01234567")


def test_as_many_operations_in_flight_as_clocks_of_waiting_fill_the_scheduler() -> None:
    figures.hiding(wait=8)
    titles = [ax.get_title(loc="left") for ax in plt.gcf().axes]
    assert [title.rpartition(": ")[2] for title in titles] == ["25% used", "100% used", "100% used"]


@pytest.mark.parametrize("name", ["divergence", "hiding", "banks", "clusters", "mapping"])
def test_nothing_leaves_the_picture(name: str) -> None:
    draw_map("h100-sxm", clusters=True) if name == "mapping" else getattr(figures, name)()
    fig = plt.gcf()
    fig.canvas.draw()
    drawn, (width, height) = fig.get_tightbbox(), fig.get_size_inches()
    assert 0 <= drawn.x0 <= drawn.x1 <= width
    assert 0 <= drawn.y0 <= drawn.y1 <= height
