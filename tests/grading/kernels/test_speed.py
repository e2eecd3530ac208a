import re
import time

import pytest
import torch
import triton
import triton.language as tl

from mlsys.errors import UserError
from mlsys.grading import NeedsGpu, OutOfBounds, Speed, Suspicious, WrongAnswer, speed
from mlsys.grading.kernels import race
from mlsys.grading.kernels.race import Rates, run_race
from mlsys.grading.kernels.speed import points_fraction
from mlsys.grading.kernels.track import Reference, Track
from mlsys.measure.device import torch_sees_gpu
from mlsys.measure.timing import Pair


def result(*ratios):
    pairs = {(n, n, n): Pair(1e-3, ratio * 1e-3, ratio, ratio - 0.02, ratio + 0.02) for n, ratio in enumerate(ratios)}
    return Speed("a device", "the reference kernel", pairs)


@triton.jit
def doubled_kernel(x_ptr, y_ptr, n, TILE_M: tl.constexpr):
    index = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    tl.store(y_ptr + index, 2 * tl.load(x_ptr + index, mask=index < n, other=0.0), mask=index < n)


def launch_doubled(kernel, constants, y, x):
    kernel[(triton.cdiv(x.numel(), constants["TILE_M"]),)](x, y, x.numel(), **constants)


def run(config, shapes=((8, 8),), launch=launch_doubled):
    return speed(
        doubled_kernel,
        config,
        shapes=shapes,
        inputs=lambda draw, shape, dtype: (draw.matrix(*shape),),
        launch=launch,
        expected=lambda x: 2 * x,
    )


def test_points_rise_in_proportion_between_the_two_ends():
    assert [points_fraction(ratio) for ratio in (0.0, 0.1, 0.8, 3.0)] == [0, 0, 1, 1]
    assert points_fraction(0.45) - points_fraction(0.40) == pytest.approx(0.05 / 0.7, abs=1e-3)


def test_the_favorable_end_of_the_interval_counts():
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
    with pytest.raises(NeedsGpu, match="these points wait") as waits:
        run(lambda shape, dtype: {"TILE_M": 64 * shape[0], "num_warps": 4}, shapes=[(1, 100), (64, 100)])
    said = [
        re.fullmatch(r"(\d+ x \d+): (\d+) registers per thread, (\d+) bytes spilled, 0 bytes of shared memory", line)
        for line in str(waits.value).splitlines()[2:]
    ]
    assert [one[1] for one in said] == ["1 x 100", "64 x 100"]
    assert int(said[0][2]) < 32 < int(said[1][2])  # a thread of 128 holds one number, or 32 of them
    assert "doubled_kernel compiles for compute capability 7.5:" in str(waits.value)


@pytest.mark.skipif(torch_sees_gpu(), reason="a GPU is here")
def test_the_most_of_all_launches_is_said():
    def twice(kernel, constants, y, x):
        launch_doubled(kernel, {"TILE_M": 4096, "num_warps": 4}, y, x)
        launch_doubled(kernel, constants, y, x)

    with pytest.raises(NeedsGpu) as waits:
        run(lambda shape, dtype: {"TILE_M": 64}, launch=twice)
    assert int(re.search(r"8 x 8: (\d+) registers", str(waits.value))[1]) > 32


@pytest.mark.skipif(torch_sees_gpu(), reason="a GPU is here")
@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"TILE_M": 100}, r"does not compile:\nat 2:40:\n.*arange's range must be a power of 2"),
        ({"TILE_M": 64, "num_warps": 3}, r"does not compile:\nAssertionError: num_warps must be a power of 2"),
        ({"TILE": 64, "TILE_M": 64}, "has no constant TILE: give TILE_M, num_warps or num_stages"),
    ],
)
def test_a_config_that_does_not_compile_is_refused_without_a_gpu(config, says):
    with pytest.raises(UserError, match=rf"(?s)^doubled_kernel {says}$"):
        run(lambda shape, dtype: config)


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


def honest(out, a, b):
    torch.matmul(a, b, out=out)


def at_most(calls, work):
    """Work that is done in the first calls only."""
    made = []

    def function(out, a, b):
        made.append(1)
        if len(made) <= calls:
            work(out, a, b)

    return function


def makes_its_inputs_zero(out, a, b):
    for tensor in (out, a, b):
        tensor.zero_()


def makes_its_inputs_zero_once_it_has_worked(out, a, b):
    honest(out, a, b)
    a.zero_()


def writes_behind_its_output(out, a, b):
    honest(out, a, b)
    out.as_strided((1,), (1,), out.storage_offset() + out.numel() + 100).fill_(7)


def hands_out_its_first_result():
    kept = []

    def work(out, a, b):
        if len(kept) < 4:
            honest(out, a, b)
            kept.append(out.clone())
        out.copy_(kept[-1])

    return work


@pytest.fixture(autouse=True)
def short_laps(monkeypatch):
    monkeypatch.setattr(race, "MAX_CALLS", 8)


def sides(work, reference=honest, rates=None):
    tensors = torch.randn(48, 64), torch.randn(32, 64).T
    theirs = Reference(reference, tensors, "cpu", expected=torch.matmul, what="a product")
    if rates:
        theirs.rates = lambda *, anew=False: rates
    return Track(work, tensors, theirs.like, "cpu"), theirs


def timed(work, reference=honest, rates=None):
    mine, theirs = sides(work, reference, rates)
    return run_race(mine, theirs, elements=48 * 32, bytes_moved=mine.bytes_moved, flops=2 * 48 * 32 * 64)


def lasting(seconds):
    def work(out, a, b):
        honest(out, a, b)
        time.sleep(seconds)

    return work


def test_a_kernel_is_timed_beside_its_reference():
    assert 0.2 < timed(lasting(20e-3), lasting(10e-3)).ratio < 0.9


def test_the_library_is_a_reference_too():
    assert timed(lasting(30e-3), None).ratio < 0.7


@pytest.mark.parametrize(
    "work",
    [at_most(0, honest), at_most(6, honest), at_most(12, honest), makes_its_inputs_zero, hands_out_its_first_result()],
)
def test_work_that_is_not_done_in_every_call_is_found(work):
    with pytest.raises((WrongAnswer, OutOfBounds)):
        timed(work)


@pytest.mark.parametrize("work", [makes_its_inputs_zero_once_it_has_worked, writes_behind_its_output])
def test_whatever_changes_beside_the_output_is_found(work):
    with pytest.raises(OutOfBounds, match="While the kernel was timed"):
        timed(work)


def test_results_that_are_kept_are_of_no_use():
    """No call meets inputs that any call had before."""
    seen = []

    def watched(out, a, b):
        seen.append((a.clone(), b.clone()))
        honest(out, a, b)

    timed(watched)
    firsts = [tuple(a.flatten()[::32].tolist()) for a, _ in seen]
    # The captured lap and the first calls run on what was drawn for them; all laps that count are drawn anew.
    assert len(set(firsts)) >= len(firsts) - 8 - 2


def test_the_result_is_never_there_before_the_work():
    done = []

    def watched(out, a, b):
        done.append(torch.allclose(out, a @ b))
        honest(out, a, b)

    timed(watched)
    assert not any(done)


def test_both_sides_draw_the_same_inputs_from_a_seed():
    mine, theirs = sides(honest)
    for one, other in zip(mine.inputs(5, 3), theirs.inputs(5, 3), strict=True):
        assert torch.equal(one, other)
    base, drawn = mine.inputs(5, 3)[0], mine.inputs(6, 3)[0]
    assert not torch.equal(base, drawn)
    assert torch.equal(base.sort().values.flatten().sort().values, drawn.flatten().sort().values)


def test_strides_stay_when_inputs_are_drawn():
    assert [tensor.stride() for tensor in sides(honest)[0].inputs(1, 0)] == [(64, 1), (1, 64)]


def test_a_time_that_the_bytes_do_not_allow_is_suspicious():
    with pytest.raises(Suspicious, match="faster than possible here"):
        timed(honest, rates=Rates(bytes_per_s=1e3, flops_per_s=1e20, cache_bytes=0))
    with pytest.raises(Suspicious, match="faster than possible here"):
        timed(honest, rates=Rates(bytes_per_s=1e20, flops_per_s=1e3, cache_bytes=0))


def test_nobody_is_suspicious_by_rates_that_were_measured_before_and_have_changed():
    slow, fast = (Rates(bytes_per_s=rate, flops_per_s=1e20, cache_bytes=0) for rate in (1e3, 1e20))
    mine, theirs = sides(honest)
    theirs.rates = lambda *, anew=False: fast if anew else slow
    assert run_race(mine, theirs, elements=48 * 32, bytes_moved=mine.bytes_moved).candidate_s > 0


def test_what_fits_the_cache_need_not_have_left_it():
    rates = Rates(bytes_per_s=1e9, flops_per_s=1e12, cache_bytes=10_000)
    assert rates.least_s(calls=2, bytes_moved=10_000, flops=0) == 0
    assert rates.least_s(calls=4, bytes_moved=10_000, flops=0) == pytest.approx(5_000 / 1.4e9)
