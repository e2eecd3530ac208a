"""A sum of products side by side: the same products added up one by one in FP32, BF16 and FP16."""

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from _interactive.numerics import formats, label
from mlsys import viz
from mlsys.formatting import fmt
from mlsys.numerics import float_format, running_sum

ACCUMULATORS = ("fp32", "bf16", "fp16")
FACTORS = ("fp32", "tf32", "bf16", "fp16", "fp8-e4m3", "fp8-e5m2", "fp4-e2m1")
"""Formats in which the factors may be given."""
LONGEST = 13
"""Logarithm to base 2 of the largest number of products."""
LARGEST = 1000.0
"""Largest size of a factor that may be typed."""
SPREAD = (0.6180339887498949, 0.4142135623730951)
"""Steps of two sequences that fill the interval from 0 to 1 evenly: i times the step, without its whole part."""
KINDS = {
    "same": "the same pair every time",
    "positive": "sizes from 0 to the pair's, all positive",
    "signs": "the same sizes, with both signs",
}
FIRST = {"kind": "same", "a": "1", "b": "1", "factors": "fp16", "terms": 12}


def products(kind: str, a: float, b: float, factors: str, count: int) -> list[float]:
    """The products that are added: both factors rounded to their format, multiplied without rounding."""
    form = float_format(factors)
    made = []
    for number in range(1, count + 1):
        u, v = (number * step % 1 for step in SPREAD)
        sizes = {"same": (1.0, 1.0), "positive": (u, v), "signs": (2 * u - 1, v)}[kind]
        left, right = (float(form.round(x * size)) for x, size in zip((a, b), sizes, strict=True))
        made.append(left * right)
    return made


def content() -> Content:
    """The numbers and the fallback of the sums."""
    return Content(
        title="One sum in three accumulators",
        numbers={
            "formats": formats(),
            "accumulators": ACCUMULATORS,
            "factors": FACTORS,
            "kinds": KINDS,
            "spread": SPREAD,
            "longest": LONGEST,
            "largest": LARGEST,
            "first": FIRST,
        },
        picture=_picture,
        alt="The running sum against the number of ones that were added, up to 4,096. The line of FP32 rises all the "
        "way. The line of FP16 leaves it at 2,048 and stays there, the line of BF16 leaves it at 256.",
        tables=(_table(),),
        scripts=("formats",),
    )


def _table() -> Table:
    head = ("products of 1 and 1", *(label(name) for name in ACCUMULATORS))
    counts = (100, 256, 1000, 2048, 4096)
    rows = [(fmt(n, 0), *(fmt(running_sum([1.0] * n, name), 0) for name in ACCUMULATORS)) for n in counts]
    return Table("Sums of ones", (head, *rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.8))
    counts = range(0, 4097, 64)
    for name, color in zip(ACCUMULATORS, ("BlueLine", "OrangeLine", "GreenLine"), strict=True):
        stop = 2.0 ** (float_format(name).mantissa_bits + 1)  # where one more no longer changes the sum
        ax.plot(counts, [min(n, stop) for n in counts], color=colors[color], label=label(name))
    ax.set(xlabel="ones added", ylabel="sum")
    ax.legend(frameon=False)
    return fig
