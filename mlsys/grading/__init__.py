"""What a lab calls to check, time and score a student's work: `from mlsys import grading`.

Torch and Triton are loaded when something that needs them is first called, never on import.
"""

from mlsys.grading.checks.assertions import assert_close, assert_equal
from mlsys.grading.checks.schedule import assert_schedule
from mlsys.grading.device import use_device
from mlsys.grading.draws import Draws
from mlsys.grading.kernels.check import check_kernel, guarded
from mlsys.grading.kernels.speed import Speed, speed
from mlsys.grading.predictions import compare, seal
from mlsys.grading.scorecard import Scorecard
from mlsys.grading.verdicts import (
    GradingError,
    NeedsGpu,
    NeedsReview,
    NotAKernel,
    NotImplementedYet,
    OutOfBounds,
    Suspicious,
    Verdict,
    WrongAnswer,
)

__all__ = [
    "Draws",
    "GradingError",
    "NeedsGpu",
    "NeedsReview",
    "NotAKernel",
    "NotImplementedYet",
    "OutOfBounds",
    "Scorecard",
    "Speed",
    "Suspicious",
    "Verdict",
    "WrongAnswer",
    "assert_close",
    "assert_equal",
    "assert_schedule",
    "check_kernel",
    "compare",
    "guarded",
    "seal",
    "speed",
    "use_device",
]
