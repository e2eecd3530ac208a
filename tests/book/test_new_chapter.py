"""A new chapter begins as one that builds."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, str(ROOT / "scripts" / "new_chapter.py")]

TOC = """format: jb-book
root: book/hardware/host-link
parts:
  - caption: Reference
    chapters:
      - file: book/reference/glossary
      - file: book/reference/bibliography
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with what a chapter needs, and no chapter."""
    for name in (
        "book/_chapter-template.md",
        "book/reference/glossary.md",
        "book/reference/bibliography.md",
        "book/references.bib",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in ("_config.yml", "requirements.txt", "pyproject.toml"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for folder in ("book/_ext", "book/_static", "book/_interactive", "book/_languages", "mlsys", "labs/results"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "book" / "_figures").mkdir()
    shutil.copy(ROOT / "book" / "_figures" / "words.py", tmp_path / "book" / "_figures")
    (tmp_path / "book" / "hardware").mkdir()
    (tmp_path / "_toc.yml").write_text(TOC)
    return tmp_path


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], cwd=tree, capture_output=True, text=True, check=False)


def test_page_and_figures_bear_the_name(tree: Path) -> None:
    done = run(tree, "hardware/host-link")
    assert done.returncode == 0, done.stderr
    page = (tree / "book" / "hardware" / "host-link.md").read_text()
    assert 'start_chapter("host-link")' in page
    assert "from _figures import host_link as figures" in page
    assert (tree / "book" / "_figures" / "host_link.py").is_file()
    assert "_toc.yml" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        [""],
        ["host-link"],
        ["hardware/Host link"],
        ["../outside"],
        ["hardware/host_link"],
        ["hardware/3d"],
        ["hard/ware/x"],
    ],
)
def test_a_name_that_cannot_be_is_refused_in_one_line(arguments: list[str], tree: Path) -> None:
    done = run(tree, *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_part_that_the_book_lacks_is_refused_with_those_it_has(tree: Path) -> None:
    done = run(tree, "hardwear/host-link")
    assert done.returncode == 2
    assert "no part 'hardwear': choose one of hardware, reference" in done.stderr
    assert not (tree / "book" / "hardwear").exists()


def test_a_name_that_another_part_has_is_taken(tree: Path) -> None:
    done = run(tree, "hardware/glossary")
    assert done.returncode == 2
    assert "book/reference/glossary.md exists already" in done.stderr


def test_a_page_that_exists_is_not_overwritten(tree: Path) -> None:
    (tree / "book" / "hardware" / "host-link.md").write_text("mine")
    done = run(tree, "hardware/host-link")
    assert done.returncode == 2
    assert "book/hardware/host-link.md exists already" in done.stderr
    assert (tree / "book" / "hardware" / "host-link.md").read_text() == "mine"
    assert not (tree / "book" / "_figures" / "host_link.py").exists()


def built(tree: Path) -> subprocess.CompletedProcess[str]:
    tools = Path(sys.executable).parent
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(tree), "HOME": str(tree)}
    command = [str(tools / "jupyter-book"), "build", ".", "--warningiserror", "--nitpick", "--keep-going", "--quiet"]
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def faults(done: subprocess.CompletedProcess[str]) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)


def begin(tree: Path) -> Path:
    assert run(tree, "hardware/host-link").returncode == 0
    (tree / "book" / "concepts.toml").write_text('[host-link]\nneeds = []\ngives = "an example"\n')
    page = tree / "book" / "hardware" / "host-link.md"
    # The lab's page is not in this small book.
    page.write_text(
        re.sub(r"\[Question \(a\)[^)]*\)\]?\([^)]*\)|\[Question.*?\]\(#lab-[\w-]+\)", "A lab", page.read_text())
    )
    return page


@pytest.mark.proof
def test_a_new_chapter_builds_without_a_warning(tree: Path) -> None:
    begin(tree)
    done = built(tree)
    assert done.returncode == 0, faults(done)


@pytest.mark.proof
def test_each_fault_is_named_with_page_line_and_cure(tree: Path) -> None:
    page = begin(tree)
    text = page.read_text()
    text = text.replace("% given: 3.7 pJ: printed in the cited table\n", "")
    text = text.replace("{term}`ridge point`", "{term}`ridge pint`")
    text = text.replace('    alt: "What the picture shows, in words, for somebody who cannot see it."', '    alt: ""')
    text = text.replace("right: true", "right: false")
    page.write_text(
        text + '\n```{code-cell}\n:tags: [remove-cell]\nrecords = None  # records.load("no-such-gpu")\n```\n'
    )
    done = built(tree)
    report = faults(done)
    assert done.returncode != 0
    for complaint in (
        r"host-link\.md:\d+: ERROR: the number '3.7 pJ' .*% given: 3.7 pJ: REASON",
        r"host-link\.md:\d+: ERROR: the glossary has no term 'ridge pint': add it to book/reference/glossary\.md",
        r"host-link.*a picture has no alt text; say in words",
        r"host-link\.md:\d+: ERROR: quiz 'host-link-one': no choice is marked right: give exactly one",
        r"host-link\.md:\d+: ERROR: unknown benchmark record 'no-such-gpu'.*Known: .*nvidia-h200",
        r"host-link\.md: its notebook would need labs/results/no-such-gpu\.json, which does not exist",
    ):
        assert re.search(complaint, report), f"{complaint}\n{report}"
