"""The triage form: what bytes, arithmetic and launches explain of a measured time, and where to look next."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, models, viz
from mlsys.measure import records
from mlsys.roofline import Roofline

SHEETS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm", "b200", "mi300x")
"""Chips whose roofs are those of the data sheet; our H200 has measured ones."""
LIMITS = {"time": (0.001, 1_000_000), "gflop": (0, 1_000_000_000), "mb": (0, 10_000_000), "kernels": (1, 1_000_000)}
"""What may be entered: milliseconds, GFLOP, MB, kernels."""
CLEAR = 2 / 3
"""Share of the time from which a limit explains it, as in the chapter on using the roofline."""
LONG_US = 20
"""Microseconds beyond its roofs from which a kernel counts as long; some four times what a kernel of GPT-2 XL costs."""
PAGES = {
    "launches": (("software/runtimes", "runtimes"), ("mapping/fusion", "fusion"), ("foundations/kernel", "kernels")),
    "bytes": (("hardware/numerics", "formats"), ("mapping/fusion", "fusion"), ("performance/tiling", "tiles")),
    "arithmetic": (
        ("hardware/numerics", "formats"),
        ("hardware/execution-units", "units"),
        ("performance/matmul", "matrix products"),
    ),
    "host": (("software/runtimes", "runtimes"), ("memory/host-link", "the host link")),
    "short kernels": (("mapping/fusion", "fusion"), ("foundations/gpu", "bytes in flight")),
    "long kernels": (
        ("mapping/layouts", "layouts"),
        ("hardware/execution-units", "units"),
        ("performance/roofline-practice", "using the roofline"),
    ),
    "impossible": (("performance/roofline", "counting an operation"), ("memory/hierarchy", "caches")),
}
"""For each verdict, the chapters that say what to do: page and words of the link."""


@dataclass(frozen=True)
class Verdict:
    """Shares of a measured time, and what they say.

    Attributes:
        bytes: share that the bytes explain.
        arithmetic: share that the FLOPs explain.
        launches: share that the launches explain.
        left_us: microseconds of a kernel beyond the longer of its two roofs.
        cause: a key of `PAGES`.
    """

    bytes: float
    arithmetic: float
    launches: float
    left_us: float
    cause: str


def launch_us() -> dict[str, float]:
    """Microseconds of a launch on the host of the record, from Python and from a graph."""
    record = records.load("nvidia-h200")
    names = {"python": "back to back", "graph": "graph"}
    return {way: 1e6 * record.named("launch latency", name)[0].median_s for way, name in names.items()}


def devices() -> dict[str, tuple[str, float, float]]:
    """Name, bytes per second and FLOP per second in FP16: our H200 as measured, the others from their data sheets."""
    alone = {row.variant: row for row in records.load("nvidia-h200").named("independent roofs")}
    measured = 1e9 * (alone["stream triad"].achieved or 0), 1e12 * (alone["mma chain fp16"].achieved or 0)
    found = {"h200": ("our H200, measured", *measured)}
    for chip in map(Hardware.get, SHEETS):
        roofs = Roofline.of(chip, "fp16")
        found[chip.id] = (f"{chip.name}, data sheet", roofs.bandwidth_per_s, roofs.peaks_per_s["tensor"])
    return found


def first() -> dict[str, float]:
    """A step of decode of GPT-2 XL for one sequence, replayed from a graph, as the record has it."""
    step = models.gpt2("xl", seq=512, decode=True)
    row = records.load("nvidia-h200").named("GPT-2 xl", "decode, graph")[0]
    moved = sum(op.read_count + op.write_count for op in step.ops)
    flops = sum(op.flop_count for op in step.ops)
    return {
        "time": round(1e3 * row.median_s, 2),
        "gflop": round(flops / 1e9, 2),
        "mb": round(moved / 1e6),
        "kernels": len(step.ops),
    }


def verdict(device: str, way: str, time: float, gflop: float, mb: float, kernels: float) -> Verdict:
    """Return the shares of a time in ms, and the cause that the form names.

    Args:
        device: a key of `devices`.
        way: "python" or "graph".
        time: measured, ms.
        gflop: GFLOP of the program.
        mb: MB that it must move.
        kernels: how many it launches.
    """
    _, bandwidth, peak = devices()[device]
    moving, computing = 1e3 * mb * 1e6 / bandwidth, 1e3 * gflop * 1e9 / peak
    shares = {
        "bytes": moving / time,
        "arithmetic": computing / time,
        "launches": kernels * launch_us()[way] / 1e3 / time,
    }
    left_us = 1e3 * (time - max(moving, computing)) / kernels
    largest = max(shares, key=lambda name: shares[name])
    if max(shares["bytes"], shares["arithmetic"]) > 1:
        cause = "impossible"
    elif shares[largest] > CLEAR:
        cause = largest
    elif way == "python":
        cause = "host"
    else:
        cause = "short kernels" if left_us < LONG_US else "long kernels"
    return Verdict(**shares, left_us=left_us, cause=cause)


def content() -> Content:
    """The numbers and the fallback of the form."""
    listed = [
        {"id": key, "name": name, "bandwidth": bandwidth, "peak": peak}
        for key, (name, bandwidth, peak) in devices().items()
    ]
    start = first()
    said = verdict("h200", "graph", **start)
    return Content(
        title="Why is it slow?",
        numbers={
            "devices": listed,
            "launch": launch_us(),
            "limits": LIMITS,
            "first": start,
            "clear": CLEAR,
            "long": LONG_US,
            "pages": {
                cause: [{"href": f"../{page}.html", "text": text} for page, text in links]
                for cause, links in PAGES.items()
            },
        },
        picture=_picture,
        alt="Three horizontal bars, shares of the measured time of a step of GPT-2 XL on an H200: bytes explain "
        f"{said.bytes:.0%}, arithmetic {said.arithmetic:.1%}, launches {said.launches:.0%}. A dashed line at two "
        "thirds is reached by none.",
        tables=(_table(),),
    )


def _cases() -> dict[str, Verdict]:
    start = first()
    record = records.load("nvidia-h200")
    queued = 1e3 * record.named("GPT-2 xl", "decode, queued from Python")[0].median_s
    [square] = [
        row for row in record.named("matmul by dtype") if (row.dtype, row.shape[0]) == ("fp16", 8192)
    ]  # fmt: skip
    added = record.named("vector add")[-1]
    n, side = added.shape[0], square.shape[0]
    return {
        "GPT-2 XL, one token, from a graph": verdict("h200", "graph", **start),
        "the same, queued from Python": verdict("h200", "python", **{**start, "time": queued}),
        "a large matrix product": verdict(
            "h200", "python", 1e3 * square.median_s, 2 * side**3 / 1e9, 6 * side**2 / 1e6, 1
        ),
        "a sum of long vectors": verdict("h200", "python", 1e3 * added.median_s, n / 1e9, 12 * n / 1e6, 1),
    }


def _table() -> Table:
    head = ("work on our H200", "bytes", "arithmetic", "launches", "look at")
    rows = [
        (name, f"{one.bytes:.0%}", f"{one.arithmetic:.0%}", f"{one.launches:.0%}", one.cause)
        for name, one in _cases().items()
    ]
    return Table("What explains measured times of the record", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 1.9))
    said = verdict("h200", "graph", **first())
    for place, (name, tone) in enumerate((("bytes", "Blue"), ("arithmetic", "Orange"), ("launches", "Green"))):
        share = getattr(said, name)
        ax.barh(place, share, height=0.6, color=colors[f"{tone}Line"])
        ax.text(share + 0.01, place, f"{share:.0%}" if share > 0.01 else f"{share:.1%}", va="center")
    ax.axvline(CLEAR, color=colors["primary"], linestyle="--")
    ax.set(xlim=(0, 1), yticks=range(3), yticklabels=["bytes", "arithmetic", "launches"], xlabel="share of the time")
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    return fig
