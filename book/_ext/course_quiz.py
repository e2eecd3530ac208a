"""Self-checks that are scored in the page, without a server: `{quiz} id` with the question and its choices as YAML.

Without JavaScript every choice has a fold with its feedback; `quiz.js` turns the folds into one place that answers.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from course_languages import page_language
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from mlsys.course.pages.quiz import Choice, QuizError, read_quiz

logger = logging.getLogger(__name__)


class QuizNode(nodes.General, nodes.Element):
    """A fieldset: its children are a question and choices."""


class QuestionNode(nodes.General, nodes.TextElement):
    """The legend of a quiz."""


class ChoiceNode(nodes.General, nodes.Element):
    """A radio button with its label, followed by its feedback."""


class LabelNode(nodes.General, nodes.TextElement):
    """The label of a choice."""


class FeedbackNode(nodes.General, nodes.TextElement):
    """What is said to the reader who made this choice."""


class QuizDirective(SphinxDirective):
    """The argument is an id, unique over the book."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Build the quiz, or say what is wrong with it."""
        name = self.arguments[0]
        where = (self.env.docname, self.lineno)
        try:
            quiz = read_quiz("\n".join(self.content))
        except QuizError as error:
            logger.error("quiz %r: %s", name, error, location=where)
            return []
        if nodes.make_id(name) != name:
            logger.error("quiz id %r is not made of lower-case letters, digits and hyphens", name, location=where)
            return []
        known = quizzes(self.env)
        if name in known:
            logger.error("quiz id %r is taken by page %s: choose another", name, known[name], location=where)
            return []
        known[name] = self.env.docname
        place = sum(page == self.env.docname for page in known.values())
        box = QuizNode(ids=[f"quiz-{name}"], name=name)
        box += self.inline(QuestionNode(place=place), quiz.question)
        for number, choice in enumerate(quiz.choices, 1):
            box += self.choice(choice, f"quiz-{name}-{number}", name)
        self.set_source_info(box)
        return [box]

    def choice(self, choice: Choice, identifier: str, group: str) -> ChoiceNode:
        """One radio button with label and feedback."""
        node = ChoiceNode(right=choice.right)
        node += self.inline(LabelNode(identifier=identifier, group=group), choice.text)
        node += self.inline(FeedbackNode(right=choice.right), choice.feedback)
        return node

    def inline(self, parent: nodes.TextElement, text: str) -> nodes.TextElement:
        """Parse inline markup in the context of the page, so that its numbers, terms and formulas work."""
        children, messages = self.parse_inline(text)
        parent += [*children, *messages]
        parent.source, parent.line = self.get_source_info()
        return parent


def quizzes(env: BuildEnvironment) -> dict[str, str]:
    """Ids of all quizzes of the book, with the page of each."""
    if not hasattr(env, "course_quizzes"):
        env.course_quizzes = {}
    return env.course_quizzes


def forget_page(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Drop the ids of a page that is read again."""
    for name in [name for name, page in quizzes(env).items() if page == docname]:
        del quizzes(env)[name]


def words(translator: HTML5Translator) -> Mapping[str, str]:
    """The words for the language of the page that is being written."""
    return page_language(translator.builder.env, translator.builder.current_docname)["quiz"]


def visit_quiz(self: HTML5Translator, node: QuizNode) -> None:
    """Open the fieldset; the words that the script says travel with it."""
    said = "".join(
        f' data-{key}="{escape(words(self)[key], quote=True)}"' for key in ("right", "wrong", "choose", "score")
    )
    self.body.append(f'<fieldset class="course-quiz" id="{node["ids"][0]}"{said}>\n')


def depart_quiz(self: HTML5Translator, node: QuizNode) -> None:
    """Add the button and the place for the answer, which the script shows."""
    check = escape(words(self)["check"])
    self.body.append(
        f'<p class="course-quiz-act" hidden><button type="button">{check}</button></p>\n'
        '<p class="course-quiz-reply" role="status" aria-live="polite"></p>\n</fieldset>\n'
    )


def visit_question(self: HTML5Translator, node: QuestionNode) -> None:
    """The legend names the group for a screen reader."""
    self.body.append(f"<legend>{node['place']}. ")


def depart_question(self: HTML5Translator, node: QuestionNode) -> None:
    """Close the legend."""
    self.body.append("</legend>\n")


def visit_choice(self: HTML5Translator, node: ChoiceNode) -> None:
    """Open a choice; the browser's own state decides nothing, so the key can stand in the page."""
    self.body.append(f'<div class="course-quiz-choice" data-right="{str(node["right"]).lower()}">\n')


def depart_choice(self: HTML5Translator, node: ChoiceNode) -> None:
    """Close a choice."""
    self.body.append("</div>\n")


def visit_label(self: HTML5Translator, node: LabelNode) -> None:
    """The button comes before its label."""
    identifier = node["identifier"]
    # A typeset formula is no text to a screen reader's name for the button: its source is.
    spoken = f' aria-label="{escape(node.astext(), quote=True)}"' if any(node.findall(nodes.math)) else ""
    self.body.append(
        f'<input type="radio" name="quiz-{node["group"]}" id="{identifier}"{spoken}><label for="{identifier}">'
    )


def depart_label(self: HTML5Translator, node: LabelNode) -> None:
    """Close the label."""
    self.body.append("</label>\n")


def visit_feedback(self: HTML5Translator, node: FeedbackNode) -> None:
    """A fold that works without JavaScript."""
    said = words(self)
    verdict = said["right"] if node["right"] else said["wrong"]
    self.body.append(f"<details><summary>{escape(said['fold'])}</summary><p><strong>{escape(verdict)}</strong> <span>")


def depart_feedback(self: HTML5Translator, node: FeedbackNode) -> None:
    """Close the fold."""
    self.body.append("</span></p></details>\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("course_languages")
    app.setup_extension("course_progress")  # its store keeps what was answered
    app.add_directive("quiz", QuizDirective)
    app.add_node(QuizNode, html=(visit_quiz, depart_quiz))
    app.add_node(QuestionNode, html=(visit_question, depart_question))
    app.add_node(ChoiceNode, html=(visit_choice, depart_choice))
    app.add_node(LabelNode, html=(visit_label, depart_label))
    app.add_node(FeedbackNode, html=(visit_feedback, depart_feedback))
    app.add_css_file("quiz.css")
    app.add_js_file("quiz.js", loading_method="defer")
    app.connect("env-purge-doc", forget_page)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
