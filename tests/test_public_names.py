"""Names that others rely on: labs of released versions, chapters, and code that was written against the package."""

import importlib
import subprocess
import sys

import pytest

import mlsys

PUBLIC = {
    "mlsys": "Hardware",
    "mlsys.units": "ureg flop GFLOP TFLOP byte KiB MiB GiB KB MB GB TB param token",
    "mlsys.hardware": "Hardware Accelerator Peak UnknownField UnknownPrecision",
    "mlsys.compiler": "compile OPS UnsupportedOp",
    "mlsys.constants": "",
    "mlsys.formatting": "fmt check",
    "mlsys.formulas": (
        "amdahl iron_law model_memory attainable required_bandwidth batch_intensity token_latency hardware_balance"
    ),
    "mlsys.ops": "Op matmul conv2d depthwise_conv2d layernorm softmax attention elementwise embedding linear",
    "mlsys.models": "resnet50 mobilenet_v2 gpt2 llama2_7b llama2_13b llama2_70b dlrm kv_cache_bytes",
    "mlsys.roofline": "Roofline",
    "mlsys.feasibility": "fits",
    "mlsys.traffic": "ORDERS Schedule Traffic best_schedule compulsory_bytes tiled_matmul untiled",
    "mlsys.systolic": "gemm_cycles",
    "mlsys.dataflow": "order_accesses compulsory reuse stationary_traffic matmul convolution LoopNest",
    "mlsys.scaling": "ring_all_reduce_time ring_reduce_scatter_time ring_all_gather_time scaling_efficiency speedup",
    "mlsys.soc": "CannotRun EnergyCurve Plan Soc Stage camera_pipeline dispatch govern plan run soc",
    "mlsys.runtime": "Buffer DoesNotFit peak_live plan_height plan_memory",
    "mlsys.measure": "Ceilings Device Pair Timing detect_device measure_ceilings rotate time_kernel time_pair",
    "mlsys.measure.records": "load",
    "mlsys.measure.clock": "clock_of",
    "mlsys.grading": (
        "Draws Finding GradingError NeedsGpu NeedsReview NotAKernel NotImplementedYet OutOfBounds Scorecard Speed "
        "Suspicious Verdict WrongAnswer assert_close assert_equal assert_schedule check_kernel compare "
        "guarded inspect seal speed use_device"
    ),
    "mlsys.grading.compiler_report": "compiler_report CompilerReport",
    "mlsys.viz": "setup_plot COLORS",
    "mlsys.registry": "start_chapter",
    "mlsys.errors": "UserError InvalidValue UnknownName",
}
"""Public names by the module that they are imported from."""


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_can_be_imported(module):
    found = importlib.import_module(module)
    assert [name for name in PUBLIC[module].split() if not hasattr(found, name)] == []


def test_each_room_is_an_attribute_of_the_package_and_is_listed():
    assert set(mlsys.__all__) < set(dir(mlsys))
    for name in mlsys.__all__:
        assert getattr(mlsys, name)
    with pytest.raises(AttributeError, match="no attribute 'hardwear'"):
        mlsys.hardwear  # noqa: B018


def test_importing_the_package_loads_neither_torch_nor_matplotlib_nor_any_room():
    code = "import sys, mlsys; print(sorted({'torch', 'matplotlib', 'numpy', 'mlsys.hardware'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
