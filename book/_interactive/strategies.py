"""A network on a chip, mapped group by group: time, bytes and utilization of each choice, and why the best is best."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys.formatting import fmt

FIRST = {"network": "vit32", "chip": "tpu-v4", "flow": "ws"}
"""What is chosen at the start; activations and attention are kernels of their own."""
NAMES = {"the rest": "normalizations, activations, sums", "classifier": "last product"}
"""Groups whose name in the figure is another."""

ATTENTION = {"ws": "keys and values stay", "os": "sums stay", "is": "queries and shares stay"}
"""What stays in attention, which has no weights: its second operands are keys and values."""


def ways() -> dict[str, str]:
    """The ways to map a group, as the reader sees them."""
    from _figures.strategies import FLOWS

    return {
        **FLOWS,
        **{f"{flow}-apart": f"three kernels, {text}" for flow, text in ATTENTION.items()},
        **{f"{flow}-fused": f"one kernel, {text}" for flow, text in ATTENTION.items()},
        "apart": "kernels of their own",
        "joined": "activations and sums joined to products",
    }


def content() -> Content:
    """The numbers and the fallback of the figure."""
    from _figures import strategies as figures

    chips = [
        {"id": key, "name": machine.name, "peak": machine.peak, "bandwidth": machine.bandwidth}
        for key, machine in figures.machines().items()
    ]
    networks = [
        {"id": key, "name": network.name, "on": {chip: _groups(chip, key) for chip in figures.machines()}}
        for key, network in figures.networks().items()
    ]
    return Content(
        title="A network, a chip, and a mapping for each group of layers",
        numbers={"chips": chips, "networks": networks, "ways": ways(), "first": FIRST},
        picture=_picture,
        alt="Two bars for each of three chips, for ViT-B/16 on 32 images, in times of the best mapping. With weights "
        "that stay everywhere and nothing fused, the H200 needs 2 times as long, the others 1.3 and 1.5.",
        tables=(_table(),),
    )


def _groups(chip: str, key: str) -> list[dict[str, Any]]:
    """For each group: its name, the best way, and what each way takes."""
    from _figures import strategies as figures

    found = figures.choices(figures.machines()[chip], figures.networks()[key])
    return [
        {
            "name": NAMES.get(group, group),
            "best": figures.best(options),
            "options": [
                {"way": way, "compute": cost.compute_s, "memory": cost.memory_s, "time": cost.time_s,
                 "moved": cost.moved, "flops": cost.flops}
                for way, cost in options.items()
            ],
        }
        for group, options in found.items()
    ]  # fmt: skip


def uniform(chip: str, key: str, flow: str) -> float:
    """Seconds when one operand stays everywhere and nothing is fused."""
    from _figures import strategies as figures

    options = figures.choices(figures.machines()[chip], figures.networks()[key])
    return sum((found.get(flow) or found.get(f"{flow}-apart") or found["apart"]).time_s for found in options.values())


def hybrid(chip: str, key: str) -> float:
    """Seconds when each group has its best mapping."""
    from _figures import strategies as figures

    options = figures.choices(figures.machines()[chip], figures.networks()[key])
    return sum(found[figures.best(found)].time_s for found in options.values())


def _table() -> Table:
    from _figures import strategies as figures

    head = (
        "network",
        *(f"{machine.name}: worst, best uniform, each best, ms" for machine in figures.machines().values()),
    )
    rows = [head]
    for key, network in figures.networks().items():
        cells = []
        for chip in figures.machines():
            times = [uniform(chip, key, flow) for flow in figures.FLOWS]
            cells.append(
                ", ".join(fmt(1e3 * t, 1 if t > 0.01 else 2) for t in (max(times), min(times), hybrid(chip, key)))
            )
        rows.append((network.name, *cells))
    return Table("Uniform mappings without fusion, and the best mapping of each group", tuple(rows))


def _picture() -> Figure:
    from _figures import strategies as figures

    from mlsys import viz

    _, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.3))
    for place, chip in enumerate(figures.machines()):
        least = hybrid(chip, FIRST["network"])
        for shift, (seconds, color, words) in enumerate(
            ((uniform(chip, FIRST["network"], "ws"), "OrangeLine", "weights stay, nothing fused"),
             (least, "GreenLine", "best of each group"))
        ):  # fmt: skip
            y = place + 0.36 * (shift - 0.5)
            ax.barh(y, seconds / least, 0.34, color=colors[color], label=None if place else words)
            ax.text(seconds / least + 0.02, y, f"{1e3 * seconds:.3g} ms", va="center", fontsize=9)
        ax.set_yticks(range(place + 1), [one.name for one in list(figures.machines().values())[: place + 1]])
    ax.set(xlabel="times of the best", xlim=(0, 2.4))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=9)
    return plt.gcf()
