import runpy
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("onnx")
CONFORMANCE = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "onnx_conformance.py"))
CASES = CONFORMANCE["node_cases"]()
FIRST = {CONFORMANCE["ops_of"](CONFORMANCE["model_of"](case)): case for case in reversed(CASES)}
SINGLE = [case for ops, case in sorted(FIRST.items()) if len(ops) == 1]


def check(outcomes):
    verdicts = Counter(outcome.verdict for outcome in outcomes)
    assert [outcome for outcome in outcomes if outcome.verdict == "wrong"] == []
    assert verdicts["passed"] >= 0.95 * len(outcomes)


def test_one_case_of_every_operation():
    outcomes = [CONFORMANCE["run_case"](case) for case in SINGLE]
    assert len(outcomes) >= 40
    check(outcomes)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_every_node_case_of_the_declared_operations_is_right_or_refused():
    check([CONFORMANCE["run_case"](case) for case in CASES])


def test_the_table_counts_each_case_for_each_of_its_operations():
    outcome = CONFORMANCE["Outcome"]
    rows = CONFORMANCE["table"]([outcome("a", ("Add", "Relu"), "passed"), outcome("b", ("Add",), "wrong", "by 1")])
    assert "| Add | 1 | 0 | 1 |" in rows
    assert "| Relu | 1 | 0 | 0 |" in rows
    assert "- b: wrong, by 1" in rows
    assert "| Relu (no case) |" in CONFORMANCE["table"]([], ["Relu"])
    assert "| Add (no case) |" not in CONFORMANCE["table"]([], ["Relu"])
