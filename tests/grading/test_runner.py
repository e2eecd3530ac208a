import dataclasses
import time

import nbformat
import pytest

from mlsys.course.lab import Lab
from mlsys.errors import UserError
from mlsys.grading.runner import LIMITS, StudentCell, Submission, check_device, device_and_versions, grade_question
from mlsys.grading.verdicts import Verdict

NBGRADER = {"schema_version": 3, "task": False}
FAST = dataclasses.replace(LIMITS, cpu_s=2, wall_s=4)


def make_lab(tests: str, needs: list[str] | None = None) -> Lab:
    """A lab whose question q asks for `answer`, and whose question p it may need."""

    def cell(source: str, identifier: str, role: str, question: str = "") -> nbformat.NotebookNode:
        graded, solution = role == "test", role == "solution"
        flags = {"grade": graded, "solution": solution, "locked": not solution, "grade_id": identifier, **NBGRADER}
        about = {"role": role, "question": question, "needs": needs or ["setup"]} if question == "q" else {}
        metadata = {"nbgrader": {**flags, "points": 2} if graded else flags}
        metadata["mlsys"] = {"role": role, "question": question} | about
        return nbformat.v4.new_code_cell(source, id=identifier, metadata=metadata)

    region = "### BEGIN SOLUTION\n### END SOLUTION"
    cells = [
        cell("import os, torch\nfrom mlsys import grading\nSETUP = 1", "setup", "setup"),
        cell(region, "p-answer", "solution", "p"),
        cell("pass", "p-test", "test", "p"),
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
        ("open('big', 'wb').write(bytes(10**8))", "error", "OSError"),
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

    assert device_and_versions("cpu")["versions"]["torch"] == torch.__version__


def test_a_gpu_that_is_not_there_is_an_error_and_not_a_fallback() -> None:
    with pytest.raises(UserError, match="no CUDA GPU found here"):
        check_device("gpu")


def test_parent_cannot_be_killed_from_inside() -> None:
    grade("def answer(): os.kill(os.getppid(), 9)")
    grade("def answer(): os.kill(-1, 9)")
    assert grade("def answer(): pass").name == "passed"
