"""Attacks that need a GPU, graded end to end on one: `python -m pytest tests/redteam -m gpu`."""

import pytest
from redteam_samples import Attack, Graded, grade_attacks, read_attacks

from mlsys.grading.records import WAITING
from mlsys.measure.device import torch_sees_gpu

ATTACKS = read_attacks("gpu")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch_sees_gpu(), reason="needs a CUDA GPU")]


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    config = 'c.RunQuestions.cpu_limit_s = 10\nc.RunQuestions.device = "gpu"\n'
    # One worker: kernels that are timed have the GPU to themselves.
    return grade_attacks(tmp_path_factory.mktemp("redteam-gpu"), ATTACKS, config, workers=1)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", ["attack", "twin"])
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_on_a_gpu_scores_nothing_and_gets_its_verdict(graded: Graded, attack: Attack, kind: str) -> None:
    verdict, points, message = graded.found(attack, kind)
    assert (verdict, points) == (attack.verdict, 0), message


@pytest.mark.timeout(1800)
def test_honest_work_on_the_same_gpu_keeps_its_points(graded: Graded) -> None:
    lost = [
        (student, question.question, question.verdict, question.message)
        for student, attempt in graded.attempts.items()
        for question in graded.batch.records[student].questions
        if not any(question.question in attack.questions for attack in attempt.attacks)
        and question.verdict not in ("passed", *WAITING)
    ]
    assert lost == []
