"""Handing in from a notebook, against a real service; and the commands around it."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mlsys import grading
from mlsys.cli.main import main
from mlsys.errors import UserError
from mlsys.grading.handing_in import hand_in as module
from mlsys.receipt import read_receipt, verify
from mlsys.submit.queue import Queue
from mlsys.submit.settings import FILE
from mlsys.submit.tokens import SESSION, TOKEN, check_token, new_session

from .conftest import Client, Course, Served


@pytest.fixture
def notebook(served: Served, tmp_path: Path) -> Path:
    path = tmp_path / "notebooks" / "adding.ipynb"
    path.parent.mkdir()
    path.write_bytes(served.course.right)
    return path


def test_a_notebook_hands_itself_in_and_keeps_the_receipt(
    served: Served, notebook: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, token = f"http://127.0.0.1:{served.port}", served.client("ann").token
    receipt = grading.hand_in(address, token, notebook=str(notebook))
    kept = read_receipt(notebook.with_name(f"receipt-adding-{receipt.number}.json"))
    verify(kept, served.course.signer.public_key, notebook.read_bytes())
    assert repr(receipt) == f"Receipt {receipt.number}: lab adding of ann, {receipt.time}"  # below the cell
    said = capsys.readouterr().out
    assert "place 1 in the queue" in said
    assert f"{address}/hand-in/{receipt.number}" in said
    # As Jupyter starts a kernel, with everything in the environment; and a reply that was lost does no harm.
    for name, value in {"MLSYS_QUEUE": address, "MLSYS_TOKEN": token, "JPY_SESSION_NAME": str(notebook)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(notebook.parent)
    assert grading.hand_in() == receipt
    assert "handed in last" in capsys.readouterr().out
    assert "Hidden tests are not offered" in (grading.hand_in(hidden_tests=True), capsys.readouterr().out)[1]


def test_what_is_wrong_is_a_sentence_and_nothing_is_handed_in(served: Served, notebook: Path) -> None:
    address, token = f"http://127.0.0.1:{served.port}", served.client("ann").token
    large = notebook.with_name("large.ipynb")
    with large.open("wb") as file:
        file.truncate(200_000_000)
    other = notebook.with_name("other.ipynb")
    other.write_text(json.dumps({"cells": [], "metadata": {"mlsys": {"lab": "tiling"}}}))
    text = notebook.with_name("text.ipynb")
    text.write_text("text")
    for words, given, arguments in (
        ("This token is not one of this course", "forged", {"notebook": str(notebook)}),
        ("clear its outputs", token, {"notebook": str(large)}),
        ("of lab 'tiling'", token, {"notebook": str(other), "lab": "adding"}),
        ("unknown lab 'tiling'", token, {"notebook": str(other)}),
        ("does not say of which lab", token, {"notebook": str(text)}),
        ("not a notebook", token, {"notebook": str(text), "lab": "adding"}),
        ("cannot be read", token, {"notebook": str(notebook.with_name("none.ipynb"))}),
        ("name it, as in notebook=", token, {}),
        ("could not be reached", "two\nlines", {"notebook": str(notebook)}),
    ):
        with pytest.raises(UserError, match="(?i)" + re.escape(words)):
            grading.hand_in(address, given, **arguments)
    for bad in ("", "example.edu", "http://example.edu", "ftp://127.0.0.1"):
        with pytest.raises(UserError, match="address"):
            grading.hand_in(bad, token, notebook=str(notebook))
    with pytest.raises(UserError, match="you get the same receipt"):
        grading.hand_in("http://127.0.0.1:1", token, notebook=str(notebook))
    assert served.course.queue.hand_ins() == []


def test_a_notebook_shows_why_nothing_was_handed_in_without_a_traceback() -> None:
    with pytest.raises(UserError) as caught:
        grading.hand_in("example.edu")
    assert caught.value._render_traceback_() == [f"ERROR: {caught.value}"]


def test_the_notebook_says_when_its_clock_is_wrong(
    served: Served, notebook: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_now", lambda: datetime.now(UTC) - timedelta(minutes=42))
    grading.hand_in(f"http://127.0.0.1:{served.port}", served.client("ann").token, notebook=str(notebook))
    assert "Your clock is 42 minutes behind; the receipt's time counts." in capsys.readouterr().out


def test_tokens_are_made_once_kept_nowhere_and_can_be_ended(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    where = ["--course", str(course.tree.root)]
    out = tmp_path / "tokens.csv"
    words = ["tokens", "--roster", str(course.roster), "--out", str(out), *where]
    assert main(words) == 0
    rows = list(csv.DictReader(out.open(encoding="utf-8")))
    assert [row["id"] for row in rows] == ["ann", "bob", "cy"]
    assert out.stat().st_mode & 0o777 == 0o600
    assert main(words) == 2  # the file is there
    out.unlink()
    assert main(words) == 0
    assert not out.exists()  # everybody has one
    assert main([*words, "--again", "bob"]) == 0
    assert [row["id"] for row in csv.DictReader(out.open(encoding="utf-8"))] == ["bob"]
    assert main([*words, "--again", "zoe"]) == 2
    assert main(["tokens", "--staff", "Tim Lee", "--role", "assistant", *where]) == 0
    assert main(["tokens", "--revoke", "ann", *where]) == 0
    said = capsys.readouterr()
    assert "Tim Lee, assistant, valid until" in said.out
    assert "Ended 1 tokens and sessions of ann" in said.out
    assert rows[0]["token"] not in said.out


@pytest.mark.parametrize(
    ("out", "reason"), [("none/tokens.csv", "No such file or directory"), ("file/tokens.csv", "Not a directory")]
)
def test_no_token_changes_if_the_new_ones_cannot_be_written(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture, out: str, reason: str
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / out
    words = ["tokens", "--roster", str(course.roster), "--out", str(path), "--course", str(course.tree.root)]
    assert main(words) == 2
    assert course.queue.logins(TOKEN) == []
    token = course.token("ann")
    assert main([*words, "--again", "ann"]) == 2
    assert check_token(course.queue, token).person == "ann"
    message = f"mlsys: {path} cannot be written ({reason}): name another file with --out. No token was changed\n"
    assert capsys.readouterr().err == 2 * message


def test_no_empty_file_stays_where_the_queue_cannot_be_written(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> int:
        raise UserError("the database is busy")

    out, token = tmp_path / "tokens.csv", course.token("ann")
    words = ["tokens", "--roster", str(course.roster), "--out", str(out), "--course", str(course.tree.root)]
    with monkeypatch.context() as patch:
        patch.setattr(Queue, "forget", busy)
        assert main([*words, "--again", "ann"]) == 2
    assert (out.exists(), check_token(course.queue, token).person) == (False, "ann")
    assert main([*words, "--again", "ann"]) == 0


def test_whom_to_revoke_is_somebody_with_a_token_or_a_session(course: Course, capsys: pytest.CaptureFixture) -> None:
    token, of_bob = course.token("ann"), check_token(course.queue, course.token("bob"))
    new_session(course.queue, of_bob)
    course.queue.forget(person="bob")
    new_session(course.queue, of_bob)  # as somebody has who logs in through the institution
    words = ["tokens", "--course", str(course.tree.root), "--revoke"]
    for typed, hint in (("anne", "did you mean 'ann'? "), ("bobb", "did you mean 'bob'? "), ("", "")):
        assert main([*words, typed]) == 2
        said = capsys.readouterr()
        expected = f"mlsys: unknown person with a token or session {typed!r}: {hint}Known: ann, bob\n"
        assert (said.out, said.err) == ("", expected)
    assert check_token(course.queue, token).person == "ann"
    assert main([*words, "bob"]) == 0
    assert (course.queue.logins(SESSION), len(course.queue.logins(TOKEN))) == ([], 1)


@pytest.mark.proof
def test_the_command_serves_judges_and_survives_a_kill(course: Course) -> None:
    command = [sys.executable, "-m", "mlsys.cli.main", "serve", "--roster", "roster.csv", "--port", "0"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    token = course.token("ann")

    def start() -> tuple["subprocess.Popen[str]", Client]:
        process = subprocess.Popen(
            [*command, "--workers", "1"], cwd=course.root, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        port = int(re.findall(r":(\d+)/", process.stdout.readline())[0])
        return process, Client(port, token)

    first, ann = start()
    number = ann.hand_in(course.right)[1]["receipt"]["number"]
    first.send_signal(signal.SIGKILL)
    first.wait()
    second, ann = start()
    until_s = time.monotonic() + 120
    while json.loads(ann.get(f"/api/hand-ins/{number}")[1])["state"] != "done" and time.monotonic() < until_s:
        time.sleep(0.5)
    assert json.loads(ann.get(f"/api/hand-ins/{number}")[1])["verdicts"]["b"] == "passed"
    assert "Verdicts of the visible tests" in ann.get(f"/hand-in/{number}")[1]
    second.terminate()
    assert second.wait(30) == 0
    graded = subprocess.run(
        [sys.executable, "-m", "mlsys.cli.main", "grade", "adding", "--roster", "roster.csv"],
        cwd=course.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Queue: 1 hand-ins of 1 students, 1 of them new." in graded.stdout, graded.stderr
    assert course.tree.record("adding", "ann").is_file()


@pytest.mark.proof
def test_judging_ends_with_the_service_even_if_that_was_killed_while_it_started(course: Course) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    command = [sys.executable, "-m", "mlsys.cli.main", "serve", "--only-verdicts", "--roster", "roster.csv"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "MLSYS_SERVED_BY": str(gone.pid)}
    done = subprocess.run([*command, "--workers", "1"], cwd=course.root, env=environment, timeout=120, check=False)
    assert done.returncode == 0


def test_on_a_network_tokens_cross_encrypted_or_not_at_all(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(course.root)
    words = ["serve", "--roster", "roster.csv"]
    assert main([*words, "--host", "0.0.0.0"]) == 2
    assert main([*words, "--address", "http://queue.example.edu"]) == 2
    assert main([*words, "--address", "queue.example.edu"]) == 2
    said = capsys.readouterr().err
    assert (said.count("put a proxy with TLS before it"), said.count("is no address")) == (2, 1)


@pytest.mark.parametrize("setting", ["labs", "feedback", "race_boards"])
def test_every_lab_in_the_settings_is_one_of_the_course(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, setting: str
) -> None:
    async def served(*_: object, **__: object) -> None:
        started.append(setting)

    started: list[str] = []
    monkeypatch.chdir(course.root)
    monkeypatch.setattr("mlsys.submit.server.serve", served)
    file, words = course.tree.queue / FILE, ["serve", "--roster", "roster.csv"]
    file.write_text(f'{setting} = ["adding", "ading"]\n')
    assert main(words) == 2
    said = capsys.readouterr().err
    assert f"queue/{FILE}: {setting}: unknown lab 'ading': did you mean 'adding'? Known: adding" in said
    assert started == []
    file.write_text(f'{setting} = ["adding"]\n')
    assert (main(words), started) == (0, [setting])
