from pathlib import Path

import nbformat
import pytest

from mlsys.course.lab import Lab
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.release import release
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


def released_text(tree: CourseTree) -> str:
    return "\n".join(cell.source for cell in nbformat.read(tree.release("adding"), as_version=4).cells)


def test_released_notebook_has_starters_and_neither_solutions_nor_hidden_tests(
    adding: tuple[Path, CourseTree, Path],
) -> None:
    text = released_text(adding[1])
    assert 'raise NotImplementedError("add")' in text
    assert "    pass  # write the kernel here" in text
    assert "visible = grading.Draws" in text
    for secret in ("SOLUTION", "HIDDEN", "#:", "tl.store", "hidden_size", "bandwidth"):
        assert secret not in text


def test_wheel_address_and_version_stand_in_the_notebook(adding: tuple[Path, CourseTree, Path]) -> None:
    notebook = nbformat.read(adding[1].release("adding"), as_version=4)
    assert "https://github.com/someone/somewhere/raw/main/wheels/mlsys-" in notebook.cells[1].source
    assert notebook.metadata["mlsys"] == {"lab": "adding", "version": "1"}
    nbformat.validate(notebook)


def test_points_in_the_gradebook_are_the_labs(adding: tuple[Path, CourseTree, Path]) -> None:
    with open_gradebook(adding[1]) as gradebook:
        points = {cell.name: cell.max_score for cell in gradebook.find_notebook("adding", "adding").grade_cells}
    lab = Lab.load(adding[0] / "labs" / "adding" / "lab.py")
    assert points == {question.graded.id: question.points for question in lab.questions}


def test_release_is_deterministic_and_skips_what_is_unchanged(
    adding: tuple[Path, CourseTree, Path], course_repository: Path
) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    release(course_repository, tree)
    assert tree.release("adding").read_bytes() == adding[1].release("adding").read_bytes()
    assert tree.source("adding").read_bytes() == adding[1].source("adding").read_bytes()
    assert release(course_repository, tree) == ["adding: released notebook is up to date"]


def test_questions_cannot_change_under_submissions(course_repository: Path) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    release(course_repository, tree)
    with open_gradebook(tree) as gradebook:
        gradebook.add_student("ann")
        gradebook.add_submission("adding", "ann")
    path = course_repository / "labs" / "adding" / "lab.py"
    path.write_text(path.read_text().replace('"grade_id": "c-test"', '"grade_id": "c-check"'))
    with pytest.raises(UserError, match="holds submissions to the old ones"):
        release(course_repository, tree)


def test_lab_in_a_folder_of_another_name_is_refused(course_repository: Path) -> None:
    (course_repository / "labs" / "adding").rename(course_repository / "labs" / "summing")
    with pytest.raises(UserError, match="header says lab 'adding', its folder 'summing'"):
        release(course_repository, CourseTree(course_repository / "_build" / "course"))


@pytest.mark.parametrize("content", [None, "repository: 3", "repository: {url: 'http://x', branch: main}", ": ["])
def test_missing_or_broken_address_is_named(course_repository: Path, content: str | None) -> None:
    (course_repository / "_config.yml").unlink()
    if content is not None:
        (course_repository / "_config.yml").write_text(content)
    with pytest.raises(UserError, match=r"_config\.yml"):
        release(course_repository, CourseTree(course_repository / "_build" / "course"))


def test_folder_that_cannot_be_made_is_named(course_repository: Path) -> None:
    blocked = course_repository / "blocked"
    blocked.write_text("a file, so no folder can be made of it")
    with pytest.raises(UserError, match="cannot be written"):
        release(course_repository, CourseTree(blocked))


def test_secret_is_drawn_once_and_private(tmp_path: Path) -> None:
    tree = CourseTree(tmp_path)
    assert tree.secret() == tree.secret()
    assert len(tree.secret()) == 32
    assert (tmp_path / "secret.txt").stat().st_mode & 0o077 == 0
