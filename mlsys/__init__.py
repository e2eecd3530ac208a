"""Hardware models, simulators, measurement and grading for a course on AI acceleration and GPU kernels."""

from mlsys.hardware import Hardware

__all__ = ["Hardware"]
__version__ = "0.1.0"
