"""The record that the stages after the graph fill in: kernels, then their tiles, places in memory, and source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlsys.compiler.ir.expression import Expr
from mlsys.compiler.ir.graph import Graph, Tensor


@dataclass(frozen=True)
class Form:
    """How the loops of a kernel are divided; what is not mentioned is empty.

    - "map" computes each element of `outer`, all axes of the result, alone
    - "rows" reduces: each element of `outer` is a row, and `inner` the axes within it; `over` is one axis as long as it
    - "product" sums over `over` a matrix product of `outer` rows and `inner` columns, for each element of `batch`
    """

    kind: str
    outer: tuple[Expr, ...]
    inner: tuple[Expr, ...] = ()
    over: tuple[Expr, ...] = ()
    batch: tuple[Expr, ...] = ()

    def __str__(self) -> str:
        parts = {"of": self.outer, "by": self.inner, "over": self.over, "for each": self.batch}
        sizes = {word: " x ".join(str(loop.extent) for loop in axes) for word, axes in parts.items() if axes}
        return " ".join([self.kind, *(f"{word} {length}" for word, length in sizes.items())])


@dataclass(frozen=True)
class Kernel:
    """One kernel: the expression of its result's element at the axes, and the operations that it computes."""

    name: str
    result: Tensor
    axes: tuple[Expr, ...]
    element: Expr
    form: Form
    operations: tuple[str, ...]
    tile: Mapping[str, int] = field(default_factory=dict)  # from schedule: sizes by name,
    grid: tuple[int, ...] = ()  # the programs that are launched,
    warps: int = 4  # the warps of one,
    stages: int = 2  # how many tiles a loop loads ahead,
    precision: str = "ieee"  # and how a product multiplies float32: exactly, or "tf32x3", as three products of tf32

    def __str__(self) -> str:
        if not self.tile:
            return "\n    ".join([f"{self.name} ({self.form})", *self.operations])
        tile = " ".join(f"{name}={length}" for name, length in self.tile.items())
        return f"{self.name}: {tile}, grid {self.grid}, {self.warps} warps, {self.stages} stages"


@dataclass(frozen=True)
class Program:
    """A graph as kernels in the order in which they run."""

    graph: Graph
    tensors: Mapping[str, Tensor]  # all by name
    kernels: tuple[Kernel, ...]
    decisions: tuple[str, ...] = ()  # why each result is stored or inlined
    lifetimes: Mapping[str, tuple[int, int, int]] | None = None  # from memory: first kernel, one after the last, bytes
    offsets: Mapping[str, int] = field(default_factory=dict)  # places in one block of memory
    arguments: tuple[str, ...] = ()  # from lower: arguments of the source's `run` after `launch`,
    text: str = ""  # and the source

    @property
    def memory(self) -> int:
        """Bytes of the block of memory."""
        return max((self.offsets[name] + size for name, (_, _, size) in (self.lifetimes or {}).items()), default=0)

    def __str__(self) -> str:
        if self.text or self.lifetimes is None:
            decisions = () if any(kernel.tile for kernel in self.kernels) else self.decisions
            return self.text or "\n".join([*map(str, self.kernels), *decisions])
        apart = sum(size for _, _, size in self.lifetimes.values())
        rows = [(name, *life, self.offsets[name]) for name, life in self.lifetimes.items()]
        lines = [f"{name}: kernels {first + 1} to {end}, {size} bytes at {at}" for name, first, end, size, at in rows]
        return "\n".join([f"{self.memory} bytes, {apart} if nothing shared its place", *lines])
