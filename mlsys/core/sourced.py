"""Numbers that carry their source: the loader of every data file of the package.

A data file is TOML. Each number is a table with `value`, `unit`, `source` (a key of `data/sources.toml`) and `where`
(page, table or row in that document); `condition` says under what it holds (precision, direction, form factor,
technology node). A number without a source is refused.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from mlsys.errors import UnknownName, UserError
from mlsys.units import Quantity, ureg


class UnsourcedNumber(UserError):
    """A number in a data file that lacks its value, unit, source or place in the source."""


@dataclass(frozen=True)
class Source:
    """A document that numbers come from; `read_in` is the copy that was read, where the original was out of reach."""

    key: str
    title: str
    publisher: str
    date: str
    address: str = ""
    read_in: str = ""


@dataclass(frozen=True)
class Sourced:
    """A quantity, the condition under which it holds, and where it stands in which document."""

    value: Quantity
    source: Source
    where: str
    condition: str = ""

    @property
    def citation(self) -> str:
        """The source in one line, for a table or a caption."""
        read_in = f"; read in {self.source.read_in}" if self.source.read_in else ""
        return f"{self.source.publisher}, {self.source.title} ({self.source.date}), {self.where}{read_in}"


def data_folder() -> Traversable:
    """The folder of data files inside the installed package."""
    return files("mlsys").joinpath("data")


def load_toml(path: str) -> dict[str, Any]:
    """Read the data file `path`, given relative to `mlsys/data`."""
    return tomllib.loads(data_folder().joinpath(path).read_text(encoding="utf-8"))


@cache
def sources() -> Mapping[str, Source]:
    """All documents that the data files cite, by key."""
    return {key: Source(key=key, **entry) for key, entry in load_toml("sources.toml").items()}


def sourced(entry: Mapping[str, Any], place: str) -> Sourced:
    """Turn one table of a data file into a `Sourced` number.

    Args:
        entry: the TOML table, with `value`, `unit`, `source`, `where` and, if it needs one, `condition`.
        place: file and field, for the error message.

    Raises:
        UnsourcedNumber: if one of the four is missing or empty.
        UnknownName: if the source is not listed in `data/sources.toml`.
    """
    missing = [key for key in ("value", "unit", "source", "where") if entry.get(key) in (None, "")]
    if missing:
        raise UnsourcedNumber(f"{place}: no {' and no '.join(missing)}; every number states value, unit, source, where")
    if entry["source"] not in sources():
        raise UnknownName.of(f"source in {place}", entry["source"], sources())
    return Sourced(
        value=ureg.Quantity(entry["value"], entry["unit"]),
        source=sources()[entry["source"]],
        where=entry["where"],
        condition=entry.get("condition", ""),
    )
