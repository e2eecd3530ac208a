"""Tests of an older version are mended for those who hold it: tried first, listed, and written after a yes."""

import shutil
from pathlib import Path

import nbformat
import pytest
from helpers.adding_course import change_lab
from rich.console import Console

from mlsys import __version__
from mlsys.classroom.batch.reference_solution import LabFault
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.cli.main import main
from mlsys.course.release import release
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

QUIET = Console(quiet=True)
TEST = "grading.assert_close(add_three(ones, ones, ones), 3 * ones)"
MENDED = "grading.assert_close(add_three(ones, ones, 2 * ones), 4 * ones)"
SOLUTION = "    return add(add(x, y), z)\n"


@pytest.fixture
def course(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> tuple[Path, CourseTree, Path]:
    """The course at version 2, in which question c asks for another name; and a copy of the `lab.py` of version 1."""
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    (tmp_path / "in").mkdir()
    notebook = nbformat.read(adding[2] / "right.ipynb", as_version=4)
    for cell in notebook.cells:  # right for the test that is to be mended only
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "c-sum":
            cell.source = "def add_three(x, y, z):\n    return 3 * add(x, torch.zeros_like(x))\n"
    nbformat.write(notebook, tmp_path / "in" / "ann.ipynb")
    first = tmp_path / "lab-1.py"
    shutil.copy(root / "labs" / "adding" / "lab.py", first)
    change_lab(root, {'version: "1"': 'version: "2"', "add_three": "add_all"})
    release(root, tree)
    return root, tree, first


def edit(path: Path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_mended_test_reaches_those_who_hold_the_version(
    course: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, first = course
    options = Options(root.parent / "in", workers=1)
    before = grade_class(root, tree, "adding", options, QUIET).results["ann"]
    assert {one.question: one.points for one in before.questions}["c"] == 2
    monkeypatch.chdir(root)
    edit(first, TEST, MENDED)
    kept = tree.version("adding", "1").read_bytes()
    assert main(["release", "adding", "--mend", str(first), "--course", str(tree.root)]) == 3
    said = capsys.readouterr().out
    assert f"-{TEST}\n+{MENDED}" in said
    assert "1 graded submissions are of version 1" in said
    assert tree.version("adding", "1").read_bytes() == kept
    assert main(["release", "adding", "--mend", str(first), "--yes", "--course", str(tree.root)]) == 0
    (diff,) = tree.version("adding", "1").parent.glob("1-changed-*.diff")
    assert f"-{TEST}\n+{MENDED}" in diff.read_text()
    held = grade_class(root, tree, "adding", options, QUIET)
    assert [(change.student, change.question, change.after) for change in held.changes] == [
        ("ann", "c", "wrong answer 0")
    ]
    assert held.withheld


def test_a_version_is_mended_after_the_package_and_the_public_address_have_changed(
    course: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, tree, first = course
    edit(root / "_config.yml", "someone/somewhere", "someone/elsewhere")
    edit(root / "pyproject.toml", f'version = "{__version__}"', 'version = "9.9.9"')
    release(root, tree)
    monkeypatch.chdir(root)
    edit(first, TEST, MENDED)
    assert main(["release", "adding", "--mend", str(first), "--yes", "--course", str(tree.root)]) == 0
    kept = tree.version("adding", "1").read_text()
    assert "someone/somewhere" in kept
    assert "someone/elsewhere" not in kept


def test_a_mended_test_that_the_versions_own_answer_fails_is_not_written(
    course: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, first = course
    monkeypatch.chdir(root)
    kept = tree.version("adding", "1").read_bytes()
    edit(first, TEST, TEST.replace("3 * ones", "5 * ones"))
    assert main(["release", "adding", "--mend", str(first), "--yes", "--course", str(tree.root)]) == 2
    assert "does not pass its tests here" in capsys.readouterr().err
    assert tree.version("adding", "1").read_bytes() == kept


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lab: adding", "lab: tiling", "is of lab 'tiling', not of 'adding'"),
        ('version: "1"', 'version: "2"', "version 2 is the present one: correct labs/adding/lab.py"),
        ('version: "1"', 'version: "7"', "version 7 of adding was never released here; kept are: 1, 2"),
        (SOLUTION, SOLUTION.replace("z", "1 * z"), "cell c-sum: only tests can be mended"),
        ('"points": 2', '"points": 1', "cell c-test: its role or points differ"),
        ("12_000, f", "12_001, f", "get the tests of version 2 for a: correct them in labs/adding/lab.py"),
        ("no such text", "", "has the same tests as version 1"),
    ],
)
def test_what_cannot_be_mended_is_named(
    course: tuple[Path, CourseTree, Path], old: str, new: str, message: str
) -> None:
    from mlsys.classroom.mend import mend

    root, tree, first = course
    if old != "no such text":
        edit(first, old, new)
    with pytest.raises(UserError, match=message) as found:
        mend(root, tree, "adding", first, accept=True)
    assert not isinstance(found.value, LabFault)
    assert not list(tree.version("adding", "1").parent.glob("*.diff"))


def test_a_file_that_cannot_be_read_is_named_with_the_cure(
    course: tuple[Path, CourseTree, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, tree, first = course
    monkeypatch.chdir(root)
    missing = first.with_name("nope.py")
    assert main(["release", "adding", "--mend", str(missing), "--course", str(tree.root)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"mlsys: {missing}: not readable as py:percent ([Errno 2] ")
    assert said.endswith("): name a copy of that version's lab.py\n")
    edit(first, '"points": 2', '"points": 0')  # a fault of the lab, which has its own cure
    assert main(["release", "adding", "--mend", str(first), "--course", str(tree.root)]) == 2
    assert "name a copy" not in capsys.readouterr().err


def test_a_test_that_is_corrected_in_the_present_version_leaves_its_diff(
    course: tuple[Path, CourseTree, Path],
) -> None:
    root, tree, _ = course
    change_lab(root, {"3 * ones)": "3.0 * ones)"})
    (said,) = release(root, tree)
    (diff,) = tree.version("adding", "2").parent.glob("2-changed-*.diff")
    assert str(diff) in said
    assert "+grading.assert_close(add_all(ones, ones, ones), 3.0 * ones)" in diff.read_text()
