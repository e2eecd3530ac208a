"""The tiling explorer: the traffic of a matrix product for every choice of matrix, tile, memory and number format."""

from functools import cache

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, ops, traffic, viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.dataflow import loop_nest
from mlsys.dataflow import tiles as tiled_nest
from mlsys.errors import InvalidValue
from mlsys.formatting import fmt

SIDES = (512, 1024, 2048, 4096)
TILES = (16, 32, 64, 128, 160, 192, 256, 384, 512)
DTYPES = ("fp16", "fp32")
FIRST_SIDE, FIRST_TILE, FIRST_DTYPE, FIRST_MEMORY = 4096, 128, "fp16", 1
LONGEST_REPLAY = 8
"""Tiles along a side up to which every step is replayed; with more, a shorter way that gives the same is taken."""

Moved = tuple[int, int, int, int]
"""Bytes read of A, of B and of C, and bytes written of C."""


MEMORIES = (
    ("t4", "shared_memory_per_block", "shared memory of a T4"),
    ("a100-80gb-sxm", "shared_memory_per_block", "shared memory of an A100"),
    ("h100-sxm", "shared_memory_per_block", "shared memory of an H100"),
    ("t4", "l2_capacity", "L2 cache of a T4"),
    ("a100-80gb-sxm", "l2_capacity", "L2 cache of an A100"),
)
"""Near memories to choose from: chip, field of its data file, label. Shared memory is what one block may use."""


def memory_bytes(chip: str, field: str) -> int:
    """The size of a near memory."""
    return int(Hardware.get(chip).field(field).value.m_as("byte"))


@cache
def moved(side: int, tile: int, near_bytes: int, dtype: str, longest_replay: int = LONGEST_REPLAY) -> Moved | None:
    """The traffic that `traffic.tiled_matmul` counts for square tiles; none if one tile alone does not fit.

    Of many small tiles its replay is long, and in most cases not needed. A memory that holds three tiles, but not a
    row of tiles of A with a column of B, fetches whatever changes from step to step: `tiled_accesses` counts that in
    closed form. One that holds the row and the column fetches the same whether k is cut or not.
    """
    size = int(bytes_per_element(dtype))
    along, places = side // tile, near_bytes // (size * tile**2)  # tiles along a side, tiles that fit
    tile_k = tile
    if side % tile == 0 and along > longest_replay:
        if 3 <= places <= 2 * along:
            nest = loop_nest.matmul(side, side, side)
            once = tiled_nest.tiled_accesses(nest, "mnk", {"m": tile, "n": tile, "k": tile})
            return (size * once.inputs, size * once.weights, size * once.sum_reads, size * once.sum_writes)
        if 2 * along + 2 <= places < along**2 + 2 * along or places > along**2 + 3 * along:
            tile_k = side
    try:
        found = traffic.tiled_matmul(side, side, side, tile, tile, tile_k, memory_bytes=near_bytes, dtype=dtype)
    except InvalidValue:
        return None
    return (found.read["A"], found.read["B"], found.read.get("C", 0), found.written["C"])


def content() -> Content:
    """The numbers and the fallback of the tiling explorer."""
    near = [{"label": label, "bytes": memory_bytes(chip, field)} for chip, field, label in MEMORIES]
    products = [
        {
            "side": side,
            "dtype": dtype,
            "flops": ops.matmul(m=side, n=side, k=side, dtype=dtype).flop_count,
            "least": traffic.compulsory_bytes(side, side, side, dtype),
            "untiled": traffic.untiled(side, side, side, dtype).total_bytes,
            "moved": [[moved(side, tile, memory["bytes"], dtype) for tile in TILES] for memory in near],
        }
        for side in SIDES
        for dtype in DTYPES
    ]
    numbers = {
        "tiles": TILES,
        "sides": SIDES,
        "dtypes": DTYPES,
        "room": {dtype: [_working_set(tile, dtype) for tile in TILES] for dtype in DTYPES},
        "memories": near,
        "products": products,
        "first": {"side": FIRST_SIDE, "tile": FIRST_TILE, "dtype": FIRST_DTYPE, "memory": FIRST_MEMORY},
    }
    return Content(
        title="Tiling explorer",
        numbers=numbers,
        picture=_picture,
        alt=f"Bytes moved against the side of a tile, both axes logarithmic, for matrices of {FIRST_SIDE:,} a side and "
        f"the {MEMORIES[FIRST_MEMORY][2]}. The line falls evenly to the largest tile of which three fit and "
        "jumps up at the next one. A dotted line below marks the least that any order of work must move.",
        tables=(_table(),),
    )


def _working_set(tile: int, dtype: str) -> int:
    """Bytes of one tile of each matrix."""
    return traffic.compulsory_bytes(tile, tile, tile, dtype)


def _table() -> Table:
    near = memory_bytes(*MEMORIES[FIRST_MEMORY][:2])
    rows: list[tuple[str, ...]] = [
        ("side of a tile", "three tiles, KiB", "read of A, MB", "read of B, MB", "read and written of C, MB", "all, MB")
    ]
    for tile in TILES:
        found = moved(FIRST_SIDE, tile, near, FIRST_DTYPE)
        room = f"{_working_set(tile, FIRST_DTYPE) / 1024:,.4g}"
        if found is None:
            rows.append((str(tile), room, "one tile does not fit", "", "", ""))
            continue
        a, b, c_read, c_written = found
        rows.append((str(tile), room, *(fmt(x / 1e6, 0) for x in (a, b, c_read + c_written, sum(found)))))
    title = (
        f"Moved by a product of two {FIRST_SIDE:,} × {FIRST_SIDE:,} matrices in {FIRST_DTYPE.upper()} through the "
        f"{MEMORIES[FIRST_MEMORY][2]} ({near / 1024:.0f} KiB)"
    )
    return Table(title, tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(5.0, 3.6))
    near = memory_bytes(*MEMORIES[FIRST_MEMORY][:2])
    found = {tile: moved(FIRST_SIDE, tile, near, FIRST_DTYPE) for tile in TILES}
    curve = {tile: sum(bytes_moved) / 1e9 for tile, bytes_moved in found.items() if bytes_moved}
    fits = [tile for tile in curve if _working_set(tile, FIRST_DTYPE) <= near]
    spills = [tile for tile in curve if tile >= max(fits)]
    ax.loglog(spills, [curve[tile] for tile in spills], "o-", color=colors["RedLine"])
    ax.loglog(fits, [curve[tile] for tile in fits], "o-", color=colors["BlueLine"])
    ax.text(26, 1.25 * curve[32], "three tiles fit", color=colors["BlueLine"])
    ax.text(1.04 * spills[-1], curve[spills[1]], "they do not", color=colors["RedLine"], va="center")
    least = traffic.compulsory_bytes(FIRST_SIDE, FIRST_SIDE, FIRST_SIDE, FIRST_DTYPE) / 1e9
    ax.axhline(least, color=colors["primary"], linestyle=":")
    ax.text(16, 1.12 * least, "each matrix moved once")
    ax.set(
        xlabel="side of a tile, elements",
        ylabel="moved, GB",
        xlim=(14, 600),
        ylim=(0.7 * least, 2 * max(curve.values())),
    )
    ticks = (16, 32, 64, 128, 256, 512)
    ax.set_xticks(ticks, [str(tile) for tile in ticks])
    ax.set_yticks([0.1, 1, 10], ["0.1", "1", "10"])
    ax.minorticks_off()
    return fig
