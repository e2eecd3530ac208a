"""The question bank as Moodle XML: a category per chapter, a multiple-choice question per self-check.

The form is the one that Moodle documents under "Moodle XML format" (https://docs.moodle.org/en/Moodle_XML_format).
"""

from pathlib import Path
from xml.sax.saxutils import escape

from mlsys.course.kit.questions import Chapter, Question, plain

_QUESTION = """<question type="multichoice">
<name><text>{title}</text></name>
<questiontext format="html"><text>{text}</text></questiontext>
<generalfeedback format="html"><text></text></generalfeedback>
<defaultgrade>1</defaultgrade><penalty>0.5</penalty><hidden>0</hidden><idnumber>{name}</idnumber>
<single>true</single><shuffleanswers>false</shuffleanswers><answernumbering>abc</answernumbering>
{answers}
</question>"""

_ANSWER = """<answer fraction="{fraction}" format="html"><text>{text}</text>
<feedback format="html"><text>{feedback}</text></feedback></answer>"""


def moodle_xml(chapters: list[Chapter], book: str) -> str:
    """Return the questions of all chapters as one file; `book` is the name of the category above the chapters'."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<quiz>"]
    for chapter in chapters:
        # A slash divides categories, and two slashes mean one.
        place = "/".join(name.replace("/", "//") for name in (book, chapter.title))
        lines.append(
            f'<question type="category"><category><text>$course$/top/{escape(place)}</text></category></question>'
        )
        lines += [_question(question) for question in chapter.questions]
    return "\n".join([*lines, "</quiz>", ""])


def write_moodle(chapters: list[Chapter], book: str, target: Path) -> Path:
    """Write the file for Moodle and return its path."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(moodle_xml(chapters, book), encoding="utf-8")
    return target


def _question(question: Question) -> str:
    answers = (
        _ANSWER.format(
            fraction=100 * choice.right,
            text=escape(f"<p>{choice.text}</p>"),
            feedback=escape(f"<p>{choice.feedback}</p>"),
        )
        for choice in question.choices
    )
    return _QUESTION.format(
        title=escape(plain(question.text)[:250]),
        text=escape(f"<p>{question.text}</p>"),
        name=question.name,
        answers="\n".join(answers),
    )
