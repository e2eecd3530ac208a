"""Figures are numbered from 1 on every page, and one without alt text stops the build.

So does what would leave a hole in a page without a word: a font that a figure or the formulas lack, and whatever else a
cell complains about.
"""

import copy
import os
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

logger = logging.getLogger(__name__)

BOOK = Path(__file__).parents[1]

MATHJAX = "book/_static/mathjax"
KINETO_LEVEL = "6"
"""Above the level at which torch's profiler notes on the terminal when it starts and stops."""
FONTS = f"{MATHJAX}/output/chtml/fonts/woff-v2"
"""Where MathJax's script, which names its fonts, looks for them."""


def show_figures_to_cells(app: Sphinx, config: Config) -> None:
    """Let the cells of a page import `_figures`, in whichever folder of the book the page lies."""
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(BOOK) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(BOOK), *filter(None, path)])


def silence_profiler(app: Sphinx, config: Config) -> None:
    """Keep the notes of torch's profiler, which a chapter uses, out of the output of the build."""
    os.environ.setdefault("KINETO_LOG_LEVEL", KINETO_LEVEL)


def restore_running_numbers(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Give Sphinx its own numbers back to compare with; it would write every page with a figure again."""
    env.toc_fignumbers = getattr(env, "course_running_numbers", env.toc_fignumbers)
    return []


def number_per_page(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Replace the running numbers of the whole book: "Figure 2" then also holds in the page's notebook."""
    env.course_running_numbers = copy.deepcopy(env.toc_fignumbers)
    for kinds in env.toc_fignumbers.values():
        for numbers in kinds.values():
            in_page_order = sorted(numbers, key=lambda figure: numbers[figure])
            numbers.update({figure: (place,) for place, figure in enumerate(in_page_order, 1)})
    return []


def demand_alt_text(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Warn (an error in the build) for each picture whose alt text is missing."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt", "").strip():
            logger.warning(
                "%s: a picture has no alt text; say in words what it shows, under `mystnb: image: alt:` of its cell",
                docname,
                location=image,
            )


def refuse_complaints(app: Sphinx, doctree: nodes.document) -> None:
    """Refuse a page whose cells wrote to stderr, such as a figure that lacks its font or a letter of it."""
    for block in doctree.findall(nodes.literal_block):
        if "stderr" in block["classes"]:
            said = " ".join(line.strip() for line in block.astext().strip().splitlines()[:2])
            logger.error(
                "%s: a cell complains: %s (mend what it says; if it is harmless, tag the cell `remove-stderr`)",
                app.env.docname,
                said,
                location=block,
            )


def demand_formula_fonts(app: Sphinx, doctree: nodes.document) -> None:
    """Refuse a page with formulas when one of the fonts for them is missing."""
    root = Path(app.srcdir)
    script = root / MATHJAX / Path(app.config.mathjax_path).name
    if not script.is_file() or not any(doctree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block))):
        return
    names = sorted(set(re.findall(r"MathJax_[\w-]+?\.woff", script.read_text(encoding="utf-8"))))
    missing = [name for name in names if not (root / FONTS / name).is_file()]
    if missing:
        logger.error(
            "%s: its formulas need fonts that are missing: %s; put them back into %s",
            app.env.docname,
            ", ".join(missing),
            FONTS,
            location=app.env.docname,
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("config-inited", show_figures_to_cells)
    app.connect("config-inited", silence_profiler)
    app.connect("env-get-updated", restore_running_numbers, priority=100)  # before Sphinx gives its own numbers
    app.connect("env-get-updated", number_per_page, priority=900)  # and after
    app.connect("doctree-resolved", demand_alt_text)
    app.connect("doctree-read", refuse_complaints)
    app.connect("doctree-read", demand_formula_fonts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
