"""The lock that grading processes share: each case runs in processes of its own, as graders are.

The locks are real, and there is no GPU behind them: a UUID is all that a lock knows of its GPU.
"""

import fcntl
import os
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from mlsys.judge import gpu_lock

ONE = """
import sys
from mlsys.judge import gpu_lock
from mlsys.judge.gpu_lock import GpuLock

gpu_lock.PATIENCE_S = float(sys.argv[2])
gpu_lock = GpuLock.of(sys.argv[1])
with gpu_lock.shared():
    print("beside", flush=True)
    for line in sys.stdin:
        if line == "alone\\n":
            with gpu_lock.exclusive(held_bytes=10) as waiting:
                print("alone", waiting, flush=True)
                while sys.stdin.readline() == "timing\\n":
                    with gpu_lock.exclusive(held_bytes=10) as waiting:
                        print("alone", waiting, flush=True)
            print("beside", flush=True)
        else:
            break
"""


class Grader:
    """A process that grades on a GPU: it says what turn it has got."""

    def __init__(self, uuid: str, temporary: Path, patience_s: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ONE, uuid, str(patience_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )

    def tell(self, word: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def says(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def grader(tmp_path):
    running = []

    def start(uuid="GPU-a", patience_s=gpu_lock.PATIENCE_S):
        running.append(Grader(uuid, tmp_path, patience_s))
        return running[-1]

    yield start
    for one in running:
        one.end()


def last_like_a_timing():
    """Wait for as long as all who are patient take to see that a timing is under way."""
    time.sleep(0.3)


def wait_until_locked(path):
    """Wait until a lock is held for a while: who only looks holds one for less than a millisecond."""
    with path.open("a") as file:  # who locks it may not have made it yet
        seen = 0
        for _ in range(1000):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                seen += 1
                if seen == 5:
                    return
            else:
                fcntl.flock(file, fcntl.LOCK_UN)
                seen = 0
            time.sleep(0.01)
    raise AssertionError(f"nobody locks {path}")


def test_questions_run_side_by_side(grader):
    assert [grader().says(), grader().says()] == ["beside", "beside"]


def test_a_timing_waits_for_the_others_and_keeps_newcomers_out(grader):
    timing, other = grader(), grader()
    assert [timing.says(), other.says()] == ["beside", "beside"]
    timing.tell("alone")
    other.end()  # only now can the timing begin
    assert timing.says() == "alone 0"
    newcomer = grader()
    timing.tell("done")
    assert [timing.says(), newcomer.says()] == ["beside", "beside"]


def test_while_a_timing_is_patient_questions_begin(grader):
    timing, *others = (grader() for _ in range(3))
    assert {one.says() for one in (timing, *others)} == {"beside"}
    timing.tell("alone")
    newcomer = grader()
    assert newcomer.says() == "beside"
    for one in (*others, newcomer):
        one.end()
    assert timing.says() == "alone 0"


@pytest.mark.parametrize(("patience_s", "timings"), [(0.2, 1), (gpu_lock.PATIENCE_S, 2)])
def test_timings_keep_newcomers_out_when_patience_ends_or_half_of_the_questions_wait(
    grader, tmp_path, patience_s, timings
):
    timing, *more = (grader(patience_s=patience_s) for _ in range(timings))
    others = [grader() for _ in range(2)]
    assert {one.says() for one in (timing, *more, *others)} == {"beside"}
    for one in (timing, *more):
        one.tell("alone")
    wait_until_locked(tmp_path / f"mlsys-{os.getuid()}-GPU-a" / "timings")
    for one in more:
        one.end()
    newcomer = grader()
    with ThreadPoolExecutor(1) as pool:
        said = pool.submit(newcomer.says)
        for one in others:
            one.end()
        assert timing.says() == "alone 0"
        assert not said.done()
        timing.tell("done")
        assert said.result() == "beside"


def test_patient_timings_follow_each_other_before_anyone_goes_on(grader):
    first, second, other = grader(), grader(), grader()
    assert {one.says() for one in (first, second, other)} == {"beside"}
    for one in (first, second):
        one.tell("alone")
    other.end()
    with ThreadPoolExecutor(2) as pool:
        said = {pool.submit(one.says): one for one in (first, second)}
        for _ in range(2):
            done, _ = wait(said, return_when=FIRST_COMPLETED)
            one = said.pop(done.pop())
            last_like_a_timing()
            one.tell("done")
    assert [first.says(), second.says()] == ["beside", "beside"]


def test_two_that_want_to_be_alone_do_not_wait_for_each_other_and_know_of_each_other(grader):
    first, second = grader(), grader()
    assert [first.says(), second.says()] == ["beside", "beside"]
    for one in (first, second):
        one.tell("alone\ndone\nend")  # who stays beside keeps the other waiting, if that asks only now
    # Whoever comes first sees whether the other has asked by then; in the end both have been alone.
    for one in (first, second):
        assert one.says() in ("alone 0", "alone 10")
        assert one.says() == "beside"


def test_a_question_that_is_alone_is_timed_without_waiting_for_itself(grader):
    first = grader()
    assert first.says() == "beside"
    first.tell("alone\ntiming\ntiming")
    assert [first.says() for _ in range(3)] == ["alone 0"] * 3
    other = grader()
    first.tell("done")
    assert [first.says(), other.says()] == ["beside", "beside"]


def test_timings_that_wait_come_before_who_would_go_on_and_know_of_all_of_them(grader, tmp_path):
    graders = [grader() for _ in range(4)]
    assert {one.says() for one in graders} == {"beside"}
    for one in graders:
        one.tell("alone")
        wait_until_locked(tmp_path / f"mlsys-{os.getuid()}-GPU-a" / f"waits-{one.process.pid}")
    newcomer = grader()
    order = []
    with ThreadPoolExecutor(4) as pool:
        said = {pool.submit(one.says): one for one in graders}
        while len(order) < 4:
            done, _ = wait(said, return_when=FIRST_COMPLETED)
            for future in done:
                one = said.pop(future)
                order.append(future.result())
                last_like_a_timing()
                one.tell("done")
    assert order == ["alone 30"] * 4
    assert {one.says() for one in [*graders, newcomer]} == {"beside"}


def test_a_dead_process_holds_nothing(grader):
    dead, other = grader(), grader()
    assert [dead.says(), other.says()] == ["beside", "beside"]
    other.end()
    dead.tell("alone")
    assert dead.says() == "alone 0"
    dead.end()
    heir = grader()
    assert heir.says() == "beside"
    heir.tell("alone")
    assert heir.says() == "alone 0"


def wait_until_it_waits(process):
    for _ in range(1000):
        locks = Path("/proc/locks").read_text().splitlines()
        if any("->" in line and line.split()[5] == str(process.pid) for line in locks):
            return
        time.sleep(0.01)
    raise AssertionError("it waits for no lock")


def test_a_timing_keeps_out_who_grades_on_its_gpu_and_nobody_on_another(grader):
    timing, same, other = grader("GPU-a"), grader("GPU-a"), grader("GPU-b")
    assert {timing.says(), same.says(), other.says()} == {"beside"}
    same.end()
    timing.tell("alone")
    assert timing.says() == "alone 0"
    newcomer = grader("GPU-a")
    wait_until_it_waits(newcomer.process)
    other.tell("alone")
    assert other.says() == "alone 0"  # both time at once, and neither counts the other
    beside_it = grader("GPU-b")
    wait_until_it_waits(beside_it.process)
    timing.tell("done")
    assert [timing.says(), newcomer.says()] == ["beside", "beside"]
    other.tell("done")
    assert [other.says(), beside_it.says()] == ["beside", "beside"]
