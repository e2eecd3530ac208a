"""The book is executed again when something that its numbers come from changes."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
executors = pytest.importorskip("jupyter_cache.executors.utils", reason="mlsys[book] brings it")
course_cache = pytest.importorskip("course_cache", reason="sphinx is not installed: mlsys[book] brings it")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small copy of what the fingerprint looks at."""
    for name in ("mlsys/data", "mlsys/traffic", "labs/results", "book/_figures"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / "mlsys" / "traffic" / "matmul.py", tmp_path / "mlsys" / "traffic")
    (tmp_path / "mlsys/data/units.txt").write_text("byte = [information]\n")
    (tmp_path / "labs/results/gpu.json").write_text("{}")
    (tmp_path / "book/_figures/tiling.py").write_text("WIDTH = 5.6\n")
    (tmp_path / "requirements.txt").write_text("pint==0.25.3\n")
    return tmp_path


@pytest.mark.parametrize(
    "path",
    [
        "mlsys/traffic/matmul.py",
        "mlsys/data/units.txt",
        "labs/results/gpu.json",
        "book/_figures/tiling.py",
        "requirements.txt",
    ],
)
def test_an_edited_source_of_numbers_changes_the_fingerprint(tree: Path, path: str) -> None:
    before = course_cache.fingerprint(tree)
    (tree / path).write_text((tree / path).read_text() + "# edited\n")
    assert course_cache.fingerprint(tree) != before


def test_a_new_and_a_renamed_file_change_the_fingerprint(tree: Path) -> None:
    before = course_cache.fingerprint(tree)
    (tree / "mlsys/new.py").write_text("")
    with_new = course_cache.fingerprint(tree)
    (tree / "mlsys/new.py").rename(tree / "mlsys/other.py")
    assert len({before, with_new, course_cache.fingerprint(tree)}) == 3


def test_prose_and_compiled_files_leave_the_fingerprint_alone(tree: Path) -> None:
    before = course_cache.fingerprint(tree)
    (tree / "book/tiling.md").write_text("# Tiling\n")
    (tree / "mlsys/__pycache__").mkdir()
    (tree / "mlsys/__pycache__/traffic.cpython-311.pyc").write_bytes(b"compiled")
    assert course_cache.fingerprint(tree) == before


SMALL_BOOK = {
    "_config.yml": (
        "only_build_toc_files: true\n"
        "execute: {execute_notebooks: cache}\n"
        "sphinx:\n"
        "  local_extensions: {course_cache: book/_ext}\n"
    ),
    "_toc.yml": "format: jb-book\nroot: book/page\n",
    "requirements.txt": "",
    "mlsys/__init__.py": "def answer() -> int:\n    return 41\n",
    "book/page.md": (
        "---\nkernelspec: {display_name: Python 3, language: python, name: python3}\n"
        "jupytext: {text_representation: {extension: .md, format_name: myst}}\n---\n\n# Page\n\n"
        "```{code-cell} ipython3\nimport mlsys\nfrom myst_nb import glue\n"
        'glue("answer", str(mlsys.answer()), display=False)\n```\n\nThe answer is {glue:text}`answer`.\n'
    ),
}
"""A book of one page, whose one number comes from a package of one function."""


def _write_small_book(folder: Path) -> None:
    for name, text in SMALL_BOOK.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shutil.copytree(ROOT / "book" / "_ext", folder / "book" / "_ext", ignore=shutil.ignore_patterns("__pycache__"))


@pytest.mark.proof
def test_an_edited_function_changes_the_number_on_the_page(tmp_path: Path) -> None:
    _write_small_book(tmp_path)
    assert "The answer is 41." in _built_page(tmp_path)
    package = tmp_path / "mlsys" / "__init__.py"
    package.write_text(package.read_text().replace("41", "42"))
    assert "The answer is 42." in _built_page(tmp_path)


@pytest.mark.proof
def test_an_edited_extension_makes_pages_be_read_again(tmp_path: Path) -> None:
    _write_small_book(tmp_path)
    config = tmp_path / "_config.yml"
    config.write_text(config.read_text().replace("book/_ext}", "book/_ext, writes: book/_ext}"))
    extension = tmp_path / "book" / "_ext" / "writes.py"
    code = (
        "def add(app, name, source):\n    source[0] += '\\n\\nFirst wording.\\n'\n\n\n"
        "def setup(app):\n    app.connect('source-read', add)\n    return {'parallel_read_safe': True}\n"
    )
    extension.write_text(code)
    assert "First wording." in _built_page(tmp_path)
    extension.write_text(code.replace("First", "Second"))
    page = _built_page(tmp_path)
    assert "Second wording." in page
    assert "First wording." not in page


FIGURE_PAGE = "# {0}\n\n```{{figure}} dot.svg\n:name: fig-{0}\n:alt: A dot.\n\nA dot.\n```\n"


@pytest.mark.proof
def test_an_unchanged_book_with_figures_is_not_written_again(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    shutil.copytree(ROOT / "book" / "_ext", tmp_path / "book" / "_ext", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "_config.yml").write_text(
        "only_build_toc_files: true\nsphinx:\n  local_extensions: {course_figures: book/_ext}\n"
        "  config: {numfig: true}\n"
    )
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\nchapters:\n  - file: book/second\n")
    for name in ("page", "second"):
        (tmp_path / "book" / f"{name}.md").write_text(FIGURE_PAGE.format(name))
    _built_page(tmp_path)
    second = tmp_path / "_build" / "html" / "book" / "second.html"
    assert "Fig. 1" in second.read_text(encoding="utf-8"), "numbered from 1 on every page"
    written = second.stat().st_mtime_ns
    _built_page(tmp_path)
    assert second.stat().st_mtime_ns == written


def _built_page(root: Path) -> str:
    """The text of the page after a build in `root` with the package that lies there."""
    tools = Path(sys.executable).parent
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(root), "HOME": str(root)}
    build = [str(tools / "jupyter-book"), "build", ".", "--warningiserror", "--quiet"]
    done = subprocess.run(build, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"<[^>]+>", "", (root / "_build/html/book/page.html").read_text(encoding="utf-8"))


def test_printed_output_does_not_depend_on_the_pieces_in_which_it_arrives() -> None:
    course_cache.join_printed_output()
    printed = 'print("one\\n")\nsys.stdout.flush(); time.sleep(0.3)\nprint("\\ntwo")'
    cell = nbformat.v4.new_code_cell(f"import sys, time\n{printed}")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    executors.single_nb_execution(notebook, cwd=None, timeout=60, allow_errors=False)
    (output,) = notebook.cells[0].outputs
    assert output["text"] == "one\n\n\ntwo\n"
