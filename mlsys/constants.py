"""The numbers of the course under short names, each taken from the chips, links, levels and energies of the package.

Nothing is written down here a second time: change a data file, and the name follows. Link rates are per direction.

>>> from mlsys.constants import A100_FLOPS_FP16_TENSOR, A100_MEM_BW, TB, TFLOPs, second
>>> A100_MEM_BW.m_as(TB / second), A100_FLOPS_FP16_TENSOR.m_as(TFLOPs / second)
(2.039, 312)
>>> NVLINK_H100_BW
<Quantity(450, 'gigabyte / second')>
"""

from mlsys.core.dtypes import bytes_per_element
from mlsys.hardware import Hardware
from mlsys.hardware.energy import basis
from mlsys.hardware.links import link
from mlsys.hardware.memory import level
from mlsys.models.shapes import shapes
from mlsys.units import GB, KB, MB, TB, GiB, KiB, MiB, byte, flop, second, ureg, watt

__all__ = [
    "A100_FLOPS_BF16",
    "A100_FLOPS_FP16_TENSOR",
    "A100_FLOPS_FP32",
    "A100_FLOPS_INT8",
    "A100_FLOPS_TF32",
    "A100_MEM_BW",
    "A100_TDP",
    "BILLION",
    "BYTES_FP16",
    "BYTES_FP32",
    "BYTES_INT8",
    "DAYS_PER_YEAR",
    "ENERGY_DRAM_ACCESS_PJ",
    "ENERGY_DRAM_PJ_PER_BYTE",
    "ENERGY_SRAM_L1_PJ",
    "GB",
    "GPT2_PARAMS",
    "H100_FLOPS_BF16",
    "H100_FLOPS_FP16_TENSOR",
    "H100_FLOPS_FP32",
    "H100_FLOPS_INT8",
    "H100_FLOPS_TF32",
    "H100_MEM_BW",
    "H100_TDP",
    "INFINIBAND_HDR_BW",
    "INFINIBAND_NDR_BW",
    "KB",
    "KIB_TO_BYTES",
    "LATENCY_HBM3",
    "LATENCY_L1_REGISTER",
    "LATENCY_L2_CACHE",
    "MB",
    "MIB_TO_BYTES",
    "MILLION",
    "MOBILE_NPU_TOPS_INT8",
    "NVLINK_A100_BW",
    "NVLINK_H100_BW",
    "PCIE_GEN4_BW",
    "PCIE_GEN5_BW",
    "SYSTOLIC_ARRAY_DIM",
    "T4_FLOPS_FP16_TENSOR",
    "T4_FLOPS_FP32",
    "T4_FLOPS_INT8",
    "T4_MEM_BW",
    "T4_TDP",
    "TB",
    "THOUSAND",
    "TPUV4_FLOPS_BF16",
    "TPUV4_FLOPS_INT8",
    "TPUV4_MEM_BW",
    "TRANSFORMER_HEADS_EXAMPLE",
    "TRANSFORMER_HIDDEN_DIM_EXAMPLE",
    "TRANSFORMER_SEQ_LEN_EXAMPLE",
    "TRILLION",
    "V100_FLOPS_FP16_TENSOR",
    "V100_FLOPS_FP32",
    "V100_MEM_BW",
    "V100_TDP",
    "GFLOPs",
    "Gbps",
    "GiB",
    "KiB",
    "MFLOPs",
    "MiB",
    "TFLOPs",
    "byte",
    "flop",
    "second",
    "watt",
]

Gbps = ureg.gigabps
MFLOPs, GFLOPs, TFLOPs = ureg.megaflop, ureg.gigaflop, ureg.teraflop

THOUSAND, MILLION, BILLION, TRILLION = 10**3, 10**6, 10**9, 10**12
KIB_TO_BYTES = int((1 * KiB).m_as(byte))
MIB_TO_BYTES = int((1 * MiB).m_as(byte))
DAYS_PER_YEAR = int((1 * ureg.year).m_as("day"))

BYTES_FP32, BYTES_FP16, BYTES_INT8 = (
    ureg.Quantity(bytes_per_element(dtype), "byte") for dtype in ("fp32", "fp16", "int8")
)

_v100, _t4, _a100 = (Hardware.get(chip) for chip in ("v100-sxm2", "t4", "a100-80gb-sxm"))
_h100, _tpu_v4, _mobile = (Hardware.get(chip) for chip in ("h100-sxm", "tpu-v4", "snapdragon-x-elite"))

V100_FLOPS_FP16_TENSOR = _v100.peak("fp16", engine="tensor")
V100_FLOPS_FP32 = _v100.peak("fp32", engine="vector")
V100_MEM_BW = _v100.memory_bw
V100_TDP = _v100.tdp

T4_FLOPS_FP16_TENSOR = _t4.peak("fp16", engine="tensor")
T4_FLOPS_FP32 = _t4.peak("fp32", engine="vector")
T4_FLOPS_INT8 = _t4.peak("int8")
T4_MEM_BW = _t4.memory_bw
T4_TDP = _t4.tdp

A100_FLOPS_FP16_TENSOR = _a100.peak("fp16", engine="tensor")
A100_FLOPS_BF16 = _a100.peak("bf16", engine="tensor")
A100_FLOPS_TF32 = _a100.peak("tf32")
A100_FLOPS_INT8 = _a100.peak("int8")
A100_FLOPS_FP32 = _a100.peak("fp32", engine="vector")
A100_MEM_BW = _a100.memory_bw
A100_TDP = _a100.tdp

H100_FLOPS_FP16_TENSOR = _h100.peak("fp16", engine="tensor")
H100_FLOPS_BF16 = _h100.peak("bf16", engine="tensor")
H100_FLOPS_TF32 = _h100.peak("tf32")
H100_FLOPS_INT8 = _h100.peak("int8")
H100_FLOPS_FP32 = _h100.peak("fp32", engine="vector")
H100_MEM_BW = _h100.memory_bw
H100_TDP = _h100.tdp

# Google publishes no fp16 or fp32 peak of this chip, and no TDP.
TPUV4_FLOPS_BF16 = _tpu_v4.peak("bf16")
TPUV4_FLOPS_INT8 = _tpu_v4.peak("int8")
TPUV4_MEM_BW = _tpu_v4.memory_bw

MOBILE_NPU_TOPS_INT8 = _mobile.peak("int8")
SYSTOLIC_ARRAY_DIM = int(_tpu_v4.field("array_dim").value.m)

NVLINK_A100_BW = link("nvlink-3").per_direction
NVLINK_H100_BW = link("nvlink-4").per_direction
PCIE_GEN4_BW = link("pcie-4-x16").per_direction
PCIE_GEN5_BW = link("pcie-5-x16").per_direction
INFINIBAND_HDR_BW = link("infiniband-hdr").per_direction
INFINIBAND_NDR_BW = link("infiniband-ndr").per_direction

# 45 nm, and DRAM of that time; a 32-bit word.
_rough = basis("horowitz-45nm")
ENERGY_DRAM_ACCESS_PJ = _rough.access("dram", bits=32).value
ENERGY_DRAM_PJ_PER_BYTE = _rough.access("dram", bits=8).value / byte
ENERGY_SRAM_L1_PJ = _rough.access("sram", bits=32).value

# H100, measured with nothing else under way. The last one is the wait for a result in a register.
LATENCY_HBM3 = level("h100-sxm", "hbm").latency
LATENCY_L2_CACHE = level("h100-sxm", "l2").latency
LATENCY_L1_REGISTER = level("h100-sxm", "register").latency

_gpt2 = shapes().gpt2
GPT2_PARAMS = _gpt2.printed_params.sourced.value

# An example shape of the course: the width and heads of the smallest GPT-2 on half its positions.
TRANSFORMER_HIDDEN_DIM_EXAMPLE = _gpt2.sizes["small"].width
TRANSFORMER_HEADS_EXAMPLE = TRANSFORMER_HIDDEN_DIM_EXAMPLE // _gpt2.head_dim
TRANSFORMER_SEQ_LEN_EXAMPLE = _gpt2.positions // 2
