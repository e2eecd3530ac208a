"""Cells that are hard to read, pictures that are none, versions that are not: none costs another question a point."""

import copy
import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.adding_course import change_lab, make_course_repository
from nbformat import NotebookNode
from rich.console import Console

from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.course.lab import Lab
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.release import release
from mlsys.course.sample_class import build
from mlsys.course.tree import CourseTree

QUIET = Console(quiet=True)
pytestmark = pytest.mark.timeout(3600)  # a class is graded before the first test
PASSES = {"a": 1, "b": 3, "c": 2}

HOSTILE = {
    "lambdas": "deep = " + "lambda: " * 2000 + "0",
    "lambdas-that-use-names": "deep = " + "lambda x: add and " * 900 + "0",
    "brackets": "deep = " + "(" * 3000 + "0" + ")" * 3000,
    "lists": "deep = " + "[" * 5000 + "]" * 5000,
    "dicts": "deep = " + "{0: " * 3000 + "0" + "}" * 3000,
    "calls": "deep = " + "abs(" * 3000 + "1" + ")" * 3000,
    "calls-of-results": "deep = abs" + "()" * 9000,
    "subscripts": "deep = add" + "[0]" * 6000,
    "attributes": "deep = torch" + ".T" * 9500,
    "signs": "deep = " + "-" * 19000 + "1",
    "negations": "deep = " + "not " * 4500 + "1",
    "sums": "deep = " + "+".join(["1"] * 9500),
    "powers": "deep = " + "**".join(["1"] * 6000),
    "conditions": "deep = " + "1 if 0 else " * 1600 + "0",
    "comparisons": "deep = " + "<".join(["1"] * 9500),
    "comprehensions": "deep = " + "[0 for _ in " * 90 + "()" + "]" * 90,
    "walruses": "deep = " + "(deep := " * 2000 + "0" + ")" * 2000,
    "f-strings": "deep = " + "f'{" * 60 + "0" + "}'" * 60,
    "branches": "if 1:\n    deep = 0\n" + "elif 1:\n    pass\n" * 1100,
    "functions": "\n".join(f"{' ' * level}def deep{level}():" for level in range(95)) + "\n" + " " * 95 + "pass",
    "classes": "\n".join(f"{' ' * level}class Deep{level}:" for level in range(95)) + "\n" + " " * 95 + "pass",
    "decorators": "@abs\n" * 3800 + "def deep():\n    pass",
    "strings": "deep = " + '"a" ' * 4900,
    "tabs": "\t\n" * 10000,
    "backslashes": "deep = 1 \\\n" + "\\\n" * 9000,
    "quotes": "deep = '" + '"' * 9000 + "'",
    "stars": "deep = " + "*".join(["()"] * 6000),
    "imports": "import " + ".".join(["os"] * 6000),
    "globals": "def deep():\n    global " + ", ".join(f"x{n}" for n in range(2500)),
    "matches": "match 1:\n    case " + "[" * 1500 + "]" * 1500 + ":\n        deep = 0",
    "letters-piled-up": "deep = '" + "a" + "\u0301" * 9000 + "'",
}

NESTED = (
    "lambdas brackets calls-of-results attributes signs sums conditions comprehensions functions decorators".split()
)
"""Cells that are tried in an answer as well."""

ADDED = {f"added-{start}": list(HOSTILE)[start::4] for start in range(4)}
"""Submissions that hold a quarter of the cells each."""

PICTURES = {
    "a-picture-of-text": {"image.png": {"text/html": "<script>alert(1)</script>"}},
    "a-picture-of-numbers": {"image.png": {"image/png": 7}},
    "a-picture-of-lists": {"image.png": {"image/png": ["iVBOR", "w0KGgo="]}},
    "pictures-that-are-none": "image.png",
    "a-picture-in-no-code": {"image.png": {"image/png": "<script>alert(1)</script>"}},
    "a-picture-with-a-name": {'"><script>alert(1)</script>': {"image/png": "iVBORw0KGgo="}},
    "no-picture": {},
}
WORDS = """Three arrays cross the bus.

![image.png](attachment:image.png) ![other](attachment:other.png) ![](attachment:)
![here](attachment:../../secret.png) <img src="attachment:image.png" onerror="alert(1)"> [link](attachment:image.png)
"""


class Page(HTMLParser):
    """Reads a page, and keeps what a browser would run."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.runs += [tag] if tag == "script" else []
        self.runs += [f"{tag} {name}" for name, _ in attrs if name.startswith("on")]


@dataclass
class Course:
    """A graded class of the small lab."""

    tree: CourseTree
    batch: Batch = field(default_factory=dict)  # type: ignore[arg-type]

    def points(self, student: str) -> dict[str, float]:
        return {q.question: q.points for q in self.batch.records[student].questions if q.question in PASSES}

    def messages(self, student: str) -> list[str]:
        record = self.batch.records[student]
        return [record.refused, *(f"{q.question}: {q.verdict}, {q.message}" for q in record.questions)]


def notebook(tree: CourseTree, lab: Lab, operations: str = "") -> NotebookNode:
    return build(f"# %% solve=*\n{operations}", lab, read_notebook(tree.release("adding")), "redteam")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Course:
    folder = tmp_path_factory.mktemp("cells")
    root = make_course_repository(folder / "repository")
    course = Course(CourseTree(root / "_build" / "course"))
    release(root, course.tree)
    lab = Lab.load(root / "labs" / "adding" / "lab.py")
    plain = notebook(course.tree, lab)
    files = {"honest": plain}
    for name, cells in ADDED.items():
        operations = "".join(f"# %% add after=b-test\n{HOSTILE[cell]}\n" for cell in cells)
        files[name] = notebook(course.tree, lab, operations)
    for name in NESTED:
        files[f"answer-{name}"] = changed(plain, "c-sum", source=f"{source(plain, 'c-sum')}\n\n\n{HOSTILE[name]}\n")
    for name, pictures in PICTURES.items():
        files[name] = changed(plain, "e-why", source=WORDS, attachments=pictures)
    (folder / "submissions").mkdir()
    for name, content in files.items():
        (folder / "submissions" / f"{name}.ipynb").write_text(json.dumps(content))  # whatever nbformat says of it
    config = course.tree.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.RunQuestions.cpu_limit_s = 8\n")
    course.batch = grade_class(root, course.tree, "adding", Options(folder / "submissions", workers=2), QUIET)
    return course


def source(content: NotebookNode, identifier: str) -> str:
    [text] = [cell.source for cell in content.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == identifier]
    return str(text)


def changed(content: NotebookNode, identifier: str, **changes: object) -> NotebookNode:
    """The notebook with other fields of one cell."""
    other = copy.deepcopy(content)
    for cell in other.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == identifier:
            for name, value in changes.items():
                dict.__setitem__(cell, name, value)  # as it stands in the file, whatever it is
    return other


@pytest.mark.parametrize("name", ADDED)
def test_added_cells_that_are_hard_to_read_cost_nothing(graded: Course, name: str) -> None:
    assert graded.points(name) == PASSES, graded.messages(name)


@pytest.mark.parametrize("name", NESTED)
def test_an_answer_that_is_hard_to_read_costs_no_other_question(graded: Course, name: str) -> None:
    found = graded.points(f"answer-{name}")
    assert (found["a"], found["b"]) == (PASSES["a"], PASSES["b"]), graded.messages(f"answer-{name}")
    assert found["c"] in (0, PASSES["c"])


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_that_cannot_be_shown_costs_nothing(graded: Course, name: str) -> None:
    assert graded.points(name) == PASSES, graded.messages(name)
    page = Page()
    page.feed(graded.tree.feedback("adding", name).read_text())
    assert page.runs == []


def test_everybody_is_graded_and_has_a_page(graded: Course) -> None:
    students = {"honest", *PICTURES, *ADDED, *(f"answer-{name}" for name in NESTED)}
    assert set(graded.batch.records) == students
    assert graded.points("honest") == PASSES
    assert [student for student in students if not graded.tree.feedback("adding", student).is_file()] == []


def test_an_older_version_in_the_metadata_does_not_bring_back_its_tests(tmp_path: Path) -> None:
    root = make_course_repository(tmp_path / "repository")
    tree = CourseTree(root / "_build" / "course")
    path = root / "labs" / "adding" / "lab.py"
    change_lab(root, {"grading.assert_close(add_three(ones, ones, ones), 3 * ones)": "add_three(ones, ones, ones)"})
    release(root, tree)
    tests_of_one = notebook(tree, Lab.load(path))
    change_lab(
        root,
        {
            'version: "1"': 'version: "2"',
            "\nadd_three(ones, ones, ones)": "\ngrading.assert_close(add_three(ones, ones, ones), 3 * ones)",
        },
    )
    release(root, tree)
    tests_of_two = notebook(tree, Lab.load(path))
    wrong = "def add_three(x, y, z):\n    return x"
    files = {
        "honest-one": tests_of_one,
        "honest-two": tests_of_two,
        "wrong-one": changed(tests_of_one, "c-sum", source=wrong),
        "wrong-two": changed(tests_of_two, "c-sum", source=wrong),
        "claims-one": changed(tests_of_two, "c-sum", source=wrong),
        "claims-none": changed(tests_of_two, "c-sum", source=wrong),
    }
    files["claims-one"].metadata["mlsys"]["version"] = "1"
    del files["claims-none"].metadata["mlsys"]["version"]
    folder = tmp_path / "submissions"
    folder.mkdir()
    for name, content in files.items():
        write_notebook(content, folder / f"{name}.ipynb")
    course = Course(tree, grade_class(root, tree, "adding", Options(folder, workers=2), QUIET))
    points = {name: course.points(name)["c"] for name in files}
    assert points == {name: 2 if name.startswith("honest") else 0 for name in files}
