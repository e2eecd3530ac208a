"""The helper process: what takes too long or too much is given up, and the next text is none the worse for it."""

import multiprocessing
import os
import subprocess
import sys
import time

import pytest
from helpers.alive import wait_for_end

from mlsys.classroom.processes import limited as helper
from mlsys.classroom.processes.limited import LimitExceeded, helper_ends, limited
from mlsys.errors import UserError

KILLED = """
import os, signal
from mlsys.classroom.processes.limited import limited
if __name__ == "__main__":
    print(limited(os.getpid, time_s=5), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(
    ("work", "arguments", "reason"),
    [
        (time.sleep, (60,), "more than 0.5 seconds"),
        (pow, (3, 1 << 40), "more than"),  # numbers of any length: computing that nothing interrupts, or no memory
        (bytearray, (helper.MAX_MEMORY_BYTES + (1 << 20),), "1024 MiB of memory"),
        (os._exit, (3,), "died"),
        (os.kill, ("itself", 9), "died"),
    ],
)
def test_what_exceeds_a_limit_is_given_up_and_the_next_is_done(work, arguments, reason) -> None:  # type: ignore[no-untyped-def]
    if "itself" in arguments:
        arguments = (limited(os.getpid, time_s=5), arguments[1])
    began = time.monotonic()
    with pytest.raises(LimitExceeded, match=reason):
        limited(work, *arguments, time_s=0.5)
    assert time.monotonic() - began < 20
    assert limited(len, "four", time_s=5) == 4


def test_errors_of_the_work_itself_are_passed_on() -> None:
    with pytest.raises(ZeroDivisionError):
        limited(divmod, 1, 0, time_s=5)


def test_one_process_serves_a_run_and_ends_with_it() -> None:
    with helper_ends():
        processes = {limited(os.getpid, time_s=5) for _ in range(3)}
        assert len(processes) == 1
        assert os.getpid() not in processes
    assert not [child for child in multiprocessing.active_children() if child.pid in processes]
    wait_for_end(processes, 10)


def test_it_ends_with_a_run_that_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=100, check=False)
    wait_for_end([int(done.stdout)], 10)


def test_a_machine_on_which_it_does_not_start_is_not_blamed_on_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with helper_ends():
        pass
    monkeypatch.setattr(helper, "_begin", os.abort)
    with pytest.raises(UserError, match="does not start"):
        limited(len, "four", time_s=5)
