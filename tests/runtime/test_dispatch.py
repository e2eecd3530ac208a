"""The choice of a kernel, held to the record of an H200 and to hand-made cases."""

import pytest

from mlsys import Hardware
from mlsys.errors import InvalidValue
from mlsys.measure import records
from mlsys.roofline import Roofline
from mlsys.runtime.dispatch import Device, TiledKernel, choose, measured_times

H200 = Device(Roofline.of(Hardware.get("h200"), "fp16"), sms=132)
RECORD = records.load("nvidia-h200")
SIDES = {"32x32x64": (32, 32), "64x64x64": (64, 64), "128x128x64": (128, 128), "128x256x64": (128, 256)}


def calibrated():
    """The kernels of the record, with the efficiency that they reach on the largest product."""
    peak = H200.roofline.peak.m_as("TFLOP/s")
    rows = {row.variant: row for row in RECORD.named("tile sides") if row.shape == (8192, 8192, 8192)}
    return [TiledKernel(name, *sides, min(1.0, rows[name].achieved / peak)) for name, sides in SIDES.items()]


@pytest.mark.parametrize("side", [2048, 4096])
def test_kernels_that_were_measured_on_one_shape_are_predicted_on_others(side):
    measured = measured_times(RECORD.named("tile sides"))[side, side, side]
    for kernel in calibrated():
        if kernel.tile_m >= 128:  # small tiles run several on an SM and get slower as their operands leave the L2
            assert H200.seconds((side,) * 3, kernel) == pytest.approx(measured[kernel.name], rel=0.3)
    assert choose((side,) * 3, calibrated(), H200).kernel == min(SIDES, key=lambda name: measured[name])


def test_measured_times_decide_where_they_are_complete():
    times = measured_times(row for row in RECORD.named("fast matmul") if row.dtype == "bf16")
    ragged = (5360, 5250, 3579)
    kernels = [TiledKernel("cuBLAS", 128, 256), TiledKernel("128x256x64", 128, 256, 0.5)]
    chosen = choose(ragged, kernels, H200, times)
    assert (chosen.kernel, chosen.basis) == ("128x256x64", "measured")
    row = next(row for row in RECORD.named("fast matmul") if row.shape == ragged)
    assert chosen.time_s == row.median_s
    assert chosen.times_s["cuBLAS"] == pytest.approx(row.median_s * row.peers["cuBLAS"])
    other = choose((5361, 5250, 3579), kernels, H200, times)
    assert (other.kernel, other.basis) == ("cuBLAS", "model")
    assert choose(ragged, [*kernels, TiledKernel("new", 64, 64)], H200, times).basis == "model"


def test_times_of_two_number_formats_are_not_compared():
    with pytest.raises(InvalidValue, match="the rows are of bf16, fp32; choose those of one number format"):
        measured_times(RECORD.named("fast matmul"))


def test_the_last_wave_costs_as_much_as_a_full_one():
    kernel = TiledKernel("k", 128, 128)
    one_wave, one_more = (H200.seconds((128 * a, 128 * b, 65536), kernel) for a, b in ((12, 11), (19, 7)))
    assert one_more == pytest.approx(2 * one_wave)


def test_a_padded_tile_costs_as_much_as_a_full_one():
    kernel = TiledKernel("k", 128, 128)
    assert H200.seconds((1, 128, 65536), kernel) == pytest.approx(H200.seconds((128, 128, 65536), kernel))


def test_a_perfect_fit_costs_what_the_roofline_says():
    side, kernel = 128 * 132, TiledKernel("k", 128, 128)
    assert H200.seconds((side,) * 3, kernel) == pytest.approx(2 * side**3 / H200.roofline.peak.m_as("flop/s"))


@pytest.mark.parametrize(
    ("shape", "kernels", "message"),
    [
        ((1, 2), [TiledKernel("k", 1, 1)], r"shape is \(1, 2\); give three sizes m, n, k"),
        ((1, 2, 0), [TiledKernel("k", 1, 1)], "k must be a positive integer, got 0; the nearest is 1"),
        ((1, 2, 3), [], "there are no kernels to choose from"),
    ],
)
def test_a_choice_without_sense_is_refused(shape, kernels, message):
    with pytest.raises(InvalidValue, match=message):
        choose(shape, kernels, H200)


@pytest.mark.parametrize("arguments", [("k", 0, 1), ("k", 1, 1.5), ("k", 1, 1, 0), ("k", 1, 1, 1.1)])
def test_a_kernel_without_sense_is_refused(arguments):
    with pytest.raises(InvalidValue, match="must be"):
        TiledKernel(*arguments)
