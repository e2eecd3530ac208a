import csv
import operator
from pathlib import Path

import pytest

from mlsys import ops
from mlsys.errors import InvalidValue, UnknownName
from mlsys.hardware.energy import MixedBases, bases, basis, op_energy, systolic_mac, vector_mac
from mlsys.units import ureg

GOLDEN = Path(__file__).parents[1] / "golden" / "energy.csv"
ROWS = {row["operation"]: row["energy_pj"] for row in csv.DictReader(GOLDEN.open())}
ROUGH = basis("horowitz-45nm")


@pytest.mark.parametrize("operation", [row for row in ROWS if not row.endswith(("KB", "read"))])
def test_operation_costs_what_was_published(operation):
    assert ROUGH.operation(operation).m_as("pJ") == float(ROWS[operation])


@pytest.mark.parametrize(("row", "level"), [("SRAM read 8 KB", "sram"), ("DRAM read", "dram")])
def test_memory_access_costs_what_was_published(row, level):
    assert ROUGH.access(level, bits=32).m_as("pJ") == float(ROWS[row].partition(" per 32-bit word")[0])


def test_a_64_bit_sram_access_costs_twice_the_32_bit_one():
    assert "(10 per 64 bits)" in ROWS["SRAM read 8 KB"]
    assert ROUGH.access("sram", bits=64).m_as("pJ") == 10


@pytest.mark.parametrize(
    ("other", "times"),
    [
        (ROUGH.access("sram"), 130),
        (ROUGH.operation("int8 add"), 21_667),
        (ROUGH.operation("fp32 add"), 722),
        (ROUGH.operation("fp32 multiply"), 176),
        (ROUGH.mac("fp32"), 141),
    ],
)
def test_a_dram_word_against_other_events(other, times):
    assert round(ROUGH.access("dram") / other) == times


def test_8_bit_share_of_a_dram_word_against_an_8_bit_add():
    assert round(ROUGH.access("dram", bits=8) / ROUGH.operation("int8 add")) == 5417


def test_8_bit_multiply_adds_save_20_times_and_15_with_a_wide_accumulator():
    assert ROUGH.mac("fp32") / ROUGH.mac("int8") == pytest.approx(20)
    assert round(ROUGH.mac("fp32") / ROUGH.mac("int8", accumulate="int32")) == 15


def test_vector_against_systolic_array():
    vector = vector_mac("horowitz-45nm", mac=1)
    systolic = systolic_mac("horowitz-45nm", mac=1, array_dim=128)
    assert vector.m_as("pJ") == 2601
    assert systolic.m_as("pJ") == pytest.approx(1 + 2 / 128 * 650)
    assert round(vector / systolic) == 233


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.truediv, operator.eq, operator.lt])
def test_energies_of_two_nodes_do_not_meet(operation):
    with pytest.raises(MixedBases, match=r"'horowitz-45nm' \(45 nm\) and 'hopper-measured' \(4N\)"):
        operation(ROUGH.access("dram", bits=32), basis("hopper-measured").access("hbm", bits=32))


def test_energies_of_one_node_counted_in_two_ways_do_not_meet():
    with pytest.raises(MixedBases):
        basis("jouppi-7nm").access("hbm") + basis("a100-measured").access("hbm")


def test_a_plain_quantity_has_no_basis():
    with pytest.raises(MixedBases, match="no basis"):
        ROUGH.access("dram") + ureg.Quantity(1, "pJ")


def test_eyeriss_counts_in_multiply_adds():
    chip = basis("eyeriss-65nm")
    assert [chip.access(level) / chip.mac() for level in ("register_file", "array", "buffer", "dram")] == [1, 2, 6, 200]


@pytest.mark.parametrize(("pj_per_bit", "word"), [("hopper-measured", 373.8), ("oconnor-hbm2", 127.0)])
def test_hbm_word_of_32_bits(pj_per_bit, word):
    assert basis(pj_per_bit).access("hbm", bits=32).m_as("pJ") == pytest.approx(word, abs=0.1)


def test_nearer_levels_cost_less():
    for chip in ("a100-measured", "hopper-measured"):
        l1, l2, hbm = (basis(chip).access(level, bits=1) for level in ("l1", "l2", "hbm"))
        assert l1 < l2 < hbm


def test_op_energy_of_a_vector_add_done_by_hand():
    op = ops.elementwise(elements=1000, inputs=2, dtype="fp32")
    energy = op_energy(op, "horowitz-45nm")
    assert energy.movement.m_as("pJ") == pytest.approx(3 * 1000 * 650)
    assert energy.arithmetic.m_as("pJ") == pytest.approx(1000 / 2 * 4.6)
    assert energy.total.m_as("pJ") == pytest.approx(1_952_300)


def test_a_matrix_product_moves_its_energy_from_memory_to_arithmetic_as_it_grows():
    shares = []
    for size in (16, 128, 1024):
        energy = op_energy(ops.matmul(m=size, n=size, k=size, dtype="fp32"), "horowitz-45nm")
        shares.append(energy.movement / energy.total)
    # 3 n^2 words of 650 pJ against n^3 multiply-adds of 4.6 pJ
    assert shares == pytest.approx([3 * 650 / (3 * 650 + 4.6 * n) for n in (16, 128, 1024)])


def test_unknown_basis_level_and_operation_list_what_there_is():
    with pytest.raises(UnknownName, match="horowitz-45nm"):
        basis("horowitz")
    with pytest.raises(UnknownName, match="dram"):
        ROUGH.access("hbm")
    with pytest.raises(UnknownName, match="fp16 add"):
        ROUGH.mac("bf16")


@pytest.mark.parametrize("bad", [0, -1, 1.5])
def test_impossible_widths_are_refused(bad):
    with pytest.raises(InvalidValue):
        ROUGH.access("dram", bits=bad)
    with pytest.raises(InvalidValue):
        systolic_mac("horowitz-45nm", mac=1, array_dim=bad)


def test_every_basis_names_its_node():
    assert all(one.node and one.title for one in bases())
