"""Fifth stage: give every intermediate tensor a place in one block of memory, by the times at which it is needed."""

from collections.abc import Mapping
from dataclasses import dataclass

from mlsys.compiler.ir.expression import Load, walk
from mlsys.compiler.schedule import Schedule
from mlsys.runtime import plan_memory

ALIGNMENT = 256
"""Bytes to which a tensor's place is rounded, as CUDA's own allocator does; vectors are loaded from multiples of 16."""


@dataclass(frozen=True)
class Plan:
    """Places of the intermediate tensors.

    Attributes:
        schedule: the kernels.
        offsets: bytes from the start of the block, by tensor.
        lifetimes: kernel that writes it, kernel after the last that reads it, and its bytes, by tensor.
        total: bytes of the block.
    """

    schedule: Schedule
    offsets: Mapping[str, int]
    lifetimes: Mapping[str, tuple[int, int, int]]
    total: int

    def __str__(self) -> str:
        apart = sum(size for _, _, size in self.lifetimes.values())
        lines = [f"{self.total} bytes, {apart} if nothing shared its place"]
        for name, (first, last, size) in self.lifetimes.items():
            lines.append(f"{name}: kernels {first} to {last - 1}, {size} bytes at {self.offsets[name]}")
        return "\n".join(lines)


def plan(schedule: Schedule) -> Plan:
    """Place the tensors that kernels pass on to each other; inputs, constants and outputs have memory of their own."""
    lifetimes: dict[str, tuple[int, int, int]] = {}
    for number, scheduled in enumerate(schedule.kernels):
        result = scheduled.kernel.result
        if result.name not in schedule.fused.graph.outputs:
            lifetimes[result.name] = (number, number + 1, -(-result.size // ALIGNMENT) * ALIGNMENT)
        for part in walk(scheduled.kernel.element):
            if isinstance(part, Load) and part.buffer in lifetimes:
                first, _, size = lifetimes[part.buffer]
                lifetimes[part.buffer] = (first, number + 1, size)
    offsets = dict(zip(lifetimes, plan_memory(list(lifetimes.values())), strict=True))
    total = max((offsets[name] + size for name, (_, _, size) in lifetimes.items()), default=0)
    return Plan(schedule, offsets, lifetimes, total)
