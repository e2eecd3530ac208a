"""What serving a model takes: memory for weights, the batch that reaches the ridge, time and rate of decoding."""

from pint import Unit

from mlsys import ops
from mlsys.core.arguments import Amount, amount, positive_amount, positive_int
from mlsys.core.dtypes import bytes_per_element
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


def model_memory(params: Amount, bytes_per_param: Amount, unit: Unit | str) -> float:
    """Memory of a model's parameters, as a number of `unit`s: params x bytes_per_param.

    Args:
        params: a number, or a quantity of param.
        bytes_per_param: a number of bytes, or a quantity of byte or of byte/param.
        unit: unit of the answer, such as `GB` or `GiB`.

    Raises:
        InvalidValue: if a value is negative.
        pint.DimensionalityError: if a quantity or the unit has another dimension.

    >>> from mlsys.units import GB, GiB, byte, param
    >>> model_memory(7e9, 2 * byte, GB), round(model_memory(7e9 * param, 2 * byte / param, GiB), 2)
    (14.0, 13.04)
    """
    per_param = isinstance(bytes_per_param, ureg.Quantity) and bytes_per_param.check("[information] / [parameter]")
    size = amount("bytes_per_param", bytes_per_param, "byte/param" if per_param else "byte")
    return float(ureg.Quantity(amount("params", params, "param") * size, "byte").m_as(unit))


def batch_intensity(batch: int, m: int, n: int | None = None, dtype: str = "fp16") -> Quantity:
    """Arithmetic intensity of a dense layer of m inputs and n outputs, every matrix moved once.

    Formula: 2 B m n / (size (B m + m n + B n)); about B at 2 bytes while the weights dominate, and never above
    m n / (m + n), the limit of an infinite batch.

    Args:
        batch: B, samples or tokens.
        m: inputs of the layer.
        n: outputs of the layer; without it, m.
        dtype: number format of activations and weights.

    Raises:
        InvalidValue: if a size is not a positive integer.
        UnknownName: if the dtype is unknown.

    >>> round(batch_intensity(256, 2048), 1)
    <Quantity(204.8, 'flop / byte')>
    """
    return ops.linear(batch=batch, d_in=m, d_out=m if n is None else n, dtype=dtype).intensity


def crossing_batch(ridge: Amount, m: int, n: int | None = None, dtype: str = "fp16") -> float:
    """Batch at which a dense layer reaches a ridge point: above it the layer is compute-bound.

    Formula: B* = size R m n / (2 m n - size R (m + n)); at 2 bytes and m = n, R m / (m - 2 R).

    Args:
        ridge: R, flop/byte.
        m: inputs of the layer.
        n: outputs of the layer; without it, m.
        dtype: number format of activations and weights.

    Raises:
        InvalidValue: if no batch reaches the ridge, or a size is not a positive integer.
        pint.DimensionalityError: if the ridge has another dimension.

    >>> round(crossing_batch(153, 2048))
    180
    """
    n = m if n is None else n
    m, n = positive_int("m", m), positive_int("n", n)
    bytes_at_ridge = bytes_per_element(dtype) * positive_amount("ridge", ridge, "flop/byte")
    slack = 2 * m * n - bytes_at_ridge * (m + n)
    if slack <= 0:
        limit = 2 * m * n / (m + n) / bytes_per_element(dtype)
        raise InvalidValue(
            f"no batch of a {m} x {n} layer in {dtype} reaches {ridge} FLOP/byte: its intensity stays below {limit:.1f}"
        )
    return bytes_at_ridge * m * n / slack


def token_latency(
    weights: Amount,
    bandwidth: Amount,
    kv_cache: Amount = 0.0,
    batch: int = 1,
    flops_per_token: Amount = 0.0,
    peak: Amount | None = None,
) -> Quantity:
    """Time of one decoding step: weights once and every sequence's KV cache cross the memory interface.

    Formula: (weights + batch kv_cache) / bandwidth, or batch flops_per_token / peak if that is longer.

    Args:
        weights: bytes of all weights that a token needs.
        bandwidth: byte/second.
        kv_cache: bytes of the cache of one sequence.
        batch: sequences that are decoded together.
        flops_per_token: FLOPs for one token, if arithmetic may limit.
        peak: flop/second, if arithmetic may limit.

    Raises:
        InvalidValue: if a value is negative, a rate zero, the batch no positive integer, or FLOPs come without a peak.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB, TB, second
    >>> round(token_latency(14 * GB, 3.35 * TB / second, kv_cache=1.07 * GB, batch=32).to("ms"), 1)
    <Quantity(14.4, 'millisecond')>
    """
    batch = positive_int("batch", batch)
    moved = amount("weights", weights, "byte") + batch * amount("kv_cache", kv_cache, "byte")
    moving = moved / positive_amount("bandwidth", bandwidth, "byte/second")
    work = batch * amount("flops_per_token", flops_per_token, "flop")
    if peak is None:
        if work:
            raise InvalidValue(f"flops_per_token is {flops_per_token}: give the peak that computes them too")
        return ureg.Quantity(moving, "second")
    return ureg.Quantity(max(moving, work / positive_amount("peak", peak, "flop/second")), "second")


def decode_throughput(
    weights: Amount,
    bandwidth: Amount,
    kv_cache: Amount = 0.0,
    batch: int = 1,
    flops_per_token: Amount = 0.0,
    peak: Amount | None = None,
) -> Quantity:
    """Ceiling of a decoder's tokens per second over all sequences: batch / `token_latency`, with its arguments.

    Raises:
        InvalidValue: as `token_latency`; also if nothing takes any time.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB, TB, second
    >>> round(decode_throughput(3 * GB, 2.039 * TB / second))
    <Quantity(680, 'token / second')>
    """
    step_s = token_latency(weights, bandwidth, kv_cache, batch, flops_per_token, peak).m_as("second")
    if step_s == 0:
        raise InvalidValue("weights, kv_cache and flops_per_token are all 0: a step must move or compute something")
    return ureg.Quantity(batch / step_s, "token/second")
