import pytest
import torch

from mlsys.grading import NeedsGpu, Speed, WrongAnswer, speed
from mlsys.grading.race import Race
from mlsys.grading.speed import points_fraction
from mlsys.measure.device import torch_sees_gpu
from mlsys.measure.timing import Pair


def result(*ratios):
    pairs = {(n, n, n): Pair(1e-3, ratio * 1e-3, ratio, ratio - 0.02, ratio + 0.02) for n, ratio in enumerate(ratios)}
    return Speed("a device", "the reference kernel", pairs)


def run(config):
    return speed(
        None, config, shapes=[(8, 8, 8)], inputs=lambda *_: (), launch=lambda *_: None, expected=lambda *_: None
    )


def test_points_rise_in_proportion_between_the_two_ends():
    assert [points_fraction(ratio) for ratio in (0.0, 0.1, 0.8, 3.0)] == [0, 0, 1, 1]
    assert points_fraction(0.45) - points_fraction(0.40) == pytest.approx(0.05 / 0.7, abs=1e-3)


def test_the_favourable_end_of_the_interval_counts():
    assert result(0.79).verdict.name == "passed"
    assert result(0.75).verdict.name == "slow"


def test_each_shape_has_the_same_weight():
    assert result(0.9, 0.05).fraction == pytest.approx(0.5)


def test_a_slow_result_names_device_and_ratio():
    verdict = result(0.33).verdict
    assert (verdict.name, verdict.fraction) == ("slow", result(0.33).fraction)
    assert "a device" in verdict.message
    assert "0.33" in verdict.message


@pytest.mark.skipif(torch_sees_gpu(), reason="a GPU is here")
def test_without_a_gpu_nothing_is_timed_and_the_question_waits():
    with pytest.raises(NeedsGpu, match="wait"):
        run(lambda shape, dtype: {"TILE_M": 64})


@pytest.mark.parametrize(
    "config", [None, [64], {"TILE_M": 64.0}, {"TILE_M": True}, {"TILE_M": 0}, {"TILE_M": "64"}, {3: 4}]
)
def test_a_config_that_is_no_dict_of_positive_ints_is_wrong_even_without_a_gpu(config):
    with pytest.raises(WrongAnswer, match="config"):
        run(lambda shape, dtype: config)


def test_an_unwritten_config_is_not_implemented_even_without_a_gpu():
    def config(shape, dtype):
        raise NotImplementedError("config")

    with pytest.raises(NotImplementedError):
        run(config)


# Kernels as Python functions, timed on the CPU: what one may do with the memory that it sees is the same.


def product(made, constants, out, a, b):
    made(out, a, b)


def honest(out, a, b):
    torch.matmul(a, b, out=out)


def skips_what_is_written(out, a, b):
    if out.isnan().all():
        honest(out, a, b)


def skips_what_looks_right(out, a, b):
    if not torch.isclose(out[0, 0], a[0] @ b[:, 0]):
        honest(out, a, b)


def right_at_first():
    calls = []

    def work(out, a, b):
        calls.append(1)
        honest(out, a, b) if len(calls) < 20 else out.fill_(0.0)

    return work


def timed(work, reference=honest):
    tensors = torch.randn(48, 64), torch.randn(32, 64).T
    race = Race((work, {}), (reference, {}) if reference else None, (48, 32, 64), tensors, product, torch.matmul)
    race.check()
    pair = race.time(on_gpu=False)
    race.last_result().check()
    return pair


@pytest.mark.parametrize("reference", [honest, None])
def test_an_honest_kernel_is_timed_beside_its_like(reference):
    assert 0.2 < timed(honest, reference).ratio < 5


@pytest.mark.parametrize("work", [skips_what_is_written, right_at_first(), lambda *_: None])
def test_work_that_is_not_done_in_every_call_is_a_wrong_answer(work):
    with pytest.raises(WrongAnswer):
        timed(work)


def test_a_result_that_is_there_already_is_never_the_right_one():
    """It may look for its result as it likes: the work has to be done in each call."""
    done = []

    def watched(out, a, b):
        done.append(torch.allclose(out, a @ b))
        honest(out, a, b)

    timed(watched)
    assert not any(done)


def test_looking_before_working_gains_nothing():
    assert timed(skips_what_looks_right).ratio < 1.5
