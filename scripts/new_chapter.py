"""Begin a chapter: `make new-chapter NAME=performance/coalescing` copies the template and says what is left to do.

The name is that of the page, behind the folder of its part of the book.
"""

import re
import sys
from pathlib import Path

TEMPLATE = "book/_chapter-template.md"

FIGURES = '''"""Figures of the chapter on {name}; each draws one claim, from numbers of the package or of a record."""

from mlsys import viz
from mlsys.hardware import Accelerator

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""


def claim(acc: Accelerator) -> None:
    """The least and the most that the chip does."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 2.4))
    ax.barh(["FP16"], [acc.peak("fp16").m_as("TFLOP/s")], color=colors["BlueLine"])
    ax.set(xlabel="peak rate, TFLOP/s")
'''

NEXT = """{page} and {figures} are there.
1. List the page in _toc.yml:          - file: book/{part}/{name}
2. Say in book/concepts.toml what it needs and gives:
     [{name}]
     needs = []
     gives = "..."
3. Write; `make book` says with page, line and cure what is still missing."""


class CannotBegin(Exception):
    """A name that cannot become a chapter."""


def new_chapter(root: Path, name: str) -> str:
    """Write the page and the figures' file of a new chapter, and return what to do next.

    Raises:
        CannotBegin: if the name is no file name, or taken.
    """
    book = root / "book"
    words = "[a-z][a-z0-9]*(-[a-z0-9]+)*"
    if not re.fullmatch(f"{words}/{words}", name):
        raise CannotBegin(
            f"{name!r} is no name of a chapter: give the part of the book and the chapter's own name, in lower-case "
            "letters, digits and hyphens, as in hardware/host-link"
        )
    part, name = name.split("/")
    if not (book / part).is_dir():
        parts = sorted(path.name for path in book.iterdir() if path.is_dir() and not path.name.startswith("_"))
        raise CannotBegin(f"book/ has no part {part!r}: choose one of {', '.join(parts)}, or make the folder first")
    module = name.replace("-", "_")
    page, figures = book / part / f"{name}.md", book / "_figures" / f"{module}.py"
    taken = [*book.rglob(f"{name}.md"), *(path for path in [figures] if path.exists())]
    if taken:
        raise CannotBegin(f"{taken[0].relative_to(root)} exists already: choose another name, or take it away first")
    template = (root / TEMPLATE).read_text(encoding="utf-8")
    text = template.replace("from _figures import NAME as", f"from _figures import {module} as").replace("NAME", name)
    page.write_text(text.replace(f"`make new-chapter {name}=...`", "`make new-chapter NAME=...`"), encoding="utf-8")
    figures.write_text(FIGURES.format(name=name), encoding="utf-8")
    return NEXT.format(page=page.relative_to(root), figures=figures.relative_to(root), part=part, name=name)


def main(arguments: list[str]) -> int:
    """Run the command; a name that cannot be is one message and exit status 2."""
    if len(arguments) != 1 or not arguments[0]:
        print("say which chapter: make new-chapter NAME=performance/coalescing", file=sys.stderr)
        return 2
    try:
        print(new_chapter(Path.cwd(), arguments[0]))
    except CannotBegin as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
