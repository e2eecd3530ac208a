"""Leaving out work in Triton's interpreter changes no result and leaves nothing behind."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.proof

PROGRAM = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import sys
import torch
import triton
import triton.language as tl

if "quick" in sys.argv:
    from mlsys.judge.sandbox.inside.quick_interpreter import skip_unread_work
    skip_unread_work()


@triton.jit
def inner(x, STEP: tl.constexpr):
    return x * STEP + tl.cdiv(x, 3) - 1


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tile = tl.reshape(x, (16, 16)).to(tl.float32)
    product = tl.dot(tile, tl.trans(tile), input_precision="ieee")
    total = tl.sum(product, axis=1).to(tl.int32)
    y = inner(x, 7) + tl.max(total, axis=0) + tl.where(x % 2 == 0, x << 2, x ^ i)
    y += tile.numel // tile.shape[0] + tl.zeros((BLOCK,), dtype=tl.int16)
    tl.store(y_ptr + i, y, mask=i < n)


@triton.jit
def ragged(y_ptr, SIDE: tl.constexpr, OTHER: tl.constexpr):
    y = tl.zeros((SIDE, OTHER), dtype=tl.float32)
    tl.store(y_ptr + tl.arange(0, 16)[:, None] + tl.arange(0, 16)[None, :], y)


plain = tl.load, tl.core.tensor.__add__, tl.math.exp
x = torch.arange(-200, 400, dtype=torch.int32)
x[7] = 2**31 - 1  # its multiples overflow, as on a GPU
y = torch.zeros_like(x)
for _ in range(2):
    kernel[(3,)](x, y, len(x), BLOCK=256)
assert plain == (tl.load, tl.core.tensor.__add__, tl.math.exp)
print(y.tolist())
for sides in [(16, 16), (16.0, 16), (12, 16), (16, 1 << 21), (True, 16), (16, 32)]:
    try:
        ragged[(1,)](torch.zeros(31), *sides)
        print(sides, "stored")
    except Exception as error:
        print(sides, type(error), error, error.__cause__)
"""


def results(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "program.py", *arguments], env=os.environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_every_result_is_the_same_and_the_language_is_put_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)
    plain = results()
    assert len(plain) > 1000
    assert plain.count("Error") > 4
    assert results("quick") == plain
