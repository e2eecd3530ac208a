"""Nothing that lowers, blanks or replaces a score or a mark is written without a yes, and a run can be undone."""

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from helpers.adding_course import copy_without_submissions
from rich.console import Console

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.marks import marked_records, marks_of
from mlsys.classroom.gradebook.nbgrader import export_gradebook
from mlsys.classroom.lms.fill import score_of
from mlsys.classroom.marking.server import MarkingServer
from mlsys.classroom.regrade import MARK_LAPSES
from mlsys.classroom.store.backup import back_up, restore
from mlsys.classroom.store.record import MARKED
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.roster import parse_roster
from mlsys.cli.main import main
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import NeedsYes, UserError

QUIET = Console(quiet=True)
Course = tuple[Path, CourseTree, Options]


@pytest.fixture(scope="module")
def graded(adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A class of two, graded; a person has marked the written answer of one. Do not change it."""
    root = tmp_path_factory.mktemp("consent") / "repository"
    tree = copy_without_submissions(adding[0], root)
    handed_in = root.parent / "in"
    handed_in.mkdir()
    for name in ("right", "half-done"):
        shutil.copy(adding[2] / f"{name}.ipynb", handed_in)
    options = Options(handed_in, workers=2)
    grade_class(root, tree, "adding", options, QUIET)
    mark(tree, "right", 1.5, "well argued")
    return root, tree, options


@pytest.fixture
def course(graded: Course, tmp_path: Path) -> Course:
    """A copy of the graded class."""
    root, tree, options = graded
    shutil.copytree(root.parent, tmp_path / "all")
    root = tmp_path / "all" / root.name
    return (
        root,
        CourseTree(root / tree.root.relative_to(graded[0])),
        replace(options, submissions=tmp_path / "all" / "in"),
    )


def mark(tree: CourseTree, student: str, points: float, comment: str, cell: str = "e-why") -> None:
    """Mark the written answer as formgrader does, or give points to another question."""
    with open_gradebook(tree) as gradebook:
        (notebook,) = gradebook.find_submission("adding", student).notebooks
        for grade in notebook.grades:
            if grade.cell.name == cell:
                grade.manual_score, grade.needs_manual_grade = points, False
        for remark in notebook.comments:
            if remark.cell.name == cell:
                remark.manual_comment = comment
        gradebook.db.commit()


def points_in_gradebook(tree: CourseTree, student: str) -> float:
    with open_gradebook(tree) as gradebook:
        return float(gradebook.find_submission("adding", student).score)


def points_of(tree: CourseTree, student: str) -> float:
    record = marked_records(FileStore(tree), "adding", marks_of(tree, "adding"))[student]
    assert record is not None
    return record.points


def with_another_answer(path: Path) -> None:
    """Hand in another written answer."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "e-why":
            cell.source = "I have thought again."
    nbformat.write(notebook, path)


def test_a_source_that_is_mostly_another_labs_stops_the_run(course: Course) -> None:
    root, tree, options = course
    assert options.submissions
    before = FileStore(tree).history("adding", "right"), points_of(tree, "right")
    shutil.copy(tree.root / "sample-class" / "adding" / "other-lab.ipynb", options.submissions / "right.ipynb")
    shutil.copy(options.submissions / "right.ipynb", options.submissions / "half-done.ipynb")
    with pytest.raises(UserError, match=r"2 of the 2 notebooks in .* are not of lab 'adding'.*Nothing was changed"):
        grade_class(root, tree, "adding", options, QUIET)
    assert (FileStore(tree).history("adding", "right"), points_of(tree, "right")) == before


def test_one_file_of_another_lab_replaces_no_score_and_the_right_file_counts_again(course: Course) -> None:
    root, tree, options = course
    assert options.submissions
    kept = (options.submissions / "right.ipynb").read_bytes()
    points = points_of(tree, "right")
    shutil.copy(tree.root / "sample-class" / "adding" / "other-lab.ipynb", options.submissions / "right.ipynb")
    held = grade_class(root, tree, "adding", options, QUIET)
    assert held.withheld
    assert {change.student for change in held.changes} == {"right"}
    assert points_of(tree, "right") == points
    (options.submissions / "right.ipynb").write_bytes(kept)
    again = grade_class(root, tree, "adding", options, QUIET)
    assert (again.graded_now, again.changes) == (0, ())
    assert tree.submitted("adding", "right").read_bytes() == kept


def test_another_policy_blanks_no_score_without_a_yes(course: Course) -> None:
    root, tree, options = course
    text = "id,name,time zone,due adding\nright,R,UTC,2020-01-01 12:00\nhalf-done,H,UTC,2020-01-01 12:00\n"
    on_time = replace(options, policy="on-time", roster=parse_roster(text))
    page = tree.feedback("adding", "half-done").read_text()
    points = points_of(tree, "half-done")
    held = grade_class(root, tree, "adding", on_time, QUIET)
    assert held.withheld
    assert {(change.student, change.after) for change in held.changes} >= {("half-done", "refused")}
    assert points_of(tree, "half-done") == points
    assert tree.feedback("adding", "half-done").read_text() == page


def test_a_mark_that_a_refusal_takes_away_is_listed_with_the_refusals_reason(course: Course) -> None:
    root, tree, options = course
    mark(tree, "right", 1.5, "fine")
    roster = parse_roster("id,name,time zone,due adding\nright,R,UTC,2020-01-01 12:00\nhalf-done,H,UTC,\n")
    held = grade_class(root, tree, "adding", replace(options, policy="on-time", roster=roster), QUIET)
    score, of_mark = [change for change in held.changes if change.student == "right"]
    assert (of_mark.before, of_mark.after) == ("marked 1.5", "refused")
    assert of_mark.why == score.why != MARK_LAPSES


def test_marks_and_comments_are_on_the_page_and_in_every_table_of_the_next_call(course: Course) -> None:
    root, tree, options = course
    assert "well argued" not in tree.feedback("adding", "right").read_text()
    batch = grade_class(root, tree, "adding", options, QUIET)
    assert batch.graded_now == 0
    page = tree.feedback("adding", "right").read_text()
    assert "well argued" in page
    assert "needs review" not in page
    export_gradebook(tree, "adding", tree.results("adding"))
    with tree.results("adding").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if row["student_id"] == "right"]
    assert float(row["raw_score"]) == batch.results["right"].points == points_of(tree, "right")


@pytest.mark.proof
def test_a_mark_of_an_answer_that_changed_lapses_after_a_yes_only(course: Course) -> None:
    root, tree, options = course
    assert options.submissions
    with_another_answer(options.submissions / "right.ipynb")
    held = grade_class(root, tree, "adding", options, QUIET)
    (change,) = held.changes
    assert (change.student, change.before, change.why) == ("right", "marked 1.5", MARK_LAPSES)
    assert held.withheld
    marked = points_of(tree, "right")
    taken = grade_class(root, tree, "adding", replace(options, accept_changes=True), QUIET)
    assert taken.results["right"].points == marked - 1.5 == points_in_gradebook(tree, "right")
    assert "needs review" in {question.verdict for question in taken.results["right"].questions}


def test_points_given_to_code_lapse_with_new_code_after_a_yes_only(course: Course) -> None:
    root, tree, options = course
    assert options.submissions
    mark(tree, "half-done", 0.5, "", cell="c-test")
    grade_class(root, tree, "adding", options, QUIET)
    before = points_of(tree, "half-done")
    shutil.copy(options.submissions / "right.ipynb", options.submissions / "half-done.ipynb")
    held = grade_class(root, tree, "adding", options, QUIET)
    assert [(change.question, change.before, change.why) for change in held.changes] == [
        ("c", "marked 0.5", MARK_LAPSES)
    ]
    assert points_of(tree, "half-done") == points_in_gradebook(tree, "half-done") == before
    taken = grade_class(root, tree, "adding", replace(options, accept_changes=True), QUIET)
    assert MARKED not in {question.verdict for question in taken.results["half-done"].questions}
    assert points_of(tree, "half-done") == points_in_gradebook(tree, "half-done") > before


@pytest.mark.parametrize("lost", ["missing", "empty"])
def test_marks_that_a_gradebook_lacks_stop_the_run(course: Course, lost: str) -> None:
    root, tree, options = course
    grade_class(root, tree, "adding", options, QUIET)  # sees the mark
    tree.gradebook.unlink()
    if lost == "empty":
        tree.gradebook.touch()
    with pytest.raises(NeedsYes, match="1 mark that a person gave is no longer in .*\n  right e-why: 1.5"):
        grade_class(root, tree, "adding", options, QUIET)


COMMANDS = (
    ["export", "--csv", "--partial", "--out", "OUT"],
    ["feedback", "--mail", "--roster", "ROSTER", "--out", "OUT"],
    ["class"],
)
"""Commands that read a class without grading it."""


def say(course: Course, words: list[str], *more: str) -> int:
    """Run one of these commands."""
    root, tree, _ = course
    roster = root.parent / "roster.csv"
    roster.write_text("id,name,sis login id\nright,R,r@uni.edu\nhalf-done,H,h@uni.edu\n")
    files = {"OUT": str(root.parent / "out"), "ROSTER": str(roster)}
    return main([words[0], "adding", *(files.get(word, word) for word in words[1:]), *more, "--course", str(tree.root)])


@pytest.mark.parametrize("words", COMMANDS)
def test_an_older_gradebook_stops_every_command_that_reads_marks(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    root, tree, options = course
    monkeypatch.chdir(root)
    older = tree.gradebook.read_bytes()
    mark(tree, "half-done", 0.5, "a beginning")
    assert say(course, words) == 0
    tree.gradebook.write_bytes(older)
    assert say(course, words) == 3
    assert "1 mark that a person gave is no longer in" in capsys.readouterr().err
    assert "a beginning" in tree.feedback("adding", "half-done").read_text()
    with pytest.raises(NeedsYes, match="half-done e-why: 0.5"):
        grade_class(root, tree, "adding", options, QUIET)
    assert say(course, words, "--yes") == 0
    assert "a beginning" not in tree.feedback("adding", "half-done").read_text()


def test_a_lost_gradebook_comes_back_from_the_records(course: Course) -> None:
    root, tree, options = course
    page, points = tree.feedback("adding", "half-done").read_text(), points_in_gradebook(tree, "half-done")
    tree.gradebook.unlink()
    batch = grade_class(root, tree, "adding", options, QUIET)
    assert (batch.graded_now, batch.changes) == (0, ())
    assert points_in_gradebook(tree, "half-done") == points > 0
    assert points_in_gradebook(tree, "right") == points_of(tree, "right")
    assert tree.feedback("adding", "half-done").read_text() == page


@pytest.mark.parametrize("words", [*COMMANDS, ["mark"]])
def test_a_mark_is_in_the_tables_of_the_class_after_every_command(
    course: Course, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    root, tree, options = course
    monkeypatch.chdir(root)
    grade_class(root, tree, "adding", options, QUIET)
    mark(tree, "right", 0.5, "less")
    monkeypatch.setattr(MarkingServer, "serve_forever", raising(KeyboardInterrupt))
    assert say(course, words) == (130 if words == ["mark"] else 0)
    with tree.results("adding").open(newline="") as file:
        ours = sum(float(row["points"]) for row in csv.DictReader(file) if row["student"] == "right")
    with tree.results("adding").with_name("adding-nbgrader.csv").open(newline="") as file:
        (nbgraders,) = [float(row["score"]) for row in csv.DictReader(file) if row["student_id"] == "right"]
    assert ours == nbgraders == points_of(tree, "right")


def raising(error: type[BaseException]) -> Callable[..., None]:
    def call(*_: object) -> None:
        raise error

    return call


def test_a_damaged_gradebook_gets_one_line_with_the_cure(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, options = course
    tree.gradebook.write_bytes(b"no database at all, " * 100)
    monkeypatch.chdir(root)
    assert main(["grade", "adding", "--submissions", str(options.submissions), "--course", str(tree.root)]) == 2
    said = capsys.readouterr().err
    assert "is damaged" in said
    assert "backups" in said
    assert "Traceback" not in said


def test_points_given_to_a_refused_submission_are_the_same_everywhere(course: Course) -> None:
    root, tree, options = course
    assert options.submissions
    (options.submissions / "right.ipynb").write_text("{")
    batch = grade_class(root, tree, "adding", replace(options, accept_changes=True), QUIET)
    assert batch.results["right"].points == points_in_gradebook(tree, "right") == 0
    assert score_of(batch.results["right"]).points is None
    mark(tree, "right", 1.0, "looked at by hand")
    record = marked_records(FileStore(tree), "adding", marks_of(tree, "adding"))["right"]
    assert record is not None
    assert MARKED in {question.verdict for question in record.questions}
    assert record.points == points_in_gradebook(tree, "right") == score_of(record).points == 1.0


def test_undo_brings_back_the_state_before_the_last_run_and_itself_can_be_undone(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, options = course
    assert options.submissions
    grade_class(root, tree, "adding", options, QUIET)
    before = points_of(tree, "right"), tree.feedback("adding", "right").read_text()
    (options.submissions / "right.ipynb").write_text("{")
    grade_class(root, tree, "adding", replace(options, accept_changes=True), QUIET)
    assert points_of(tree, "right") == 0
    assert main(["undo", "--course", str(tree.root)]) == 3
    assert "right: 0 points (refused) -> " in capsys.readouterr().out
    assert points_of(tree, "right") == 0
    assert main(["undo", "--yes", "--course", str(tree.root)]) == 0
    assert (points_of(tree, "right"), tree.feedback("adding", "right").read_text()) == before
    assert points_in_gradebook(tree, "right") == before[0]
    assert main(["undo", "--yes", "--course", str(tree.root)]) == 0
    assert points_of(tree, "right") == 0


def test_undo_replaces_a_damaged_gradebook(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    _, tree, _ = course
    before = points_of(tree, "right")
    back_up(tree, "adding")
    tree.gradebook.write_bytes(b"no database at all, " * 100)
    assert main(["undo", "--course", str(tree.root)]) == 3
    assert "a gradebook is damaged, so what changes cannot be listed" in capsys.readouterr().out
    assert main(["undo", "--yes", "--course", str(tree.root)]) == 0
    assert points_of(tree, "right") == before


def test_undo_leaves_no_empty_folder_that_would_count_as_handed_in(course: Course) -> None:
    root, tree, options = course
    assert options.submissions is not None
    shutil.copy(options.submissions / "right.ipynb", options.submissions / "late-comer.ipynb")
    grade_class(root, tree, "adding", options, QUIET)
    assert (tree.root / "submitted" / "late-comer").is_dir()
    restore(tree, sorted(tree.backups.iterdir())[-1])
    batch = grade_class(root, tree, "adding", replace(options, submissions=None), QUIET)
    assert sorted(batch.records) == ["half-done", "right"]


def test_a_graded_notebook_that_was_deleted_is_written_again(course: Course) -> None:
    root, tree, options = course
    shutil.rmtree(tree.root / "autograded")
    grade_class(root, tree, "adding", options, QUIET)
    assert tree.autograded("adding", "right").is_file()


def test_undo_brings_back_the_page_about_the_class(course: Course) -> None:
    _, tree, _ = course
    tree.class_page("adding").write_text("before")
    backup = back_up(tree, "adding")
    write_atomically(tree.class_page("adding"), b"after")
    restore(tree, backup)
    assert tree.class_page("adding").read_text() == "before"


def test_undo_leaves_nothing_beside_the_files_that_it_brings_back(course: Course) -> None:
    """Renaming a link over another link to the same file does nothing, so what has not changed needs no draft."""
    _, tree, _ = course
    restore(tree, back_up(tree, "adding"))
    assert list(tree.root.rglob("*.part")) == []


def test_what_a_person_edits_after_a_run_is_not_edited_in_its_backup(course: Course) -> None:
    _, tree, _ = course
    path = tree.attempts("adding", "right")
    before = path.read_text()
    backup = back_up(tree, "adding")
    with path.open("a") as file:
        file.write(" ")
    assert (backup / path.relative_to(tree.root)).read_text() == before
    restore(tree, backup)
    assert path.read_text() == before


def test_the_sample_class_never_meets_the_students(course: Course) -> None:
    root, tree, options = course
    before = {path: path.read_bytes() for path in tree.records("adding").glob("*")}
    sample = grade_class(root, tree, "adding", replace(options, submissions=None, sample_class=True), QUIET)
    assert len(sample.records) > 5
    assert sample.tree.gradebook != tree.gradebook
    batch = grade_class(root, tree, "adding", replace(options, submissions=None), QUIET)
    assert sorted(batch.results) == ["half-done", "right"]
    assert {path: path.read_bytes() for path in tree.records("adding").glob("*")} == before
    with open_gradebook(tree) as gradebook:
        assert sorted(student.id for student in gradebook.students) == ["half-done", "right"]
