"""Attacks of tests that students write: they score 0, and without their tricks they find every mutant."""

from collections import Counter

import pytest
from helpers.redteam_samples import HERE, Attack, Graded, grade_attacks, grade_without_tricks, read_attacks

ATTACKS = read_attacks("mutants")
CONFIG = 'c.RunQuestions.cpu_limit_s = 10\nc.RunQuestions.device = "cpu"\n'

pytestmark = pytest.mark.timeout(3600)  # a class is graded before the first test


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    return grade_attacks(tmp_path_factory.mktemp("redteam"), ATTACKS, CONFIG, workers=2, lab_name="first-kernels")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    return grade_without_tricks(tmp_path_factory.mktemp("honest"), ATTACKS, CONFIG, workers=2, lab_name="first-kernels")


def each() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])


@each()
@pytest.mark.parametrize("kind", ["attack", "twin"])
def test_tests_that_cheat_score_nothing_and_get_their_verdict(graded: Graded, attack: Attack, kind: str) -> None:
    verdict, points, message = graded.found(attack, kind)
    assert (verdict, points) == (attack.verdict, 0), message


def test_every_question_that_was_not_attacked_keeps_its_points(graded: Graded) -> None:
    assert graded.lost_by_honest() == []


@each()
def test_tests_without_their_trick_score(honest: Graded, attack: Attack) -> None:
    verdict, points, message = honest.found(attack, "honest")
    assert (verdict, points) == ("passed", honest.points(attack.question)), message


def test_every_sample_is_in_its_table_once() -> None:
    names = Counter(attack.name for attack in ATTACKS)
    assert names == Counter(path.stem for path in (HERE / "mutants").glob("*.py"))
