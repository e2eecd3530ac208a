"""The marking pages in a real browser: by keyboard, without a script, with formulas, in every look."""

from typing import Any

import pytest
from helpers.looking import check_look

from mlsys.classroom.marking.answers import find

from .conftest import Class, Client

pytestmark = [pytest.mark.proof, pytest.mark.browser]


def at(client: Client, path: str) -> str:
    return client.server.address.rstrip("/") + path


def key_of(course: Class, student: str) -> str:
    return next(one.key for one in course.marking.answers("e") if one.student == student)


def points_of(course: Class) -> dict[str, float | None]:
    return {one.key: one.points for one in course.marking.answers("e")}


@pytest.mark.parametrize("path", ["/", "/q/e", "/q/e?show=marked", "/q/e/KEY", "/q/b/KEY", "/q/e/rubric", "/nothing"])
def test_nothing_keeps_a_marker_out(browser: Any, course: Class, client: Client, path: str) -> None:
    check_look(browser, at(client, path.replace("KEY", key_of(course, "bob"))))


def test_a_class_is_marked_with_the_keyboard_alone(browser: Any, course: Class, client: Client) -> None:
    keys = list(points_of(course))
    page = browser.new_page()
    page.goto(at(client, f"/q/e/{keys[0]}"))
    page.keyboard.press("1")  # the first line of the rubric
    page.keyboard.press("2")
    assert page.input_value("#points") == "1.5"
    page.keyboard.press("2")
    assert page.input_value("#points") == "1"
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/{keys[1]}?show=open")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    while page.evaluate("document.activeElement.id") != "comment":
        page.keyboard.press("Tab")
    page.keyboard.type("See *the* notes: 12")  # digits are text here
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/{keys[2]}?show=open")
    assert list(points_of(course).values()) == [1.0, 0.5, None]
    assert find(course.marking.answers("e"), keys[1]).comment == "a number\n\nSee *the* notes: 12"
    page.close()


def test_without_a_script_the_form_works_too(browser: Any, course: Class, client: Client) -> None:
    key = key_of(course, "ann")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(at(client, f"/q/e/{key}"))
    page.get_by_label("bytes cross the bus").check()
    page.get_by_role("button", name="Save and next").click()
    page.wait_for_load_state()
    assert points_of(course)[key] == 1
    context.close()


def test_formulas_are_set_and_what_is_hostile_does_nothing(browser: Any, course: Class, client: Client) -> None:
    context = browser.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(at(client, f"/q/e/{key_of(course, 'bob')}"))
    page.wait_for_selector(".answer mjx-container mjx-mfrac")
    page.wait_for_timeout(300)
    assert page.title() == "e: marking"
    assert page.locator(".answer a[href^=javascript]").count() == 0
    assert page.locator(".answer :is(form, input, script, iframe, style)").count() == 0
    assert page.locator(".answer").evaluate("(one) => [...one.querySelectorAll('[style*=fixed]')].length") == 0
    assert all(url.startswith((client.server.address, "data:")) for url in asked)
    assert any(url.endswith(".woff") for url in asked)  # fonts of the page itself
    # Even a script that got in would not run.
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
    page.wait_for_timeout(200)
    assert page.title() == "e: marking"
    context.close()


def test_of_two_browsers_the_second_is_shown_what_the_first_saved(browser: Any, course: Class, client: Client) -> None:
    key = key_of(course, "cy")
    first, second = browser.new_page(), browser.new_page()
    for page in (first, second):
        page.goto(at(client, f"/q/e/{key}"))
    first.fill("#points", "2")
    first.get_by_role("button", name="Save and next").click()
    first.wait_for_load_state()
    second.fill("#points", "0.25")
    second.fill("#comment", "mine")
    second.get_by_role("button", name="Save and next").click()
    second.wait_for_selector("[role=alert]")
    assert points_of(course)[key] == 2
    assert second.locator("main").inner_text().count("2 of 2 points") == 1
    assert (second.input_value("#points"), second.input_value("#comment")) == ("0.25", "mine")
    second.get_by_role("button", name="Save and next").click()
    second.wait_for_load_state()
    assert points_of(course)[key] == 0.25
    first.close()
    second.close()


def test_what_changed_since_it_was_marked_is_found_and_shown(browser: Any, course: Class, client: Client) -> None:
    answer = find(course.marking.answers("e"), key_of(course, "ann"))
    course.marking.save("e", answer.key, answer.seen, 1.5, "well argued")
    course.again("ann", "So **bandwidth**, and latency.")
    page = browser.new_page()
    page.goto(at(client, "/"))
    page.get_by_role("link", name="e. Explain").click()
    page.get_by_role("link", name="changed since they were marked").click()
    page.get_by_role("link", name=answer.key).click()
    page.wait_for_load_state()
    assert "The earlier answer got 1.5 points." in page.locator("main").inner_text()
    assert page.locator("pre").first.inner_text().endswith("-So **bandwidth**.\n+So **bandwidth**, and latency.")
    assert page.input_value("#comment") == "well argued"
    page.close()
