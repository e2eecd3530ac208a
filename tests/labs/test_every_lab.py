"""What holds in every lab; what is its own stands in `test_<lab>_lab.py`."""

import ast
import re
from functools import cache

import pytest
from known_lab import ROOT, KnownLab

from mlsys.course.lab import PREDICT, SOLUTION, find_labs
from mlsys.course.starter import starter

LABS = find_labs(ROOT)
QUESTIONS = [(name, question) for name in LABS for question in KnownLab(name).code_questions]
WITHOUT_HINTS = {"fusion": ("h", "i")}
"""Races of kernels that have theirs."""

known = cache(KnownLab)


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_the_solution_passes_or_waits_for_a_gpu(name, question):
    expected = "needs gpu" if known(name).lab.question(question).device == "gpu" else "passed"
    found = known(name).verdict(question)
    assert found.name == expected, found.message


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_the_starter_is_not_implemented(name, question):
    found = known(name).verdict(
        question, lambda cell: starter(cell.source) if cell.role in (PREDICT, SOLUTION) else cell.source
    )
    if (name, question) == ("tiling", "read"):  # its starter is faulty code
        assert found.name == "error"
        assert "Mask argument cannot be block type if pointer argument is not a block" in found.message
    else:
        assert found.name == "not implemented"


@pytest.mark.parametrize("name", LABS)
def test_points_add_up_to_100_and_the_notebook_shows_the_same(name):
    points = {question.name: question.points for question in known(name).lab.questions}
    assert sum(points.values()) == 100
    shown = re.search(r"Scorecard\(\s*(\{.*?\})", known(name).cells["setup"].source, re.S)
    assert ast.literal_eval(shown.group(1)) == points


@pytest.mark.parametrize("name", LABS)
def test_every_question_has_three_hints(name):
    prose = "\n".join(cell.source for cell in known(name).lab.cells if cell.kind == "markdown")
    with_hints = len(set(known(name).code_questions) - set(WITHOUT_HINTS.get(name, ())))
    for level in (1, 2, 3):
        assert len(re.findall(rf"<summary>Hint {level}\b", prose)) == with_hints
    assert prose.count("<details>") == prose.count("</details>") == 3 * with_hints
