"""nbgrader's gradebook, written from our records: `mlsys grade` and nbgrader's own commands both come here.

`nbgrader autograde` and `nbgrader generate_feedback` convert three notebooks and open the gradebook twelve times, for
half a second per submission. `write_results` opens it once, through nbgrader's own API; notebook, scores, comments,
penalties and page are the same.
"""

from collections.abc import Iterable, Mapping

from nbformat import NotebookNode
from nbgrader.api import BaseCell, Gradebook, SubmittedNotebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum, is_grade, is_locked, is_solution

from mlsys.classroom.gradebook.feedback import feedback_page
from mlsys.classroom.gradebook.quote_answers import quote_written
from mlsys.classroom.intake.normalize import grade_id, is_answer
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import gradebook_url, nbgrader_config, open_gradebook
from mlsys.course.notebook import new_output, write_notebook
from mlsys.course.term import present_term
from mlsys.course.tree import CourseTree


def write_results(tree: CourseTree, record: Record, notebook: NotebookNode) -> None:
    """Write the gradebook, the autograded notebook and the feedback page of one submission.

    Args:
        tree: the course.
        record: how the submission was graded.
        notebook: its canonical notebook, which becomes the autograded one.

    Raises:
        OSError, sqlalchemy.exc.OperationalError, nbgrader.api.InvalidEntry: the course's folder cannot be written.
    """
    lab, student = record.lab, record.student
    show_verdicts(notebook, record)
    with open_gradebook(tree) as gradebook:
        submitted = _submitted(gradebook, tree, lab, student)
        # Kept until the end: grades and comments then find their cells here, and ask for none of them one by one.
        _cells = gradebook.db.query(BaseCell).filter(BaseCell.notebook_id == submitted.notebook.id).all()
        _restore(notebook, submitted, hidden=record.term == present_term(tree))
        write_scores(submitted, notebook, record)
        if submitted.assignment.total_seconds_late > 0 or submitted.late_submission_penalty:
            gradebook.db.commit()  # nbgrader's step opens the gradebook by itself
            _assign_late_penalty(tree, lab, student, notebook)
            gradebook.db.expire_all()
        quote_written(notebook)
        write_notebook(notebook, tree.autograded(lab, student))
        penalty = float(submitted.late_submission_penalty or 0)
        marked, comments = record.marked(marks_in(student, [submitted]), penalty), comments_of_people(submitted)
        submitted.late_submission_penalty = marked.penalty or None
        gradebook.db.commit()
    page = feedback_page(notebook, marked, comments)
    write_atomically(tree.feedback(lab, student), page.encode())


def show_verdicts(notebook: NotebookNode, record: Record) -> None:
    """Put verdicts into a canonical notebook, as the outputs that a marker sees."""
    notebook.metadata["mlsys"]["sandboxed"] = record.sandboxed
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    for question in record.questions:
        cell = cells[question.grade_id]
        if cell.cell_type == "code":
            cell.outputs = outputs(question)


def outputs(question: QuestionRecord) -> list[NotebookNode]:
    """Return outputs for which nbgrader too gives a verdict's points: an error none, a float that many, else all."""
    text = _said(question)
    if question.points == question.max_points:
        return [new_output("display_data", data={"text/plain": text})]
    if question.points == 0:
        return [new_output("error", ename=question.verdict, evalue=question.message, traceback=[text])]
    return [new_output("execute_result", data={"text/plain": repr(question.points)}, execution_count=1)]


def write_scores(submitted: SubmittedNotebook, notebook: NotebookNode, record: Record) -> None:
    """Set the scores and comments of a record in the gradebook.

    What a person gave stays, and asks to be looked at again. The caller commits.

    Args:
        submitted: the gradebook's rows for the submission.
        notebook: the graded notebook, with the checksums of the released cells.
        record: how the submission was graded.
    """
    questions = {question.question: question for question in record.questions}
    scores = {one.grade_id: None if one.verdict == "needs review" else one.points for one in record.questions}
    grades = {grade.cell.name: grade for grade in submitted.grades}
    remarks = {comment.cell.name: comment for comment in submitted.comments}
    for cell in notebook.cells:
        name = grade_id(cell)
        if is_grade(cell):
            grade = grades[name]
            grade.auto_score = scores[name]
            grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
        if is_solution(cell):
            question = questions.get(cell.metadata.get("mlsys", {}).get("question", ""))
            if question and is_answer(cell) and cell.cell_type == "code":
                remarks[name].auto_comment = _said(question)
            else:
                unchanged = cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell)
                remarks[name].auto_comment = "No response." if unchanged else None


def marks_in(student: str, notebooks: Iterable[SubmittedNotebook]) -> dict[tuple[str, str], float]:
    """Return the points that a person gave in a student's notebooks, by student and grade_id."""
    return {
        (student, grade.cell.name): float(grade.score)
        for notebook in notebooks
        for grade in notebook.grades
        if grade.manual_score is not None
    }


def comments_of_people(submitted: SubmittedNotebook) -> Mapping[str, str]:
    """Return what a person wrote beside the cells of a notebook, by grade_id."""
    return {remark.cell.name: remark.manual_comment for remark in submitted.comments if remark.manual_comment}


def _said(question: QuestionRecord) -> str:
    return f"{question.verdict}: {question.message}" if question.message else question.verdict


def _submitted(gradebook: Gradebook, tree: CourseTree, lab: str, student: str) -> SubmittedNotebook:
    """Return the gradebook's rows for this submission, with the time at which it was handed in, if that is kept."""
    gradebook.update_or_create_student(student)
    when = CourseDirectory().get_existing_timestamp(str(tree.submitted(lab, student).parent))
    submission = gradebook.update_or_create_submission(lab, student, **({"timestamp": when} if when else {}))
    return next(notebook for notebook in submission.notebooks if notebook.name == lab)


def _restore(notebook: NotebookNode, submitted: SubmittedNotebook, *, hidden: bool) -> None:
    """Give locked cells the instructor's source, hidden tests included, and every cell the checksum of its own.

    The gradebook has the source of the present term: what is of an earlier one keeps the cells that the student saw.
    """
    sources = {cell.name: cell for cell in submitted.notebook.source_cells}
    for cell in notebook.cells:
        if source := sources.get(grade_id(cell)):
            cell.metadata["nbgrader"]["checksum"] = source.checksum
            if hidden and is_locked(cell):
                cell.source = source.source


def _assign_late_penalty(tree: CourseTree, lab: str, student: str, notebook: NotebookNode) -> None:
    about = {"notebook": lab, "assignment": lab, "student": student, "db_url": gradebook_url(tree)}
    AssignLatePenalties(config=nbgrader_config(tree)).preprocess(notebook, {"nbgrader": about})
