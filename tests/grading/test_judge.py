"""Verdicts of whole questions: what a test sees of an answer, and what a student is told."""

import os

import pytest
from judging import COPY

from mlsys.grading.draws import SEED_VARIABLE

HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"


def test_tests_are_ordinary_python_over_values_and_functions(verdict):
    tests = "for x in (1, 2):\n    assert double(x) == 2 * x\nassert NAMES == ['a']\nassert SIZE == 4"
    assert verdict("def double(x): return 2 * x\nNAMES = ['a']\nSIZE = 99", tests).name == "passed"


def test_a_test_cannot_launch_a_students_kernel(verdict):
    found = verdict(COPY, "copy_kernel[(1,)](1, 2)")
    assert (found.name, found.fraction) == ("error", 0)
    assert "a test cannot launch copy_kernel" in found.message


def test_the_visible_test_that_failed_is_quoted_and_a_hidden_one_is_not(verdict):
    answer = "def f(x): return x"
    assert "In the test `assert f(3) == 4`" in verdict(answer, "assert f(3) == 4").message
    hidden = verdict(answer, "f(1)\n" + HIDDEN.format("assert f(314159) == 4"))
    assert (hidden.name, hidden.message) == ("wrong answer", "AssertionError\nIn a hidden test.")


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(f'LEAK {x}')",
        "raise type(f'LEAK_{x}', (ValueError,), {})",
        "raise grading.WrongAnswer(f'LEAK {x}')",
        "raise grading.OutOfBounds(f'LEAK {x}')",
        "raise NotImplementedError(f'LEAK {x}')",
        "raise MemoryError(f'LEAK {x}')",
        "exec(compile(f'1 / 0 # LEAK {x}', 'your answer q', 'exec'))",
        "return f'LEAK {x}'",
        "return [f'LEAK {x}']",
        "import linecache; linecache.cache['your answer q'] = (1, None, [f'LEAK {x}\\n'] * 9, 'your answer q'); 1 / 0",
    ],
)
@pytest.mark.parametrize(
    "test", ["grading.assert_equal(f(271828), 7, what='f')", "grading.assert_schedule(f(271828), 9, 9, 9, 99)"]
)
def test_an_answer_cannot_tell_the_inputs_of_a_hidden_test(verdict, body, test):
    found = verdict(f"def f(x):\n    {body}", HIDDEN.format(test))
    assert found.fraction == 0
    assert "271828" not in found.message + found.detail


def test_the_kind_of_an_exception_and_the_students_line_remain(verdict):
    found = verdict("def f(x):\n    return 1 // (x - x)", HIDDEN.format("f(5)"))
    assert found.name == "error"
    assert found.message.startswith("ZeroDivisionError")
    assert found.detail == "your answer q, line 2: return 1 // (x - x)"


def test_what_comes_out_of_a_wrong_tensor_does_not_give_the_right_one(verdict):
    test = "grading.assert_close(f(), torch.full((2, 2), 271.828), what='f', tile=(1, 1))"
    answer = "def f():\n    x = torch.full((2, 2), 271.828)\n    x[0, 0] = 0\n    return x"
    assert "271.8" in verdict(answer, test).message
    found = verdict(answer, HIDDEN.format(test)).message
    assert "1 of 4 elements" in found
    assert "[0, 0]" in found
    assert "271" not in found


@pytest.mark.parametrize("text", ["\x1b[31mred", "a\rb", "\x07", "\u202eabc", "\x00", "\x9b2J", "\ud800"])
def test_a_message_holds_nothing_that_a_terminal_obeys(verdict, text):
    found = verdict(f"def f():\n    raise ValueError({text!r} * 2000)", "f()")
    assert found.name == "error"
    assert found.message.replace("\n", "").isprintable()
    assert len(found.message) < 2200


def test_a_result_that_no_kernel_made_is_not_a_kernels(verdict):
    tests = "x = torch.arange(20.)\ngrading.assert_close(grading.guarded(copy)(x), x)"
    assert verdict(COPY, tests).name == "passed"
    assert verdict(COPY.replace("return out", "return x + 0"), tests).name == "not a kernel"


def test_a_long_reply_with_room_for_strides_takes_no_memory(verdict):
    lie = """
import gc, json
def f(x):
    channel = next(one for one in gc.get_objects() if type(one).__name__ == "Channel")
    value = {"tensor": 0, "dtype": "float32", "strides": [64]}
    message = {"nonce": channel._nonce, "tensors": [["float32", [50000000], 0]], "header": {"value": value}}
    channel.connection.send(json.dumps(message).encode())
"""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert verdict(lie, "grading.assert_close(f(1), torch.zeros(3))").name == "wrong answer"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000  # KiB


def test_the_environment_is_as_before(verdict):
    before = dict(os.environ)
    assert verdict("", f"import os\nassert os.environ['{SEED_VARIABLE}'] == '3'").name == "passed"
    assert dict(os.environ) == before


def test_an_infinity_must_be_the_same_one(verdict):
    tests = "right = torch.tensor([1.0, float('-inf')])\ngrading.assert_close(f(), right)"
    assert verdict("def f(): return torch.tensor([1.0, float('-inf')])", tests).name == "passed"
    assert verdict("def f(): return torch.tensor([5.0, float('-inf')])", tests).name == "wrong answer"
    assert verdict("def f(): return torch.tensor([1.0, float('inf')])", tests).name == "wrong answer"


def test_a_replay_of_tiny_tiles_is_refused_at_once(verdict):
    import time

    started = time.process_time()
    found = verdict("def f(): return (1, 1, 1)", "grading.assert_schedule(f(), 900, 900, 900, 4000)")
    assert found.name == "wrong answer"
    assert "steps" in found.message
    assert time.process_time() - started < 2


def test_a_sandbox_that_fails_is_no_verdict(judging_slot, monkeypatch):
    from judging import SETUP, program

    from mlsys.grading.judge import judge
    from mlsys.grading.slot import SandboxError

    def fail(entry):
        raise SandboxError("no namespaces left")

    monkeypatch.setattr(judging_slot, "open", fail)
    with pytest.raises(SandboxError):
        judge(judging_slot, program("", SETUP), "", "tests of q", device="cpu", seed=1)


def test_a_process_that_was_killed_is_told_from_one_that_crashed(verdict):
    killed = verdict("import os\ndef f(): os.kill(os.getpid(), 9)", "f()")
    crashed = verdict("import os\ndef f(): os.abort()", "f()")
    assert [(one.name, one.fraction, one.lost) for one in (killed, crashed)] == [
        ("crashed", 0, True),
        ("crashed", 0, False),
    ]
