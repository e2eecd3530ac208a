"""Submissions of the red team: samples, their twins, submissions that hold several at once, and their grading."""

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nbformat import NotebookNode
from rich.console import Console

from helpers.redteam_twins import twin
from mlsys.classroom.grade_class import Batch, Options, grade_class
from mlsys.classroom.store.record import WAITING, QuestionRecord
from mlsys.core.cells import defined_names
from mlsys.course.lab import PREDICT, SOLUTION, Lab
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.release import release
from mlsys.course.sample_class import build
from mlsys.course.starter import solution
from mlsys.course.tree import CourseTree

HERE = Path(__file__).parents[1] / "redteam"
ROOT = HERE.parents[1]
AT_ONCE = 4
"""Questions that one submission attacks: the others stay honest and must keep their points."""

_TRICK = re.compile(
    r"^ *# trick:\n(?P<trick>(?:(?! *# trick:).*\n)*?) *# without:\n(?P<instead>(?: *#:.*\n)*)", re.MULTILINE
)
_SHARED = re.compile(r"^# shared: (\S+)$", re.MULTILINE)
_INSTEAD = re.compile(r"^( *)#:(?: (.*))?$", re.MULTILINE)


@dataclass(frozen=True)
class Attack:
    """One attack on one question: the operations of its file, and the verdict that it must get.

    `verdict` names two, joined by " or ", where either of two limits may end it first. `spoils` names another question
    that runs the same cells, and may be lost with it.
    """

    name: str
    question: str
    verdict: str
    spoils: str
    text: str

    @property
    def verdicts(self) -> list[str]:
        """The verdicts of which it must get one."""
        return self.verdict.split(" or ")

    @property
    def questions(self) -> set[str]:
        """The questions that may lose points."""
        return {self.question, *self.spoils.split()}

    def can_go_with(self, other: "Attack") -> bool:
        """Whether one submission can hold both: they change other cells, and none spoils what the other attacks."""
        return not self.questions & other.questions and not self._cells() & other._cells()

    def _cells(self) -> set[str]:
        return set(re.findall(r"^# %% (?:replace|append)=(\S+)", self.text, re.MULTILINE))


@dataclass(frozen=True)
class Attempt:
    """One submission with attacks on different questions."""

    student: str
    attacks: tuple[Attack, ...]


def read_attacks(folder: str) -> list[Attack]:
    """The samples of a folder with what the table beside it says about them.

    A line `# shared: NAME` of a sample becomes the text of `shared/NAME.py` in its folder.
    """

    def text_of(sample: str) -> str:
        text = (HERE / folder / f"{sample}.py").read_text()
        return _SHARED.sub(lambda line: (HERE / folder / "shared" / f"{line[1]}.py").read_text().rstrip("\n"), text)

    with (HERE / f"{folder}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        Attack(
            row["sample"],
            row["question"],
            row["verdict"],
            row["spoils"],
            text_of(row["sample"]),
        )
        for row in rows
    ]


def twin_of(attack: Attack, lab: Lab, seed: str) -> Attack:
    """The attack, renamed and rearranged; the first line of an operation says what it changes and stays."""
    solutions = {cell.id: cell.source for cell in lab.cells if cell.role in (PREDICT, SOLUTION)}
    asked_for = frozenset().union(*map(defined_names, solutions.values()))
    head, *parts = attack.text.split("# %% ")
    for number, part in enumerate(parts):
        marker, _, source = part.partition("\n")
        place = marker.split("=", 1)[1]
        contract = defined_names(solutions[place]) if place in solutions else asked_for
        added, answer = twin(source, contract, f"{seed}/{attack.name}/{number}")
        before = f"add after=setup\n{added}\n\n# %% " if added else ""
        parts[number] = f"{before}{marker}\n{answer}\n\n"
    return replace(attack, text="# %% ".join([head, *parts]))


def without_trick(attack: Attack) -> Attack:
    r"""The same submission without its trick: a right answer.

    In a sample, what makes it an attack stands between the lines `# trick:` and `# without:`. The lines that follow,
    each after `#: `, stand in its place.

    >>> text = "def f(x):\n    # trick:\n    return 7\n    # without:\n    #: return x + 1\n"
    >>> without_trick(Attack("lies", "a", "wrong answer", "", text)).text
    'def f(x):\n    return x + 1\n'
    """
    honest = _TRICK.sub(lambda found: _INSTEAD.sub(_uncommented, found["instead"]), attack.text)
    return replace(attack, text=honest)


def _uncommented(line: re.Match[str]) -> str:
    return f"{line[1]}{line[2]}" if line[2] else ""


def pack(attacks: list[Attack], prefix: str, at_once: int = AT_ONCE) -> list[Attempt]:
    """Few submissions that hold all attacks, none with two on one question."""
    groups: list[list[Attack]] = []
    for attack in attacks:
        fitting = (g for g in groups if len(g) < at_once and all(map(attack.can_go_with, g)))
        group = next(fitting, None)
        if group is None:
            groups.append([attack])
        else:
            group.append(attack)
    return [Attempt(f"{prefix}-{number:02d}", tuple(group)) for number, group in enumerate(groups)]


def notebook_of(
    attempt: Attempt, lab: Lab, released: NotebookNode, asked: Collection[str] | None = None
) -> NotebookNode:
    """The submission: right answers, and the attacks in their places.

    Where `asked` names questions, it answers only what runs for these and for those that its attacks are about.
    """
    solutions = {cell.id: solution(cell.source) for cell in lab.cells if cell.role in (PREDICT, SOLUTION)}
    answered = "*"
    if asked is not None:
        names = set(asked).union(*(attack.questions for attack in attempt.attacks))
        needed = {other for name in names for other in lab.needed(lab.question(name))}
        answered = ",".join(cell.id for cell in lab.cells if cell.id in solutions and cell.question in needed)
    written = "".join(f"# %% replace={one.graded.id}\nA written answer.\n\n" for one in lab.questions if one.written)
    text = f"# %% solve={answered}\n{written}"
    for attack in attempt.attacks:
        part = attack.text
        for place, right in solutions.items():  # what follows a right answer
            part = part.replace(f"# %% append={place}\n", f"# %% replace={place}\n{right}\n\n\n")
        text += part + "\n"
    return build(text, lab, released, attempt.student)


@dataclass(frozen=True)
class Graded:
    """A graded class of attackers: its tree, its records, and what each submission attacks."""

    tree: CourseTree
    batch: Batch
    attempts: dict[str, Attempt]

    def found(self, attack: Attack, kind: str) -> tuple[str, float, str]:
        """Verdict, points and message of an attack in a submission of one kind, "attack", "twin" or "honest"."""
        record = self.question(attack, kind, attack.question)
        return record.verdict, record.points, record.message

    def question(self, attack: Attack, kind: str, question: str) -> QuestionRecord:
        """The record of any question of the submission that holds an attack."""
        [student] = [
            student
            for student, attempt in self.attempts.items()
            if student.startswith(kind) and attack.name in [other.name for other in attempt.attacks]
        ]
        [record] = [one for one in self.batch.records[student].questions if one.question == question]
        return record

    def lost_by_honest(self) -> list[tuple[str, str, str, str]]:
        """Questions that no attack touches and that still lost points: student, question, verdict and message."""
        return [
            (student, question.question, question.verdict, question.message)
            for student, attempt in self.attempts.items()
            for question in self.batch.records[student].questions
            if not any(question.question in attack.questions for attack in attempt.attacks)
            and question.verdict not in ("passed", *WAITING)
        ]

    def points(self, question: str) -> float:
        """All the points of a question."""
        questions = [one for record in self.batch.records.values() for one in record.questions]
        [points] = {one.max_points for one in questions if one.question == question}
        return points


def grade_attacks(
    folder: Path,
    attacks: list[Attack],
    config: str,
    workers: int,
    kinds: Sequence[str] = ("attack", "twin"),
    lab_name: str = "tiling",
) -> Graded:
    """Release the lab in `folder` and grade a class of attackers and their twins, an honest student before and after.

    Twins are drawn from the course's secret, so every run has others.
    """
    tree, lab = _course(folder, config, lab_name)
    found = {"attack": attacks, "twin": [twin_of(attack, lab, tree.secret()) for attack in attacks]}
    attempts = [attempt for kind in kinds for attempt in pack(found[kind], kind)]
    attempts += [Attempt("a-first-honest", ()), Attempt("zealous-and-honest", ())]
    return _graded(folder, tree, lab, attempts, workers)


def grade_without_tricks(
    folder: Path,
    attacks: list[Attack],
    config: str,
    workers: int,
    lab_name: str = "tiling",
    also: Collection[str] = (),
) -> Graded:
    """Grade the same submissions without what makes them attacks, as many questions of one submission as there are.

    Questions that no attack of a submission is about stay without an answer, unless `also` names them: nobody looks at
    them.
    """
    tree, lab = _course(folder, config, lab_name)
    honest = pack([without_trick(attack) for attack in attacks], "honest", at_once=len(attacks))
    return _graded(folder, tree, lab, honest, workers, asked=also)


def _course(folder: Path, config: str, lab_name: str) -> tuple[CourseTree, Lab]:
    tree = CourseTree(folder / "course")
    release(ROOT, tree, [lab_name])
    path = tree.root / "nbgrader_config.py"
    path.write_text(path.read_text() + config)
    return tree, Lab.load(ROOT / "labs" / lab_name / "lab.py")


def _graded(
    folder: Path,
    tree: CourseTree,
    lab: Lab,
    attempts: list[Attempt],
    workers: int,
    asked: Collection[str] | None = None,
) -> Graded:
    submissions = folder / "submissions"
    submissions.mkdir()
    released = read_notebook(tree.release(lab.name))
    for attempt in attempts:
        write_notebook(notebook_of(attempt, lab, released, asked), submissions / f"{attempt.student}.ipynb")
    batch = grade_class(ROOT, tree, lab.name, Options(submissions, workers=workers), Console(quiet=True))
    return Graded(tree, batch, {attempt.student: attempt for attempt in attempts})
