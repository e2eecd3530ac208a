"""A large class graded on the GPUs of this machine: `python benchmarks/gpu_class.py tiling --submissions 100`.

Submissions are copies of the lab's sample class, right and wrong ones, crashes and endless loops among them. The exit
status is 1 if a mark differs from `class/expected.csv`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.gpu_classes import graded_on_gpus, sample_of  # noqa: E402
from helpers.sample_classes import expected, is_due  # noqa: E402


def main() -> int:
    """Grade the class, and print how long it took and which marks are wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lab")
    parser.add_argument("--submissions", type=int, default=100, help="size of the class (%(default)s)")
    parser.add_argument("--workers", type=int, default=13, help="processes that judge side by side (%(default)s)")
    arguments = parser.parse_args()
    lab, due = arguments.lab, expected(arguments.lab)
    samples = {student for student, _ in due}
    with tempfile.TemporaryDirectory() as folder:
        graded = graded_on_gpus(lab, Path(folder), submissions=arguments.submissions, workers=arguments.workers)
    records = graded.batch.records
    print(f"{lab}: {len(records)} submissions, {arguments.workers} workers")
    for what, seconds in (("judging", graded.judged_s), ("whole run", graded.run_s)):
        print(f"{what}: {seconds:.1f} s, {seconds / len(records):.2f} s a submission")
    for time in graded.batch.device_times:
        print(f"{time.device}: idle {time.idle_share:.1%} of the time with work")
    wrong = [
        f"{student}, {one.question}: {one.verdict}, {one.points:g} points where {row['points_gpu']} are due"
        for student, record in sorted(records.items())
        for one in record.questions
        if (row := due.get((sample_of(student, samples), one.question))) and not is_due(one.points, row["points_gpu"])
    ]
    print("\n".join(wrong) or "all marks are as due")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
