"""What `nbgrader autograde` and `nbgrader generate_feedback` would make of a judged submission, made in one go.

The two commands convert three notebooks and open the gradebook twelve times, for half a second per submission. Here it
is opened once, through nbgrader's own API; notebook, scores, comments, penalties and page are the same.
"""

import logging
from collections.abc import Sequence

from nbformat import NotebookNode
from nbgrader.api import BaseCell, Gradebook, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_locked, is_solution

from mlsys.classroom.gradebook.feedback import feedback_page
from mlsys.classroom.gradebook.nbgrader import configured_device
from mlsys.classroom.gradebook.nbgrader_plugin import add_marks, comments, with_verdicts
from mlsys.classroom.gradebook.quote_answers import quote_written
from mlsys.classroom.intake.normalise import grade_id
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.submitted import canonical_with_limits
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Terms
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import nbgrader_config, open_gradebook
from mlsys.course.notebook import write_notebook
from mlsys.course.tree import CourseTree

_log = logging.getLogger(__name__)


def enter_scores(
    tree: CourseTree, lab: str, student: str, submission: str, questions: Sequence[QuestionRecord], under: Terms
) -> Record:
    """Write the gradebook, the autograded notebook and the feedback page of one submission; returns its record.

    Args:
        tree: the course.
        lab: the lab.
        student: whose submission it is.
        submission: digest of the file that was judged.
        questions: what was found.
        under: the terms of the run.

    Raises:
        Refused: the file is another one by now, or takes too long to read.
        OSError, sqlalchemy.exc.OperationalError, nbgrader.api.InvalidEntry: the course's folder cannot be written.
    """
    notebook = canonical_with_limits(tree, lab, student)
    if notebook.metadata["mlsys"]["submitted_digest"] != submission:
        raise Refused("the submitted file was changed while it was judged: run the same command again")
    record = with_verdicts(notebook, lab, student, questions, under, configured_device(tree))
    with open_gradebook(tree) as gradebook:
        submitted = _submitted(gradebook, tree, lab, student)
        # Kept until the end: grades and comments then find their cells here, and ask for none of them one by one.
        _cells = gradebook.db.query(BaseCell).filter(BaseCell.notebook_id == submitted.notebook.id).all()
        _restore(notebook, submitted)
        _save(notebook, submitted, record)
        if submitted.assignment.total_seconds_late > 0 or submitted.late_submission_penalty:
            gradebook.db.commit()  # nbgrader's step opens the gradebook by itself
            _assign_late_penalty(tree, lab, student, notebook)
            gradebook.db.expire_all()
        quote_written(notebook)
        write_notebook(notebook, tree.autograded(lab, student))
        add_marks(notebook, submitted)
        penalty = submitted.late_submission_penalty
        gradebook.db.commit()
    page = feedback_page(notebook, {"assignment": lab, "student": student, "late_penalty": penalty})
    write_atomically(tree.feedback(lab, student), page.encode())
    return record


def _submitted(gradebook: Gradebook, tree: CourseTree, lab: str, student: str) -> SubmittedNotebook:
    """The gradebook's rows for this submission, with the time at which it was handed in, if that is kept."""
    gradebook.update_or_create_student(student)
    when = CourseDirectory().get_existing_timestamp(str(tree.submitted(lab, student).parent))
    submission = gradebook.update_or_create_submission(lab, student, **({"timestamp": when} if when else {}))
    return next(notebook for notebook in submission.notebooks if notebook.name == lab)


def _restore(notebook: NotebookNode, submitted: SubmittedNotebook) -> None:
    """Give locked cells the instructor's source, hidden tests included, and every cell the checksum of its own."""
    sources = {cell.name: cell for cell in submitted.notebook.source_cells}
    for cell in notebook.cells:
        if source := sources.get(grade_id(cell)):
            cell.metadata["nbgrader"]["checksum"] = source.checksum
            if is_locked(cell):
                cell.source = source.source


def _save(notebook: NotebookNode, submitted: SubmittedNotebook, record: Record) -> None:
    """Set scores and comments; what a person gave stays, and asks to be looked at again."""
    said = comments(notebook, record)
    grades = {grade.cell.name: grade for grade in submitted.grades}
    remarks = {comment.cell.name: comment for comment in submitted.comments}
    for cell in notebook.cells:
        name = grade_id(cell)
        if is_grade(cell):
            grade = grades[name]
            grade.auto_score, _ = determine_grade(cell, _log)
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
        if is_solution(cell):
            unchanged = cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell)
            remarks[name].auto_comment = said.get(name, "No response." if unchanged else None)


def _assign_late_penalty(tree: CourseTree, lab: str, student: str, notebook: NotebookNode) -> None:
    about = {"notebook": lab, "assignment": lab, "student": student, "db_url": tree.gradebook_url}
    AssignLatePenalties(config=nbgrader_config(tree)).preprocess(notebook, {"nbgrader": about})
