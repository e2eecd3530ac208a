"""Kernels made from their checked source: several in one process, as a question with two kernels has them."""

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, torch
from mlsys.grading import inspect
from mlsys.grading.kernels.source import kernel_source
from mlsys.judge.inside.checked_kernel import define, files_of

FIRST = '''@triton.jit
def first(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + index, 2 * tl.load(x_ptr + index, mask=index < N, other=0.0))
'''
SECOND = '''@triton.jit
def second(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    here = lanes < N
    tl.store(y_ptr + lanes, tl.load(x_ptr + lanes, mask=here, other=0.0), mask=here)
'''
THIRD = '''@triton.jit
def third(y_ptr, BLOCK: tl.constexpr):
    \"\"\"Store the program's number, whichever program comes last.\"\"\"
    # A comment and the line above it are not in the text that is checked.
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.program_id(0))
'''
first = define(kernel_source([FIRST], "first"), "your kernel")
second = define(kernel_source([SECOND], "second"), "your kernel")
x, y = torch.ones(40), torch.zeros(40)
findings = inspect(first, (2,), x, y, 40, BLOCK=32)
right = inspect(second, (1,), x, y, 40, BLOCK=64)
findings += inspect(define(kernel_source([THIRD], "third"), "your kernel"), (2,), y, BLOCK=32)[:1]
print(json.dumps([[str(one) for one in findings], len(right), len(files_of("your kernel")), type(first).__name__]))
"""


@pytest.mark.parametrize(("interpret", "kind"), [("1", "InterpretedFunction"), ("", "JITFunction")])
def test_each_of_two_kernels_is_inspected_from_its_own_lines(interpret: str, kind: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"TRITON_INTERPRET": interpret} if interpret else {}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    findings, wrong, files, found_kind = json.loads(done.stdout)
    assert (len(findings), wrong, files, found_kind) == (2, 0, 3, kind)
    # The line is that of the cell, not of the text that was checked, which begins with two imports.
    assert "line 4 (`tl.store(y_ptr + index, 2 * tl.load(x_ptr + index, mask=index < N" in findings[0]
    assert findings[1].startswith("CONFLICTING STORES: line 5 (`tl.store(")
    assert "in line" not in findings[1]  # both programs store in the line that the message begins with
