"""A sandbox that judges, and programs of a few cells to judge in it."""

import pytest

from mlsys.judge.run_tests import judge
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.session import QuestionCells, Session
from mlsys.judge.shared.messages import Cell
from mlsys.judge.site import site

SETUP = "import torch, triton, triton.language as tl\nfrom mlsys import grading\nSIZE = 4"
LAUNCH = """
def launch_copy(kernel, constants, out, x):
    kernel[(triton.cdiv(x.numel(), constants["TILE"]),)](x, out, x.numel(), **constants)
"""
COPY = """
@triton.jit
def copy_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size), mask=i < size)


def copy(x):
    out = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 16),)](x, out, x.numel(), TILE=16)
    return out
"""


@pytest.fixture(scope="session")
def judging_sandbox():
    with Sandbox(site(), Limits(cpu_s=2, wall_s=6), index=7) as sandbox:
        yield sandbox


@pytest.fixture
def session(judging_sandbox):
    """Open a session with the cells of an answer; closed afterwards."""
    opened = []

    def open_session(answer, setup=SETUP + LAUNCH):
        opened.append(Session(judging_sandbox, question_cells(answer, setup), "cpu"))
        return opened[-1]

    yield open_session
    for one in opened:
        one.close()


@pytest.fixture
def verdict(judging_sandbox):
    """Judge an answer by tests."""

    def find(answer, tests, setup=SETUP + LAUNCH):
        return judge(judging_sandbox, question_cells(answer, setup), tests, "tests of q", device="cpu", seed=3)

    return find


def question_cells(answer, setup):
    """A setup cell and one answer."""
    cells = [
        Cell("setup", "setup s", setup),
        Cell("answer", "your answer q", answer),
    ]
    return QuestionCells(cells[:1], cells)
