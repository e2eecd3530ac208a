"""The course's own steps in nbgrader: `configure` puts them into its configurable lists.

`nbgrader autograde LAB` in the course's folder then reads every file carefully (`SubmissionExporter`), normalizes it
(`Normalize`), runs every question in a process of its own (`RunQuestions`), writes the gradebook (`SaveScores`), and
records how the submission came out (`SaveRecord`).
"""

import os
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from nbconvert.exporters import Exporter, NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader import preprocessors as steps
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.exc import SAWarning
from traitlets import Integer, Unicode
from traitlets.config import Config

from mlsys.classroom.batch.submission import judge_questions
from mlsys.classroom.batch.task import Judged
from mlsys.classroom.gradebook.feedback import feedback_page
from mlsys.classroom.gradebook.quote_answers import quote_written
from mlsys.classroom.gradebook.scores import comments_of_people, marks_in, show_verdicts, write_scores
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.reading import canonical_with_limits, read_with_limits
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.record import HandedIn
from mlsys.classroom.store.terms import term_of, terms
from mlsys.course.digest import digest
from mlsys.course.nbgrader import check_database
from mlsys.course.starter import starter
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.judge.grade_question import LIMITS, device_and_versions

Processed = tuple[NotebookNode, ResourcesDict]


def configure(c: Config) -> None:
    """Set the lists of steps; called by the `nbgrader_config.py` that `mlsys release` writes."""
    # nbgrader starts `alembic` by name, which is beside the Python that runs this.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # nbgrader builds its submissions in an order that SQLAlchemy warns about, to no effect.
    warnings.filterwarnings("ignore", category=SAWarning, message="Object of type .* not in session")
    c.GenerateAssignment.preprocessors = [
        steps.LockCells,
        StarterCode,
        steps.ClearOutput,
        steps.CheckCellMetadata,
        steps.ComputeChecksums,
        steps.SaveCells,
        steps.ClearHiddenTests,
        steps.ComputeChecksums,
        steps.CheckCellMetadata,
    ]
    c.Exporter.optimistic_validation = True  # once at the end instead of after each step
    c.Autograde.exporter_class = SubmissionExporter
    c.Autograde.sanitize_preprocessors = [
        Normalize,
        steps.ClearOutput,
        steps.DeduplicateIds,
        steps.OverwriteKernelspec,
        steps.OverwriteCells,
        steps.CheckCellMetadata,
    ]
    c.Autograde.autograde_preprocessors = [
        RunQuestions,
        steps.LimitOutput,
        SaveScores,
        LatePenalty,
        SaveRecord,
        QuoteWrittenAnswers,
    ]
    c.GenerateFeedback.exporter_class = FeedbackExporter
    c.GenerateFeedback.preprocessors = [steps.GetGrades, GetMarks, steps.ClearHiddenTests]


def course_tree() -> CourseTree:
    """Return the course that nbgrader works on: it changes into its folder before it converts anything."""
    return CourseTree(Path.cwd())


class StarterCode(NbGraderPreprocessor):  # type: ignore[misc]
    """Takes the place of nbgrader's ClearSolutions when an assignment is generated."""

    def preprocess_cell(self, cell: NotebookNode, resources: ResourcesDict, cell_index: int) -> Processed:
        """Replace the solution regions of one cell."""
        cell.source = starter(cell.source)
        return cell, resources


class SubmissionExporter(NotebookExporter):
    """Reads submitted files with our own reader, which refuses what is no notebook before anything else sees it."""

    def from_filename(self, filename: str, resources: dict[str, Any] | None = None, **kw: Any) -> Any:
        """Convert one file; nbgrader calls it for the submitted file, then for the notebook made of it."""
        if not cast(Any, self.parent)._sanitizing:
            return super().from_filename(filename, resources, **kw)
        notebook = read_with_limits(Path(filename))
        return self.from_notebook_node(notebook, resources, **kw)  # type: ignore[no-untyped-call]


class Normalize(NbGraderPreprocessor):  # type: ignore[misc]
    """Makes the submitted notebook canonical, with the repairs in its metadata."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Normalize one submission."""
        tree, lab, student = course_tree(), resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        submission = digest(tree.submitted(lab, student).read_bytes())
        term = term_of(store_of(tree), lab, student, submission)
        return canonical_with_limits(tree, lab, nb, submission, term), resources


class RunQuestions(NbGraderPreprocessor):  # type: ignore[misc]
    """Takes the place of nbgrader's Execute: a process per question, its verdict as outputs that nbgrader scores."""

    device = Unicode("auto", help='"cpu", "gpu", or "auto" for a GPU where there is one').tag(config=True)
    cpu_limit_s = Integer(LIMITS.cpu_s, help="seconds of computing that one question may use").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Run all questions of one submission."""
        tree, name, student = course_tree(), resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        submission = nb.metadata["mlsys"]["submitted_digest"]
        under = terms(store_of(tree), name, student, submission)
        under = replace(under, sandboxed=True)  # only `mlsys grade` can be told to go on without
        questions = judge_questions(tree, name, nb, self.device, self.cpu_limit_s, under)
        here = device_and_versions(self.device)
        old = store_of(tree).record(name, student)
        handed_in = old.handed_in if old and old.submission == submission else HandedIn()
        judged = Judged(student, submission, questions, notebook=nb, terms=under, handed_in=handed_in, **here)
        record = resources["mlsys_record"] = judged.record(released_lab(tree, name))
        show_verdicts(nb, record)
        return nb, resources


class SaveScores(NbGraderPreprocessor):  # type: ignore[misc]
    """Takes the place of nbgrader's SaveAutoGrades: scores come from the record, not from the text of outputs."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Write the gradebook for one submission."""
        about = resources["nbgrader"]
        check_database(course_tree(), about["db_url"])
        with Gradebook(about["db_url"]) as gradebook:
            place = about["notebook"], about["assignment"], about["student"]
            write_scores(gradebook.find_submission_notebook(*place), nb, resources["mlsys_record"])
            gradebook.db.commit()
        return nb, resources


class LatePenalty(steps.AssignLatePenalties):  # type: ignore[misc]
    """Takes off what the roster's rule says; without one, what nbgrader's own plugin says."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Write the penalty of one submission."""
        nb, resources = super().preprocess(nb, resources)
        about, record = resources["nbgrader"], resources["mlsys_record"]
        if record.ruled:
            with Gradebook(about["db_url"]) as gradebook:
                place = about["notebook"], about["assignment"], about["student"]
                submitted = gradebook.find_submission_notebook(*place)
                marked = record.marked(marks_in(about["student"], [submitted]))
                submitted.late_submission_penalty = marked.penalty or None
                gradebook.db.commit()
        return nb, resources


class SaveRecord(NbGraderPreprocessor):  # type: ignore[misc]
    """Keeps the record of the submission, once the grades are in the gradebook."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Record one submission."""
        store_of(course_tree()).save_record(resources["mlsys_record"])
        return nb, resources


class QuoteWrittenAnswers(NbGraderPreprocessor):  # type: ignore[misc]
    """Quotes what the student wrote, once nbgrader has saved the grades."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Quote the cells of one submission."""
        quote_written(nb)
        return nb, resources


class FeedbackExporter(Exporter):
    """Takes the place of nbconvert's HTMLExporter when feedback is generated."""

    file_extension = ".html"
    output_mimetype = "text/html"

    def from_notebook_node(self, nb: NotebookNode, resources: Any = None, **kw: Any) -> Any:
        """Convert one graded notebook."""
        nb, resources = super().from_notebook_node(nb, resources, **kw)
        return feedback_page(nb, resources["mlsys_record"], resources["mlsys_comments"]), resources


class GetMarks(NbGraderPreprocessor):  # type: ignore[misc]
    """Finds what the feedback page says: the record, with the points and comments that a person gave."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Look up one graded submission."""
        about = resources["nbgrader"]
        record = store_of(course_tree()).record(about["assignment"], about["student"])
        if record is None or record.refused:
            reason = record.refused if record else "there is no record of it that can be read"
            raise UserError(f"{about['student']}: {reason}; run `mlsys grade {about['assignment']}` again")
        with Gradebook(about["db_url"]) as gradebook:
            place = about["notebook"], about["assignment"], about["student"]
            submitted = gradebook.find_submission_notebook(*place)
            penalty = float(submitted.late_submission_penalty or 0)
            resources["mlsys_record"] = record.marked(marks_in(about["student"], [submitted]), penalty)
            resources["mlsys_comments"] = comments_of_people(submitted)
        return nb, resources
