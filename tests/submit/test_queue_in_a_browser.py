"""The queue in a real browser: on a desktop and a phone, by keyboard, without a script, as verdicts come."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers.looking import LOOKS

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.store.record import QuestionRecord
from mlsys.classroom.store.store import FileStore
from mlsys.grading.timed import Timed
from mlsys.submit.queue import Found, Given
from mlsys.submit.take_in import take_in
from mlsys.submit.tokens import ASSISTANT, INSTRUCTOR

from .conftest import Client, Course, Served, serving, with_mathjax

pytestmark = [pytest.mark.proof, pytest.mark.browser]

MESSAGE = (
    "`add` returned 63 wrong elements of 128, the first at `[64]`.\nIn the test `grading.assert_close(add(x, y))`."
)


def question(name: str, verdict: str, message: str = "", **more: Any) -> QuestionRecord:
    return QuestionRecord(name, "", f"{name}-test", verdict, 0.0, 2.0, message, **more)


def timed(ratio: float) -> tuple[Timed, ...]:
    shape, flops, moved = "2048 x 2048 x 2048", 2.0 * 2048**3, 3 * 4.0 * 2048**2
    return (Timed("NVIDIA H200", shape, "fp32", 4e-4 / ratio, 4e-4, ratio, flops, moved),)


@pytest.fixture
def lively(course: Course) -> Iterator[Served]:
    """A course in which something has happened on every page."""
    with_mathjax(course)
    with serving(course, hidden_tests_per_day=2, feedback=("adding",), race_boards=("adding",)) as running:
        for number, student in enumerate(("ann", "bob", "ann", "cy")):
            running.client(student).hand_in(course.another(number))
        fast = question("d", "passed", **{"timed": timed(0.8)})
        slow = question("d", "slow", **{"timed": timed(0.31)})
        wrong = question("b", "wrong answer", MESSAGE, detail="Traceback: a long line " + "x" * 300)
        now = "2026-11-20 12:00"
        course.queue.take(10)
        course.queue.save_found(2, Found((question("a", "passed"), wrong, slow), device="gpu", judged_at=now))
        course.queue.save_found(3, Found((question("a", "passed"), fast), hidden=True, device="gpu", judged_at=now))
        course.queue.put_back([4])
        for marker, points in (("Tim", 1.0), ("Ina", 2.0)):
            course.queue.save_mark("adding", Given("e", "3f2a9c01", marker, points, "See $x$", datetime.now(UTC)))
        yield running


def context_of(browser: Any, served: Served, client: Client | None, **options: Any) -> Any:
    context = browser.new_context(**options)
    if client is not None:
        value = client.logged_in().cookies["mlsys_session"]
        context.add_cookies([{"name": "mlsys_session", "value": value, "url": f"http://127.0.0.1:{served.port}"}])
    return context


PAGES = {
    "login": (None, "/login"),
    "home": ("ann", "/"),
    "lab": ("ann", "/lab/adding"),
    "waiting": ("cy", "/hand-in/4"),
    "wrong": ("bob", "/hand-in/2"),
    "judged": ("ann", "/hand-in/3"),
    "board": ("ann", "/board/adding"),
    "fault": ("ann", "/hand-in/77"),
    "assistant": ("Tim", "/staff"),
    "instructor": ("Ina", "/staff"),
    "marks": ("Tim", "/staff/marks/adding"),
}
ROLE = {"Tim": ASSISTANT, "Ina": INSTRUCTOR}


@pytest.mark.parametrize("name", PAGES)
def test_nothing_keeps_anybody_out(browser: Any, lively: Served, name: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.base", reason="axe-core is not installed: mlsys[dev] has it")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    who, path = PAGES[name]
    client = lively.client(who, ROLE.get(who, "student")) if who else None
    for width, theme in LOOKS:
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme, "bypass_csp": True}
        context = context_of(browser, lively, client, reduced_motion="reduce", **options)
        page = context.new_page()
        asked: list[str] = []
        page.on("request", lambda request, asked=asked: asked.append(request.url))
        page.goto(f"http://127.0.0.1:{lively.port}{path}", wait_until="load")
        page.add_style_tag(content="pre { background-image: none !important }")  # no contrast over a gradient
        page.evaluate(script)
        found = page.evaluate(
            "() => axe.run({resultTypes: ['violations']}).then(({violations}) => violations"
            ".map(({id, nodes}) => `${id}: ${nodes[0].html.slice(0, 200)} ${nodes[0].failureSummary}`))"
        )
        assert found == [], (width, theme)
        wider = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, (width, theme)
        assert all(url.startswith((f"http://127.0.0.1:{lively.port}/", "data:")) for url in asked)
        context.close()


@pytest.mark.parametrize("script", [True, False])
def test_a_student_hands_in_on_a_phone(browser: Any, served: Served, tmp_path: Path, script: bool) -> None:
    course = served.course
    (tmp_path / "adding.ipynb").write_bytes(course.right)
    context = browser.new_context(viewport={"width": 390, "height": 800}, java_script_enabled=script)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{served.port}/")
    page.get_by_label("Your token for this course").fill(course.token("ann"))
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Adding").click()
    page.get_by_label("Your notebook").set_input_files(tmp_path / "adding.ipynb")
    page.get_by_role("button", name="Hand in").click()
    page.wait_for_url("**/hand-in/1")
    assert "in the queue, at place 1" in page.inner_text("main")
    with page.expect_download() as download:
        page.get_by_role("link", name="Save the receipt").click()
    assert Path(download.value.path()).read_bytes() == course.queue.hand_in(1).receipt
    # The verdicts appear: by themselves where scripts run.
    course.queue.take(1)
    course.queue.save_found(1, Found((question("b", "wrong answer", MESSAGE),), device="cpu", judged_at="now"))
    if script:
        page.wait_for_selector("text=63 wrong elements", timeout=15_000)
    else:
        page.reload()
    assert "63 wrong elements" in page.inner_text("main")
    context.close()


def test_a_file_that_is_too_large_is_refused_before_and_after_it_is_sent(
    browser: Any, served: Served, tmp_path: Path
) -> None:
    with (tmp_path / "large.ipynb").open("wb") as file:
        file.truncate(21_000_000)
    for script, where in ((True, "#too-large"), (False, "[role=alert]")):
        context = context_of(browser, served, served.client("ann"), java_script_enabled=script)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{served.port}/lab/adding")
        page.get_by_label("Your notebook").set_input_files(tmp_path / "large.ipynb")
        page.get_by_role("button", name="Hand in").click()
        page.wait_for_selector(f"{where}:visible")
        assert "21 MB, and the limit is 20 MB" in page.inner_text(where)
        context.close()
    assert served.course.queue.hand_ins() == []


def test_two_assistants_mark_at_once_and_both_are_listed(browser: Any, served: Served) -> None:
    from rich.console import Console

    course = served.course
    with_mathjax(course)
    served.client("ann").hand_in(course.right)
    store = FileStore(course.tree)
    take_in(course.queue, course.tree, store, "adding")
    grade_class(course.root, course.tree, "adding", Options(workers=2), Console(quiet=True))
    address = f"http://127.0.0.1:{served.port}/mark/adding/"
    contexts = [context_of(browser, served, served.client(name, ASSISTANT)) for name in ("Tim", "Tom")]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.goto(address)
        page.get_by_role("link", name="e. Explain").click()
        page.locator("tbody a").first.click()
        page.wait_for_selector("#points")
    for page, points in zip(pages, ("1", "2"), strict=True):
        page.fill("#points", points)
        page.get_by_role("button", name="Save and next").click()
        page.wait_for_load_state()
    # The second is shown what the first gave, and decides; then the newest holds.
    assert "marked by someone else" in pages[1].inner_text("[role=alert]")
    pages[1].get_by_role("button", name="Save and next").click()
    pages[1].wait_for_url("**show=open")
    assert store.marks("adding")["ann"].points == {"e-why": 2.0}
    given = course.queue.marks("adding")
    assert [(one.marker, one.points) for one in given] == [("Tim", 1.0), ("Tom", 2.0)]
    pages[0].goto(f"http://127.0.0.1:{served.port}/staff/marks/adding")
    text = pages[0].inner_text("main")
    assert text.index("Tim: 1 point,") < text.index("Tom: 2 points")
    assert "differ" in text
    for context in contexts:
        context.close()
