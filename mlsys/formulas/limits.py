"""Times and rates that hardware allows: the iron law, balance, and the two ceilings of a roofline."""

from mlsys.core.arguments import Amount, amount, positive_amount
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


def iron_law(
    data: Amount,
    bandwidth: Amount,
    operations: Amount,
    peak: Amount,
    efficiency: float = 1.0,
    latency: Amount = 0.0,
    overlap: bool = False,
) -> Quantity:
    """Time of a job: moving its data, computing, and what is fixed.

    Formula: T = D / BW + O / (R_peak eta) + L; with perfect overlap, max(D / BW, O / (R_peak eta)) + L.

    Args:
        data: D, bytes to move.
        bandwidth: BW, byte/second.
        operations: O, FLOPs.
        peak: R_peak, flop/second.
        efficiency: eta, share of the peak that is reached, above 0 and up to 1.
        latency: L, seconds.
        overlap: whether movement and arithmetic hide each other.

    Raises:
        InvalidValue: if a value is negative, a rate is zero, or the efficiency is out of range.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB, TB, TFLOP, ms, second
    >>> iron_law(3.35 * GB, 3.35 * TB / second, 989 * TFLOP, 989 * TFLOP / second, 0.5, 1 * ms)
    <Quantity(2.002, 'second')>
    """
    if not 0 < efficiency <= 1:
        raise InvalidValue(f"efficiency is {efficiency!r}: a share of the peak is above 0 and at most 1")
    moving = amount("data", data, "byte") / positive_amount("bandwidth", bandwidth, "byte/second")
    computing = amount("operations", operations, "flop") / (positive_amount("peak", peak, "flop/second") * efficiency)
    busy = max(moving, computing) if overlap else moving + computing
    return ureg.Quantity(busy + amount("latency", latency, "second"), "second")


def hardware_balance(peak: Amount, bandwidth: Amount) -> Quantity:
    """FLOPs that a chip can do in the time it moves a byte: its ridge point, peak / bandwidth.

    Args:
        peak: flop/second.
        bandwidth: byte/second.

    Raises:
        InvalidValue: if a rate is not positive.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys import Hardware
    >>> chip = Hardware.get("h100-sxm")
    >>> round(hardware_balance(chip.peak("fp16"), chip.memory_bw))
    <Quantity(295, 'flop / byte')>
    """
    ratio = positive_amount("peak", peak, "flop/second") / positive_amount("bandwidth", bandwidth, "byte/second")
    return ureg.Quantity(ratio, "flop/byte")


def attainable(peak: Amount, bandwidth: Amount, intensity: Amount) -> Quantity:
    """The rate that a roofline allows: min(peak, bandwidth x intensity), in TFLOP/s.

    Source: Williams, Waterman, Patterson, Roofline, CACM 2009.

    Args:
        peak: flop/second.
        bandwidth: byte/second.
        intensity: arithmetic intensity, flop/byte.

    Raises:
        InvalidValue: if a rate is not positive or the intensity negative.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import TB, TFLOP, second
    >>> attainable(300 * TFLOP / second, 2 * TB / second, 30)
    <Quantity(60.0, 'teraflop / second')>
    """
    slope = positive_amount("bandwidth", bandwidth, "byte/second") * amount("intensity", intensity, "flop/byte")
    return ureg.Quantity(min(positive_amount("peak", peak, "flop/second"), slope), "flop/second").to("TFLOP/second")


def required_bandwidth(rate: Amount, intensity: Amount) -> Quantity:
    """Bandwidth that feeds a rate of computing: rate / intensity, in TB/s.

    Args:
        rate: wanted flop/second.
        intensity: arithmetic intensity, flop/byte.

    Raises:
        InvalidValue: if the rate is negative or the intensity not positive.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import TFLOP, second
    >>> round(required_bandwidth(312 * TFLOP / second, 31.0), 1)
    <Quantity(10.1, 'terabyte / second')>
    """
    needed = amount("rate", rate, "flop/second") / positive_amount("intensity", intensity, "flop/byte")
    return ureg.Quantity(needed, "byte/second").to("TB/second")
