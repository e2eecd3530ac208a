"""Every attack fails for what it is named after: the same submission without its trick is right, and scores."""

import pytest
from helpers.redteam_samples import Attack, Graded, grade_without_tricks, read_attacks, without_trick

ATTACKS = read_attacks("attacks")
ON_GPU = read_attacks("gpu")
CONFIG = 'c.RunQuestions.cpu_limit_s = 8\nc.RunQuestions.device = "cpu"\n'

pytestmark = pytest.mark.timeout(3600)  # two classes are graded before the first tests: two minutes, if alone


def each(attacks: list[Attack]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("attack", attacks, ids=[attack.name for attack in attacks])


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    return grade_without_tricks(tmp_path_factory.mktemp("honest"), ATTACKS, CONFIG, workers=2)


@pytest.fixture(scope="module")
def graded_on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    folder = tmp_path_factory.mktemp("honest-gpu")
    return grade_without_tricks(folder, ON_GPU, CONFIG, workers=2, also=["c", "e"])


@each(ATTACKS)
def test_an_attack_without_its_trick_scores(graded: Graded, attack: Attack) -> None:
    verdict, points, message = graded.found(attack, "honest")
    assert (verdict, points) == ("passed", graded.points(attack.question)), message


@each(ON_GPU)
def test_an_attack_on_a_gpu_without_its_trick_multiplies_rightly_and_waits(
    graded_on_cpu: Graded, attack: Attack
) -> None:
    product = graded_on_cpu.question(attack, "honest", "c")
    assert (product.verdict, product.points) == ("passed", graded_on_cpu.points("c")), product.message
    race = graded_on_cpu.question(attack, "honest", "e")
    assert (race.verdict, race.points) == ("needs gpu", 0), race.message


@each(ATTACKS + ON_GPU)
def test_every_sample_says_what_its_trick_is(attack: Attack) -> None:
    marked, honest = attack.text.count("# trick:"), without_trick(attack).text
    assert marked == attack.text.count("# without:") >= 1
    assert not any(mark in honest for mark in ("# trick:", "# without:", "#:"))
