import pytest

from mlsys.errors import InvalidValue, UnknownName
from mlsys.grading.verdicts import VERDICTS, GradingError, NeedsGpu, OutOfBounds, Verdict, WrongAnswer


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (WrongAnswer("x"), "wrong answer"),
        (AssertionError("x"), "wrong answer"),
        (OutOfBounds("x"), "out of bounds"),
        (NotImplementedError("schedule"), "not implemented"),
        (NeedsGpu("x"), "needs gpu"),
        (MemoryError(), "out of memory"),
        (OutOfMemoryError("CUDA out of memory"), "out of memory"),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "crashed"),
        (TimeoutError(), "timed out"),
        (KeyError("TILE_M"), "error"),
    ],
)
def test_an_exception_leads_to_its_verdict_and_no_points(error, name):
    verdict = Verdict.of(error)
    assert (verdict.name, verdict.fraction) == (name, 0)


def test_the_cause_inside_a_wrapping_exception_counts():
    try:
        try:
            raise NotImplementedError("the kernel")
        except NotImplementedError as inner:
            raise RuntimeError("interpreter failed") from inner
    except RuntimeError as error:
        verdict = Verdict.of(error)
    assert verdict.name == "not implemented"
    assert verdict.message == "NotImplementedError: the kernel"


def test_a_message_of_grading_stands_without_its_class():
    assert Verdict.of(WrongAnswer("C is wrong at [0, 1]")).message == "C is wrong at [0, 1]"


@pytest.mark.parametrize(
    ("name", "fraction"), [("needs gpu", 1.0), ("passed", 0.5), ("slow", 1.0), ("mutants survive", 1.0), ("error", 0.1)]
)
def test_no_verdict_gives_points_that_it_must_not(name, fraction):
    with pytest.raises(InvalidValue, match=name):
        Verdict(name, fraction)


def test_an_unknown_verdict_is_refused_with_the_known_ones():
    with pytest.raises(UnknownName, match="out of bounds"):
        Verdict("out-of-bounds")


def test_every_exception_of_grading_names_a_taught_verdict():
    def below(kind):
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    assert {kind.verdict for kind in below(GradingError)} <= set(VERDICTS)
