import pytest

from mlsys.errors import UnknownName
from mlsys.grading import Scorecard


def test_what_is_certain_and_what_waits_add_up():
    card = Scorecard({"a": 15, "why": 5, "e": 10, "gap": 5}, gpu=["e"], read=["why"])
    card.passed("a")
    card.answered("gap")
    assert {name: points for name, points, _ in card.rows()}["a"] == "15 of 15"
    assert card.rows()[-1] == ("sum", "15 of 35", "20 wait")
    card.passed("e", 0.5)
    assert card.rows()[-1] == ("sum", "20 of 35", "10 wait")


def test_an_unknown_question_is_refused():
    with pytest.raises(UnknownName, match="Known: a"):
        Scorecard({"a": 15}).passed("b")
