"""Number formats bit by bit, rounding, quantization with its error, and blocks that share a scale.

>>> from mlsys.numerics import float_format
>>> [float_format(name).max for name in ("fp16", "fp8-e4m3", "fp8-e5m2", "fp4-e2m1")]
[65504.0, 448.0, 57344.0, 6.0]
"""

from mlsys.numerics.accumulation import running_sum
from mlsys.numerics.blocks import round_in_blocks
from mlsys.numerics.formats import FLOAT_FORMATS, FloatFormat, float_format
from mlsys.numerics.integers import IntFormat
from mlsys.numerics.quantization import QuantizationError, Quantized, quantization_error, quantize

__all__ = [
    "FLOAT_FORMATS",
    "FloatFormat",
    "IntFormat",
    "QuantizationError",
    "Quantized",
    "float_format",
    "quantization_error",
    "quantize",
    "round_in_blocks",
    "running_sum",
]
