"""`mlsys feedback`: the pages in a zip, with what people have given since."""

import zipfile
from pathlib import Path

import pytest

from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Run
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.cli.main import main
from mlsys.course.tree import CourseTree


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CourseTree:
    for lab in ("tiling", "fusion"):
        (tmp_path / "labs" / lab).mkdir(parents=True)
        (tmp_path / "labs" / lab / "lab.py").touch()
    monkeypatch.chdir(tmp_path)
    tree = CourseTree(tmp_path / "course")
    store = FileStore(tree)
    for student, number in {"ann": 900, "bob": 901}.items():
        question = QuestionRecord("a", "", "a-test", "needs gpu" if student == "bob" else "passed", 0, 6)
        store.save_record(Record(student, "tiling", "1", "now", submission="d", questions=(question,)))
        name = f"{student}_10{number - 899}_{number}_tiling.ipynb"
        attempt = Attempt("d", name, "canvas", number=number, canvas_id=f"10{number - 899}")
        store.save_history("tiling", student, History((attempt,)))
    tree.feedback("tiling", "ann").parent.mkdir(parents=True)
    tree.feedback("tiling", "ann").write_text("page of ann")
    return tree


def test_pages_go_into_a_zip_and_who_is_left_out_is_said(
    course: CourseTree, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feedback", "tiling", "--canvas", "--course", str(course.root)]) == 0
    said = capsys.readouterr().out
    assert "left out: bob: there is no page: grade again" in said
    assert "1 pages, 1 left out" in said
    assert "Upload submissions" in said
    assert "--resume" not in said
    FileStore(course).save_run("tiling", Run.new())
    assert main(["feedback", "tiling", "--canvas", "--course", str(course.root)]) == 0
    assert "is not finished, so scores may be missing or old" in capsys.readouterr().out
    with zipfile.ZipFile(course.root / "results" / "tiling-feedback-canvas.zip") as archive:
        assert archive.read("ann_101_900_tiling.html") == b"page of ann"


def test_where_no_page_can_be_handed_out_nothing_is_written(
    course: CourseTree, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feedback", "tiling", "--mail", "--course", str(course.root)]) == 2
    assert "no page can be handed out in this way" in capsys.readouterr().err
    assert not list(course.root.rglob("*.zip"))
    assert main(["feedback", "fusion", "--mail", "--course", str(course.root)]) == 2
    assert "has no results of fusion: run `mlsys grade fusion` first" in capsys.readouterr().err


def test_a_misspelt_lab_is_named_with_the_nearest_and_those_there_are(
    course: CourseTree, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(course.root.rglob("*"))
    assert main(["feedback", "tilin", "--mail", "--course", str(course.root)]) == 2
    assert capsys.readouterr().err == "mlsys: unknown lab 'tilin': did you mean 'tiling'? Known: fusion, tiling\n"
    assert sorted(course.root.rglob("*")) == before
