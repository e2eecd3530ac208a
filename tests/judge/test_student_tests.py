"""Tests that a student writes, in the judge: what their process may do, and what it can learn."""

import pytest
from helpers.judging import SETUP, question_cells

from mlsys.grading.kernels.source import kernel_source
from mlsys.grading.subjects import Subject
from mlsys.judge.run_tests import judge
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.session import Session
from mlsys.judge.site import site

CALL = """
def call_double(kernel, x):
    if not isinstance(x, torch.Tensor) or x.dtype != torch.float32:
        raise ValueError("x must be float32")
    y = torch.full_like(x, float("nan"))
    kernel[(triton.cdiv(x.numel(), 4),)](x, y, x.numel(), BLOCK=4)
    return y

def right_example(x):
    return 2 * x

def wrong_example(x):
    return 3 * x
"""
KERNEL = """
@triton.jit
def double_kernel(x_ptr, y_ptr, size, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < size
    x = tl.load(x_ptr + index, mask=inside, other=0.0)
    y = 2 * x
    tl.store(y_ptr + index, y, mask=inside)
"""
TESTS = f"""
### BEGIN HIDDEN TESTS
{KERNEL}
score = grading.score_tests(test_double, call=call_double, right=double_kernel, wrong={{
    "is wrong at a ragged end": ("index < size", "index < size // BLOCK * BLOCK"),
    "writes past the end": ("index < size", "index < size + 1"),
    "is wrong for negative numbers": ("y = 2 * x", "y = 2 * tl.abs(x)"),
}})
### END HIDDEN TESTS
score
"""
EXAMPLE = 'grading.score_tests(test_double, right=right_example, wrong={"triples": wrong_example})'
GOOD = """
def test_double(double):
    x = 3 - torch.arange(7.0)
    assert torch.equal(double(x), 2 * x)
"""


def call_double(kernel, x):
    """The judge knows the lab's function by its name only."""


@pytest.fixture(scope="module")
def scored():
    """Judge an answer by the tests above, with more time than a question needs on a busy machine."""
    with Sandbox(site(), Limits(cpu_s=3, wall_s=60), index=8) as sandbox:

        def found(answer, tests=TESTS):
            return judge(sandbox, question_cells(answer, SETUP + CALL), tests, "tests of q", device="cpu", seed=5)

        yield found


def test_the_share_of_the_mutants_is_the_share_of_the_points(scored):
    assert (scored(GOOD).name, scored(GOOD).fraction) == ("passed", 1)
    some = scored(GOOD.replace("3 - torch", "torch"))
    assert (some.name, some.fraction) == ("mutants survive", 2 / 3)
    assert some.message.endswith("Not found: one that is wrong for negative numbers.")
    assert scored(GOOD.replace("7.0", "8.0").replace("3 - ", "")).name == "wrong answer"
    assert scored(GOOD, EXAMPLE).name == "passed"


@pytest.mark.parametrize(
    ("body", "verdict", "said"),
    [
        ("return False", "wrong answer", "refuse a right function"),
        ("return None", "wrong answer", "find 0 of 3"),
        ("while True: pass", "timed out", "Stopped after 3 s"),
        ("import os; os._exit(0)", "crashed", "ended before its tests were done"),
        ("import os; os.kill(os.getpid(), 11)", "crashed", "segmentation fault"),
        ("raise SystemExit(0)", "wrong answer", "refuse a right function"),
        ("raise NotImplementedError('test_double')", "not implemented", ""),
        ("x = bytearray(1 << 40)", "out of memory", ""),
        ("double(torch.zeros(3, dtype=torch.int8)); return True", "wrong answer", "refuse a right function"),
        ("double(torch.zeros(1 << 25)); return True", "timed out", "A call of the function under test"),
        ("double.__self__.channel.connection.send(b'{}'); return False", "suspicious", ""),
        ("double.__self__.channel.reply({'type': 'done'}); return False", "suspicious", ""),
        ("double.__self__.channel.connection.close(); return False", "crashed", ""),
    ],
)
def test_what_tests_do_costs_this_question_and_ends_in_a_verdict(scored, body, verdict, said):
    answer = f"def test_double(double):\n    {body}\n"
    found = scored(answer)
    assert (found.name, found.fraction) == (verdict, 0), found.message
    assert said in found.message


@pytest.mark.parametrize("value", ["5", "None", "torch.ones(3)", "[len]"])
def test_a_plain_value_in_place_of_tests_is_refused(scored, value):
    found = scored(f"test_double = {value}")
    assert found.name in ("wrong answer", "error")
    assert found.fraction == 0


LOOKS = """
import gc, inspect, linecache, sys

def test_double(double):
    texts = [text for text in gc.get_objects() if isinstance(text, (str, bytes))]
    texts += ["".join(entry[2]) for entry in linecache.cache.values() if len(entry) > 2]
    texts += [repr(vars(module)) for module in list(sys.modules.values()) if getattr(module, "__dict__", None)]
    word = "inside" + " = index"
    assert not any((word if isinstance(text, str) else word.encode()) in text for text in texts)
    x = 3 - torch.arange(7.0)
    return torch.equal(double(x), 2 * x)
"""


def test_the_text_of_a_kernel_under_test_is_nowhere_in_the_process_of_the_tests(scored):
    """They would refuse the right kernel if they saw it."""
    assert scored(LOOKS).name == "passed"


SAME = """
import os, sys, tempfile

def test_double(double):
    double(torch.arange(7.0))
    seen = [type(double), double.__name__, double.__qualname__, double.__doc__, sorted(vars(double.__self__)),
            sorted(os.environ.items()), os.listdir(tempfile.gettempdir()), os.getpid(), sorted(sys.modules), id(double)]
    raise ValueError(repr(seen)[:1500])
"""


def test_a_process_of_tests_sees_the_same_whatever_it_tests(scored):
    right, wrong = (
        Subject(call_double, kernel_source([KERNEL.replace("2 * x", result)], "double_kernel"))
        for result in ("2 * x", "2 * tl.abs(x)")
    )
    with Sandbox(site(), Limits(cpu_s=3, wall_s=60), index=8) as sandbox:
        session = Session(sandbox, question_cells(SAME, SETUP + CALL), "cpu")
        outcomes = [session.try_tests("test_double", one, right) for one in (right, wrong, wrong, right)]
        session.close()
    assert len({one.words for one in outcomes}) == 1
    assert "function_under_test" in outcomes[0].words


STATE = """
import os, sys, tempfile

def test_double(double):
    place = os.path.join(tempfile.gettempdir(), "seen")
    new = not os.path.exists(place) and not hasattr(sys, "seen") and "SEEN" not in os.environ
    open(place, "w").close()
    sys.seen, os.environ["SEEN"] = True, "1"
    assert new
    x = 3 - torch.arange(7.0)
    return torch.equal(double(x), 2 * x)
"""


def test_nothing_of_one_run_is_left_in_the_next(scored):
    """Tests that refuse whatever comes after another run would refuse the right kernel."""
    assert scored(STATE).name == "passed"


def test_no_words_of_a_students_process_are_shown_once_mutants_are_hidden(scored):
    answer = "def test_double(double):\n    raise ValueError(f'LEAK {double(torch.ones(3)).tolist()}')\n"
    assert "LEAK" not in scored(answer).message + scored(answer).detail
    assert "LEAK [2.0, 2.0, 2.0]" in scored(answer, EXAMPLE).message


def test_arguments_come_with_their_strides_and_results_go_back(scored):
    answer = """
def test_double(double):
    x = torch.arange(24.0).reshape(4, 6).T[::2]
    y = double(x.contiguous())
    assert y.shape == (3, 4) and y.dtype == torch.float32 and torch.equal(y, 2 * x)
    try:
        double("text")
    except ValueError as error:
        assert "must be float32" in str(error)
    else:
        return False
"""
    assert scored(answer).name in ("passed", "mutants survive", "wrong answer")
    assert "accept the right function" in scored(answer).message
