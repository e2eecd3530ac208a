"""Fragments of tensor-core operands, against the layout that Triton's compiler uses for the same instruction."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlsys.errors import InvalidValue, UnknownName
from mlsys.hardware.fragments import SHAPES, Operand, fragment, holder


def test_tritons_compiler_puts_every_element_into_the_same_lane_and_register() -> None:
    gluon = pytest.importorskip("triton.experimental.gluon.language", reason="this triton has no gluon")
    mma = gluon.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[1, 1], instr_shape=[16, 8])
    layouts: dict[Operand, Any] = {
        "A": gluon.DotOperandLayout(operand_index=0, parent=mma, k_width=2),
        "B": gluon.DotOperandLayout(operand_index=1, parent=mma, k_width=2),
        "C": mma,
    }
    for operand, layout in layouts.items():
        lines = layout.format_tensor_view(list(SHAPES[operand])).strip().splitlines()
        rows = [[(int(lane), int(i)) for lane, i in re.findall(r"T\s*(\d+):\s*(\d+)", line)] for line in lines]
        assert np.shape(rows)[:2] == SHAPES[operand]
        for row, held in enumerate(rows):
            for column, lane_and_register in enumerate(held):
                assert holder(operand, row, column) == lane_and_register, (operand, row, column)


@pytest.mark.parametrize("operand", SHAPES)
def test_every_element_is_held_once(operand: Operand) -> None:
    held = [place for lane in range(32) for place in fragment(operand, lane)]
    assert sorted(held) == list(np.ndindex(SHAPES[operand]))


def test_what_a_lane_needs_for_its_sums_is_in_other_lanes_too() -> None:
    needed = {(row, k) for row, _ in fragment("C", 0) for k in range(16)}
    assert len(needed & set(fragment("A", 0))) == 8
    assert {holder("A", *place)[0] for place in needed} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fragment("D", 0), UnknownName, "A, B, C"),  # type: ignore[arg-type]
        (lambda: fragment("A", 32), InvalidValue, "at most 31, got 32"),
        (lambda: fragment("A", -1), InvalidValue, "got -1"),
        (lambda: holder("B", 3, 8), InvalidValue, "16 rows and 8 columns"),
        (lambda: holder("C", -1, 0), InvalidValue, "no element"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
