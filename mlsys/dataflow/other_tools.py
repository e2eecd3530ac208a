"""What Timeloop and ZigZag count for given mappings, to compare `mlsys.dataflow.levels` with.

>>> run = timeloop_run("eyeriss_like")
>>> run.counts == level_accesses(run.nest, run.levels), run.cycles == steps(run.levels)
(True, True)

Timeloop's numbers are reference outputs that its authors publish. ZigZag's are those of its example gemm_l1, of which
its tests state one, with other loop orders and sizes. Sources: `mlsys/data/mapping_tools.toml`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from msgspec import field

from mlsys.core.sourced import Cited, Entry, Source, data_file, sources
from mlsys.dataflow.levels import Level, LevelAccesses, level_accesses, steps
from mlsys.dataflow.loop_nest import Accesses, LoopNest, convolution, matmul
from mlsys.dataflow.tiles import OPERANDS
from mlsys.errors import UnknownName


@dataclass(frozen=True)
class AccessEnergy:
    """Energy of an access to a level.

    Attributes:
        read_pj: Picojoules to read a block.
        write_pj: Picojoules to write a block.
        block: Elements of a block.
    """

    read_pj: float
    write_pj: float
    block: int

    def total_pj(self, counts: LevelAccesses) -> float:
        """Picojoules of all accesses.

        >>> AccessEnergy(read_pj=2, write_pj=3, block=4).total_pj(LevelAccesses(reads=8, fills=4, updates=4))
        10.0
        """
        return (counts.reads * self.read_pj + (counts.fills + counts.updates) * self.write_pj) / self.block


@dataclass(frozen=True)
class TimeloopRun:
    """A mapping, with what Timeloop says about it.

    Attributes:
        name: The exercise.
        nest: The layer.
        levels: The mapping.
        counts: Accesses by level and operand, of all units together.
        cycles: Cycles.
        energies: Energy of an access by level; empty where we do not compare energies.
        energy_pj: Energy in picojoules; 0 where we do not compare energies.
        other_pj: Its part that no access takes: arithmetic and leakage.
        where: The run's files in the source.
    """

    name: str
    nest: LoopNest
    levels: tuple[Level, ...]
    counts: Mapping[tuple[str, str], LevelAccesses]
    cycles: int
    energies: Mapping[str, AccessEnergy]
    energy_pj: float
    other_pj: float
    where: str

    def energy_of(self, counts: Mapping[tuple[str, str], LevelAccesses]) -> float:
        """Return the energy of any counts in picojoules, by this run's energies of an access."""
        return self.other_pj + sum(self.energies[level].total_pj(one) for (level, _), one in counts.items())


@dataclass(frozen=True)
class ZigZagRun:
    """A matrix product on ZigZag's example gemm_l1, with what the tool says about it.

    Attributes:
        nest: The product.
        levels: The mapping: a memory, a register for each sum, one for each operand of each multiplier.
        order: Order of the loops over tiles, outermost first.
        accesses: Elements read and written in the memory.
        sums_per_word: Sums that the memory takes or gives in a cycle.
        cycles: Cycles.
        energy_pj: Energy in picojoules.
        memory: Energy of an access to the memory, by words of weights, inputs or unfinished sums.
        register_pj: Energy of an access to a sum's register, in picojoules.
        mac_pj: Energy of a multiply-accumulate, in picojoules.
    """

    nest: LoopNest
    levels: tuple[Level, ...]
    order: str
    accesses: Accesses
    sums_per_word: int
    cycles: int
    energy_pj: float
    memory: AccessEnergy
    register_pj: float
    mac_pj: float

    def counted(self) -> Accesses:
        """Return our count of the same accesses."""
        found = level_accesses(self.nest, self.levels)
        sums = found["memory", "outputs"]
        return Accesses(found["memory", "weights"].reads, found["memory", "inputs"].reads, sums.updates, sums.reads)

    def counted_cycles(self) -> int:
        """Return our count of the cycles: the steps, or the words of sums through their one port if these are more."""
        return max(steps(self.levels), self.counted().sums // self.sums_per_word)

    def counted_pj(self) -> float:
        """Return the energy of our count in picojoules, by the tool's energies of an access."""
        moved, register = self.counted(), level_accesses(self.nest, self.levels)["sum registers", "outputs"]
        words_read = (moved.weights + moved.inputs + moved.sum_reads) / self.memory.block
        words_written = moved.sum_writes / self.sums_per_word
        to_memory = moved.sum_writes  # a register is read when its sum leaves
        register_accesses = register.reads + register.fills + register.updates + to_memory
        return (
            self.mac_pj * self.nest.macs
            + self.memory.read_pj * words_read
            + self.memory.write_pj * words_written
            + self.register_pj * register_accesses
        )


@cache
def timeloop_runs() -> Mapping[str, TimeloopRun]:
    """Return the mappings of Timeloop's exercises by their names.

    >>> sum(3 * len(run.counts) for run in timeloop_runs().values())
    393
    """
    return {entry.name: _timeloop_run(entry) for entry in _file().timeloop.runs}


def timeloop_run(name: str) -> TimeloopRun:
    """Return one of `timeloop_runs`.

    Raises:
        UnknownName: A name that none of them has.
    """
    runs = timeloop_runs()
    if name not in runs:
        raise UnknownName.of("run of Timeloop", name, runs)
    return runs[name]


@cache
def zigzag_runs(m: int, n: int, k: int) -> Mapping[str, ZigZagRun]:
    """Return the runs of ZigZag for one product, by the order of the loops over tiles.

    Sizes that it was not run on have none.

    >>> zigzag_runs(128, 128, 128)["mkn"].cycles
    8191
    """
    entry = _file().zigzag
    return {run.order: _zigzag_run(entry, run) for run in entry.runs if (run.m, run.n, run.k) == (m, n, k)}


def tool_sources() -> tuple[Source, Source]:
    """Return the documents that the numbers of Timeloop and of ZigZag come from.

    >>> [source.key for source in tool_sources()]
    ['timeloop-exercises', 'zigzag']
    """
    return sources()[_file().timeloop.source], _file().zigzag.document


class _Layer(Entry, frozen=True, kw_only=True):
    filters: int
    channels: int
    kernel: tuple[int, int]
    height: int
    width: int
    stride: int = 1
    padding: int = 0


class _Level(Entry, frozen=True, kw_only=True):
    name: str
    units: int
    counts: dict[str, tuple[int, int, int]]
    loops: dict[str, int] = field(default_factory=dict)
    spread: dict[str, int] = field(default_factory=dict)
    read_pj: float = 0
    write_pj: float = 0
    block: int = 1


class _Run(Entry, frozen=True, kw_only=True):
    name: str
    where: str
    layer: _Layer
    cycles: int
    levels: tuple[_Level, ...]
    energy_uj: float = 0
    mac_pj: float = 0
    leakage_pj: float = 0


class _Timeloop(Cited, frozen=True, kw_only=True):
    needs = ("source",)

    runs: tuple[_Run, ...]


class _Product(Entry, frozen=True, kw_only=True):
    m: int
    n: int
    k: int
    order: str
    words: tuple[int, int, int, int]
    cycles: int
    energy_pj: float


class _ZigZag(Cited, frozen=True, kw_only=True):
    published: str
    side: int
    word: int
    finished_word: int
    mac_pj: float
    read_pj: float
    write_pj: float
    register_pj: float
    runs: tuple[_Product, ...]


class _File(Entry, frozen=True, kw_only=True):
    timeloop: _Timeloop
    zigzag: _ZigZag


def _file() -> _File:
    return data_file("mapping_tools.toml", _File)


def _timeloop_run(entry: _Run) -> TimeloopRun:
    size = entry.layer
    nest = convolution(
        filters=size.filters,
        channels=size.channels,
        kernel=size.kernel,
        height=size.height,
        width=size.width,
        stride=size.stride,
        padding=size.padding,
    )
    return TimeloopRun(
        entry.name,
        nest,
        tuple(Level(level.name, tuple(level.counts), level.loops, level.spread) for level in entry.levels),
        {
            (level.name, operand): LevelAccesses(*(level.units * count for count in counts))
            for level in entry.levels
            for operand, counts in level.counts.items()
        },
        entry.cycles,
        {level.name: AccessEnergy(level.read_pj, level.write_pj, level.block) for level in entry.levels},
        1e6 * entry.energy_uj,
        nest.macs * entry.mac_pj + entry.leakage_pj,
        entry.where,
    )


def _zigzag_run(entry: _ZigZag, run: _Product) -> ZigZagRun:
    sizes = {"m": run.m, "n": run.n, "k": run.k}
    finished = run.order.endswith("k")  # a sum leaves once, when it is finished
    sums_per_word = entry.finished_word if finished else entry.word
    weights, inputs, written, read = run.words
    levels = (
        Level(
            "memory",
            OPERANDS,
            {loop: sizes[loop] // entry.side for loop in run.order},
            {"m": entry.side, "n": entry.side},
        ),
        Level("sum registers", ("outputs",), spread={"k": entry.side}),
        Level("operand registers", ("weights", "inputs")),
    )
    return ZigZagRun(
        matmul(run.m, run.n, run.k),
        levels,
        run.order,
        Accesses(weights * entry.word, inputs * entry.word, written * sums_per_word, read * sums_per_word),
        sums_per_word,
        run.cycles,
        run.energy_pj,
        AccessEnergy(entry.read_pj, entry.write_pj, entry.word),
        entry.register_pj,
        entry.mac_pj,
    )
