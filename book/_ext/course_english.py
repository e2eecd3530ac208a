"""Turns of phrase that the build refuses, in the pages, the labs and the README; `prose_patterns.toml` lists them."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_prose import line_of, prose
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

from mlsys.course.pages.languages import ENGLISH, language_of

logger = logging.getLogger(__name__)

DATA = Path(__file__).with_name("prose_patterns.toml")
LAB_CELL = re.compile(r"^# %%(?P<kind>[^\n]*)\n(?P<body>(?:(?!# %%).*\n?)*)", re.M)


@dataclass(frozen=True)
class Phrase:
    """A pattern with the reason why it is refused and better words."""

    name: str
    pattern: re.Pattern[str]
    reason: str
    better: str
    hit: str
    passed: str


def read_phrases(path: Path = DATA) -> list[Phrase]:
    """The phrases of the data file."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return [
        Phrase(
            name,
            re.compile(entry["pattern"].replace(" ", r"\s+"), re.IGNORECASE),
            entry["reason"],
            entry["better"],
            entry["hit"],
            entry["pass"],
        )
        for name, entry in entries.items()
    ]


PHRASES = read_phrases()


def stilted(text: str) -> Iterator[tuple[int, str]]:
    r"""Line and message of every refused phrase in the prose of a page.

    >>> [line for line, _ in stilted("Right.\\n\\nFaster arithmetic helps\\nnothing.")]
    [3]
    """
    seen = prose(text)
    for phrase in PHRASES:
        for found in phrase.pattern.finditer(seen):
            words = " ".join(found[0].split())
            yield line_of(seen, found.start()), f"{words!r} ({phrase.name}): {phrase.reason}; better: {phrase.better}"


def lab_prose(source: str) -> str:
    """The text cells of a lab as Markdown; the lines stay where they were, and those of code are empty."""

    def shown(found: re.Match[str]) -> str:
        lines = found[0].splitlines(keepends=True)
        if "[markdown]" not in found["kind"]:
            return "\n" * len(lines)
        return "\n" + "".join(re.sub(r"^# ?", "", line) for line in lines[1:])

    start = LAB_CELL.search(source)
    head = source[: start.start()] if start else ""
    return "\n" * head.count("\n") + LAB_CELL.sub(shown, source[len(head) :])


def check_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Refuse the phrases on an English page."""
    if language_of(Path(app.env.doc2path(docname))) != ENGLISH:
        return
    for line, fault in sorted(stilted(source[0])):
        logger.error("%s", fault, location=(docname, line))


def check_labs(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Refuse the phrases in the labs and in the README, which are no pages."""
    root = Path(app.srcdir)
    for path in [*sorted(root.glob("labs/*/lab.py")), root / "README.md"]:
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        for line, fault in sorted(stilted(lab_prose(text) if path.suffix == ".py" else text)):
            logger.error("%s", fault, location=f"{path}:{line}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", check_page)
    app.connect("env-before-read-docs", check_labs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
