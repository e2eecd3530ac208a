import pytest

from mlsys import constants
from mlsys.constants import GB, TB, Gbps, GFLOPs, KiB, TFLOPs, byte, second, watt
from mlsys.formulas import model_memory
from mlsys.units import ureg

TFLOPS_PER_SECOND = {
    "V100_FLOPS_FP16_TENSOR": 125,
    "V100_FLOPS_FP32": 15.7,
    "A100_FLOPS_FP16_TENSOR": 312,
    "A100_FLOPS_BF16": 312,
    "A100_FLOPS_TF32": 156,
    "A100_FLOPS_INT8": 624,
    "A100_FLOPS_FP32": 19.5,
    "H100_FLOPS_FP16_TENSOR": 989.4,
    "H100_FLOPS_BF16": 989.4,
    "H100_FLOPS_TF32": 494.7,
    "H100_FLOPS_INT8": 1978.9,
    "H100_FLOPS_FP32": 67,
    "T4_FLOPS_FP16_TENSOR": 65,
    "T4_FLOPS_INT8": 130,
    "T4_FLOPS_FP32": 8.1,
    "TPUV4_FLOPS_BF16": 275,
    "TPUV4_FLOPS_INT8": 275,
}
GB_PER_SECOND = {
    "V100_MEM_BW": 900,
    "A100_MEM_BW": 2039,
    "H100_MEM_BW": 3350,
    "T4_MEM_BW": 320,
    "TPUV4_MEM_BW": 1200,
    "NVLINK_A100_BW": 300,
    "NVLINK_H100_BW": 450,
    "PCIE_GEN4_BW": 32,
    "PCIE_GEN5_BW": 64,
    "INFINIBAND_HDR_BW": 25,
    "INFINIBAND_NDR_BW": 50,
}
OFFERED = [
    "flop",
    "byte",
    "second",
    "watt",
    "KB",
    "MB",
    "GB",
    "TB",
    "KiB",
    "MiB",
    "GiB",
    "Gbps",
    "MFLOPs",
    "GFLOPs",
    "TFLOPs",
    "THOUSAND",
    "MILLION",
    "BILLION",
    "TRILLION",
    "KIB_TO_BYTES",
    "MIB_TO_BYTES",
    "DAYS_PER_YEAR",
    "BYTES_FP32",
    "BYTES_FP16",
    "BYTES_INT8",
    "V100_TDP",
    "A100_TDP",
    "H100_TDP",
    "T4_TDP",
    "MOBILE_NPU_TOPS_INT8",
    "ENERGY_DRAM_ACCESS_PJ",
    "ENERGY_DRAM_PJ_PER_BYTE",
    "ENERGY_SRAM_L1_PJ",
    "LATENCY_HBM3",
    "LATENCY_L2_CACHE",
    "LATENCY_L1_REGISTER",
    "SYSTOLIC_ARRAY_DIM",
    "GPT2_PARAMS",
    "TRANSFORMER_HIDDEN_DIM_EXAMPLE",
    "TRANSFORMER_SEQ_LEN_EXAMPLE",
    "TRANSFORMER_HEADS_EXAMPLE",
]


def test_every_name_is_offered_and_nothing_else():
    assert set(constants.__all__) == {*OFFERED, *TFLOPS_PER_SECOND, *GB_PER_SECOND}
    assert all(hasattr(constants, name) for name in constants.__all__)


@pytest.mark.parametrize("name", TFLOPS_PER_SECOND)
def test_peaks_are_dense(name):
    assert getattr(constants, name).m_as(TFLOPs / second) == TFLOPS_PER_SECOND[name]


@pytest.mark.parametrize("name", GB_PER_SECOND)
def test_bandwidths_and_links_one_way(name):
    assert getattr(constants, name).m_as(GB / second) == pytest.approx(GB_PER_SECOND[name])


@pytest.mark.parametrize(("name", "watts"), [("V100_TDP", 300), ("A100_TDP", 400), ("H100_TDP", 700), ("T4_TDP", 70)])
def test_power(name, watts):
    assert getattr(constants, name).m_as(watt) == watts


def test_quantities_belong_to_the_registry_of_the_package():
    quantities = [getattr(constants, name) for name in constants.__all__]
    quantities = [value for value in quantities if hasattr(value, "magnitude")]
    assert len(quantities) > 30
    assert all(isinstance(value, ureg.Quantity) for value in quantities)


def test_a_ridge_point_from_constants():
    ridge = constants.A100_FLOPS_FP16_TENSOR / constants.A100_MEM_BW
    assert ridge.m_as("flop/byte") == pytest.approx(153, abs=0.1)


@pytest.mark.parametrize(("size", "gigabytes"), [("BYTES_FP32", 6), ("BYTES_FP16", 3), ("BYTES_INT8", 1.5)])
def test_memory_of_gpt2_by_format(size, gigabytes):
    assert model_memory(constants.GPT2_PARAMS, getattr(constants, size), GB) == gigabytes


def test_sizes_and_counts():
    assert ((1 * KiB).m_as(byte), 1024**2) == (constants.KIB_TO_BYTES, constants.MIB_TO_BYTES)
    assert constants.DAYS_PER_YEAR == 365
    assert (constants.THOUSAND, constants.MILLION, constants.BILLION, constants.TRILLION) == (1e3, 1e6, 1e9, 1e12)
    assert (8 * Gbps).m_as(GB / second) == pytest.approx(1)
    assert (1 * TFLOPs).m_as(GFLOPs) == pytest.approx(1000)
    assert (1 * TB).m_as(GB) == pytest.approx(1000)


def test_energies_are_those_of_45_nm():
    assert constants.ENERGY_DRAM_ACCESS_PJ.m_as("pJ") == 650
    assert constants.ENERGY_SRAM_L1_PJ.m_as("pJ") == 5
    assert constants.ENERGY_DRAM_PJ_PER_BYTE.m_as("pJ/byte") == 162.5


def test_latencies_are_those_of_a_gpu_not_of_a_cpu():
    assert 200 < constants.LATENCY_HBM3.m_as("ns") < 450
    assert constants.LATENCY_L1_REGISTER < constants.LATENCY_L2_CACHE < constants.LATENCY_HBM3
    assert constants.LATENCY_L2_CACHE.m_as("ns") > 100


def test_example_transformer_and_array():
    assert constants.TRANSFORMER_HIDDEN_DIM_EXAMPLE == 768
    assert constants.TRANSFORMER_SEQ_LEN_EXAMPLE == 512
    assert constants.TRANSFORMER_HEADS_EXAMPLE == 12
    assert constants.SYSTOLIC_ARRAY_DIM == 128


def test_an_npu_for_devices_stands_between_a_microcontroller_and_a_data_centre():
    assert 1 < constants.MOBILE_NPU_TOPS_INT8.m_as("TOP/s") < constants.T4_FLOPS_INT8.m_as("TOP/s")
