"""The service over HTTP: who gets in, what is taken, what is refused, and that nobody reads another's."""

import json
import socket
import time
from datetime import UTC, datetime, timedelta

import pytest

from mlsys.receipt import parse_receipt, verify
from mlsys.submit.tokens import ASSISTANT, INSTRUCTOR, STUDENT, new_token

from .conftest import Client, Course, Served, serving


def form(data: bytes, *, hidden: bool = False) -> tuple[bytes, str]:
    """The body of a form with a file, as browsers send it."""
    parts = [b'--x\r\nContent-Disposition: form-data; name="notebook"; filename="a.ipynb"\r\n\r\n' + data + b"\r\n"]
    parts += [b'--x\r\nContent-Disposition: form-data; name="hidden"\r\n\r\nyes\r\n'] if hidden else []
    return b"".join(parts) + b"--x--\r\n", "multipart/form-data; boundary=x"


def test_a_notebook_comes_back_as_a_receipt_that_the_key_verifies(served: Served) -> None:
    ann = served.client("ann")
    status, reply = ann.hand_in(served.course.right)
    receipt = parse_receipt(json.dumps(reply["receipt"]).encode())
    assert (status, receipt.student, receipt.lab, receipt.place) == (201, "ann", "adding", 1)
    verify(receipt, ann.get("/key")[1], served.course.right)
    assert served.course.queue.content(receipt.number) == served.course.right
    assert parse_receipt(ann.get(f"/hand-in/{receipt.number}/receipt.json")[1].encode()) == receipt


def test_the_page_takes_a_file_and_shows_the_receipt(served: Served) -> None:
    browser = served.client("ann").logged_in()
    body, kind = form(served.course.right)
    origin = f"http://127.0.0.1:{served.port}"
    status, _, headers = browser.send("POST", "/lab/adding", body, Content_Type=kind, Origin=origin)
    assert status == 303
    status, text = browser.get(headers["Location"])
    assert (status, text.count("Receipt 1"), text.count("in time")) == (200, 2, 1)
    assert "Ann Baker" in text


def test_after_a_restart_sessions_and_hand_ins_are_there(course: Course) -> None:
    with serving(course) as first:
        browser = first.client("ann").logged_in()
        number = first.client("ann").hand_in(course.right)[1]["receipt"]["number"]
    with serving(course) as second:
        browser.port = second.port
        assert browser.get(f"/hand-in/{number}")[0] == 200


@pytest.mark.parametrize("token", ["", "nonsense", "x" * 500, "a\tb", "Bearer", "é"])
def test_a_forged_token_lets_nobody_in(served: Served, token: str) -> None:
    client = Client(served.port, token.encode().decode("latin-1"))
    status, reply = client.hand_in(served.course.right)
    assert (status, served.course.queue.hand_ins()) == (401, [])
    assert "token" in reply["fault"]


def test_an_expired_token_and_whoever_left_the_roster_get_a_sentence(served: Served) -> None:
    course = served.course
    expired = new_token(course.queue, "ann", STUDENT, datetime.now(UTC) - timedelta(seconds=1))
    status, reply = Client(served.port, expired).hand_in(course.right)
    assert (status, "expired on" in reply["fault"]) == (401, True)
    status, reply = served.client("zoe").hand_in(course.right)
    assert (status, "not in the roster" in reply["fault"]) == (401, True)
    assert course.queue.hand_ins() == []


def test_the_database_holds_no_token(served: Served) -> None:
    token = served.client("ann").token
    content = b"".join(path.read_bytes() for path in served.course.tree.queue.glob("queue.db*"))
    assert token.encode() not in content


def test_tokens_cannot_be_tried_for_long(served: Served) -> None:
    for _ in range(10):
        assert Client(served.port).post("/login", token="wrong")[0] == 401
    status, text = Client(served.port).post("/login", token=served.client("ann").token)
    assert (status, "too many tokens" in text.lower()) == (401, True)


def test_nobody_reads_anothers(served: Served) -> None:
    ann, bob = served.client("ann"), served.client("bob")
    number = ann.hand_in(served.course.right)[1]["receipt"]["number"]
    assistant, instructor = served.client("Tim", ASSISTANT), served.client("Ina", INSTRUCTOR)
    for path in (f"/hand-in/{number}", f"/hand-in/{number}/receipt.json", f"/api/hand-ins/{number}"):
        # What is another's is answered as what is not there.
        there, missing = bob.get(path), bob.get(path.replace(str(number), "77"))
        assert (there[0], missing[0], there[1]) == (404, 404, missing[1].replace("hand-in 77", f"hand-in {number}"))
        assert [client.get(path)[0] for client in (ann, assistant, instructor)] == [200, 404, 200]
        assert Client(served.port).get(path)[0] == 401
    assert "ann" not in bob.get("/lab/adding")[1]
    for path in ("/staff", "/staff/marks/adding", "/mark/adding/"):
        assert bob.get(path)[0] == 404


def test_feedback_is_ones_own_and_only_when_it_is_out(course: Course) -> None:
    for student in ("ann", "bob"):
        page = course.tree.feedback("adding", student)
        page.parent.mkdir(parents=True)
        page.write_text(f"page of {student}")
    with serving(course) as closed:
        assert closed.client("ann").get("/feedback/adding")[0] == 404
    with serving(course, feedback=("adding",)) as out:
        assert out.client("ann").get("/feedback/adding") == (200, "page of ann")
        assert out.client("cy").get("/feedback/adding")[0] == 404
        assert out.client("Ina", INSTRUCTOR).get("/feedback/adding")[0] == 404


def test_another_site_can_send_nothing_and_show_nothing(served: Served) -> None:
    browser = served.client("ann").logged_in()
    body, kind = form(served.course.right)
    status, text, _ = browser.send("POST", "/lab/adding", body, Content_Type=kind, Origin="https://elsewhere.example")
    assert (status, "another site" in text, served.course.queue.hand_ins()) == (403, True, [])
    assert browser.send("GET", "/", None, Host="elsewhere.example")[0] == 404
    _, _, headers = browser.send("GET", "/")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    _, _, headers = Client(served.port).send(
        "POST", "/login", f"token={served.client('ann').token}", Content_Type="application/x-www-form-urlencoded"
    )
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Lax" in headers["Set-Cookie"]


def test_a_logout_ends_the_session_on_the_server(served: Served) -> None:
    browser = served.client("ann").logged_in()
    kept = dict(browser.cookies)
    assert browser.post("/logout")[0] == 303
    assert Client(served.port, cookies=kept).get("/")[0] == 401


BAD = {
    "nothing": (b"", "empty"),
    "spaces": (b"  \n ", "empty"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not a notebook"),
    "a text": (b"def f(): pass", "not a notebook"),
    "a number": (b"17", "not a notebook"),
    "no cells": (b'{"metadata": {}}', "not a notebook"),
    "cells of no kind": (b'{"cells": {"a": 1}}', "not a notebook"),
    "cut off": (b'{"cells": [{"cell_type": "code"', "not a notebook"),
    "deep": (b'{"cells": [' + b"[" * 200_000, "not a notebook"),
    "another lab's": (b'{"cells": [], "metadata": {"mlsys": {"lab": "tiling"}}}', "of lab 'tiling'"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_notebook_of_the_lab_is_refused_with_a_sentence(served: Served, name: str) -> None:
    data, words = BAD[name]
    ann = served.client("ann")
    before = ann.hand_in(served.course.right)[1]["receipt"]
    status, reply = ann.hand_in(data)
    assert (status, words in reply["fault"], "stays" in reply["fault"]) == (400, True, True)
    assert [one.sha256 for one in served.course.queue.hand_ins()] == [before["sha256"]]


def test_200_megabytes_are_answered_and_never_held(served: Served) -> None:
    ann = served.client("ann")
    status, reply = ann.hand_in(bytes(200_000_000))
    assert (status, "200 MB" in reply["fault"], "20 MB" in reply["fault"]) == (400, True, True)
    assert (served.service.held_bytes, served.course.queue.hand_ins()) == (0, [])
    browser = ann.logged_in()
    body, kind = form(bytes(25_000_000))
    status, text, _ = browser.send("POST", "/lab/adding", body, Content_Type=kind)
    assert (status, "the limit is 20 MB" in text) == (400, True)


def test_whoever_goes_away_in_the_middle_leaves_nothing(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        connection.sendall(
            b"POST /api/labs/adding HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
            b"Content-Length: 100000\r\n\r\n{" % (served.port, served.client("ann").token.encode())
        )
    assert served.client("bob").hand_in(served.course.right)[0] == 201
    assert [one.student for one in served.course.queue.hand_ins()] == ["bob"]
    ends = time.monotonic() + 5  # an answer leaves before what held its question is given back
    while served.service.held_bytes and time.monotonic() < ends:
        time.sleep(0.01)
    assert served.service.held_bytes == 0


def test_too_often_is_a_sentence_that_says_when(course: Course) -> None:
    with serving(course, hand_ins_per_hour=2) as limited:
        ann = limited.client("ann")
        assert [ann.hand_in(course.another(number))[0] for number in range(3)] == [201, 201, 429]
        fault = ann.hand_in(course.another(4))[1]["fault"]
        assert ("2 times within an hour" in fault, "in 60 minutes" in fault) == (True, True)
        assert limited.client("bob").hand_in(course.another(5))[0] == 201
    with serving(course, hand_ins_per_hour=2) as again:  # a restart forgives nothing
        assert again.client("ann").hand_in(course.another(6))[0] == 429


def test_other_addresses_labs_and_roles_get_sentences(served: Served) -> None:
    ann = served.client("ann")
    assert ann.hand_in(served.course.right, lab="adding2")[0] == 404
    assert ann.hand_in(served.course.right, lab="..%2f..")[0] == 404
    assert ann.get("/nothing")[0] == 404
    assert ann.get("/feedback/..%2f..%2fsecret")[0] == 404
    assert ann.get("/static/queue.css")[0] == 200
    assert ann.get("/board/adding")[0] == 404
    status, reply = served.client("Tim", ASSISTANT).hand_in(served.course.right)
    assert (status, "only students" in reply["fault"].lower()) == (400, True)


def test_one_person_asks_only_so_often(served: Served) -> None:
    ann = served.client("ann")
    assert {ann.get("/key")[0] for _ in range(299)} == {200}
    assert ann.get("/key")[0] == 429
    assert served.client("bob").get("/key")[0] == 200
