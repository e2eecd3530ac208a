"""Rung 10, persistent: as many programs as there are SMs, each of which computes one tile of C after the other.

In rung 9 an SM stands still while a program stores its tile and the next one fetches its first: nothing else
fits beside it, and the profile shows the tensor cores still at 87%. A persistent program starts to fetch the
next tile while this one is stored. That is the course's fastest product, with its reasons and its rule for
other shapes: see `persistent_kernel` in `../fast.py`, which this rung calls.
"""

import sys
from pathlib import Path

from harness import climb  # before triton: without a GPU it turns on Triton's interpreter

# isort: split

import torch

sys.path.insert(1, str(Path(__file__).parents[1]))

import fast

NEEDS = fast.NEEDS
COMPILED_ONLY = True
"""`fast.py` refuses a CPU, so Triton's interpreter does not run this rung."""


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Write A B into `out`; matrices whose rows the TMA cannot take are copied first."""
    fast.matmul(a, b, out, fast.LARGE)


if __name__ == "__main__":
    climb(__file__)
