"""The reference solution of a lab, judged before any submission, with the inputs that the class will meet.

Tests that the lab's own answers do not pass would cost the whole class points through no fault of its own: a mistake in
a hidden test, a machine on which kernels do not run, or inputs so unlucky that no right kernel comes near enough to the
reference.
"""

import signal
from collections.abc import Collection
from concurrent.futures.process import BrokenProcessPool
from textwrap import indent

from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.processes.workers import worker
from mlsys.classroom.store.record import WAITING, QuestionRecord
from mlsys.classroom.store.run import Terms
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.draws import SEED_VARIABLE

MAX_JUDGING_S = 1800
"""Seconds after which the judging of a lab's own answers is given up."""
_NO_FAULT = ("passed", "slow", *WAITING, "not implemented")
"""Verdicts that stop nobody: a GPU may be slower than full points ask for, a lab may lack an answer of its own."""


class LabFault(UserError):
    """A lab whose own answers do not pass its tests here."""


def check_reference_solution(
    tree: CourseTree, lab: str, terms: Collection[Terms], *, device: str, cpu_limit_s: int
) -> None:
    """Judge the answers of the lab as it is released now.

    Args:
        tree: the course.
        lab: the lab.
        terms: those that submissions will be judged under.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.

    Raises:
        LabFault: an answer fails, or the process that judges it dies.
        UserError: a missing package, device or sandbox.
    """
    for under in terms:
        with worker(0) as process:
            try:
                questions = process.submit(_judge, tree, lab, device, cpu_limit_s, under).result()
            except BrokenProcessPool as error:
                raise LabFault(
                    f"the process that judged the own answers of {lab} died, so nothing was graded: "
                    "is memory short, or does a test end it?"
                ) from error
        failed = [one for one in questions if one.verdict not in _NO_FAULT]
        if failed:
            listed = "\n".join(f"{one.question}: {one.verdict}: {one.message or one.detail}" for one in failed)
            raise LabFault(
                f"the own answers of {lab} do not pass its tests here, so nothing was graded:\n{indent(listed, '  ')}\n"
                "This is no student's fault: fix the test, or this machine (`mlsys doctor` checks it).\n"
                f"With {SEED_VARIABLE}={under.seed} in its environment a notebook draws the same inputs. "
                "The next run draws new inputs for everybody who has not been graded yet."
            )


def _judge(tree: CourseTree, lab: str, device: str, cpu_limit_s: int, under: Terms) -> tuple[QuestionRecord, ...]:
    from mlsys.classroom.batch.submission import judge_questions

    signal.alarm(MAX_JUDGING_S)
    released = released_lab(tree, lab)
    released.notebook.metadata["mlsys"]["submitted_version"] = released.version
    return judge_questions(tree, lab, released.notebook, device, cpu_limit_s, under)
