"""Numbers that carry their source: the loader of every data file of the package.

A data file is TOML. Each number is a table with `value`, `unit`, `source` (a key of `data/sources.toml`) and `where`
(page, table or row in that document); `condition` says under what it holds (precision, direction, form factor,
technology node). A number without a source is refused, and so is everything that a file's type does not name.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import NoneType, UnionType
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
import pint
from msgspec import Struct

from mlsys.errors import UnknownName, UserError
from mlsys.units import Quantity, ureg

T = TypeVar("T")
E = TypeVar("E")


class UnsourcedNumber(UserError):
    """A number in a data file that lacks its value, unit, source or place in the source."""


class BrokenData(UserError):
    """An entry of a data file that is missing, misspelt or of the wrong type."""


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


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a data file; a subclass names the keys that it may have, with their types."""


class Cited(Entry, frozen=True, kw_only=True):
    """A table that says which document it is taken from and where that stands in it; both are checked."""

    what: ClassVar[str] = "table"
    needs: ClassVar[tuple[str, ...]] = ("source", "where")

    source: str = ""
    where: str = ""

    def __post_init__(self) -> None:
        """Refuse a table that lacks one of `needs`, or whose document is not listed."""
        missing = [key for key in self.needs if getattr(self, key) in (None, "")]
        if missing:
            every = f"every {self.what} states {', '.join(self.needs)}"
            raise _Refused(UnsourcedNumber(f"no {' and no '.join(missing)}; {every}"))
        if self.source not in sources():
            raise _Refused(UnknownName.of("source", self.source, sources()))

    @property
    def document(self) -> Source:
        """The document of `source`."""
        return sources()[self.source]


class Number(Cited, frozen=True, kw_only=True):
    """A number as a data file states it."""

    what: ClassVar[str] = "number"
    needs: ClassVar[tuple[str, ...]] = ("value", "unit", "source", "where")

    value: int | float | None = None
    unit: str = ""
    condition: str = ""

    def __post_init__(self) -> None:
        """Refuse a number that lacks a part, or whose document or unit does not exist."""
        super().__post_init__()
        try:
            _unit(self.unit)
        except (pint.PintError, ValueError) as error:
            known = "write one that pint or mlsys/data/units.txt defines"
            raise _Refused(BrokenData(f"unit {self.unit!r} is unknown ({error}): {known}")) from None

    @property
    def sourced(self) -> Sourced:
        """The number as a quantity, with its document."""
        return Sourced(ureg.Quantity(self.value, _unit(self.unit)), self.document, self.where, self.condition)


class Catalog(Generic[T]):
    """Everything of one kind that the data files describe, by name; each is made when it is first asked for."""

    def __init__(self, what: str, entries: Callable[[], Mapping[str, E]], make: Callable[[str, E], T]) -> None:
        """Describe a catalog without reading its file.

        Args:
            what: kind of thing, such as "link", for error messages.
            entries: returns the entries of the data file by name.
            make: turns a name and its entry into the thing.
        """
        self._what = what
        self._entries: Callable[[], Mapping[str, Any]] = cache(entries)
        self._make: Callable[[str], T] = cache(lambda name: make(name, self._entries()[name]))

    def __repr__(self) -> str:
        return f"Catalog({self._what!r})"

    def names(self) -> tuple[str, ...]:
        """Return the names, in the order of the file."""
        return tuple(self._entries())

    def get(self, name: str) -> T:
        """Return the entry of this name.

        Raises:
            UnknownName: with the nearest name and all of them.
        """
        if name not in self.names():
            raise UnknownName.of(self._what, name, self.names())
        return self._make(name)

    def all(self) -> tuple[T, ...]:
        """Return everything, in the order of the file."""
        return tuple(self._make(name) for name in self.names())

    def by_name(self) -> dict[str, T]:
        """Everything by name, in the order of the file."""
        return dict(zip(self.names(), self.all(), strict=True))


class DataFolder(Mapping[str, E]):
    """The data files of a folder by their names, each read when it is first asked for."""

    def __init__(self, folder: str, kind: type[E]) -> None:
        """List the TOML files of `folder`, a folder of `mlsys/data`, which hold a `kind` each."""
        found = (file.name for file in data_folder().joinpath(folder).iterdir())
        self._names = sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))
        self._folder, self._kind = folder, kind

    def __getitem__(self, name: str) -> E:
        """Read one file."""
        if name not in self._names:
            raise KeyError(name)
        return data_file(f"{self._folder}/{name}.toml", self._kind)

    def __iter__(self) -> Iterator[str]:
        """Names in alphabetical order."""
        return iter(self._names)

    def __len__(self) -> int:
        """Number of files."""
        return len(self._names)


def data_folder() -> Traversable:
    """Return the folder of data files inside the installed package."""
    return files("mlsys").joinpath("data")


def load_toml(path: str) -> dict[str, Any]:
    """Read the data file `path`, given relative to `mlsys/data`.

    Raises:
        BrokenData: if it is no valid TOML.
    """
    import tomllib  # not before a file is read, so that `from mlsys import Hardware` stays quick

    try:
        return tomllib.loads(data_folder().joinpath(path).read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BrokenData(f"{path} is no valid TOML: {error}; mend that line") from None


def data_file(path: str, kind: type[E]) -> E:
    """Read the data file `path`, given relative to `mlsys/data`, as a `kind`; the errors are those of `decode`."""
    return decode(load_toml(path), kind, path)


def decode(data: object, kind: type[E], place: str) -> E:
    """Turn tables of a data file into a `kind`, such as a subclass of `Entry` or a dict of them.

    Args:
        data: what the TOML file says.
        kind: a type that msgspec reads; nothing is converted, so the text "3" is no number.
        place: file and entry, for the error message.

    Raises:
        BrokenData: if a key is missing or unknown, or a value has the wrong type; the message names it.
        UnsourcedNumber: if a number lacks its value, unit, source or place in the source.
        UnknownName: if a source is not listed in `data/sources.toml`.
    """
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise _located(error, data, kind, place) from None


@cache
def sources() -> Mapping[str, Source]:
    """Return all documents that the data files cite, by key."""
    entries = data_file("sources.toml", dict[str, _Document])
    return {key: Source(key=key, **msgspec.structs.asdict(entry)) for key, entry in entries.items()}


@cache  # a few dozen units serve hundreds of numbers
def _unit(text: str) -> pint.Unit:
    return ureg.parse_units(text)


class _Document(Entry, frozen=True, kw_only=True):
    title: str
    publisher: str
    date: str
    address: str = ""
    read_in: str = ""


class _Refused(ValueError):
    """Carries an error through msgspec, which adds the path of the entry to a ValueError only."""

    def __init__(self, error: UserError) -> None:
        super().__init__(str(error))
        self.error = error


def _located(error: msgspec.ValidationError, data: Any, kind: Any, place: str) -> UserError:
    """Return the error with file, entry, field and value, and with what to write instead."""
    problem, _, path = str(error).partition(" - at `$")
    for step in re.findall(r"\[[\d.]+\]|[^.\[\]]+", path.rstrip("`")):
        if step == "[...]":  # msgspec does not say which key of a dict
            held = _type_of_part(kind, "")
            key = next(key for key, value in data.items() if not _reads(value, held))
        else:
            key = int(step[1:-1]) if step.startswith("[") else step
        place, data, kind = f"{place} {key}", data[key], _type_of_part(kind, key)
    if isinstance(error.__cause__, _Refused):
        refused = error.__cause__.error
        return type(refused)(f"{place}: {refused}")
    named = problem.rpartition(" `")[2].rstrip("`")
    if problem.startswith("Object missing required field"):
        return BrokenData(f"{place}: no {named}; add it")
    if problem.startswith("Object contains unknown field"):
        kind = _without_none(kind)
        unknown = UnknownName.of("field", named, kind.__struct_fields__)
        return BrokenData(f"{place}: {unknown}; rename it, or add it to {kind.__module__}.{kind.__name__}")
    return BrokenData(f"{place} is {data!r}: write {_wanted(problem, kind)}")


def _type_of_part(kind: Any, key: str | int) -> Any:
    """Return the type of a field of an `Entry`, or of what a dict, list or tuple holds."""
    kind = _without_none(kind)
    if hasattr(kind, "__struct_fields__"):
        return get_type_hints(kind)[str(key)]
    held = get_args(kind)
    if get_origin(kind) is tuple and Ellipsis not in held:
        return held[int(key)]
    return held[1] if get_origin(kind) is dict else held[0]


def _without_none(kind: Any) -> Any:
    return next(arm for arm in get_args(kind) if arm is not NoneType) if isinstance(kind, UnionType) else kind


def _reads(data: object, kind: Any) -> bool:
    try:
        msgspec.convert(data, kind)
    except msgspec.ValidationError:
        return False
    return True


def _wanted(problem: str, kind: Any) -> str:
    """Return what a value must be, in the words of a TOML file."""
    if get_origin(kind) is Literal:
        return " or ".join(repr(choice) for choice in get_args(kind))
    found = re.match(r"Expected `([^`]+)`(.*?)(?:, got .*)?$", problem)
    if not found:
        return problem
    arms = [_TOML_WORDS.get(arm, arm) for arm in found[1].split(" | ") if arm != "null"]
    return " or ".join(arms) + found[2]


_TOML_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text in quotes",
}
