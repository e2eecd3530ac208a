"""The parts of an interactive figure that the build makes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Table:
    """A table with its title; the first row is the header."""

    title: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Content:
    """What one interactive figure consists of.

    Attributes:
        title: what the figure is, for its controls and its drawing.
        numbers: everything that the script draws from, ready for JSON; all of it comes from `mlsys`.
        picture: draws the static picture.
        alt: what the static picture shows, in words.
        tables: the numbers behind the picture.
        scripts: names of scripts that the figure's own script needs, beside those that all figures have.
    """

    title: str
    numbers: Mapping[str, Any]
    picture: Callable[[], Figure]
    alt: str
    tables: tuple[Table, ...]
    scripts: tuple[str, ...] = ()
