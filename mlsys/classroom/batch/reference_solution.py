"""The reference solution of a lab, judged before any submission, with the inputs that the class will meet.

Tests that the reference solution does not pass would cost the whole class points through no fault of its own: a mistake
in a hidden test, a machine on which kernels do not run, or inputs so unlucky that no right kernel comes near enough to
the reference.
"""

from collections import defaultdict
from collections.abc import Iterable
from textwrap import indent

from mlsys.classroom.batch.pool import JudgePool
from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.store.record import WAITING
from mlsys.classroom.store.run import Terms
from mlsys.course.term import tree_of
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.draws import SEED_VARIABLE

MAX_JUDGING_S = 1800
"""Most seconds that the judging of a reference solution may take."""
_NO_FAULT = ("passed", "slow", *WAITING, "not implemented")
"""Verdicts that stop nobody: a GPU may be slower than full points ask for, a lab may lack an answer of its own."""


class LabFault(UserError):
    """A lab whose reference solution does not pass its tests here."""


def reference_tasks(tree: CourseTree, lab: str, terms: Iterable[Terms], *, device: str, cpu_limit_s: int) -> list[Task]:
    """Return the judging of the lab's reference solution, as it was released last in its term, under each of these.

    Each question is a task of its own, so that a whole class does not wait for one worker.

    Args:
        tree: the course.
        lab: the lab.
        terms: those that submissions will be judged under.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.
    """
    tasks = []
    for number, under in enumerate(terms):
        released = released_lab(tree_of(tree, lab, under.term), lab)
        released.notebook.metadata["mlsys"]["submitted_version"] = released.version
        tasks += [
            Task(
                student="",
                lab=lab,
                version=released.version,
                notebook=released.notebook,
                submission=f"{number} {question.name}",
                terms=under,
                device=device,
                cpu_limit_s=cpu_limit_s,
                time_limit_s=MAX_JUDGING_S,
                only=(question.name,),
            )
            for question in released.questions
        ]
    return tasks


def check_reference_solution(pool: JudgePool, tasks: Iterable[Task]) -> float:
    """Judge a reference solution, and return how many seconds that takes for one worker.

    Args:
        pool: where it is judged.
        tasks: from `reference_tasks`.

    Raises:
        LabFault: an answer fails, or the process that judges it dies.
        UserError: a missing package, device or sandbox.
    """
    asked = {task.submission: task for task in tasks}
    failed: dict[int, list[str]] = defaultdict(list)
    seconds: dict[int, float] = defaultdict(float)
    for judged in pool.judge_all(asked.values()):
        task = asked[judged.submission]
        if judged.refused:
            raise LabFault(
                f"the reference solution of {task.lab} could not be judged, so nothing was graded: {judged.refused}. "
                "Is memory short, or does a test end the process?"
            )
        seconds[task.terms.seed] += judged.seconds
        failed[task.terms.seed] += _failed(judged)
    for seed, lines in failed.items():
        if lines:
            said = indent("\n".join(sorted(lines)), "  ")
            raise LabFault(
                f"the reference solution of {task.lab} does not pass its tests here, so nothing was graded:\n{said}\n"
                "This is no student's fault: fix the test, or this machine (`mlsys doctor` checks it).\n"
                f"With {SEED_VARIABLE}={seed} in its environment a notebook draws the same inputs. "
                "The next run draws new inputs for everybody who has not been graded yet."
            )
    return max(seconds.values(), default=0.0)


def _failed(judged: Judged) -> list[str]:
    """Return one line for each question that was not passed."""
    failed = [one for one in judged.questions if one.verdict not in _NO_FAULT]
    return [f"{one.question}: {one.verdict}: {one.message or one.detail}" for one in failed]
