"""From a submitted notebook to what can run: the right version of the lab, the canonical notebook, its cells."""

from nbformat import NotebookNode

from mlsys.course.lab import Lab
from mlsys.course.notebook import read_notebook
from mlsys.course.starter import starter, without_hidden_tests
from mlsys.course.tree import CourseTree
from mlsys.grading.ingest import ADDED, grade_id, ingest
from mlsys.grading.runner import StudentCell, Submission


def released_lab(tree: CourseTree, name: str, version: str = "") -> Lab:
    """The lab as it was released, in a version that is kept, or now."""
    path = tree.version(name, version) if version else tree.source(name)
    return Lab.of_notebook(read_notebook(path), str(path))


def canonical_notebook(tree: CourseTree, lab: str, submitted: NotebookNode) -> NotebookNode:
    """The canonical notebook of a submission, with `repairs` and `submitted_version` in its metadata.

    Raises:
        Refused: it is not a notebook of this lab.
    """
    released = read_notebook(tree.release(lab))
    current = str(released.metadata["mlsys"]["version"])
    version = str(submitted.metadata.get("mlsys", {}).get("version") or current)
    notes: list[str] = []
    original = None
    # A version is a file's name here, and it comes from the student.
    is_a_name = version.isalnum() and version.isascii() and len(version) <= 40
    if version != current and is_a_name and tree.version(lab, version).is_file():
        original = read_notebook(tree.version(lab, version))
        for cell in original.cells:
            cell.source = without_hidden_tests(starter(cell.source))
        notes = [f"The notebook is version {version} of the lab, which is at {current} now; its own tests were used."]
    elif version != current:
        notes = [f"The notebook says version {version[:20]!r} of the lab, which is not kept; {current} was used."]
        version = current
    canonical = ingest(submitted, released, original)
    canonical.notebook.metadata["mlsys"] |= {"submitted_version": version, "repairs": [*notes, *canonical.repairs]}
    return canonical.notebook


def submission_of(notebook: NotebookNode, lab: Lab) -> Submission:
    """The part of a canonical notebook that can run."""
    known = {cell.id for cell in lab.cells if cell.role}
    cells = []
    for cell in notebook.cells:
        added = cell.metadata.get("mlsys", {}).get("role") == ADDED
        if cell.cell_type == "code" and (added or grade_id(cell) in known):
            cells.append(StudentCell(grade_id(cell), cell.source, added))
    return Submission(lab, tuple(cells))
