"""Loop orders of a convolution or matrix product, and how often each order fetches each operand.

A `LoopNest` names its loops and says which loops each operand's address depends on. Between two iterations an operand
is fetched again when its address has changed. Which addresses change depends only on the outermost loop that stepped,
so the count is a product of loop extents, not a walk over all iterations.

>>> nest = convolution(filters=16, kernel=3, height=8, width=8)
>>> filters_outside = order_accesses(nest, ("m", "r", "s", "p", "q"))
>>> space_outside = order_accesses(nest, ("p", "q", "m", "r", "s"))
>>> filters_outside.weights, space_outside.weights
(144, 5184)
>>> filters_outside.total, space_outside.total
(15120, 10944)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from mlsys.core.arguments import one_of, positive_int
from mlsys.dataflow.loop_nest import Accesses, Address, LoopNest, convolution, coordinate_values, matmul
from mlsys.errors import InvalidValue

__all__ = [
    "Accesses",
    "LoopNest",
    "StationaryTraffic",
    "compulsory",
    "convolution",
    "matmul",
    "order_accesses",
    "reuse",
    "stationary_traffic",
]


def order_accesses(nest: LoopNest, order: Iterable[str], accumulators: int = 1) -> Accesses:
    """Count the accesses of one loop order when one weight and one input stay next to the arithmetic.

    An operand is fetched at the first iteration and whenever its address differs from that of the iteration before.
    With N_j iterations of the loop at depth j, N_0 ... N_(j-1) (N_j - 1) steps advance that loop and reset those
    inside it from last to first; an address changes in all of these steps or in none. A sum is written when another
    takes its place, and read when it is not new.

    Args:
        nest: The loop nest.
        order: Loop names, outermost first.
        accumulators: Sums that stay near. More than one counts when they hold all the sums that some loops at the
            inside of the nest touch; the sums then leave only when a loop outside those steps on to others.

    Raises:
        InvalidValue: An order that does not name each loop once, or accumulators that are no positive integer.

    >>> nest = convolution(filters=16, kernel=3, height=8, width=8)
    >>> order_accesses(nest, "mrspq")
    Accesses(weights=144, inputs=5184, sum_writes=5184, sum_reads=4608)
    >>> order_accesses(nest, "mrspq", accumulators=36).total
    5904
    """
    order = tuple(order)
    if sorted(order) != sorted(nest.loops):
        raise InvalidValue(f"order must name each of the loops {', '.join(nest.loops)} once, got {', '.join(order)}")
    outputs = _distinct(nest, nest.outputs, nest.loops)
    writes = _fetches(nest, nest.outputs, order, positive_int("accumulators", accumulators))
    return Accesses(_fetches(nest, nest.weights, order), _fetches(nest, nest.inputs, order), writes, writes - outputs)


def compulsory(nest: LoopNest) -> Accesses:
    """The accesses that no order avoids: each distinct weight and input read once, each output written once.

    >>> compulsory(matmul(32, 512, 256))
    Accesses(weights=131072, inputs=8192, sum_writes=16384, sum_reads=0)
    """
    weights, inputs, outputs = (_distinct(nest, x, nest.loops) for x in (nest.weights, nest.inputs, nest.outputs))
    return Accesses(weights, inputs, outputs, 0)


def reuse(nest: LoopNest) -> dict[str, float]:
    """How often each weight and input is used, and how many products each output sums: MACs / distinct elements.

    >>> reuse(matmul(32, 512, 256))
    {'weights': 32.0, 'inputs': 512.0, 'outputs': 256.0}
    """
    least = compulsory(nest)
    return {
        "weights": nest.macs / least.weights,
        "inputs": nest.macs / least.inputs,
        "outputs": nest.macs / least.sum_writes,
    }


@dataclass(frozen=True, slots=True)
class StationaryTraffic:
    """What a dataflow moves for one buffer size.

    Attributes:
        dataflow: "ws", "os" or "is".
        tile: Sides of the tile that stays: (k, n) of weights, (m, n) of outputs or (m, k) of inputs.
        accesses: Elements that cross between the far memory and the buffer.
    """

    dataflow: str
    tile: tuple[int, int]
    accesses: Accesses


def stationary_traffic(m: int, n: int, k: int, *, dataflow: str, buffer: int) -> StationaryTraffic:
    """Return the least traffic of C[m, n] = A[m, k] B[k, n] when one operand's tile stays in a buffer.

    A tile of u x v elements stays; beside it the buffer holds one vector of each of the other two operands, u and v
    elements, which stream past. So u v + u + v <= buffer, and

    - ws, tile of B (u of k, v of n): m k ceil(n / v) + k n + m n (2 ceil(k / u) - 1);
    - os, tile of C (u of m, v of n): m k ceil(n / v) + k n ceil(m / u) + m n;
    - is, tile of A (u of m, v of k): m k + k n ceil(m / u) + m n (2 ceil(k / v) - 1).

    Args:
        m: Rows of A (inputs) and C (outputs).
        n: Columns of B (weights) and C.
        k: Columns of A, rows of B.
        dataflow: What stays: "ws" weights, "os" outputs, "is" inputs.
        buffer: Elements that the buffer holds.

    Raises:
        InvalidValue: A size that is no positive integer, an unknown dataflow, or a buffer below 3 elements, which
            holds no tile.

    >>> for dataflow in ("ws", "os", "is"):  # 512 x 256 weights by 256 x 32 inputs, 4,096 elements near
    ...     best = stationary_traffic(32, 512, 256, dataflow=dataflow, buffer=4096)
    ...     print(dataflow, best.tile, best.accesses.total)
    ws (91, 43) 311296
    os (32, 123) 188416
    is (32, 123) 221184
    """
    m, n, k, buffer = (positive_int(*item) for item in (("m", m), ("n", n), ("k", k), ("buffer", buffer)))
    one_of("dataflow", dataflow, ("ws", "os", "is"))
    if buffer < 3:
        raise InvalidValue(
            f"a buffer of {buffer} elements is smaller than the least tile with its streams; use 3 or more"
        )
    sides = {"ws": (k, n), "os": (m, n), "is": (m, k)}[dataflow]
    candidates = ((u, min(sides[1], (buffer - u) // (u + 1))) for u in range(1, min(sides[0], (buffer - 1) // 2) + 1))
    found = ((tile, _stationary_accesses(m, n, k, dataflow, tile)) for tile in candidates)
    tile, accesses = min(found, key=lambda item: (item[1].total, prod(item[0])))
    return StationaryTraffic(dataflow, tile, accesses)


def _stationary_accesses(m: int, n: int, k: int, dataflow: str, tile: tuple[int, int]) -> Accesses:
    u, v = tile
    if dataflow == "os":
        return Accesses(k * n * -(-m // u), m * k * -(-n // v), m * n, 0)
    if dataflow == "ws":
        passes = -(-k // u)
        return Accesses(k * n, m * k * -(-n // v), m * n * passes, m * n * (passes - 1))
    passes = -(-k // v)
    return Accesses(k * n * -(-m // u), m * k, m * n * passes, m * n * (passes - 1))


def _fetches(nest: LoopNest, address: Address, order: tuple[str, ...], held: int = 1) -> int:
    """Elements fetched when the near memory holds all that the longest fitting run of inner loops touches."""
    inside = len(order)
    while inside > 0 and _distinct(nest, address, order[inside - 1 :]) <= held:
        inside -= 1
    outside = order[:inside]
    fetches, steps_outside = 1, 1
    for depth, loop in enumerate(outside):
        extent = nest.extents[loop]
        if any(_step(nest, coordinate, loop, outside[depth + 1 :]) for coordinate in address):
            fetches += steps_outside * (extent - 1)
        steps_outside *= extent
    return fetches * _distinct(nest, address, order[inside:])


def _step(nest: LoopNest, coordinate: Mapping[str, int], loop: str, inner: tuple[str, ...]) -> int:
    """How far a coordinate moves when `loop` advances by one and all loops inside it go from last to first."""
    return coordinate.get(loop, 0) - sum(coordinate.get(x, 0) * (nest.extents[x] - 1) for x in inner)


def _distinct(nest: LoopNest, address: Address, loops: tuple[str, ...]) -> int:
    """Different addresses while `loops` run: per coordinate, the different values of its sum of loop indices."""
    count = 1
    for coordinate in address:
        count *= coordinate_values(coordinate, {loop: nest.extents[loop] for loop in loops})
    return count
