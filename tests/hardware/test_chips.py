import csv
import re
from pathlib import Path

import pytest

from mlsys import Hardware
from mlsys.errors import InvalidValue, UnknownName
from mlsys.hardware import UnknownField, UnknownPrecision

GOLDEN = Path(__file__).parents[1] / "golden" / "hardware.csv"
GOLDEN_ROWS = {row["chip"]: row for row in csv.DictReader(GOLDEN.open())}
CHIP_OF_ROW = {
    "V100 SXM2": "v100-sxm2",
    "T4": "t4",
    "A100 40GB SXM": "a100-40gb-sxm",
    "A100 80GB SXM": "a100-80gb-sxm",
    "L4": "l4",
    "H100 SXM5": "h100-sxm",
    "H100 PCIe": "h100-pcie",
    "H200 SXM": "h200",
    "B200 HGX": "b200",
    "MI300X": "mi300x",
    "Gaudi 2": "gaudi-2",
    "Gaudi 3": "gaudi-3",
    "TPU v1": "tpu-v1",
    "TPU v4": "tpu-v4",
    "TPU v5e": "tpu-v5e",
    "TPU v5p": "tpu-v5p",
    "TPU v6e": "tpu-v6e",
}
HALF = ("fp16", "bf16")
CHIPS = Hardware.all()


def half_precision_peak(chip):
    return max(p.rate.value for p in chip.peaks if p.precision in HALF and p.engine == "tensor" and not p.sparse)


def test_every_row_of_a_chip_is_compared():
    links = {name for name in GOLDEN_ROWS if name.startswith(("NVLink", "PCIe", "InfiniBand"))}
    assert set(GOLDEN_ROWS) - links == set(CHIP_OF_ROW)


@pytest.mark.parametrize("row", CHIP_OF_ROW)
def test_chip_has_the_published_peak_bandwidth_memory_and_power(row):
    chip, golden = Hardware.get(CHIP_OF_ROW[row]), GOLDEN_ROWS[row]
    assert chip.memory_bw.m_as("GB/s") == pytest.approx(float(golden["bandwidth_gb_s"]))
    sizes = [float(size) for size in re.findall(r"\d+(?= |$)", golden["memory_gb"].removesuffix(" DDR3"))]
    size = chip.memory_capacity.m  # printed as GB or as GiB, with the same number
    assert min(sizes) <= size <= max(sizes)
    if golden["dense_fp16_or_bf16_tflops"] == "none":
        assert not [p for p in chip.peaks if p.precision in HALF]
    else:
        assert half_precision_peak(chip).m_as("TFLOP/s") == float(golden["dense_fp16_or_bf16_tflops"])
    if golden["tdp_w"].startswith("max "):
        assert chip.field("power_max").value.m_as("W") == float(golden["tdp_w"].removeprefix("max "))
    elif golden["tdp_w"]:
        assert chip.tdp.m_as("W") == float(golden["tdp_w"])


@pytest.mark.parametrize(
    ("row", "precision", "printed"),
    [
        (row, found[1], found[2])
        for row in CHIP_OF_ROW
        for found in re.finditer(r"(fp32|tf32|fp8|fp4|int8) ([\d.]+)", GOLDEN_ROWS[row]["also"])
    ],
)
def test_chip_has_the_other_published_peaks(row, precision, printed):
    peak = Hardware.get(CHIP_OF_ROW[row]).peak(precision, engine="vector" if precision == "fp32" else "tensor")
    decimals = len(printed.partition(".")[2])
    assert round(peak.m_as("TFLOP/s"), decimals) == float(printed)


def test_the_headline_number_of_a_data_sheet_is_the_sparse_one():
    for chip, sparse in (("h100-sxm", 1979), ("l4", 242), ("b200", 4500)):
        assert Hardware.get(chip).peak("bf16", sparse=True).m_as("TFLOP/s") == pytest.approx(sparse, rel=1e-3)


@pytest.mark.parametrize("chip", CHIPS, ids=lambda chip: chip.id)
def test_a_sparse_peak_is_twice_the_dense_one(chip):
    dense = {(p.precision, p.engine): p.rate.value for p in chip.peaks if not p.sparse}
    for peak in chip.peaks:
        if peak.sparse:  # data sheets round both numbers
            assert (peak.rate.value / dense[peak.precision, peak.engine]).m_as("") == pytest.approx(2, rel=0.003)


@pytest.mark.parametrize("chip", [c for c in CHIPS if "tensor_flop_per_clock" in c.fields], ids=lambda chip: chip.id)
def test_tensor_peak_is_units_times_work_per_clock_times_clock(chip):
    published = chip.peak("int8") if chip.id == "tpu-v1" else half_precision_peak(chip)
    assert (chip.peak_from_clock("tensor") / published).m_as("") == pytest.approx(1, rel=0.02)


@pytest.mark.parametrize("chip", [c for c in CHIPS if "vector_lanes" in c.fields], ids=lambda chip: chip.id)
def test_vector_peak_is_lanes_times_two_times_clock(chip):
    published = chip.peak("fp32", engine="vector")
    assert (chip.peak_from_clock("vector") / published).m_as("") == pytest.approx(1, rel=0.02)


def test_peak_from_clock_matches_products_done_by_hand():
    by_hand = {"h100-sxm": 132 * 4 * 512 * 2 * 1.83e9, "a100-80gb-sxm": 108 * 4 * 256 * 2 * 1.41e9}
    by_hand |= {"v100-sxm2": 80 * 8 * 64 * 2 * 1.53e9, "tpu-v4": 8 * 128 * 128 * 2 * 1.05e9}
    for chip, rate in by_hand.items():
        assert Hardware.get(chip).peak_from_clock().m_as("FLOP/s") == pytest.approx(rate)


@pytest.mark.parametrize(
    ("chip", "precision", "ridge"),
    [
        ("v100-sxm2", "fp16", 139),
        ("a100-80gb-sxm", "fp16", 153),
        ("a100-40gb-sxm", "fp16", 201),
        ("h100-sxm", "fp16", 295),
        ("h200", "fp16", 206),
        ("b200", "fp16", 292),
        ("t4", "fp16", 203),
        ("tpu-v4", "bf16", 229),
        ("gaudi-2", "bf16", 176),
        ("h100-sxm", "fp32", 20),
    ],
)
def test_ridge_points_of_the_course(chip, precision, ridge):
    assert round(Hardware.get(chip).ridge_point(precision).m_as("flop/byte")) == ridge


def test_tpu_v1_ridge_is_twice_the_papers_which_counts_multiply_adds():
    assert Hardware.get("tpu-v1").ridge_point("int8").m_as("MAC/byte") == pytest.approx(1350, rel=0.01)


@pytest.mark.parametrize(
    ("chip", "precision", "has"),
    [("t4", "bf16", "fp16 (tensor)"), ("v100-sxm2", "tf32", "fp32 (vector)"), ("tpu-v4", "fp16", "bf16 (tensor)")],
)
def test_a_precision_that_the_chip_lacks_is_refused_with_what_it_has(chip, precision, has):
    with pytest.raises(UnknownPrecision, match=re.escape(has)):
        Hardware.get(chip).peak(precision)


def test_there_is_no_fallback_from_vector_to_tensor_or_from_sparse_to_dense():
    with pytest.raises(UnknownPrecision):
        Hardware.get("h100-sxm").peak("fp8", engine="vector")
    with pytest.raises(UnknownPrecision, match="sparse"):
        Hardware.get("t4").peak("fp16", sparse=True)


def test_unit_is_another_name_of_engine():
    h100 = Hardware.get("h100-sxm")
    assert h100.peak("fp32", unit="vector").m_as("TFLOP/s") == 67
    assert h100.peak("fp16", unit="vector") == h100.peak("fp16", engine="vector") != h100.peak("fp16", engine="tensor")
    with pytest.raises(InvalidValue, match="'tensor' and unit is 'vector'"):
        h100.peak("fp16", "tensor", unit="vector")


def test_an_unpublished_property_is_refused():
    with pytest.raises(UnknownField, match="tdp"):
        Hardware.get("tpu-v5p").tdp  # noqa: B018
    with pytest.raises(UnknownField, match="vector_lanes"):
        Hardware.get("mi300x").peak_from_clock("vector")


def test_a_misspelt_chip_gets_the_nearest_id():
    with pytest.raises(UnknownName, match="did you mean 'h100-sxm'"):
        Hardware.get("h100-sxn")


def test_the_same_chip_with_other_memory_keeps_its_peaks():
    for chip, base in (("h200", "h100-sxm"), ("a100-40gb-sxm", "a100-80gb-sxm"), ("mi325x", "mi300x")):
        assert Hardware.get(chip).peaks == Hardware.get(base).peaks
        assert Hardware.get(chip).memory_bw != Hardware.get(base).memory_bw


def test_usual_names_reach_the_same_chips():
    assert Hardware.Cloud.A100 is Hardware.get("a100-80gb-sxm")
    assert {"V100", "A100", "H100", "H200", "T4", "TPUv4"} <= set(dir(Hardware.Cloud))
    for name in dir(Hardware.Cloud):
        assert getattr(Hardware.Cloud, name) in CHIPS
    with pytest.raises(AttributeError, match="V100"):
        Hardware.Cloud.H10  # noqa: B018


def test_a_chip_cannot_be_changed():
    with pytest.raises(TypeError):
        Hardware.get("t4").fields["tdp"] = None


def test_a_chip_with_other_memory_has_its_own_year():
    for chip, base, later in (("h200", "h100-sxm", 1), ("mi325x", "mi300x", 1), ("a100-40gb-sxm", "a100-80gb-sxm", 0)):
        assert Hardware.get(chip).year - Hardware.get(base).year == later


def test_generations_come_in_the_order_of_their_names():
    nvidia = ("k20x", "k40", "k80", "p100-sxm2", "v100-sxm2", "a100-80gb-sxm", "h100-sxm", "b200")
    for generations in (nvidia, ("tpu-v2", "tpu-v4", "tpu-v6e")):
        years = [Hardware.get(chip).year for chip in generations]
        assert years == sorted(set(years))


def test_a_year_that_no_document_gives_is_refused():
    with pytest.raises(UnknownField, match="announced"):
        Hardware.get("synaptics-sr110").year  # noqa: B018


@pytest.mark.parametrize(
    ("chip", "precision", "tflops"),
    # From the makers' data sheets, dense: A100 and H100 in fp16 and bf16 alike, TPUs in bf16 alone.
    [("a100-80gb-sxm", "fp16", 312), ("h100-sxm", "fp16", 989.4), ("tpu-v4", "bf16", 275), ("tpu-v3", "bf16", 123)],
)
def test_without_a_precision_the_16_bit_matrix_peak_counts(chip, precision, tflops):
    found = Hardware.get(chip)
    assert found.matrix_precision == precision
    assert found.peak_flops.m_as("TFLOP/s") == pytest.approx(tflops, rel=0.001)
    bytes_per_s = found.memory_bw.m_as("byte/s")
    assert found.ridge_point().m_as("flop/byte") == pytest.approx(tflops * 1e12 / bytes_per_s, rel=0.001)


def test_a_chip_without_a_16_bit_peak_has_no_default():
    with pytest.raises(UnknownPrecision, match="int8"):
        _ = Hardware.get("tpu-v1").peak_flops
