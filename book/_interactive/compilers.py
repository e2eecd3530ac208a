"""The compiler's stages, for one network: what each form says, and what became of one operation."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

from matplotlib.figure import Figure

from _interactive.content import Content, Table
from mlsys import viz

ROWS, COLUMNS = 2048, 1024
NOTES = {
    "import": "The network has run once on example inputs, and each call of torch was noted in the words of ONNX.",
    "optimize": "What is constant is computed, and what no output needs is dropped.",
    "fuse": "Operations share a kernel where the cost model says that it is faster, and only its result is stored.",
    "schedule": "Each kernel has a tile, a grid of programs, and warps for each of them.",
    "memory": "Each tensor that kernels pass on to each other has a place in one block of memory.",
    "lower": "Each kernel is Triton source, and `run` launches the kernels in order.",
    "run": "Measured on the H200: kernels alone, replayed from a CUDA graph, and called from Python.",
}
"""What has changed at each stage."""
MANY = 4  # kernels, if the compiler fuses what pays
FIRST = {"stage": 2, "operation": 4}


@cache
def programs() -> dict[str, dict[str, Any]]:
    """What each stage gives, by the name of the stage, for each way of fusing."""
    import torch
    from _figures import compilers as figures

    from mlsys.compiler.fuse import fuse
    from mlsys.compiler.import_torch import from_torch
    from mlsys.compiler.lower import lower
    from mlsys.compiler.memory import plan
    from mlsys.compiler.optimize import optimize
    from mlsys.compiler.schedule import schedule
    from mlsys.hardware import Hardware

    h200 = Hardware.get("h200")
    names: dict[str, Any] = {"fuse": fuse, "replace": replace, "h200": h200}
    exec(figures.NOTHING_FUSED, names)
    torch.manual_seed(0)
    network = figures.network()(COLUMNS).half().eval().requires_grad_(False)
    graph = from_torch(network, [torch.zeros(ROWS, COLUMNS, dtype=torch.float16)])
    made = {}
    for way, stage in (("all stages", lambda one: fuse(one, h200)), ("nothing fused", names["nothing_fused"])):
        forms: dict[str, Any] = {"import": graph, "optimize": optimize(graph)}
        forms["fuse"] = stage(forms["optimize"])
        forms["schedule"] = schedule(forms["fuse"], h200, "cuda")
        forms["memory"] = plan(forms["schedule"])
        forms["lower"] = lower(forms["memory"], "cuda")
        made[way] = forms
    return made


def kernel_of(forms: dict[str, Any]) -> dict[str, int]:
    """The kernel that computes each result, by its place in the program; a dropped operation has none."""
    found = {}
    for place, kernel in enumerate(forms["fuse"].kernels):
        found |= {line.partition(" = ")[0]: place for line in kernel.operations}
    return found


def marked(forms: dict[str, Any], stage: str, text: list[str], result: str) -> list[int]:
    """The lines of a form that are about an operation, by its result."""
    kernel = kernel_of(forms).get(result)
    if stage == "schedule":
        return [] if kernel is None else [kernel]
    if stage == "lower":
        launches = [place for place, line in enumerate(text) if line.startswith("    launch(")]
        if kernel is None:
            return []
        launch = launches[kernel]
        called = text[launch].partition("(")[2].partition(",")[0]
        return [next(place for place, line in enumerate(text) if line.startswith(f"def {called}(")), launch]
    return [place for place, line in enumerate(text) if re.search(rf"\b{result}\b", line)]


def said(forms: dict[str, Any], stage: str, result: str) -> str:
    """What has become of an operation at a stage, as a sentence."""
    program, kernel = forms["memory"], kernel_of(forms).get(result)
    if stage == "import":
        return "It is one operation of the graph."
    if kernel is None:
        return "No output needs it, so it is gone."
    if stage == "optimize":
        return "An output needs it, so it stays."
    name = program.kernels[kernel].name
    if stage == "fuse":
        decision = next(line for line in program.decisions if line.startswith(f"{result}:")).partition(": ")[2]
        decision = "stored, like every result" if len(program.kernels) > MANY else decision
        return f"The decision: {decision}. Kernel {kernel + 1}, {name}, computes it."
    if stage == "schedule":
        grid, warps = program.kernels[kernel].grid, program.kernels[kernel].warps
        programs = 1
        for side in grid:
            programs *= side
        return f"Its kernel, number {kernel + 1}, runs as {programs:,} programs of {warps} warps."
    if stage == "memory":
        if result in program.offsets:
            first, end, size = program.lifetimes[result]
            return f"It has {size:,} bytes at {program.offsets[result]:,}, from kernel {first + 1} to {end}."
        where = "an output, which has memory of its own" if result in program.graph.outputs else "never in memory"
        return f"It is {where}."
    return f"Kernel {kernel + 1} computes it; the definition and the launch are marked."


def content() -> Content:
    """The numbers and the fallback of the viewer."""
    from _figures import compilers as figures

    from mlsys.measure import records

    record = records.load("compiler/nvidia-h200")
    times = figures.network_times(record)
    made = programs()
    operations = made["all stages"]["import"].operations
    results = [operation.outputs[0] for operation in operations]
    ways = []
    for way, forms in made.items():
        kernels = kernel_of(forms)
        stages = []
        for stage in forms:
            text = str(forms[stage]).splitlines()
            stages.append(
                {
                    "name": stage,
                    "lines": text,
                    "marked": [marked(forms, stage, text, result) for result in results],
                    "said": [said(forms, stage, result) for result in results],
                }
            )
        ways.append(
            {
                "name": way,
                "stages": stages,
                "kernel": [kernels.get(result, -1) for result in results],
                "stored": [name in forms["memory"].offsets for name in results],
                "kernels": len(forms["fuse"].kernels),
                "bytes": forms["memory"].memory,
            }
        )
    return Content(
        title="The stages of a compiler",
        numbers={
            "operations": [{"op": operation.op, "result": operation.outputs[0]} for operation in operations],
            "notes": NOTES,
            "ways": ways,
            "times": [{"name": name, **kinds} for name, kinds in times.items() if name != "small tiles"],
            "label": record.label,
            "first": FIRST,
        },
        picture=_picture,
        alt="Sixteen boxes in a row, one for each operation of the network. Fourteen of them are in four frames, which "
        "are the kernels: a layer normalization alone, then a product with all operations up to the sum, and the same "
        "again. The last two boxes are dashed, because nothing needs them.",
        tables=(_operations(), _times(times)) if times else (_operations(),),
    )


def _operations() -> Table:
    made = programs()
    rows: list[tuple[str, ...]] = [("operation", *(f"kernel, {way}" for way in made))]
    for operation in made["all stages"]["import"].operations:
        result = operation.outputs[0]
        found = [kernel_of(forms).get(result) for forms in made.values()]
        rows.append((operation.op, *("dropped" if kernel is None else str(kernel + 1) for kernel in found)))
    return Table("The kernel that computes each operation", tuple(rows))


def _times(times: dict[str, dict[str, float]]) -> Table:
    rows = [("program", "kernels alone, µs", "called from Python, µs")]
    rows += [(name, f"{kinds['graph']:.1f}", f"{kinds['call']:.1f}") for name, kinds in times.items()]
    return Table("Times on the H200", tuple(rows))


def _picture() -> Figure:
    from matplotlib.patches import Rectangle

    fig, ax, colors, _ = viz.setup_plot(figsize=(6.6, 2.6))
    forms = programs()["all stages"]
    kernels = kernel_of(forms)
    for place, operation in enumerate(forms["import"].operations):
        kernel = kernels.get(operation.outputs[0])
        line = "-" if kernel is not None else "--"
        face = colors["BlueL"] if kernel is not None else "none"
        ax.add_patch(
            Rectangle((place + 0.12, 0), 0.76, 1, facecolor=face, edgecolor=colors["BlueLine"], linestyle=line)
        )
        ax.text(place + 0.5, 0.5, operation.op, rotation=90, ha="center", va="center", fontsize=8)
    for kernel in range(len(forms["fuse"].kernels)):
        cells = [n for n, one in enumerate(forms["import"].operations) if kernels.get(one.outputs[0]) == kernel]
        ax.add_patch(
            Rectangle(
                (cells[0] + 0.03, -0.12),
                len(cells) - 0.06,
                1.24,
                facecolor="none",
                edgecolor=colors["OrangeLine"],
                linewidth=2,
            )
        )
        ax.text(
            cells[0] + len(cells) / 2, 1.2, f"kernel {kernel + 1}", ha="center", color=colors["OrangeLine"], fontsize=9
        )
    ax.set(xlim=(-0.1, 16.1), ylim=(-0.2, 1.45))
    ax.axis("off")
    return fig
