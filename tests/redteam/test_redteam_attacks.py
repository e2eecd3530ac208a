"""Attacks on a question, graded end to end: they score 0 with their verdict, and nobody else loses a point."""

import re
from collections import Counter

import pytest
from helpers.redteam_samples import HERE, Attack, Graded, grade_attacks, read_attacks

from mlsys.classroom.store.record import WAITING

ATTACKS = read_attacks("attacks")
NAMES = [attack.name for attack in ATTACKS]
NEED_ALL_ANSWERS = ("e", "challenge")

pytestmark = pytest.mark.timeout(3600)  # the whole class is graded before the first test: three minutes, if alone


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    return grade_attacks(
        tmp_path_factory.mktemp("redteam"),
        ATTACKS,
        # An honest question computes for about 1 s; waiting is limited to four times as much, for busy machines.
        'c.RunQuestions.cpu_limit_s = 8\nc.RunQuestions.device = "cpu"\n',
        workers=2,
    )


@pytest.mark.parametrize("kind", ["attack", "twin"])
@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
def test_an_attack_scores_nothing_and_gets_its_verdict(graded: Graded, attack: Attack, kind: str) -> None:
    verdict, points, message = graded.found(attack, kind)
    assert (verdict, points) == (attack.verdict, 0), message
    assert verdict not in WAITING


def test_every_question_that_was_not_attacked_keeps_its_points(graded: Graded) -> None:
    assert [lost for lost in graded.lost_by_honest() if lost[1] not in NEED_ALL_ANSWERS] == []


def test_the_batch_ends_with_everybody_in_it(graded: Graded) -> None:
    assert set(graded.batch.records) == set(graded.attempts)
    assert [student for student, record in graded.batch.records.items() if record.refused] == []


def test_no_input_of_a_hidden_test_comes_back_in_words(graded: Graded) -> None:
    told = [
        student
        for student, record in graded.batch.records.items()
        for question in record.questions
        if re.search(r"LEAK(ED)?[^A-Za-z]*[0-9]", question.message + question.detail)
    ]
    assert told == []


def test_every_message_is_short_and_printable(graded: Graded) -> None:
    texts = [q.message + q.detail for record in graded.batch.records.values() for q in record.questions]
    assert max(map(len, texts)) < 5000
    assert [text for text in texts if not text.replace("\n", "").isprintable()] == []


@pytest.mark.parametrize("folder", ["attacks", "gpu"])
def test_every_sample_is_in_its_table_once(folder: str) -> None:
    names = Counter(attack.name for attack in read_attacks(folder))
    assert names == Counter(path.stem for path in (HERE / folder).glob("*.py"))
