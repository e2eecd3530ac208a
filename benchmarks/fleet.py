"""A class on a fleet, with PostgreSQL, while things are killed; compared byte for byte with one machine's results.

    python benchmarks/fleet.py faults --kills 100      # worker, scheduler, writer, database connection, database server
    python benchmarks/fleet.py class --submissions 200 # four workers; two are killed and the database is restarted
    python benchmarks/fleet.py speed --submissions 500 # workers side by side, and the database beside files

With --real the judge runs the submissions; without it their verdicts follow from their digests, after a wait, so that
what is tried is who judges what and what becomes of it.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from helpers.adding_course import make_course_repository  # noqa: E402
from helpers.cluster import QUICK, Cluster, Forked  # noqa: E402
from helpers.postgres import Server  # noqa: E402

from mlsys.classroom.store.configured import store_of  # noqa: E402
from mlsys.classroom.store.move import move_to_database, move_to_files  # noqa: E402
from mlsys.classroom.store.postgres import PostgresStore  # noqa: E402
from mlsys.classroom.store.run import Run  # noqa: E402
from mlsys.course.nbgrader import open_gradebook  # noqa: E402
from mlsys.course.notebook import read_notebook, write_notebook  # noqa: E402
from mlsys.course.release import release  # noqa: E402
from mlsys.course.sample_class import hand_in  # noqa: E402
from mlsys.course.tree import CourseTree  # noqa: E402

LAB = "adding"
KINDS = ("worker", "scheduler", "writer", "connection", "server")
_ANSWERS = ("right", "half-done", "unmasked", "wrong", "other-style", "syntax")


@dataclass
class Course:
    """A copy of the course, with the class's submissions beside it."""

    root: Path

    @property
    def tree(self) -> CourseTree:
        return CourseTree(self.root / "_build" / "course")

    def copy(self, name: str) -> "Course":
        shutil.copytree(self.root, self.root.with_name(name))
        return Course(self.root.with_name(name))

    def start(self, module: str, *words: str) -> "subprocess.Popen[bytes] | Forked":
        arguments = ["grade", LAB, "--submissions", "in", *words]
        if module == QUICK:
            return Forked(QUICK, arguments, self.root, self.root / "log.txt")
        with (self.root / "log.txt").open("ab") as log:
            command = [sys.executable, "-m", module, *arguments]
            return subprocess.Popen(command, cwd=self.root, stdout=log, stderr=log)

    def csv(self) -> bytes:
        return self.tree.results(LAB).read_bytes()

    def scores(self) -> list[tuple[Any, ...]]:
        """What nbgrader's gradebook has of every cell of every student."""
        with open_gradebook(self.tree) as gradebook:
            return sorted(
                (one.student.id, grade.cell.name, grade.auto_score, grade.needs_manual_grade)
                for one in gradebook.assignment_submissions(LAB)
                for notebook in one.notebooks
                for grade in notebook.grades
            )


def make(folder: Path, submissions: int) -> Course:
    """Make a course and a class, in which no two submissions are the same; all copies draw the same inputs."""
    course = Course(make_course_repository(folder / "prototype"))
    release(course.root, course.tree)
    answers = folder / "answers"
    hand_in(course.root / "labs" / LAB / "lab.py", answers, course.tree)
    (course.root / "in").mkdir()
    for number in range(submissions):
        notebook = read_notebook(answers / f"{_ANSWERS[number % len(_ANSWERS)]}.ipynb")
        notebook.cells[0].source += f"\n\nHanded in by number {number}."
        write_notebook(notebook, course.root / "in" / f"student-{number:03}.ipynb")
    store_of(course.tree).secret()
    store_of(course.tree).save_run(LAB, Run("5" * 32, "2026-11-20T10:00:00+00:00"))  # not finished: all go on with it
    return course


def undisturbed(prototype: Course, module: str) -> tuple[Course, float]:
    """Grade on one machine, with files and SQLite; return how long that took too."""
    course = prototype.copy("undisturbed")
    began_s = time.monotonic()
    process = course.start(module, "--workers", "2")
    assert process.wait() == 0, (course.root / "log.txt").read_text()[-3000:]
    return course, time.monotonic() - began_s


def compare(course: Course, other: Course, submissions: int) -> None:
    """Hold a disturbed class against the other: table, gradebook, grades, pages; then once more in files."""
    assert course.csv() == other.csv(), "the tables differ"
    scores = other.scores()
    assert course.scores() == scores, "the gradebooks differ"
    store = store_of(course.tree)
    records = store.records(LAB)
    assert len(records) == submissions
    assert all(one and not one.refused for one in records.values())
    questions = len(records["student-000"].questions)
    if isinstance(store, PostgresStore):
        query = "SELECT student, question, count(*) FROM mlsys_store.grades GROUP BY 1, 2"
        counts = store.do(lambda connection: connection.execute(query).fetchall())
        assert len(counts) == submissions * questions, f"{len(counts)} grades of {submissions * questions}"
        assert {one[2] for one in counts} == {1}, "a grade is there twice"
        move_to_files(course.tree)
        assert course.scores() == scores, "the gradebooks differ after moving back"
        assert store_of(course.tree).records(LAB) == records, "records differ after moving back"
    pages = sorted(path.parent.parent.name for path in (course.tree.root / "feedback").rglob("*.html"))
    assert pages == sorted(records)


def faults(args: argparse.Namespace, folder: Path) -> None:
    """Kill at random points, round after round, until so many kills have hit a run."""
    draw, killed, rounds = random.Random(args.seed), Counter[str](), 0
    prototype = make(folder, args.submissions)
    alone, _ = undisturbed(prototype, args.module)
    server = Server(folder / "data")
    cluster = Cluster(folder / "cluster")
    try:
        for _ in range(args.workers):
            cluster.start_worker(module=args.module)
        while sum(killed.values()) < args.kills:
            course = prototype.copy(f"round-{rounds}")
            move_to_database(course.tree, server.create(f"round_{rounds}"))
            store, starts, process = store_of(course.tree), 1, course.start(args.module, "--cluster", cluster.address)
            before = 0
            while process.poll() != 0:
                if process.poll() is not None:
                    starts, process = starts + 1, course.start(args.module, "--cluster", cluster.address)
                time.sleep(draw.uniform(0.1, args.pause))
                done = graded(store)
                # Most kills wait until something was recorded since the last one: a class must get on in between.
                if process.poll() is not None or (done == before and draw.random() > 0.03):
                    continue
                before = done
                if sum(killed.values()) < args.kills:
                    kind = draw.choice(KINDS)
                    killed[kind] += kill(kind, draw, cluster, server, process, args.module)
                    print(f"{sum(killed.values())}: kill -9 of a {kind} after {done} submissions", flush=True)
            compare(course, alone, args.submissions)
            print(
                f"round {rounds}: equal; {sum(killed.values())} kills so far, {starts} starts of the writer", flush=True
            )
            rounds += 1
        print(f"{sum(killed.values())} kills in {rounds} rounds of {args.submissions} submissions: {dict(killed)}")
        print("0 grades lost, 0 twice; tables byte for byte as undisturbed; PostgreSQL and SQLite equal")
    finally:
        cluster.close()
        server.stop()


def graded(store: Any) -> int:
    """How many submissions are graded by now."""
    query = "SELECT count(DISTINCT student) FROM mlsys_store.grades"
    return int(store.do(lambda connection: connection.execute(query).fetchone())[0])


def kill(kind: str, draw: random.Random, cluster: Cluster, server: Server, writer: Any, module: str) -> int:
    """Kill one of a kind with SIGKILL, and start what does not start by itself; return 1 if there was one."""
    if kind == "worker":
        cluster.kill(draw.choice([one for one in cluster.workers if one.poll() is None]))
        cluster.start_worker(module=module)
    elif kind == "scheduler":
        assert cluster.scheduler is not None
        cluster.kill(cluster.scheduler)
        cluster.start_scheduler()
    elif kind == "writer":
        writer.kill()
        writer.wait()
    elif kind == "connection":
        found = server.backends()
        if not found:
            return 0
        os.kill(draw.choice(found), signal.SIGTERM)  # SIGKILL of a backend restarts the whole server, as `server` does
    else:
        server.stop(signal.SIGKILL)
        server.start()
    return 1


def a_class(args: argparse.Namespace, folder: Path) -> None:
    """Grade one class with four workers; kill two, and kill and start the database, on the way."""
    prototype = make(folder, args.submissions)
    alone, alone_s = undisturbed(prototype, args.module)
    print(f"one machine, files and SQLite: {args.submissions} submissions in {alone_s:.0f} s", flush=True)
    server, cluster = Server(folder / "data"), Cluster(folder / "cluster")
    try:
        for _ in range(args.workers):
            cluster.start_worker(module=args.module)
        cluster.wait_for_workers(args.workers)
        course = prototype.copy("fleet")
        move_to_database(course.tree, server.create("fleet"))
        store, began_s = store_of(course.tree), time.monotonic()
        process, done = course.start(args.module, "--cluster", cluster.address), []
        while process.poll() is None:
            time.sleep(0.5)
            count = graded(store)
            for share, what in ((0.2, "worker"), (0.45, "server"), (0.7, "worker")):
                if count >= share * args.submissions and (share, what) not in done:
                    done.append((share, what))
                    print(f"{count} graded: kill -9 of a {what}", flush=True)
                    if what == "worker":
                        cluster.kill(next(one for one in cluster.workers if one.poll() is None))
                    else:
                        server.stop(signal.SIGKILL)
                        server.start()
        assert process.returncode == 0, (course.root / "log.txt").read_text()[-3000:]
        print(f"fleet, PostgreSQL: {args.submissions} submissions in {time.monotonic() - began_s:.0f} s", flush=True)
        assert len(done) == 3
        compare(course, alone, args.submissions)
        print("equal byte for byte")
    finally:
        cluster.close()
        server.stop()


def speed(args: argparse.Namespace, folder: Path) -> None:
    """Time the same class with files and with PostgreSQL, and with one worker and several."""
    prototype = make(folder, args.submissions)
    server, cluster = Server(folder / "data"), Cluster(folder / "cluster")
    took_s = {}
    try:
        for name, workers, database in (
            ("files", args.workers, False),
            ("database", args.workers, True),
            ("one", 1, False),
        ):
            while len(alive := [one for one in cluster.workers if one.poll() is None]) < workers:
                cluster.start_worker(module=args.module)
            for one in alive[workers:]:
                cluster.kill(one, signal.SIGTERM)
            cluster.wait_for_workers(workers)
            course = prototype.copy(name)
            if database:
                move_to_database(course.tree, server.create(name))
            began_s = time.monotonic()
            assert course.start(args.module, "--cluster", cluster.address).wait() == 0
            took_s[name] = time.monotonic() - began_s
            print(f"{name}: {args.submissions} submissions, {workers} workers, {took_s[name]:.1f} s", flush=True)
    finally:
        cluster.close()
        server.stop()
    print(f"PostgreSQL / files: {took_s['database'] / took_s['files']:.3f}")
    print(f"efficiency of {args.workers} workers: {took_s['one'] / args.workers / took_s['files']:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("faults", "class", "speed"))
    parser.add_argument("--kills", type=int, default=100, help="how many (%(default)s)")
    parser.add_argument("--submissions", type=int, default=40, help="to a lab of five questions (%(default)s)")
    parser.add_argument("--workers", type=int, default=4, help="side by side (%(default)s)")
    parser.add_argument("--pause", type=float, default=2.0, help="longest time between two kills, in s (%(default)s)")
    parser.add_argument("--judging", default="0.5", help="how long the quick judge waits, in s (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the points at which something is killed")
    parser.add_argument("--real", action="store_true", help="run the submissions")
    arguments = parser.parse_args()
    arguments.module = "mlsys.cli.main" if arguments.real else QUICK
    os.environ["MLSYS_QUICK_S"] = arguments.judging
    os.environ["PYTHONPATH"] = f"{ROOT}:{ROOT / 'tests'}"
    os.environ["COLUMNS"] = "200"
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="mlsys-fleet-", ignore_cleanup_errors=True) as made:
        Path(made).chmod(0o755)
        {"faults": faults, "class": a_class, "speed": speed}[arguments.what](arguments, Path(made))
