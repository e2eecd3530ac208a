"""The page about a class in a real browser: filters by mouse and keyboard, every look, from a file."""

from pathlib import Path
from typing import Any

import pytest
from helpers.looking import check_look

from .test_class_page import page as page_of
from .test_class_page import store

__all__ = ["store"]

pytestmark = [pytest.mark.proof, pytest.mark.browser]


@pytest.fixture
def address(store: Any, tmp_path: Path) -> str:
    path = tmp_path / "class.html"
    path.write_text(page_of(store), encoding="utf-8")
    return path.as_uri()


def test_nothing_keeps_a_reader_out(browser: Any, address: str) -> None:
    check_look(browser, address)


def shown(page: Any) -> list[str]:
    return [
        text.split("\n")[0].split(" ")[0]
        for text in page.locator("#students > tbody:visible > tr > th").all_inner_texts()
    ]


def test_students_are_filtered_by_question_verdict_section_and_name(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    assert len(shown(page)) == 3
    assert page.locator("#count").inner_text() == "3 of 3 students"
    page.get_by_label("Verdict").select_option("wrong answer")
    assert shown(page) == ["Bob"]
    page.locator("select[name=question]").select_option("e")
    assert shown(page) == []
    page.get_by_role("button", name="Show all").click()
    page.locator("#count").filter(has_text="3 of 3").wait_for()
    page.get_by_label("Section").select_option("B")
    assert shown(page) == ["Bob", "Cy"]
    page.get_by_label("Name or id").fill("CY")
    assert shown(page) == ["Cy"]
    assert page.locator("#count").inner_text() == "1 of 3 students"
    page.close()


@pytest.mark.parametrize("sought", ["Ann Baker", "baker, ann", "BÁKER", "BakerAnn"])
def test_a_name_is_found_however_it_is_written(browser: Any, address: str, sought: str) -> None:
    page = browser.new_page()
    page.goto(address)
    page.get_by_label("Name or id").fill(sought)
    assert shown(page) == ["Baker,"]
    page.close()


def test_details_open_with_the_keyboard_and_nothing_hostile_ran(browser: Any, address: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    page.goto(address)
    page.locator("summary").filter(has_text="late days of Baker, Ann").focus()
    page.keyboard.press("Enter")
    assert page.get_by_role("heading", name="Late days").first.is_visible()
    assert asked == []
    page.close()
