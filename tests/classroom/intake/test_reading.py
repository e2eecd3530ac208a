"""Each submission is read once in a run, within limits, and none of them ends the run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlsys.classroom.intake import reading
from mlsys.classroom.intake.reader import OfAnotherLab, Refused
from mlsys.classroom.intake.reading import LabReader, ReadingFailed
from mlsys.classroom.processes.limited import LimitExceeded
from mlsys.course.digest import digest
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

Course = tuple[Path, CourseTree, Path]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is done in the helper process; here it is done in this one."""
    found: list[str] = []

    def here(work: Callable[..., Any], *arguments: object, time_s: float) -> Any:
        found.append(work.__name__)
        return work(*arguments)

    monkeypatch.setattr(reading, "limited", here)
    return found


def test_what_is_checked_at_intake_is_not_read_again(adding: Course, calls: list[str]) -> None:
    data = (adding[2] / "right.ipynb").read_bytes()
    reader = LabReader(adding[1], "adding")
    reader.check(data)
    notebook = reader.canonical(data)
    assert len(calls) == 1
    assert notebook.metadata["mlsys"]["submitted_digest"] == digest(data)
    assert reader.canonical(data) == notebook  # it was not kept for longer
    assert len(calls) == 2


def test_what_would_take_too_much_memory_to_keep_is_read_again(
    adding: Course, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (adding[2] / "right.ipynb").read_bytes()
    monkeypatch.setattr(reading, "MAX_KEPT_BYTES", len(data) - 1)
    reader = LabReader(adding[1], "adding")
    reader.check(data)
    assert reader.canonical(data).metadata["mlsys"]["submitted_digest"] == digest(data)
    assert len(calls) == 2


def test_a_notebook_of_another_lab_is_readable_and_not_gradable(adding: Course, calls: list[str]) -> None:
    data = (adding[2] / "other-lab.ipynb").read_bytes()
    reader = LabReader(adding[1], "adding")
    with pytest.raises(OfAnotherLab, match="of lab 'subtracting'"):
        reader.check(data)
    with pytest.raises(Refused, match="of lab 'subtracting'") as found:
        reader.canonical(data)
    assert not isinstance(found.value, ReadingFailed)
    with pytest.raises(Refused, match="damaged or cut off"):
        reader.check(b"{")
    assert len(calls) == 2


@pytest.mark.parametrize("error", [LimitExceeded("it takes more than 30 seconds"), RecursionError("too deep")])
def test_a_failure_after_reading_is_not_held_against_the_file_and_ends_nothing(
    adding: Course, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(work: Callable[..., Any], *arguments: Any, time_s: float) -> Any:
        if work is reading._read:
            raise error
        return work(*arguments)

    monkeypatch.setattr(reading, "limited", fails)
    reader = LabReader(adding[1], "adding")
    data = (adding[2] / "right.ipynb").read_bytes()
    reader.check(data)
    with pytest.raises(ReadingFailed, match=str(error)):
        reader.canonical(data)
    with pytest.raises(Refused, match="not a notebook"):
        reader.check(b"PK")


def test_a_helper_that_does_not_start_is_no_students_fault(adding: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise UserError("it does not start")

    monkeypatch.setattr(reading, "limited", fails)
    with pytest.raises(UserError, match="does not start"):
        LabReader(adding[1], "adding").check(b"{}")


def test_the_limits_hold_where_a_submission_is_read(adding: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_READ_S", 0.0001)
    cell = {"cell_type": "markdown", "metadata": {}, "source": "not read in a millisecond"}
    notebook = {"cells": [cell] * 20_000, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    with pytest.raises(Refused, match="could not be read .it takes more than"):
        LabReader(adding[1], "adding").check(json.dumps(notebook).encode())
