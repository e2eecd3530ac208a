"""Chapters as notebooks: they hold no markup of the book, and run from their first cell where only the package is."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: mlsys[book] brings it")
pytest.importorskip("jupytext", reason="jupytext is not installed: mlsys[book] brings it")

from mlsys.course.pages.notebooks import build_chapters  # noqa: E402
from mlsys.course.pages.plain_markdown import PlainMarkdown  # noqa: E402
from mlsys.errors import UserError  # noqa: E402

ROOT = Path(__file__).parents[2]
BUILT = sorted((ROOT / "_build" / "chapters").glob("*.ipynb"))


@pytest.fixture(params=BUILT or [None], ids=lambda path: path.stem if path else "none")
def notebook_path(request: pytest.FixtureRequest) -> Path:
    if request.param is None:
        pytest.skip("the book is not built: run `make book`")
    return request.param


@pytest.fixture(scope="module")
def built_again() -> dict[Path, tuple[bytes, bytes]]:
    """Each notebook before and after all of them are built once more."""
    before = {path: path.read_bytes() for path in BUILT}
    return {path: (before[path], path.read_bytes()) for path in build_chapters(ROOT)}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package and nothing else of the repository."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "mlsys", folder / "mlsys", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_prose_holds_no_markup_that_colab_would_show_raw(notebook_path: Path) -> None:
    notebook = nbformat.read(notebook_path, as_version=4)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.findall(r"\{[\w:-]+\}`|^:{3,}|^\([\w-]+\)=", prose, re.M) == []


def test_a_notebook_is_the_same_at_every_run(notebook_path: Path, built_again: dict[Path, tuple[bytes, bytes]]) -> None:
    before, after = built_again[notebook_path]
    assert after == before


def test_a_notebook_runs_from_its_first_cell_without_the_repository(
    notebook_path: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: mlsys[book] brings it")
    monkeypatch.setenv("PYTHONPATH", str(package))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    notebook = nbformat.read(notebook_path, as_version=4)
    folder = tmp_path / "anywhere"
    folder.mkdir()
    notebook.cells.append(nbformat.v4.new_code_cell("import mlsys; print(mlsys.__file__)"))
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}}).execute()
    assert str(package) in notebook.cells[-1].outputs[0].text, "the copy was used, not the repository"


def test_directives_become_folds_and_titles() -> None:
    plain = PlainMarkdown("page.md", numbers={"bytes": "96 KiB"})
    text = ":::{dropdown} {glue:text}`bytes`\n:color: light\n\nRight.\n:::\n\n:::{admonition} The question\n\nWhy?\n:::"
    lines = [line for line in plain.convert(text).splitlines() if line]
    assert lines == ["<details><summary>96 KiB</summary>", "Right.", "</details>", "**The question**", "Why?", "---"]


@pytest.mark.parametrize(
    ("markup", "complaint"),
    [
        ("{eval}`x`", "role 'eval'"),
        (":::{video} x\n:::", "directive 'video'"),
        ("{glue:text}`speed`", "no cell computes the number 'speed'"),
        ("See [](#somewhere).", "a link without text"),
    ],
)
def test_markup_without_a_plain_form_is_refused_with_the_page_named(markup: str, complaint: str) -> None:
    with pytest.raises(UserError, match=rf"page\.md: .*{re.escape(complaint)}"):
        PlainMarkdown("page.md", numbers={"time": "1 ms"}).convert(markup)
