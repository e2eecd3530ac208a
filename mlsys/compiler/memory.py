"""Fifth stage: give every intermediate tensor a place in one block of memory, by the times at which it is needed."""

from dataclasses import replace

from mlsys.compiler.ir.program import Program
from mlsys.runtime import plan_memory

ALIGNMENT = 256
"""Bytes to which a tensor's place is rounded, as CUDA's own allocator does; vectors are loaded from multiples of 16."""


def plan(program: Program) -> Program:
    """Place the tensors that kernels pass on to each other; inputs, constants and outputs have memory of their own."""
    lifetimes: dict[str, tuple[int, int, int]] = {}
    for number, kernel in enumerate(program.kernels):
        if kernel.result.name not in program.graph.outputs:
            lifetimes[kernel.result.name] = (number, number + 1, -(-kernel.result.nbytes // ALIGNMENT) * ALIGNMENT)
        for load in kernel.element.loads:
            if load.detail in lifetimes:
                first, _, size = lifetimes[load.detail]
                lifetimes[load.detail] = (first, number + 1, size)
    offsets = dict(zip(lifetimes, plan_memory(list(lifetimes.values())), strict=True))
    return replace(program, lifetimes=lifetimes, offsets=offsets)
