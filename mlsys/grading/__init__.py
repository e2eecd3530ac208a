"""Functions that a lab calls to check, time and score a student's work: `from mlsys import grading`.

In a student's notebook these functions run in the notebook itself; when the lab is graded, the same test cells run in
the judge. Torch and Triton are loaded when a function that needs them is first called, never on import.

`seal` and `compare` return a `mlsys.grading.predictions.Sealed` and a `mlsys.grading.predictions.Comparison`. The
tolerances of `assert_close` come from `mlsys.grading.checks.tolerances.relative_tolerance` and the table
`mlsys.grading.checks.tolerances.RELATIVE`. The registers and spills of a kernel are in the
`mlsys.grading.compiler_report.CompilerReport` that `mlsys.grading.compiler_report.compiler_report` returns. The kinds
of findings that `inspect` returns are in the table `mlsys.grading.hazards.finding.KINDS`. Kernels with one mistake
each, to test tests with, come from `mlsys.grading.mutants.mutants`, as `mlsys.grading.mutants.Mutant`. A `Scorecard`
keeps the student's `mlsys.grading.session.work_log.WorkLog`. `restore` returns a
`mlsys.grading.session.answers.Restored`, and `hand_in` a `mlsys.receipt.Receipt`. What one lab alone checks is in
`mlsys.grading.replays`, of which that lab imports its module.
"""

from mlsys.grading.checks.assertions import assert_close, assert_equal
from mlsys.grading.checks.schedule import assert_schedule
from mlsys.grading.device import use_device
from mlsys.grading.draws import Draws
from mlsys.grading.handing_in.hand_in import hand_in
from mlsys.grading.hazards.finding import Finding
from mlsys.grading.hazards.inspection import inspect, inspect_first
from mlsys.grading.kernels.check import check_kernel, guarded, written_kernel
from mlsys.grading.kernels.speed import Speed, speed
from mlsys.grading.predictions import compare, seal
from mlsys.grading.scorecard import Scorecard
from mlsys.grading.session.answers import restore
from mlsys.grading.student_tests import MutationScore, score_tests
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
    "Finding",
    "GradingError",
    "MutationScore",
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
    "hand_in",
    "inspect",
    "inspect_first",
    "restore",
    "score_tests",
    "seal",
    "speed",
    "use_device",
    "written_kernel",
]
