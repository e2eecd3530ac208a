"""Mending the tests of an older version of a lab, for those who hold it.

Everybody gets the newest tests, except for questions that ask for other names or parameters now: answers to an older
version then get the tests of that version. These tests are kept in the course, not in the lab. They are mended with a
copy of that version's `lab.py` in which only tests differ. The version's own answers must pass them first.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copy, copytree
from tempfile import TemporaryDirectory

from mlsys.classroom.batch.pool import Pool
from mlsys.classroom.batch.reference_solution import check_reference_solution, reference_tasks
from mlsys.classroom.gradebook.nbgrader import configured_cpu_limit_s, configured_device
from mlsys.classroom.intake.canonical import canonical_notebook, released_lab, with_older_tests
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.run import Run, Terms, seed
from mlsys.course.lab import SPEED, TEST, Lab, UnreadableLab
from mlsys.course.notebook import write_notebook
from mlsys.course.release import keep_diff, tests_diff
from mlsys.course.settings import WHEEL_TOKEN, read_settings
from mlsys.course.term import present_term, read_terms
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@dataclass(frozen=True)
class Mended:
    """What a mended version changes.

    Attributes:
        version: the version.
        diff: of its tests, as text.
        questions: those whose tests differ.
        holders: students with graded answers to this version.
        path: the file with the difference, once it is written.
    """

    version: str
    diff: str
    questions: tuple[str, ...]
    holders: tuple[str, ...]
    path: Path | None = None


def mend(root: Path, tree: CourseTree, name: str, source: Path, *, accept: bool) -> Mended:
    """Compare a mended `lab.py` with the version that is kept, try its answers, and write it after a yes.

    Args:
        root: the course repository.
        tree: the course.
        name: the lab.
        source: the `lab.py` of the older version, with other tests.
        accept: write it.

    Raises:
        UserError: a file that cannot be read, another lab, a version that is not kept or is the present one, something
            else than a test differs, or a test that nobody would get.
        LabFault: the version's own answers do not pass its mended tests.
    """
    try:
        lab = Lab.load(source, [term.seed for term in read_terms(tree)])
    except UnreadableLab as error:
        raise UnreadableLab(f"{error}: name a copy of that version's lab.py") from error
    current = released_lab(tree, name)
    kept = [path.stem for path in tree.versions(name)]
    if lab.name != name:
        raise UserError(f"{source} is of lab {lab.name!r}, not of {name!r}: name a copy of the right lab.py")
    if lab.version == current.version:
        raise UserError(f"version {lab.version} is the present one: correct labs/{name}/lab.py and grade again")
    if lab.version not in kept:
        raise UserError(f"version {lab.version} of {name} was never released here; kept are: {', '.join(kept)}")
    old = released_lab(tree, name, lab.version)
    address = _wheel_address(old, lab) or read_settings(root).wheel_url
    for cell in lab.notebook.cells:
        cell.source = cell.source.replace(WHEEL_TOKEN, address)
    lab = Lab.of_notebook(lab.notebook, str(source))
    if term := present_term(tree):
        lab.notebook.metadata["mlsys"]["term"] = term
    questions = _changed_tests(old, lab, source)
    idle = [question for question in questions if question not in with_older_tests(current, lab)]
    if idle:
        raise UserError(
            f"answers to version {lab.version} get the tests of version {current.version} for {', '.join(idle)}: "
            f"correct them in labs/{name}/lab.py, and undo the change in {source}"
        )
    _try_answers(tree, name, lab, questions)
    store = store_of(tree)
    records = store.records(name)
    holders = tuple(student for student, one in records.items() if one and one.version == lab.version)
    diff = tests_diff(old, lab)
    if not accept:
        return Mended(lab.version, diff, tuple(questions), holders)
    with store.lock():
        path = keep_diff(tree, name, lab.version, diff)
        write_notebook(lab.notebook, tree.version(name, lab.version))
    return Mended(lab.version, diff, tuple(questions), holders, path)


def _wheel_address(old: Lab, new: Lab) -> str:
    """Return the address of the wheel in a released version, which may be of an earlier package; empty if none fits."""
    for was, now in zip(old.cells, new.cells, strict=False):
        before, token, after = now.source.partition(WHEEL_TOKEN)
        if token and was.source.startswith(before) and was.source.endswith(after):
            return was.source[len(before) : len(was.source) - len(after)]
    return ""


def _changed_tests(old: Lab, new: Lab, source: Path) -> list[str]:
    """Return the questions whose tests differ; nothing else may."""
    if [cell.id for cell in old.cells] != [cell.id for cell in new.cells]:
        raise UserError(f"{source} has other cells than version {old.version}: begin with that version's lab.py")
    changed = []
    for was, now in zip(old.cells, new.cells, strict=True):
        if was.role != now.role or was.points != now.points or was.question != now.question:
            raise UserError(f"{source}, cell {now.id}: its role or points differ from version {old.version}: undo that")
        if was.source == now.source:
            continue
        if now.role not in (TEST, SPEED):
            raise UserError(f"{source}, cell {now.id}: only tests can be mended, students hold the rest: undo that")
        changed.append(now.question)
    if not changed:
        raise UserError(f"{source} has the same tests as version {old.version}: correct one of them")
    return changed


def _try_answers(tree: CourseTree, name: str, lab: Lab, questions: list[str]) -> None:
    """Judge the version's own answers under its mended tests, in a copy of what the judge reads."""
    with TemporaryDirectory() as folder:
        trial = CourseTree(Path(folder) / "course")
        trial.create()
        for part in ("source", "release", "versions"):
            copytree(tree.root / part / name, trial.root / part / name, dirs_exist_ok=True)
        if tree.config.is_file():
            copy(tree.config, trial.config)
        if tree.terms.is_file():
            copy(tree.terms, trial.terms)
        write_notebook(lab.notebook, trial.version(name, lab.version))
        run = Run.new(finished=True)
        terms = Terms(run.secret, seed(run.secret, name, run.secret), term=present_term(tree))
        with Pool(trial.root.resolve(), 1) as pool:
            tasks = reference_tasks(
                trial, name, [terms], device=configured_device(tree), cpu_limit_s=configured_cpu_limit_s(tree)
            )
            notebook = canonical_notebook(trial, name, lab.notebook)
            asked = [replace(task, notebook=notebook) for task in tasks if task.only[0] in questions]
            check_reference_solution(pool, asked)
