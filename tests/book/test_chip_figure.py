"""The box diagram of a GPU: its rates are the sourced ones, and what is stressed is what was asked for."""

import sys
from pathlib import Path

import pytest

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import chip as figures  # noqa: E402

from mlsys.viz import COLORS  # noqa: E402

pytestmark = pytest.mark.usefixtures("closed_figures")


def test_the_rates_of_an_a100_are_those_of_its_documents() -> None:
    """6,912 lanes of 3 operands of 4 bytes and 108 SMs of 128 bytes, at 1.41 GHz; 5,120 bytes of L2 per clock."""
    rates = {name: path.rate.m_as("GB/s") for name, path in figures.paths("a100-80gb-sxm", "pcie-4-x16").items()}
    assert rates == pytest.approx(
        {
            "register": 6912 * 3 * 4 * 1.41,
            "shared": 108 * 128 * 1.41,
            "l2": 5120 * 1.41,
            "hbm": 2039,
            "host": 16 * 16 / 8,  # 16 lanes of 16 Gbit/s, raw
        },
        rel=2e-3,
    )


@pytest.mark.parametrize("stressed", ["register", "shared", "l2", "hbm", "host"])
def test_only_the_path_that_the_text_is_about_is_red(stressed: str) -> None:
    figures.boxes(stressed=stressed)
    red = [text.get_text() for text in plt.gca().texts if text.get_color() == COLORS["RedLine"] and text.get_text()]
    path = figures.paths()[stressed]
    assert len(red) == 1
    assert red[0].startswith(path.label)


def test_every_box_and_every_text_is_inside_the_picture() -> None:
    figures.boxes()
    fig, ax = plt.gcf(), plt.gca()
    fig.canvas.draw()
    page = fig.bbox
    for part in (*ax.texts, *ax.patches):
        place = part.get_window_extent()
        assert page.x0 <= place.x0 <= place.x1 <= page.x1
        assert page.y0 <= place.y0 <= place.y1 <= page.y1
