"""Grading large classes: `make soak`, into `_build/bench/soak.json`.

Two questions. Does a submission cost the same in a class of 500 as in one of 20? And do 500 submissions, every tenth of
them malicious, end with the marks that they deserve? Both grade the small lab `adding` of the tests: 500 submissions to
a real lab would take an hour, and what could grow with the class (gradebook, records, files, workers) is the same.
"""

import argparse
import json
import os
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from mlsys.classroom.grade_class import Options, grade_class
from mlsys.course.lab import Lab
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.release import release
from mlsys.course.sample_class import build
from mlsys.course.tree import CourseTree

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.adding_course import make_course_repository  # noqa: E402 - the tests' own lab

OUT = ROOT / "_build" / "bench" / "soak.json"
GROWTH = 1.25
"""A submission of the largest class may cost so many times as much as one of the smallest."""
HONEST = {"a": 1, "b": 3, "c": 2}
MALICE = {
    "endless": "while True:\n    pass",
    "bomb": "held = []\nwhile True:\n    held.append(bytearray(1 << 28))",
    "forks": "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass",
    "wild": "ctypes.memset(8, 0, 1 << 20)",
    "killer": "os.kill(-1, 9)\nos.kill(os.getpid(), 9)",
    "loud": "print('x' * 10**8)\nreturn x",
    "liar": "raise grading.NeedsReview('full points')",
    "hoarder": "with open('big', 'wb') as file:\n    while True:\n        file.write(bytes(1 << 20))",
    "forger": "channel = next(one for one in gc.get_objects() if type(one).__name__ == 'Channel')\n"
    "channel.reply({'type': 'value', 'value': None})\nchannel.reply({'type': 'value', 'value': None})\nos._exit(0)",
    "leaver": "os._exit(0)",
}
"""What `add` of question b does; it must get nothing, and c, which needs b, nothing either."""


def submission(number: int, malicious: bool) -> str:
    """The operations that make one; no two have the same text."""
    text = f"# %% solve=*\n# %% add after=setup\nnumber = {number}\n"
    if malicious:
        body = textwrap.indent(list(MALICE.values())[number // 10 % len(MALICE)], "    ")
        text += f"# %% replace=b-kernel\nimport ctypes, gc, os\n\n\ndef add(x, y):\n{body}\n"
    return text


def grade(folder: Path, count: int, workers: int, malicious: Callable[[int], bool]) -> tuple[float, list[str]]:
    """Seconds for a class of so many, and what is wrong with its marks."""
    root = make_course_repository(folder / "repository")
    tree = CourseTree(root / "_build" / "course")
    release(root, tree)
    config = tree.root / "nbgrader_config.py"
    config.write_text(config.read_text() + 'c.RunQuestions.cpu_limit_s = 8\nc.RunQuestions.device = "cpu"\n')
    lab, released = Lab.load(root / "labs" / "adding" / "lab.py"), read_notebook(tree.release("adding"))
    expected: dict[str, float] = {}
    for number in range(count):
        student = f"student-{number:03d}"
        text = submission(number, malicious(number))
        write_notebook(build(text, lab, released, student), tree.submitted("adding", student))
        expected[student] = 1.0 if malicious(number) else float(sum(HONEST.values()))
    started = time.perf_counter()
    batch = grade_class(root, tree, "adding", Options(workers=workers), Console(quiet=True))
    took_s = time.perf_counter() - started
    with open_gradebook(tree) as gradebook:
        scores = {one.student.id: one.score for one in gradebook.assignment_submissions("adding")}
    wrong = [f"{name}: {scores.get(name)}, not {due}" for name, due in expected.items() if scores.get(name) != due]
    return took_s, wrong + [f"{name} is missing" for name in expected if name not in batch.records]


def main() -> int:
    """Grade the classes, print and write down what they cost; exit status 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 60, 180, 500])
    parser.add_argument("--hostile", type=int, default=500, help="size of the class with every tenth malicious")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    rows, wrong = [], []
    runs = [(size, "honest", lambda number: False) for size in args.sizes]
    runs += [(args.hostile, "every tenth malicious", lambda number: number % 10 == 9)] if args.hostile else []
    for size, kind, malicious in runs:
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            took_s, faults = grade(Path(folder), size, args.workers, malicious)
        wrong += faults
        row = {"submissions": size, "kind": kind, "s": took_s, "s_per_submission": took_s / size}
        rows.append(row | {"wrong_marks": len(faults), "load": os.getloadavg()[0]})
        print(
            f"{size:4d} {kind:<22} {took_s:7.1f} s  {took_s / size:6.2f} s each  {len(faults)} wrong marks", flush=True
        )
    growth = rows[len(args.sizes) - 1]["s_per_submission"] / rows[0]["s_per_submission"]
    print(f"cost of one in {args.sizes[-1]} over cost of one in {args.sizes[0]}: {growth:.2f} (limit {GROWTH})")
    print("\n".join(wrong[:20]))
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({"rows": rows, "growth": growth, "limit": GROWTH, "wrong": wrong}, indent=1) + "\n")
    return int(bool(wrong) or growth > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
