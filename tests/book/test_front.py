"""The front page: what it counts, what a reader sees without scrolling, and its pictures."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
sys.path.insert(0, str(ROOT / "book"))

from _figures import front  # noqa: E402
from course_front import COUNTS  # noqa: E402

PICTURES = ("reader", "student", "instructor")


def test_counts_are_those_of_the_contents_and_the_records() -> None:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    listed = {part["caption"]: [entry["file"] for entry in part["chapters"]] for part in contents["parts"]}
    parts = [
        part for part in listed if part not in ("Start here", "Labs", "עברית", "Reference", "The package", "About")
    ]
    chapters = [page for part in parts for page in listed[part]]
    runs = [run for path in (ROOT / "labs" / "results").glob("*.json") for run in json.loads(path.read_text())["runs"]]
    assert COUNTS["chapters"](ROOT) == len(chapters)
    assert COUNTS["labs"](ROOT) == len(listed["Labs"])
    assert COUNTS["measurements"](ROOT) == sum(len(run["rows"]) for run in runs)


def test_no_count_is_typed() -> None:
    text = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    assert re.findall(r"\{count\}`(\w+)`", text) == list(COUNTS)
    assert not re.search(r"\b\d+ (chapters|labs|measurements)\b", text)


@pytest.mark.parametrize("name", PICTURES)
def test_each_kind_of_reader_has_a_picture(name: str) -> None:
    import matplotlib.pyplot as plt

    figure = getattr(front, name)()
    assert figure.axes
    plt.close(figure)


@pytest.mark.browser
def test_the_figure_and_what_it_says_are_above_the_fold(browser: Any, address: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{address}/book/index.html", wait_until="load")
    figure = page.locator("figure[data-figure=limit]")
    figure.locator(".result strong").first.wait_for()
    box = figure.locator(".result").bounding_box()
    assert box["y"] + box["height"] <= 800
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(browser: Any, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(f"{address}/book/index.html", wait_until="load")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()
