"""Count the instructions of element-wise functions on an H100, for the chapter on primitives; no GPU is needed.

`python scripts/compile_functions.py` writes `book/_figures/functions.py`. Run it when the pinned version of Triton
changes; a test compares the file with what the installed version makes.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import compile_stages

OUTPUT = Path(__file__).parents[1] / "book" / "_figures" / "functions.py"
KERNEL = """\
@triton.jit
def element_wise(x_ptr, y_ptr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + index)
    tl.store(y_ptr + index, {expression})
"""
FUNCTIONS = {
    "x + 1": "x + 1.0",
    "ReLU": "tl.maximum(x, 0.0)",
    "1 / square root": "tl.rsqrt(x)",
    "exponential": "tl.exp(x)",
    "sigmoid": "tl.sigmoid(x)",
    "GELU by tanh": "x * tl.sigmoid(1.5957691 * (x + 0.044715 * x * x * x))",
    "GELU by erf": "0.5 * x * (1.0 + tl.erf(0.70710678 * x))",
}
KINDS = {"special": r"MUFU\.", "fp32": r"F(?:ADD|MUL|FMA|MNMX|SETP|SEL)\b", "branches": r"(?:BRA|BRX|BSSY|CALL|JMP)\b"}
"""Instructions of the special-function unit, of the FP32 lanes, and branches, as regular expressions."""
ELEMENTS = 4
"""Elements of each thread: a block of 512 for four warps."""


def counted() -> dict[str, dict[str, int]]:
    """Compile each function, and return its instructions of each kind for one element."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, expression in FUNCTIONS.items():
            text = KERNEL.format(expression=expression)
            variant = {"text": text, "dtype": "fp32", "constants": {"BLOCK": 128 * ELEMENTS}, "warps": 4, "odd": False}
            lines = compile_stages.sass_lines(compile_stages.compiled(variant, Path(folder))["cubin"])
            names = [re.sub(r"^\w+  (?:@!?\w+ )?", "", line) for _, line in lines]
            totals = {kind: sum(bool(re.match(pattern, text)) for text in names) for kind, pattern in KINDS.items()}
            if any(total % ELEMENTS for total in totals.values()):
                raise SystemExit(f"{name}: {totals} are not the same for each of {ELEMENTS} elements; read its SASS")
            found[name] = {kind: total // ELEMENTS for kind, total in totals.items()}
    return found


def text() -> str:
    """The file that is written."""
    import triton

    version = re.search(r"release ([\d.]+)", compile_stages.run_tool("ptxas", "--version"))
    if not version:
        raise SystemExit("ptxas does not say its version")
    rows = "".join(f'    "{name}": {kinds},\n'.replace("'", '"') for name, kinds in counted().items())
    return (
        '"""Instructions of element-wise functions on an H100; written by scripts/compile_functions.py."""\n\n'
        f'VERSIONS = {{"Triton": "{triton.__version__}", "ptxas": "{version[1]}", "target": "sm_90"}}\n\n'
        f"COUNTED = {{\n{rows}}}\n"
        '"""For one element: instructions of the special-function unit, of the FP32 lanes, and branches."""\n'
    )


if __name__ == "__main__":
    os.environ.pop("TRITON_INTERPRET", None)  # before triton is imported
    if sys.argv[1:] == ["--print"]:
        print(text(), end="")
    else:
        OUTPUT.write_text(text(), encoding="utf-8")
