"""Figures are numbered from 1 on every page, and one without alt text stops the build."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

logger = logging.getLogger(__name__)


def number_per_page(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Replace the running numbers of the whole book: "Figure 2" then also holds in the page's notebook."""
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


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("env-get-updated", number_per_page, priority=900)  # after Sphinx has given its own numbers
    app.connect("doctree-resolved", demand_alt_text)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
