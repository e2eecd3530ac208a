"""Verdicts of whole questions: what a test sees of an answer, and what a student is told."""

import os

import pytest
from helpers.judging import COPY

from mlsys.grading.draws import SEED_VARIABLE
from mlsys.judge.sandbox.protocol.places import SandboxError

HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"


def test_tests_are_ordinary_python_over_values_and_functions(verdict):
    tests = "for x in (1, 2):\n    assert double(x) == 2 * x\nassert NAMES == ['a']\nassert SIZE == 4"
    assert verdict("def double(x): return 2 * x\nNAMES = ['a']\nSIZE = 99", tests).name == "passed"


@pytest.mark.parametrize("rival", ["@triton.jit\ndef rival_kernel(x_ptr): pass", "rival_kernel = triton"])
def test_a_hidden_part_may_hold_the_kernel_that_the_race_after_it_is_against(verdict, rival):
    race = "grading.speed(copy_kernel, config, shapes=[(4,)], inputs=abs, launch=abs, expected=abs, reference=rival)"
    answer = COPY + "\n\ndef config(shape, dtype): return {'TILE': 16}"
    hidden = HIDDEN.format(f"{rival}\nrival = (rival_kernel, lambda shape, dtype: {{'num_warps': 4}})")
    due = "needs gpu" if "jit" in rival else "error"  # the lab's fault, seen without a GPU too
    found = verdict(answer, f"{hidden}\n{race}")
    assert found.name == due, found.message


def test_a_test_cannot_launch_a_students_kernel(verdict):
    found = verdict(COPY, "copy_kernel[(1,)](1, 2)")
    assert (found.name, found.fraction) == ("error", 0)
    assert "a test cannot launch copy_kernel" in found.message


def test_the_line_of_a_kernel_that_fails_is_that_of_its_cell(verdict):
    answer = COPY.replace("tl.arange(0, TILE)\n", "tl.arange(0, TILE) + tl.arange(0, 2 * TILE)\n")
    launched = 'x = torch.ones(40)\ngrading.check_kernel(copy_kernel, {"TILE": 16}, [x], x, launch=launch_copy)'
    found = verdict(answer, launched)
    assert "incompatible dimensions" in found.message
    number = 1 + next(place for place, text in enumerate(answer.split("\n")) if "2 * TILE" in text)
    assert f"your kernel, line {number}: i = " in found.detail


def test_the_visible_test_that_failed_is_quoted_and_a_hidden_one_is_not(verdict):
    answer = "def f(x): return x"
    assert "In the test `assert f(3) == 4`" in verdict(answer, "assert f(3) == 4").message
    in_a_helper = "def check(x, right):\n    assert f(x) == right\n\n\ncheck(\n    3, 4\n)"
    assert "In the test `check( 3, 4 )`" in verdict(answer, in_a_helper).message
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


def test_what_an_exception_in_a_hidden_test_says_is_kept_for_whoever_marks(verdict):
    found = verdict("def f(x):\n    return [x][1]", HIDDEN.format("f(271828)"))
    assert "IndexError: list index out of range" in found.private
    assert "your answer q, line 2: return [x][1]" in found.private
    assert "out of range" not in found.message + found.detail
    assert verdict("def f(x):\n    return [x][1]", "f(271828)").private == ""


def test_files_that_fill_their_folder_are_a_limit_and_not_an_error_of_the_course(verdict):
    answer = "def f():\n    with open('/scratch/big', 'wb') as file:\n        while True: file.write(bytes(1 << 20))"
    found = verdict(answer, "f()")
    assert (found.name, found.fraction) == ("out of memory", 0)
    assert "filled the folder" in found.message


def test_a_full_disk_of_the_machine_itself_is_no_students_fault(verdict):
    with pytest.raises(SandboxError, match="disk of this machine is full"):
        verdict("def f(): return 1", "import errno\nraise OSError(errno.ENOSPC, 'No space left on device')")


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


GUARDED = "x = torch.arange({0}.)\ngrading.assert_close(grading.guarded(copy)(x), x)\n"
BY_TORCH = COPY.replace("return out", "return x + 0")


@pytest.mark.parametrize(
    "shortcut",
    [
        "if len(x) > 30: return x + 0",
        "if len(x) > 30: return x * (1 + 1e-7 * torch.rand(()))",
        "if len(x) > 30: return torch.clone(x)",
    ],
)
def test_each_guarded_call_is_replayed_and_not_only_the_first(verdict, shortcut):
    answer = COPY.replace("    out =", f"    {shortcut}\n    out =")
    tests = GUARDED.format(20)
    assert verdict(answer, tests).name == "passed"
    assert verdict(answer, tests + GUARDED.format(40)).name == "not a kernel"


@pytest.mark.parametrize(
    "check", ["assert not out.isnan().any()", "if out.isnan().any(): raise ValueError(f'LEAK {x}')", "1 / int(out[3])"]
)
def test_a_function_that_fails_without_kernels_is_looked_at(verdict, check):
    found = verdict(COPY.replace("    return out", f"    {check}\n    return out"), GUARDED.format(20))
    assert (found.name, found.fraction, found.lost) == ("suspicious", 0, False)
    assert "A person will look at it." in found.message
    assert "LEAK" not in found.message


@pytest.mark.alone
def test_a_function_that_waits_for_its_kernel_is_tried_again_and_looked_at(verdict):
    answer = COPY.replace("    return out", "    while not bool((out == x).all()): pass\n    return out")
    found = verdict(answer, GUARDED.format(20))
    assert (found.name, found.fraction, found.lost) == ("suspicious", 0, True)
    assert "did not end in time" in found.message


def test_a_replay_that_is_killed_from_outside_says_nothing(verdict):
    answer = "import os\n" + COPY.replace(
        "    return out", "    if out.isnan().any(): os.kill(os.getpid(), 9)\n    return out"
    )
    found = verdict(answer, GUARDED.format(20))
    assert (found.name, found.fraction, found.lost) == ("crashed", 0, True)


@pytest.mark.parametrize(
    "answer",
    [
        COPY + "\nassert torch.equal(copy(torch.ones(3)), torch.ones(3))",
        COPY.replace("empty_like", "zeros_like"),
        COPY.replace("    return out", "    while (out - x).abs().max() > 1: pass\n    return out"),
        COPY.replace("    return out", "    assert out.shape == x.shape and out.is_contiguous()\n    return out"),
        COPY.replace("torch.empty_like(x)", "CACHE.setdefault(x.shape, torch.empty_like(x))") + "\nCACHE = {}",
        "def again(f):\n    return lambda *a: f(*a)\n" + COPY + "\ncopy = again(copy)",
    ],
    ids=["checked in its cell", "zeros", "until it converges", "checked", "kept output", "wrapped"],
)
def test_an_honest_wrapper_passes_the_replay(verdict, answer):
    zeros = "z = torch.zeros(7)\ngrading.assert_close(grading.guarded(copy)(z), z)\n"
    assert verdict(answer, GUARDED.format(20) + zeros + GUARDED.format(33)).name == "passed"


def test_results_in_a_tuple_are_replayed(verdict):
    tests = "x = torch.arange(20.)\nout, count = grading.guarded(copy)(x)\ngrading.assert_close(out, x)"
    assert verdict(COPY.replace("return out", "return out, len(x)"), tests).name == "passed"
    assert verdict(COPY.replace("return out", "return x + 0, len(x)"), tests).name == "not a kernel"


KERNEL_CASE = """
x = torch.tensor([271828.0, 3.0])
grading.check_kernel(copy_kernel, {"TILE": 16}, [x], x, launch=launch_copy)
"""


@pytest.mark.parametrize(
    "body",
    [
        "tl.store(out_ptr, float('%s' % tl.load(x_ptr)))",
        "tl.static_assert(False, '%s' % tl.load(x_ptr))",
        "tl.static_assert(1 == 2, f'{tl.load(x_ptr)}')",
        "tl.store(out_ptr + tl.load(x_ptr).to(tl.int32), 1.0)",
        "tl.store(out_ptr + 2 + (tl.load(x_ptr) % 1000).to(tl.int32), 1.0)",
        "tl.zeros((tl.load(x_ptr).to(tl.int32), 3), tl.float32)",
    ],
)
def test_a_kernel_cannot_tell_the_inputs_of_a_hidden_test(verdict, body):
    kernel = f"@triton.jit\ndef copy_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):\n    {body}\n"
    found = verdict(kernel, HIDDEN.format(KERNEL_CASE))
    assert found.fraction == 0
    for part in ("271828", "828", "830"):
        assert part not in found.message + found.detail


@pytest.mark.parametrize("call", ["tl.load(x_ptr, member=other)", "tl.load(x_ptr).to(tl.float32, member=other)"])
def test_a_kernel_gets_nothing_that_the_interpreter_keeps_to_itself(verdict, call):
    other = "@triton.jit\ndef other(pointer, _semantic=None):\n    return tl.load(pointer)\n\n\n"
    head = "@triton.jit\ndef copy_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):\n"
    tests = """x = torch.ones(1)\ngrading.check_kernel(copy_kernel, {"TILE": 16}, [x], x, launch=launch_copy)"""
    assert verdict(f"{other}{head}    tl.store(out_ptr, tl.load(x_ptr))\n", tests).name == "passed"
    found = verdict(f"{other}{head}    tl.store(out_ptr, {call})\n", tests)
    assert (found.name, found.fraction) == ("error", 0)
    assert "got an unexpected keyword argument 'member'" in found.message


REMEMBERS = "seen = []\ndef f(x):\n    seen.append(x)\n    {}\n    return x"


@pytest.mark.parametrize(
    ("body", "tests"),
    [
        ("if x == 0: raise ValueError(f'LEAK {seen}')", HIDDEN.format("f(271828)") + "\nf(0)"),
        ("return f'LEAK {x}'", HIDDEN.format("{}[f(271828)]")),
        ("return f'LEAK {x}'", HIDDEN.format("float(f(271828))")),
        ("return f'LEAK {x}'", HIDDEN.format("getattr(torch, f(271828))")),
        ("return {'TILE_M': 16, 'LEAK': seen}", HIDDEN.format("found = f(271828)\nassert not found, f'f is {found}'")),
        (
            "return {'TILE_M': {'LEAK': [x] * 3}}",
            HIDDEN.format("assert f(271828)['TILE_M'] == 16, repr(f(271828)['TILE_M'])"),
        ),
        ("return f'LEAKS {x} and so it goes on'", HIDDEN.format("f(271828)\nassert f(0) == 0, f'it is {f(0)!r}'")),
        ("return f'LEAKS {x} and so it goes on'", HIDDEN.format("raise grading.WrongAnswer(f'f is {f(271828)}')")),
        ("return [seen, torch.zeros(9)]", HIDDEN.format("f(271828)") + "\nassert f(0) == 0, str(f(0))"),
    ],
)
def test_what_a_function_returns_later_or_in_words_is_not_quoted_either(verdict, body, tests):
    found = verdict(REMEMBERS.format(body), tests)
    assert found.fraction == 0
    assert "271828" not in found.message + found.detail


def test_a_hidden_test_quotes_its_own_words_and_short_numbers(verdict):
    words = "assert f(7) == 3, f'f of 7 by 9 is {f(7)}; choose one of two, three'"
    found = verdict("def f(x):\n    return x * 2", HIDDEN.format(words))
    assert found.message == "AssertionError: f of 7 by 9 is 14; choose one of two, three\nIn a hidden test."


@pytest.mark.parametrize(
    "test", ["list(f(9))", "[*f(9)]", "for one in f(9): pass", "f(9).tolist()", "1 in tuple(f(9))"]
)
def test_a_large_tensor_in_place_of_a_list_takes_neither_time_nor_memory(verdict, test):
    answer = "def f(x):\n    return torch.zeros({}, dtype=torch.int8)"
    found = verdict(answer.format(50_000_000), test)
    assert found.name == "wrong answer"
    assert "a tensor of 50,000,000 elements" in found.message
    assert verdict(answer.format(5_000), test).name == "passed"


def test_a_reply_that_breaks_the_rules_is_not_quoted(verdict):
    lie = """
import gc, json
def f(x):
    channel = next(one for one in gc.get_objects() if type(one).__name__ == "Channel")
    channel.reply({"type": "value", "value": {"LEAK": f"LEAK\\x1b {x}"}})
"""
    found = verdict(lie, HIDDEN.format("f(271828)"))
    assert found.name == "suspicious"
    assert "LEAK" not in found.message
    assert verdict(lie, "f(271828)").message.isprintable()


def test_line_numbers_cannot_spell_an_input(verdict):
    lines = "\n".join(f"    if n == {n}: raise ValueError" for n in range(1, 10))
    chain = "def step(n):\n" + lines + "\ndef f(x):\n    error = None\n    for digit in str(x):\n"
    chain += "        try:\n            step(int(digit))\n        except ValueError as e:\n"
    chain += "            e.__cause__ = error\n            error = e\n    raise error"
    found = verdict(chain, HIDDEN.format("f(271828)"))
    assert found.name == "error"
    assert len(found.detail.splitlines()) <= 2


def test_a_long_reply_with_room_for_strides_takes_no_memory(verdict):
    lie = """
import gc, json
def f(x):
    channel = next(one for one in gc.get_objects() if type(one).__name__ == "Channel")
    value = {"tensor": 0, "dtype": "float32", "strides": [64]}
    header = {"type": "value", "value": value}
    message = {"nonce": channel._nonce, "tensors": [["float32", [50000000], 0]], "header": header}
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


def test_a_sandbox_that_fails_is_no_verdict(judging_sandbox, monkeypatch):
    from helpers.judging import SETUP, question_cells

    from mlsys.judge.run_tests import judge
    from mlsys.judge.sandbox.host import SandboxError

    def fail(entry):
        raise SandboxError("no namespaces left")

    monkeypatch.setattr(judging_sandbox, "open", fail)
    with pytest.raises(SandboxError):
        judge(judging_sandbox, question_cells("", SETUP), "", "tests of q", device="cpu", seed=1)


def test_a_process_that_was_killed_is_told_from_one_that_crashed(verdict):
    killed = verdict("import os\ndef f(): os.kill(os.getpid(), 9)", "f()")
    crashed = verdict("import os\ndef f(): os.abort()", "f()")
    assert [(one.name, one.fraction, one.lost) for one in (killed, crashed)] == [
        ("crashed", 0, True),
        ("crashed", 0, False),
    ]
