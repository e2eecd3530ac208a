"""How long a receipt takes while a class hands in: real clients over HTTP against `mlsys serve`.

    python benchmarks/submit_queue.py [--students 500] [--at-once 50] [--limit 1.0]

Hundreds hand in the released notebook of the tiling lab, so many at once, and nothing is judged meanwhile: all of them
wait in the queue. Then as many hand in again, with all of the first in the queue. The benchmark fails if the median
receipt of either takes longer than the limit, in seconds, or if a receipt cannot be verified. It writes the times to
`_build/bench/submit-queue.json`.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from mlsys.course.release import release
from mlsys.course.tree import CourseTree
from mlsys.receipt import parse_receipt, verify
from mlsys.submit.queue import Queue
from mlsys.submit.tokens import STUDENT, new_token

ROOT = Path(__file__).parents[1]
LAB = "tiling"


def hand_in(address: str, token: str, data: bytes) -> tuple[float, bytes, str]:
    """Return how long the receipt took, the receipt, and the key."""
    request = urllib.request.Request(f"{address}/api/labs/{LAB}", data, {"Authorization": f"Bearer {token}"})
    began_s = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as reply:
        answer = json.loads(reply.read())
    return time.perf_counter() - began_s, json.dumps(answer["receipt"]).encode(), answer["key"]


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--limit", type=float, default=1.0)
    args = parser.parse_args()
    students = [f"student{number}" for number in range(args.students)]
    with tempfile.TemporaryDirectory() as folder:
        tree, roster = CourseTree(Path(folder) / "course"), Path(folder) / "roster.csv"
        release(ROOT, tree, [LAB])
        roster.write_text("id,name\n" + "".join(f"{one},{one}\n" for one in students))
        queue = Queue(tree.queue)
        expires = datetime.now(UTC) + timedelta(days=1)
        tokens = [new_token(queue, one, STUDENT, expires) for one in students]
        notebook = json.loads(tree.release(LAB).read_bytes())
        files = []
        for number in range(2 * args.students):  # no two students hand in the same bytes
            notebook["metadata"]["copy"] = number
            files.append(json.dumps(notebook).encode())
        words = ["serve", "--roster", str(roster), "--course", str(tree.root), "--port", "0", "--without-verdicts"]
        command = [sys.executable, "-m", "mlsys.cli.main", *words]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            address = re.findall(r"http://[\d.:]+", process.stdout.readline())[0]
            rounds = []
            with ThreadPoolExecutor(args.at_once) as clients:
                for turn in range(2):
                    mine = files[turn * args.students : (turn + 1) * args.students]
                    began_s = time.perf_counter()
                    answers = list(clients.map(hand_in, [address] * args.students, tokens, mine))
                    took_s = time.perf_counter() - began_s
                    for (_, receipt, key), data in zip(answers, mine, strict=True):
                        verify(parse_receipt(receipt), key, data)
                    times_s = sorted(one[0] for one in answers)
                    rounds.append(
                        {
                            "hand_ins": args.students,
                            "in_queue_before": turn * args.students,
                            "at_once": args.at_once,
                            "megabytes_each": round(len(mine[0]) / 1e6, 3),
                            "median_s": round(statistics.median(times_s), 4),
                            "p99_s": round(times_s[int(0.99 * len(times_s))], 4),
                            "longest_s": round(times_s[-1], 4),
                            "per_second": round(args.students / took_s, 1),
                        }
                    )
                    print(json.dumps(rounds[-1]))
            process.terminate()
        kept = queue.hand_ins()
        assert len(kept) == 2 * args.students, f"{len(kept)} of {2 * args.students} hand-ins are kept"
        queue.close()
    out = ROOT / "_build" / "bench" / "submit-queue.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(rounds, indent=1) + "\n")
    slow = [one["median_s"] for one in rounds if one["median_s"] > args.limit]
    print(f"median receipt within {args.limit:g} s: {'no' if slow else 'yes'}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
