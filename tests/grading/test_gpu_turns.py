"""The lock that grading processes share: each case runs in processes of its own, as graders are."""

import fcntl
import subprocess
import sys
import time
from pathlib import Path

import pytest

ONE = """
import sys
from pathlib import Path
from mlsys.grading.gpu_turns import GpuTurns

turns = GpuTurns(Path(sys.argv[1]))
with turns.beside_others():
    print("beside", flush=True)
    for line in sys.stdin:
        if line == "alone\\n":
            with turns.alone() as waiting:
                print("alone", waiting, flush=True)
                sys.stdin.readline()
            print("beside", flush=True)
        else:
            break
"""


class Grader:
    """A process that grades: it says what turn it has got."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ONE, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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

    def start():
        running.append(Grader(tmp_path / "turns"))
        return running[-1]

    yield start
    for one in running:
        one.end()


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


def test_two_that_want_to_be_alone_do_not_wait_for_each_other_and_know_of_each_other(grader):
    first, second = grader(), grader()
    assert [first.says(), second.says()] == ["beside", "beside"]
    for one in (first, second):
        one.tell("alone\ndone\nend")  # who stays beside keeps the other waiting, if that asks only now
    # Whoever comes first sees whether the other has asked by then; in the end both have been alone.
    for one in (first, second):
        assert one.says() in ("alone 0", "alone 1")
        assert one.says() == "beside"


def test_who_waits_to_go_on_after_a_timing_is_known_to_the_next(grader, tmp_path):
    first, second = grader(), grader()
    assert [first.says(), second.says()] == ["beside", "beside"]
    queue = tmp_path / "turns" / "queue"
    first.tell("alone")
    wait_until_locked(queue)  # by the first, which waits for the second
    second.tell("alone")
    assert first.says() in ("alone 0", "alone 1")
    wait_until_locked(queue)  # by the second, which is next
    first.tell("done")
    assert second.says() == "alone 1"
    second.tell("done")
    assert [first.says(), second.says()] == ["beside", "beside"]


def wait_until_locked(path):
    with path.open() as file:
        for _ in range(1000):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(file, fcntl.LOCK_UN)
            time.sleep(0.01)
    raise AssertionError(f"nobody locks {path}")


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
