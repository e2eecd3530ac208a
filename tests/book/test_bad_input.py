"""What a page needs and does not get fails the build, with the page and the reason: never a hole in the page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# Page

"""
CONFIG = """
only_build_toc_files: true
execute: {{execute_notebooks: force}}
sphinx:
  local_extensions: {{{}}}
  config: {{mathjax_path: mathjax/tex-mml-chtml.js, html_static_path: [book/_static]}}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A book of one page with the extensions of this repository."""
    for folder in ("_ext", "_figures", "_interactive", "_languages", "_static"):
        shutil.copytree(
            ROOT / "book" / folder, tmp_path / "book" / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    (tmp_path / "labs" / "results").mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/page\n")
    return tmp_path


def refusal(tree: Path, page: str, *extensions: str) -> str:
    """What a build of the page says, which must fail."""
    (tree / "book" / "page.md").write_text(FRONT + page)
    (tree / "_config.yml").write_text(CONFIG.format(", ".join(f"{name}: book/_ext" for name in extensions)))
    tools = Path(sys.executable).parent
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tree)}
    command = [str(tools / "jupyter-book"), "build", ".", "--warningiserror", "--keep-going", "--quiet"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert done.returncode != 0, said
    return said


def test_a_missing_record_is_named_with_page_and_line(tree: Path) -> None:
    page = '```{code-cell}\nfrom mlsys.measure import records\nrecords.load("no-such-gpu")\n```\n'
    said = refusal(tree, page, "course_prose")
    assert re.search(r"page\.md:\d+: ERROR: .*no-such-gpu.*labs/results", said), said


def test_a_missing_font_of_a_figure_is_named_with_the_page(tree: Path) -> None:
    page = (
        "```{code-cell}\nimport matplotlib.pyplot as plt\n"
        'plt.figure().text(0, 0, "a", family="No Such Font")\nplt.gcf().canvas.draw()\n```\n'
    )
    said = refusal(tree, page, "course_figures")
    assert re.search(r"ERROR: book/page: a cell complains: .*[Ff]ont family '?No Such Font'? not found", said), said


def test_a_letter_that_the_font_lacks_is_named_with_the_page(tree: Path) -> None:
    page = (
        "```{code-cell}\nimport matplotlib.pyplot as plt\n"
        "plt.figure().text(0, 0, chr(0x4E2D))\nplt.gcf().canvas.draw()\n```\n"
    )
    said = refusal(tree, page, "course_figures")
    assert re.search(r"ERROR: book/page: a cell complains: .*[Gg]lyph 20013 .*missing", said), said


def test_a_missing_font_of_the_formulas_is_named_with_the_page(tree: Path) -> None:
    fonts = tree / "book/_static/mathjax/output/chtml/fonts/woff-v2"
    (fonts / "MathJax_Main-Regular.woff").unlink()
    said = refusal(tree, "A formula: $a + b$.\n", "course_figures")
    assert re.search(r"book/page: its formulas need fonts that are missing: MathJax_Main-Regular\.woff", said), said


def test_a_directive_without_its_extension_is_named_with_page_and_line(tree: Path) -> None:
    said = refusal(tree, "```{quiz} one\nquestion: Which?\n```\n", "course_prose")
    assert re.search(r"page\.md:\d+: .*Unknown directive type: 'quiz'", said), said


def test_an_extension_that_is_not_there_is_named(tree: Path) -> None:
    (tree / "book" / "_ext" / "course_quiz.py").unlink()
    said = refusal(tree, "Text.\n", "course_quiz")
    assert "course_quiz" in said
