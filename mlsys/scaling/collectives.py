"""Many chips: collectives on a ring, and how far a step speeds up."""

from mlsys.core.arguments import Amount, amount, positive_amount, positive_int
from mlsys.errors import InvalidValue
from mlsys.units import Quantity, ureg


def ring_all_reduce_time(
    bytes: Amount,  # noqa: A002 (the field's name for the size of what is reduced)
    n: int,
    bandwidth_per_direction: Amount,
    latency_per_step: Amount = 0.0,
) -> Quantity:
    """Time to sum a buffer over n ranks on a ring so that every rank has the result.

    Formula: bytes / B x 2 (n - 1) / n, plus 2 (n - 1) steps of latency. Every rank sends and receives at once, so B is
    the link's bandwidth in one direction, not both together.
    Source: nccl-tests, doc/PERFORMANCE.md; Patarasuk and Yuan, Bandwidth Optimal All-reduce Algorithms for Clusters of
    Workstations, JPDC 2009.

    Args:
        bytes: size of the buffer of one rank.
        n: ranks; with one, nothing is sent.
        bandwidth_per_direction: B, byte/second.
        latency_per_step: seconds before the first byte of a step arrives.

    Raises:
        InvalidValue: if a value is negative, the bandwidth zero, or n no positive integer.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB, second
    >>> round(ring_all_reduce_time(1 * GB, 8, 300 * GB / second).to("ms"), 2)
    <Quantity(5.83, 'millisecond')>
    """
    halves: Quantity = 2 * ring_reduce_scatter_time(bytes, n, bandwidth_per_direction, latency_per_step)
    return halves


def ring_reduce_scatter_time(
    bytes: Amount,  # noqa: A002
    n: int,
    bandwidth_per_direction: Amount,
    latency_per_step: Amount = 0.0,
) -> Quantity:
    """Time to sum a buffer over n ranks on a ring so that every rank has an n-th of the result.

    Formula: bytes / B x (n - 1) / n, plus n - 1 steps of latency.
    Source: nccl-tests, doc/PERFORMANCE.md.

    Args:
        bytes: size of the whole buffer.
        n: ranks; with one, nothing is sent.
        bandwidth_per_direction: B, byte/second.
        latency_per_step: seconds before the first byte of a step arrives.

    Raises:
        InvalidValue: if a value is negative, the bandwidth zero, or n no positive integer.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> ring_reduce_scatter_time(8e9, 8, 7e9)
    <Quantity(1.0, 'second')>
    """
    steps = positive_int("n", n) - 1
    sent_by_rank = amount("bytes", bytes, "byte") * steps / n
    sending_s = sent_by_rank / positive_amount("bandwidth_per_direction", bandwidth_per_direction, "byte/second")
    return ureg.Quantity(sending_s + steps * amount("latency_per_step", latency_per_step, "second"), "second")


def ring_all_gather_time(
    bytes: Amount,  # noqa: A002
    n: int,
    bandwidth_per_direction: Amount,
    latency_per_step: Amount = 0.0,
) -> Quantity:
    """Time to hand the n parts of a buffer round a ring so that every rank has the whole.

    Formula, arguments, errors and source: those of `ring_reduce_scatter_time`, whose steps it runs without the sums.

    >>> ring_all_gather_time(8e9, 8, 7e9)
    <Quantity(1.0, 'second')>
    """
    return ring_reduce_scatter_time(bytes, n, bandwidth_per_direction, latency_per_step)


def step_time(compute: Amount, communication: Amount, overlap: float = 0.0) -> Quantity:
    """Time of a training step of which a share of the communication hides behind computing.

    Formula: compute + communication - min(overlap communication, compute): the sum without overlap, the longer of the
    two with full overlap.

    Args:
        compute: seconds of computing.
        communication: seconds of communication.
        overlap: share of the communication that may run beside computing, 0 to 1.

    Raises:
        InvalidValue: if a value is negative or the overlap is out of range.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import ms
    >>> step_time(10 * ms, 4 * ms).to("ms"), step_time(10 * ms, 4 * ms, overlap=1).to("ms")
    (<Quantity(14.0, 'millisecond')>, <Quantity(10.0, 'millisecond')>)
    """
    if not 0 <= overlap <= 1:
        raise InvalidValue(f"overlap is {overlap!r}: a share is between 0 and 1; nearest: {1 if overlap > 1 else 0}")
    computing_s, sending_s = amount("compute", compute, "second"), amount("communication", communication, "second")
    return ureg.Quantity(computing_s + sending_s - min(overlap * sending_s, computing_s), "second")


def scaling_efficiency(compute: Amount, communication: Amount, overlap: float = 0.0) -> float:
    """Share of a step's time in which the chips do what one chip alone would do: compute / `step_time`.

    Weak scaling: the work of each chip stays the same. Arguments and errors are those of `step_time`; compute must be
    more than zero.

    >>> from mlsys.units import ms
    >>> round(scaling_efficiency(50 * ms, 5.83 * ms), 2)
    0.9
    """
    computing_s = positive_amount("compute", compute, "second")
    return float(computing_s / step_time(compute, communication, overlap).m_as("second"))


def speedup(n: int, compute: Amount, communication: Amount, overlap: float = 0.0) -> float:
    """Work done by n chips over that of one in the same time: n x `scaling_efficiency`.

    Args:
        n: chips.
        compute: seconds of computing in a step.
        communication: seconds of communication in a step.
        overlap: share of the communication that may run beside computing, 0 to 1.

    Raises:
        InvalidValue: if a value is negative, compute is zero, the overlap is out of range, or n is no positive integer.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import GB, ms, second
    >>> reduction = ring_all_reduce_time(1 * GB, 8, 300 * GB / second)
    >>> round(speedup(8, 50 * ms, reduction), 2), speedup(8, 50 * ms, reduction, overlap=1)
    (7.16, 8.0)
    """
    return positive_int("n", n) * scaling_efficiency(compute, communication, overlap)


def training_time(flops: Amount, chips: int, peak: Amount, utilization: float = 1.0) -> Quantity:
    """Time to do a training run's FLOPs: flops / (chips peak utilization).

    Args:
        flops: FLOPs of the whole run.
        chips: number of chips.
        peak: flop/second of one chip.
        utilization: share of the peak that is reached, above 0 and up to 1.

    Raises:
        InvalidValue: if a value is negative, the peak zero, chips no positive integer, or the utilization outside.
        pint.DimensionalityError: if a quantity has another dimension.

    >>> from mlsys.units import TFLOP, second
    >>> round(training_time(3.14e23, 1, 989.4 * TFLOP / second).to("year"), 1)
    <Quantity(10.1, 'year')>
    """
    if not 0 < utilization <= 1:
        raise InvalidValue(f"utilization is {utilization!r}: a share of the peak is above 0 and at most 1")
    rate = positive_int("chips", chips) * positive_amount("peak", peak, "flop/second") * utilization
    return ureg.Quantity(amount("flops", flops, "flop") / rate, "second")
