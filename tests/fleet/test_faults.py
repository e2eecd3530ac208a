"""A class on a fleet and in PostgreSQL comes out as on one machine, whatever is killed on the way."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "fleet.py"

pytestmark = [pytest.mark.proof, pytest.mark.timeout(900)]


def run(*words: str) -> str:
    done = subprocess.run([sys.executable, BENCHMARK, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


def test_a_run_in_which_anything_may_be_killed_loses_no_grade_and_has_none_twice() -> None:
    # `benchmarks/fleet.py faults` kills 100 times; here the first points of the same kind.
    said = run("faults", "--kills", "6", "--submissions", "12", "--workers", "2", "--judging", "0.2")
    assert re.search(r"^6 kills in \d+ rounds of 12 submissions", said, re.MULTILINE)
    assert "0 grades lost, 0 twice" in said


def test_a_class_whose_workers_and_database_are_killed_is_equal_byte_for_byte() -> None:
    said = run("class", "--submissions", "24", "--judging", "0.5")
    assert said.count("kill -9 of a worker") == 2
    assert said.count("kill -9 of a server") == 1
    assert "equal byte for byte" in said
