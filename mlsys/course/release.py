"""Release a lab: from `labs/<lab>/lab.py` to the notebook that students get.

nbgrader's own generate_assignment does the work, with the steps that
`mlsys.classroom.gradebook.nbgrader_plugin.configure` lists.
"""

from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path

from mlsys.core.files import write_atomically
from mlsys.course.digest import digest, package_digest
from mlsys.course.lab import SPEED, TEST, Lab, LabError, find_lab, find_labs
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.settings import WHEEL_TOKEN, Settings, read_settings
from mlsys.course.term import begin_term, new_term, read_terms, set_aside
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


def release(root: Path, tree: CourseTree, names: list[str] | None = None, *, term: str | None = None) -> list[str]:
    """Bring the released notebooks up to date.

    Args:
        root: the course repository.
        tree: where the nbgrader tree is.
        names: the labs to release; all of them when None.
        term: name of a term that begins now, in which labs are released from now on; None to stay in the present one.

    Returns:
        One sentence per lab.

    Raises:
        UserError: an unknown lab, a lab that breaks a rule, a folder that cannot be written, nbgrader's refusal, or a
            term without a name or with a used one.
    """
    settings = read_settings(root)
    paths = find_labs(root) if names is None else {name: find_lab(root, name) for name in names}
    if not paths:
        raise UserError(f"{root / 'labs'} holds no lab: a lab is a file labs/<name>/lab.py")
    tree.create()
    if term is not None:
        begins = new_term(tree, term)
        seeds = [one.seed for one in (*read_terms(tree), begins)]
        for path in paths.values():  # a lab that breaks a rule in this term begins none
            Lab.load(path, seeds)
        begin_term(tree, begins)
    return [_release_one(path, tree, settings) for path in paths.values()]


def _release_one(path: Path, tree: CourseTree, settings: Settings) -> str:
    name = path.parent.name
    if is_released(path, tree, settings):
        return f"{name}: released notebook is up to date"
    terms = read_terms(tree)
    lab = Lab.load(path, [term.seed for term in terms])
    if lab.name != name:
        raise LabError(f"{path}: its header says lab {lab.name!r}, its folder {name!r}; make them the same")
    for cell in lab.notebook.cells:
        cell.source = cell.source.replace(WHEEL_TOKEN, settings.wheel_url)
    set_aside(tree, name)
    said = in_term = ""
    if terms:
        lab.notebook.metadata["mlsys"]["term"] = terms[-1].name
        in_term = f" in term {terms[-1].name}"
    kept = tree.version(name, lab.version)
    if kept.is_file() and (diff := tests_diff(Lab.of_notebook(read_notebook(kept), str(kept)), lab)):
        said = f"; its tests were other ones, the difference is in {keep_diff(tree, name, lab.version, diff)}"
    write_notebook(lab.notebook, tree.source(name))
    write_notebook(lab.notebook, kept)
    _generate_assignment(tree, name)
    _stamp(tree, name).write_text(_state(path, settings, tree))
    return f"{name}: released version {lab.version}{in_term} ({len(lab.questions)} questions){said}"


def tests_diff(old: Lab, new: Lab) -> str:
    """Return the difference between the tests of two states of a lab, as text; empty if they are the same."""
    before, after = ({cell.id: cell.source for cell in lab.cells if cell.role in (TEST, SPEED)} for lab in (old, new))
    lines: list[str] = []
    for name in before | after:
        was, now = (tests.get(name, "").splitlines() for tests in (before, after))
        lines += unified_diff(was, now, f"before/{name}", f"after/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines)


def keep_diff(tree: CourseTree, name: str, version: str, diff: str) -> Path:
    """Keep how the tests of a released version were changed, and return the file."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S-%f}"
    path = tree.version(name, version).with_name(f"{version}-changed-{now}.diff")
    write_atomically(path, diff.encode())
    return path


def is_released(path: Path, tree: CourseTree, settings: Settings) -> bool:
    """Return whether the released notebook of the lab in `path` is there and up to date."""
    name = path.parent.name
    gradebook = tree.database if tree.database.is_file() else tree.gradebook
    outputs = [tree.source(name), tree.release(name), gradebook]
    if not all(output.is_file() for output in [*outputs, _stamp(tree, name)]):
        return False
    return _stamp(tree, name).read_text() == _state(path, settings, tree)


def _stamp(tree: CourseTree, name: str) -> Path:
    return tree.release(name).with_name(".state")


def _state(path: Path, settings: Settings, tree: CourseTree) -> str:
    terms = (f"{term.name} {term.seed}" for term in read_terms(tree))
    return digest(path.read_bytes(), settings.wheel_url, package_digest("course"), *terms)


def _generate_assignment(tree: CourseTree, name: str) -> None:
    from mlsys.course.nbgrader import NbgraderFailed, generate_assignment

    try:
        generate_assignment(tree, name)
    except NbgraderFailed as error:
        if "Cannot add or remove cells" in error.log:
            raise UserError(
                f"{name}: its questions changed, and {tree.gradebook} holds submissions to the old ones. "
                "Keep the grade_ids, or move the gradebook away (it holds all marks) and release again"
            ) from error
        raise UserError(f"{name}: nbgrader could not release it. {error}") from error
