"""The server of the marking pages: who reaches it, what its forms do, and that answers cannot leave their place."""

import sqlite3
from dataclasses import replace

import pytest
from sqlalchemy.exc import OperationalError

from mlsys.classroom.marking.answers import MARKED, find
from mlsys.classroom.marking.rubric import Item, rubric_of

from .conftest import Class, Client


def answer_of(course: Class, student: str):  # type: ignore[no-untyped-def]
    (answer,) = [one for one in course.marking.answers("e") if one.student == student]
    return answer


@pytest.mark.parametrize("path", ["/", "/x/", "/static/marking.js", "/../", "//", "/%00/"])
def test_without_the_token_there_is_nothing(client: Client, path: str) -> None:
    assert client.send("GET", path)[:2] == (404, "not found")
    assert client.send("POST", path, "points=1")[0] == 404


def test_a_page_of_another_site_reaches_nothing(course: Class, client: Client) -> None:
    base, answer = client.server.site.base, answer_of(course, "ann")
    assert client.send("GET", f"{base}/", Host="evil.example")[0] == 404  # a name that was pointed at this machine
    body = f"seen={answer.seen}&points=2&comment=&do=save"
    for origin in ("https://evil.example", "null"):
        assert client.send("POST", f"{base}/q/e/{answer.key}", body, Origin=origin)[0] == 403
    assert answer_of(course, "ann").points is None
    assert client.server.server_address[0] == "127.0.0.1"
    assert len(client.server.site.token) >= 32


def test_every_page_says_that_no_script_but_ours_runs_and_is_kept_nowhere(course: Class, client: Client) -> None:
    key = answer_of(course, "bob").key
    for path in ("/", "/q/e", f"/q/e/{key}", "/q/e/rubric", "/nothing", "/static/marking.js"):
        _, _, headers = client.send("GET", f"{client.server.site.base}{path}")
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_what_a_student_wrote_is_cleaned(course: Class, client: Client) -> None:
    _, page = client.get(f"/q/e/{answer_of(course, 'bob').key}")
    shown = page.split('<div class="answer">')[1].split("</section>")[0]
    for sign in ("<script", "onerror", "<form", "<input", 'href="javascript'):
        assert sign not in shown


def test_whoever_marks_sees_what_a_hidden_test_said(course: Class, client: Client) -> None:
    store = course.marking.store
    record = store.record("adding", "bob")
    assert record
    failed = replace(record.questions[0], verdict="error", private="IndexError: <b>271828</b>")
    store.save_record(replace(record, questions=(failed, *record.questions[1:])))
    (key,) = [one.key for one in course.marking.answers(failed.question) if one.student == "bob"]
    _, page = client.get(f"/q/{failed.question}/{key}")
    assert "for you, not for the student" in page
    assert "IndexError: &lt;b&gt;271828&lt;/b&gt;" in page


@pytest.mark.parametrize(
    "path",
    [
        "/static/mathjax/../../../pyproject.toml",
        "/static/mathjax/%2e%2e/%2e%2e/x.js",
        "/static/marking.py",
        "/static/",
        "/q/zzz",
        "/q/e/none",
        "/q",
    ],
)
def test_an_address_that_is_not_there_is_said(client: Client, path: str) -> None:
    status, page = client.get(path)
    assert status == 404
    assert "All questions" in page


def test_a_form_gives_the_points_of_what_is_chosen_and_goes_on_to_the_next(course: Class, client: Client) -> None:
    first, second, *_ = course.marking.answers("e")
    status, page = client.get(f"/q/e/{first.key}")
    assert "bytes cross the bus" in page
    status, _, headers = client.send(
        "POST",
        f"{client.server.site.base}/q/e/{first.key}",
        "&".join(
            ["seen=" + first.seen, "item=bytes+cross+the+bus", "item=a+number", "points=", "comment=more", "do=save"]
        ),
    )
    assert (status, headers["Location"]) == (303, f"{client.server.site.base}/q/e/{second.key}?show=open")
    now = find(course.marking.answers("e"), first.key)
    assert (now.state, now.points, now.comment) == (MARKED, 1.5, "bytes cross the bus\n\na number\n\nmore")
    _, page = client.get(f"/q/e/{first.key}?show=all")
    assert page.count(" checked>") == 2
    assert ">more</textarea>" in page


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"points": "many"}, "is not a number of points"),
        ({"points": "3"}, "are not between 0 and the 2"),
        ({"points": "nan"}, "is not a number of points"),
        ({"points": ""}, "There are no points"),
        ({"points": "1", "item": "gone"}, "The rubric has changed"),
        ({"points": "1", "seen": "old"}, "This answer was marked by someone else"),
    ],
)
def test_a_form_that_is_refused_keeps_what_was_typed(
    course: Class, client: Client, form: dict[str, str], said: str
) -> None:
    answer = answer_of(course, "ann")
    status, page = client.post(
        f"/q/e/{answer.key}", **({"seen": answer.seen, "comment": "my <words>", "do": "save"} | form)
    )
    assert status == 409
    assert said in page
    assert "my &lt;words&gt;</textarea>" in page
    assert answer_of(course, "ann").points is None


def test_while_somebody_else_writes_what_was_typed_stays(
    course: Class, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlsys.classroom.marking.answers.MAX_WAIT_S", 0.1)
    answer = answer_of(course, "ann")
    form = {"seen": answer.seen, "points": "1", "comment": "long and careful", "do": "save"}
    with course.marking.store.lock():
        status, page = client.post(f"/q/e/{answer.key}", **form)
    assert (status, "Another grading run" in page, "long and careful</textarea>" in page) == (409, True, True)

    def locked(*_: object) -> None:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise OperationalError("", None, error)

    monkeypatch.setattr("mlsys.classroom.marking.answers.give_mark", locked)
    status, page = client.post(f"/q/e/{answer.key}", **form)
    assert (status, "long and careful</textarea>" in page) == (409, True)
    assert "Traceback" not in page


def test_a_mark_is_taken_back(course: Class, client: Client) -> None:
    answer = answer_of(course, "ann")
    course.marking.save("e", answer.key, answer.seen, 1, "x")
    seen = answer_of(course, "ann").seen
    assert client.post(f"/q/e/{answer.key}?show=all", seen=seen, points="1", comment="x", do="back")[0] == 303
    assert answer_of(course, "ann").points is None


def test_a_rubric_is_edited_and_two_editors_do_not_overwrite_each_other(course: Class, client: Client) -> None:
    _, page = client.get("/q/e/rubric")
    seen = page.split('name="seen" value="')[1].split('"')[0]
    lines = {"seen": seen, "points": ["1,5", "-0.5", ""], "text": ["all\nof it", "no <unit>", " "]}
    assert client.post("/q/e/rubric", **lines)[0] == 303
    assert rubric_of(course.tree, course.root, "adding", "e") == (Item(1.5, "all of it"), Item(-0.5, "no <unit>"))
    status, page = client.post("/q/e/rubric", **(lines | {"points": ["2"], "text": ["mine"]}))
    assert status == 409
    assert "changed by someone else" in page
    assert "mine" in page
    status, page = client.post("/q/e/rubric", **(lines | {"points": ["x"], "text": ["mine"]}))
    assert "is not a number of points" in page
    assert len(rubric_of(course.tree, course.root, "adding", "e")) == 2


def test_a_form_that_is_too_large_is_not_read(client: Client) -> None:
    assert client.send("POST", f"{client.server.site.base}/q/e/x", "x" * 300_000)[0] == 413
