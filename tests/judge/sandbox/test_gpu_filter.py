"""The system-call filter of a sandbox with a GPU, in its own process: CUDA does not start without shared memory."""

import subprocess
import sys

import pytest

TRY = """
import ctypes, mmap, sys
from mlsys.judge.sandbox.inside import seccomp
no_new_privileges = 38
assert ctypes.CDLL(None).prctl(no_new_privileges, 1, 0, 0, 0) == 0
seccomp.install_filter(seccomp.build_filter(sys.argv[1] == "gpu"))
try:
    mmap.mmap(-1, 4096, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    print("mapped")
except OSError:
    print("denied")
"""


@pytest.mark.parametrize(("device", "found"), [("cpu", "denied"), ("gpu", "mapped")])
def test_memory_is_shared_only_where_cuda_needs_it(device, found):
    done = subprocess.run([sys.executable, "-c", TRY, device], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == found
