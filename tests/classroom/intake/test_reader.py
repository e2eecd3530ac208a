import json
from pathlib import Path

import nbformat
import pytest

from mlsys.classroom.intake import reading
from mlsys.classroom.intake.reader import MAX_BYTES, Refused, read_submission
from mlsys.classroom.intake.reading import read_with_limits

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
        (b'{"cells": [' + b"[]," * 2_000_000 + b"[]]}", "2000001 cells"),
        (b'{"cells": [], "metadata": ' + b"9" * 5000 + b"}", "breaks at a number of too many digits"),
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


@pytest.mark.parametrize(
    "content",
    [
        '{"cells": [], "cells": [CELL]}',
        '{"cells": [CELL], "metadata": {"mlsys": {"version": NaN, "lab": Infinity}}}',
        '{"cells": [CELL], "metadata": [1e999, -1e999, 0.' + "1" * 100_000 + "]}",
        '{"cells": [{"cell_type": ["code"], "source": "x", "id": {"a": 1}}, CELL]}',
        '{"cells": [{"cell_type": {"code": 1}, "source": 1e999, "metadata": {"nbgrader": {"points": NaN}}}, CELL]}',
        '{"cells": [{"source": ["", ' + '"", ' * 500_000 + '"x"]}, CELL]}',
        '{"cells": [{"source": "\\ud83d"}, {"id": "\\udc00", "cell_type": "\\ud800"}, CELL]}',
        '{"cells": [{"id": "' + "x" * 1_000_000 + '"}, CELL]}',
    ],
    ids=["keys twice", "no number", "long numbers", "lists as words", "numbers as words", "lines", "halves", "long id"],
)
def test_what_json_allows_is_read_in_one_way_and_can_be_written(tmp_path: Path, content: str) -> None:
    notebook = read_submission(write(tmp_path, content.replace("CELL", json.dumps(CELL)).encode()))
    assert (notebook.cells[-1].cell_type, notebook.cells[-1].source) == ("code", "x = 1")
    for cell in notebook.cells:  # the course's metadata may stay, under checks of its own
        cell.metadata.pop("nbgrader", None)
    json.dumps(notebook, allow_nan=False).encode()
    nbformat.validate(notebook)


def test_what_takes_too_long_to_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_READ_S", 0.2)
    nested = ("[" * 30 + "]" * 30 + ",") * 100_000
    with pytest.raises(Refused, match=r"could not be read \(it takes more than 0.2 seconds\)"):
        read_with_limits(write(tmp_path, f'{{"cells": [], "metadata": [{nested}0]}}'.encode()))
    monkeypatch.undo()
    assert read_with_limits(write(tmp_path, {"cells": [CELL]})).cells[0].source == "x = 1"


def test_windows_line_ends_byte_order_mark_and_outputs_do_not_matter(tmp_path: Path) -> None:
    cell = {**CELL, "source": "a = 1\r\nb = 2", "outputs": [{"output_type": "stream", "text": "<script>"}]}
    notebook = read_submission(write(tmp_path, b"\xef\xbb\xbf" + json.dumps({"cells": [cell]}).encode()))
    assert notebook.cells[0].source == "a = 1\nb = 2"
    assert notebook.cells[0].outputs == []
