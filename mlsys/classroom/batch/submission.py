"""Verdicts on all questions of one submission, as they go into the record."""

import ast
import time
from collections.abc import Collection, Iterable
from dataclasses import replace

from nbformat import NotebookNode

from mlsys.classroom.intake.canonical import released_lab, submission_of, visible_lab, with_older_tests
from mlsys.classroom.intake.normalize import grade_id
from mlsys.classroom.store.record import QuestionRecord
from mlsys.classroom.store.run import Terms
from mlsys.core.cells import plain_python
from mlsys.course.lab import Question
from mlsys.course.starter import starter
from mlsys.course.term import tree_of
from mlsys.course.tree import CourseTree
from mlsys.grading.verdicts import Verdict
from mlsys.judge.grade_question import LIMITS, grade_question, open_lab_sandbox
from mlsys.judge.sandbox.protocol.limits import Limits


def judge_questions(
    tree: CourseTree,
    name: str,
    notebook: NotebookNode,
    device: str,
    cpu_limit_s: int,
    terms: Terms,
    *,
    only: Collection[str] = (),
    later: Collection[str] = (),
    tries: int = 2,
    hidden: bool = True,
) -> tuple[QuestionRecord, ...]:
    """Run every question of a canonical notebook.

    A question gets the newest tests, unless its interface has changed since the version that the notebook is of.

    Args:
        tree: the course.
        name: the lab.
        notebook: the canonical notebook of a submission.
        device: "cpu", "gpu" or "auto".
        cpu_limit_s: seconds of computing that one question may use.
        terms: the run whose random inputs it meets, the term whose lab, and whether it is sandboxed.
        only: names of the questions to run; all of them when empty.
        later: names of the questions that are not run yet; their verdict is that they wait for a GPU.
        tries: how often a question may be run whose process is lost.
        hidden: whether hidden tests run too; without them, only questions with visible tests are judged, and one whose
            answer these only note has no record unless they fail.
    """
    tree = tree_of(tree, name, terms.term)
    current = released_lab(tree, name)
    version = notebook.metadata["mlsys"]["submitted_version"]
    older = current if version == current.version else released_lab(tree, name, version)
    changed = with_older_tests(current, older) if older is not current else []
    if not hidden:
        current, older = visible_lab(current), visible_lab(older)
    cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    limits = _limits(cpu_limit_s, terms.sandboxed)

    def judged(question: Question) -> QuestionRecord:
        started = time.monotonic()
        lab = older if question.name in changed else current
        if question.name in later:
            verdict = Verdict("needs gpu")
        elif question.written:
            texts = (one.graded.source for one in (*current.questions, *older.questions) if one.name == question.name)
            verdict = _written_verdict(cells[question.graded.id], texts)
        else:
            asked, submission = lab.question(question.name), submission_of(notebook, lab)
            for _ in range(tries):
                verdict = grade_question(submission, asked, device, seed=terms.seed, limits=limits)
                if not verdict.lost:
                    break
        return QuestionRecord.of(
            verdict,
            question=question.name,
            title=question.title,
            grade_id=question.graded.id,
            max_points=question.points,
            seconds=time.monotonic() - started,
        )

    asked = [question for question in current.questions if not only or question.name in only]
    if hidden:
        return tuple(map(judged, asked))
    records = [(question, judged(question)) for question in asked if _has_tests(question)]
    return tuple(record for question, record in records if record.verdict != "passed" or not _sees_form_alone(question))


def _has_tests(question: Question) -> bool:
    """Return whether a question has tests; one with hidden tests alone has none that are visible."""
    return not question.written and bool(ast.parse(plain_python(question.graded.source)).body)


def _sees_form_alone(question: Question) -> bool:
    """Return whether the visible tests only note an answer that hidden tests know: passing them says nothing."""
    return "scorecard.answered(" in question.graded.source


def open_sandbox(tree: CourseTree, name: str, device: str, cpu_limit_s: int) -> None:
    """Open the sandbox in which `judge_questions` would run the questions of a lab in this process."""
    open_lab_sandbox(released_lab(tree, name), device, limits=_limits(cpu_limit_s, sandboxed=True))


def _limits(cpu_limit_s: int, sandboxed: bool) -> Limits:
    """Return the limits of one question: waiting is limited in proportion to computing."""
    wall_s = cpu_limit_s * LIMITS.wall_s / LIMITS.cpu_s
    return replace(LIMITS, cpu_s=cpu_limit_s, wall_s=wall_s, sandboxed=sandboxed)


def _written_verdict(cell: NotebookNode, texts: Iterable[str]) -> Verdict:
    if cell.source.strip() in (starter(text).strip() for text in texts):
        return Verdict("not implemented", message="No answer was written.")
    return Verdict("needs review")
