"""What a run survives: a kill at any moment, a full disk, closed folders, a second run beside it, a clock that jumps.

Every test runs the real command in a process of its own, and compares with a run that nothing disturbed.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from helpers.alive import wait_for_end

from mlsys.classroom.store.record import Record
from mlsys.classroom.store.store import FileStore
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.judge.sandbox.inside.usage import descendants

pytestmark = pytest.mark.proof


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages stand in one line each."""
    monkeypatch.setenv("COLUMNS", "1000")


STUDENTS = ("half-done", "right", "syntax")
GRADE = [sys.executable, "-m", "mlsys.cli.main", "grade", "adding", "--workers", "1"]
LONG = pytest.mark.timeout(900)


@dataclass(frozen=True)
class Course:
    """A copy of the course with a folder of submissions beside it."""

    root: Path

    @property
    def tree(self) -> CourseTree:
        return CourseTree(self.root / "_build" / "course")

    def command(self, *words: str) -> list[str]:
        return [*GRADE, "--submissions", str(self.root / "in"), *words]

    def grade(self, *words: str, within: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
        command = [*within, *self.command(*words)]
        env = {**os.environ, **environment}
        return subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=600, env=env)

    def start(self) -> "subprocess.Popen[bytes]":
        devnull = subprocess.DEVNULL
        return subprocess.Popen(self.command(), cwd=self.root, stdout=devnull, stderr=devnull)

    def record(self, student: str) -> Record:
        record = FileStore(self.tree).record("adding", student)
        assert record is not None
        return record

    def results(self) -> dict[str, object]:
        """Everything that a run decides: verdicts, points, messages, the gradebook's scores, who has feedback."""
        with open_gradebook(self.tree) as gradebook:
            scores = sorted((one.student.id, one.score) for one in gradebook.assignment_submissions("adding"))
        records = {student: self.record(student) for student in STUDENTS}
        found = {
            student: (record.refused, [(one.question, one.verdict, one.points) for one in record.questions])
            for student, record in records.items()
        }
        pages = sorted(path.parent.parent.name for path in (self.tree.root / "feedback").rglob("*.html"))
        return {"records": found, "scores": scores, "pages": pages}


@pytest.fixture(scope="module")
def prototype(adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = Course(tmp_path_factory.mktemp("faults") / "prototype")
    shutil.copytree(adding[0], course.root)
    shutil.rmtree(course.tree.root / "sample-class")
    (course.root / "in").mkdir()
    for student in STUDENTS:
        shutil.copy(adding[2] / f"{student}.ipynb", course.root / "in")
    return course


@pytest.fixture
def course(prototype: Course, tmp_path: Path) -> Course:
    shutil.copytree(prototype.root, tmp_path / "course")
    return Course(tmp_path / "course")


@pytest.fixture(scope="module")
def undisturbed(prototype: Course, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    course = Course(tmp_path_factory.mktemp("undisturbed") / "course")
    shutil.copytree(prototype.root, course.root)
    done = course.grade()
    assert done.returncode == 0, done.stderr
    return course.results()


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    while not condition():
        assert process.poll() is None, "it ended before it could be disturbed"
        time.sleep(0.005)


@LONG
def test_a_run_that_is_killed_again_and_again_ends_as_one_that_was_not(
    course: Course, undisturbed: dict[str, object]
) -> None:
    tree = course.tree
    records = tree.root / "records" / "adding"
    moments: list[Callable[[], bool]] = [
        lambda: (tree.root / "runs" / "adding.json").is_file(),
        lambda: any((tree.root / "autograded").rglob("*.ipynb")),
        lambda: len(list((tree.root / "feedback").rglob("*.html"))) >= 2,
    ]
    secrets, finished = set(), {}
    for moment in moments:
        process = course.start()
        wait_for(moment, process)
        started = descendants(process.pid)  # workers, sandboxes, questions
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for_end(started, within_s=60)
        secrets.add(json.loads((tree.root / "runs" / "adding.json").read_text())["secret"])
        finished = {path: path.read_bytes() for path in records.glob("*.json") if '"state": ""' not in path.read_text()}
    assert len(secrets) == 1
    last = course.start()
    wait_for(lambda: bool((tree.root / "grading.lock").read_text().strip() == str(last.pid)), last)
    second = course.grade()
    assert (second.returncode, second.stdout) == (2, "")
    assert re.search(rf"another grading run \(process {last.pid}\) works in .*: wait until", second.stderr)
    assert last.wait(600) == 0
    assert course.results() == undisturbed
    assert {course.record(student).run for student in STUDENTS} == secrets
    assert {path: path.read_bytes() for path in finished} == finished, "what was graded was graded again"
    assert json.loads((tree.root / "runs" / "adding.json").read_text())["finished"] is True


@LONG
def test_resume_takes_the_arguments_of_the_interrupted_run(course: Course, undisturbed: dict[str, object]) -> None:
    process = course.start()
    wait_for(lambda: (course.tree.root / "runs" / "adding.json").is_file(), process)
    process.kill()
    process.wait()
    done = subprocess.run([*GRADE, "--resume"], cwd=course.root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "was interrupted: continuing it" in done.stdout
    assert f"--submissions {course.root / 'in'}" in done.stdout
    assert course.results() == undisturbed
    again = subprocess.run([*GRADE, "--resume"], cwd=course.root, capture_output=True, text=True, timeout=600)
    assert "No run of adding was interrupted" in again.stdout
    assert "(0 graded now, 3 unchanged)" in again.stdout


BWRAP = ("bwrap", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc")
EVERYTHING = ("--cap-add", "ALL") if os.geteuid() == 0 else ()


def inside(*flags: str) -> tuple[str, ...]:
    """A view of this machine with something changed; skips where such a view cannot be had."""
    command = (*BWRAP, *flags)
    if shutil.which("bwrap") is None or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("bubblewrap cannot show a changed file system here")
    return command


@LONG
@pytest.mark.parametrize("room_kb", [4, 110])
def test_a_full_disk_ends_in_one_message_and_loses_nothing(
    course: Course, undisturbed: dict[str, object], tmp_path: Path, room_kb: int
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    within = inside(*EVERYTHING, "--size", str(12 * 2**20), "--tmpfs", str(small))
    script = f"""
        cp -r {course.tree.root}/. {small}
        head -c {room_kb}K /dev/zero > {small}/room
        head -c 20M /dev/zero > {small}/ballast 2> /dev/null
        rm {small}/room
        {" ".join(course.command("--course", str(small)))}
        echo status $?
        rm {small}/ballast
        {" ".join(course.command("--course", str(small)))} > /dev/null
        echo status $?
        rm -r {course.tree.root}
        cp -r {small} {course.tree.root}
    """
    words = [*within, "bash", "-c", textwrap.dedent(script)]
    done = subprocess.run(words, cwd=course.root, capture_output=True, text=True, timeout=600)
    assert re.findall("status (.*)", done.stdout) == ["2", "0"], done.stderr
    assert "cannot be written" in done.stderr
    assert re.search("No space left|disk is full", done.stderr), done.stderr
    assert "make room" in done.stderr
    assert "Traceback" not in done.stderr
    assert course.results() == undisturbed


@LONG
def test_a_course_that_cannot_be_written_is_named_and_stays_as_it_is(
    course: Course, undisturbed: dict[str, object]
) -> None:
    root = str(course.tree.root)
    done = course.grade(within=inside(*EVERYTHING, "--ro-bind", root, root))
    assert done.returncode == 2
    assert re.search(
        r"_build/course cannot be written \(.*(Read-only|permission).*\): .*correct its permissions", done.stderr
    )
    assert "Traceback" not in done.stderr
    assert course.grade().returncode == 0
    # A record's folder that is closed later.
    records = str(course.tree.root / "records")
    course.tree.record("adding", "right").unlink()
    done = course.grade(within=inside(*EVERYTHING, "--ro-bind", records, records))
    assert done.returncode == 2
    assert "Read-only file system" in done.stderr
    assert "Traceback" not in done.stderr
    assert course.grade().returncode == 0
    assert course.results() == undisturbed


HELD_TO_PERMISSIONS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
"""Root may read everything; without these two rights it is held to permissions like anybody."""


@LONG
def test_a_submission_that_cannot_be_read_is_refused_after_a_yes_and_its_old_score_is_not_kept(
    course: Course, undisturbed: dict[str, object]
) -> None:
    assert course.grade().returncode == 0
    closed, *others = STUDENTS
    (course.root / "in" / f"{closed}.ipynb").chmod(0o000)
    held = course.grade(within=HELD_TO_PERMISSIONS)
    assert held.returncode == 3, held.stderr
    assert course.record(closed).refused == ""
    done = course.grade("--yes", within=HELD_TO_PERMISSIONS)
    assert done.returncode == 0, done.stderr
    assert "1 refused" in done.stdout
    assert "could not be read (Permission denied)" in course.record(closed).refused
    found, before = course.results(), undisturbed
    assert dict(found["scores"])[closed] == 0
    assert {name: found["records"][name] for name in others} == {name: before["records"][name] for name in others}


@LONG
def test_submissions_that_cannot_be_read_are_named(course: Course) -> None:
    folder = course.root / "in"
    folder.chmod(0o000)
    done = course.grade(within=HELD_TO_PERMISSIONS)
    folder.chmod(0o755)
    assert done.returncode == 2
    assert "in cannot be read (Permission denied): correct its permissions" in done.stderr
    assert "Traceback" not in done.stderr


JUMPING_CLOCK = """
import datetime, itertools, time

jumps = itertools.cycle([0, 86_400, -86_400 * 400, 3_600])
real = time.time
time.time = lambda: real() + next(jumps)


class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls):
        return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)


datetime.datetime = Jumping
"""


@LONG
def test_a_clock_that_jumps_changes_no_grade_and_no_duration(
    course: Course, undisturbed: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(JUMPING_CLOCK)
    probe = [sys.executable, "-c", "import time; a = time.time(); print(abs(time.time() - a) > 1000)"]
    environment = {"PYTHONPATH": str(tmp_path / "clock")}
    shown = subprocess.run(probe, capture_output=True, text=True, env={**os.environ, **environment})
    assert shown.stdout == "True\n"
    started_s = time.monotonic()
    done = course.grade(**environment)
    took_s = time.monotonic() - started_s
    assert done.returncode == 0, done.stderr
    assert course.results() == undisturbed
    seconds = [question.seconds for student in STUDENTS for question in course.record(student).questions]
    assert min(seconds) >= 0
    assert 0 < sum(seconds) < took_s
    said = re.search(r"It took (\S+) minutes", done.stdout)
    assert said is not None
    assert 0 <= float(said[1]) <= took_s / 60 + 0.05
