"""Output of `mlsys grade`: what it prints about a graded class, and the tables that it writes."""

from rich.console import Console

from mlsys.classroom.grade_class import Batch
from mlsys.classroom.gradebook.nbgrader import write_tables
from mlsys.classroom.regrade import changes_csv, changes_table, changes_title
from mlsys.classroom.report import arrivals, by_question, other_terms, other_versions, reasons, table
from mlsys.core.files import write_atomically
from mlsys.course.nbgrader import database_url, without_password
from mlsys.course.term import present_term
from mlsys.course.tree import ATTEMPTS


def show(batch: Batch, console: Console) -> None:
    """Print the table of a graded class and write its CSV files."""
    tree, lab, records = batch.tree, batch.lab, list(batch.records.values())
    gradebook_csv = write_tables(tree, lab.name, batch.results.values())
    console.print(table(f"{lab.title}: verdicts and points", records, console.width))
    console.print(reasons(records))
    console.print(arrivals(batch.collected, tree, lab.name), soft_wrap=True)  # paths in it can then be copied
    term, lists = present_term(tree), tree.root / "attempts" / "STUDENT" / lab.name / ATTEMPTS
    if terms := other_terms(records, term, lists):
        console.print(terms, soft_wrap=True)
    if versions := other_versions([record for record in records if record.term == term], lab.version):
        console.print(versions, soft_wrap=True)
    console.print(by_question(records))
    if batch.changes:
        console.print(changes_title(batch.changes))
        console.print(changes_table(batch.changes))
        path = tree.results(lab.name).with_name(f"{lab.name}-changes.csv")
        write_atomically(path, changes_csv(batch.changes).encode())
        kept = (
            "They are not written: run again with --yes to accept them."
            if batch.withheld
            else "They are written; `mlsys undo` takes them back."
        )
        console.print(f"{kept} The list is in {path}", soft_wrap=True)
    waiting = sum(question.waiting for record in records for question in record.questions)
    refused = sum(bool(record.refused) for record in records)
    console.print(
        f"{len(records)} submissions ({batch.graded_now} graded now, {len(records) - batch.graded_now} unchanged), "
        f"{refused} refused; {waiting:g} points wait for a GPU or a person. It took {batch.minutes:.1f} minutes."
    )
    for device_time in batch.device_times:
        console.print(str(device_time), soft_wrap=True, markup=False, highlight=False)
    bare = sum(not record.sandboxed for record in records)
    if bare:
        console.print(
            f"{bare} of them were graded WITHOUT the sandbox: their code could have changed its own grade. "
            "Grade again on a machine where the sandbox runs.",
            style="bold red",
        )
    if batch.unreadable:
        console.print(
            f"Not in the results, because their records cannot be read: {', '.join(batch.unreadable)}. Grade again."
        )
    console.print(f"Results:   {tree.results(lab.name)}", soft_wrap=True)
    console.print(f"Feedback:  {tree.feedback(lab.name, '<student>')}", soft_wrap=True)
    url = database_url(tree)
    gradebook = without_password(url) if url else tree.gradebook
    console.print(f"Gradebook: {gradebook}, exported to {gradebook_csv}", soft_wrap=True)
