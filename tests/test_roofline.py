import dataclasses

import pytest

from mlsys import Hardware, ops
from mlsys.hardware import UnknownPrecision
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device
from mlsys.roofline import Roofline
from mlsys.units import ureg


@pytest.fixture
def a100():
    return Roofline.of(Hardware.Cloud.A100, "fp16")


def test_batch_32_dense_layer_reaches_a_fifth_of_an_a100(a100):
    """Worked by hand: 268 MFLOP over 8.65 MB is 31.0 FLOP/byte, at 2.039 TB/s 63 TFLOP/s, 20% of 312."""
    dense = ops.linear(batch=32, d_in=2048, d_out=2048, dtype="fp16")
    assert a100.bound(dense) == "memory"
    assert a100.attainable(dense).m_as("TFLOP/s") == pytest.approx(31.0 * 2.039, rel=2e-3)


def test_large_matmul_is_compute_bound_and_takes_peak_time(a100):
    """4096^3 in fp16 is 137.4 GFLOP, 0.44 ms at 312 TFLOP/s."""
    square = ops.matmul(m=4096, n=4096, k=4096, dtype="fp16")
    assert a100.bound(square) == "compute"
    assert a100.time(square).m_as("ms") == pytest.approx(0.4405, rel=1e-3)


def test_vector_work_is_held_to_the_vector_roof(a100):
    """100 FLOPs per fp16 element are 25 FLOP/byte: under the tensor ridge of 153, over the vector one of 9.6."""
    heavy = ops.elementwise(elements=2**20, flops_per_element=100, dtype="fp16")
    assert a100.ridge("vector").m == pytest.approx(9.56, abs=0.01)
    assert a100.bound(heavy) == "compute"
    assert a100.attainable(heavy).m_as("TFLOP/s") == pytest.approx(19.5)


def test_time_is_never_less_than_either_limit_alone(a100):
    for op in (ops.softmax(rows=64, cols=64), ops.matmul(m=8, n=4096, k=4096), ops.matmul(m=4096, n=4096, k=4096)):
        seconds = a100.time(op).m_as("s")
        assert seconds >= op.bytes.m_as("byte") / 2.039e12 * (1 - 1e-12)
        assert seconds >= op.flops.m_as("flop") / 312e12 * (1 - 1e-12)


def test_ops_in_turn_add_up(a100):
    chain = [ops.softmax(rows=512, cols=512), ops.layernorm(rows=512, cols=512)]
    assert a100.time(chain).m == pytest.approx(sum(a100.time(op).m for op in chain))


def test_a_measured_roofline_uses_the_measured_rates():
    device = Device(kind="cpu", name="two cores")
    ceilings = Ceilings(device, ureg("18 GB/s"), {"fp32": ureg("0.2 TFLOP/s")}, {"add": ureg("20 GB/s")})
    roofline = Roofline.measured(ceilings)
    assert roofline.ridge().m == pytest.approx(10)
    assert roofline.bound(ops.matmul(m=512, n=512, k=512, dtype="fp32")) == "compute"
    with pytest.raises(LookupError, match="unknown precision measured on two cores 'int8'.*fp32"):
        Roofline.measured(ceilings, "int8")


def test_a_measured_roofline_has_the_roofs_that_no_library_set():
    """Triad, mma chain and fma chain of an H200 in the record, not its copies and its library's products."""
    gpu = Ceilings(
        Device(kind="gpu", name="an H200"),
        ureg("4250 GB/s"),
        {"fp32": ureg("51 TFLOP/s"), "fp16": ureg("675 TFLOP/s")},
        {"add": ureg("4352 GB/s"), "triad": ureg("4369 GB/s")},
        {"fp32": ureg("61 TFLOP/s")},
        mma={"fp16": ureg("821 TFLOP/s")},
    )
    half, full = Roofline.measured(gpu, "fp16"), Roofline.measured(gpu)
    assert (half.bandwidth.m, half.peak.m, full.peak.m) == pytest.approx((4369, 821, 61))
    assert half.ridge("vector").m == pytest.approx(61e3 / 4369)


def test_vector_work_without_a_vector_roof_is_refused(a100):
    tensor_only = dataclasses.replace(a100, peaks_per_s={"tensor": 1e12})
    with pytest.raises(UnknownPrecision, match="no vector roof"):
        tensor_only.time(ops.softmax(rows=8, cols=8))


def test_the_picture_puts_each_op_at_its_intensity(a100):
    import matplotlib.pyplot as plt

    shown = [ops.softmax(rows=512, cols=512).named("softmax"), ops.matmul(m=512, n=512, k=512).named("matmul")]
    ax = a100.plot(shown)
    points = {line.get_label(): line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"}
    assert points == {"softmax": pytest.approx(1.25), "matmul": pytest.approx(512 / 3)}
    plt.close(ax.figure)
