"""Commands and messages that pages quote are those of the package: a page that says more than the program is found."""

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.pages import source, sources

from mlsys.cli.main import COMMANDS, build_parser

ROOT = Path(__file__).parents[2]
TEXTS = sorted(
    [*sources(), ROOT / "book" / "_chapter-template.md", *(ROOT / "labs").glob("*/README.md"), *ROOT.glob("*.md")],
    key=lambda path: path.name,
)
CODE = re.compile(r"^```(?:console)?\n(.*?)^```|`([^`\n]+)`", re.M | re.S)
OURS = re.compile(r"^\s*(?:\.venv/bin/)?mlsys (?P<rest>\S.*)$", re.M)
TARGET = re.compile(r"^make ([a-z][a-z-]*)", re.M)


def code_of(path: Path) -> list[str]:
    """Listings of commands and code in a line of a page."""
    return [listing or inline for listing, inline in CODE.findall(path.read_text(encoding="utf-8"))]


def calls_of(path: Path) -> set[str]:
    """Calls of `mlsys` on a page, without the comment behind them."""
    found = {match["rest"].split("#")[0].strip() for code in code_of(path) for match in OURS.finditer(code)}
    return {call for call in found if call[0].isalpha()}


CALLS = sorted({(call, path.name) for path in TEXTS for call in calls_of(path)})


def test_pages_quote_commands() -> None:
    assert len(CALLS) > 5


@pytest.mark.parametrize(("call", "page"), CALLS)
def test_a_quoted_command_exists_with_its_options(call: str, page: str) -> None:
    command, *words = shlex.split(call)
    assert command in COMMANDS, f"{page}: mlsys {command}"
    pytest.importorskip("nbgrader", reason="nbgrader is not installed: mlsys[grading] brings it")
    subparser = build_parser(command)._subparsers._group_actions[0].choices[command]
    kinds = [action for action in subparser._actions if isinstance(action, argparse._SubParsersAction)]
    if kinds and words:  # a command with kinds, such as `mlsys kit slides`
        subparser = kinds[0].choices[words.pop(0)]
    known = {option for action in subparser._actions for option in action.option_strings}
    assert {word for word in words if word.startswith("-")} <= known, f"{page}: mlsys {call}"
    takes_a_word = [action for action in subparser._actions if not action.option_strings]
    assert takes_a_word or words == [] or words[0].startswith("-"), f"{page}: mlsys {call}"


def test_quoted_targets_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.M))
    quoted = {(path.name, target) for path in TEXTS for code in code_of(path) for target in TARGET.findall(code)}
    assert quoted
    assert [pair for pair in sorted(quoted) if pair[1] not in targets] == []


def test_the_benchmarks_that_make_runs_can_be_imported() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (pattern,) = re.findall(r"^\tpytest (benchmarks\S*) --benchmark-json", makefile, re.M)
    files = sorted(map(str, ROOT.glob(pattern)))
    command = [sys.executable, "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "test_time[" in done.stdout


def sources() -> str:
    """Everything that says something to a student, as one text without the breaks inside of strings."""
    files = [*ROOT.glob("mlsys/**/*.py"), *ROOT.glob("book/_ext/*.py"), *ROOT.glob("labs/*/lab.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return re.sub(r'"\s*\n\s*f?"', "", text).replace('UnknownName.of("', '"unknown ')


OURS_TO_SAY = ("In the notebook: the lab's own checks", "When a submission is refused", "Building the book")
VERDICTS = ("NOT IMPLEMENTED", "OUT OF BOUNDS", "NOT A KERNEL", "NEEDS GPU")
"""Headings that are verdicts: the program writes them in small letters and raises them."""


def own_messages() -> list[str]:
    """Headings of the page on errors that quote a message of the course."""
    text = source("stuck").read_text(encoding="utf-8")
    parts = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    return [heading for name in OURS_TO_SAY for heading in re.findall(r"^### `([^`\n]+)`", parts[name], re.M)]


@pytest.mark.parametrize("message", own_messages())
def test_a_quoted_message_is_one_that_the_course_says(message: str) -> None:
    said = sources()
    pieces = [piece.strip(" :") for piece in re.split(r"\.\.\.", message) if piece.strip(" :")]
    for piece in pieces:
        assert (piece.lower() if piece.split(":")[0] in (*VERDICTS, "WRONG ANSWER") else piece) in said, piece
