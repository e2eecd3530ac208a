"""No Python of a student's own runs where a kernel is read and launched, however its text is written."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.kernel_texts import all_cells

pytestmark = pytest.mark.proof

MAX_READING_S = 2.0
"""Seconds of computing that one kernel's text may take, its launch included; it takes about 0.01."""

REACHED = frozenset("tl triton abs bool float int len max min print range".split())
"""Names outside of it that a kernel may use: the language, and what Triton's compiler knows of Python."""


@dataclass(frozen=True)
class Tried:
    """What came of one cell."""

    name: str
    outcome: str
    reached: list[str]
    ran: bool
    seconds: float


@pytest.fixture(scope="module")
def tried() -> list[Tried]:
    """All cells, in one process of its own: some would take its memory or its time."""
    script = Path(__file__).parents[1] / "helpers" / "kernel_texts.py"
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    command, pipe, nothing = [sys.executable, str(script)], subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=nothing, text=True, env=environment) as process:
        try:
            said, _ = process.communicate(timeout=240)
        except subprocess.TimeoutExpired:  # those that were not reached are missing
            process.kill()
            said, _ = process.communicate()
    rows = [json.loads(line) for line in said.splitlines() if line.startswith('["')]
    return [Tried(*row) for row in rows]


def test_all_of_them_are_read_to_the_end(tried: list[Tried]) -> None:
    assert [name for name in all_cells() if name not in {one.name for one in tried}] == []
    assert [one for one in tried if one.outcome.startswith(("broke", "a long"))] == []


def test_no_python_of_the_cell_runs(tried: list[Tried]) -> None:
    assert [one.name for one in tried if one.ran] == []


def test_what_is_accepted_reaches_the_language_and_nothing_else(tried: list[Tried]) -> None:
    assert [(one.name, one.reached) for one in tried if not REACHED.issuperset(one.reached)] == []


def test_none_takes_long_to_read(tried: list[Tried]) -> None:
    assert [(one.name, one.seconds) for one in tried if one.seconds > MAX_READING_S] == []
