"""Run ONNX's node cases through mlsys.compiler, and write a table by operation.

    python scripts/onnx_conformance.py [OPERATION ...]

A case counts for every operation in its graph, and is run if the compiler declares all of them. The kernels run on the
GPU, or where there is none in Triton's interpreter. The table is `_build/compiler/conformance.md`.
"""

import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mlsys.compiler import OPS, compile
from mlsys.errors import UserError
from mlsys.measure.device import torch_sees_gpu

DEVICE = "cuda" if torch_sees_gpu() else "cpu"
ROOT = Path(__file__).parents[1]
TABLE = ROOT / "_build" / "compiler" / "conformance.md"


@dataclass(frozen=True)
class Outcome:
    """What became of a case: "passed", "refused" with the reason, or "wrong" with what differs."""

    case: str
    ops: tuple[str, ...]
    verdict: str
    reason: str = ""


def node_cases() -> list[Any]:
    """Return ONNX's node cases whose operations the compiler declares."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        cases = load_model_tests(kind="node")
    return [case for case in cases if set(ops_of(model_of(case))) <= OPS]


def model_of(case: Any) -> Any:
    """Return a case's model."""
    return case.model if case.model is not None else onnx.load(Path(case.model_dir) / "model.onnx")


def ops_of(model: Any) -> tuple[str, ...]:
    """Return the names of a model's operations, each once."""
    return tuple(sorted({node.op_type for node in model.graph.node}))


def run_case(case: Any) -> Outcome:
    """Compile and run a case with all its data sets."""
    model = model_of(case)
    ops = ops_of(model)
    try:
        compiled = compile(model, device=DEVICE)
        for inputs, expected in case.data_sets:
            inputs, expected = map(arrays, (inputs, expected))
            results = compiled(*inputs)
            for name, got, want in zip(compiled_names(model), results, expected, strict=True):
                problem = difference(got, want, case.rtol, case.atol)
                if problem:
                    return Outcome(case.name, ops, "wrong", f"{name}: {problem}")
    except UserError as error:
        return Outcome(case.name, ops, "refused", str(error))
    except Exception as error:
        return Outcome(case.name, ops, "wrong", f"{type(error).__name__}: {error}")
    return Outcome(case.name, ops, "passed")


def arrays(values: Iterable[Any]) -> list[Any]:
    """Return a case's values as NumPy arrays; some cases give them as ONNX's own messages."""
    return [numpy_helper.to_array(value) if hasattr(value, "data_type") else value for value in values]


def compiled_names(model: Any) -> list[str]:
    """Return the names of a model's outputs."""
    return [entry.name for entry in model.graph.output]


def difference(got: Any, want: Any, rtol: float, atol: float) -> str:
    """Say how a result differs from what is expected, or ""."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    exact = want.dtype.kind in "biu"
    a, b = (value if exact else value.astype(np.float64) for value in (got, want))
    if want.dtype.itemsize == 1:  # narrow formats: the same code
        return "" if np.array_equal(got.view(np.uint8), want.view(np.uint8)) else f"codes {got} instead of {want}"
    if exact:
        return "" if np.array_equal(a, b) else f"{np.sum(a != b)} elements differ"
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    return (
        ""
        if close.all()
        else f"{np.sum(~close)} of {close.size} elements differ, such as {a[~close][0]} and {b[~close][0]}"
    )


def table(outcomes: Iterable[Outcome], ops: Iterable[str] = OPS) -> str:
    """Return the table by operation, in Markdown; of `ops`, those without a case are told."""
    by_op: dict[str, Counter[str]] = defaultdict(Counter)
    outcomes = list(outcomes)
    for outcome in outcomes:
        for op in outcome.ops:
            by_op[op][outcome.verdict] += 1
    total = Counter(outcome.verdict for outcome in outcomes)
    rows = [f"| {op} | {n['passed']} | {n['refused']} | {n['wrong']} |" for op, n in sorted(by_op.items())]
    rows.append(f"| **all cases** | {total['passed']} | {total['refused']} | {total['wrong']} |")
    rows += [f"| {op} (no case) | 0 | 0 | 0 |" for op in sorted(set(ops) - set(by_op))]
    told = [f"- {o.case}: {o.verdict}, {o.reason}" for o in outcomes if o.verdict != "passed"]
    head = ["# ONNX's node cases", "", f"onnx {onnx.__version__}, device {DEVICE}", ""]
    return "\n".join([*head, "| operation | passed | refused | wrong |", "|---|---|---|---|", *rows, "", *told, ""])


def main(wanted: Iterable[str] = (), show: Callable[[str], None] = print) -> int:
    """Run every case, or those of some operations, and write the table; the status is 1 if an answer is wrong."""
    chosen = set(wanted)
    cases = [case for case in node_cases() if not chosen or chosen & set(ops_of(model_of(case)))]
    outcomes = [run_case(case) for case in cases]
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text(table(outcomes, chosen or OPS), encoding="utf-8")
    total = Counter(outcome.verdict for outcome in outcomes)
    show(f"{dict(total)}: see {TABLE.relative_to(ROOT)}")
    return int(total["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
