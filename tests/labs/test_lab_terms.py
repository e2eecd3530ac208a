"""Labs in three terms: their own solutions and sample classes fit, and last term's solution does not."""

import ast
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from helpers.known_lab import ROOT, KnownLab
from helpers.sample_answers import SampleAnswer, answer_to, sample_answers
from helpers.sample_classes import SEEDS, expected, handed_in

from mlsys.course.lab import PREDICT, SOLUTION, Lab, find_labs
from mlsys.course.starter import solution, starter
from mlsys.grading.verdicts import Verdict
from mlsys.judge.grade_question import LIMITS, grade_question

LABS = [name for name in find_labs(ROOT) if Lab.load(ROOT / "labs" / name / "lab.py").variants]
FIT_ALWAYS = {
    "access": {"b", "g"},
    "convolution": {"f", "g"},
    "first-kernels": {"d", "e", "j", "k", "challenge"},
    "precision": {"a", "c", "d", "f", "g"},
    "schedules": {"c", "e"},
}
"""Questions whose answers do not depend on the term, or need not: a race is run with an answer that does."""

SHORT = replace(LIMITS, cpu_s=LIMITS.cpu_s // 2)
"""Half of a class's time, for an endless loop takes all of it."""

known = cache(KnownLab)
judged: dict[object, Verdict] = {}


def questions(seeds):
    return [
        pytest.param(name, question, seeds, marks=[] if seeds == SEEDS[0] else [pytest.mark.proof])
        for name in LABS
        for question in known(name).code_questions
    ]


EVERY = [one for seeds in SEEDS for one in questions(seeds)]


def test_the_four_labs_of_the_first_half_have_variants():
    assert set(FIT_ALWAYS) <= set(LABS)


@pytest.mark.parametrize(("name", "question", "seeds"), EVERY)
def test_the_solution_passes_in_its_term(name, question, seeds):
    lab = known(name, seeds)
    due = "needs gpu" if lab.lab.question(question).device == "gpu" else "passed"
    found = lab.verdict(question)
    assert found.name == due, found.message


@pytest.mark.parametrize(("name", "question", "seeds"), EVERY)
def test_last_terms_solution_does_not_fit(name, question, seeds):
    if question in FIT_ALWAYS[name]:
        pytest.skip("the same in every term")
    last = known(name, seeds[:-1]).cells
    answers = {one: cell.source for one, cell in last.items() if cell.role in (PREDICT, SOLUTION)}
    found = known(name, seeds).verdict(question, lambda cell: answers.get(cell.id, cell.source))
    assert found.name in ("wrong answer", "out of bounds", "error"), found


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("name", LABS)
def test_a_variant_changes_no_cell_points_or_names_of_a_lab(name, seeds):
    """What the gradebook and the sample class know a lab by is the same in every term."""
    plain, other = known(name).lab, known(name, seeds).lab
    assert [(cell.id, cell.role, cell.points, cell.needs) for cell in plain.cells] == [
        (cell.id, cell.role, cell.points, cell.needs) for cell in other.cells
    ]
    assert set(plain.variants) == set(other.variants)


@pytest.mark.parametrize("seeds", [(), *SEEDS])
@pytest.mark.parametrize("name", LABS)
def test_every_cell_is_a_cell_and_none_says_what_is_drawn(name, seeds):
    for cell in known(name, seeds).lab.cells:
        if cell.kind == "code":
            for text in (cell.source, starter(cell.source), solution(cell.source)):
                ast.parse(text)
        for text in (cell.source, starter(cell.source), solution(cell.source)):
            assert "TERM_" not in text
            assert "drawn(" not in text


def verdict_on(answer: SampleAnswer) -> Verdict:
    """Judge an answer, unless the same one to the same tests was judged in another term."""
    lab = answer.submission.lab
    asked = lab.name, lab.withheld, answer.question.graded.source, answer_to(answer.question, answer.submission)
    if asked not in judged:
        judged[asked] = grade_question(answer.submission, answer.question, "cpu", seed=1, limits=SHORT)
    return judged[asked]


@pytest.mark.proof
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("name", LABS)
def test_the_sample_class_gets_its_marks_in_every_term(tmp_path: Path, name: str, seeds: tuple[str, ...]) -> None:
    """The class as a whole is graded in `test_sample_classes.py`; here each different answer is judged once."""
    due = {
        key: (row["verdict"], float(row["points_cpu"]))
        for key, row in expected(name).items()
        if not known(name).lab.question(key[1]).written
    }
    tree = handed_in(name, tmp_path, seeds)
    found = {}
    for answer in sample_answers(name, tree, tmp_path / "submissions"):
        verdict = verdict_on(answer)
        marks = verdict.name, round(verdict.fraction * answer.question.points, 4)
        found |= {(student, answer.question.name): (marks, verdict.message) for student in answer.students}
    assert {due[key] for key in due.keys() - found.keys()} == {("refused", 0)}
    assert [(key, *found[key]) for key in found if found[key][0] != due[key]] == []
