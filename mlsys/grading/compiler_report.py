"""The compiler's report under the name by which labs import it; see `mlsys.grading.kernels.compiler_report`."""

from mlsys.grading.kernels.compiler_report import CompilerReport, compiler_report

__all__ = ["CompilerReport", "compiler_report"]
