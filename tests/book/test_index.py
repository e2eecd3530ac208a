"""The index of the site leads to the glossary and to the first use of a term on each page."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
BOOK = {
    "_toc.yml": "format: jb-book\nroot: book/glossary\nchapters:\n  - file: book/one\n  - file: book/two\n",
    "_config.yml": "only_build_toc_files: true\nsphinx:\n  local_extensions:\n"
    "    course_prose: book/_ext\n    course_pages: book/_ext\n",
    "book/glossary.md": "# Glossary\n\n```{glossary}\ntile\n  A block.\n```\n",
    "book/one.md": "# One\n\nA {term}`tile` here, {term}`tiles <tile>` there.\n",
    "book/two.md": "# Two\n\nNo block.\n",
}


@pytest.mark.proof
def test_the_index_names_the_pages_that_use_a_term(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    for name, text in BOOK.items():
        (tmp_path / name).write_text(text)
    for folder in ("_ext", "_figures", "_interactive", "_languages"):
        shutil.copytree(
            ROOT / "book" / folder, tmp_path / "book" / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    tools = Path(sys.executable).parent
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    build = [str(tools / "jupyter-book"), "build", ".", "--warningiserror", "--quiet"]
    done = subprocess.run(build, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "_build" / "html"

    def uses() -> list[str]:
        links = re.findall(r'href="(book/[^"]+)"', (html / "genindex.html").read_text(encoding="utf-8"))
        return [link for link in links if "#" in link]

    assert uses() == ["book/glossary.html#term-tile", "book/one.html#use-of-tile"]
    assert (html / "book" / "one.html").read_text(encoding="utf-8").count('id="use-of-tile"') == 1

    # Only what changed is read again; the entries of the other pages stay, in the index and in the search.
    (tmp_path / "book" / "two.md").write_text("# Two\n\nNow a {term}`tile`.\n")
    done = subprocess.run(build, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert uses() == ["book/glossary.html#term-tile", "book/one.html#use-of-tile", "book/two.html#use-of-tile"]
    searched = json.loads(
        (html / "searchindex.js").read_text(encoding="utf-8").removeprefix("Search.setIndex(").removesuffix(")")
    )
    places = [(searched["docnames"][page], place) for page, place, _ in searched["indexentries"]["tile"]]
    assert sorted(places) == [("book/glossary", "term-tile"), ("book/one", "use-of-tile"), ("book/two", "use-of-tile")]
