"""The page about a class as one HTML file that loads nothing: every student, with filters, and the kernels."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import jinja2

from mlsys.classroom.gradebook.feedback import code_spans, heading, styles
from mlsys.classroom.gradebook.marks import read_class
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.overview.kernels import Races, races_of
from mlsys.classroom.overview.standing import Standing, standings
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.store import Store
from mlsys.classroom.students.attempt_policy import POLICIES
from mlsys.classroom.students.roster import Roster
from mlsys.classroom.templates import page_file, page_templates
from mlsys.core.files import write_atomically
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@dataclass(frozen=True)
class ClassPage:
    """All that the page says.

    Attributes:
        title: of the lab.
        made_at: when it was written, in UTC.
        standings: of everybody.
        questions: the questions in the lab's order, as one of the records has them.
        races: the kernels that were raced.
    """

    title: str
    made_at: str
    standings: Sequence[Standing]
    questions: Sequence[QuestionRecord]
    races: Sequence[Races] = ()

    @property
    def sections(self) -> list[str]:
        """The sections of the roster, in alphabetical order."""
        return sorted({one.section for one in self.standings if one.section})

    @property
    def verdicts(self) -> list[str]:
        """All verdicts that occur, in alphabetical order."""
        return sorted({one.verdict for row in self.standings if row.record for one in row.record.questions})


def write_class_page(tree: CourseTree, store: Store, lab: str, roster: Roster | None) -> list[Record]:
    """Write the page about a class, with the marks that people gave, and return the records that it shows.

    Raises:
        UserError: nothing was graded, a list of attempts cannot be read, or the folder cannot be written.
    """
    records = read_class(tree, store, lab)
    known = [record for record in records.values() if record]
    if not known:
        raise UserError(f"{tree.root} has no results of {lab}: run `mlsys grade {lab}` first")
    run = store.run(lab)
    policy = run.arguments.get("attempt", POLICIES[0]) if run else POLICIES[0]
    most = max(known, key=lambda record: len(record.questions))
    page = ClassPage(
        released_lab(tree, lab).title,
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        standings(store, lab, records, roster, policy),
        most.questions,
        races_of(known),
    )
    write_atomically(tree.class_page(lab), render(page).encode(errors="replace"))
    return known


def render(page: ClassPage) -> str:
    """Return the page as HTML."""
    template, style, script = _parts()
    # The policy names the one script of the page by its digest, so that no other runs, whatever a name may hold.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return template.render(page=page, style=styles() + style, script=script, script_digest=digest) + "\n"


def points(record: Record) -> str:
    """Return the points of a record in words."""
    return "refused" if record.refused else f"{record.points:g}"


@cache
def _parts() -> tuple[jinja2.Template, str, str]:
    package = "mlsys.classroom.overview"
    templates = page_templates(package, code_spans=code_spans, heading=heading, points=points)
    return templates.get_template("class.html.j2"), page_file(package, "class.css"), page_file(package, "class.js")
