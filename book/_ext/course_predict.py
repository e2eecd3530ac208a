"""Predictions: `{predict} ID` asks before the text, `{settled} ID` answers in the section that settles the question.

Without JavaScript both are boxes with text. `predict.js` turns the choices into radio buttons, keeps the choice in the
browser, and shows it again where the question is settled. The right letter is written only into the second box.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from course_languages import page_language
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from mlsys.course.pages.prediction import Prediction, PredictionError, read_prediction

logger = logging.getLogger(__name__)


class PredictNode(nodes.General, nodes.Element):
    """The box of a prediction: its text, its choices, and the line that says where the answer is."""


class PredictChoiceNode(nodes.Part, nodes.Element):
    """One choice, an item of a list."""


class WhereNode(nodes.General, nodes.TextElement):
    """The line that says where the answer is; its only child is the link."""


class SettledNode(nodes.General, nodes.Element):
    """The box of the answer."""


class _Directive(SphinxDirective):
    required_arguments = 1
    has_content = True

    def refuse(self, message: str) -> list[nodes.Node]:
        """Fail the build with the place and the message."""
        logger.error("%s", message, location=(self.env.docname, self.lineno))
        return []


class Predict(_Directive):
    """The argument is an id, unique over the book."""

    option_spec = {"right": str.strip, "settled": str.strip}  # noqa: RUF012 - docutils' own form

    def run(self) -> list[nodes.Node]:
        """Build the box, or say what is wrong with it."""
        name = self.arguments[0]
        if nodes.make_id(name) != name:
            return self.refuse(f"prediction id {name!r} is not made of lower-case letters, digits and hyphens")
        known = predictions(self.env)
        if name in known:
            return self.refuse(f"prediction id {name!r} is taken by page {known[name][0]}: choose another")
        body = "\n".join(self.content)
        try:
            prediction = read_prediction(body, self.options.get("right", ""), self.options.get("settled", ""))
        except PredictionError as error:
            return self.refuse(f"prediction {name!r}: {error}")
        known[name] = (self.env.docname, prediction)
        box = PredictNode(ids=[f"predict-{name}"], name=name, settled=prediction.settled)
        self.set_source_info(box)
        self.state.nested_parse(self.content, self.content_offset, box)
        lists = [child for child in box.children if isinstance(child, nodes.bullet_list)]
        if sum(len(found) for found in lists) != len(prediction.letters):
            return self.refuse(
                f"prediction {name!r}: its choices are no list of their own: leave a line free before it"
            )
        letters = iter(prediction.letters)
        for found in lists:
            found["classes"].append("course-predict-choices")
            items = [PredictChoiceNode("", *item.children, letter=next(letters)) for item in found.children]
            found.children = []
            found += items
        box += self.where(prediction.settled)
        return [box]

    def where(self, label: str) -> "WhereNode":
        """The line with the link to the section that settles the question."""
        link = pending_xref(
            "",
            nodes.inline(classes=["std", "std-ref"]),
            refdomain="std",
            reftype="ref",
            reftarget=nodes.fully_normalize_name(label),
            refexplicit=False,
            refwarn=True,
            refdoc=self.env.docname,
        )
        self.set_source_info(link)
        return WhereNode("", "", link)


class Settled(_Directive):
    """The argument is the id of a prediction that comes before it on the same page."""

    def run(self) -> list[nodes.Node]:
        """Build the box, or say what is wrong with it."""
        name = self.arguments[0]
        page, prediction = predictions(self.env).get(name, ("", None))
        if page != self.env.docname or prediction is None:
            return self.refuse(
                f"settled {name!r}: no prediction of this id comes before it on this page: correct the id, or write "
                f"`:::{{predict}} {name}` at the top"
            )
        box = SettledNode(ids=[f"settled-{name}"], name=name, right=prediction.right)
        self.set_source_info(box)
        self.state.nested_parse(self.content, self.content_offset, box)
        return [box]


def predictions(env: BuildEnvironment) -> dict[str, tuple[str, Prediction]]:
    """Ids of all predictions of the book, each with its page and what it says."""
    if not hasattr(env, "course_predictions"):
        env.course_predictions = {}
    return env.course_predictions


def forget_page(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop the ids of a page that is read again."""
    for name in [name for name, (page, _) in predictions(env).items() if page == docname]:
        del predictions(env)[name]


def check_pairs(app: Sphinx, doctree: nodes.document) -> None:
    """Refuse a prediction that nothing settles, or that is settled twice or in another section than it says."""
    answers: dict[str, list[SettledNode]] = {}
    for answer in doctree.findall(SettledNode):
        answers.setdefault(answer["name"], []).append(answer)
    for box in doctree.findall(PredictNode):
        name, label = box["name"], box["settled"]
        found = answers.get(name, [])
        place = doctree.nameids.get(nodes.fully_normalize_name(label))
        if len(found) != 1:
            logger.error(
                "prediction %r is settled %s: write `:::{settled} %s` once, right after the heading of section %r",
                name,
                f"{len(found)} times" if found else "nowhere",
                name,
                label,
                location=box,
            )
        elif place is None:
            logger.error(
                "prediction %r is settled in section %r, which this page does not have: write `(%s)=` on the line "
                "before the heading",
                name,
                label,
                label,
                location=box,
            )
        elif not any(place in section["ids"] for section in _sections_around(found[0])):
            logger.error(
                "prediction %r is settled outside section %r: move `:::{settled} %s` right after its heading",
                name,
                label,
                name,
                location=found[0],
            )


def _sections_around(node: nodes.Node) -> list[nodes.section]:
    around = []
    while node.parent is not None:
        node = node.parent
        if isinstance(node, nodes.section):
            around.append(node)
    return around


def words(translator: HTML5Translator) -> Mapping[str, str]:
    """The words for the language of the page that is being written."""
    return page_language(translator.builder.env, translator.builder.current_docname)["predict"]


def _data(said: Mapping[str, str], *keys: str) -> str:
    return "".join(f' data-{key}="{escape(said[key], quote=True)}"' for key in keys)


def visit_predict(self: HTML5Translator, node: PredictNode) -> None:
    """Open the box; the words that the script says travel with it."""
    said, name = words(self), node["name"]
    data = _data(said, "choose", "kept")
    self.body.append(
        f'<div class="admonition course-predict" id="predict-{name}" data-name="{name}"{data}>\n'
        f'<p class="admonition-title">{escape(said["title"])}</p>\n'
    )


def depart_box(self: HTML5Translator, node: nodes.Element) -> None:
    """Close a box."""
    self.body.append("</div>\n")


def visit_choice(self: HTML5Translator, node: PredictChoiceNode) -> None:
    """Open a choice; a typeset formula has no text for a screen reader, so its source goes along."""
    spoken = {"data-spoken": node.astext()} if any(node.findall(nodes.math)) else {}
    self.body.append(self.starttag(node, "li", "", **{"data-letter": node["letter"], **spoken}))


def depart_choice(self: HTML5Translator, node: PredictChoiceNode) -> None:
    """Close a choice."""
    self.body.append("</li>\n")


def visit_where(self: HTML5Translator, node: WhereNode) -> None:
    """Write the words before the link."""
    self.body.append(f'<p class="course-predict-where">{escape(words(self)["where"].split("{section}")[0])}')


def depart_where(self: HTML5Translator, node: WhereNode) -> None:
    """Write the words behind the link."""
    self.body.append(f"{escape(words(self)['where'].split('{section}')[1])}</p>\n")


def visit_settled(self: HTML5Translator, node: SettledNode) -> None:
    """Open the box with the answer, and leave a line for what the reader predicted, which the script fills."""
    said, name, right = words(self), node["name"], node["right"]
    self.body.append(
        f'<div class="admonition course-settled" id="settled-{name}" data-name="{name}" data-letter="{right}"'
        f"{_data(said, 'right', 'wrong', 'none')}>\n"
        f'<p class="admonition-title">{escape(said["answer"].format(letter=right))}</p>\n'
        '<p class="course-settled-yours" role="status" hidden></p>\n'
    )


def add_script(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give a page with a prediction its script."""
    if doctree and any(doctree.findall(PredictNode)):
        app.add_js_file("predict.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("course_languages")
    app.setup_extension("course_progress")  # its store keeps what was predicted
    app.add_directive("predict", Predict)
    app.add_directive("settled", Settled)
    app.add_node(PredictNode, html=(visit_predict, depart_box))
    app.add_node(PredictChoiceNode, html=(visit_choice, depart_choice))
    app.add_node(WhereNode, html=(visit_where, depart_where))
    app.add_node(SettledNode, html=(visit_settled, depart_box))
    app.add_css_file("predict.css")
    app.connect("env-purge-doc", forget_page)
    app.connect("doctree-read", check_pairs)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
