"""nbgrader's formgrader in a real browser: names and due times of the roster, and a mark that comes back everywhere."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mlsys.classroom.gradebook.nbgrader import enter_roster
from mlsys.classroom.students.roster import parse_roster
from mlsys.cli.main import main
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree

from .conftest import Class

pytestmark = [pytest.mark.proof, pytest.mark.browser]

ROSTER = """id,name,time zone,due adding
*,,Europe/Berlin,2026-11-20 23:59
ann,"शर्मा, प्रिया",,
bob,Bob van Dyke,,2026-11-27 23:59
cy,"Öberg, Åsa",,
"""
TOKEN = "of-this-test"
TIMEOUT_S = 60


@contextmanager
def served(tree: CourseTree, folder: Path) -> Iterator[str]:
    """A Jupyter server in the course's folder, as the instructors' page says; its address."""
    own = {f"JUPYTER_{what}_DIR": str(folder / what.lower()) for what in ("CONFIG", "DATA", "RUNTIME")}
    # Only formgrader: the other extensions of this machine take seconds to import.
    enabled = {"nbgrader.server_extensions.formgrader": True}
    every = Path(sys.prefix) / "etc" / "jupyter" / "jupyter_server_config.d"
    for path in every.glob("*.json"):
        for name in json.loads(path.read_text()).get("ServerApp", {}).get("jpserver_extensions", {}):
            enabled.setdefault(name, False)
    (folder / "config").mkdir(parents=True)
    settings = {"ServerApp": {"jpserver_extensions": enabled}, "IdentityProvider": {"token": TOKEN}}
    (folder / "config" / "jupyter_server_config.json").write_text(json.dumps(settings))
    words = ["server", "--no-browser", "--ip=127.0.0.1", "--port=0", "--allow-root"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "jupyter", *words],
            cwd=tree.root,
            env=os.environ | own | {"IPYTHONDIR": str(folder)},
            stdout=log,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        try:
            yield _address(server, folder)
        finally:
            server.terminate()


def _address(server: "subprocess.Popen[bytes]", folder: Path) -> str:
    """Wait until the server answers, and return where."""
    for _ in range(10 * TIMEOUT_S):
        for path in (folder / "runtime").glob("jpserver-*.json"):
            if path.read_text().endswith("}"):
                return str(json.loads(path.read_text())["url"]).rstrip("/")
        try:
            server.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    raise AssertionError((folder / "log").read_text())


def rows(page: Any) -> list[str]:
    """The rows of the page's table, once they are there, each as one line."""
    page.locator("tbody tr td:nth-child(2)").first.wait_for()
    return [re.sub(r"\s+", " ", text).strip() for text in page.locator("tbody tr").all_inner_texts()]


def test_formgrader_shows_names_and_due_times_and_its_mark_is_on_the_page_and_in_every_table(
    browser: Any, course: Class, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter_roster(course.tree, "adding", parse_roster(ROSTER))
    with open_gradebook(course.tree) as gradebook:
        (notebook,) = gradebook.find_submission("adding", "ann").notebooks
        identifier = notebook.id
    records = {path.name: path.read_bytes() for path in course.tree.records("adding").glob("*.json")}
    context = browser.new_context()
    # formgrader asks other hosts for MathJax and fonts; nothing here depends on them.
    context.route(re.compile(r"^https?://(?!127\.0\.0\.1[:/])"), lambda route: route.abort())
    page = context.new_page()
    with served(course.tree, tmp_path / "jupyter") as address:
        page.goto(f"{address}/formgrader/manage_assignments?token={TOKEN}", wait_until="domcontentloaded")
        (assignment,) = rows(page)
        assert assignment.startswith("adding 2026-11-20 22:59:00 UTC")
        page.goto(f"{address}/formgrader/manage_students", wait_until="domcontentloaded")
        assert [row.split(" None")[0].split(" bob")[0].split(" cy")[0].split(" ann")[0] for row in rows(page)] == [
            "Dyke, Bob van",
            "Öberg, Åsa",
            "शर्मा, प्रिया",
        ]
        page.goto(f"{address}/formgrader/submissions/{identifier}", wait_until="domcontentloaded")
        score = page.locator(".score.needs_manual_grade")
        score.fill("1.5")
        with page.expect_response(lambda reply: "/api/grade/" in reply.url and reply.request.method == "PUT"):
            score.press("Tab")
        remark = page.locator("textarea.comment").last
        remark.fill("Well *argued*.")
        with page.expect_response(lambda reply: "/api/comment/" in reply.url and reply.request.method == "PUT"):
            remark.press("Tab")
    context.close()
    monkeypatch.chdir(course.root)
    table = tmp_path / "scores.csv"
    said = ["export", "adding", "--csv", "--partial", "--out", str(table), "--course", str(course.tree.root)]
    assert main(said) == 0
    with_mark = sum(one["points"] for one in json.loads(records["ann.json"])["questions"]) + 1.5
    assert f"ann,ann,{with_mark:g}," in table.read_text(encoding="utf-8-sig")
    shown = course.tree.feedback("adding", "ann").read_text()
    assert "Well <em>argued</em>." in shown
    assert "needs review" not in shown
    assert {path.name: path.read_bytes() for path in course.tree.records("adding").glob("*.json")} == records
