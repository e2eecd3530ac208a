"""Compare a result with its reference, and say what is wrong, where, and what usually causes it."""

import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from mlsys.errors import InvalidValue, a_kind
from mlsys.grading.checks.diagnosis import likely_cause
from mlsys.grading.checks.tolerances import Difference, difference, dtype_name, is_close
from mlsys.grading.error_map import ErrorMap
from mlsys.grading.verdicts import WrongAnswer

if TYPE_CHECKING:
    import torch


MAX_SHOWN_CHARACTERS = 24
"""Longest number or word that a message from a hidden test shows, in characters: a float's, no room for its inputs."""

_show_expected: ContextVar[bool] = ContextVar("show_expected", default=True)


@contextmanager
def hidden_values() -> Iterator[None]:
    """Leave expected values out of messages, as in hidden tests."""
    token = _show_expected.set(False)
    try:
        yield
    finally:
        _show_expected.reset(token)


def expected_values_are_shown() -> bool:
    """Return whether messages may show expected values, and words of the student's: not in hidden tests."""
    return _show_expected.get()


def assert_close(
    actual: object, expected: "torch.Tensor", *, what: str = "result", tile: tuple[int, int] | None = None
) -> None:
    """Raise `WrongAnswer` with a diagnosis unless `actual` equals `expected` within the tolerance of its dtype.

    What an element may be off by is said in `mlsys.grading.checks.tolerances`.

    Args:
        actual: the result to check; a tensor of the same shape and dtype is right.
        expected: the reference, computed in float64 and rounded to the dtype that is asked for.
        what: what to call the result in the message, such as "C for M=37, N=53, K=29".
        tile: rows and columns of one program's tile, to name the tile of the first wrong element and to tell
            faults at the edge from faults everywhere.

    Raises:
        WrongAnswer: if they differ.
        InvalidValue: if they differ and the reference holds NaNs, which nothing equals.
    """
    import torch

    if not isinstance(actual, torch.Tensor):
        raise WrongAnswer(f"{what}: expected a tensor of shape {tuple(expected.shape)}, got {type(actual).__name__}")
    if actual.shape != expected.shape:
        swapped = " (rows and columns swapped?)" if tuple(actual.shape) == tuple(expected.shape[::-1]) else ""
        raise WrongAnswer(f"{what}: the shape is {tuple(actual.shape)}, not {tuple(expected.shape)}{swapped}")
    if actual.dtype != expected.dtype:
        raise WrongAnswer(f"{what}: the dtype is {dtype_name(actual)}, not {dtype_name(expected)}")
    if actual.device != expected.device:
        raise WrongAnswer(f"{what}: it is on {actual.device}, not on {expected.device}")
    if is_close(actual, expected):
        return
    not_numbers = expected.isnan()
    if bool(not_numbers.any()):
        where = not_numbers.nonzero()[0].tolist()
        raise InvalidValue(f"{what}: the right result is itself NaN, first at {where}; choose other inputs")
    found = difference(actual, expected)
    picture = ErrorMap.of(found.wrong, tile, hidden=not _show_expected.get())
    raise WrongAnswer(f"{what}: {_describe(actual, expected, found, tile)}", picture)


def assert_equal(actual: object, expected: int | str, *, what: str) -> None:
    """Raise `WrongAnswer` unless `actual` is the same plain int or string.

    >>> assert_equal(7, 8, what="bytes for m=1")
    Traceback (most recent call last):
    ...
    mlsys.grading.verdicts.WrongAnswer: bytes for m=1: got 7, should be 8
    """
    if type(actual) is not type(expected):
        raise WrongAnswer(f"{what}: got {shown(actual)}; return a plain {type(expected).__name__}")
    if actual != expected:
        if not _show_expected.get() and len(str(actual)) > MAX_SHOWN_CHARACTERS:
            raise WrongAnswer(f"{what}: got {shown(actual)} of more than {MAX_SHOWN_CHARACTERS} characters")
        should = f", should be {_plain(expected)}" if _show_expected.get() else ""
        raise WrongAnswer(f"{what}: got {_plain(actual)}{should}")


def shown(value: object) -> str:
    """Describe a value of a student's for a message: short, and in a hidden test without room for its inputs.

    >>> shown("2.5"), shown([1] * 1000)
    ("'2.5', a str", '[1, 1, 1, 1, 1, 1, ...], a list')
    """
    kind = a_kind(value)
    number = type(value) in (bool, int, float, type(None))
    if not _show_expected.get() and (not number or len(str(value)) > MAX_SHOWN_CHARACTERS):
        return kind
    text = _Short().repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'}, {kind}"


class _Short(reprlib.Repr):
    """A `repr` without the elements of tensors, which can take minutes to write."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring, self.maxdict = 76, 8

    def repr_Tensor(self, value: "torch.Tensor", _level: int) -> str:  # noqa: N802 - reprlib finds it by the type's name
        return f"tensor of shape {tuple(value.shape)}"


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else repr(value)


def _describe(actual: "torch.Tensor", expected: "torch.Tensor", found: Difference, tile: tuple[int, int] | None) -> str:
    first = tuple(int(index) for index in np.unravel_index(int(found.wrong.byte().argmax()), found.wrong.shape))
    lines = [
        f"{int(found.wrong.sum()):,} of {found.wrong.numel():,} elements are wrong.",
        f"First wrong element: {_place(first, tile)} is {float(actual[first]):.6g}"
        + (f", should be {float(expected[first]):.6g}." if _show_expected.get() else "."),
    ]
    if found.largest is not None and _show_expected.get():
        lines.append(f"Largest error: {found.largest:.3g}.")
    cause = likely_cause(actual, expected, found, tile)
    return "\n  ".join([*lines, *([f"Likely cause: {cause}"] if cause else [])])


def _place(index: tuple[int, ...], tile: tuple[int, int] | None) -> str:
    place = f"[{', '.join(map(str, index))}]"
    if tile is None or len(index) != 2:
        return place
    return f"{place} (tile {index[0] // tile[0]}, {index[1] // tile[1]} of {tile[0]} x {tile[1]})"
