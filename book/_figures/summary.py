"""Figures of the chapter that puts the others together; each draws one claim from numbers that it is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.patches import FancyBboxPatch

from mlsys import viz

WIDTH = 5.0
"""Inches: with the course's font size, text stays readable when a phone shrinks the figure to its width."""

QUESTIONS = (
    ("1", "Do the launches\nexplain it?", "record a graph, fuse,\nmore rows per launch", "Violet"),
    ("2", "Is the device idle\nin between?", "fewer waits and copies,\noverlap, other loader", "Violet"),
    ("3", "Do more bytes move\nthan you counted?", "layout, tiles, fusion", "Blue"),
    ("4", "Does format or shape\nmiss the fast unit?", "16 bits or fewer, lengths\ndivisible by 8, more rows", "Green"),
    ("5", "Which kernel takes\nmost of the time?", "profile it: busiest unit,\nthen its waits", "Orange"),
)
"""The questions about a program far above its least time: number, question, what to do on a yes, and a color."""


@dataclass(frozen=True)
class Lever:
    """How many times as many tokens per second a change brings.

    Attributes:
        roofs: by the roofs alone.
        kernels: with the time of the kernels added.
        measured: in a record, if it was.
    """

    roofs: float
    kernels: float
    measured: float | None = None


@dataclass(frozen=True)
class Step:
    """Milliseconds of a step of decode.

    Attributes:
        least: by the roofs.
        kernels: cost of the kernels.
        measured: in a record.
    """

    least: float
    kernels: float
    measured: float


def steps(found: Mapping[str, Step], fitted: str) -> None:
    """Draw steps of decode: the time of the roofs, the time of the kernels on top, and what was measured.

    Args:
        found: the steps by name.
        fitted: the step to which the cost of a kernel was fitted.
    """
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 0.9 + 0.42 * len(found)))
    for place, (name, step) in enumerate(found.items()):
        first = place == 0
        ax.barh(place, step.least, 0.6, color=colors["BlueLine"], label="by the roofs" if first else None)
        ax.barh(
            place, step.kernels, 0.6, step.least, color=colors["OrangeL"], edgecolor=colors["OrangeLine"],
            label="for the kernels" if first else None,
        )  # fmt: skip
        ax.plot(
            step.measured, place, "D", color=colors["RedLine"], markersize=7, zorder=4, linestyle="none",
            label="measured" if first else None,
        )  # fmt: skip
        end = max(step.measured, step.least + step.kernels)
        miss = 100 * ((step.least + step.kernels) / step.measured - 1)
        said = "fitted" if name == fitted else f"{miss:+.0f}%".replace("-", "−")
        ax.text(end + 0.2, place, said, va="center", fontsize=9)
    ax.set(yticks=range(len(found)), yticklabels=list(found), xlabel="a step, ms", xlim=(0, 6.6))
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.05, 1.0), ncols=3, columnspacing=1.2, handletextpad=0.5)


def levers(found: Mapping[str, Lever]) -> None:
    """Draw for each change what the roofs promise and what is left of it when the kernels take their time, too."""
    _, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 1.0 + 0.48 * len(found)))
    for place, lever in enumerate(found.values()):
        first = place == 0
        ax.plot([lever.roofs, lever.kernels], [place, place], color=colors["primary"], linewidth=1, zorder=1)
        ax.plot(
            lever.roofs, place, "o", color=colors["BlueLine"], markersize=10, label="roofs alone" if first else None
        )
        ax.plot(
            lever.kernels, place, "s", color=colors["OrangeLine"], markersize=7,
            label="roofs and kernels" if first else None,
        )  # fmt: skip
        if lever.measured:
            ax.plot(lever.measured, place, "D", markerfacecolor="none", color=colors["RedLine"], markersize=11)
        for value, tone, above in ((lever.roofs, "BlueLine", True), (lever.kernels, "OrangeLine", False)):
            shown = f"{value:.1f}" if value < 10 else f"{value:.0f}"
            ax.text(value, place + (-0.22 if above else 0.24), shown, ha="center", va="bottom" if above else "top",
                    color=colors[tone], fontsize=9,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4})  # fmt: skip
    ax.plot(
        [], [], "D", markerfacecolor="none", color=colors["RedLine"], markersize=9, linestyle="none", label="measured"
    )
    ax.axvline(1, color=colors["primary"], linestyle="--", linewidth=1)
    ax.set(
        xscale="log", xlim=(0.45, 60), ylim=(len(found) - 0.3, -0.75), yticks=range(len(found)),
        yticklabels=list(found), xlabel="times as many tokens per second",
    )  # fmt: skip
    ax.set_xticks([0.5, 1, 2, 5, 10, 20, 50], ["0.5", "1", "2", "5", "10", "20", "50"])
    ax.minorticks_off()
    ax.grid(visible=False, axis="y")
    ax.legend(loc="lower left", bbox_to_anchor=(-0.35, 1.0), ncols=3, columnspacing=1.0, handletextpad=0.4)


def triage(questions: Sequence[tuple[str, str, str, str]] = QUESTIONS) -> None:
    """Draw the questions one below the other, each with what to do if the answer is yes."""
    fig, ax, colors, _ = viz.setup_plot(figsize=(WIDTH, 4.6))
    pitch, height = 0.92, 0.62
    top = pitch * (len(questions) + 1)
    ax.text(1.15, top - 0.2, "Far above the least time", ha="center", va="center", weight="bold")
    arrow = {"arrowstyle": "-|>", "color": colors["primary"], "linewidth": 1.4}
    for place, (number, question, change, tone) in enumerate(questions):
        middle = top - 1.0 - pitch * place
        for left, width, text, fill in ((0.0, 2.3, question, True), (3.0, 2.5, change, False)):
            box = FancyBboxPatch(
                (left, middle - height / 2), width, height, boxstyle="round,pad=0.02,rounding_size=0.08",
                ec=colors[f"{tone}Line"] if fill else colors["primary"], fc=colors[f"{tone}L"] if fill else "white",
                linestyle="-" if fill else "--",
            )  # fmt: skip
            ax.add_patch(box)
            ax.text(left + width / 2 + (0.12 if fill else 0), middle, text, ha="center", va="center", fontsize=9)
        ax.text(0.1, middle, number, ha="left", va="center", weight="bold")
        ax.annotate("", (2.98, middle), (2.34, middle), arrowprops={**arrow, "linestyle": "--"})
        last = place == len(questions) - 1
        ax.text(2.66, middle + 0.05, "this one" if last else "yes", ha="center", va="bottom", fontsize=8.5)
        start = middle + pitch - height / 2 if place else top - 0.35
        ax.annotate("", (1.15, middle + height / 2 + 0.03), (1.15, start - 0.03), arrowprops=arrow)
        if place:
            ax.text(1.25, (start + middle + height / 2) / 2, "no", va="center", fontsize=8.5)
    ax.set(xlim=(-0.08, 5.58), ylim=(top - 1.0 - pitch * (len(questions) - 1) - 0.4, top))
    ax.axis("off")
    fig.get_layout_engine().set(w_pad=0, h_pad=0)


def half_batch(weights: float, cache: float, kernels_s: float, bandwidth: float) -> float:
    """Return the sequences at which a step of decode spends half of its time on bytes: (f N BW - W) / C."""
    return (kernels_s * bandwidth - weights) / cache
