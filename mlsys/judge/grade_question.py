"""Grade one question of one submission: a pure function of the submission, the question, the device and the seed.

The student's code runs in a sandbox, the tests in this process; see `mlsys.judge.run_tests`.
"""

import platform
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from multiprocessing.util import Finalize
from typing import Any

from mlsys.core.cells import defined_names, free_names, plain_python, used_names
from mlsys.core.package import imported_modules
from mlsys.course.lab import PREDICT, SETUP, SOLUTION, Lab, Question
from mlsys.course.starter import starter
from mlsys.errors import UserError
from mlsys.grading.verdicts import Verdict
from mlsys.judge.gpu_lock import GpuLock
from mlsys.judge.gpus import judging_gpu, visible_in_sandbox
from mlsys.judge.run_tests import judge
from mlsys.judge.sandbox.host.sandbox import WARM_UP, Sandbox
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.session import QuestionCells
from mlsys.judge.shared.messages import Cell
from mlsys.judge.site import site
from mlsys.judge.student_cells import needed_statements, read_added
from mlsys.measure.device import torch_sees_gpu

LIMITS = Limits(cpu_s=10, wall_s=40.0)
"""Limits of one question; computing is limited tighter than waiting, so that a busy machine is fair."""

GPU_TIME_FACTOR = 4
"""Factor on the time limits of a question on a GPU: every kernel, tile size and layout is compiled, 1 s each."""


@dataclass(frozen=True)
class StudentCell:
    """A cell of a canonical submission that can run; `added` cells are the student's own.

    Cells of the lab are known by their id. Of setup cells and of cells that the lab only shows, its own text runs.
    """

    id: str
    source: str
    added: bool = False


@dataclass(frozen=True)
class Submission:
    """A canonical submission: the lab in the version whose tests are used, and the cells that can run, in order."""

    lab: Lab
    cells: tuple[StudentCell, ...]


class Grader:
    """Grades questions, one after the other and from one thread, in sandboxes that it keeps.

    Args:
        index: number of the grader; graders that work side by side must differ in it.
    """

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self._sandboxes: dict[tuple[object, ...], Sandbox] = {}

    def grade(
        self, submission: Submission, question: Question, device: str, *, seed: int, limits: Limits = LIMITS
    ) -> Verdict:
        """See `grade_question`."""
        kind = check_device("cpu" if question.device == "cpu" else device)
        sandbox = self.sandbox_for(submission.lab, kind, limits)
        where = "cuda" if kind == "gpu" else "cpu"
        tests = plain_python(question.graded.source)
        gpu_lock = GpuLock.of(judging_gpu().uuid) if kind == "gpu" else None

        def judged() -> Verdict:
            cells, label = select_cells(submission, question), f"tests of {question.name}"
            return judge(sandbox, cells, tests, label, device=where, seed=seed, gpu_lock=gpu_lock)

        with gpu_lock.shared() if gpu_lock else nullcontext():
            verdict = judged()
            if gpu_lock and verdict.name == "out of memory":  # another question may have held the GPU's memory
                with gpu_lock.exclusive():
                    verdict = judged()
            return verdict

    def sandbox_for(self, lab: Lab, kind: str, limits: Limits) -> Sandbox:
        """Return the sandbox in which the questions of a lab run on a device of this kind, "cpu" or "gpu"."""
        preload = preloaded_modules(tuple(cell.source for cell in lab.cells if cell.role == SETUP))
        limits = limits if kind == "cpu" else on_gpu(limits)
        return self.sandbox(kind == "gpu", limits, preload, lab.withheld)

    def sandbox(self, gpu: bool, limits: Limits, preload: tuple[str, ...], withheld: tuple[str, ...]) -> Sandbox:
        """Return the sandbox for questions with these limits; it imports once what each of them would."""
        key = gpu, limits, preload, withheld
        if key not in self._sandboxes:
            visible = visible_in_sandbox() if gpu else ""
            made = Sandbox(
                site(withheld), limits, gpu=gpu, visible=visible, index=self.index, preload=(WARM_UP, *preload)
            )
            made.start()
            Finalize(None, made.close, exitpriority=0)  # `multiprocessing` does not run `atexit` functions
            self._sandboxes[key] = made
        return self._sandboxes[key]


_grader = Grader()


def use_grader(grader: Grader) -> None:
    """Have `grade_question` use this grader in this process, in place of one with index 0."""
    global _grader
    _grader = grader


def open_lab_sandbox(lab: Lab, device: str, *, limits: Limits = LIMITS) -> None:
    """Open the sandbox in which this process runs the questions of a lab, so that the first one starts sooner.

    Args:
        lab: the lab.
        device: as for `grade_question`.
        limits: as for `grade_question`.
    """
    _grader.sandbox_for(lab, check_device(device), limits)


def grade_question(
    submission: Submission, question: Question, device: str, *, seed: int, limits: Limits = LIMITS
) -> Verdict:
    """Run one question with this process's grader and say how it came out.

    Args:
        submission: what the student handed in.
        question: a question of `submission.lab`.
        device: "cpu", "gpu", or "auto" for a GPU where there is one.
        seed: of the random inputs of hidden tests.
        limits: time, memory and file sizes.

    Raises:
        UserError: torch or triton is missing, or the asked device, or the sandbox cannot be built here.
    """
    return _grader.grade(submission, question, device, seed=seed, limits=limits)


def on_gpu(limits: Limits) -> Limits:
    """Return the limits of a question whose kernels are compiled, and whose process loads CUDA."""
    return replace(limits, cpu_s=GPU_TIME_FACTOR * limits.cpu_s, wall_s=GPU_TIME_FACTOR * limits.wall_s)


def select_cells(submission: Submission, question: Question) -> QuestionCells:
    """Select the cells that run for `question`, in order: setup, the answers it needs, and statements of other cells.

    Other cells are those that the student added and those that the lab only shows, such as an example to run. Their
    statements run if they bind names that the answers or the tests use and that nothing else gives.
    """
    lab = submission.lab
    wanted = set(lab.needed(question))
    parts = {cell.id: cell for cell in lab.cells}
    answers = {cell.id for cell in lab.cells if cell.question in wanted and cell.role in (PREDICT, SOLUTION)}
    given = [cell for cell in submission.cells if cell.id in answers and not cell.added]
    setup = _names_of(cell.source for cell in lab.cells if cell.role == SETUP)
    answered = _names_of(cell.source for cell in given if not _is_starter(cell, parts[cell.id].source))
    others = {}
    taken = set(setup | answered)
    for index, cell in enumerate(submission.cells):
        if cell.added:
            others[index] = read_added(cell.source)
            taken.update(*(names for _, names in others[index].binds))
        elif not parts[cell.id].role:  # what it shows later must not replace what a student has made
            others[index] = read_added(parts[cell.id].source).without(taken)
    used = frozenset().union(*(used_names(plain_python(cell.source)) for cell in given))
    tested = free_names(plain_python(question.graded.source)) - setup - answered
    needed = needed_statements(list(others.values()), used | tested)
    keep = dict(zip(others, needed, strict=True))
    cells: list[Cell] = []
    count = 0
    for index, cell in enumerate(submission.cells):
        if index in others:
            count += cell.added
            label = f"your added cell {count}" if cell.added else f"cell {cell.id} of the lab"
            if keep[index]:
                cells.append(Cell("added", label, others[index].source, keep[index]))
        elif parts[cell.id].role == SETUP:
            cells.append(Cell("setup", f"setup {cell.id}", plain_python(parts[cell.id].source)))
        elif cell.id in answers:
            label = f"your answer {parts[cell.id].question}"
            cells.append(Cell("answer", label, plain_python(cell.source)))
    return QuestionCells([cell for cell in cells if cell.kind == "setup"], cells)


def _names_of(sources: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*map(defined_names, sources))


def _is_starter(cell: StudentCell, source: str) -> bool:
    """Return whether an answer is still what students got for the lab's own cell `source`."""
    return cell.source.strip() == starter(source).strip()


def check_device(device: str) -> str:
    """Return the device that questions run on, "cpu" or "gpu", for an asked "cpu", "gpu" or "auto".

    Raises:
        UserError: torch or triton is missing, or no GPU is there although one is asked for.
    """
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise UserError(f"{' and '.join(missing)} not installed: pip install 'mlsys[labs]'")
    if device == "cpu" or not torch_sees_gpu():
        if device == "gpu":
            raise UserError("no CUDA GPU found here: grade with device cpu; questions that need a GPU then wait")
        return "cpu"
    return "gpu"


def device_and_versions(device: str) -> dict[str, Any]:
    """Return what questions run on, for the record: device, which `gpu`, and `versions` of python, torch and triton."""
    kind = check_device(device)
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("torch", "triton")}
    return {"device": kind, "gpu": str(judging_gpu()) if kind == "gpu" else "", "versions": versions}


@cache
def preloaded_modules(cells: tuple[str, ...]) -> tuple[str, ...]:
    r"""Return the modules of `mlsys` that a lab's setup cells import, in their order.

    >>> preloaded_modules(("import torch\nfrom mlsys import Hardware, ops", "from mlsys.roofline import Roofline"))
    ('mlsys', 'mlsys.ops', 'mlsys.roofline')
    """
    return tuple(dict.fromkeys(name for cell in cells for name in imported_modules(plain_python(cell))))
