"""A right answer in a cell that ended with an exception does not count in the notebook, as it does not when graded."""

import nbformat
import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: mlsys[book] brings it")

SETUP = 'from mlsys import grading\nscorecard = grading.Scorecard({"a": 5, "b": 5})'
ANSWER = "def double(x):\n    return 2 * x\n"
FORGOTTEN = f'{ANSWER}raise NotImplementedError("write double")'
TEST = 'assert double(3) == 6\nscorecard.passed("a")'


def said(*cells: str) -> list[str]:
    """What each cell printed or raised, run in a Jupyter kernel of their own."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True).execute()
    return [
        "\n".join(str(output.get("text", output.get("evalue", ""))) for output in cell.outputs)
        for cell in notebook.cells
    ]


def test_an_answer_whose_cell_failed_does_not_count_until_it_runs_to_its_end() -> None:
    found = said(
        SETUP, FORGOTTEN, TEST, "print(scorecard.fraction['a'])", ANSWER, TEST, "print(scorecard.fraction['a'])"
    )
    assert "the cell that defines double ended with NotImplementedError: write double" in found[2]
    assert "run both cells again" in found[2]
    assert found[3].strip() == "0.0"
    assert "visible tests pass (5 points)" in found[5]
    assert found[6].strip() == "1.0"


def test_it_is_still_known_when_the_first_cell_runs_again() -> None:
    assert "double ended with NotImplementedError" in said(SETUP, FORGOTTEN, SETUP, TEST)[3]


def test_other_failures_do_not_matter() -> None:
    scratch = "y = 4\n1 / 0"
    own = 'y = 3\nassert double(y) == 6\nscorecard.passed("a")'
    wrong = 'helper = double\nassert helper(1) == 3\nscorecard.passed("b")'
    found = said(SETUP, ANSWER, scratch, wrong, own, 'assert helper(3) == 6\nscorecard.answered("b")')
    assert "ZeroDivisionError" in found[2] or "division by zero" in found[2]
    assert "visible tests pass" in found[4]
    assert "Question b: answered" in found[5]
