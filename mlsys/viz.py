"""One look for every figure, readable on a light and on a dark page and on a phone.

Figures have a white ground and one set of colors, chosen for contrast and for color-blind readers. On a dark page the
site's style sheet inverts them and turns the hue back, so that blue stays blue.
"""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS: Mapping[str, str] = MappingProxyType(
    {
        "primary": "#1f2937",
        "grid": "#d5dae1",
        "BlueLine": "#1b63b0",
        "BlueL": "#d3e4f7",
        "GreenLine": "#15734a",
        "GreenL": "#d2eddf",
        "RedLine": "#b3261e",
        "RedL": "#f8d9d6",
        "OrangeLine": "#b35900",
        "OrangeL": "#fbe3c8",
        "VioletLine": "#6b3fa0",
        "VioletL": "#e6dbf3",
        "BrownLine": "#75513a",
        "BrownL": "#ecdfd6",
    }
)
"""Line and fill (`...L`) colors by name; lines keep a contrast of 4.5:1 or more on white."""

CYCLE = tuple(COLORS[name] for name in ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "RedLine", "BrownLine"))
"""The order in which lines of one figure take their colors."""


def setup_plot(figsize: tuple[float, float] = (5.0, 3.4)) -> "tuple[Figure, Axes, Mapping[str, str], ModuleType]":
    """A figure in the style of the course.

    Args:
        figsize: width and height in inches; at 5 wide, text is still readable on a phone.

    Returns:
        `(fig, ax, COLORS, plt)`.
    """
    import matplotlib.pyplot as plt

    apply_style()
    fig, ax = plt.subplots(figsize=figsize, layout="constrained")
    return fig, ax, COLORS, plt


def apply_style() -> None:
    """Set matplotlib's defaults to the style of the course."""
    import matplotlib as mpl
    from cycler import cycler

    mpl.rcParams.update(
        {
            "axes.axisbelow": True,
            "axes.edgecolor": COLORS["primary"],
            "axes.formatter.min_exponent": 4,  # log axes: 1000, and from there on powers of ten
            "axes.grid": True,
            "axes.labelcolor": COLORS["primary"],
            "axes.prop_cycle": cycler(color=CYCLE),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "font.size": 10,
            "grid.color": COLORS["grid"],
            "grid.linewidth": 0.8,
            "legend.frameon": False,
            "lines.linewidth": 2.0,
            "savefig.facecolor": "white",
            "svg.hashsalt": "mlsys",  # the same figure gives the same file
            "text.color": COLORS["primary"],
            "xtick.color": COLORS["primary"],
            "ytick.color": COLORS["primary"],
        }
    )
