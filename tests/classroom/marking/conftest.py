import http.client
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import nbformat
import pytest
from helpers.adding_course import copy_without_submissions
from rich.console import Console

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.marking.answers import Marking
from mlsys.classroom.marking.server import MarkingServer, Site
from mlsys.classroom.store.store import FileStore
from mlsys.course.tree import CourseTree

HOSTILE = (
    "Bandwidth, for $\\frac{1}{4}$ of a FLOP. <script>document.title = 'hacked'</script>"
    '<img src=x onerror="document.title = 1"><form action="/x"><input name=points></form>'
    "[link](javascript:alert(1)) $\\href{javascript:alert(1)}{x} \\style{position:fixed;inset:0}{y}$"
)
"""A written answer that tries to get out of the page."""


def hand_in(folder: Path, source: Path, student: str, answer: str) -> None:
    """Hand in the right notebook with another written answer."""
    notebook = nbformat.read(source / "right.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "e-why":
            cell.source = answer
    nbformat.write(notebook, folder / f"{student}.ipynb")


@dataclass(frozen=True)
class Class:
    """A graded class of three, in a folder of its own."""

    root: Path
    tree: CourseTree
    options: Options
    sample: Path

    @property
    def marking(self) -> Marking:
        return Marking(self.tree, FileStore(self.tree), "adding")

    def again(self, student: str, answer: str) -> None:
        """Hand in another answer, and grade it with a yes."""
        assert self.options.submissions
        hand_in(self.options.submissions, self.sample, student, answer)
        grade_class(self.root, self.tree, "adding", self.options, Console(quiet=True))


@pytest.fixture(scope="session")
def graded_once(adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory) -> Class:
    """The class, graded. Do not change it."""
    root = tmp_path_factory.mktemp("marking") / "repository"
    tree = copy_without_submissions(adding[0], root)
    (root / "labs" / "adding" / "README.md").write_text(
        "# Notes\n\n## Rubric for e (2 points)\n\n- 1: bytes cross\n  the bus\n- 0.5: a number\n\nMore.\n\n"
        "## Other\n\n- 9: no\n"
    )
    folder = root.parent / "in"
    folder.mkdir()
    for student, answer in {"ann": "So **bandwidth**.", "bob": HOSTILE, "cy": "Arithmetic."}.items():
        hand_in(folder, adding[2], student, answer)
    options = Options(folder, workers=2, accept_changes=True)
    grade_class(root, tree, "adding", options, Console(quiet=True))
    return Class(root, tree, options, adding[2])


@pytest.fixture
def course(graded_once: Class, tmp_path: Path) -> Class:
    """A copy of the graded class."""
    shutil.copytree(graded_once.root.parent, tmp_path / "all")
    root = tmp_path / "all" / graded_once.root.name
    tree = CourseTree(root / graded_once.tree.root.relative_to(graded_once.root))
    options = Options(tmp_path / "all" / "in", workers=2, accept_changes=True)
    return Class(root, tree, options, graded_once.sample)


@dataclass(frozen=True)
class Client:
    """A browser without a page: it sends what it is told."""

    server: MarkingServer

    def send(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        try:
            all_headers = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
            all_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body.encode() if body else None, all_headers)
            reply = connection.getresponse()
            return reply.status, reply.read().decode(), dict(reply.getheaders())
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        status, text, _ = self.send("GET", f"{self.server.site.base}{path}")
        return status, text

    def post(self, path: str, **form: object) -> tuple[int, str]:
        body = urlencode(form, doseq=True)
        status, text, _ = self.send(
            "POST", f"{self.server.site.base}{path}", body, Origin=f"http://{self.server.hosts[0]}"
        )
        return status, text


@pytest.fixture
def client(course: Class) -> Iterator[Client]:
    """A client of the pages of the class."""
    shutil.copytree(
        Path(__file__).parents[3] / "book" / "_static" / "mathjax", course.root / "book" / "_static" / "mathjax"
    )
    with MarkingServer(Site(course.marking, course.root)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Client(server)
        server.shutdown()
