import time

import pytest

from mlsys.core.cells import defined_names, free_names, plain_python, used_names
from mlsys.judge.student_cells import needed_statements, read_added


def test_only_what_the_answers_use_runs_and_what_that_uses() -> None:
    added = [
        read_added("import math\nSIZE = 3\nunused = explode()"),
        read_added("def helper(n):\n    return inner(n) + SIZE\nprint('shown')"),
        read_added("def inner(n):\n    return math.ceil(n)"),
        read_added("result = answer(1)\nwhile True: pass"),
    ]
    answer = "def answer(n):\n    result = helper(n)\n    return result"
    assert needed_statements(added, used_names(answer)) == [
        [0, 1],
        [0],
        [0],
        [],
    ]


def test_star_imports_always_run() -> None:
    assert needed_statements([read_added("from math import *")], {"ceil"}) == [[0]]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import a.b as c, d.e\nfrom f import g", {"c", "d", "g"}),
        ("x, (y, *z) = 1, (2, 3)\nw: int = 4\nv += 1", {"x", "y", "z", "w", "v"}),
        ("config['a'] = 1\nthing.part = 2", {"config", "thing"}),
        ("async def f(): pass\nclass C: pass", {"f", "C"}),
        ("def broken(:", set()),
        ("x = 1\0", set()),
        ("(" * 10_000, set()),
        ("-" * 50_000 + "1", set()),
    ],
)
def test_names_that_a_cell_defines(source: str, names: set[str]) -> None:
    assert defined_names(source) == names


def test_used_names_leave_out_local_variables() -> None:
    assert used_names("def f(a):\n    b = a\n    return [c + d for c in b]") == {"d"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("%%bash\nrm -rf /", "\n"),
        ("%%timeit -n 3\nx = 1", "\nx = 1"),
        ("!ls\nif x:\n    %time y", "\nif x:\n    pass"),
        ("x = 'a'\n'''\n%d items\n'''", "x = 'a'\n'''\n%d items\n'''"),
        ("y = 7 \\\n  %2", "y = 7 \\\n  %2"),
    ],
)
def test_magics_go_and_line_numbers_stay(source: str, expected: str) -> None:
    assert plain_python(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import " + "a." * 100_000 + "a",
        "deep = " + "+".join(["1"] * 20_000),
        "deep" + ".x" * 20_000 + " = 1",
        "deep = f" + "()" * 20_000,
        "deep = " + "-" * 20_000 + "1",
        "deep = '\x00'",
    ],
    ids=["path", "sum", "attributes", "calls", "signs", "null byte"],
)
def test_a_source_that_is_costly_to_parse_counts_as_no_python(source: str) -> None:
    started = time.process_time()
    assert not read_added(source).binds
    assert not used_names(source)
    assert not read_added(source).left_out
    defined_names(source)
    assert time.process_time() - started < 2


def test_a_chain_of_thousands_of_names_is_followed_in_linear_time() -> None:
    length = 1400
    cell = read_added("\n".join(f"a{number} = a{number + 1}" for number in range(length)))
    started = time.process_time()
    assert needed_statements([cell], {"a0"}) == [list(range(length))]
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "unit", ["f = lambda: 0\n", "a = b\n", "a=b;", "def f(): 0\n", "x = f'{a}'\n", "%time a = 1\n", "a\\\n", "x = '\n"]
)
def test_the_largest_cells_of_small_statements_are_read_in_seconds(unit: str) -> None:
    cells = [(unit * 20_000)[: 19_990 - 19_990 % len(unit)] + f"#{number}" for number in range(3)]
    started = time.process_time()
    read = [read_added(cell) for cell in cells]
    for cell in cells:
        defined_names(cell)
    needed_statements(read, {"f", "x"})
    assert time.process_time() - started < 2  # 25 cells fit into a notebook


@pytest.mark.parametrize("deep", ["lambda: " * 2000 + "0", "[" * 90 + "a" + " for i in b]" * 90])
def test_deep_nesting_costs_that_cell_alone(deep: str) -> None:
    assert used_names(f"x = {deep}") <= {"a", "b"}
    assert needed_statements([read_added(f"deep = {deep}"), read_added("y = 1")], {"y"}) == [[], [0]]


def test_names_in_statements_of_one_line_are_told_apart() -> None:
    cell = read_added("é = 'ä'; f = lambda: a + é; g = [b for b in c]\n@d\ndef h(e=f): return lambda: e + i")
    assert cell.uses == (frozenset(), {"a", "é"}, {"c"}, {"d", "f", "i"})


def test_names_that_tests_bind_are_not_free() -> None:
    assert free_names("import a\nfor b in c: d = e(b)\ndef f(g): return g + h\nf(d)") == {"c", "e", "h"}
