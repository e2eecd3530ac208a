"""Sample classes: graded in a tree of their own, and the marks that were written down beforehand."""

import csv
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from helpers.sample_answers import EachAnswerOnce
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.store.record import QuestionRecord
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.term import Term, begin_term
from mlsys.course.tree import CourseTree

ROOT = Path(__file__).parents[2]
SEEDS = (("one",), ("one", "two"), ("three",))
"""Seeds of the terms so far, the present one last, with which labs that have variants are tried."""
Key = tuple[str, str]
"""A student and a question."""


def endless(name: str) -> set[str]:
    """The students of a lab's sample class whose code never ends, in one question or more."""
    return {student for (student, _), row in expected(name).items() if row["verdict"] == "timed out"}


def handed_in(name: str, folder: Path, seeds: Sequence[str] = ()) -> CourseTree:
    """A tree with the lab as it is after terms with these seeds; its sample class lies in `folder / "submissions"`."""
    tree = CourseTree(folder / "course")
    tree.create()
    for number, seed in enumerate(seeds):
        begin_term(tree, Term(f"term-{number}", seed, "2026-10-01T00:00:00+00:00"))
    release(ROOT, tree, [name])
    hand_in(ROOT / "labs" / name / "lab.py", folder / "submissions", tree)
    return tree


def graded(
    name: str, folder: Path, config: str = "", workers: int = Options.workers, *, once: bool = False
) -> dict[Key, QuestionRecord]:
    """What each question of each sample submission got.

    `config` is added to nbgrader's configuration. With `once`, who answers a question alike is judged once.
    """
    tree = handed_in(name, folder)
    path = tree.root / "nbgrader_config.py"
    path.write_text(path.read_text() + config)
    open_pool = (lambda tree, name: EachAnswerOnce(tree, name, workers)) if once else None
    options = Options(folder / "submissions", workers=workers, open_pool=open_pool)
    batch = grade_class(ROOT, tree, name, options, Console(quiet=True))
    return {
        (student, question.question): question
        for student, record in batch.records.items()
        for question in record.questions
    }


def expected(name: str) -> dict[Key, dict[str, str]]:
    """The rows of `class/expected.csv`."""
    with (ROOT / "labs" / name / "class" / "expected.csv").open(newline="") as file:
        return {(row["student"], row["question"]): row for row in csv.DictReader(file)}


def is_due(points: float, written: str) -> bool:
    """Whether these are the points that a table has, such as "5", or "3-5" where they depend on the device.

    >>> is_due(4.2, "3-5"), is_due(4.2, "5")
    (True, False)
    """
    least, _, most = written.partition("-")
    return float(least) <= points <= float(most or least)
