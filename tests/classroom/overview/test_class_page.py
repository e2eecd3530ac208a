"""The page about a class: which attempt counts and why, every score, late days, kernels; nothing of it runs."""

import base64
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import pytest

from mlsys.classroom.overview.class_page import ClassPage, render, write_class_page
from mlsys.classroom.overview.kernels import Raced, Roof, chart, races_of, roof_of
from mlsys.classroom.overview.standing import standings
from mlsys.classroom.store.record import MARKED, QuestionRecord, Record
from mlsys.classroom.store.score_history import ScoreHistory
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.classroom.students.roster import Roster, parse_roster
from mlsys.cli.main import main
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.timed import Timed

ROSTER = """id,name,section,time zone,late days,due first,due adding
*,,,Europe/Berlin,3,2026-11-10 12:00,2026-11-20 12:00
ann,"Baker, Ann",A,,,,
bob,Bob <b>C</b>,B,,,,
cy,Cy,B,,,,
"""
RACE = tuple(
    Timed("NVIDIA H200", f"{size} x {size}", "fp32", 2 * size * 1e-6, size * 1e-6, 0.5, 1e6 * size**2, 1e4 * size)
    for size in (64, 512)
)


def question(name: str, verdict: str, points: float, **more: object) -> QuestionRecord:
    return QuestionRecord(name, f"Title {name}", f"{name}-test", verdict, points, 4, **more)  # type: ignore[arg-type]


def recorded(student: str, *questions: QuestionRecord, submission: str = "d1", refused: str = "") -> Record:
    return Record(student, "adding", "1", "now", submission=submission, questions=questions, refused=refused)


@pytest.fixture
def store(tmp_path) -> FileStore:  # type: ignore[no-untyped-def]
    return FileStore(CourseTree(tmp_path))


def roster() -> Roster:
    return parse_roster(ROSTER)


def at(day: int, hour: int) -> datetime:
    return datetime(2026, 11, day, hour, tzinfo=UTC)


def test_the_attempt_that_counts_is_named_with_the_reason(store: FileStore) -> None:
    attempts = tuple(Attempt(f"d{number}", f"{number}.ipynb", "moodle", at(18, number)) for number in (1, 2, 3))
    store.save_history("adding", "ann", History(attempts))
    store.save_history("adding", "bob", History(attempts[:1]))
    records = {one: recorded(one, question("a", "passed", 4)) for one in ("ann", "bob")}

    def counted(policy: str, digest: str) -> dict[str, str]:
        known = records | {"ann": replace(records["ann"], submission=digest)}
        return {one.student: one.counted for one in standings(store, "adding", known, roster(), policy)}

    assert counted("newest", "d3") == {
        "ann": "attempt 3 of 3: the newest",
        "bob": "the only attempt",
        "cy": "Handed in nothing",
    }
    assert counted("best", "d1")["ann"] == "attempt 1 of 3: the best"
    assert counted("on-time", "d2")["ann"] == "attempt 2 of 3: the last on time"
    assert "waits for a yes" in counted("newest", "d2")["ann"]


def test_the_ledger_has_the_late_days_of_what_counts_at_each_lab(store: FileStore) -> None:
    due = roster().students["ann"].due
    first = Attempt("f", "first.ipynb", "moodle", due["first"] + timedelta(hours=30))
    second = Attempt("d1", "second.ipynb", "moodle", due["adding"] - timedelta(minutes=1))
    store.save_history("first", "ann", History((first,)))
    store.save_record(replace(recorded("ann", submission="f"), lab="first"))
    store.save_history("adding", "ann", History((second,)))
    store.save_record(recorded("ann"))
    (ann, *_) = standings(store, "adding", {"ann": recorded("ann")}, roster(), "newest")
    assert [(one.lab, one.used, one.left) for one in ann.ledger] == [("first", 2, 1), ("adding", 0, 1)]
    assert ann.ledger[0].due == "2026-11-10 12:00"
    assert ann.ledger[0].handed_in == "2026-11-11 18:00 CET"
    store.save_history("first", "ann", History((replace(first, time=None),)))
    (ann, *_) = standings(store, "adding", {"ann": recorded("ann")}, roster(), "newest")
    assert (ann.ledger[0].handed_in, ann.ledger[0].used, ann.ledger[0].left) == ("time not known", None, 3)


def test_the_history_of_a_score_says_why_it_changed() -> None:
    def now(verdict: str, points: float, submission: str = "d1") -> Record:
        return recorded("ann", question("e", verdict, points), submission=submission)

    steps = [
        (now("needs gpu", 0), "first graded"),
        (now("slow", 1), "graded on a GPU"),
        (now("slow", 1), None),
        (now(MARKED, 3), "marked by a person"),
        (now("slow", 1), "the mark was taken back"),
        (now("passed", 4, "d2"), "another attempt counts"),
        (now(MARKED, 2, "d2"), "marked by a person"),
        (now("passed", 4, "d3"), "another attempt counts, so the mark no longer holds"),
        (now("wrong answer", 0, "d3"), "graded again"),
    ]
    history = ScoreHistory("ann")
    for record, why in steps:
        after = history.with_record(record, "now")
        assert [one.why for one in after.scores[len(history.scores) :]] == ([why] if why else [])
        history = after
    last = history.last_marked("e")
    assert last is not None
    assert (last.points, last.submission) == (2, "d2")
    assert history.last_marked("a") is None


def page(store: FileStore) -> str:
    hostile = "<script>alert(1)</script>"
    records = {
        "ann": recorded("ann", question("a", "passed", 4), question("e", "slow", 2, timed=RACE)),
        "bob": recorded("bob", question("a", "wrong answer", 0, message=hostile), question("e", "needs gpu", 0)),
    }
    store.save_history("adding", "bob", History((Attempt("d1", hostile, "moodle", refused=hostile),)))
    rows = standings(store, "adding", records, roster(), "newest")
    return render(ClassPage(f"A {hostile} lab", "now", rows, records["ann"].questions, races_of(records.values())))


def test_the_page_has_one_script_which_its_policy_names(store: FileStore) -> None:
    text = page(store)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert "default-src 'none'" in text
    assert "Bob &lt;b&gt;C&lt;/b&gt;" in text
    assert not re.search(r'(src|href)="?(https?:)?//', text)


def test_kernels_stand_with_their_device_and_ratio_and_beside_the_roofs_of_its_record(store: FileStore) -> None:
    text = unescape(page(store))
    assert "Kernels of question e on NVIDIA H200" in text
    assert "The roofs are those of this device's benchmark record." in text
    assert text.count('class="kernel"') == len(RACE)
    assert text.count(">0.50<") == len(RACE)
    elsewhere = races_of([recorded("ann", question("e", "slow", 1, timed=(replace(RACE[0], device="GPU X"),)))])
    assert "no benchmark record of GPU X" in elsewhere[0].note
    assert 'class="roof"' not in elsewhere[0].chart
    bare = races_of([recorded("ann", question("e", "slow", 1, timed=(replace(RACE[0], flops=0.0),)))])
    assert (bare[0].chart, len(bare[0].raced)) == ("", 1)


def test_a_point_at_the_roof_is_drawn_at_the_roof() -> None:
    roof = Roof(1e12, 1e13)
    for intensity, rate in ((100.0, 1e13), (1.0, 1e12)):  # at the flat part, and on the slope
        timed = Timed("x", "1", "fp32", intensity * 1e9 / rate, 1.0, 1.0, intensity * 1e9, 1e9)
        svg = chart([Raced("ann", "e", timed)], roof)
        x, y = map(float, re.search(r'class="kernel" cx="([\d.]+)" cy="([\d.]+)"', svg).groups())  # type: ignore[union-attr]
        corners = [tuple(map(float, one.split(","))) for one in re.search(r'points="([^"]+)"', svg)[1].split()]  # type: ignore[index]
        (x0, y0), (x1, y1), (_, top) = corners
        on_roof = top if intensity == 100 else y0 + (x - x0) * (y1 - y0) / (x1 - x0)
        assert y == pytest.approx(on_roof, abs=0.2)


def test_the_roofs_of_a_record_are_those_that_no_library_set() -> None:
    roof = roof_of("NVIDIA H200", "fp32")
    assert roof is not None
    assert 4e12 < roof.bytes_per_s < 4.8e12  # the data sheet says 4.8 TB/s
    assert 55e12 < roof.flops_per_s < 67e12  # and 67 TFLOP/s
    assert roof_of("NVIDIA H200", "fp99") is None
    assert roof_of("Some other GPU", "fp32") is None


def test_a_misspelt_lab_is_named_with_the_nearest_and_those_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "labs" / "adding").mkdir(parents=True)
    (tmp_path / "labs" / "adding" / "lab.py").touch()
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert main(["class", "ading"]) == 2
    assert capsys.readouterr().err == "mlsys: unknown lab 'ading': did you mean 'adding'? Known: adding\n"
    assert sorted(tmp_path.rglob("*")) == before
    assert main(["class", "adding"]) == 2
    assert "no results of adding: run `mlsys grade adding` first" in capsys.readouterr().err


def test_without_results_there_is_no_page(store: FileStore) -> None:
    with pytest.raises(UserError, match="no results of adding"):
        write_class_page(store.tree, store, "adding", None)
