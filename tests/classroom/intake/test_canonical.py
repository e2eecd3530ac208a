"""Versions of a lab beside one another, and the order of the cells that can run."""

import nbformat
import pytest
from helpers.adding_course import ADDING

from mlsys.classroom.intake.canonical import submission_of, with_older_tests
from mlsys.course.lab import Lab


def lab_with(changes: dict[str, str], tmp_path) -> Lab:
    path = tmp_path / "lab.py"
    text = (ADDING / "lab.py").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return Lab.load(path)


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({}, []),
        ({"bytes_moved == 12_000": "bytes_moved == 1"}, []),
        ({"torch.ones(64)": "torch.ones(65)"}, []),
        ({"from mlsys import grading": "from mlsys import grading, ops"}, []),
        ({"ones = torch.ones(64)": "helper = 3\nones = torch.ones(64 * helper)"}, []),
        ({"Write here.": "Write two sentences here."}, []),
        ({"bytes_moved": "bytes_read"}, ["a"]),
        ({"def add_three(x, y, z)": "def add_three(x, y, z, out=None)"}, ["c"]),
        ({"BLOCK": "TILE"}, ["b"]),
        ({"def add(x, y)": "def add(x, y, block)"}, ["b"]),
        ({"3 * ones)": "3 * ones)\nadd(ones, ones)"}, ["c"]),
        ({"import triton\n": "", "import torch\n": "import torch\nimport triton as tr\n"}, ["b", "c", "d"]),
    ],
)
def test_older_tests_are_used_where_the_interface_has_changed(tmp_path, changes, changed):
    assert with_older_tests(lab_with(changes, tmp_path), lab_with({}, tmp_path)) == changed


def test_shown_cells_stand_where_the_lab_has_them(tmp_path):
    shown = "# %%\nimport numpy as np\n\n# %% [markdown]\n# ## b."
    lab = lab_with({"# %% [markdown]\n# ## b.": shown}, tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.from_dict(cell) for cell in lab.notebook.cells])
    place = next(index for index, cell in enumerate(notebook.cells) if cell.source == "import numpy as np")
    mine = nbformat.v4.new_code_cell("x = np.ones(2)", metadata={"mlsys": {"role": "added"}})
    notebook.cells.insert(place + 1, mine)
    sources = [cell.source for cell in submission_of(notebook, lab).cells]
    at = sources.index("import numpy as np")
    assert sources[at + 1] == "x = np.ones(2)"
    assert "bytes_moved" in sources[at - 1]
    older = notebook.copy()
    older.cells = [cell for cell in notebook.cells if cell.source != "import numpy as np"]
    assert "import numpy as np" in [cell.source for cell in submission_of(older, lab).cells]
