"""Speed of the judge beside plain nbgrader: `make bench-judge`, into `_build/bench/judge.json`.

So many right submissions to the tiling lab, no two with the same text, are graded by `nbgrader autograde tiling`, with
nbgrader's own steps and hidden tests, and by `mlsys grade tiling`, sandbox on, one after the other in several rounds.
Both write the gradebook. Times are medians over the rounds. Run it on a machine that does nothing else.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from right_submissions import LAB, ROOT, make_trees, nbgrader
from sandbox_memory import peak_sandbox_bytes
from student_time import in_a_notebook, in_the_judge, median_ms, overhead_s

from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree

OUT = ROOT / "_build" / "bench" / "judge.json"
LIMITS = {"ratio": 8, "ratio_without_student_time": 10, "overhead_ms": 45, "peak_slot_gb": 1.5}
"""At least, for the ratios; at most, for the rest."""


def grade_command(tree: CourseTree, workers: int) -> list[str]:
    """`mlsys grade` on what was handed in."""
    mlsys = str(Path(sys.executable).with_name("mlsys"))
    return [mlsys, "grade", LAB, "--course", str(tree.root.resolve()), "--workers", str(workers)]


def time_grade(tree: CourseTree, folder: Path, workers: int) -> float:
    """Seconds of `mlsys grade` in a fresh copy of the tree."""
    copy = CourseTree(shutil.copytree(tree.root, folder))
    started = time.perf_counter()
    subprocess.run(grade_command(copy, workers), cwd=ROOT, check=True, capture_output=True)
    took_s = time.perf_counter() - started
    check_scores(copy)
    return took_s


def time_plain(tree: CourseTree, folder: Path) -> float:
    """Seconds of plain `nbgrader autograde` in a fresh copy of the tree."""
    copy = CourseTree(shutil.copytree(tree.root, folder))
    started = time.perf_counter()
    nbgrader(copy, "autograde", LAB)
    took_s = time.perf_counter() - started
    check_scores(copy)
    return took_s


def check_scores(tree: CourseTree) -> None:
    """All submissions are right: everything that needs neither a GPU nor a reader has full points."""
    with open_gradebook(tree) as gradebook:
        scores = {submission.student.id: submission.score for submission in gradebook.assignment_submissions(LAB)}
    expected = dict.fromkeys(tree.students(LAB), 80.0)
    if scores != expected:
        raise SystemExit(f"{tree.root}: the scores should all be 80, and are {scores}")


def measure(folder: Path, count: int, rounds: int, workers: int) -> dict[str, object]:
    """All figures."""
    ours, plain = make_trees(folder, count)
    students = ours.students(LAB)
    some = students[: max(2, count // 5)]
    rows = []
    for number in range(rounds):
        row = {"plain_s": time_plain(plain, folder / f"plain-{number}")}
        row["grade_s"] = time_grade(ours, folder / f"ours-{number}", workers)
        row["plain_student_s"] = in_a_notebook(plain, LAB, some) * count / len(some)
        row["grade_student_s"] = in_the_judge(ours, LAB, some, workers) * count / len(some)
        row["load"] = os.getloadavg()[0]
        rows.append(row)
        print(f"round {number + 1}: " + ", ".join(f"{name} {value:.1f}" for name, value in row.items()), flush=True)

    def middle(name: str) -> float:
        return statistics.median(row[name] for row in rows)

    # Workers run side by side, so what is inside student functions takes its part of the wall time.
    plain_own_s = middle("plain_s") - middle("plain_student_s")
    grade_own_s = middle("grade_s") - middle("grade_student_s") / workers
    overhead = overhead_s(ours, LAB, some)
    peak_bytes = peak_sandbox_bytes(grade_command(CourseTree(shutil.copytree(ours.root, folder / "memory")), workers))
    return {
        "submissions": count,
        "workers": workers,
        "cores": multiprocessing.cpu_count(),
        "rounds": rows,
        "plain_per_minute": 60 * count / middle("plain_s"),
        "grade_per_minute": 60 * count / middle("grade_s"),
        "ratio": middle("plain_s") / middle("grade_s"),
        "ratio_without_student_time": plain_own_s / grade_own_s,
        "overhead_ms": median_ms(overhead),
        "overhead_ms_by_question": {name: median_ms({name: values}) for name, values in overhead.items()},
        "peak_slot_gb": peak_bytes / 1e9,
        "limits": LIMITS,
    }


def main() -> None:
    """Measure, print, write down."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--submissions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-judge-") as folder:
        found = measure(Path(folder), args.submissions, args.rounds, args.workers)
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1) + "\n")
    for name, value in found.items():
        limit = f"  (limit {LIMITS[name]:g})" if name in LIMITS else ""
        if isinstance(value, (int, float)):
            print(f"{name:<28} {value:10.2f}{limit}")
    print(OUT)


if __name__ == "__main__":
    main()
