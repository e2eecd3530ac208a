import dataclasses
import os
import time
from contextlib import nullcontext
from pathlib import Path

import nbformat
import pytest

from mlsys.course.lab import Lab
from mlsys.errors import UserError
from mlsys.grading.verdicts import Verdict
from mlsys.judge.grade_question import (
    LIMITS,
    Grader,
    StudentCell,
    Submission,
    _grader,
    check_device,
    device_and_versions,
    grade_question,
    use_grader,
)
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.inside.usage import descendants

NBGRADER = {"schema_version": 3, "task": False}
FAST = dataclasses.replace(LIMITS, cpu_s=2, wall_s=4)


SHOWN = """import math as m
slow = [answer() for _ in range(10**9)]
broken, offset = 1 / 0, 2
def scaled(x):
    return x * m.pi
answer = SETUP = None
print(1 / 0)"""
"""A cell that a lab only shows."""
QUOTES = '"' * 3


def make_lab(tests: str, needs: list[str] | None = None, device: str = "any") -> Lab:
    """A lab whose question q asks for `answer`, and whose question p it may need."""

    def cell(source: str, identifier: str, role: str, question: str = "") -> nbformat.NotebookNode:
        graded, solution = role == "test", role == "solution"
        flags = {"grade": graded, "solution": solution, "locked": not solution, "grade_id": identifier, **NBGRADER}
        about = (
            {"role": role, "question": question, "needs": needs or ["setup"], "device": device}
            if question == "q"
            else {}
        )
        metadata = {"nbgrader": {**flags, "points": 2} if graded else flags}
        metadata["mlsys"] = {"role": role, "question": question} | about
        return nbformat.v4.new_code_cell(source, id=identifier, metadata=metadata)

    region = "### BEGIN SOLUTION\n### END SOLUTION"
    cells = [
        cell("import os, torch\nfrom mlsys import grading\nSETUP = 1", "setup", "setup"),
        cell(region, "p-answer", "solution", "p"),
        cell("pass", "p-test", "test", "p"),
        nbformat.v4.new_code_cell(SHOWN, id="shown"),
        cell(region, "q-answer", "solution", "q"),
        cell(tests, "q-test", "test", "q"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"mlsys": {"lab": "made", "version": "1"}})
    return Lab.of_notebook(notebook, "made")


def grade(
    answer: str, tests: str = "answer()", *, p: str = "", added: str = "", needs: list[str] | None = None
) -> Verdict:
    lab = make_lab(tests, needs)
    cells = (
        StudentCell("setup", "SETUP = 'edited'"),
        StudentCell("", added, added=True),
        StudentCell("p-answer", p),
        StudentCell("shown", "import math as m\nm.pi = 'edited'"),
        StudentCell("q-answer", answer),
    )
    return grade_question(Submission(lab, cells), lab.question("q"), "cpu", seed=7, limits=FAST)


def test_tests_that_end_pass_and_setup_is_the_courses_own() -> None:
    assert grade("def answer(): assert SETUP == 1") == Verdict.passed()


@pytest.mark.parametrize(
    ("body", "verdict", "message"),
    [
        ("raise NotImplementedError('answer')", "not implemented", "answer"),
        ("raise ValueError('no tile')", "error", "ValueError: no tile"),
        ("raise SystemExit(0)", "error", "SystemExit"),
        ("raise KeyboardInterrupt", "error", "KeyboardInterrupt"),
        ("raise grading.WrongAnswer('3 is not 4')", "wrong answer", "3 is not 4"),
        ("os._exit(0)", "crashed", "before its tests were done"),
        ("os.abort()", "crashed", "abort"),
        ("os.kill(os.getpid(), 11)", "crashed", "segmentation fault"),
        ("return torch.empty(1 << 40)", "out of memory", ""),
        ("return bytearray(1 << 40)", "out of memory", ""),
        (
            "import sys; sys.setrecursionlimit(10**9); f = lambda: list(map(lambda _: f(), [0])); f()",
            "crashed",
            "segmentation fault",
        ),
        ("import sys; sys.stdout.write('x' * 10**8)", "passed", ""),
        ("open('big', 'wb').write(bytes(10**8))", "out of memory", "filled the folder"),
    ],
)
def test_each_ending_has_its_verdict(body: str, verdict: str, message: str) -> None:
    found = grade(f"def answer(): {body}")
    assert found.name == verdict
    assert message in found.message


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "__import__('time').sleep(1000)",
        "__import__('signal').signal(24, lambda *_: None)\n    while True: pass",
    ],
)
def test_endless_work_is_stopped_at_its_limit(loop: str) -> None:
    started = time.monotonic()
    assert grade(f"def answer():\n    {loop}").name == "timed out"
    assert time.monotonic() - started < 60


def test_questions_do_not_see_each_other() -> None:
    assert (
        grade("import builtins\nbuiltins.leak = 1\nos.environ['LEAK'] = '1'\ndef answer(): open('f', 'w')").name
        == "passed"
    )
    clean = (
        "def answer():\n    import builtins\n    assert not hasattr(builtins, 'leak') and 'LEAK' not in os.environ\n"
    )
    assert grade(clean + "    assert os.listdir() == []").name == "passed"


def test_only_needed_answers_run() -> None:
    assert grade("def answer(): pass", p="raise ValueError('p')").name == "passed"
    failed = grade("def answer(): pass", p="raise ValueError('p')", needs=["setup", "p"])
    assert (failed.name, failed.detail) == ("error", "your answer p, line 1: raise ValueError('p')")


def test_added_statement_that_fails_is_noted_where_its_name_is_missed() -> None:
    failed = grade("def answer(): return SIZE", added="print(1)\nSIZE = 1 / 0")
    assert failed.message == "NameError: name 'SIZE' is not defined\nIn the test `answer()`."
    assert failed.detail.splitlines() == [
        "your answer q, line 1: def answer(): return SIZE",
        "your added cell 1, line 2 failed: ZeroDivisionError: division by zero",
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "x = scaled(1)\ndef answer(): assert x == m.pi and SETUP == 1",
        "def answer(): assert scaled(2) == 2 * m.pi",
        "x = offset_or = 3\ndef answer(): assert x == 3 or broken",
    ],
)
def test_answers_may_use_what_the_lab_shows(answer: str) -> None:
    assert grade(answer) == Verdict.passed()


@pytest.mark.parametrize("own", ["def scaled(x): return 5", "scaled = lambda x: 5"])
def test_what_a_lab_shows_later_does_not_replace_the_students_own(own: str) -> None:
    lab = make_lab("assert answer(1) == 5")
    cells = (
        StudentCell("setup", ""),
        StudentCell("", own, added=True),
        StudentCell("shown", ""),
        StudentCell("q-answer", "def answer(x): return scaled(x)"),
    )
    assert grade_question(Submission(lab, cells), lab.question("q"), "cpu", seed=7, limits=FAST).name == "passed"


def test_a_shown_statement_that_fails_costs_its_names_alone() -> None:
    assert grade("def answer():\n    try:\n        offset\n    except NameError: pass").name == "passed"
    failed = grade("def answer(): return offset")
    assert failed.message.startswith("NameError: name 'offset' is not defined")
    assert failed.detail.splitlines()[1] == "cell shown of the lab, line 3 failed: ZeroDivisionError: division by zero"


@pytest.mark.parametrize("left", ["", "# see below", "\n"])
def test_an_answer_that_was_moved_to_an_added_cell_counts(left: str) -> None:
    moved = "import os as system\ndef answer(): return part() if system else 0\ndef part(): return 3\nother = explode()"
    assert grade(left, "assert answer()", added=moved).name == "passed"
    assert (
        grade("def answer(): return 3", "x = 3\nassert answer() == x", added="x = explode()\ndef answer(): 1 / 0").name
        == "passed"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "display(3, 4)\ndisplay(display, display_id=True).update(1)\ndef answer(): pass",
        "def answer(): pass\nget_ipython().run_line_magic('matplotlib', 'inline')\nget_ipython().system('ls')",
        "from IPython import get_ipython\nget_ipython().run_line_magic('x', '')\ndef answer(): pass",
        "from IPython.display import display, HTML\ndisplay(HTML('x'))\ndef answer(): pass",
        "assert 'google.colab' not in str(get_ipython())\ndef answer(): pass",
        "?answer\nanswer?\ntorch.empty??\ndef answer(): pass",
        "files = !ls\nassert len(files) == 0\ndef answer(): return [file for file in files]",
        "t = %timeit -o -n 3 sum(range(9))\nrate = t.best + t.average + t.stdev + min(t.all_runs)\ndef answer(): rate",
        "%time y = 3\nz = %time y + 1\ndef answer(): assert z == 4",
        "if True:\n    %matplotlib inline\nelse:\n    !ls\ndef answer(): pass",
        "def answer():\n    %timeit -n 1 f()\n    !echo \\\n  done",
        f"  %load_ext autoreload\n  def answer():\n      {QUOTES}\n  %no command\n  {QUOTES}\n      answer.__doc__[9]",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 3\nx = await f()\ndef answer(): x",
        "async def two():\n    yield 1\n    yield 2\nx = [n async for n in two()]\ndef answer(): assert x == [1, 2]",
        "%%time\n\ndef answer(): pass\n!!ls\n!{sys.executable} -m pip\n! $HOME",
    ],
)
@pytest.mark.parametrize("added", [False, True])
def test_what_only_a_notebook_understands_costs_nothing(answer: str, added: bool) -> None:
    found = grade("result = answer" if added else answer, "answer()", added=answer if added else "")
    assert (found.name, found.message) == ("passed", "")


HIDDEN = """answer()
### BEGIN HIDDEN TESTS
secret_number = 271828182
assert answer() == secret_number
### END HIDDEN TESTS"""


def test_hidden_lines_never_reach_the_student() -> None:
    wrong = grade("def answer(): pass", HIDDEN)
    assert (wrong.name, wrong.message) == ("wrong answer", "AssertionError\nIn a hidden test.")
    reader = "import linecache\ndef answer(): raise ValueError(''.join(linecache.getlines('tests of q')))"
    assert "271828182" not in (found := grade(reader, HIDDEN)).message + found.detail


def test_last_value_of_a_speed_cell_decides() -> None:
    slow = "class Speed:\n    verdict = grading.Verdict('slow', 0.25, 'half as fast')\nSpeed()"
    assert grade("", slow) == Verdict("slow", 0.25, "half as fast")


def test_hidden_draws_depend_on_the_seed_alone() -> None:
    lab = make_lab("import os\nraise ValueError(os.environ['MLSYS_GRADING_SEED'])")
    submission = Submission(lab, ())
    messages = [grade_question(submission, lab.question("q"), "cpu", seed=seed).message for seed in (5, 5, 6)]
    assert messages[0] == messages[1] != messages[2]


def test_versions_are_known() -> None:
    import torch

    found = device_and_versions("cpu")["versions"]["torch"]
    assert found.partition("+")[0] == torch.__version__.partition("+")[0]  # behind it is for which hardware it is built


def test_a_gpu_that_is_not_there_is_an_error_and_not_a_fallback() -> None:
    with pytest.raises(UserError, match="no CUDA GPU found here"):
        check_device("gpu")


def test_a_question_for_the_cpu_runs_there_whatever_the_device_of_the_class() -> None:
    cells = (StudentCell("q-answer", "import os\ndef answer(): return os.environ['TRITON_INTERPRET']"),)
    for device in ("cpu", "any"):
        lab = make_lab("assert answer() == '1'", device=device)
        with nullcontext() if device == "cpu" else pytest.raises(UserError, match="no CUDA GPU found here"):
            assert (
                grade_question(Submission(lab, cells), lab.question("q"), "gpu", seed=7, limits=FAST).name == "passed"
            )


def test_parent_cannot_be_killed_from_inside() -> None:
    grade("def answer(): os.kill(os.getppid(), 9)")
    grade("def answer(): os.kill(-1, 9)")
    assert grade("def answer(): pass").name == "passed"


def test_a_grader_keeps_a_sandbox_for_like_questions_and_shares_it_with_no_other_grader() -> None:
    one, other = Grader(8), Grader(9)
    kept = one.sandbox(False, FAST, (), ())
    assert one.sandbox(False, FAST, (), ()) is kept
    assert other.sandbox(False, FAST, (), ()) is not kept
    assert kept.starts == 1
    if os.geteuid() == 0:
        assert user_inside(kept) + 1 == user_inside(other.sandbox(False, FAST, (), ()))


def user_inside(sandbox: Sandbox) -> int:
    lines = Path(f"/proc/{descendants(sandbox._process.pid)[-1]}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Uid:"))


def test_a_process_grades_with_the_grader_that_it_is_given() -> None:
    class Asked(Grader):
        def grade(self, *question: object, **options: object) -> Verdict:
            return Verdict("needs review", message=str(self.index))

    use_grader(Asked(5))
    try:
        assert grade("").message == "5"
    finally:
        use_grader(_grader)
