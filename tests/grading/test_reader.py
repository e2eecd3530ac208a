import json
from pathlib import Path

import nbformat
import pytest

from mlsys.grading.reader import MAX_BYTES, Refused, read_submission

CELL = {"cell_type": "code", "source": "x = 1", "metadata": {}}


def write(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "lab.ipynb"
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"def f(): pass", "not a notebook"),
        (b"\xff\xd8\xff\xe0", "not text"),
        (b'{"cells": [{"cell_type": "co', "damaged or cut off"),
        (b"[1, 2]", "not a notebook"),
        (b"{}", "no list of cells"),
        (b'{"worksheets": [], "nbformat": 3}', "no list of cells"),
        (b'{"cells": 3}', "no list of cells"),
        (b'{"cells": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}", "nested too deeply"),
        (b'{"cells": [], "metadata": ' + b'{"a":' * 60 + b"1" + b"}" * 60 + b"}", "nested too deeply"),
        ({"cells": [CELL] * 2000}, "2000 cells"),
    ],
)
def test_what_is_no_notebook_is_refused_with_its_reason(tmp_path: Path, content: object, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_submission(write(tmp_path, content))


def test_missing_oversized_and_linked_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no file"):
        read_submission(tmp_path / "lab.ipynb")
    (tmp_path / "target").write_text("{}")
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "target")
    with pytest.raises(Refused, match="not a regular file"):
        read_submission(tmp_path / "link.ipynb")
    with (tmp_path / "big.ipynb").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(Refused, match="20 MB"):
        read_submission(tmp_path / "big.ipynb")


def test_wrong_types_are_left_out_and_the_result_is_valid(tmp_path: Path) -> None:
    cells = [
        CELL,
        {"cell_type": "markdown", "source": ["# a\r\n", "b", 7], "metadata": [1]},
        {"cell_type": 4, "source": {"a": 1}},
        "not a cell",
        {"cell_type": "code", "source": "y\ud800", "metadata": {"nbgrader": {"grade": "yes", "grade_id": 3}}},
    ]
    notebook = read_submission(write(tmp_path, {"cells": cells, "metadata": {"mlsys": {"lab": "x", "version": 2}}}))
    nbformat.validate(notebook)
    assert [cell.cell_type for cell in notebook.cells] == ["code", "markdown", "raw", "raw", "code"]
    assert notebook.cells[1].source == "# a\nb"
    assert notebook.cells[4].source == "y?"
    assert notebook.cells[4].metadata["nbgrader"] == {"grade": False}
    assert notebook.metadata["mlsys"] == {"lab": "x", "version": ""}
    nbformat.writes(notebook).encode()


def test_windows_line_ends_byte_order_mark_and_outputs_do_not_matter(tmp_path: Path) -> None:
    cell = {**CELL, "source": "a = 1\r\nb = 2", "outputs": [{"output_type": "stream", "text": "<script>"}]}
    notebook = read_submission(write(tmp_path, b"\xef\xbb\xbf" + json.dumps({"cells": [cell]}).encode()))
    assert notebook.cells[0].source == "a = 1\nb = 2"
    assert notebook.cells[0].outputs == []
