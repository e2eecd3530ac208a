"""What /proc tells about processes of known size."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mlsys.judge.sandbox.inside.usage import cpu_s, memory_bytes, peak_rss_bytes, processes_below, waited_for_cpu_s

MIB = 2**20
ME = [Path("/proc/self")]


SHARED = """
import mmap, sys
from pathlib import Path
from mlsys.judge.sandbox.inside.usage import memory_bytes

before = memory_bytes([Path("/proc/self")], int(sys.argv[1]))
with mmap.mmap(-1, 32 << 20) as shared:
    shared.write(bytes(32 << 20))
    print(memory_bytes([Path("/proc/self")], int(sys.argv[1])) - before)
"""


@pytest.fixture
def twins():
    """Two forks of this process, with the 64 MiB that they share with it."""
    held = bytearray(os.urandom(1)) * (64 * MIB)
    forks = []
    for _ in range(2):
        process = os.fork()
        if process == 0:
            signal.pause()
        forks.append(process)
    yield [Path(f"/proc/{process}") for process in forks]
    for process in forks:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert held


@pytest.mark.parametrize("limit_bytes", [0, 1 << 50], ids=["exact", "bound"])
def test_touched_memory_is_counted(limit_bytes):
    before = memory_bytes(ME, limit_bytes)
    held = bytearray(os.urandom(1)) * (64 * MIB)
    assert memory_bytes(ME, limit_bytes) - before == pytest.approx(64 * MIB, rel=0.1)
    assert held


@pytest.mark.parametrize("limit_bytes", [0, 1 << 50], ids=["exact", "bound"])
def test_shared_mappings_are_counted(limit_bytes):
    """In a process of its own: what this one shares with forks of other tests counts as its own when they end."""
    done = subprocess.run([sys.executable, "-c", SHARED, str(limit_bytes)], capture_output=True, text=True, check=True)
    assert int(done.stdout) == pytest.approx(32 * MIB, rel=0.2)


@pytest.mark.parametrize("limit_bytes", [0, 1 << 50], ids=["exact", "bound"])
def test_page_tables_are_counted(limit_bytes):
    before = memory_bytes(ME, limit_bytes)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    reach, readable, private_anonymous_unreserved = 1 << 21, 1, 0x4022  # one page table covers 2 MiB
    start = libc.mmap(None, ctypes.c_size_t(4000 * reach), readable, private_anonymous_unreserved, -1, 0)
    for number in range(4000):
        ctypes.c_char.from_address(start + number * reach).value  # noqa: B018 - reading is the point
    grown = memory_bytes(ME, limit_bytes) - before
    libc.munmap(ctypes.c_void_p(start), ctypes.c_size_t(4000 * reach))
    assert grown >= 4000 * 4096 * 0.9


def test_what_forks_share_is_counted_once_above_the_limit(twins):
    both, one = memory_bytes(twins, 0), memory_bytes(twins[:1], 0)
    assert both == pytest.approx(2 * one, rel=0.05)
    # Three processes share the 64 MiB; two of them hold two thirds.
    assert memory_bytes(twins, 1 << 50) - both > 2 / 3 * 64 * MIB


def test_cpu_time_and_peak_are_those_of_the_process():
    before = cpu_s(os.getpid(), [])
    end_s = time.process_time() + 0.1
    while time.process_time() < end_s:
        pass
    del_later = bytearray(os.urandom(1)) * (64 * MIB)
    del del_later
    assert 0.05 < cpu_s(os.getpid(), []) - before < 1
    assert peak_rss_bytes(ME) > 64 * MIB


def test_cpu_time_of_a_child_is_counted_once_while_it_runs_and_after_its_end():
    before = cpu_s(os.getpid(), [])
    child = os.fork()
    if child == 0:
        end_s = time.process_time() + 0.2
        while time.process_time() < end_s:
            pass
        signal.pause()
    below = [Path(f"/proc/{child}")]
    until_s = time.monotonic() + 60
    while cpu_s(child, []) < 0.15 and time.monotonic() < until_s:
        time.sleep(0.02)
    assert 0.15 <= cpu_s(os.getpid(), below) - before < 0.4
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert 0.15 <= cpu_s(os.getpid(), below) - before < 0.4


def test_memory_of_a_process_whose_first_thread_has_ended_is_counted():
    code = """
import ctypes, os, threading, time
held = bytearray(os.urandom(1)) * (64 << 20)
threading.Thread(target=time.sleep, args=(100,)).start()
print(flush=True)
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        folder = Path(f"/proc/{process.pid}")
        until_s = time.monotonic() + 60
        while "RssAnon" in (folder / "status").read_text() and time.monotonic() < until_s:
            time.sleep(0.02)
        assert 64 * MIB < memory_bytes([folder], 1 << 50) < 200 * MIB
        assert 64 * MIB < memory_bytes([folder], 0) < 200 * MIB
        process.kill()


def test_a_process_that_has_ended_unawaited_holds_no_memory():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert memory_bytes([Path(f"/proc/{child}")], 0) == 0
    os.waitpid(child, 0)


def test_a_process_that_runs_and_cannot_be_read_is_above_any_limit(tmp_path):
    (tmp_path / "task" / tmp_path.name).mkdir(parents=True)
    assert memory_bytes([tmp_path], 1 << 50) > 1 << 50


def test_sleeping_is_not_waiting_for_a_cpu():
    child = os.fork()
    if child == 0:
        time.sleep(0.5)
        signal.pause()
    time.sleep(0.7)
    assert waited_for_cpu_s([Path(f"/proc/{child}")]) < 0.4
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_process_that_has_ended_uses_nothing():
    gone = [Path("/proc/999999999")]
    assert (memory_bytes(gone, 0), cpu_s(999999999, gone), peak_rss_bytes(gone)) == (0, 0, 0)


def test_descendants_of_all_generations_are_found_and_no_one_else(twins):
    own = processes_below(os.getpid())
    assert set(twins) <= set(own)
    assert Path(f"/proc/{os.getpid()}") not in own
    assert processes_below(int(twins[0].name)) == []
    assert set(own) < set(processes_below(os.getppid()))
