"""The compiler's stages: one kernel in five forms, and what each of its lines became."""

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz

NOTES = {
    "Python": "You write what one program does with a block. There are no threads yet.",
    "TTIR": "Triton's own form: a block is a tensor, and no line names a thread or a chip.",
    "TTGIR": "The same for a GPU: every block now has a layout, which deals its elements out to threads.",
    "PTX": "NVIDIA's assembly language, for one thread: blocks have become registers.",
    "SASS": "The instructions of one thread that this chip executes, in the order that the assembler chose.",
}
"""What has changed at each stage."""
BLOCKS = ("Python", "TTIR")
"""Forms in which a block is whole."""
FIRST = {"stage": 2, "line": 5, "element": 137}


def stages() -> dict[str, list[tuple[int | None, str]]]:
    """The lines of each form, each with the kernel's line that it was made from."""
    from _figures import compiled

    source: list[tuple[int | None, str]] = list(enumerate(compiled.KERNEL.splitlines(), 1))
    return {"Python": source, **compiled.STAGES}


def content() -> Content:
    """The numbers and the fallback of the viewer."""
    from _figures import compiled
    from _figures.first_kernels import Layout

    layout = Layout.read(compiled.VARIANTS["the kernel as it is"]["layouts"][0])
    made = stages()
    lines = [{"number": number, "text": text.strip()} for number, text in made["Python"] if number and number > 2]
    versions = compiled.VERSIONS
    return Content(
        title="The compiler's stages",
        numbers={
            "stages": [
                {"name": name, "note": NOTES[name], "whole": name in BLOCKS, "lines": found}
                for name, found in made.items()
            ],
            "lines": lines,
            "layout": {
                "size": layout.size_per_thread[0],
                "lanes": layout.threads_per_warp[0],
                "warps": layout.warps_per_cta[0],
            },
            "elements": layout.covered[0],
            "made": f"Triton {versions['Triton']} and ptxas {versions['ptxas']} for {versions['target']}",
            "first": FIRST,
        },
        picture=_picture,
        alt="Five horizontal bars, one for each form of the kernel: Python, TTIR, TTGIR, PTX and SASS. Each bar is cut "
        "into five colored parts, one for each line of the kernel's body, as long as the number of lines it became. "
        "In Python every part is one line long; in the other forms the bars are four to six times as long.",
        tables=(_counts(), _load()),
    )


def count(found: list[tuple[int | None, str]], line: int) -> int:
    """How many lines of a form were made from one line of the kernel."""
    return sum(source == line for source, _ in found)


def _body() -> list[tuple[int, str]]:
    return [(number, text.strip()) for number, text in stages()["Python"] if number and number > 2]


def _counts() -> Table:
    made = stages()
    rows: list[tuple[str, ...]] = [("line of the kernel", *made)]
    for line, text in _body():
        rows.append((text, *(str(count(found, line)) for found in made.values())))
    return Table("Lines of each form that come from a line of the kernel", tuple(rows))


def _load() -> Table:
    from _figures.first_kernels import made_from

    rows: list[tuple[str, ...]] = [("form", "the line that loads; the lines before it only prepare it")]
    for name, found in stages().items():
        accesses = [text for text in made_from(found, 5) if "load" in text or "ld.global" in text or "LDG" in text]
        rows.append((name, accesses[-1]))
    return Table("The load of x in each form", tuple(rows))


def _picture() -> Figure:
    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 3.0))
    made = stages()
    tones = ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "BrownLine")
    for place, found in enumerate(made.values()):
        left = 0
        for tone, (line, _) in zip(tones, _body(), strict=True):
            length = count(found, line)
            ax.barh(place, length, left=left, color=colors[tone], edgecolor="white")
            ax.text(left + length / 2, place, str(length), ha="center", va="center", color="white", fontsize=9)
            left += length
    names = ("index", "inside", "load", "y", "store")
    handles = [ax.barh(0, 0, color=colors[tone]) for tone in tones]
    ax.legend(handles, names, ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False, fontsize=9)
    ax.set_yticks(range(len(made)), list(made))
    ax.invert_yaxis()
    ax.set(xlabel="lines that come from each line of the kernel")
    ax.grid(visible=False, axis="y")
    return fig
