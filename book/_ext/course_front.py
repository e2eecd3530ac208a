"""Parts of the front page: pictures drawn from the course's data, and counts of what the course has.

`{front-picture} reader` draws the function of that name in `book/_figures/front.py`; its content is the caption, its
option `alt` says what is seen. `{count}` with `chapters`, `labs` or `measurements` is that number.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from course_concepts import chapters
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from mlsys.course.lab import find_labs
from mlsys.measure import records

BOOK = Path(__file__).parents[1]
sys.path.insert(0, str(BOOK))

logger = logging.getLogger(__name__)


class FrontPicture(SphinxDirective):
    """A picture with its caption."""

    required_arguments = 1
    option_spec = {"alt": str.strip}  # noqa: RUF012 - docutils' own form
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw the picture to a file of the build; Sphinx copies it into the site."""
        import matplotlib.pyplot as plt
        from _figures import front

        name = self.arguments[0]
        draw = getattr(front, name, None)
        if draw is None or not self.options.get("alt") or not self.content:
            logger.error(
                "front-picture %r: name a function of book/_figures/front.py, and give `:alt:` and a caption",
                name,
                location=(self.env.docname, self.lineno),
            )
            return []
        path = Path(self.env.srcdir) / "_build" / "pictures" / f"front-{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        figure = draw()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
        image = nodes.image(
            uri=f"/{path.relative_to(self.env.srcdir)}", alt=" ".join(self.options["alt"].split()), loading="lazy"
        )
        caption = nodes.caption()
        children, messages = self.parse_inline(" ".join(self.content))
        caption += [*children, *messages]
        return [nodes.figure("", image, caption, ids=[f"front-{name}"], classes=["course-drawn"])]


def count_measurements(root: Path) -> int:
    """The rows of all records."""
    files = sorted((root / records.RESULTS_FOLDER).glob("*.json"))
    return sum(len(records.load(file.stem, folder=file.parent).rows) for file in files)


COUNTS: dict[str, Callable[[Path], int]] = {
    "chapters": lambda root: len(chapters(root)),
    "labs": lambda root: len(find_labs(root)),
    "measurements": count_measurements,
}
"""What can be counted; translations of a chapter are not counted again."""


class Count(SphinxRole):
    """A number that the build counts."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Count, or say what can be counted."""
        if self.text not in COUNTS:
            logger.error(
                "%r cannot be counted: name one of %s", self.text, ", ".join(COUNTS), location=self.get_location()
            )
            return [], []
        return [nodes.Text(f"{COUNTS[self.text](Path(self.env.srcdir)):,}")], []


def read_again(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The counts come from elsewhere, so the front page is read at every build."""
    return sorted({str(app.config.root_doc)} & set(env.found_docs))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("front-picture", FrontPicture)
    app.add_role("count", Count())
    app.connect("env-get-outdated", read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
