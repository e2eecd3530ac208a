"""The plan of a grading run: which submissions are open, what judges them, and whether their code can be shut in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlsys.classroom.batch.pool import JudgePool
from mlsys.classroom.gradebook.nbgrader import configured_cpu_limit_s, configured_device
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.collect import Collected
from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import Store
from mlsys.core.cells import plain_python
from mlsys.core.package import imported_modules, modules
from mlsys.course.digest import digest, modules_digest
from mlsys.course.lab import Lab
from mlsys.course.term import archives, tree_of
from mlsys.course.tree import CourseTree
from mlsys.judge.sandbox.check import check_sandbox
from mlsys.judge.sandbox.protocol.places import SandboxError
from mlsys.judge.site import site

DECIDING = ("mlsys.judge", "mlsys.grading", "mlsys.classroom.batch", "mlsys.classroom.intake")
"""Packages that decide verdicts; where one changes, or what it imports, submissions are judged again."""

OF_ONE_LAB = "mlsys.grading.replays"
"""Package whose modules decide only the verdicts of the labs that import them."""


@dataclass(frozen=True)
class Plan:
    """What a run has to do.

    Attributes:
        lab: the lab, as it is released now.
        states: the state that the record of each open submission will have, by student.
        old: what is recorded of everybody who handed in.
        device: "cpu", "gpu" or "auto", as the course is configured.
        kind: "cpu" or "gpu", on the machine that judges; empty where nothing is to be judged.
        sandboxed: whether student code runs in the sandbox.
        package: digest of what in the package decides verdicts.
        attempt_state: the state that all attempts share: package, tests, device, sandbox.
    """

    lab: Lab
    states: dict[str, str]
    old: dict[str, Record | None]
    device: str
    kind: str
    sandboxed: bool
    package: str
    attempt_state: str


def make_plan(
    tree: CourseTree,
    store: Store,
    name: str,
    students: list[str],
    collected: Collected,
    pool: JudgePool,
    unsafe_no_sandbox: bool,
    private: Sequence[Path] = (),
) -> Plan:
    """Find out what is open: new, changed, graded without the sandbox, or waiting for a GPU that is here now.

    As soon as it is known that something is, the pool opens its sandboxes, which takes about as long as the rest.

    Args:
        tree: the course; students must not read it.
        store: what is known of the class.
        name: the lab.
        students: who handed in.
        collected: what they handed in.
        pool: where submissions would be judged.
        unsafe_no_sandbox: go on without the sandbox where it cannot run.
        private: what else students must not read.

    Raises:
        UserError: a package or the asked device is missing where submissions are judged.
        SandboxError: student code cannot be shut in on this machine, and `unsafe_no_sandbox` is not set; or the sandbox
            would show the tree or something private.
    """
    old, device = {student: store.record(name, student) for student in students}, configured_device(tree)

    def begin() -> str:
        kind = str(pool.machine(device)["device"])
        pool.prepare(name, device, configured_cpu_limit_s(tree))
        return kind

    # Who has no record is judged, whatever the digests say; to find those takes a second.
    new = any(old[student] is None for student in students if student not in collected.refused)
    kind = begin() if new else ""
    package = _package_of(tree, name)
    course = _course_digest(tree, store, name, package)
    # What is of an earlier term is graded with the lab of that term, whatever the present one has.
    terms = {student: collected.histories[student].attempts[-1].term for student in students}
    trees = {term: tree_of(tree, name, term) for term in set(terms.values())}
    courses = {term: course if one == tree else _course_digest(one, store, name) for term, one in trees.items()}
    states = {student: _state(courses[terms[student]], collected, student) for student in students}
    if not kind and any(record.waits_for_gpu for record in old.values() if record):
        kind = pool.machine(device)["device"]
    gpu_is_here = kind == "gpu"

    def is_done(student: str) -> bool:
        record = old[student]
        if record is None or record.state != states[student] or not tree.feedback(name, student).is_file():
            return False
        if not (record.refused or tree.autograded(name, student).is_file()):
            return False
        return not (gpu_is_here and record.waits_for_gpu)

    def was_sandboxed(student: str) -> bool:
        record = old[student]
        return record is None or record.sandboxed

    doubtful = [student for student in students if not is_done(student) or not was_sandboxed(student)]
    # Before the first submission: neither a missing package nor a missing sandbox is a student's fault.
    to_judge = [student for student in doubtful if student not in collected.refused]
    if to_judge and not new:
        kind = begin()
    sandboxed = not to_judge or pool.elsewhere or _sandbox_holds(unsafe_no_sandbox, (tree.root, *private))
    open_ones = [student for student in doubtful if sandboxed or not is_done(student)]
    open_states = {student: states[student] for student in open_ones}
    attempt_state = digest(course, kind if to_judge else "", str(sandboxed))
    return Plan(released_lab(tree, name), open_states, old, device, kind, sandboxed, package, attempt_state)


def tests_digest(tree: CourseTree, store: Store, name: str) -> str:
    """Return the digest of all that verdicts of a lab depend on beside the submissions: package, secret, tests."""
    digests = [_course_digest(one, store, name) for one in (tree, *archives(tree, name))]
    return digest(*digests) if len(digests) > 1 else digests[0]


def _package_of(tree: CourseTree, name: str) -> str:
    return _package_digest([released_lab(tree, name, path.stem) for path in tree.versions(name)])


def _course_digest(tree: CourseTree, store: Store, name: str, package: str = "") -> str:
    """Return the digest for a lab as the tree has it: of the present term, or as it was in an earlier one."""
    package = package or _package_of(tree, name)
    return digest(package, store.secret(), *(path.read_bytes() for path in tree.versions(name)))


def _package_digest(versions: Iterable[Lab]) -> str:
    """Return the digest of what decides verdicts: the packages that do, what a lab imports, and what these import."""

    def decides(name: str) -> bool:
        in_package = any(f"{name}.".startswith(f"{package}.") for package in DECIDING)
        return in_package and not name.startswith(f"{OF_ONE_LAB}.")

    deciding = [name for name in modules() if decides(name)]
    sources = {plain_python(cell.source) for lab in versions for cell in lab.cells if cell.kind == "code"}
    imported = {name for source in sources for name in imported_modules(source)}
    return modules_digest(sorted({*deciding, *imported}))


def _state(course: str, collected: Collected, student: str) -> str:
    attempts = [choice.attempt.digest if choice.attempt else "" for choice in collected.choices[student]]
    return digest(course, collected.refused.get(student, ""), *attempts)


def _sandbox_holds(unsafe_no_sandbox: bool, private: Sequence[Path]) -> bool:
    """Return whether student code can be shut in on this machine.

    Raises:
        SandboxError: it cannot, and nobody has said to go on without; or it could see what is private.
    """
    found = check_sandbox(site(), private)
    if not found:
        return True
    fault = check_sandbox(site())
    if not fault:
        raise SandboxError(f"{found}\nNothing was graded. `mlsys doctor` looks again")
    if not unsafe_no_sandbox:
        raise SandboxError(
            f"the sandbox cannot run here, and without it students' code could read and change what you can: {fault}\n"
            "Nothing was graded. Mend it (`mlsys doctor` looks again), grade on another machine, or, where nothing is "
            "at stake, add --unsafe-no-sandbox"
        )
    return False
