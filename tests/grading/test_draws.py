import pytest
import torch

from mlsys.errors import InvalidValue, UnknownName
from mlsys.grading import Draws
from mlsys.grading.draws import LAYOUTS, SEED_VARIABLE


def first_numbers(question="c"):
    draw = Draws(question)
    return [draw.integer(0, 10**6) for _ in range(4)]


def test_the_same_question_and_seed_draw_the_same(monkeypatch):
    monkeypatch.setenv(SEED_VARIABLE, "1234")
    assert first_numbers() == first_numbers()


def test_another_seed_or_question_draws_something_else(monkeypatch):
    public = first_numbers()
    assert first_numbers("d") != public
    monkeypatch.setenv(SEED_VARIABLE, "1234")
    assert first_numbers() != public


def test_integers_reach_both_ends():
    draw = Draws("ends")
    assert {draw.integer(3, 5) for _ in range(100)} == {3, 4, 5}


def test_ragged_sizes_are_never_multiples_of_the_tile():
    draw = Draws("ragged")
    assert all(draw.ragged(1, 70, tile=16) % 16 for _ in range(200))
    with pytest.raises(InvalidValue, match="widen"):
        draw.ragged(16, 16)


def test_a_layout_changes_strides_and_not_values():
    matrices = {layout: Draws("layout").matrix(6, 5, layout=layout) for layout in LAYOUTS}
    assert len({matrix.stride() for matrix in matrices.values()}) == len(LAYOUTS)
    assert all(torch.equal(matrix, matrices["row"]) for matrix in matrices.values())


def test_values_have_the_signs_that_are_asked_for_and_climbing_ones_cancel():
    assert Draws("p").matrix(9, 9, values="positive").min() >= 0.5
    assert Draws("n").matrix(9, 9, values="negative").max() <= -0.5
    climbing = Draws("c").matrix(4, 2048, values="climbing")
    assert climbing[:, :1024].sum(dim=1).min() > 700
    assert climbing.sum(dim=1).abs().max() < 50


@pytest.mark.parametrize("options", [{"layout": "diagonal"}, {"values": "prime"}])
def test_unknown_names_are_refused_with_the_known_ones(options):
    with pytest.raises(UnknownName, match="Known"):
        Draws("x").matrix(2, 2, **options)
