"""The judge's requests to a student's process and to the launcher."""

import time
from contextlib import contextmanager

import pytest
import torch
from helpers.judging import COPY, LAUNCH, SETUP

from mlsys.grading.verdicts import NotAKernel, Suspicious
from mlsys.judge.session import FUNCTION, GuardedCall, StudentFailed, _raise
from mlsys.judge.shared.messages import Failure

SAY = "import gc\nchannel = next(x for x in gc.get_objects() if type(x).__name__ == 'Channel')\n"


def failure(session, answer, name="f"):
    with pytest.raises(StudentFailed) as caught:
        session(answer).call(name, (), {}, guarded=False)
    return caught.value


def launched(session, answer, x):
    made = session(answer)
    return made.launch("copy_kernel", made_launch, {"TILE": 16}, x, [x])


def launch_copy():
    """Only its name is sent: the launcher has the lab's own function."""


made_launch = launch_copy


def test_values_functions_and_kernels_are_told_apart(session):
    made = session("A = (1, 2.5, 'x', [None])\nB = torch.ones(3)\n" + COPY)
    assert made.value("A") == (1, 2.5, "x", [None])
    assert torch.equal(made.value("B"), torch.ones(3))
    assert made.value("copy") is FUNCTION
    assert made.value("copy_kernel") is FUNCTION
    with pytest.raises(StudentFailed, match="no longer define C"):
        made.value("C")


@pytest.mark.parametrize("layout", [(1, 5), (12, 2), (0, 1)])
def test_a_call_gets_the_strides_of_the_judge(session, layout):
    x = torch.arange(60.0).as_strided((5, 5), layout)
    strides, same = session("def f(x): return x.stride(), x + 0").call("f", (x,), {}, guarded=False)
    assert torch.equal(same, x)
    assert strides == (layout if 0 not in layout else (5, 1))  # elements that share a place get places of their own


def test_waiting_for_other_timings_takes_no_time_of_a_question(session, judging_sandbox):
    """Before a timing a question waits for those that run, and after it for the timings that have waited meanwhile."""
    limit_s = judging_sandbox.limits.wall_s

    class Busy:
        @contextmanager
        def exclusive(self, _):
            time.sleep(0.2 * limit_s)
            yield 0
            time.sleep(1.1 * limit_s)

    made = session("def f(): return 5")
    made.run()
    made._gpu_lock = Busy()
    with made.alone_on_gpu(0):
        pass
    assert made.call("f", (), {}, guarded=False) == 5


def test_messages_are_read_where_a_student_has_replaced_what_python_offers(session):
    made = session("import builtins\nbuiltins.type = lambda thing: int\ndef f(): return 5")
    assert made.call("f", (), {}, guarded=False) == 5
    assert made.value("f") is FUNCTION


def test_state_lasts_for_a_process_and_ends_with_it(session):
    made = session("count = []\ndef f():\n    count.append(1)\n    return len(count)")
    assert [made.call("f", (), {}, guarded=False) for _ in range(3)] == [1, 2, 3]
    made.close()
    assert made.call("f", (), {}, guarded=False) == 1


def test_an_exception_brings_its_own_lines(session):
    error = failure(session, "def g():\n    return 1 / 0\ndef f():\n    return g()")
    assert (error.verdict, str(error)) == ("error", "ZeroDivisionError: division by zero")
    assert error.lines == ("your answer q, line 4: return g()", "your answer q, line 2: return 1 / 0")
    assert error.own_words


@pytest.mark.parametrize("claimed", ["passed", "slow", "needs gpu", "needs review", "timed out", "nonsense"])
def test_a_process_cannot_claim_what_keeps_points_or_is_the_judges_to_say(session, claimed):
    said = {"type": "failure", "verdict": claimed, "message": "x", "lines": []}
    assert failure(session, f"{SAY}def f():\n    channel.reply({said!r})").verdict == "error"


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"error": {"verdict": "error", "message": "x", "lines": []}},
        {"type": "failure"},
        {"type": "failure", "verdict": "error"},
        {"type": "failure", "verdict": 1, "message": "x", "lines": []},
        {"type": "failure", "verdict": "error", "message": "x", "lines": None},
        {"type": "failure", "verdict": "error", "message": "x", "lines": [], "more": 1},
    ],
)
def test_a_failure_in_other_words_is_suspicious(session, said):
    with pytest.raises(Suspicious):
        session(f"{SAY}def f():\n    channel.reply({said!r})").call("f", (), {}, guarded=False)


@pytest.mark.parametrize(
    "said",
    [
        {"value": 5},
        {"type": "value"},
        {"type": "value", "value": 5, "more": 1},
        {"type": ["value"], "value": 5},
        {"type": "VALUE", "value": 5},
        {"type": "done"},
        {"type": "function"},
        {"type": "lap time", "call_s": 0.1},
        {"type": "comparison", "agrees": True},
    ],
)
def test_a_reply_of_another_kind_or_shape_is_suspicious(session, said):
    with pytest.raises(Suspicious):
        session(f"{SAY}def f():\n    channel.reply({said!r})").call("f", (), {}, guarded=False)


@pytest.mark.parametrize(
    ("body", "verdict", "part"),
    [
        ("raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})", "error", "E, whose text cannot be read"),
        ("raise ValueError('x' * 1_000_000)", "error", "ValueError: xxx"),
        ("return 'x' * 1_000_000", "error", "the limit is"),
        ("return [0] * 100_000", "error", "the limit is"),
        ("return 10 ** 1000", "error", "digits"),
        ("return [torch.ones(1)] * 100", "error", "the limit is 64"),
        ("return torch.ones(100_000_000)", "error", "the limit is"),
        ("x = []\n    for _ in range(100): x = [x]\n    return x", "error", "deep"),
        ("x = []\n    x.append(x)\n    return x", "error", "RecursionError"),
        ("return object()", "error", "object cannot be sent"),
        ("raise SystemExit(0)", "error", "SystemExit"),
        ("raise grading.NeedsReview('wait')", "error", "wait"),
        ("raise grading.NeedsGpu('wait')", "error", "wait"),
    ],
)
def test_whatever_a_function_ends_with_is_told_and_not_a_crash(session, body, verdict, part):
    error = failure(session, f"def f():\n    {body}")
    assert error.verdict == verdict
    assert part in str(error)
    assert len(str(error)) <= 2100


def test_all_processes_of_a_question_share_one_wall_time(session, judging_sandbox):
    made = session("import time\ndef f():\n    time.sleep(4)")
    started = time.monotonic()
    made.call("f", (), {}, guarded=False)
    with pytest.raises(StudentFailed) as caught:
        list(made.call_without_kernels([GuardedCall("f", (), {}, None)]))
    assert caught.value.verdict == "timed out"
    assert time.monotonic() - started < judging_sandbox.limits.wall_s + 20


def test_the_launcher_runs_the_kernel_and_none_of_the_students_python(session):
    answer = "launched = []\n" + COPY + "\ntorch.empty = torch.zeros = None\nraise SystemExit"
    x = torch.randn(37)
    assert torch.equal(launched(session, answer, x), x)


def test_launcher_and_student_take_turns(session):
    made, x = session(COPY), torch.randn(20)
    for _ in range(2):
        assert torch.equal(made.call("copy", (x,), {}, guarded=True), x)
        assert torch.equal(made.launch("copy_kernel", made_launch, {"TILE": 16}, x, [x]), x)


@pytest.mark.parametrize(
    ("store", "verdict"),
    [
        ("tl.store(out_ptr + i, 1.0)", "out of bounds"),
        ("tl.store(x_ptr + i, 2.0, mask=i < size)", "out of bounds"),
        ("tl.store(out_ptr + (i.to(tl.int64) << 40), 1.0)", "out of bounds"),
        ("while size > 0: size += 1", "timed out"),
        ("tl.zeros((1 << 20, 1 << 20), tl.float32)", "error"),
        ("tl.static_assert(TILE == 1, 'wrong tile')", "error"),
    ],
)
def test_a_bad_kernel_in_the_launcher_has_its_verdict(session, store, verdict):
    kernel = f"""
@triton.jit
def copy_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    {store}
"""
    with pytest.raises(StudentFailed) as caught:
        launched(session, kernel, torch.ones(20))
    assert caught.value.verdict == verdict
    assert caught.value.own_words == (verdict in ("out of bounds", "error"))  # said by the process, not by us


def test_what_is_no_kernel_never_reaches_the_launcher(session):
    with pytest.raises(NotAKernel):
        launched(session, "copy_kernel = torch.clone", torch.ones(3))


def test_kernels_that_do_nothing_leave_fresh_memory_unwritten(session):
    made, x = session(COPY), torch.ones(20)
    assert torch.equal(made.call("copy", (x,), {}, guarded=True), x)
    assert [call.name for call in made.guarded_calls] == ["copy"]
    (again,) = made.call_without_kernels(made.guarded_calls)
    assert again.isnan().all()


def test_names_of_the_setup_that_a_student_binds_again_change_for_the_student_alone(session):
    made = session("SIZE = 5\nlaunch_copy = None\ndef f(): return SIZE\n" + COPY)
    assert made.call("f", (), {}, guarded=False) == 5
    x = torch.ones(3)
    assert torch.equal(made.launch("copy_kernel", made_launch, {"TILE": 16}, x, [x]), x)


@pytest.mark.parametrize(("own_words", "verdict"), [(False, "needs gpu"), (True, "error")])
def test_only_the_launcher_can_say_that_a_gpu_is_missing_or_in_use(own_words, verdict):
    with pytest.raises(StudentFailed) as caught:
        _raise(Failure("needs gpu", "in use", []), own_words=own_words)
    assert caught.value.verdict == verdict


@pytest.mark.parametrize(
    "store",
    [
        "tl.store(out_ptr + (1 << 34) + i, 1.0)",
        "tl.store(x_ptr + (1 << 34) + i, 1.0)",
        "y = tl.load(x_ptr - (1 << 34) + i)",
        "tl.atomic_add(out_ptr + (1 << 34) + i, 1.0)",
        "tl.store((out_ptr.to(tl.int64) + (1 << 36)).to(tl.pointer_type(tl.float32)) + i, 1.0)",
    ],
)
def test_a_kernel_reaches_no_memory_but_that_of_its_tensors(session, store):
    kernel = f"""
@triton.jit
def copy_kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    {store}
"""
    with pytest.raises(StudentFailed, match="outside all tensors") as caught:
        launched(session, kernel, torch.ones(20))
    assert caught.value.verdict == "out of bounds"


def test_what_a_launch_allocates_itself_is_within_reach(session):
    launch = LAUNCH.replace("x, out,", "x.clone(), out,")
    made = session(COPY, setup=SETUP + launch)
    x = torch.ones(20)
    assert torch.equal(made.launch("copy_kernel", made_launch, {"TILE": 16}, x, [x]), x)
