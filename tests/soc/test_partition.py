"""Cut networks, against Amdahl's law and against counts by hand."""

import pytest
from helpers.small_chips import chip

from mlsys import formulas, models, ops
from mlsys.errors import InvalidValue
from mlsys.soc import CannotRun, partition, soc
from mlsys.soc.phones import phone_times

PHONE = soc("phone")
MOBILENET = models.mobilenet_v2(dtype="int8").ops


def test_five_percent_on_a_block_that_is_twenty_times_slower_double_the_time():
    """Amdahl's law with a slow-down for a part: 0.95 + 0.05 x 20 = 1.95."""
    two = chip({"npu": {"matmul": 20e9}, "cpu": {"elementwise": 1e9, "matmul": 1e9}})
    product = ops.matmul(m=100, n=95, k=1000)  # 19 million FLOP
    sums = ops.elementwise(elements=1_000_000)  # 1 million
    assert (product.flop_count, sums.flop_count) == (19_000_000, 1_000_000)
    cut = partition([product, sums], two, "npu", fallback="cpu")
    all_fast = 20e6 / 20e9
    assert cut.total_s / all_fast == pytest.approx(1.95)
    assert cut.total_s / all_fast == pytest.approx(1 / formulas.amdahl(0.05, 1 / 20))
    assert cut.share("cpu") == pytest.approx(0.05)


def test_a_network_that_the_block_supports_is_one_segment():
    whole = partition(MOBILENET, PHONE, "NPU")
    assert (whole.handoffs, len(whole.segments), whole.share("NPU")) == (0, 1, 1)


def test_each_island_of_unsupported_operations_costs_two_handoffs():
    cut = partition(MOBILENET, PHONE, "NPU", fallback="CPU", unsupported={"depthwise_conv2d"})
    assert sum(op.kind == "depthwise_conv2d" for op in MOBILENET) == 17
    assert cut.handoffs == 2 * 17
    assert [segment.unit for segment in cut.segments[:3]] == ["NPU", "CPU", "NPU"]
    parts = cut.on_s("NPU") + cut.on_s("CPU") + 34 * PHONE.handoff_s
    assert cut.total_s == pytest.approx(parts)
    assert tuple(op for segment in cut.segments for op in segment.ops) == tuple(MOBILENET)


def test_a_cut_network_can_be_slower_than_the_cpu_alone():
    alone = partition(MOBILENET, PHONE, "CPU").total_s
    cut = partition(MOBILENET, PHONE, "NPU", fallback="CPU", unsupported={"batchnorm"})
    assert cut.share("CPU") < 0.05
    assert cut.total_s > alone


def test_without_a_fallback_the_operation_is_named_with_what_the_block_has():
    with pytest.raises(CannotRun, match=r"'softmax' is a 'softmax', which the NPU does not take: replace it by"):
        partition([ops.softmax(rows=10, cols=10)], PHONE, "NPU")
    with pytest.raises(CannotRun, match="the DSP runs no 'softmax': use CPU or GPU"):
        partition([ops.softmax(rows=10, cols=10)], PHONE, "NPU", fallback="DSP")
    with pytest.raises(InvalidValue, match="own fallback"):
        partition(MOBILENET, PHONE, "NPU", fallback="NPU")
    with pytest.raises(InvalidValue, match="at least one"):
        partition([], PHONE, "NPU")


def test_on_both_phones_one_network_was_slower_through_the_accelerators_than_on_the_cpu():
    """The page's table has twelve rows; NASNet has operators that the drivers of that time did not take."""
    rows = phone_times()
    assert len(rows) == 12
    slower = {row.model for row in rows if row.nnapi_ms > 1.5 * row.cpu_ms}
    assert slower == {"NASNet mobile"}
    assert [row.phone for row in rows if row.model in slower] == ["Pixel 3", "Pixel 4"]
