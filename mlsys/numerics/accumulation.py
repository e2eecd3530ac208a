"""Sums in a format of few bits."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlsys.numerics.formats import float_format


def running_sum(values: ArrayLike, accumulator: str = "fp32") -> float:
    """Sum one by one, rounding to the accumulator's format after every addition.

    Args:
        values: a vector.
        accumulator: format of the sum.

    Raises:
        UnknownName: if there is no such format.

    >>> import numpy as np
    >>> running_sum(np.ones(4096), "fp16"), running_sum(np.ones(4096), "fp32")
    (2048.0, 4096.0)
    """
    target = float_format(accumulator)
    total: Any = 0.0
    for value in np.asarray(values, dtype=np.float64).ravel():
        total = target.round(total + value)
    return float(total)
