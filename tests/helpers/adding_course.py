"""A small course of one lab, `adding`, with a sample class, for the tests of the course machinery and of grading."""

import shutil
from pathlib import Path

import pytest

from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import CourseTree

REPOSITORY = Path(__file__).parents[2]
ADDING = Path(__file__).parents[1] / "course" / "labs" / "adding"


def make_course_repository(root: Path) -> Path:
    """A repository at `root` with the lab `adding`."""
    shutil.copytree(ADDING, root / "labs" / "adding")
    shutil.copyfile(REPOSITORY / "pyproject.toml", root / "pyproject.toml")
    (root / "_config.yml").write_text("repository:\n  url: https://github.com/someone/somewhere\n  branch: main\n")
    return root


def change_lab(root: Path, changes: dict[str, str]) -> None:
    """Replace texts of the lab `adding` in the repository at `root`; each must be there."""
    path = root / "labs" / "adding" / "lab.py"
    text = path.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)


def copy_without_submissions(root: Path, copy: Path) -> CourseTree:
    """Copy the repository of `adding` for a class of its own, and return the tree of the copy."""
    shutil.copytree(root, copy)
    tree = CourseTree(copy / "_build" / "course")
    shutil.rmtree(tree.submissions)
    return tree


ANOTHER_PREDICTION = {"bytes_moved == 12_000": "bytes_moved == 1", "bytes_moved = 3 * 4 * 1000": "bytes_moved = 1"}
"""Changes after which question a asks for another number, and has it as its own answer."""

VARIANTS = {
    "# %% [markdown]\n# # Adding": (
        '# %% mlsys={"role": "variants"}\nfrom mlsys.course.term import drawn\n\nTERM_ARRAYS = drawn(3, 5, 7)\n'
        "TERM_BYTES = 4000 * TERM_ARRAYS\n\n"
        "# %% [markdown]\n# # Adding"
    ),
    "bytes_moved == 12_000": "bytes_moved == TERM_BYTES",
    "bytes_moved = 3 * 4 * 1000": "bytes_moved = TERM_ARRAYS * 4 * 1000",
    "Three arrays cross": "TERM_ARRAYS arrays cross",
}
"""Changes after which terms draw a number for question a."""


@pytest.fixture
def course_repository(tmp_path: Path) -> Path:
    """A fresh repository with the lab `adding`; nothing is released."""
    return make_course_repository(tmp_path / "repository")


@pytest.fixture(scope="session")
def adding(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CourseTree, Path]:
    """A repository with the lab `adding` released: its root, its tree, its sample class's folder. Do not change it."""
    root = make_course_repository(tmp_path_factory.mktemp("adding") / "repository")
    tree = CourseTree(root / "_build" / "course")
    release(root, tree)
    folder = tree.root / "sample-class" / "adding"
    hand_in(root / "labs" / "adding" / "lab.py", folder, tree)
    return root, tree, folder
