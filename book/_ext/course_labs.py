"""The table of a lab's questions, written from the lab itself: `{lab-questions} NAME`."""

from pathlib import Path
from typing import Any

from course_tables import table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mlsys.course.lab import Lab

NEEDS = {"gpu": "a GPU"}


class LabQuestions(SphinxDirective):
    """One row per question: its name, its title, its points and the device that it needs. The argument is the lab."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table."""
        source = Path(self.env.srcdir) / "labs" / self.arguments[0] / "lab.py"
        self.env.note_dependency(str(source))
        lab = Lab.load(source)
        rows = [
            (question.name, question.title or lab.title, f"{question.points:g}", NEEDS.get(question.device, ""))
            for question in lab.questions
        ]
        total = sum(question.points for question in lab.questions)
        rows = [("", "question", "points", "needs"), *rows, ("", "all", f"{total:g}", "")]
        shown = 4 if any(needs for *_, needs in rows[1:]) else 3
        head, *body = (row[:shown] for row in rows)
        return [table(head, body)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("lab-questions", LabQuestions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
