"""A chain of operations that the reader cuts into kernels: bytes, launches, time, and what the compiler reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import ops
from mlsys.formatting import fmt
from mlsys.hardware.occupancy import occupancy
from mlsys.measure import records
from mlsys.ops.chain import Chain, Operation
from mlsys.traffic.coalescing import WARP_LANES

CHIP = "h200"
DTYPE = "bf16"
ROWS = 65536
"""Rows of the matrix at the start."""
ROWS_LIMITS = (1, 1_000_000)


def compiled() -> dict[str, Any]:
    """The chains, as `scripts/compile_fusion.py` has compiled them."""
    from _figures import fused

    return fused.CHAINS


def columns() -> int:
    """Columns of the matrix in these kernels; the weights of the product are square."""
    from _figures import fused

    return fused.SEGMENT["columns"]


def threads() -> int:
    """Threads of a program in these kernels."""
    from _figures import fused

    return WARP_LANES * fused.SEGMENT["warps"]


@dataclass(frozen=True)
class Rates:
    """What the record of an H200 says about copies, launches and products.

    Attributes:
        bandwidth: bytes per second of a copy, read and written.
        start_s: seconds of a kernel that does next to nothing, replayed from a graph.
        queued_s: seconds between two kernels that Python queues one by one.
        product: FLOP per second of the library's product in BF16.
    """

    bandwidth: float
    start_s: float
    queued_s: float
    product: float

    @classmethod
    def measured(cls) -> "Rates":
        """Read them from the record."""
        record = records.load("nvidia-h200")
        (copy,) = record.named("fused chain")
        assert copy.ceiling is not None
        product = next(
            row for row in record.named("matmul by dtype") if row.dtype == DTYPE and row.shape[0] == columns()
        )
        assert product.achieved is not None
        launches = {(row.variant, row.shape[0]): row.median_s for row in record.named("launch latency")}
        return cls(1e9 * copy.ceiling, launches["graph", 1], launches["back to back", 1], 1e12 * product.achieved)


def chains(rows: int) -> dict[str, Chain]:
    """The chains, for a matrix of so many rows."""
    sizes = {"n": rows * columns(), "r": rows, "c": columns(), "B": columns() ** 2}
    return {
        name: Chain(
            tuple(Operation(step, tuple(reads), writes) for step, reads, writes in one["steps"]),
            {tensor: sizes[kind] for tensor, kind in one["kinds"].items()},
            tuple(one["results"]),
            DTYPE,
        )
        for name, one in compiled().items()
    }


def seconds(chain: Chain, rows: int, cuts: Sequence[int], *, queued: bool, rates: Rates) -> float:
    """Estimate the time: for each kernel its start and the longer of bytes and product; or what the host needs."""
    total = 0.0
    kernels = chain.kernels(cuts)
    for kernel in kernels:
        moved = 2 * sum(chain.elements[name] for name in (*kernel.reads, *kernel.writes))
        product = ops.matmul(m=rows, n=columns(), k=columns()).flop_count if "product" in kernel.operations else 0
        total += rates.start_s + max(moved / rates.bandwidth, product / rates.product)
    return max(total, rates.queued_s * len(kernels)) if queued else total


def content() -> Content:
    """The numbers and the fallback of the chains that the reader cuts."""
    rates = Rates.measured()
    return Content(
        title="Where kernels begin and end",
        numbers={
            "chains": [{"name": name, **_drawn(one)} for name, one in compiled().items()],
            "rows": ROWS,
            "limits": ROWS_LIMITS,
            "columns": columns(),
            "bytes": 2,
            "bandwidth": rates.bandwidth,
            "start": rates.start_s,
            "queued": rates.queued_s,
            "product": rates.product,
        },
        picture=_picture,
        alt="Two bars for each of four chains, in passes over the matrix. With a kernel for each operation they move "
        "eight to ten passes. As one kernel, the first two move two, and those with a residual four and about three.",
        tables=(_table(rates),),
    )


def _drawn(one: dict[str, Any]) -> dict[str, Any]:
    """A chain for the script: with the occupancy of each kernel."""
    runs = {}
    for name, report in one["kernels"].items():
        found = occupancy(CHIP, threads=threads(), registers=report["registers"], shared_bytes=report["shared"])
        runs[name] = {"registers": report["registers"], "spilled": report["stored"], "share": found.share}
    steps = [{"name": name, "reads": reads, "writes": writes} for name, reads, writes in one["steps"]]
    return {"steps": steps, "kinds": one["kinds"], "results": one["results"], "runs": runs}


def _table(rates: Rates) -> Table:
    rows = [("chain", "kernels", "MB moved", "time, µs", "registers of the largest")]
    for name, chain in chains(ROWS).items():
        count = len(chain.operations)
        for cuts in (tuple(range(1, count)), ()):
            ends = [0, *cuts, count]
            runs = [f"{first}-{end}" for first, end in pairwise(ends)]
            most = max(compiled()[name]["kernels"][run]["registers"] for run in runs)
            time_us = 1e6 * seconds(chain, ROWS, cuts, queued=False, rates=rates)
            moved = fmt(chain.bytes(cuts).m_as("MB"), 0)
            rows.append((name, str(len(cuts) + 1), moved, fmt(time_us, 0), str(most)))
    return Table(f"{ROWS:,} rows, launches replayed from a graph", tuple(rows))


def _picture() -> Figure:
    from _figures.fusion import played

    matrix = ROWS * columns() * 2
    played(
        {
            name: tuple(chain.bytes(cuts).m_as("byte") / matrix for cuts in (range(1, len(chain.operations)), ()))
            for name, chain in chains(ROWS).items()
        }
    )
    return plt.gcf()
