"""Submissions that aim at whoever grades: the page, the table, the terminal, the gradebook, time and memory."""

import csv
import io
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.adding_course import make_course_repository
from nbconvert.filters import markdown2html
from rich.console import Console

from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.gradebook.nbgrader import export_gradebook
from mlsys.classroom.report import reasons, table, to_csv
from mlsys.course.lab import Lab
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.notebook import read_notebook
from mlsys.course.release import release
from mlsys.course.sample_class import build
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.error_map import ErrorMap

QUIET = Console(quiet=True)
pytestmark = pytest.mark.timeout(3600)  # a class is graded before the first test
CONFIG = "c.RunQuestions.cpu_limit_s = 8\n"
MARKUP = """<script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>
<a href="javascript:alert(1)">one</a> [two](javascript:alert(1)) [three](data:text/html,<script>alert(1)</script>)
<style>@import "http://evil.example/x.css"; body {background: url(http://evil.example/y)}</style>
<iframe src="http://evil.example"></iframe><form action="http://evil.example"><input autofocus onfocus=alert(1)></form>
![four](http://evil.example/z.png) <table background="http://evil.example/t"><td onclick=alert(1)>five</td></table>
<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></math> </main></body></html>
"""
TALK = """
class Talk(Exception):
    def __str__(self):
        return TEXT
def add(x, y):
    raise Talk()
"""
TEXT = (
    "=1+1;@SUM(A1)\n\x1b]0;owned\x07\x1b[2J\x1b[1;32mPASSED\r\x08\u202e"
    '<script>alert(1)</script>" onload="alert(1)\x00\x9b31m'
)
WRONG = """
def add(x, y):
    out = x + y
    out[72:] = 0
    return out
"""
ESSAY = "x" + " " * 100_000 + "y" + "\\\\(" * 50_000
"""Prose that a reader of Markdown needs a minute for."""
COSTLY = {
    "a long path": "import " + "a." * 200_000 + "a",
    "a deep sum": "deep = " + "+".join(["1"] * 20_000),
    "a deep attribute": "deep" + ".x" * 20_000 + " = 1",
    "a deep call": "deep = f" + "()" * 20_000,
    "a chain": "\n".join(f"a{number} = a{number + 1}" for number in range(12_000)) + "\nadd_kernel2 = a0",
    "deep brackets": "deep = " + "(" * 20_000,
    "many signs": "deep = " + "-" * 20_000 + "1",
    "a null byte": "deep = '\x00'",
    "half a character": "deep = '\ud800'",
}
"""Sources that take the time or the stack of whoever parses them."""


class Tags(HTMLParser):
    """Elements and attributes of a page as a browser finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [(tag, "", "")] + [(tag, name, value or "") for name, value in attrs]


def notebooks(lab: Lab, tree: CourseTree) -> dict[str, str]:
    """Hostile submissions by the student who hands them in."""
    released = read_notebook(tree.release("adding"))

    def made(text: str) -> dict:  # type: ignore[type-arg]
        return json.loads(json.dumps(build(text, lab, released, "made")))

    found = {}
    found["wrong"] = made(f"# %% solve=*\n# %% replace=b-kernel\n{WRONG}")
    found["essay"] = made(f"# %% solve=*\n# %% replace=e-why\n{ESSAY}")
    found["markup"] = made(f"# %% solve=*\n# %% replace=e-why\n{MARKUP}")
    found["talker"] = made(f"# %% solve=*\n# %% replace=b-kernel\n{TALK.replace('TEXT', repr(TEXT))}")
    displayed = made("# %% solve=*")
    for cell in displayed["cells"]:
        if cell["cell_type"] == "code":
            data = {"text/html": MARKUP, "application/javascript": "alert(1)", "image/svg+xml": "<svg onload=alert(1)>"}
            cell["outputs"] = [{"output_type": "display_data", "data": data, "metadata": {}}]
        cell["attachments"] = {"a.html": {"text/html": MARKUP}}
    found["displays"] = displayed
    for number, source in enumerate(COSTLY.values()):
        content = made("# %% solve=*\n# %% add after=setup\nSOURCE")
        for cell in content["cells"]:
            cell["source"] = source if "".join(cell["source"]) == "SOURCE" else cell["source"]
        found[f"costly-{number}"] = content
    answered = made("# %% solve=*\n# %% replace=b-kernel\nSOURCE")
    for cell in answered["cells"]:
        cell["source"] = COSTLY["a long path"] if "".join(cell["source"]) == "SOURCE" else cell["source"]
    found["costly-answer"] = answered
    crowd = made("# %% solve=*")
    crowd["cells"] += [crowd["cells"][-1] | {"source": f"filler_{number} = {number}"} for number in range(900)]
    found["a-crowd"] = crowd
    marked = made("# %% solve=*")
    for cell in marked["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["metadata"]["nbgrader"] |= {"points": 1e9, "grade_id": cell["metadata"]["nbgrader"]["grade_id"]}
            cell["metadata"]["mlsys"] = {"question": "a", "role": "written", "record": {"points": 100}}
    found["generous"] = marked
    elsewhere = made("# %% solve=*")
    elsewhere["metadata"]["mlsys"]["version"] = "../../../../etc/passwd"
    found["climber"] = elsewhere
    return {student: json.dumps(content) for student, content in found.items()} | {
        "long-winded": json.dumps({"cells": [], "metadata": {"mlsys": {"lab": "\x1b[2J" + "x" * 1_000_000}}}),
        "many-lists": json.dumps({"cells": [[]] * 900, "metadata": {"x": [[[1] * 1000] * 1000]}}),
        "twice": '{"cells": 1, "cells": []' + ', "cells": []' * 1000 + "}",
    }


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CourseTree, Batch, float]:
    folder = tmp_path_factory.mktemp("instructor")
    root = make_course_repository(folder / "repository")
    tree = CourseTree(root / "_build" / "course")
    release(root, tree)
    config = tree.root / "nbgrader_config.py"
    config.write_text(config.read_text() + CONFIG)
    (folder / "submissions").mkdir()
    for student, text in notebooks(Lab.load(root / "labs" / "adding" / "lab.py"), tree).items():
        (folder / "submissions" / f"{student}.ipynb").write_text(text)
    before_s = cpu_s()
    batch = grade_class(root, tree, "adding", Options(folder / "submissions", workers=2), QUIET)
    return folder, tree, batch, cpu_s() - before_s


def cpu_s() -> float:
    """Computing so far of this process and of those that it has waited for; unlike a clock it knows no busy machine."""
    return sum(os.times()[:4])


def test_no_page_holds_anything_that_runs_or_reaches_out(graded):  # type: ignore[no-untyped-def]
    _, tree, batch, _ = graded
    for student in batch.records:
        page = tree.feedback("adding", student).read_text()
        tags = Tags()
        tags.feed(page)
        for tag, name, value in tags.found:
            assert tag not in ("script", "iframe", "form", "input", "object", "embed", "base"), student
            assert not name.startswith("on"), (student, tag, name)
            assert name not in ("background", "srcset", "formaction"), (student, tag, name)
            if name == "src":  # a pasted picture, and nothing else, may be in the page
                assert tag == "img", (student, tag)
                assert re.fullmatch("data:image/(png|jpeg|gif);base64,[A-Za-z0-9+/]+={0,2}", value), student
            else:
                assert not value.lower().lstrip().startswith(("javascript:", "data:", "http:", "//")), (student, value)
        assert page.count("</html>") == 1
        names = [tag for tag, name, _ in tags.found if not name]
        assert names.count("style") == 1
        assert names.count("svg") == (student == "wrong"), student  # the picture of errors, the only one


def test_the_instructors_own_pages_run_nothing_of_a_student(graded):  # type: ignore[no-untyped-def]
    """nbgrader's formgrader shows Markdown of an autograded notebook as it is."""
    notebook = read_notebook(graded[1].autograded("adding", "markup"))
    tags = Tags()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            tags.feed(markdown2html(cell.source))
    found = {tag for tag, name, _ in tags.found if not name}
    assert not found & {"script", "iframe", "img", "svg", "form", "input", "style", "math", "table"}
    assert "pre" in found
    assert not [value for _, name, value in tags.found if name.startswith("on") or "javascript:" in value]


def test_the_picture_of_errors_is_ours_and_is_there(graded):  # type: ignore[no-untyped-def]
    _, tree, batch, _ = graded
    [wrong] = [question for question in batch.records["wrong"].questions if question.question == "b"]
    page = tree.feedback("adding", "wrong").read_text()
    assert ErrorMap.read(wrong.picture).svg() in page
    assert "columns 72 to 127" in page


def test_a_costly_essay_is_shown_as_it_stands(graded):  # type: ignore[no-untyped-def]
    page = graded[1].feedback("adding", "essay").read_text()
    assert len(page) < 100_000


def test_no_cell_of_a_table_is_a_formula_or_has_a_control_code(graded, tmp_path):  # type: ignore[no-untyped-def]
    _, tree, batch, _ = graded
    export_gradebook(tree, "adding", tmp_path / "grades.csv")
    for text in (to_csv(batch.records.values()), (tmp_path / "grades.csv").read_text()):
        for separator in (",", ";", "\t"):
            for row in csv.reader(io.StringIO(text), delimiter=separator):
                assert [cell for cell in row if cell.startswith(("=", "+", "-", "@")) or not cell.isprintable()] == []


def test_a_terminal_obeys_nothing_that_a_student_wrote(graded):  # type: ignore[no-untyped-def]
    records = list(graded[2].records.values())
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=False, width=200)
    console.print(table("Class", records))
    console.print(reasons(records))
    assert shown.getvalue().replace("\n", "").isprintable()
    assert "\\x1b" in shown.getvalue()


@pytest.mark.parametrize("student", [f"costly-{number}" for number in range(len(COSTLY))] + ["displays", "a-crowd"])
def test_a_costly_added_cell_costs_its_student_nothing(graded, student):  # type: ignore[no-untyped-def]
    points = {question.question: question.points for question in graded[2].records[student].questions}
    assert (points["a"], points["b"], points["c"]) == (1, 3, 2)


def test_a_costly_answer_costs_its_question_and_those_that_need_it(graded):  # type: ignore[no-untyped-def]
    points = {question.question: question.points for question in graded[2].records["costly-answer"].questions}
    assert (points["a"], points["b"], points["c"]) == (1, 0, 0)


def test_the_batch_ends_soon(graded):  # type: ignore[no-untyped-def]
    _, _, batch, computed_s = graded
    assert computed_s < 6 * len(batch.records)


def test_points_are_the_courses_own(graded):  # type: ignore[no-untyped-def]
    _, tree, batch, _ = graded
    assert [question.max_points for question in batch.records["generous"].questions] == [1, 3, 2, 4, 2]
    with open_gradebook(tree) as gradebook:
        scores = {submission.student.id: submission.score for submission in gradebook.assignment_submissions("adding")}
    assert scores == {
        student: sum(question.points for question in record.questions) for student, record in batch.records.items()
    }


@pytest.mark.parametrize("student", ["long-winded", "many-lists", "twice"])
def test_what_only_looks_like_a_notebook_is_refused_in_one_short_line(graded, student):  # type: ignore[no-untyped-def]
    refused = graded[2].records[student].refused
    assert 0 < len(refused) < 200
    assert refused.isprintable()


def test_a_version_cannot_name_a_file(graded):  # type: ignore[no-untyped-def]
    record = graded[2].records["climber"]
    assert record.version == "1"
    assert "is not kept" in record.repairs[0]


@pytest.mark.parametrize(
    "name", ["..", "a\nb", 'a"b', "-rf", "=1+1", "a;b", " a", "a" * 120, "\u6f22" * 83, "\u202egpj"]
)
def test_a_name_that_is_none_is_refused_before_anything_is_written(graded, tmp_path, name):  # type: ignore[no-untyped-def]
    folder, tree, _, _ = graded
    before = sorted(tree.root.rglob("*"))
    (tmp_path / f"{name}.ipynb").write_text("{}")
    with pytest.raises(UserError, match="holds no submissions"):
        grade_class(folder / "repository", tree, "adding", Options(tmp_path, workers=1), QUIET)
    assert sorted(tree.root.rglob("*")) == before


def test_a_link_is_not_followed(graded, tmp_path):  # type: ignore[no-untyped-def]
    folder, tree, _, _ = graded
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "linker.ipynb").symlink_to(secret)
    batch = grade_class(folder / "repository", tree, "adding", Options(tmp_path / "in", workers=1), QUIET)
    assert "it is a link or a device, not a file" in batch.records["linker"].refused
