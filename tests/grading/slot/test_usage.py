"""What /proc tells about processes of known size."""

import ctypes
import mmap
import os
import signal
import time
from pathlib import Path

import pytest

from mlsys.grading.slot.usage import memory_bytes, processes_below, usage

MIB = 2**20
ME = [Path("/proc/self")]


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
    before = memory_bytes(ME, limit_bytes)
    with mmap.mmap(-1, 32 * MIB) as shared:
        shared.write(bytes(32 * MIB))
        assert memory_bytes(ME, limit_bytes) - before == pytest.approx(32 * MIB, rel=0.2)


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
    before = usage(ME).cpu_s
    end_s = time.process_time() + 0.1
    while time.process_time() < end_s:
        pass
    del_later = bytearray(os.urandom(1)) * (64 * MIB)
    del del_later
    after = usage(ME)
    assert 0.05 < after.cpu_s - before < 1
    assert after.peak_rss_bytes > 64 * MIB


def test_a_process_that_has_ended_uses_nothing():
    gone = [Path("/proc/999999999")]
    assert (memory_bytes(gone, 0), usage(gone).cpu_s) == (0, 0)


def test_descendants_of_all_generations_are_found_and_no_one_else(twins):
    own = processes_below(os.getpid())
    assert set(twins) <= set(own)
    assert Path(f"/proc/{os.getpid()}") not in own
    assert processes_below(int(twins[0].name)) == []
    assert set(own) < set(processes_below(os.getppid()))
