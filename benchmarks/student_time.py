"""Time inside student functions, in the judge and in a plain notebook, and what the judge adds to a question.

A student function's time is that from its call to its return, without guard bands and transport, measured where it
runs: in a plain notebook's process, or in the judge's sandbox. A kernel that a test launches by itself counts from its
launch to its end. Calls of one student function by another are in the outer one's time.
"""

import contextlib
import io
import os
import shutil
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import timed_student
from timed_student import Stopwatch, timed_launch, watch

from mlsys.classroom.batch import submission as questions
from mlsys.classroom.intake.canonical import canonical_notebook, released_lab, submission_of
from mlsys.classroom.store.run import seed
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.store.terms import terms
from mlsys.core.cells import plain_python, run_cell
from mlsys.course.lab import Lab
from mlsys.course.notebook import read_notebook
from mlsys.course.tree import CourseTree
from mlsys.grading.draws import SEED_VARIABLE
from mlsys.grading.kernels import backend
from mlsys.grading.kernels.backend import LocalBackend, use_backend
from mlsys.grading.kernels.notebook import check_source
from mlsys.judge import grade_question, session
from mlsys.judge.site import site

CPU_TESTS = ("read", "a", "b", "c", "d", "gap")
LIMIT_S = 60


def in_the_judge(tree: CourseTree, lab: str, students: list[str], workers: int) -> float:
    """Seconds inside student functions, all submissions together, with so many workers side by side."""
    groups = [students[index::workers] for index in range(workers)]
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_judge_timed, tree, lab, group, index) for index, group in enumerate(groups)]
        return sum(task.result() for task in tasks)


def _judge_timed(tree: CourseTree, lab: str, students: list[str], index: int) -> float:
    grade_question.use_grader(grade_question.Grader(index))
    folder = site(released_lab(tree, lab).withheld)
    shutil.copy(timed_student.__file__, folder)
    session.ENTRIES |= {"student": "timed_student:serve_student", "launcher": "timed_student:serve_launcher"}
    plain_exchange, spent = session.Session._exchange, {"s": 0.0}
    latest: dict[str, float] = {}

    def exchange(self: session.Session, role: str, header: dict[str, Any], *rest: Any) -> Any:
        reply = plain_exchange(self, role, header, *rest)
        seconds = reply.header.pop("seconds", 0.0)
        spent["s"] += seconds - latest[role] if header["type"] not in ("run", "setup") else 0.0
        latest[role] = seconds
        return reply

    session.Session._exchange = exchange
    for student in students:
        notebook = canonical_notebook(tree, lab, read_notebook(tree.submitted(lab, student)))
        under = terms(FileStore(tree), lab, student, "")
        for record in questions.judge_questions(tree, lab, notebook, "cpu", LIMIT_S, under):
            assert record.verdict == "passed" or record.question not in CPU_TESTS, record
    return spent["s"]


def in_a_notebook(tree: CourseTree, lab: str, students: list[str]) -> float:
    """Seconds inside student functions when the cells of each notebook run one after the other in one process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_notebooks_timed, tree, lab, students).result()


def _notebooks_timed(tree: CourseTree, lab: str, students: list[str]) -> float:
    os.environ["TRITON_INTERPRET"] = "1"
    backend.launch_guarded = timed_launch(backend.launch_guarded)
    for student in students:
        Warm.of(tree, lab, student).run_all(watch)
    return watch.total_s


@dataclass(frozen=True)
class Warm:
    """One submission whose cells run in this process, as a notebook's kernel runs them."""

    lab: Lab
    answers: dict[str, str]
    names: dict[str, Any]

    @classmethod
    def of(cls, tree: CourseTree, name: str, student: str) -> "Warm":
        notebook = read_notebook(tree.submitted(name, student))
        sources = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in notebook.cells}
        return cls(released_lab(tree, name), sources, {"__name__": "__main__"})

    def run_all(self, stopwatch: Stopwatch | None = None) -> dict[str, float]:
        """Run setup, answers and tests in order; returns the seconds of each question's test cell."""
        took_s = {}
        with contextlib.redirect_stdout(io.StringIO()):
            for cell in self.lab.cells:
                if cell.role in ("setup", "predict", "solution"):
                    source = cell.source if cell.role == "setup" else self.answers[cell.id]
                    before = set(self.names)
                    run_cell(plain_python(source), cell.id, self.names)
                    for new in set(self.names) - before if stopwatch and cell.role == "solution" else ():
                        if type(self.names[new]).__name__ == "function":
                            self.names[new] = stopwatch.wrap(self.names[new])
                elif cell.role == "test" and cell.question in CPU_TESTS:
                    started = time.perf_counter()
                    run_cell(cell.source, cell.id, self.names)
                    took_s[cell.question] = time.perf_counter() - started
        return took_s


def overhead_s(tree: CourseTree, lab: str, students: list[str]) -> dict[str, list[float]]:
    """What the judge adds to each question: its wall time less that of the same test cell, warm and without guards."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_overhead, tree, lab, students).result()


def _overhead(tree: CourseTree, name: str, students: list[str]) -> dict[str, list[float]]:
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    torch.set_num_threads(1)
    found: dict[str, list[float]] = {question: [] for question in CPU_TESTS}
    with use_backend(_WithoutGuards()):
        Warm.of(tree, name, students[0]).run_all()
    os.environ[SEED_VARIABLE] = str(seed(tree.secret(), name, "benchmark"))  # the same draws as in the judge
    for student in students:
        with use_backend(_WithoutGuards()):
            alone_s = Warm.of(tree, name, student).run_all()
        lab = released_lab(tree, name)
        submission = submission_of(canonical_notebook(tree, name, read_notebook(tree.submitted(name, student))), lab)
        for question in lab.questions:
            if question.name in found:
                started = time.perf_counter()
                verdict = grade_question.grade_question(
                    submission, question, "cpu", seed=seed(tree.secret(), name, "benchmark")
                )
                assert verdict.name == "passed", verdict
                found[question.name].append(time.perf_counter() - started - alone_s[question.name])
    return found


class _WithoutGuards(LocalBackend):
    """A notebook's backend without guard bands."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    def launch(self, kernel: Any, constants: Any, inputs: Any, like: Any, launch: Any) -> Any:
        check_source(kernel)
        out = like.new_empty(like.shape)
        launch(kernel, constants, out, *inputs)
        return out


def median_ms(found: dict[str, list[float]]) -> float:
    """Over all questions of all submissions."""
    return 1000 * statistics.median(value for values in found.values() for value in values)
