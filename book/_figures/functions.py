"""Instructions of element-wise functions on an H100; written by scripts/compile_functions.py."""

VERSIONS = {"Triton": "3.7.1", "ptxas": "12.8", "target": "sm_90"}

COUNTED = {
    "x + 1": {"special": 0, "fp32": 1, "branches": 0},
    "ReLU": {"special": 0, "fp32": 1, "branches": 0},
    "1 / square root": {"special": 1, "fp32": 0, "branches": 0},
    "exponential": {"special": 1, "fp32": 4, "branches": 0},
    "sigmoid": {"special": 2, "fp32": 10, "branches": 0},
    "GELU by tanh": {"special": 2, "fp32": 14, "branches": 0},
    "GELU by erf": {"special": 1, "fp32": 16, "branches": 0},
}
"""For one element: instructions of the special-function unit, of the FP32 lanes, and branches."""
