"""The divergence player: what it exports, against the program read as a thread reads it, and what a reader sees."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _interactive import divergence as player

NUMBERS = json.loads(json.dumps(player.content().numbers))
COUNTED_BY_HAND = [
    ("if and else", "x is 1 in the first k lanes, 0 in the others", 8, 8, 5),
    ("if and else", "x is 1 in the first k lanes, 0 in the others", 32, 5, 5),
    ("if alone", "x is 1 in the first k lanes, 0 in the others", 1, 5, 3),
    ("a loop of x rounds", "x is k in lane 0, 1 in the others", 8, 26, 6),
    ("four paths", "x is the lane's number modulo k", 4, 8, 4),
]
"""Program, values of x, k, slots used and slots needed, each counted on paper."""


@pytest.mark.parametrize(("program", "pattern", "k", "used", "needed"), COUNTED_BY_HAND)
def test_slots_are_those_counted_by_hand(program: str, pattern: str, k: int, used: int, needed: int) -> None:
    low = next(one["low"] for one in NUMBERS["patterns"] if one["name"] == pattern)
    run = NUMBERS["runs"][program][pattern][k - low]
    assert (len(run["line"]), len(run["on"]), run["needed"]) == (used, used, needed)


def test_every_choice_has_a_run_whose_slots_name_lines_and_lanes() -> None:
    for program in NUMBERS["programs"]:
        for pattern in NUMBERS["patterns"]:
            runs = NUMBERS["runs"][program["name"]][pattern["name"]]
            assert len(runs) == pattern["high"] - pattern["low"] + 1
            for run in runs:
                assert all(0 < mask < 2**32 for mask in run["on"]), "a slot without a lane is never issued"
                assert {program["lines"][line].strip() for line in run["line"]} <= {
                    line.strip() for line in program["lines"] if line.strip() != "else:"
                }
                assert run["on"][0] == run["on"][-1] == 2**32 - 1, "all lanes start, and meet again at the store"


def test_lines_of_a_program_differ_so_that_a_slot_names_one() -> None:
    for program in NUMBERS["programs"]:
        lines = [line.strip() for line in program["lines"] if line.strip() != "else:"]
        assert len(set(lines)) == len(lines)


def test_a_reader_steps_and_is_told_which_k_is_allowed(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/book/hardware/execution-units.html")
    figure = page.locator("figure[data-figure=divergence]")
    said = figure.locator(".result")
    assert said.locator("data.used").get_attribute("value") == "8"
    figure.get_by_role("slider").press("ArrowRight")
    assert said.locator("data.working").get_attribute("value") == "8"
    assert said.locator("data.waiting").get_attribute("value") == "24"
    figure.get_by_role("combobox", name="Program").select_option(label="no branch: compute both sides, then select")
    assert said.locator("data.waiting").get_attribute("value") == "0"
    figure.get_by_role("spinbutton").fill("33")
    assert "whole number from 0 to 32" in said.inner_text()
    page.close()
