"""What reaches the marker's page, which nbgrader's formgrader makes on the instructor's own server."""

import base64
import json
import shutil
import time
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from nbconvert.exporters import HTMLExporter
from nbconvert.filters import markdown2html
from nbgrader.server_extensions.formgrader import handlers
from PIL import Image
from rich.console import Console
from traitlets.config import Config

from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.gradebook.quote_answers import quoted
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.notebook import read_notebook
from mlsys.course.tree import CourseTree

pytestmark = pytest.mark.proof

TEXTS = [
    "<script>alert(1)</script>",
    "</pre><script>alert(1)</script>\n\n</pre>\n\n<img src=x onerror=alert(1)>",
    "one\n\n[two](javascript:alert(1))\n\n![three](http://elsewhere.example/x.png)",
    "$$\n\\href{javascript:alert(1)}{x}\n$$\n\n$a < b$",
    "`</pre>` and ```\n</pre>\n```",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "# heading\n\n- a\n- b\n\n    code",
]


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text, self.attributes = [], "", []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("text", TEXTS)
def test_quoted_text_is_shown_as_it_stands_and_nothing_else(text):
    page = Page()
    page.feed(markdown2html(quoted(text)))
    assert page.tags == ["pre"]
    assert page.text.strip() == text.strip()


RAW = '<script>alert(1)</script><a href="javascript:alert(2)" id="e-why" class="score">full credit</a>'


def png() -> str:
    buffer = BytesIO()
    Image.new("RGB", (4, 3), "red").save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def answer_of(notebook: Any) -> Any:
    [cell] = [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == "e-why"]
    return cell


@pytest.fixture(scope="module")
def graded(
    adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[CourseTree, Batch, float]:
    """A class with the same right answers, and in each notebook something else that is hard to show."""
    root = tmp_path_factory.mktemp("written") / "repository"
    shutil.copytree(adding[0], root)
    tree, folder = CourseTree(root / "_build" / "course"), root / "in"
    folder.mkdir()
    handed_in = {
        student: json.loads((adding[2] / "right.ipynb").read_text())
        for student in ("ordinary", "pasted", "lost", "raw", "slow")
    }
    for student in ("pasted", "lost"):
        answer_of(handed_in[student])["source"] = "See ![image.png](attachment:image.png)"
    answer_of(handed_in["pasted"])["attachments"] = {"image.png": {"image/png": png()}}
    raw = {"cell_type": "raw", "id": "r", "metadata": {"raw_mimetype": "text/html"}, "source": f"# mine\n{RAW}"}
    unknown = {"cell_type": "heading", "id": "h", "metadata": {}, "source": RAW}
    handed_in["raw"]["cells"] = [raw, *handed_in["raw"]["cells"], unknown]
    for number in range(6):
        source = f"x = {number}" + "\t\n" * 10_000
        slow = {"cell_type": "code", "id": f"s{number}", "metadata": {}, "source": source, "outputs": []}
        handed_in["slow"]["cells"].append(slow)
    for student, notebook in handed_in.items():
        (folder / f"{student}.ipynb").write_text(json.dumps(notebook))
    began = time.monotonic()
    batch = grade_class(root, tree, "adding", Options(folder, workers=1), Console(quiet=True))
    return tree, batch, time.monotonic() - began


def formgraders_page(tree: CourseTree, student: str) -> str:
    """The autograded notebook as the marker sees it."""
    config = Config()
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    resources = {"base_url": "", "notebook_id": "adding", "index": 0, "total": 1, "student": student}
    page: str = HTMLExporter(config=config).from_filename(str(tree.autograded("adding", student)), resources=resources)[
        0
    ]
    return page


def test_nothing_that_is_hard_to_show_changes_a_score(graded: tuple[CourseTree, Batch, float]) -> None:
    tree, batch, _ = graded
    assert {record.refused for record in batch.records.values()} == {""}
    assert {student: record.points for student, record in batch.records.items()} == dict.fromkeys(batch.records, 6)
    with open_gradebook(tree) as gradebook:
        scores = {one.student.id: one.score for one in gradebook.assignment_submissions("adding")}
    assert scores == dict.fromkeys(("lost", "ordinary", "pasted", "raw", "slow"), 6)


def test_slow_colors_do_not_hold_up_the_class(graded: tuple[CourseTree, Batch, float]) -> None:
    tree, _, took_s = graded
    assert took_s < 70  # six times twelve seconds would be the colors alone
    page = tree.feedback("adding", "slow").read_text()
    assert "x = 5" in page
    assert "<strong>6</strong> of 12 points" in page


def test_a_pasted_picture_is_seen_by_the_student_and_by_the_marker(graded: tuple[CourseTree, Batch, float]) -> None:
    tree, *_ = graded
    picture = f'src="data:image/png;base64,{png()}"'
    assert picture in tree.feedback("adding", "pasted").read_text()
    assert picture in formgraders_page(tree, "pasted")
    assert "[picture image.png is not shown]" in tree.feedback("adding", "lost").read_text()


def test_cells_of_any_kind_reach_the_marker_as_text(graded: tuple[CourseTree, Batch, float]) -> None:
    tree, *_ = graded
    page = Page()
    page.feed(formgraders_page(tree, "raw"))
    assert page.text.count("<script>alert(1)</script>") == 2
    assert not [value for _, value in page.attributes if value and "alert(" in value]
    assert ("class", "score") not in page.attributes
    kinds = {cell.cell_type for cell in read_notebook(tree.autograded("adding", "raw")).cells}
    assert kinds == {"code", "markdown"}


def test_the_title_of_the_page_is_the_labs(graded: tuple[CourseTree, Batch, float]) -> None:
    assert "<h1>Adding</h1>" in graded[0].feedback("adding", "raw").read_text()


def test_the_markers_page_of_slow_colors_comes_soon(graded: tuple[CourseTree, Batch, float]) -> None:
    began = time.monotonic()
    assert "x = 5" in formgraders_page(graded[0], "slow")
    assert time.monotonic() - began < 20
