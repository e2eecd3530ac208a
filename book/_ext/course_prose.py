"""What the build refuses in the text of a page, each with the page, the line and the cure.

A number with a unit in the prose of any page comes from code, by `{glue:text}`. Where it cannot, because it is printed
in a cited document or is the reader's assumption, a comment in the page says so, and gives the reason:

    % given: 45 nm: the process of the cited table
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_interactive import CaptionNode, InteractiveNode
from docutils import nodes
from sphinx.addnodes import index, pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.references import SphinxDomains
from sphinx.util import logging

from mlsys.errors import UserError
from mlsys.measure import records

logger = logging.getLogger(__name__)

MOST_EXCEPTIONS = 5
"""Numbers per page that may stand in the prose with a reason."""

UNIT = (
    r"(?:[kKMGTP]i?B|B|bytes?|FLOPs?|[kMGTP]FLOPs?|[MGT]?OPs?)(?:/s|/byte)?|[kMGT]?bit/s|[munpµ]s|s|seconds?|"
    r"[kmunpfµ]?J|[kmM]?W|[kMG]?Hz|GT/s|[nµm]m|mm²|V|°C|%|cycles|kWh|dollars?"
)
NUMBER = re.compile(rf"(?<![\w.,/^{{-])(\d[\d,]*(?:\.\d+)?)(%|[ \u00a0\n]{{1,2}}(?:{UNIT}))(?![\w/²])")
GIVEN = re.compile(r"^% given: (?P<number>[^:\n]+): (?P<reason>\S.*)$", re.M)
RECORD = re.compile(r"""records\.load\(["']([^"']+)["']\)""")

FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.S)
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=fence)`*[ ]*$", re.M | re.S)
CAPTION = re.compile(r"^[ ]*caption:(?P<text>[^\n]*\n(?:[ ]{4,}[^\n]*\n|\n)*)", re.M)
HIDDEN = re.compile(
    r"^%[^\n]*$"  # comments
    r"|(?:\{[\w:-]+\})?`[^`]*`"  # roles and code
    r"|\$\$.*?\$\$"
    r"|\$[^$\n]*[A-Za-z\\][^$]*\$"  # formulas; a bare number between dollar signs stays visible
    r"|\]\([^)]*\)",  # targets of links
    re.M | re.S,
)


def prose(text: str) -> str:
    """The page with all but its prose blanked out, so that places in it stay where they were.

    Prose are the paragraphs, the quizzes and the captions.
    """
    text = FRONT_MATTER.sub(lambda found: blank(found[0]), text)
    text = FENCE.sub(_visible_fence, text)
    return HIDDEN.sub(lambda found: blank(found[0]), text).replace("$", " ")


def blank(text: str) -> str:
    """As many spaces and line ends as the text has characters."""
    return re.sub(r"[^\n]", " ", text)


def _visible_fence(found: re.Match[str]) -> str:
    whole, info = found[0], found["info"]
    if info.startswith("{quiz}"):
        start = found.start("body") - found.start()
        return blank(whole[:start]) + found["body"] + blank(whole[found.end("body") - found.start() :])
    shown = list(blank(whole))
    for caption in CAPTION.finditer(whole) if info.startswith("{code-cell}") else ():
        shown[caption.start("text") : caption.end("text")] = caption["text"]
    return "".join(shown)


def bare_numbers(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each number with a unit that stands in the prose as it is.

    >>> list(bare_numbers("A tile of {glue:text}`kib` moves at 3 TB/s."))
    [(1, '3 TB/s')]
    """
    seen = prose(text)
    for found in NUMBER.finditer(seen):
        yield line_of(seen, found.start()), " ".join(found[0].split())


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Line and message of everything that is wrong with the numbers of a page."""
    given = {" ".join(found["number"].split()): line_of(text, found.start()) for found in GIVEN.finditer(text)}
    used = set()
    for line, number in bare_numbers(text):
        used.add(number)
        if number not in given:
            yield (
                line,
                f"the number {number!r} stands in the prose as it is: compute it in a cell tagged `numbers` and write "
                f"{{glue:text}}`name`; if it is printed in a cited document or assumed, write the line "
                f"`% given: {number}: REASON` above its paragraph",
            )
    for number, line in given.items():
        if number not in used:
            yield line, f"`% given: {number}` is not needed: no such number stands in the prose; take the line out"
    if len(given) > MOST_EXCEPTIONS:
        yield (
            max(given.values()),
            f"{len(given)} numbers are given and not computed, and {MOST_EXCEPTIONS} are allowed: compute some of them",
        )


def line_of(text: str, place: int) -> int:
    """The line in which a place of a text is."""
    return text.count("\n", 0, place) + 1


def check_numbers(app: Sphinx, docname: str, source: list[str]) -> None:
    """Refuse bare numbers in the prose, and records that are missing or broken."""
    for line, fault in faults(source[0]):
        logger.error("%s", fault, location=(docname, line))
    for found in RECORD.finditer(source[0]):
        try:
            records.load(found[1], folder=Path(app.srcdir) / records.RESULTS_FOLDER)
        except UserError as error:
            line = line_of(source[0], found.start())
            logger.error("%s; the records are in %s", error, records.RESULTS_FOLDER, location=(docname, line))


def demand_captions(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Refuse a picture without a caption."""
    for image in doctree.findall(nodes.image):
        box = image.parent
        while box is not None and not isinstance(box, nodes.figure | InteractiveNode):
            box = box.parent
        captions = [] if box is None else [*box.findall(nodes.caption), *box.findall(CaptionNode)]
        if not any(caption.astext().strip() for caption in captions):
            logger.error(
                "%s: a picture has no caption; state its claim under `mystnb: figure: caption:` of its cell",
                docname,
                location=image,
            )


def explain_missing(app: Sphinx, domain: Any, node: pending_xref) -> bool | None:
    """Say for an unknown term what to do about it; other missing references keep Sphinx's own words."""
    if node.get("reftype") != "term":
        return None
    logger.error(
        "the glossary has no term %r: add it to book/reference/glossary.md, or name one that is there: "
        "{term}`text <term>`",
        node["reftarget"],
        location=node,
    )
    return True


class IndexTerms(SphinxTransform):
    """Leads from the index to the first use of each term of the glossary on the page."""

    default_priority = SphinxDomains.default_priority - 1  # Sphinx collects the entries of the index there

    def apply(self, **kwargs: Any) -> None:
        """Put an entry of the index before each first use."""
        seen: set[str] = set()
        for reference in list(self.document.findall(pending_xref)):
            term, parent = reference["reftarget"], reference.parent
            in_text = isinstance(parent, nodes.paragraph | nodes.emphasis | nodes.strong)
            if reference.get("reftype") == "term" and term not in seen and in_text:
                seen.add(term)
                identifier = f"use-of-{nodes.make_id(term)}"
                entry = index(entries=[("single", term, identifier, "", None)], inline=True)
                parent.insert(parent.index(reference), [entry, nodes.target("", "", ids=[identifier])])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_transform(IndexTerms)
    app.connect("source-read", check_numbers)
    app.connect("doctree-resolved", demand_captions)
    app.connect("warn-missing-reference", explain_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
