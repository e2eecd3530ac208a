"""The calculator of what a token costs: the roof that binds, the rent, and the share of hours with work."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import Hardware, viz
from mlsys.core.dtypes import bytes_per_element
from mlsys.costs.prices import rents
from mlsys.costs.serving import TokenPrice, token_price
from mlsys.formatting import fmt

CHIPS = ("t4", "l4", "a100-80gb-sxm", "h100-sxm", "h200", "b200", "mi300x")
YEAR = 2026
"""The year of the quoted rents."""
LIMITS = {"rent": (0.01, 1000), "year": (2015, 2035), "batch": (1, 100_000), "busy": (1, 100)}
"""What may be entered: dollars an hour, the year of that rent, sequences, and percent of the paid hours with work."""
FIRST = {"chip": "h100-sxm", "model": "llama2-7b", "dtype": "fp16", "batch": 8, "tokens": 2048, "busy": 100}


def price(
    chip_id: str, model: str, dtype: str, batch: int, tokens: int, hourly: float, busy: float = 1.0
) -> TokenPrice:
    """Return what the calculator shows, from the package."""
    from _figures.decoding import steps

    chip, step = Hardware.get(chip_id), steps()[model]
    return token_price(
        hourly_rent=hourly,
        weights=step.weights(dtype),
        flops_per_token=step.flops + step.flops_each * tokens,
        kv_cache=step.cache * tokens,
        bandwidth=chip.memory_bw,
        peak=chip.peak("fp16"),
        batch=batch,
        busy=busy,
    )


def content() -> Content:
    """The numbers and the fallback of the calculator."""
    from _figures.decoding import FORMATS, NAMES, steps

    quoted = rents(YEAR)
    chips: list[dict[str, Any]] = []
    for chip_id in CHIPS:
        chip = Hardware.get(chip_id)
        one = {"id": chip_id, "name": chip.name, "bandwidth": chip.memory_bw.m_as("B/s")}
        one |= {"peak": chip.peak("fp16").m_as("FLOP/s"), "bytes": chip.memory_capacity.m_as("B")}
        if chip_id in quoted:
            one["rent"] = [end.value.m_as("USD/hour") for end in (quoted[chip_id].low, quoted[chip_id].high)]
        chips.append(one)
    listed = [{"id": key, **vars(step)} for key, step in steps().items()]
    formats = [{"id": key, "name": NAMES[key], "bytes": bytes_per_element(key)} for key in FORMATS]
    hourly = quoted[FIRST["chip"]].low.value.m
    shown = price(FIRST["chip"], FIRST["model"], FIRST["dtype"], FIRST["batch"], FIRST["tokens"], hourly)
    return Content(
        title="What a token costs",
        numbers={"chips": chips, "models": listed, "formats": formats, "limits": LIMITS, "first": FIRST, "year": YEAR},
        picture=_picture,
        alt="A line over the number of users, both axes logarithmic. For Llama 2 7B with "
        f"{FIRST['tokens']:,} tokens a user on an H100 at {hourly} dollars an hour, a million tokens cost 3 dollars "
        f"for one user; the line falls to {fmt(shown.per_million.m)} dollars for {FIRST['batch']} users, where a dot "
        "is, and flattens near 0.2. "
        "A dashed line at 61 users marks the end of the memory.",
        tables=(_table(hourly),),
    )


def _table(hourly: float) -> Table:
    from _figures.decoding import steps

    head = ("model, 16-bit weights", *(f"{users} user{'s' * (users > 1)}" for users in (1, 8, 32)))
    rows = []
    for key, step in steps().items():
        tokens = min(2048, step.longest)
        cells = []
        for users in (1, 8, 32):
            held = step.weights("fp16") + users * (step.cache * tokens + step.results)
            found = price(FIRST["chip"], key, "fp16", users, tokens, hourly)
            fits = held <= Hardware.get(FIRST["chip"]).memory_capacity.m_as("B")
            cells.append(f"{found.per_million.m:.3g} dollars" if fits else "does not fit")
        rows.append((f"{step.name}, {tokens:,} tokens", *cells))
    return Table(
        f"Price of a million written tokens on an H100 at {hourly} dollars an hour, always busy", (head, *rows)
    )


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.9))
    hourly = rents(YEAR)[FIRST["chip"]].low.value.m
    users = np.unique(np.geomspace(1, 1000, 80).round().astype(int))
    args = FIRST["chip"], FIRST["model"], FIRST["dtype"]
    ax.loglog(
        users, [price(*args, int(n), FIRST["tokens"], hourly).per_million.m for n in users], color=colors["BlueLine"]
    )
    shown = price(*args, FIRST["batch"], FIRST["tokens"], hourly).per_million.m
    ax.plot([FIRST["batch"]], [shown], "o", color=colors["RedLine"])
    ax.axvline(61, color=colors["primary"], linestyle="--", linewidth=1.2)
    ax.text(66, 2.2, "memory full")
    ax.set(xlabel="users at a time", ylabel="dollars per\nmillion tokens")
    return fig
