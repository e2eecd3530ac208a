"""Integer quantization: real numbers as small integers times a scale."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mlsys.core.arguments import one_of
from mlsys.errors import InvalidValue
from mlsys.numerics.formats import FloatArray, IntArray
from mlsys.numerics.integers import IntFormat


@dataclass(frozen=True)
class Quantized:
    """Integers q that stand for scale (q - zero_point).

    Attributes:
        codes: integers, in the shape of the original.
        scale: step between two neighbors: one number, or one per channel in a shape that broadcasts.
        zero_point: the integer that stands for 0, likewise.
        bits: width of the integers.
    """

    codes: IntArray
    scale: FloatArray
    zero_point: IntArray
    bits: int

    def dequantize(self) -> FloatArray:
        """The real numbers that the codes stand for: scale (q - zero_point)."""
        result: FloatArray = self.scale * (self.codes - self.zero_point)
        return result


@dataclass(frozen=True)
class QuantizationError:
    """How far a quantized tensor is from the original.

    Attributes:
        largest: largest absolute error.
        rms: root of the mean squared error.
        snr_db: signal power over error power, in decibel; infinite without error.
    """

    largest: float
    rms: float
    snr_db: float


def quantize(values: ArrayLike, bits: int = 8, scheme: str = "symmetric", axis: int | None = None) -> Quantized:
    """Quantize a tensor to signed integers, rounding to nearest, ties to even.

    Formula: symmetric: scale = max|x| / (2^(bits-1) - 1), zero point 0, the lowest integer unused; affine: scale =
    (max(x, 0) - min(x, 0)) / (2^bits - 1), zero point chosen so that 0 stays exact. The error is at most scale / 2.
    Source: Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference,
    CVPR 2018.

    Args:
        values: a tensor of finite numbers.
        bits: width of the integers, 2 to 32.
        scheme: "symmetric" or "affine".
        axis: the channels' axis for a scale per channel; without it, one scale for the tensor.

    Raises:
        InvalidValue: if the tensor is empty or not finite, the bits lie outside, the axis does not exist, or the
            scheme is unknown.

    >>> q = quantize([-1.0, 0.0, 0.5, 2.54])
    >>> q.codes.tolist(), round(float(q.scale), 3)
    ([-50, 0, 25, 127], 0.02)
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0 or not np.isfinite(x).all():
        raise InvalidValue("values are empty or not all finite: nothing sets a scale")
    low, high = IntFormat(bits).min, IntFormat(bits).max
    others = _other_axes(x, axis)
    if one_of("scheme", scheme, ("symmetric", "affine")) == "symmetric":
        scale = np.abs(x).max(axis=others, keepdims=axis is not None) / high
        zero_point = np.zeros_like(scale, dtype=np.int64)
    else:
        largest = np.maximum(x.max(axis=others, keepdims=axis is not None), 0)
        smallest = np.minimum(x.min(axis=others, keepdims=axis is not None), 0)
        scale = (largest - smallest) / (high - low)
        zero_point = (low - np.rint(smallest / _no_zero(scale))).astype(np.int64)
    scale = _no_zero(scale)
    codes = np.clip(np.rint(x / scale) + zero_point, low, high).astype(np.int64)
    return Quantized(codes, scale, zero_point, bits)


def quantization_error(values: ArrayLike, quantized: Quantized) -> QuantizationError:
    """The error of a quantized tensor against its original.

    Formula: with e = x - scale (q - zero_point): max|e|, sqrt(mean(e^2)), 10 log10(mean(x^2) / mean(e^2)).

    Args:
        values: the original.
        quantized: what `quantize` made of it.

    Raises:
        InvalidValue: if the shapes differ.

    >>> round(quantization_error([-1.0, 0.003, 1.0], quantize([-1.0, 0.003, 1.0])).largest, 6)
    0.003
    """
    x = np.asarray(values, dtype=np.float64)
    if x.shape != quantized.codes.shape:
        raise InvalidValue(
            f"values have shape {x.shape}, the quantized tensor {quantized.codes.shape}: they must agree"
        )
    error = x - quantized.dequantize()
    signal, noise = float(np.mean(x**2)), float(np.mean(error**2))
    snr_db = 10 * np.log10(signal / noise) if noise else np.inf
    return QuantizationError(float(np.abs(error).max()), noise**0.5, float(snr_db))


def _other_axes(x: FloatArray, axis: int | None) -> tuple[int, ...] | None:
    if axis is None:
        return None
    if not -x.ndim <= axis < x.ndim:
        raise InvalidValue(f"axis is {axis}: the tensor has axes 0 to {x.ndim - 1}")
    return tuple(i for i in range(x.ndim) if i != axis % x.ndim)


def _no_zero(scale: FloatArray) -> FloatArray:
    """A scale of 1 where all values are 0, which any scale represents."""
    result: FloatArray = np.where(scale == 0, 1.0, scale)
    return result
