"""The time of a kernel at one shape beside its reference's, as it is kept in records."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Timed:
    """One shape of a race.

    Attributes:
        device: name of the GPU.
        shape: the shape, such as "2048 x 2048 x 2048".
        dtype: number format of the tensors.
        time_s: seconds of one call of the student's kernel.
        reference_s: seconds of one call of the reference.
        ratio: reference / student.
        flops: FLOPs of the operation; 0 where the question does not say.
        moved_bytes: bytes that it must move at least; 0 where the question does not say.
    """

    device: str
    shape: str
    dtype: str
    time_s: float
    reference_s: float
    ratio: float
    flops: float = 0.0
    moved_bytes: float = 0.0
