"""Clocks by kernel and by pass: against published savings, against measured kernels, and against every choice."""

import csv
import itertools
import statistics
from pathlib import Path

import pytest

from mlsys.errors import InvalidValue
from mlsys.measure import records
from mlsys.soc.dvfs import Kernel, Measured, Pass, clocked_kernels, fit
from mlsys.soc.training_pass import CORES, MEMORY, STATIC, block_ops, training_pass

with (Path(__file__).parents[1] / "golden" / "dvfs.csv").open(newline="") as _file:
    ROWS = {row["what"]: row for row in csv.DictReader(_file)}
GOLDEN = {what: (float(row["value"]), float(row["within"])) for what, row in ROWS.items() if row["within"]}
SLOWDOWN = float(ROWS["GPT-3 training, clocks by kernel: slowdown"]["value"]) / 100
MEASURED = clocked_kernels()
FITTED = MEASURED.fitted()
RECORD = records.load("nvidia-h200")
PEAK = 1e12 * next(
    row.achieved for row in RECORD.named("matmul by dtype") if row.dtype == "fp16" and row.shape[0] == 4096
)
BANDWIDTH = 1e9 * RECORD.named("copy bandwidth", "copy")[0].achieved


def ours() -> dict[str, float]:
    """Our number for each row of the golden table, in its unit."""
    gpt3 = training_pass(PEAK, BANDWIDTH)
    by_pass, by_kernel = gpt3.by_pass(SLOWDOWN), gpt3.by_kernel(SLOWDOWN)
    ten = Pass(
        tuple((kernel, 1 / MEASURED.inside[name][0].time_s) for name, kernel in FITTED.items()),
        core_clocks=tuple(mhz / 2080 for mhz in (1680, 1780, 1880, 1980, 2080)),
        memory_clocks=tuple(mhz / 7300 for mhz in (5800, 6300, 6800, 7300)),
        base=MEASURED.base,
    )
    return {
        "GPT-3 training, clocks by pass: energy saved": 100 * by_pass.saved,
        "GPT-3 training, clocks by kernel: energy saved": 100 * by_kernel.saved,
        "ten kernels, clocks by pass: energy saved": 100 * ten.by_pass().saved,
        "ten kernels, clocks by kernel: energy saved": 100 * ten.by_kernel().saved,
    }


@pytest.mark.parametrize("what", GOLDEN)
def test_each_row_of_the_golden_table_is_met(what):
    value, within = GOLDEN[what]
    assert ours()[what] == pytest.approx(value, abs=within)


def test_clocks_by_kernel_save_several_times_what_clocks_by_pass_save_whatever_is_assumed():
    for waiting, sequences, fused in itertools.product((0.2, 0.3, 0.4), (1, 8, 32), (False, True)):
        gpt3 = training_pass(PEAK, BANDWIDTH, waiting=waiting, sequences=sequences, fused_attention=fused)
        by_pass, by_kernel = gpt3.by_pass(SLOWDOWN), gpt3.by_kernel(SLOWDOWN)
        assert by_kernel.saved > 4 * by_pass.saved
        assert by_pass.saved < 0.03
        assert 0.07 < by_kernel.saved < 0.17
        assert by_pass.slowdown <= SLOWDOWN + 1e-9
        assert by_kernel.slowdown <= SLOWDOWN + 1e-9


@pytest.mark.parametrize("name", FITTED)
def test_a_kernel_fitted_to_four_corners_predicts_the_clocks_inside(name):
    for point in MEASURED.inside[name]:
        time_s, power_w = (getattr(FITTED[name], what)(point.core, point.memory) for what in ("time_s", "power_w"))
        assert time_s == pytest.approx(point.time_s, rel=0.04)
        assert power_w == pytest.approx(point.power_w, rel=0.03)


def test_all_kernels_together_are_predicted_within_2_percent_on_average():
    errors = [
        abs(kernel.energy_j(point.core, point.memory) / (point.time_s * point.power_w) - 1)
        for name, kernel in FITTED.items()
        for point in MEASURED.inside[name]
    ]
    assert len(errors) == 20
    assert statistics.mean(errors) < 0.02


def test_the_assumed_share_of_waiting_makes_both_sorts_of_kernels_agree():
    """Kernels that the memory limits and kernels that the cores limit should see the same cores and the same memory."""
    bound = {name: bool(one.memory_s > 0.5 * one.time_s(1, 1)) for name, one in FITTED.items()}
    for what in ("core_w", "memory_w"):
        waits, works = (
            statistics.median(getattr(FITTED[name], what) for name in FITTED if bound[name] is memory_bound)
            for memory_bound in (True, False)
        )
        assert 0.55 < waits / works < 1.8


def test_the_assumed_shares_of_power_are_near_those_of_the_measured_kernels():
    medians = [
        statistics.median(getattr(one, what) for one in FITTED.values()) for what in ("static_w", "core_w", "memory_w")
    ]
    for assumed, median in zip((STATIC, CORES, MEMORY), medians, strict=True):
        assert assumed == pytest.approx(median / sum(medians), abs=0.1)


def test_a_fit_returns_the_kernel_that_made_the_points():
    made = Kernel("made", 2.0, 1.0, 20.0, 100.0, 50.0, fixed_s=0.25, overlap=0.0)
    pairs = [(f, g) for f in (0.6, 0.8, 1.0) for g in (0.7, 1.0)]
    found = fit("made", [Measured(f, g, made.time_s(f, g), made.power_w(f, g)) for f, g in pairs])
    for what in ("core_s", "memory_s", "fixed_s", "static_w", "core_w", "memory_w"):
        assert getattr(found, what) == pytest.approx(getattr(made, what), rel=1e-6)


def small_pass() -> Pass:
    return Pass(
        (
            (Kernel("product", 5.0, 1.0, 10.0, 60.0, 30.0), 2.0),
            (Kernel("copy", 0.2, 4.0, 10.0, 60.0, 30.0), 1.0),
            (Kernel("both", 2.0, 1.9, 10.0, 60.0, 30.0), 1.0),
        ),
        (0.4, 0.7, 0.85, 1.0),
        (0.5, 0.75, 1.0),
        core_scale=lambda clock: clock**3,
    )


@pytest.mark.parametrize("slowdown", [0.0, 0.01, 0.05, 0.1, 0.3, 2.0])
def test_clocks_by_kernel_are_near_the_best_of_all_choices(slowdown):
    three = small_pass()
    pairs = list(itertools.product(three.core_clocks, three.memory_clocks))

    def total(what, chosen):
        return sum(n * getattr(one, what)(*pair) for (one, n), pair in zip(three.kernels, chosen, strict=True))

    def energy(chosen):
        return sum(
            n * one.power_w(f, g, f**3, g) * one.time_s(f, g)
            for (one, n), (f, g) in zip(three.kernels, chosen, strict=True)
        )

    limit = total("time_s", [(1.0, 1.0)] * 3) * (1 + slowdown) * (1 + 1e-12)
    best = min(energy(chosen) for chosen in itertools.product(pairs, repeat=3) if total("time_s", chosen) <= limit)
    alike = min(energy([pair] * 3) for pair in pairs if total("time_s", [pair] * 3) <= limit)
    assert three.by_pass(slowdown).energy_j == pytest.approx(alike)
    assert best * (1 - 1e-9) <= three.by_kernel(slowdown).energy_j <= 1.001 * best
    assert three.by_kernel(slowdown).energy_j <= three.by_pass(slowdown).energy_j * (1 + 1e-9)
    assert three.by_kernel(slowdown).slowdown <= slowdown + 1e-9


def test_without_slack_a_kernel_slows_only_the_clock_that_does_not_limit_it():
    three = small_pass()
    (product_core, product_memory), (copy_core, copy_memory), _ = three.by_kernel().clocks
    assert (product_core, copy_memory) == (1.0, 1.0)
    assert product_memory < 1
    assert copy_core < 1


def test_energy_at_the_top_clocks_is_power_times_time_by_hand():
    """Busy for 5 and 1 of 5 seconds: cores at full power, memory at 0.3 + 0.7 x 0.2 of it."""
    one = Kernel("product", 5.0, 1.0, 10.0, 60.0, 30.0)
    assert one.time_s(1, 1) == 5
    assert one.energy_j(1, 1) == pytest.approx(5 * (10 + 60 + 30 * 0.44))
    assert one.time_s(0.5, 1) == 10
    assert one.power_w(0.5, 1, 0.125) == pytest.approx(10 + 60 * 0.125 + 30 * (0.3 + 0.7 * 0.1))


def test_a_block_of_gpt_3_has_the_flops_of_its_products():
    """24 s h^2 for the products with weights and 4 s^2 h for attention."""
    products = sum(op.flop_count for op in block_ops(fused_attention=False) if op.kind in ("linear", "batched_matmul"))
    assert products == pytest.approx(24 * 2048 * 12288**2 + 4 * 2048**2 * 12288, rel=0.001)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Pass((), (1.0,)), "without kernels"),
        (lambda: Pass(small_pass().kernels, (0.5,)), "the top itself, 1"),
        (lambda: Pass(small_pass().kernels, (0.5, 1.0), base=(0.7, 1.0)), "no pair of the clocks"),
        (lambda: small_pass().by_kernel(-0.1), "slowdown"),
        (lambda: Kernel("k", 0.0, 0.0, 1.0, 1.0, 1.0), "takes no time"),
        (lambda: Kernel("k", 1.0, 0.0, 1.0, 1.0, 1.0, overlap=1.5), "at most 1"),
        (lambda: fit("k", MEASURED.inside["nn"]), "give at least three"),
        (lambda: training_pass(0, 1e12), "peak"),
        (lambda: training_pass(1e15, 1e12, sequences=0), "sequences"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises(InvalidValue, match=message):
        call()
