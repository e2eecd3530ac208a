"""Predictions: written down before anything is measured, shown beside the measurement afterwards."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from types import MappingProxyType

from mlsys.errors import UnknownName
from mlsys.grading.verdicts import NotImplementedYet


@dataclass(frozen=True)
class Sealed:
    """Predictions by name, and when they were made."""

    values: Mapping[str, float]
    made_at: datetime


@dataclass(frozen=True, repr=False)
class Comparison:
    """Rows of (name, predicted, measured); measured is None while it waits."""

    rows: tuple[tuple[str, float, float | None], ...]

    def __str__(self) -> str:
        table = [_HEAD, *(_cells(row) for row in self.rows)]
        widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEAD))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if not column else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ).rstrip()
            for cells in table
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in _HEAD)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(row)) + "</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HEAD = ("", "predicted", "measured", "measured / predicted")


def seal(**predictions: float | None) -> Sealed:
    """Record predictions with the time, and print them in one line.

    Raises:
        NotImplementedError: if one is still None or is not a finite number; how close a prediction is does not matter.
    """
    for name, value in predictions.items():
        if not _is_number(value):
            raise NotImplementedYet(
                f"{name} is {value!r}: write a number, your best guess. You are not graded on how close it is."
            )
    made_at = datetime.now(UTC)
    listed = ", ".join(f"{name} = {value:,.10g}" for name, value in predictions.items())
    print(f"Sealed at {made_at:%Y-%m-%d %H:%M} UTC: {listed}")
    return Sealed(
        MappingProxyType({name: float(value) for name, value in predictions.items() if value is not None}), made_at
    )


def _is_number(value: object) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def compare(sealed: Sealed, **measured: float | None) -> Comparison:
    """Show each prediction beside its measurement; one without a measurement, or with None, waits.

    Raises:
        UnknownName: if a measurement has no prediction.
    """
    for name in measured:
        if name not in sealed.values:
            raise UnknownName.of("prediction", name, sealed.values)
    return Comparison(tuple((name, value, measured.get(name)) for name, value in sealed.values.items()))


def _cells(row: tuple[str, float, float | None]) -> tuple[str, str, str, str]:
    name, predicted, measured = row
    if measured is None:
        return name, _number(predicted), "waits", ""
    ratio = f"{measured / predicted:.2f}" if predicted else "-"
    return name, _number(predicted), _number(measured), ratio


def _number(value: float) -> str:
    """Write a large count in full, as the notebook does, and other numbers with three digits."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.3g}"
