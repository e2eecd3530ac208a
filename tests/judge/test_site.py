"""The copy of the package that the sandbox shows, looked at by a Python that finds no other."""

import subprocess
import sys

import pytest

from mlsys.core.package import defined_as
from mlsys.errors import InvalidValue
from mlsys.judge.site import site, without_bodies

WITHHELD = ("mlsys.hardware.Accelerator.ridge_point", "mlsys.ops", "mlsys.traffic.best_schedule")


def last_line(folder, code):
    """What a Python says last that imports `mlsys` from `folder`."""
    boot = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    done = subprocess.run([sys.executable, "-I", "-B", "-c", boot + code], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "left_out"),
    [
        ("from mlsys import ops; ops.matmul(m=2, n=2, k=2)", "mlsys.ops.matrix.matmul"),
        ("from mlsys.ops.matrix import _product; _product('', 1, 2, 2, 2, 'fp32')", "mlsys.ops.matrix._product"),
        ("from mlsys.formulas import batch_intensity; batch_intensity(1, 2)", "mlsys.ops.matrix.linear"),
        (
            "from mlsys import traffic; traffic.best_schedule(8, 8, 8, memory_bytes=99)",
            "mlsys.traffic.matmul.best_schedule",
        ),
        (
            "from mlsys import Hardware; Hardware.get('t4').ridge_point('fp32')",
            "mlsys.hardware.chips.Accelerator.ridge_point",
        ),
        ("from mlsys.ops import Op; Op('', '', '', '', 1, 1, 1).intensity", "mlsys.ops.op.Op.intensity"),
    ],
)
def test_what_is_withheld_raises_however_it_is_reached(code, left_out):
    due = f"RuntimeError: {left_out} is removed when this lab is graded: write what it does yourself."
    assert last_line(site(WITHHELD), code) == due


def test_what_is_not_withheld_works():
    assert last_line(site(WITHHELD), "from mlsys import traffic; print(traffic.untiled(2, 3, 4).total_bytes)") == "216"
    assert last_line(site(WITHHELD), "from mlsys import Hardware; print(Hardware.get('t4').year)") == "2018"
    assert last_line(site(), "from mlsys import ops; print(ops.matmul(m=2, n=3, k=4).flop_count)") == "48"


@pytest.mark.parametrize(
    "module",
    [
        "mlsys.cli",
        "mlsys.course.lab",
        "mlsys.classroom.grade_class",
        "mlsys.judge.run_tests",
        "mlsys.classroom.store.run",
        "mlsys.bench.suite",
    ],
)
def test_what_only_instructors_use_is_not_in_the_copy(module):
    assert last_line(site(), f"import {module}").startswith("ModuleNotFoundError: No module named 'mlsys.")


def test_no_template_and_no_cache_is_in_the_copy():
    found = [path.relative_to(site()).as_posix() for path in site().rglob("*") if path.is_file()]
    others = [path for path in found if not path.endswith((".py", ".toml", ".csv", ".txt", "py.typed"))]
    assert others == ["mlsys/data/checkpoints/book_gpt2.npz"]  # the model that the capstone lab decodes with
    assert "mlsys/data/chips/t4.toml" in found


SHAPES = """
from functools import cached_property

SIDE = 2

def outer():
    def inner():
        return 1
    return inner()

class Square:
    @property
    def area(self):
        return SIDE**2
    @staticmethod
    def corners():
        return 4

def cube():
    yield Square().area
"""


@pytest.mark.parametrize(
    ("names", "stopped"),
    [
        (["shapes"], {"outer", "area", "corners", "cube"}),
        (["shapes.Square"], {"area", "corners", "cube"}),
        (["shapes.Square.area"], {"area", "cube"}),
        (["shapes.outer"], {"outer"}),
        (["shape", "shapes.out", "shapes.Square.areas"], set()),
    ],
)
def test_a_name_stands_for_all_that_is_in_it_and_nothing_else(names, stopped):
    defined = {}
    exec(without_bodies(SHAPES, "shapes", names), defined)
    calls = {
        "outer": defined["outer"],
        "area": lambda: defined["Square"]().area,
        "corners": defined["Square"].corners,
        "cube": lambda: list(defined["cube"]()),
    }
    raised = set()
    for name, call in calls.items():
        try:
            call()
        except RuntimeError:
            raised.add(name)
    assert raised == stopped
    assert defined["SIDE"] == 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mlsys.traffic.best_shedule", "did you mean 'mlsys.traffic.best_schedule'"),
        ("mlsys.traffics", "did you mean 'mlsys.traffic'"),
        ("mlsys.ops.matmull", "did you mean 'mlsys.ops.matmul'"),
        ("numpy.matmul", "no module, class or function of the package"),
        ("", "no module, class or function of the package"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name, says):
    with pytest.raises(InvalidValue, match=says):
        defined_as(name)


def test_modules_classes_functions_and_methods_are_known():
    for name in (*WITHHELD, "mlsys", "mlsys.roofline.Roofline"):
        assert defined_as(name)
    assert defined_as("mlsys.traffic.matmul._elements_moved") == "mlsys.traffic.matmul._elements_moved"


@pytest.mark.parametrize(
    ("imported", "defined"),
    [
        ("mlsys.ops.matmul", "mlsys.ops.matrix.matmul"),
        ("mlsys.Hardware", "mlsys.hardware.chips.Hardware"),
        ("mlsys.hardware.Accelerator.ridge_point", "mlsys.hardware.chips.Accelerator.ridge_point"),
    ],
)
def test_a_name_is_known_by_where_it_is_imported_from(imported, defined):
    assert defined_as(imported) == defined
