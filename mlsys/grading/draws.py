"""Seeded draws of sizes, layouts and values for tests.

In a student's notebook the seed is public, so a failing test fails again on the next run. When a class is graded the
seed is made of a secret of the course and the run's number, so that knowing the tests' code gives no answer.
"""

import hashlib
import os
from typing import TYPE_CHECKING

from mlsys.errors import InvalidValue, UnknownName

if TYPE_CHECKING:
    import torch

SEED_VARIABLE = "MLSYS_GRADING_SEED"
PUBLIC_SEED = "public"
LAYOUTS = ("row", "column", "sliced", "offset")
VALUES = ("normal", "positive", "negative", "climbing")


class Draws:
    """A stream of random sizes and matrices; the same question and seed give the same stream."""

    def __init__(self, question: str, device: str = "cpu") -> None:
        import torch

        seed = hashlib.sha256(f"{os.environ.get(SEED_VARIABLE, PUBLIC_SEED)}/{question}".encode()).digest()
        self.generator = torch.Generator().manual_seed(int.from_bytes(seed[:8], "big") >> 1)
        self.device = device

    def integer(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        import torch

        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def ragged(self, low: int, high: int, tile: int = 16) -> int:
        """An integer from low to high that `tile` does not divide."""
        allowed = [size for size in range(low, high + 1) if size % tile]
        if not allowed:
            raise InvalidValue(f"every integer from {low} to {high} is a multiple of {tile}: widen the range")
        return allowed[self.integer(0, len(allowed) - 1)]

    def matrix(
        self, rows: int, cols: int, *, dtype: str = "float32", layout: str = "row", values: str = "normal"
    ) -> "torch.Tensor":
        """A matrix of shape (rows, cols).

        Args:
            rows: number of rows.
            cols: number of columns.
            dtype: torch dtype by name.
            layout: "row" (contiguous), "column" (a transposed view), "sliced" (every second row and third column of a
                larger matrix) or "offset" (a window inside a larger matrix).
            values: "normal" (mean 0, deviation 1), "positive" (all between 0.5 and 1), "negative" (all between -1 and
                -0.5) or "climbing" (positive in the first half of the columns, negative in the second, so that sums
                along a row climb and come back). Where a result has few elements and each is a sum, choose terms of
                one sign: a sum of both signs is all but 0 for one seed in some hundred, and has no right digits then.
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

        if values == "normal":
            return torch.randn(rows, cols, generator=self.generator)
        if values not in VALUES:
            raise UnknownName.of("values", values, VALUES)
        uniform = 0.5 + 0.5 * torch.rand(rows, cols, generator=self.generator)
        if values == "negative":
            return -uniform
        if values == "climbing":
            uniform[:, cols // 2 :] *= -1
        return uniform
