"""Where a line must not break: in products such as 4 × 4, before units, and between a formula and the mark after it.

Nor does it break after a Hebrew prefix whose word is in Latin letters.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

UNBROKEN = "course-unbroken"
"""Class of what stays on one line, in the style sheet."""

_AMOUNT = re.compile(r"(?<=\d) (?=[^\W\d]\S{0,8}$)")
_TIMES = re.compile(r"(?<=\d) × (?=\d)")
_PREFIX = re.compile(r"(?<=[א-ת]-)(?=[^\sא-ת]|$)")
_MARKS = re.compile(r"[.,;:!?)\]]+")


def keep_together(app: Sphinx, page: nodes.document, name: str) -> None:
    """Join the factors of products, computed numbers with their units, and formulas with the marks after them."""
    for text in list(page.findall(nodes.Text)):
        kept = _PREFIX.sub("\u2060", _TIMES.sub("\u00a0×\u00a0", str(text)))
        if kept != str(text) and not isinstance(text.parent, (nodes.literal, nodes.math, nodes.FixedTextElement)):
            text.parent.replace(text, nodes.Text(kept))
    for computed in page.findall(lambda node: "pasted-text" in getattr(node, "attributes", {}).get("classes", ())):
        for text in list(computed.findall(nodes.Text)):
            text.parent.replace(text, nodes.Text(_AMOUNT.sub("\u00a0", str(text))))
    for formula in list(page.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        marks = _MARKS.match(str(after)) if isinstance(after, nodes.Text) else None
        if marks and after is not None:
            together = nodes.inline("", "", nodes.Text(marks[0]), classes=[UNBROKEN])
            after.parent.replace(after, nodes.Text(str(after)[marks.end() :]))
            formula.parent.replace(formula, together)
            together.insert(0, formula)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx; computed numbers are in their places when all references of a page are resolved."""
    app.connect("doctree-resolved", keep_together, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
