"""Write what Triton's compiler makes of the kernels in the chapter on first kernels, for a GPU that need not be here.

`python scripts/compile_stages.py` writes `book/_figures/compiled.py`. Run it when the pinned version of Triton changes;
a test compares the file with what the installed version makes. Triton's wheel brings NVIDIA's assembler and
disassembler, so neither a GPU nor CUDA is needed.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

OUTPUT = Path(__file__).parents[1] / "book" / "_figures" / "compiled.py"
CAPABILITY = 90

KERNEL = """\
@triton.jit
def scale_shift_relu(x_ptr, y_ptr, scale, shift, N, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < N
    x = tl.load(x_ptr + index, mask=inside, other=0.0)
    y = tl.maximum(x * scale + shift, 0.0)
    tl.store(y_ptr + index, y, mask=inside)
"""
"""The kernel whose forms the chapter reads, as it is printed there."""

STRIDED = KERNEL.replace("N, BLOCK", "N, stride, BLOCK").replace("_ptr + index,", "_ptr + index * stride,")
"""The same for numbers that are `stride` places apart."""

TILED = """\
@triton.jit
def bias_relu(
    x_ptr, bias_ptr, y_ptr, gain, rows, cols,
    x_row, x_col, y_row, y_col,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    col = tl.program_id(1) * COLS + tl.arange(0, COLS)[None, :]
    inside = (col < cols) & (row < rows)
    x_place = x_ptr + row * x_row + col * x_col
    x = tl.load(x_place, mask=inside, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + col, mask=col < cols, other=0.0)
    y = gain * tl.maximum(x + bias.to(tl.float32), 0.0)
    y_place = y_ptr + row * y_row + col * y_col
    tl.store(y_place, y.to(y_ptr.dtype.element_ty), mask=inside)
"""
"""The kernel over tiles of a matrix, as it is printed in the chapter."""

PLAIN: Mapping[str, Any] = {"text": KERNEL, "dtype": "fp32", "constants": {"BLOCK": 512}, "warps": 4, "odd": False}
TILE = {"ROWS": 8, "COLS": 64, "x_col": 1, "y_col": 1}
"""A launch with contiguous rows: Triton makes a constant of every argument that is 1."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "the kernel as it is": PLAIN,
    "BLOCK = 2048": {**PLAIN, "constants": {"BLOCK": 2048}},
    "8 warps": {**PLAIN, "warps": 8},
    "float16 vectors": {**PLAIN, "dtype": "fp16"},
    "N = 1,000,003": {**PLAIN, "odd": True},
    "index * stride": {**PLAIN, "text": STRIDED},
    "tile": {**PLAIN, "text": TILED, "constants": TILE},
}
"""What changes in the kernel or in its launch, by the words of the chapter's table."""

FLOATS = ("scale", "shift", "gain")
"""Arguments that are float32 numbers; the others are addresses, which end in `_ptr`, and ints."""

Lines = list[tuple[int | None, str]]
"""Lines of one form, each with the number of the kernel's line that it was made from."""


def compiled(variant: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Compile one variant and return Triton's texts and binary by their names; Triton must not interpret."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = Path(tempfile.mkdtemp(dir=folder)) / "kernel.py"
    path.write_text(variant["text"])
    names: dict[str, Any] = {"triton": triton, "tl": tl}
    exec(compile(variant["text"], str(path), "exec"), names)
    kernel = next(value for value in names.values() if isinstance(value, triton.JITFunction))
    signature = {name: _type(name, variant) for name in kernel.arg_names}
    unknown = {"stride"} | ({"N"} if variant["odd"] else set())
    multiples = [place for place, (name, kind) in enumerate(signature.items()) if kind in ("i32", "*fp32", "*fp16")]
    multiples = [place for place in multiples if kernel.arg_names[place] not in unknown]
    made = triton.compile(
        ASTSource(kernel, signature, variant["constants"], {(n,): [["tt.divisibility", 16]] for n in multiples}),
        target=GPUTarget("cuda", CAPABILITY, 32),
        options={"num_warps": variant["warps"]},
    )
    return dict(made.asm)


def _type(name: str, variant: Mapping[str, Any]) -> str:
    if name in variant["constants"]:
        return "constexpr"
    return f"*{variant['dtype']}" if name.endswith("_ptr") else "fp32" if name in FLOATS else "i32"


def triton_lines(text: str) -> Lines:
    """The lines of TTIR or TTGIR without their locations, which become the number of the kernel's line."""
    places = {name: int(line) for name, line in re.findall(r'^(#loc\d*) = loc\("[^"]*":(\d+):\d+\)', text, re.M)}
    for name, inner in re.findall(r'^(#loc\d*) = loc\("[^"]*"\((#loc\d*)\)\)', text, re.M):
        if inner in places:
            places[name] = places[inner]
    lines: Lines = []
    for line in text.splitlines():
        if not line or line.startswith("#loc"):
            continue
        last = re.search(r"loc\((#loc\d*|unknown)\)$", line.rstrip(" {"))
        stripped = re.sub(r" ?loc\((?:[^()]|\([^()]*\))*\)", "", line)
        signature = "tt.func" in line
        found = places.get("#loc") if signature else places.get(last[1]) if last and line.strip()[0] != "}" else None
        # One argument in each line, and only white space is added
        parts = re.sub(r"(, )(?=%)", r",\n      ", stripped).split("\n") if signature else [stripped]
        lines += [(found, part.rstrip()) for part in parts]
    return lines


def ptx_lines(text: str) -> Lines:
    """The instructions of the kernel, without directives for a debugger."""
    body = text[text.index(".visible .entry") : text.index("\n}\n") + 2]
    lines: Lines = []
    current: int | None = None
    for line in body.splitlines():
        place = re.match(r"\s*\.loc\s+1 (\d+)", line)
        if place:
            current = int(place[1])
        line = line.expandtabs(4).split("//")[0].rstrip()
        if place or not line or line.startswith("$L") or line.strip().startswith("."):
            if line.strip().startswith((".visible", ".param", ".reg ")):
                lines.append((None, line))
            continue
        lines.append((current if line.startswith(" ") else None, line))
    return lines


def sass_lines(cubin: bytes) -> Lines:
    """The machine's instructions, up to the padding behind the last of them."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = run_tool("nvdisasm", "-g", "-c", file.name)
    lines: Lines = []
    current: int | None = None
    for line in text.splitlines():
        place = re.match(r'\s*//## File ".*", line (\d+)', line)
        current = int(place[1]) if place else current
        found = re.match(r"\s*/\*(\w+)\*/(\s+)(.*?) ?;$", line)
        if found and found[3].startswith("BRA `(.L_x"):
            break
        if found:
            lines.append((current, f"{found[1]}  {found[3]}"))
    return lines


def run_tool(name: str, *arguments: str) -> str:
    """Run one of the tools that Triton's wheel brings, and return what it prints."""
    import triton

    tool = Path(triton.__file__).parent / "backends/nvidia/bin" / name
    return subprocess.run([str(tool), *arguments], capture_output=True, text=True, check=True).stdout


def facts(asm: Mapping[str, Any]) -> dict[str, Any]:
    """The layouts of a variant and the kinds of its accesses to memory, as the compiler wrote them."""
    layouts = re.findall(r"^#blocked\d* = #ttg\.blocked<(.*)>$", asm["ttgir"], re.M)
    accesses = re.findall(r"(?:@%p\d+ )?((?:ld|st)\.global\S*)", asm["ptx"])
    loads, stores = ([access for access in accesses if access.startswith(kind)] for kind in ("ld", "st"))
    return {"layouts": layouts, "loads": loads, "stores": stores, "ptx": [text for _, text in ptx_lines(asm["ptx"])]}


def results(folder: Path) -> dict[str, Any]:
    """Compile everything and return what `book/_figures/compiled.py` holds, by name."""
    import triton

    made = {name: compiled(variant, folder) for name, variant in VARIANTS.items()}
    asm = made["the kernel as it is"]
    stages = {
        "TTIR": triton_lines(asm["ttir"]),
        "TTGIR": triton_lines(asm["ttgir"]),
        "PTX": ptx_lines(asm["ptx"]),
        "SASS": sass_lines(asm["cubin"]),
    }
    release = re.search(r"release ([\d.]+)", run_tool("ptxas", "--version"))
    assert release is not None
    return {
        "VERSIONS": {"Triton": triton.__version__, "ptxas": release[1], "target": f"sm_{CAPABILITY}"},
        "KERNEL": KERNEL,
        "TILED": TILED,
        "STAGES": stages,
        "VARIANTS": {name: facts(asm) for name, asm in made.items()},
    }


def module(found: Mapping[str, Any]) -> str:
    """The text of the file."""
    return "\n".join(
        [
            '"""What Triton\'s compiler made of the kernels of a chapter; written by scripts/compile_stages.py."""',
            "",
            "# ruff: noqa: E501 - lines are as long as the compiler writes them",
            "# fmt: off",
            *_versions(found["VERSIONS"]),
            *_text("KERNEL", found["KERNEL"]),
            *_text("TILED", found["TILED"]),
            "",
            "STAGES: dict[str, list[tuple[int | None, str]]] = {",
            *_stages(found["STAGES"]),
            "}",
            '"""The lines of each form, each with the line of `KERNEL` that it was made from, counted from 1."""',
            "",
            "VARIANTS: dict[str, dict[str, list[str]]] = {",
            *_variants(found["VARIANTS"]),
            "}",
            '"""Layouts and accesses to memory of the kernel, and of what is made from it by one change."""',
            "",
        ]
    )


def _versions(versions: Mapping[str, str]) -> Iterator[str]:
    yield ""
    yield f"VERSIONS = {dict(versions)!r}"


def _text(name: str, text: str) -> Sequence[str]:
    return ["", f'{name} = """\\', *text.splitlines(), '"""']


def _variants(variants: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    for name, facts_found in variants.items():
        yield f"    {name!r}: {{"
        yield from (f"        {kind!r}: {list(facts_found[kind])!r}," for kind in ("layouts", "loads", "stores"))
        yield "    },"


def _stages(stages: Mapping[str, Lines]) -> Iterator[str]:
    for name, lines in stages.items():
        yield f"    {name!r}: ["
        yield from (f"        ({line!r}, {text!r})," for line, text in lines)
        yield "    ],"


def write(output: Path, text_of: Callable[[Path], str]) -> None:
    """Write a file whose text needs a folder, in a process in which Triton compiles; print it with `--print`."""
    if os.environ.pop("TRITON_INTERPRET", None):
        os.execv(sys.executable, [sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "cache")
        text = text_of(Path(folder))
    if "--print" in sys.argv:
        print(text, end="")
    else:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(OUTPUT, lambda folder: module(results(folder)))
