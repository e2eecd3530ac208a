"""Memory that a watchdog may not see, in processes without a first thread and in pipes, with a small limit."""

import pytest

from mlsys.grading.verdicts import Verdict
from mlsys.judge.run_tests import judge
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.limits import MIB, Limits
from mlsys.judge.session import QuestionCells
from mlsys.judge.shared.messages import Cell
from mlsys.judge.site import site

LIMIT_BYTES = 640 * MIB
SETUP = "import os, time\nimport torch\nfrom mlsys import grading"
TESTS = "grading.assert_equal(hold(True), 7, what='what hold returns')"

FORKS = """
def hold(much):
    for _ in range(3):
        if os.fork() == 0:
            try:
                keep(250_000_000 if much else 1_000)
                time.sleep(4)
            finally:
                os._exit(0)
    time.sleep(3)
    return 7
"""
PLAINLY = """
def keep(size):
    globals()["held"] = b"x" * size
"""
WITHOUT_A_FIRST_THREAD = """
import ctypes
import threading

def stay(size):
    time.sleep(0.3)  # until the first thread has ended
    held = b"x" * size
    time.sleep(4)
    os._exit(0)

def keep(size):
    threading.Thread(target=stay, args=(size,)).start()
    ctypes.CDLL(None).syscall(60, 0)  # exit: of this thread only
"""
HANDED_ON = """
import ctypes
import threading

def stay(size, held, times):
    time.sleep(0.02)
    if times == 150:
        held = b"x" * size
    if times:
        threading.Thread(target=stay, args=(size, held, times - 1)).start()
    else:
        os._exit(0)

def keep(size):
    threading.Thread(target=stay, args=(size, b"", 170)).start()
    ctypes.CDLL(None).syscall(60, 0)
"""
IN_PIPES = """
import ctypes
import fcntl
import mmap

HUGE = 2 << 20
KEPT = []

class Part(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]

def keep(size):
    libc = ctypes.CDLL(None, use_errno=True)
    _, into = pair = os.pipe()
    fcntl.fcntl(into, 1031, 1 << 20)  # F_SETPIPE_SZ: 256 pages
    for _ in range(size // HUGE):
        region = mmap.mmap(-1, 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        KEPT.append(region)  # its end would unmap what has this address then
        region.madvise(14)  # MADV_HUGEPAGE
        start = ctypes.addressof(ctypes.c_char.from_buffer(region))
        aligned = -(-start // HUGE) * HUGE
        ctypes.c_char.from_address(aligned).value = b"x"
        if libc.vmsplice(into, ctypes.byref(Part(aligned, 4096)), ctypes.c_ulong(1), 0) < 0:
            raise OSError(ctypes.get_errno(), "vmsplice")
        libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(2 * HUGE))
"""
ON_ITS_OWN = """
def hold(much):
    if much:
        keep(16 << 20)
    return 7
"""


@pytest.fixture(scope="module")
def sandbox():  # type: ignore[no-untyped-def]
    with Sandbox(site(), Limits(cpu_s=4, wall_s=20, memory_bytes=LIMIT_BYTES), index=6) as sandbox:
        yield sandbox


def judged(sandbox: Sandbox, answer: str, tests: str = TESTS) -> Verdict:
    cells = [
        Cell("setup", "setup s", SETUP),
        Cell("answer", "your answer q", answer),
    ]
    return judge(sandbox, QuestionCells(cells[:1], cells), tests, "tests of q", device="cpu", seed=3)


@pytest.mark.parametrize("way", [PLAINLY, WITHOUT_A_FIRST_THREAD, HANDED_ON], ids=["plainly", "no leader", "handed on"])
def test_memory_counts_whoever_holds_it(sandbox: Sandbox, way: str) -> None:
    assert judged(sandbox, way + FORKS).name == "out of memory"


@pytest.mark.parametrize("way", [PLAINLY, WITHOUT_A_FIRST_THREAD, HANDED_ON], ids=["plainly", "no leader", "handed on"])
def test_the_same_processes_with_little_memory_do_no_harm(sandbox: Sandbox, way: str) -> None:
    found = judged(sandbox, way + FORKS, TESTS.replace("True", "False"))
    assert (found.name, found.message) == ("passed", "")


def test_no_page_is_kept_in_a_pipe(sandbox: Sandbox) -> None:
    assert judged(sandbox, IN_PIPES + ON_ITS_OWN).name != "passed"
    assert judged(sandbox, IN_PIPES + ON_ITS_OWN, TESTS.replace("True", "False")).name == "passed"
