"""What Triton's compiler reports about fused kernels; written by scripts/compile_fusion.py.

A report has the registers of a thread, the bytes that it stores to and loads from local memory because the
registers do not suffice, and the bytes of shared memory of a program.
"""

from typing import Any

# ruff: noqa: E501 - one line for each chain's steps
# fmt: off

ADD_NORM = """\
@triton.jit
def add_norm(
    x_ptr, r_ptr, g_ptr, h_ptr, y_ptr, cols, epsilon,
    BLOCK: tl.constexpr,
):
    col = tl.arange(0, BLOCK)
    in_row = col < cols
    place = tl.program_id(0) * cols + col
    x = tl.load(x_ptr + place, mask=in_row, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + place, mask=in_row, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + col, mask=in_row, other=0.0).to(tl.float32)
    h = x + r
    tl.store(h_ptr + place, h.to(h_ptr.dtype.element_ty), mask=in_row)
    scale = tl.rsqrt(tl.sum(h * h, 0) / cols + epsilon)
    y = h * scale * g
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=in_row)
"""

VERSIONS = {"Triton": "3.7.1", "ptxas": "12.8", "target": "sm_90"}
"""What compiled, and for which target."""

COLUMNS = 8192
"""Numbers of a row, one block, in `BY_WARPS`."""

BY_WARPS = {
    32: {"registers": 31, "stored": 0, "loaded": 0, "shared": 128},
    16: {"registers": 40, "stored": 0, "loaded": 0, "shared": 64},
    8: {"registers": 64, "stored": 0, "loaded": 0, "shared": 32},
    4: {"registers": 127, "stored": 0, "loaded": 0, "shared": 16},
    2: {"registers": 244, "stored": 0, "loaded": 0, "shared": 8},
    1: {"registers": 255, "stored": 880, "loaded": 948, "shared": 0},
}
"""The report on `ADD_NORM`, by the warps of a program."""

LATE = {
    4: {"registers": 106, "stored": 0, "loaded": 0, "shared": 16},
}
"""The same for a variant that loads g behind the sum."""

PER_THREAD = 8
"""Numbers of a thread in `BY_STEPS`."""

BY_STEPS = {
    1: {"registers": 22, "stored": 0, "loaded": 0, "shared": 0},
    2: {"registers": 20, "stored": 0, "loaded": 0, "shared": 0},
    4: {"registers": 24, "stored": 0, "loaded": 0, "shared": 0},
    8: {"registers": 24, "stored": 0, "loaded": 0, "shared": 0},
    16: {"registers": 24, "stored": 0, "loaded": 0, "shared": 0},
    32: {"registers": 24, "stored": 0, "loaded": 0, "shared": 0},
    64: {"registers": 24, "stored": 0, "loaded": 0, "shared": 0},
}
"""The report on a kernel of that many element-wise steps, each a multiply-add and a maximum."""

TILE = {"BM": 128, "BN": 128, "BK": 64}
"""Tile of the products."""

EPILOGUES = {
    4: {
        "nothing": {"registers": 208, "stored": 0, "loaded": 0, "shared": 98304},
        "ReLU": {"registers": 208, "stored": 0, "loaded": 0, "shared": 98304},
        "bias and GELU": {"registers": 255, "stored": 92, "loaded": 92, "shared": 98304},
        "bias, GELU and residual": {"registers": 255, "stored": 468, "loaded": 468, "shared": 98304},
    },
    8: {
        "nothing": {"registers": 110, "stored": 0, "loaded": 0, "shared": 98304},
        "ReLU": {"registers": 108, "stored": 0, "loaded": 0, "shared": 98304},
        "bias and GELU": {"registers": 118, "stored": 0, "loaded": 0, "shared": 98304},
        "bias, GELU and residual": {"registers": 167, "stored": 0, "loaded": 0, "shared": 98304},
    },
}
"""The report on a product, by the warps of a program and by what the kernel does with its tile."""

SEGMENT = {"columns": 4096, "warps": 4}
"""Numbers of a row and warps of a program in the kernels of `CHAINS`."""

CHAINS: dict[str, Any] = {
    "ReLU, batch normalization, scale, shift": {
        "steps": [["ReLU", ["x"], "a"], ["normalize", ["a", "mean", "var", "gamma", "beta"], "b"], ["scale", ["b", "s"], "d"], ["shift", ["d", "t"], "y"]],
        "kinds": {"x": "n", "a": "n", "b": "n", "d": "n", "y": "n", "mean": "c", "var": "c", "gamma": "c", "beta": "c", "s": "c", "t": "c"},
        "results": ["y"],
        "kernels": {
            "0-1": {"registers": 29, "stored": 0, "loaded": 0, "shared": 0},
            "0-2": {"registers": 66, "stored": 0, "loaded": 0, "shared": 0},
            "0-3": {"registers": 64, "stored": 0, "loaded": 0, "shared": 0},
            "0-4": {"registers": 80, "stored": 0, "loaded": 0, "shared": 0},
            "1-2": {"registers": 62, "stored": 0, "loaded": 0, "shared": 0},
            "1-3": {"registers": 64, "stored": 0, "loaded": 0, "shared": 0},
            "1-4": {"registers": 64, "stored": 0, "loaded": 0, "shared": 0},
            "2-3": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
            "2-4": {"registers": 58, "stored": 0, "loaded": 0, "shared": 0},
            "3-4": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
        },
    },
    "softmax": {
        "steps": [["row maximum", ["x"], "m"], ["subtract", ["x", "m"], "d"], ["exponential", ["d"], "e"], ["row sum", ["e"], "s"], ["divide", ["e", "s"], "y"]],
        "kinds": {"x": "n", "d": "n", "e": "n", "y": "n", "m": "r", "s": "r"},
        "results": ["y"],
        "kernels": {
            "0-1": {"registers": 24, "stored": 0, "loaded": 0, "shared": 16},
            "0-2": {"registers": 48, "stored": 0, "loaded": 0, "shared": 16},
            "0-3": {"registers": 46, "stored": 0, "loaded": 0, "shared": 16},
            "0-4": {"registers": 48, "stored": 0, "loaded": 0, "shared": 16},
            "0-5": {"registers": 46, "stored": 0, "loaded": 0, "shared": 16},
            "1-2": {"registers": 28, "stored": 0, "loaded": 0, "shared": 0},
            "1-3": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
            "1-4": {"registers": 39, "stored": 0, "loaded": 0, "shared": 16},
            "1-5": {"registers": 48, "stored": 0, "loaded": 0, "shared": 16},
            "2-3": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
            "2-4": {"registers": 37, "stored": 0, "loaded": 0, "shared": 16},
            "2-5": {"registers": 46, "stored": 0, "loaded": 0, "shared": 16},
            "3-4": {"registers": 26, "stored": 0, "loaded": 0, "shared": 16},
            "3-5": {"registers": 46, "stored": 0, "loaded": 0, "shared": 16},
            "4-5": {"registers": 30, "stored": 0, "loaded": 0, "shared": 0},
        },
    },
    "residual and RMS normalization": {
        "steps": [["add", ["x", "r"], "h"], ["square", ["h"], "q"], ["row mean", ["q"], "v"], ["inverse root", ["v"], "w"], ["multiply", ["h", "w"], "z"], ["scale", ["z", "g"], "y"]],
        "kinds": {"x": "n", "r": "n", "h": "n", "q": "n", "z": "n", "y": "n", "v": "r", "w": "r", "g": "c"},
        "results": ["h", "y"],
        "kernels": {
            "0-1": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
            "0-2": {"registers": 40, "stored": 0, "loaded": 0, "shared": 0},
            "0-3": {"registers": 38, "stored": 0, "loaded": 0, "shared": 16},
            "0-4": {"registers": 38, "stored": 0, "loaded": 0, "shared": 16},
            "0-5": {"registers": 52, "stored": 0, "loaded": 0, "shared": 16},
            "0-6": {"registers": 64, "stored": 0, "loaded": 0, "shared": 16},
            "1-2": {"registers": 28, "stored": 0, "loaded": 0, "shared": 0},
            "1-3": {"registers": 26, "stored": 0, "loaded": 0, "shared": 16},
            "1-4": {"registers": 26, "stored": 0, "loaded": 0, "shared": 16},
            "1-5": {"registers": 46, "stored": 0, "loaded": 0, "shared": 16},
            "1-6": {"registers": 62, "stored": 0, "loaded": 0, "shared": 16},
            "2-3": {"registers": 26, "stored": 0, "loaded": 0, "shared": 16},
            "2-4": {"registers": 26, "stored": 0, "loaded": 0, "shared": 16},
            "2-5": {"registers": 32, "stored": 0, "loaded": 0, "shared": 16},
            "2-6": {"registers": 48, "stored": 0, "loaded": 0, "shared": 16},
            "3-4": {"registers": 10, "stored": 0, "loaded": 0, "shared": 0},
            "3-5": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
            "3-6": {"registers": 38, "stored": 0, "loaded": 0, "shared": 0},
            "4-5": {"registers": 28, "stored": 0, "loaded": 0, "shared": 0},
            "4-6": {"registers": 36, "stored": 0, "loaded": 0, "shared": 0},
            "5-6": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
        },
    },
    "product, bias, GELU, residual": {
        "steps": [["product", ["A", "B"], "c"], ["bias", ["c", "bias"], "b"], ["GELU", ["b"], "g"], ["residual", ["g", "r"], "y"]],
        "kinds": {"A": "n", "c": "n", "b": "n", "g": "n", "r": "n", "y": "n", "B": "B", "bias": "c"},
        "results": ["y"],
        "kernels": {
            "0-1": {"registers": 208, "stored": 0, "loaded": 0, "shared": 98304},
            "0-2": {"registers": 188, "stored": 0, "loaded": 0, "shared": 98304},
            "0-3": {"registers": 255, "stored": 92, "loaded": 92, "shared": 98304},
            "0-4": {"registers": 255, "stored": 468, "loaded": 468, "shared": 98304},
            "1-2": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
            "1-3": {"registers": 72, "stored": 0, "loaded": 0, "shared": 0},
            "1-4": {"registers": 76, "stored": 0, "loaded": 0, "shared": 0},
            "2-3": {"registers": 64, "stored": 0, "loaded": 0, "shared": 0},
            "2-4": {"registers": 71, "stored": 0, "loaded": 0, "shared": 0},
            "3-4": {"registers": 32, "stored": 0, "loaded": 0, "shared": 0},
        },
    },
}
"""Chains, and the report on the kernel of each run of their steps, such as 0-2 for the first two."""
