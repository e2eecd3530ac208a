"""Write what Triton's compiler reports about fused kernels, for the chapter on fusion; no GPU is needed.

`python scripts/compile_fusion.py` writes `book/_figures/fused.py`. Run it when the pinned version of Triton changes; a
test compares the file with what the installed version makes. All kernels are compiled for an H200 in BF16.
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import compile_stages

OUTPUT = Path(__file__).parents[1] / "book" / "_figures" / "fused.py"
CAPABILITY = 90

ADD_NORM = """\
@triton.jit
def add_norm(
    x_ptr, r_ptr, g_ptr, h_ptr, y_ptr, cols, epsilon,
    BLOCK: tl.constexpr,
):
    col = tl.arange(0, BLOCK)
    in_row = col < cols
    place = tl.program_id(0) * cols + col
    x = tl.load(x_ptr + place, mask=in_row, other=0.0).to(tl.float32)
    r = tl.load(r_ptr + place, mask=in_row, other=0.0).to(tl.float32)
    g = tl.load(g_ptr + col, mask=in_row, other=0.0).to(tl.float32)
    h = x + r
    tl.store(h_ptr + place, h.to(h_ptr.dtype.element_ty), mask=in_row)
    scale = tl.rsqrt(tl.sum(h * h, 0) / cols + epsilon)
    y = h * scale * g
    tl.store(y_ptr + place, y.to(y_ptr.dtype.element_ty), mask=in_row)
"""
"""The kernel that the chapter prints: the sum of two rows, and its RMS normalization."""

LATE_WARPS = 4
"""Warps of a program in a variant of `ADD_NORM` that loads g behind the sum."""

COLUMNS = 8192
"""Numbers of a row in `ADD_NORM`; it is one block."""
WARPS = (32, 16, 8, 4, 2, 1)
LENGTHS = (1, 2, 4, 8, 16, 32, 64)
"""Element-wise steps of a kernel."""
PER_THREAD = 8
"""Numbers of a thread in these kernels."""

STEPS = """\
@triton.jit
def steps(x_ptr, y_ptr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place).to(tl.float32)
{body}    tl.store(y_ptr + place, x.to(y_ptr.dtype.element_ty))
"""

PRODUCT = """\
    across = tl.cdiv(N, BN)
    i = tl.program_id(0) // across * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(0) % across * BN + tl.arange(0, BN)[None, :]
    c = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        k = first + tl.arange(0, BK)
        c = tl.dot(tl.load(A_ptr + i * K + k[None, :]), tl.load(B_ptr + k[:, None] * N + j), c)
"""
TILE = {"BM": 128, "BN": 128, "BK": 64}


@dataclass(frozen=True)
class Step:
    """One operation: its name, the tensor that it makes, and how, in Triton."""

    name: str
    writes: str
    formula: str

    def reads(self, tensors: Mapping[str, str]) -> list[str]:
        """The tensors in the formula."""
        words = dict.fromkeys(re.findall(r"(?<!\.)\b\w+\b", self.formula))
        return [word for word in words if word in tensors]


@dataclass(frozen=True)
class Steps:
    """A chain: its steps, the kind of each tensor (n: a number per element, r: per row, c: per column), its results."""

    steps: Sequence[Step]
    kinds: Mapping[str, str]
    results: Sequence[str]


def _kinds(**tensors: str) -> dict[str, str]:
    return {name: kind for kind, names in tensors.items() for name in names.split()}


CHAINS = {
    "ReLU, batch normalization, scale, shift": Steps(
        [
            Step("ReLU", "a", "tl.maximum(x, 0.0)"),
            Step("normalize", "b", "(a - mean) * tl.rsqrt(var + 0.00001) * gamma + beta"),
            Step("scale", "d", "b * s"),
            Step("shift", "y", "d + t"),
        ],
        _kinds(n="x a b d y", c="mean var gamma beta s t"),
        ["y"],
    ),
    "softmax": Steps(
        [
            Step("row maximum", "m", "tl.max(x, 0)"),
            Step("subtract", "d", "x - m"),
            Step("exponential", "e", "tl.exp(d)"),
            Step("row sum", "s", "tl.sum(e, 0)"),
            Step("divide", "y", "e / s"),
        ],
        _kinds(n="x d e y", r="m s"),
        ["y"],
    ),
    "residual and RMS normalization": Steps(
        [
            Step("add", "h", "x + r"),
            Step("square", "q", "h * h"),
            Step("row mean", "v", "tl.sum(q, 0) / cols"),
            Step("inverse root", "w", "tl.rsqrt(v + 0.00001)"),
            Step("multiply", "z", "h * w"),
            Step("scale", "y", "z * g"),
        ],
        _kinds(n="x r h q z y", r="v w", c="g"),
        ["h", "y"],
    ),
    "product, bias, GELU, residual": Steps(
        [
            Step("product", "c", "A @ B"),
            Step("bias", "b", "c + bias"),
            Step("GELU", "g", "0.5 * b * (1.0 + tl.erf(0.70710678 * b))"),
            Step("residual", "y", "g + r"),
        ],
        _kinds(n="A c b g r y", B="B", c="bias"),
        ["y"],
    ),
}
SEGMENT = {"columns": 4096, "warps": 4}
"""Numbers of a row and warps of a program in the kernels of the chains; four warps are Triton's default."""

PRODUCT_CHAIN = CHAINS["product, bias, GELU, residual"]
RELU_CHAIN = Steps(
    [Step("product", "c", "A @ B"), Step("ReLU", "y", "tl.maximum(c, 0.0)")], _kinds(n="A c y", B="B"), ["y"]
)
EPILOGUES = {
    "nothing": (PRODUCT_CHAIN, 1),
    "ReLU": (RELU_CHAIN, 2),
    "bias and GELU": (PRODUCT_CHAIN, 3),
    "bias, GELU and residual": (PRODUCT_CHAIN, 4),
}
"""What a product does with its tile before it stores it: a chain, and how many of its steps are in the kernel."""


def kernel_text(steps: Sequence[tuple[str, str]], kinds: Mapping[str, str], reads: Sequence[str],
                writes: Sequence[str]) -> str:  # fmt: skip
    """A kernel that loads what it reads, runs the steps (tensor, formula) in FP32 and stores what it writes."""
    product = "A" in reads
    places = {"n": "i * N + j" if product else "row * cols + col", "r": "row", "c": "j" if product else "col"}
    lines = [PRODUCT] if product else ["    row, col = tl.program_id(0), tl.arange(0, cols)\n"]
    lines += [
        f"    {name} = tl.load({name}_ptr + {places[kinds[name]]}).to(tl.float32)\n"
        for name in reads
        if name not in "AB"
    ]
    lines += [f"    {name} = {formula}\n" for name, formula in steps if formula != "A @ B"]
    lines += [f"    tl.store({name}_ptr + {places[kinds[name]]}, {name}.to(tl.bfloat16))\n" for name in writes]
    pointers = ", ".join(f"{name}_ptr" for name in dict.fromkeys([*reads, *writes]))
    rest = "M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr" if product else "cols: tl.constexpr"
    return f"@triton.jit\ndef kernel({pointers}, {rest}):\n{''.join(lines)}"


def report(text: str, constants: Mapping[str, int], warps: int, folder: Path) -> dict[str, int]:
    """Compile a kernel; return registers of a thread, bytes that it spills, and shared bytes of a program."""
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = Path(tempfile.mkdtemp(dir=folder)) / "kernel.py"
    path.write_text(text)
    names: dict[str, Any] = {"triton": triton, "tl": tl}
    exec(compile(text, str(path), "exec"), names)
    kernel = next(value for value in names.values() if isinstance(value, triton.JITFunction))
    signature = {name: _type(name, constants) for name in kernel.arg_names}
    multiples = [place for place, kind in enumerate(signature.values()) if kind in ("*bf16", "i32")]
    made = triton.compile(
        ASTSource(kernel, signature, constants, {(place,): [["tt.divisibility", 16]] for place in multiples}),
        target=GPUTarget("cuda", CAPABILITY, 32),
        options={"num_warps": warps},
    )
    path.with_suffix(".ptx").write_text(made.asm["ptx"])
    assembler = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"
    command = [str(assembler), "-v", f"-arch=sm_{CAPABILITY}a", str(path.with_suffix(".ptx")), "-o", os.devnull]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    patterns = {
        "registers": r"Used (\d+) registers",
        "stored": r"(\d+) bytes spill stores",
        "loaded": r"(\d+) bytes spill loads",
    }
    found = {name: re.search(pattern, said) for name, pattern in patterns.items()}
    missing = [name for name, match in found.items() if match is None]
    if missing:
        raise SystemExit(f"ptxas does not report {', '.join(missing)}:\n{said}")
    counts = {name: int(match[1]) for name, match in found.items() if match}
    return counts | {"shared": int(made.metadata.shared)}


def _type(name: str, constants: Mapping[str, int]) -> str:
    if name in constants:
        return "constexpr"
    return "*bf16" if name.endswith("_ptr") else "fp32" if name == "epsilon" else "i32"


def run_report(chain: Steps, first: int, end: int, warps: int, folder: Path) -> dict[str, int]:
    """The report on the kernel of the steps from `first` to before `end`."""
    inside, later = chain.steps[first:end], chain.steps[end:]
    made = [step.writes for step in inside]
    needed = {*chain.results, *(name for step in later for name in step.reads(chain.kinds))}
    reads = dict.fromkeys(name for step in inside for name in step.reads(chain.kinds) if name not in made)
    steps = [(step.writes, step.formula) for step in inside]
    text = kernel_text(steps, chain.kinds, list(reads), [name for name in made if name in needed])
    return report(text, TILE if "A" in reads else {"cols": SEGMENT["columns"]}, warps, folder)


def all_runs(chain: Steps, folder: Path) -> dict[str, dict[str, int]]:
    """The report on each run of neighboring steps, by its first step and the one after its last."""
    count = len(chain.steps)
    runs = [(first, end) for first in range(count) for end in range(first + 1, count + 1)]
    return {f"{first}-{end}": run_report(chain, first, end, SEGMENT["warps"], folder) for first, end in runs}


def late(text: str) -> str:
    """The kernel with the load of g moved to just before its use."""
    (load,) = [line for line in text.splitlines(keepends=True) if line.lstrip().startswith("g = tl.load")]
    return text.replace(load, "").replace("    y = h * scale * g\n", f"{load}    y = h * scale * g\n")


def results(folder: Path) -> dict[str, Any]:
    """Compile everything; return what the file holds, by name."""
    import triton

    release = re.search(r"release ([\d.]+)", compile_stages.run_tool("ptxas", "--version"))
    if not release:
        raise SystemExit("ptxas does not say its version")
    bodies = {
        length: "".join(f"    x = tl.maximum(x * {1 + step / 64} + {step / 32}, x)\n" for step in range(length))
        for length in LENGTHS
    }
    return {
        "VERSIONS": {"Triton": triton.__version__, "ptxas": release[1], "target": f"sm_{CAPABILITY}"},
        "COLUMNS": COLUMNS,
        "BY_WARPS": {warps: report(ADD_NORM, {"BLOCK": COLUMNS}, warps, folder) for warps in WARPS},
        "LATE": {LATE_WARPS: report(late(ADD_NORM), {"BLOCK": COLUMNS}, LATE_WARPS, folder)},
        "PER_THREAD": PER_THREAD,
        "BY_STEPS": {
            length: report(STEPS.format(body=body), {"BLOCK": 4 * 32 * PER_THREAD}, 4, folder)
            for length, body in bodies.items()
        },
        "TILE": TILE,
        "EPILOGUES": {
            warps: {name: run_report(chain, 0, end, warps, folder) for name, (chain, end) in EPILOGUES.items()}
            for warps in (4, 8)
        },
        "SEGMENT": SEGMENT,
        "CHAINS": {
            name: {
                "steps": [[step.name, step.reads(chain.kinds), step.writes] for step in chain.steps],
                "kinds": chain.kinds,
                "results": list(chain.results),
                "kernels": all_runs(chain, folder),
            }
            for name, chain in CHAINS.items()
        },
    }


MEANING = {
    "VERSIONS": "What compiled, and for which target.",
    "COLUMNS": "Numbers of a row, one block, in `BY_WARPS`.",
    "BY_WARPS": "The report on `ADD_NORM`, by the warps of a program.",
    "LATE": "The same for a variant that loads g behind the sum.",
    "PER_THREAD": "Numbers of a thread in `BY_STEPS`.",
    "BY_STEPS": "The report on a kernel of that many element-wise steps, each a multiply-add and a maximum.",
    "TILE": "Tile of the products.",
    "EPILOGUES": "The report on a product, by the warps of a program and by what the kernel does with its tile.",
    "SEGMENT": "Numbers of a row and warps of a program in the kernels of `CHAINS`.",
    "CHAINS": "Chains, and the report on the kernel of each run of their steps, such as 0-2 for the first two.",
}


def module(found: Mapping[str, Any]) -> str:
    """The text of the file."""
    lines = [
        '"""What Triton\'s compiler reports about fused kernels; written by scripts/compile_fusion.py.',
        "",
        "A report has the registers of a thread, the bytes that it stores to and loads from local memory because the",
        'registers do not suffice, and the bytes of shared memory of a program.\n"""',
        "",
        "from typing import Any",
        "",
        "# ruff: noqa: E501 - one line for each chain's steps",
        "# fmt: off",
        "",
        'ADD_NORM = """\\',
        *ADD_NORM.splitlines(),
        '"""',
    ]
    for name, value in found.items():
        kind = ": dict[str, Any]" if name == "CHAINS" else ""
        lines += ["", f"{name}{kind} = {_shown(value)}", f'"""{MEANING[name]}"""']
    return "\n".join(lines) + "\n"


def _shown(value: Any, indent: str = "") -> str:
    """The value as Python, one line for each dict that holds no other."""
    if not isinstance(value, Mapping) or not any(isinstance(part, (Mapping, list)) for part in value.values()):
        return _literal(value)
    inner = indent + "    "
    parts = "".join(f"{inner}{_literal(key)}: {_shown(part, inner)},\n" for key, part in value.items())
    return f"{{\n{parts}{indent}}}"


def _literal(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(part)}" for key, part in value.items()) + "}"
    return json.dumps(value) if isinstance(value, (str, list)) else repr(value)


if __name__ == "__main__":
    compile_stages.write(OUTPUT, lambda folder: module(results(folder)))
