"""nbgrader's gradebook of a class: refusals, names and due times in, its own export out, the settings for grading."""

from collections.abc import Iterable
from pathlib import Path

from nbgrader.plugins.export import CsvExportPlugin

from mlsys.classroom.report import write_csv
from mlsys.classroom.store.record import Record
from mlsys.classroom.students.deadlines import aware
from mlsys.classroom.students.roster import Roster
from mlsys.course.nbgrader import gradebook_exists, log_to, nbgrader_config, open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.judge.grade_question import LIMITS


def record_refusal(tree: CourseTree, lab: str, student: str, reason: str) -> None:
    """Record a submission that cannot be graded: no points, the reason as a comment, a person's marks untouched."""
    with open_gradebook(tree) as gradebook:
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(lab, student)
        for notebook in submission.notebooks:
            notebook.late_submission_penalty = None
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = 0.0, False
            for comment in notebook.comments:
                comment.auto_comment = f"refused: {reason}"
        gradebook.db.commit()


def enter_roster(tree: CourseTree, lab: str, roster: Roster) -> None:
    """Enter names, addresses and due times in the gradebook, for formgrader; of students who are in it already.

    nbgrader has one due time for a lab, and an extension for a student: the earliest due time, and how much later each
    one's is. It knows no late days.
    """
    due = {one.id: aware(one.due[lab], "the due time") for one in roster.students.values() if lab in one.due}
    first = min(due.values(), default=None)
    with open_gradebook(tree) as gradebook:
        # nbgrader keeps times in UTC, without saying so.
        gradebook.find_assignment(lab).duedate = first.replace(tzinfo=None) if first else None
        for row in gradebook.students:
            if row.id in roster.students:
                about = roster.students[row.id]
                row.last_name, row.first_name = _last_and_first(about.name) if about.name else (None, None)
                row.email = next((text for text in (about.sis_login_id, about.id) if "@" in text), None)
        for submission in gradebook.assignment_submissions(lab):
            own = due.get(submission.student.id)
            submission.extension = own - first if own and first and own > first else None
        gradebook.db.commit()


def _last_and_first(name: str) -> tuple[str, str]:
    """Return a name as formgrader shows it, last name first; what stands before a comma is the last name.

    >>> _last_and_first("Baker, Ann"), _last_and_first("Ann Mary Baker"), _last_and_first("Madonna")
    (('Baker', 'Ann'), ('Baker', 'Ann Mary'), ('Madonna', ''))
    """
    last, comma, first = name.partition(",")
    if not comma:
        first, _, last = name.rpartition(" ")
    return last.strip(), first.strip()


def export_gradebook(tree: CourseTree, lab: str, path: Path) -> None:
    """Write one lab's grades as nbgrader itself exports them."""
    path.unlink(missing_ok=True)  # nbgrader would write into the file that a backup keeps
    with open_gradebook(tree) as gradebook, log_to(tree.log(f"{lab}-export")):
        CsvExportPlugin(to=str(path), assignment=[lab]).export(gradebook)


def write_tables(tree: CourseTree, lab: str, records: Iterable[Record]) -> Path:
    """Write the tables of a lab in `results/`: a row for each student and question, and nbgrader's own export.

    Returns:
        The path of nbgrader's export, which is left as it is where there is no gradebook.
    """
    path = tree.results(lab)
    write_csv(records, path)
    of_nbgrader = path.with_name(f"{lab}-nbgrader.csv")
    if gradebook_exists(tree):
        export_gradebook(tree, lab, of_nbgrader)
    return of_nbgrader


def configured_device(tree: CourseTree) -> str:
    """Return the device that the course's `nbgrader_config.py` sets for grading."""
    return str(nbgrader_config(tree).RunQuestions.get("device", "auto"))


def configured_cpu_limit_s(tree: CourseTree) -> int:
    """Return the limit on computing that the course's `nbgrader_config.py` sets for each question."""
    return int(nbgrader_config(tree).RunQuestions.get("cpu_limit_s", LIMITS.cpu_s))
