"""Random inputs for tests: sizes, layouts and values that follow from a seed.

In a student's notebook the seed is public, so a failing test fails again on the next run. When a class is graded the
seed is made of a secret of the course and the run's number, so that knowing the tests' code does not help.

A student's code sees what the tests before it have drawn. So every draw has its own generator, whose key is an
HMAC-SHA-256 of the question and the number of the draw, with the seed as the secret. What one draw shows, down to the
state of its generator, tells nothing about another draw as long as nobody can invert SHA-256, and all bits of the seed
count. The same seed, question and order of calls give the same numbers under the same version of numpy.
"""

import hmac
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mlsys.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

SEED_VARIABLE = "MLSYS_GRADING_SEED"
PUBLIC_SEED = "public"
LAYOUTS = ("row", "column", "sliced", "offset")
VALUES = ("normal", "positive", "negative", "climbing")


def torch_seed(seed: int) -> int:
    """Return a seed for torch's own generators that tells nothing about `seed`.

    Torch's generator on a CPU uses 32 bits of its seed, which can be found by trial from the numbers that it gives.
    """
    return int.from_bytes(hmac.digest(str(seed).encode(), b"torch", "sha256")[:8], "big") >> 1


class Draws:
    """A sequence of random sizes and matrices; the same question and seed give the same one.

    Args:
        question: names the sequence; two `Draws` of the same question and seed give the same numbers.
        device: device of the matrices, by torch's name; on "meta" they have shapes and no numbers.
    """

    def __init__(self, question: str, device: str = "cpu") -> None:
        self._seed = os.environ.get(SEED_VARIABLE, PUBLIC_SEED).encode()
        self._question = question
        self._drawn = 0
        self.device = device

    def _generator(self) -> np.random.Generator:
        """Return the generator of the next draw, and of that one alone."""
        key = hmac.digest(self._seed, f"{self._question}/{self._drawn}".encode(), "sha256")
        self._drawn += 1
        # Numpy's pool holds 128 bits unless it is told otherwise.
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(int.from_bytes(key, "big"), pool_size=8)))

    def integer(self, low: int, high: int) -> int:
        """Draw an integer from low to high, both included."""
        return int(self._generator().integers(low, high, endpoint=True))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Draw an order of these items: with it, no answer follows from the number of a call.

        >>> sorted(Draws("a").shuffled("bca"))
        ['a', 'b', 'c']
        """
        return [items[index] for index in self._generator().permutation(len(items))]

    def ragged(self, low: int, high: int, tile: int = 16) -> int:
        """Draw an integer from low to high that `tile` does not divide."""
        allowed = [size for size in range(low, high + 1) if size % tile]
        if not allowed:
            raise InvalidValue(f"every integer from {low} to {high} is a multiple of {tile}: widen the range")
        return allowed[self.integer(0, len(allowed) - 1)]

    def matrix(
        self, rows: int, cols: int, *, dtype: str = "float32", layout: str = "row", values: str = "normal"
    ) -> "torch.Tensor":
        """Draw a matrix of shape (rows, cols).

        Args:
            rows: number of rows.
            cols: number of columns.
            dtype: torch dtype by name.
            layout: "row" (contiguous), "column" (a transposed view), "sliced" (every second row and third column of a
                larger matrix) or "offset" (a window inside a larger matrix).
            values: "normal" (mean 0, deviation 1), "positive" (all between 0.5 and 1), "negative" (all between -1 and
                -0.5) or "climbing" (positive in the first half of the columns, negative in the second, so that sums
                along a row climb and come back). Where a result has few elements and each is a sum, choose terms of
                one sign: with both signs, a sum is nearly 0 for about one seed in a hundred, and has no right digits.
        """
        import torch

        if layout not in LAYOUTS:
            raise UnknownName.of("layout", layout, LAYOUTS)
        full = self._values(rows, cols, values).to(device=self.device, dtype=getattr(torch, dtype))
        if layout == "row":
            return full
        if layout == "column":
            return full.T.contiguous().T
        if layout == "sliced":
            larger = torch.zeros(2 * rows, 3 * cols, device=self.device, dtype=full.dtype)
            view = larger[::2, 1::3]
        else:
            larger = torch.zeros(rows + 5, cols + 7, device=self.device, dtype=full.dtype)
            view = larger[2 : 2 + rows, 3 : 3 + cols]
        return view.copy_(full)

    def _values(self, rows: int, cols: int, values: str) -> "torch.Tensor":
        import torch

        if values not in VALUES:
            raise UnknownName.of("values", values, VALUES)
        if self.device == "meta":
            return torch.empty(rows, cols, device="meta")
        generator = self._generator()
        if values == "normal":
            return torch.from_numpy(generator.standard_normal((rows, cols), dtype=np.float32))
        uniform = torch.from_numpy(generator.random((rows, cols), dtype=np.float32)).mul_(0.5).add_(0.5)
        if values == "negative":
            return -uniform
        if values == "climbing":
            uniform[:, cols // 2 :] *= -1
        return uniform
