"""Code that breaks things: its own question ends, the sandbox goes on."""

import signal
import time

import numpy as np
import pytest
from helpers.sending import STUDENT, fail, run

from mlsys.judge.sandbox.host import ProcessEnded

pytestmark = [pytest.mark.alone, pytest.mark.proof]

MIB = 2**20
IGNORE_SIGNALS = """
import signal
for number in signal.valid_signals() - {9, 19}:
    if not 31 < number < 34: signal.signal(number, signal.SIG_IGN)
"""


def over(question, source, timeout_s=10.0):
    """Run source that must end the question; return the ending."""
    with pytest.raises(ProcessEnded) as first:
        question.request({"source": source}, timeout_s=timeout_s)
    with pytest.raises(ProcessEnded) as second:
        question.request({"source": "result = 1"})
    assert second.value is first.value
    assert question.close() == first.value.ending
    return first.value.ending


@pytest.mark.parametrize(
    "loop",
    [
        "while True: pass",
        "while True:\n try:\n  while True: pass\n except BaseException: pass",
        IGNORE_SIGNALS + "while True: pass",
        "time.sleep(1000)",
        "import ctypes; ctypes.PyDLL(None).pause()",
        "sys.stdin = open(1, closefd=False); os.kill(os.getpid(), 19)",
    ],
    ids=["endless", "swallows interrupts", "ignores signals", "sleeps", "holds the interpreter", "stops itself"],
)
def test_a_loop_ends_at_the_time_limit(question, loop):
    started_s = time.monotonic()
    ending = over(question, loop, timeout_s=0.2)
    assert ending.kind == "timed out"
    assert 150 * MIB < ending.peak_rss_bytes < 900 * MIB
    assert 0.2 <= time.monotonic() - started_s < 20
    assert ending.cpu_s < 0.8  # not the limit of CPU time, which is 1 s


@pytest.mark.parametrize("prelude", ["", "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)"])
def test_cpu_time_ends_without_the_judge(question, prelude):
    ending = over(question, f"{prelude}\nwhile True: pass")
    assert ending.kind == "timed out"
    assert 0.5 < ending.cpu_s < 3  # the kernel ends it by ticks, and counts finer


def test_the_wall_time_of_a_question_covers_all_its_requests(sandbox, monkeypatch):
    limits = sandbox.limits.__class__(wall_s=0.3, buffer_bytes=sandbox.limits.buffer_bytes)
    monkeypatch.setattr(sandbox, "limits", limits)
    with sandbox.open(STUDENT) as question:
        run(question, "time.sleep(0.2)")
        with pytest.raises(ProcessEnded) as error:
            run(question, "time.sleep(0.2)")
    assert error.value.ending.kind == "timed out"


def test_leaving_is_reported_with_its_status(question):
    ending = over(question, "os._exit(7)")
    assert (ending.kind, ending.exit_status, ending.signal) == ("exited", 7, None)


@pytest.mark.parametrize(
    ("crash", "by"),
    [
        ("import ctypes; ctypes.string_at(8)", signal.SIGSEGV),
        ("os.abort()", signal.SIGABRT),
        ("os.kill(os.getpid(), 9)", signal.SIGKILL),
        ("import torch; torch.empty(4).as_strided((4,), (1 << 40,)).fill_(1)", None),
        (
            "import ctypes\nsys.setrecursionlimit(10**9)\nf = ctypes.CFUNCTYPE(None)(lambda: f())\nf()",
            signal.SIGSEGV,
        ),
    ],
    ids=["near null", "abort", "kill", "far store", "stack overflow"],
)
def test_a_crash_is_reported_with_its_signal(question, crash, by):
    if by is None:
        assert fail(question, crash) == "RuntimeError"  # torch checks the bounds of a view
        return
    ending = over(question, crash)
    assert (ending.kind, ending.exit_status, ending.signal) == ("crashed", None, by)


def test_a_segmentation_fault_leaves_its_python_line_in_the_output(question):
    assert "Segmentation fault" in over(question, "import ctypes; ctypes.string_at(8)").output


@pytest.mark.parametrize(
    "bomb",
    [
        "while True:\n try: os.fork()\n except OSError: pass",
        "import threading\nwhile True:\n try: threading.Thread(target=input).start()\n except RuntimeError: pass",
    ],
    ids=["processes", "threads"],
)
def test_a_fork_bomb_is_bounded_and_cleared_away(question, bomb):
    assert over(question, bomb, timeout_s=0.5).kind == "timed out"


def test_private_memory_ends_in_a_memory_error_that_can_be_reported(question):
    # `bytes` asks for zeros that it does not touch, so the watchdog, which counts what is resident, has nothing to see.
    assert fail(question, "x = []\nwhile True: x.append(bytes(50_000_000))") == "MemoryError"
    run(question, "x = None")
    assert fail(question, "import numpy; numpy.ones(1 << 28)") in {"MemoryError", "_ArrayMemoryError"}
    assert fail(question, "import torch; torch.ones(1 << 29)") == "RuntimeError"


def test_shared_memory_is_refused(question):
    assert fail(question, "import mmap; mmap.mmap(-1, 1 << 30)") == "PermissionError"
    assert fail(question, "import mmap; mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 30)") == "PermissionError"
    assert fail(question, "os.memfd_create('hidden')") == "PermissionError"
    assert fail(question, "open('/dev/shm/hidden', 'w')") == "OSError"


def test_memory_of_many_processes_is_summed(question):
    source = """
for _ in range(8):
    if os.fork() == 0:
        held = [bytearray(os.urandom(1)) * 10_000_000 for _ in range(15)]
        time.sleep(100)
time.sleep(100)
"""
    assert over(question, source).kind == "out of memory"


def test_the_memory_of_one_question_is_not_counted_for_the_other(sandbox):
    hold = "held = [bytearray(os.urandom(1)) * 10_000_000 for _ in range(10)]"
    in_three_children = f"for _ in range(3):\n  if os.fork() == 0:\n    {hold}\n    time.sleep(100)\n"
    with sandbox.open(STUDENT) as one, sandbox.open(STUDENT) as other:
        for question in (one, other):  # 300 MB each is less than the limit, 600 MB together with the rest is more
            run(question, hold + "\n" + in_three_children)
        time.sleep(0.5)
        assert over(one, in_three_children + "time.sleep(100)").kind == "out of memory"
        assert run(other, "result = len(held)") == 10


def test_many_processes_that_share_memory_are_not_taken_for_a_bomb(question):
    source = """
for _ in range(12):
    if os.fork() == 0:
        time.sleep(100)
time.sleep(0.4)
result = "alive"
"""
    assert run(question, source) == "alive"


def test_a_flood_of_output_is_cut_and_does_not_slow_the_answer(question):
    started_s = time.monotonic()
    assert run(question, "print('first line')\nfor _ in range(100): print('x' * 1_000_000)\nresult = 5") == 5
    assert time.monotonic() - started_s < 20
    ending = question.close()
    assert ending.cpu_s < 2
    output = ending.output
    assert output.startswith("first line\nxxx")
    assert len(output) <= 64 * 1024


def test_errors_and_text_that_is_no_unicode_arrive_as_text(question):
    run(question, "print('out'); print('err', file=sys.stderr); os.write(1, bytes([255, 10])); print(chr(0xDC00))")
    assert question.close().output == "out\nerr\n\N{REPLACEMENT CHARACTER}\n\\udc00\n"


def test_the_scratch_folder_has_a_size(sandbox, question):
    source = """
result = 0
try:
    for number in range(20):
        with open(f"/scratch/{number}", "wb", buffering=0) as file:
            while True:
                result += file.write(bytes(1 << 20))
                if file.tell() >= 4 << 20: break
except OSError as error:
    import errno
    assert error.errno == errno.ENOSPC
"""
    assert 4 * MIB < run(question, source) <= sandbox.limits.scratch_bytes


def test_the_scratch_folder_has_a_number_of_files(sandbox, question):
    source = """
result = 0
try:
    while True:
        open(f"/scratch/{result}", "w").close()
        result += 1
except OSError: pass
"""
    assert 50 < run(question, source) <= sandbox.limits.scratch_files


def test_open_files_are_limited(sandbox, question):
    source = "held = []\nwhile True: held.append(open('/dev/null'))"
    assert fail(question, source) == "OSError"


@pytest.mark.parametrize("target", [-1, 0, 1])
@pytest.mark.parametrize("number", [15, 2, 1, 19, 9])
def test_killing_everything_in_sight_does_not_reach_the_parent(sandbox, target, number):
    with sandbox.open(STUDENT) as question:
        kinds = {"none"}
        try:
            question.request({"source": f"os.kill({target}, {number})"}, timeout_s=0.3)
        except ProcessEnded as error:
            kinds = {error.ending.kind}
    assert kinds <= {"none", "crashed", "timed out"}  # what it can hit is itself


def test_a_process_left_behind_is_gone_before_the_next_question(sandbox):
    with sandbox.open(STUDENT) as question:
        source = f"""{IGNORE_SIGNALS}
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    while True:
        Path("/scratch/here").write_text("waiting")
        time.sleep(0.01)
time.sleep(0.1)
result = os.listdir("/scratch")
"""
        assert run(question, source) == ["here"]
    assert question.close().kind == "exited"
    with sandbox.open(STUDENT) as question:
        assert run(question, "time.sleep(0.1); result = os.listdir('/scratch')") == []
        assert len(run(question, "result = [name for name in os.listdir('/proc') if name.isdecimal()]")) == 2


def test_a_poisoned_cache_is_not_seen_by_the_next_question(sandbox):
    with sandbox.open(STUDENT) as question:
        run(question, "cache = Path(os.environ['TRITON_CACHE_DIR']); cache.mkdir(); (cache / 'x').write_text('evil')")
    with sandbox.open(STUDENT) as question:
        assert run(question, "result = os.path.exists(os.environ['TRITON_CACHE_DIR'])") is False


def test_patched_libraries_are_whole_in_the_next_question(sandbox):
    with sandbox.open(STUDENT) as question:
        run(question, "import builtins, torch; torch.allclose = lambda *a, **k: True; builtins.abs = None")
        assert run(question, "result = [torch.allclose(torch.zeros(1), torch.ones(1)), abs is None]") == [True, True]
    with sandbox.open(STUDENT) as question:
        source = "import torch; result = [torch.allclose(torch.zeros(1), torch.ones(1)), abs is None]"
        assert run(question, source) == [False, False]


def test_a_question_that_will_not_leave_is_killed(sandbox):
    with sandbox.open(STUDENT) as question:
        run(question, "channel.receive = lambda: time.sleep(100)")
    assert question.close().kind == "killed"


def test_an_honest_kernel_runs_in_the_interpreter(question):
    source = """
import linecache, torch, triton, triton.language as tl
text = '''
@triton.jit
def add(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=m) + tl.load(y_ptr + i, mask=m), mask=m)
'''
linecache.cache["cell"] = (len(text), None, text.splitlines(True), "cell")
names = {"triton": triton, "tl": tl, "__name__": "cell"}
exec(compile(text, "cell", "exec"), names)
x, y = (torch.from_numpy(t) for t in tensors)
z = torch.empty_like(x)
names["add"][(triton.cdiv(x.numel(), 64),)](x, y, z, x.numel(), BLOCK=64)
results = [z.numpy()]
"""
    x, y = np.random.default_rng(0).normal(size=(2, 1000)).astype(np.float32)
    reply = question.request({"source": source}, [x, y], timeout_s=10)
    assert "error" not in reply.header, reply.header
    np.testing.assert_array_equal(reply.tensors[0], x + y)
