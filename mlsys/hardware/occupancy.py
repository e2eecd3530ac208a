"""How many blocks of a kernel are resident on an SM at once, and which resource stops the next one.

An SM has slots for warps and for blocks, a register file and shared memory. A block is placed whole or not at all, so
each resource allows a whole number of blocks, and the least of these numbers counts:

- warps: the warp slots, divided by the warps of a block. A warp that is not full has 32 lanes too.
- registers: each partition of the SM has its share of the file and holds whole warps. The registers of a warp are
  rounded up to the unit in which they are allocated.
- shared memory: what a block uses, with what the system reserves in it, rounded up to the unit of allocation.
- blocks: the block slots.

The rules are those of the CUDA Occupancy Calculator (NVIDIA, `cuda_occupancy.h`). As there, shared memory may use all
that the SM can give to it. Clusters, named barriers and the tensor memory of Blackwell are left out; they can lower the
number further.

>>> from mlsys.hardware.occupancy import occupancy
>>> found = occupancy("h100-sxm", threads=256, registers=64)
>>> found.blocks, found.warps, found.share, found.limited_by
(4, 32, 0.5, ('registers',))
>>> occupancy("h100-sxm", threads=256, registers=32, shared_bytes=96 * 1024).blocks
2
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mlsys.core.arguments import int_at_most, non_negative_int
from mlsys.errors import InvalidValue
from mlsys.hardware.chips import Accelerator, Hardware
from mlsys.traffic.coalescing import WARP_LANES


@dataclass(frozen=True)
class SM:
    """What one SM of a chip has for resident blocks.

    Attributes:
        threads: most threads that are resident at once.
        blocks: most blocks that are resident at once.
        registers: 32-bit registers, in equal shares for the partitions.
        shared_bytes: bytes of shared memory.
        threads_per_block: most threads of a block.
        registers_per_thread: most registers of a thread.
        shared_bytes_per_block: most bytes of shared memory that a block can ask for.
        partitions: parts of the SM, each with a scheduler, registers and lanes of its own.
        register_unit: registers of a warp are allocated in multiples of this number.
        shared_unit: bytes of shared memory of a block are allocated in multiples of this number.
        shared_reserved: bytes that the system adds to what a block asks for.
    """

    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    threads_per_block: int
    registers_per_thread: int
    shared_bytes_per_block: int
    partitions: int
    register_unit: int
    shared_unit: int
    shared_reserved: int

    @classmethod
    def of(cls, chip: Accelerator) -> "SM":
        """Read the limits from a chip's data file.

        Raises:
            UnknownField: the chip's documents do not give one of them.

        >>> SM.of(Hardware.get("a100-80gb-sxm")).warps
        64
        """
        counts = (
            "threads_per_sm blocks_per_sm registers_per_sm threads_per_block registers_per_thread sm_partitions "
            "register_allocation"
        )
        count = {name: round(chip.field(name).value.m_as("")) for name in counts.split()}
        sizes = "shared_memory_per_sm shared_memory_per_block shared_memory_allocation shared_memory_reserved"
        size = {name: round(chip.field(name).value.m_as("byte")) for name in sizes.split()}
        return cls(
            threads=count["threads_per_sm"],
            blocks=count["blocks_per_sm"],
            registers=count["registers_per_sm"],
            shared_bytes=size["shared_memory_per_sm"],
            threads_per_block=count["threads_per_block"],
            registers_per_thread=count["registers_per_thread"],
            shared_bytes_per_block=size["shared_memory_per_block"],
            partitions=count["sm_partitions"],
            register_unit=count["register_allocation"],
            shared_unit=size["shared_memory_allocation"],
            shared_reserved=size["shared_memory_reserved"],
        )

    @property
    def warps(self) -> int:
        """Most warps that are resident at once."""
        return self.threads // WARP_LANES


@dataclass(frozen=True)
class Occupancy:
    """The blocks of one kernel that an SM holds.

    Attributes:
        limits: for "warps", "registers", "shared memory" and "blocks", how many blocks this resource allows. A
            resource that the kernel does not use is left out.
        warps_per_block: warps of a block, the last of which may be partly empty.
        most_warps: warp slots on the SM.
    """

    limits: Mapping[str, int]
    warps_per_block: int
    most_warps: int

    @property
    def blocks(self) -> int:
        """Resident blocks: the least of the limits. With 0 the kernel cannot be launched."""
        return min(self.limits.values())

    @property
    def warps(self) -> int:
        """Resident warps: blocks x warps of a block."""
        return self.blocks * self.warps_per_block

    @property
    def share(self) -> float:
        """The occupancy: resident warps / warp slots."""
        return self.warps / self.most_warps

    @property
    def limited_by(self) -> tuple[str, ...]:
        """The resources that allow no further block; often one, sometimes several."""
        return tuple(name for name, blocks in self.limits.items() if blocks == self.blocks)


def occupancy(chip: str | Accelerator | SM, *, threads: int, registers: int, shared_bytes: int = 0) -> Occupancy:
    """Compute how many blocks of a kernel one SM holds: the least number that any of its resources allows.

    Args:
        chip: a chip, its id, or the limits of an SM.
        threads: threads of a block.
        registers: registers of a thread, as the compiler reports them; 0 leaves them out.
        shared_bytes: bytes of shared memory that a block asks for, static and dynamic.

    Raises:
        InvalidValue: more of something than a block or thread of this chip can have.
        UnknownField: the chip's documents do not give its limits.

    >>> occupancy("t4", threads=96, registers=40, shared_bytes=5000).limits
    mappingproxy({'warps': 10, 'registers': 16, 'shared memory': 12, 'blocks': 16})
    """
    sm = chip if isinstance(chip, SM) else SM.of(Hardware.get(chip) if isinstance(chip, str) else chip)
    most = sm.threads_per_block
    warps = -(-int_at_most("threads", threads, most, f"a block has at most {most} threads") // WARP_LANES)
    if non_negative_int("registers", registers) > sm.registers_per_thread:
        most = sm.registers_per_thread
        raise InvalidValue(f"registers must be at most {most}, got {registers}: the compiler spills the rest to memory")
    used = non_negative_int("shared_bytes", shared_bytes)
    if used > sm.shared_bytes_per_block:
        raise InvalidValue(
            f"shared_bytes must be at most {sm.shared_bytes_per_block}, got {used}: no block of this chip can have more"
        )
    limits = {"warps": sm.warps // warps}
    if registers:
        of_warp = _round_up(registers * WARP_LANES, sm.register_unit)
        limits["registers"] = sm.registers // sm.partitions // of_warp * sm.partitions // warps
    if used + sm.shared_reserved:
        limits["shared memory"] = sm.shared_bytes // _round_up(used + sm.shared_reserved, sm.shared_unit)
    limits["blocks"] = sm.blocks
    return Occupancy(MappingProxyType(limits), warps, sm.warps)


def _round_up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
