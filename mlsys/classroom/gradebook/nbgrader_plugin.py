"""The course's own steps in nbgrader: `configure` puts them into its configurable lists.

`nbgrader autograde LAB` in the course's folder then reads every file carefully (`SubmissionExporter`), mends it
(`Ingest`), runs every question in a process of its own (`RunQuestions`), and records how it came out (`SaveRecord`).
"""

import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from nbconvert.exporters import Exporter, NotebookExporter
from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader import preprocessors as steps
from nbgrader.api import Gradebook, SubmittedNotebook
from nbgrader.preprocessors import NbGraderPreprocessor
from sqlalchemy.exc import SAWarning
from traitlets import Integer, Unicode
from traitlets.config import Config

from mlsys.classroom.batch.submission import judge_questions
from mlsys.classroom.gradebook.feedback import feedback_page
from mlsys.classroom.gradebook.quote_answers import quote_written
from mlsys.classroom.intake.normalise import grade_id, is_answer
from mlsys.classroom.intake.submitted import canonical_with_limits, read_with_limits
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Terms, terms
from mlsys.course.notebook import new_output
from mlsys.course.starter import starter
from mlsys.course.tree import CourseTree
from mlsys.judge.grade_question import LIMITS, device_and_versions

Processed = tuple[NotebookNode, ResourcesDict]


def configure(c: Config) -> None:
    """Set the lists of steps; called by the `nbgrader_config.py` that `mlsys release` writes."""
    # nbgrader starts `alembic` by name, which stands beside the Python that runs this.
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
        Ingest,
        steps.ClearOutput,
        steps.DeduplicateIds,
        steps.OverwriteKernelspec,
        steps.OverwriteCells,
        steps.CheckCellMetadata,
    ]
    c.Autograde.autograde_preprocessors = [
        RunQuestions,
        steps.LimitOutput,
        steps.SaveAutoGrades,
        steps.AssignLatePenalties,
        SaveRecord,
        QuoteWrittenAnswers,
    ]
    c.GenerateFeedback.exporter_class = FeedbackExporter
    c.GenerateFeedback.preprocessors = [steps.GetGrades, GetMarks, steps.ClearHiddenTests]


def course_tree() -> CourseTree:
    """The course that nbgrader works on: it changes into its folder before it converts anything."""
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


class Ingest(NbGraderPreprocessor):  # type: ignore[misc]
    """Makes the submitted notebook canonical, with the repairs in its metadata."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Mend one submission."""
        about = resources["nbgrader"]
        return canonical_with_limits(course_tree(), about["assignment"], about["student"], nb), resources


class RunQuestions(NbGraderPreprocessor):  # type: ignore[misc]
    """Takes the place of nbgrader's Execute: a process per question, its verdict as outputs that nbgrader scores."""

    device = Unicode("auto", help='"cpu", "gpu", or "auto" for a GPU where there is one').tag(config=True)
    cpu_limit_s = Integer(LIMITS.cpu_s, help="seconds of computing that one question may use").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Run all questions of one submission."""
        tree, name, student = course_tree(), resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        under = terms(tree, name, student, nb.metadata["mlsys"]["submitted_digest"])
        under = replace(under, sandboxed=True)  # only `mlsys grade` can be told to go on without
        questions = judge_questions(tree, name, nb, self.device, self.cpu_limit_s, under)
        resources["mlsys_record"] = with_verdicts(nb, name, student, questions, under, self.device)
        return nb, resources


def with_verdicts(
    nb: NotebookNode, lab: str, student: str, questions: Sequence[QuestionRecord], under: Terms, device: str
) -> Record:
    """Put verdicts into a canonical notebook, as outputs that nbgrader scores, and return the record of them."""
    nb.metadata["mlsys"]["sandboxed"] = under.sandboxed
    cells = {grade_id(cell): cell for cell in nb.cells if grade_id(cell)}
    for question in questions:
        cell = cells[question.grade_id]
        cell.metadata["mlsys"]["record"] = asdict(question)
        if cell.cell_type == "code":
            cell.outputs = outputs(question)
    about = device_and_versions(device)
    return Record(
        student=student,
        lab=lab,
        version=nb.metadata["mlsys"]["submitted_version"],
        graded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        submission=nb.metadata["mlsys"]["submitted_digest"],
        device=about["device"],
        versions=about["versions"],
        run=under.run,
        seed=under.seed,
        sandboxed=under.sandboxed,
        repairs=tuple(nb.metadata["mlsys"]["repairs"]),
        questions=tuple(questions),
    )


def outputs(question: QuestionRecord) -> list[NotebookNode]:
    """The outputs that make nbgrader give a verdict's points: an error none, one float that many, else all of them."""
    text = f"{question.verdict}: {question.message}" if question.message else question.verdict
    if question.points == question.max_points:
        return [new_output("display_data", data={"text/plain": text})]
    if question.points == 0:
        return [new_output("error", ename=question.verdict, evalue=question.message, traceback=[text])]
    return [new_output("execute_result", data={"text/plain": repr(question.points)}, execution_count=1)]


class SaveRecord(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes verdicts as comments into the gradebook, and the record of the submission beside it."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Record one submission; the grades are in the gradebook already."""
        about, record = resources["nbgrader"], resources["mlsys_record"]
        with Gradebook(about["db_url"]) as gradebook:
            for name, text in comments(nb, record).items():
                comment = gradebook.find_comment(name, about["notebook"], about["assignment"], about["student"])
                comment.auto_comment = text
            gradebook.db.commit()
        record.write(course_tree().record(record.lab, record.student))
        return nb, resources


def comments(nb: NotebookNode, record: Record) -> dict[str, str]:
    """What the gradebook says beside each answer cell of a judged question, by grade_id."""
    by_question = {question.question: question for question in record.questions}
    found = {}
    for cell in nb.cells:
        result = by_question.get(cell.metadata.get("mlsys", {}).get("question", ""))
        if result is not None and is_answer(cell) and cell.cell_type == "code":
            found[grade_id(cell)] = f"{result.verdict}: {result.message}" if result.message else result.verdict
    return found


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
        return feedback_page(nb, resources["nbgrader"]), resources


class GetMarks(NbGraderPreprocessor):  # type: ignore[misc]
    """Tells the feedback page which points and comments a person gave."""

    def preprocess(self, nb: NotebookNode, resources: ResourcesDict) -> Processed:
        """Look up one graded notebook in the gradebook."""
        about = resources["nbgrader"]
        with Gradebook(about["db_url"]) as gradebook:
            place = about["notebook"], about["assignment"], about["student"]
            add_marks(nb, gradebook.find_submission_notebook(*place))
        return nb, resources


def add_marks(nb: NotebookNode, submitted: SubmittedNotebook) -> None:
    """Put what a person gave, points and comments, into the metadata of a graded notebook."""
    grades = {grade.cell.name: grade for grade in submitted.grades}
    remarks = {comment.cell.name: comment for comment in submitted.comments}
    for cell in nb.cells:
        about = cell.metadata.get("mlsys", {})
        if grade := grades.get(grade_id(cell)):
            about["marked"] = grade.manual_score is not None
            cell.metadata["nbgrader"]["score"] = grade.score
        if remark := remarks.get(grade_id(cell)):
            about["comment"] = remark.manual_comment or ""
