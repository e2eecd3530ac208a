"""Attacks that need a GPU, graded end to end on one: `python -m pytest tests/redteam -m gpu`.

That command writes its record, `tests/redteam/results/<device>.json`, which is committed;
`tests/grading/test_redteam_record.py` holds it to the present list.
"""

import os

import pytest
from helpers.on_gpu import GRADING_CONFIG, needs_gpu, write_record
from helpers.redteam_record import RESULTS, digest_of_list
from helpers.redteam_samples import Attack, Graded, grade_attacks, read_attacks

from mlsys.classroom.store.record import WAITING

ATTACKS = read_attacks("gpu")
KINDS = ("attack", "twin")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    # All at once: most of them wait for the GPU or for their limits.
    workers = 2 * (os.cpu_count() or 1)
    found = grade_attacks(tmp_path_factory.mktemp("redteam-gpu"), ATTACKS, GRADING_CONFIG, workers=workers)
    rows = []
    for attack in ATTACKS:
        for kind in KINDS:
            verdict, points, message = found.found(attack, kind)
            rows.append(
                {
                    "sample": attack.name,
                    "kind": kind,
                    "question": attack.question,
                    "verdict": verdict,
                    "points": points,
                    "message": message.split("\n")[0][:200],
                }
            )
    honest_lost = [" ".join(lost[:3]) for lost in lost_by_honest(found)]
    write_record(RESULTS, {"list": digest_of_list(), "attacks": rows, "honest_lost": honest_lost})
    return found


def lost_by_honest(graded: Graded) -> list[tuple[str, str, str, str]]:
    """Questions that no attack touches and that still lost points."""
    return [
        (student, question.question, question.verdict, question.message)
        for student, attempt in graded.attempts.items()
        for question in graded.batch.records[student].questions
        if not any(question.question in attack.questions for attack in attempt.attacks)
        and question.verdict not in ("passed", *WAITING)
    ]


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_on_a_gpu_scores_nothing_and_gets_its_verdict(graded: Graded, attack: Attack, kind: str) -> None:
    verdict, points, message = graded.found(attack, kind)
    assert (verdict, points) == (attack.verdict, 0), message


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(1800)
def test_honest_work_on_the_same_gpu_keeps_its_points(graded: Graded) -> None:
    assert lost_by_honest(graded) == []
