"""Accidents of honest students keep their points, and unreadable files are refused with a reason, end to end."""

import csv
import html
import json
import shutil
from pathlib import Path

import pytest
from helpers.adding_course import make_course_repository
from rich.console import Console

from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.course.lab import Lab
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.release import release
from mlsys.course.sample_class import build
from mlsys.course.tree import CourseTree

HERE = Path(__file__).parent
QUIET = Console(quiet=True)
pytestmark = pytest.mark.timeout(3600)  # a class is graded before the first test
CONFIG = "c.RunQuestions.cpu_limit_s = 8\n"
PASSES = {"a": 1, "b": 3, "c": 2}

with (HERE / "accidents.csv").open(newline="") as table:
    REPAIRS = {row["sample"]: [part for part in row["repairs"].split("|") if part] for row in csv.DictReader(table)}


def sample(tree: CourseTree, lab: Lab, name: str) -> bytes:
    path = HERE / "accidents" / f"{name}.py"
    target = tree.root / "made.ipynb"
    write_notebook(build(path.read_text(), lab, read_notebook(tree.release("adding")), name), target)
    return target.read_bytes()


def hand_in_all(tree: CourseTree, lab: Lab, folder: Path, old_version: bytes) -> None:
    """The samples, and files that are no sample: other line ends, editors, names, versions, and damaged ones."""
    folder.mkdir()
    for name in REPAIRS:
        (folder / f"{name}.ipynb").write_bytes(sample(tree, lab, name))
    plain = sample(tree, lab, "plain")
    content = json.loads(plain)
    for cell in content["cells"]:
        text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        cell["source"] = text.replace("\n", "\r\n").splitlines(keepends=True)
    (folder / "windows.ipynb").write_bytes(
        b"\xef\xbb\xbf" + json.dumps(content, indent=1).replace("\n", "\r\n").encode()
    )
    content = json.loads(plain)
    content["metadata"] = {"language_info": {"name": "python"}, "orig_nbformat": 4}
    for number, cell in enumerate(content["cells"]):
        cell["id"] = f"vscode{number}"
        cell["metadata"] = {"vscode": {"languageId": "python"}} | cell["metadata"]
    (folder / "code-editor.ipynb").write_text(json.dumps(content))
    (folder / "last-years.ipynb").write_bytes(old_version)
    other = folder / "copied" / "adding" / "Copy of adding (1).ipynb"
    other.parent.mkdir(parents=True)
    other.write_bytes(plain)

    (folder / "empty.ipynb").write_bytes(b"")
    (folder / "spaces.ipynb").write_bytes(b" \n\n")
    (folder / "picture.ipynb").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (folder / "script.ipynb").write_text("print('hello')\n")
    (folder / "cut-off.ipynb").write_bytes(plain[: len(plain) // 2])
    (folder / "list.ipynb").write_text("[1, 2, 3]")
    (folder / "other-lab.ipynb").write_bytes(plain.replace(b'"lab": "adding"', b'"lab": "subtracting"'))
    (folder / "no-cells.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    (folder / "deep.ipynb").write_text('{"cells": [' + '{"a": ' * 5000 + "1" + "}" * 5000 + "]}")
    (folder / "heavy.ipynb").write_text('{"cells": ["' + "x" * 21_000_000 + '"]}')
    content = json.loads(plain)
    content["cells"] = [*content["cells"], content["cells"][0] | {"source": "data = '" + "x" * 600_000 + "'"}]
    (folder / "pasted-data.ipynb").write_text(json.dumps(content))


REFUSALS = {
    "empty": "the file is empty",
    "spaces": "the file is empty",
    "picture": "is not text in UTF-8",
    "script": "the file is not a notebook",
    "cut-off": "damaged or cut off",
    "list": "the file is not a notebook",
    "other-lab": "the notebook is of lab 'subtracting'",
    "no-cells": "holds none of the cells of lab 'adding'",
    "deep": "nested too deeply",
    "heavy": "the limit is 20 MB",
    "pasted-data": "the limit is 500,000",
}
KEPT = [*REPAIRS, "windows", "code-editor", "last-years", "copied"]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CourseTree, Batch]:
    folder = tmp_path_factory.mktemp("accidents")
    root = make_course_repository(folder / "repository")
    tree = CourseTree(root / "_build" / "course")
    path = root / "labs" / "adding" / "lab.py"
    release(root, tree)
    old = sample(tree, Lab.load(path), "plain")
    text = (
        path.read_text()
        .replace('version: "1"', 'version: "2"')
        .replace("ones = torch.ones(64)", "ones = torch.ones(96)")
    )
    path.write_text(text)
    release(root, tree)
    config = tree.root / "nbgrader_config.py"
    config.write_text(config.read_text() + CONFIG)
    hand_in_all(tree, Lab.load(path), folder / "submissions", old)
    return root, tree, grade_class(root, tree, "adding", Options(folder / "submissions", workers=2), QUIET)


@pytest.mark.parametrize("student", KEPT)
def test_an_accident_costs_no_points(graded, student):  # type: ignore[no-untyped-def]
    record = graded[2].records[student]
    found = {question.question: question.points for question in record.questions if question.question in PASSES}
    assert found == PASSES, [question.message for question in record.questions]


@pytest.mark.parametrize("student", REPAIRS)
def test_a_repair_is_reported(graded, student):  # type: ignore[no-untyped-def]
    _, tree, batch = graded
    said = "\n".join(batch.records[student].repairs)
    assert [part for part in REPAIRS[student] if part not in said] == []
    page = html.unescape(tree.feedback("adding", student).read_text())
    assert [sentence for sentence in batch.records[student].repairs if sentence not in page] == []


def test_another_version_is_graded_with_its_own_tests(graded):  # type: ignore[no-untyped-def]
    record = graded[2].records["last-years"]
    assert record.version == "1"
    assert "version 1 of the lab, which is at 2 now" in record.repairs[0]


@pytest.mark.parametrize("student", REFUSALS)
def test_what_cannot_be_graded_is_refused_with_its_reason(graded, student):  # type: ignore[no-untyped-def]
    _, tree, batch = graded
    record = batch.records[student]
    assert REFUSALS[student] in record.refused
    assert {(question.verdict, question.points) for question in record.questions} == {("refused", 0)}
    assert len(record.refused) < 300
    assert tree.feedback("adding", student).is_file()


def test_nobody_is_dropped(graded):  # type: ignore[no-untyped-def]
    assert set(graded[2].records) == {*KEPT, *REFUSALS}


def test_a_worse_resubmission_counts_and_the_better_one_is_kept(graded, tmp_path):  # type: ignore[no-untyped-def]
    root, tree, _ = graded
    better = tree.submitted("adding", "plain").read_bytes()
    (tmp_path / "plain.ipynb").write_bytes(better.replace(b"add(add(x, y), z)", b"add(x, y)"))
    again = grade_class(root, tree, "adding", Options(tmp_path, workers=1), QUIET)
    points = {question.question: question.points for question in again.records["plain"].questions}
    assert (points["b"], points["c"]) == (3, 0)
    assert better in [path.read_bytes() for path in (tree.root / "attempts" / "plain").rglob("*.ipynb")]
    shutil.rmtree(tmp_path)
