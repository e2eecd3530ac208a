"""Late work and groups from the roster: one score per student in every place, and no change of a rule without a yes."""

import csv
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.adding_course import copy_without_submissions
from helpers.gpu_passes import graded_elsewhere
from helpers.handing_in import stamped
from rich.console import Console

from mlsys.classroom.gpu_pass import merge, pack
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.marks import marked_records, refresh_pages
from mlsys.classroom.gradebook.nbgrader import export_gradebook
from mlsys.classroom.lms.fill import score_of
from mlsys.classroom.report import to_csv
from mlsys.classroom.store.record import LATE, Record
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.classroom.students.late import Late
from mlsys.classroom.students.roster import Roster, parse_roster
from mlsys.cli.main import main
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

QUIET = Console(quiet=True)
DUE = datetime(2026, 3, 2, 12, tzinfo=UTC)
Course = tuple[Path, CourseTree, Options]


def roster(percent: int, days: int = 1) -> Roster:
    return parse_roster(text(percent, days))


def text(percent: int, days: int = 1) -> str:
    return (
        "id,name,time zone,late days,late percent,due adding,group adding\n"
        f"*,,UTC,{days},{percent},2026-03-02 12:00,\n"
        "ann,Ann,,,,,pair\nbob,Bob,,,,,pair\ncy,Cy,,,,,\n"
    )


@pytest.fixture(scope="module")
def graded(adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Ann hands in for herself and Bob, 50 hours late; Cy is in time. Do not change it."""
    root = tmp_path_factory.mktemp("late") / "repository"
    tree = copy_without_submissions(adding[0], root)
    notebooks = {name: (adding[2] / f"{sample}.ipynb").read_bytes() for name, sample in SAMPLES.items()}
    times = {"ann": DUE + timedelta(hours=50), "cy": DUE}
    stamped(root.parent / "in", {f"{name}.ipynb": (data, times[name]) for name, data in notebooks.items()}, "adding")
    options = Options(root.parent / "in", workers=1, roster=roster(10))
    grade_class(root, tree, "adding", options, QUIET)
    return root, tree, options


SAMPLES = {"ann": "right", "cy": "half-done"}


@pytest.fixture
def course(graded: Course, tmp_path: Path) -> Course:
    """A copy of the graded class."""
    root, tree, options = graded
    shutil.copytree(root.parent, tmp_path / "all")
    root = tmp_path / "all" / root.name
    tree = CourseTree(root / tree.root.relative_to(graded[0]))
    return root, tree, replace(options, submissions=tmp_path / "all" / "in")


def mark(tree: CourseTree, student: str, points: float | None) -> None:
    """Mark both open answers, as formgrader does."""
    with open_gradebook(tree) as gradebook:
        (notebook,) = gradebook.find_submission("adding", student).notebooks
        for grade in notebook.grades:
            if grade.cell.name in ("d-speed", "e-why"):
                grade.manual_score, grade.needs_manual_grade = points, points is None
        gradebook.db.commit()


def everywhere(tree: CourseTree, student: str) -> set[float]:
    """The student's score in each place that shows one."""
    record = marked_records(FileStore(tree), "adding", refresh_pages(tree, FileStore(tree), "adding"))[student]
    assert record is not None
    exported = tree.results("adding").with_name("nbgraders.csv")
    export_gradebook(tree, "adding", exported)
    with exported.open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["student_id"] == student]
    rows = csv.DictReader(to_csv([record]).splitlines())
    page = tree.feedback("adding", student).read_text()
    on_page = page.split('<p class="total"><strong>')[1].split("</strong>")[0]
    for_lms = score_of(record, partial=True).points
    assert for_lms is not None
    found = (record.points, float(row["score"]), sum(float(one["points"]) for one in rows), float(on_page), for_lms)
    return {round(points, 4) for points in found}


def test_the_penalty_is_the_same_in_every_place_also_after_a_persons_mark(course: Course) -> None:
    _, tree, _ = course
    record = FileStore(tree).record("adding", "ann")
    assert record is not None
    # Three late days are needed and one is there: a fifth of the points goes.
    assert record.handed_in.late == Late(50 * 60, 3, 1, 10)
    assert everywhere(tree, "ann") == {round(6 * 0.8, 4)}
    assert "it needs 3 late days, 1 was left; 20% of the points are taken off" in (
        tree.feedback("adding", "ann").read_text()
    )
    mark(tree, "ann", 1.5)
    assert everywhere(tree, "ann") == {round((6 + 3) * 0.8, 4)}
    assert len(everywhere(tree, "cy")) == 1
    assert "late" not in tree.feedback("adding", "cy").read_text().split("<main>")[1]


def test_a_lost_gradebook_comes_back_with_its_penalties(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, tree, options = course
    monkeypatch.chdir(root)
    before = everywhere(tree, "ann")
    tree.gradebook.unlink()
    out = tmp_path / "scores.csv"
    assert main(["export", "adding", "--csv", "--partial", "--out", str(out), "--course", str(tree.root)]) == 0
    assert f"ann,ann,{before.copy().pop():g}," in out.read_text()
    grade_class(root, tree, "adding", options, QUIET)
    assert everywhere(tree, "ann") == everywhere(tree, "bob") == before


def test_a_group_is_judged_once_and_every_member_gets_the_score_and_the_marks(course: Course) -> None:
    root, tree, options = course
    ann, bob = (FileStore(tree).record("adding", student) for student in ("ann", "bob"))
    assert ann is not None
    assert bob is not None
    assert ann.questions == bob.questions  # the seconds that judging took too
    assert ann.handed_in == bob.handed_in
    mark(tree, "bob", 1.5)
    batch = grade_class(root, tree, "adding", options, QUIET)
    assert (batch.graded_now, batch.changes, batch.collected.missing) == (0, (), ())
    assert everywhere(tree, "ann") == everywhere(tree, "bob") == {7.2}
    mark(tree, "ann", 1)
    assert everywhere(tree, "bob") == everywhere(tree, "ann") == {6.4}
    mark(tree, "bob", None)  # takes the marks back
    assert everywhere(tree, "bob") == everywhere(tree, "ann") == {4.8}


def test_a_groups_work_goes_to_a_gpu_once_and_comes_back_to_every_member(course: Course, tmp_path: Path) -> None:
    _, tree, _ = course
    data, count = pack(tree, "adding")
    assert count == 2  # of three students
    (tmp_path / "done.zip").write_bytes(graded_elsewhere(data, 3.5))
    assert set(merge(tree, "adding", tmp_path / "done.zip").filled) == {"ann", "bob", "cy"}
    assert everywhere(tree, "ann") == everywhere(tree, "bob") == {round(9.5 * 0.8, 4)}


def test_a_new_member_gets_the_groups_score_without_another_judgment(course: Course) -> None:
    root, tree, options = course
    before = FileStore(tree).record("adding", "ann")
    larger = parse_roster(text(10).replace("cy,Cy,,,,,", "cy,Cy,,,,,\ndi,Di,,,,,pair"))
    batch = grade_class(root, tree, "adding", replace(options, roster=larger), QUIET)
    assert batch.changes == ()
    di = FileStore(tree).record("adding", "di")
    assert before is not None
    assert di is not None
    assert di.questions == before.questions
    assert everywhere(tree, "di") == {4.8}


def test_a_group_that_replaces_a_members_own_score_waits_for_a_yes(course: Course) -> None:
    root, tree, options = course
    score = everywhere(tree, "cy")
    larger = replace(options, roster=parse_roster(text(10).replace("cy,Cy,,,,,", "cy,Cy,,,,,pair")))
    held = grade_class(root, tree, "adding", larger, QUIET)
    assert held.withheld
    assert {change.student for change in held.changes} == {"cy"}
    assert everywhere(tree, "cy") == score
    assert len(FileStore(tree).history("adding", "cy").attempts) == 1
    grade_class(root, tree, "adding", replace(larger, accept_changes=True), QUIET)
    assert everywhere(tree, "cy") == everywhere(tree, "ann") == {4.8}


def test_a_changed_rule_waits_for_a_yes_and_can_be_undone(course: Course) -> None:
    root, tree, options = course
    page = tree.feedback("adding", "ann").read_text()
    harder = replace(options, roster=roster(25))
    held = grade_class(root, tree, "adding", harder, QUIET)
    assert held.withheld
    assert held.graded_now == 0
    changes = [(one.student, one.question, one.before, one.after) for one in held.changes]
    assert changes == [(name, LATE, "4.8 points", "3 points") for name in ("ann", "bob")]
    assert everywhere(tree, "ann") == {4.8}
    assert tree.feedback("adding", "ann").read_text() == page
    grade_class(root, tree, "adding", replace(harder, accept_changes=True), QUIET)
    assert everywhere(tree, "ann") == everywhere(tree, "bob") == {3.0}
    assert main(["undo", "--yes", "--course", str(tree.root)]) == 0
    assert everywhere(tree, "ann") == everywhere(tree, "bob") == {4.8}


def test_new_submissions_without_the_roster_stop_and_a_run_without_any_keeps_the_penalty(course: Course) -> None:
    root, tree, options = course
    with pytest.raises(UserError, match="late days cost points: add --roster FILE"):
        grade_class(root, tree, "adding", replace(options, roster=None), QUIET)
    batch = grade_class(root, tree, "adding", replace(options, roster=None, submissions=None), QUIET)
    assert batch.changes == ()
    assert everywhere(tree, "ann") == {4.8}


def test_a_late_day_that_is_enough_costs_no_points(course: Course) -> None:
    root, tree, options = course
    kind = replace(options, roster=roster(10, days=3), accept_changes=True)
    batch = grade_class(root, tree, "adding", kind, QUIET)
    assert {one.after for one in batch.changes} == {"6 points"}
    assert everywhere(tree, "ann") == {6.0}
    assert "it needs 3 late days, 3 were left, 0 after it" in tree.feedback("adding", "ann").read_text()


def test_the_ledger_says_what_was_needed_and_what_is_left(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, _ = course
    (root / "roster.csv").write_text(text(10))
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["late", "--roster", "roster.csv", "--course", str(tree.root)]) == 0
    lines = capsys.readouterr().out.splitlines()[:-1]  # the last one names the file
    assert max(map(len, lines)) <= 80
    shown = [" ".join(line.split()) for line in lines]
    assert shown[:2] == ["student lab due late by needed left", "group handed in spent off"]
    for student in ("ann", "bob"):
        first = shown.index(f"{student} adding 2026-03-02 12:00 UTC 2 d 2 h 3 0")
        assert shown[first + 1] == "pair 2026-03-04 14:00 1 20%"
    assert not [line for line in shown if line.startswith("cy")]
    with (tree.root / "results" / "late-days.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = {one["student"]: one for one in csv.DictReader(file)}
    assert (rows["cy"]["handed in"], rows["cy"]["left"], rows["cy"]["off"]) == ("2026-03-02 12:00", "1", "")
    assert main(["late", "--roster", "roster.csv", "--student", "nosuch", "--course", str(tree.root)]) == 2
    assert "nosuch" in capsys.readouterr().err


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: it has the labs adding and fusion, a roster of Ann, Bob and Cy, and no course."""
    for lab in ("adding", "fusion"):
        (tmp_path / "labs" / lab).mkdir(parents=True)
        (tmp_path / "labs" / lab / "lab.py").touch()
    (tmp_path / "roster.csv").write_text(text(10))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("graded", [(), ("zoe", "yan")])
def test_a_course_without_results_of_anybody_in_the_roster_is_refused_and_nothing_is_written(
    repository: Path, capsys: pytest.CaptureFixture[str], graded: tuple[str, ...]
) -> None:
    for student in graded:
        FileStore(CourseTree(Path("there"))).save_record(Record(student, "adding", "1", "now"))
    before = sorted(repository.rglob("*"))
    assert main(["late", "--roster", "roster.csv", "--course", "there"]) == 2
    said = capsys.readouterr()
    assert said.err == (
        "mlsys: there has no results of anybody in roster.csv: "
        "run `mlsys grade` first, or correct --course or the ids\n"
    )
    assert said.out == ""
    assert sorted(repository.rglob("*")) == before


@pytest.mark.usefixtures("repository")
def test_one_result_in_another_lab_or_an_attempt_that_is_not_graded_is_enough_for_a_ledger(
    capsys: pytest.CaptureFixture[str],
) -> None:
    FileStore(CourseTree(Path("other"))).save_record(Record("cy", "fusion", "1", "now"))
    assert main(["late", "--roster", "roster.csv", "--course", "other"]) == 0
    assert "Nobody was late." in capsys.readouterr().out
    attempt = Attempt("d", "cy.ipynb", "moodle", DUE + timedelta(hours=50))
    FileStore(CourseTree(Path("queued"))).save_history("adding", "cy", History((attempt,)))
    assert main(["late", "--roster", "roster.csv", "--course", "queued"]) == 0
    assert "2 d 2 h" in capsys.readouterr().out


def test_the_ledger_fits_into_80_columns_and_keeps_long_words_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    student = "a-login-that-is-an-address@students.some-university.edu"
    row = {
        "student": student,
        "lab": "first-kernels",
        "group": "the-early-ones",
        "due": "2026-03-02 23:59 +0530",
        "handed in": "2026-03-22 23:59",
        "late by": "20 d 23 h",
        "needed": "21",
        "spent": "10",
        "left": "10",
        "off": "12.5%",
    }
    (tmp_path / "labs" / "first-kernels").mkdir(parents=True)
    (tmp_path / "labs" / "first-kernels" / "lab.py").touch()
    (tmp_path / "roster.csv").write_text(
        f"id,name,time zone,due first-kernels\n*,,UTC,2026-03-02 23:59\n{student},Ann,,\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("mlsys.cli.classroom.late.ledger_rows", lambda *_: [row])
    FileStore(CourseTree(Path("course"))).save_record(Record(student, "first-kernels", "1", "now"))
    assert main(["late", "--roster", "roster.csv", "--course", "course"]) == 0
    lines = capsys.readouterr().out.splitlines()[:-1]
    assert max(map(len, lines)) <= 80
    for name, value in row.items():
        if name != "student":
            assert any(name in line for line in lines)
            assert any(value in line for line in lines)
    assert student in "".join(line[: lines[0].index("lab")].strip() for line in lines)
