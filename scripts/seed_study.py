"""Grade sample classes for many seeds, and say which verdicts change and how near the tolerance they come.

    python scripts/seed_study.py --seeds 100 tiling fusion roofline
    python scripts/seed_study.py --seeds 10 --device gpu fusion
    python scripts/seed_study.py --seeds 5 --first 6 --races --no-endless --workers 8 tiling

A sample shows a mistake only if every seed finds it, by a margin. For each question that a sample answers in its own
way there is one line: its verdicts with their counts, and the least and the greatest error of a seed. The error of a
seed is the largest of all elements of all comparisons, in units of the tolerance; a comparison that fails does not end
the tests here. Where the verdict is "passed", the greatest error should stay below 1/2, what a last bit that rounds the
other way makes in a 16-bit format; where a comparison makes it "wrong answer", the least should stay above 3. Results
of a race are compared in the process of the reference; a race counts by its points, which `class/expected.csv` has too.
The exit status is 1 if a verdict changes, verdict or points differ from that file, or there is no margin. Ctrl-C ends
the study of a lab, and what was found so far is shown.
"""

import argparse
import multiprocessing
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.sample_answers import sample_answers  # noqa: E402
from helpers.sample_classes import endless, expected, handed_in, is_due  # noqa: E402

from mlsys.classroom.processes.workers import worker  # noqa: E402
from mlsys.course.lab import Question  # noqa: E402
from mlsys.grading.checks import assertions  # noqa: E402
from mlsys.grading.checks.tolerances import errors_and_tolerance, is_close  # noqa: E402
from mlsys.judge.grade_question import LIMITS, Submission, check_device, grade_question  # noqa: E402

RIGHT_BELOW, WRONG_ABOVE = 0.5, 3.0
"""Errors, in units of the tolerance, at which a verdict is decided for every seed."""
FEW_SEEDS = 2
"""Seeds for a verdict that takes the whole time limit."""


@dataclass
class Comparisons:
    """The largest error of all comparisons, in units of the tolerance."""

    forgiving: bool = False
    largest: float = 0.0
    count: int = 0

    def forgive(self) -> None:
        """Begin anew, and from now on let whatever is compared count as close."""
        self.forgiving, self.largest, self.count = True, 0.0, 0

    def is_close(self, actual: torch.Tensor, expected: torch.Tensor) -> bool:
        """Stand in for `tolerances.is_close`."""
        error, allowed = errors_and_tolerance(actual, expected)
        if error.numel():
            shares = torch.where(error == 0, 0.0, error / allowed).nan_to_num(nan=torch.inf, posinf=torch.inf)
            self.largest = max(self.largest, float(shares.max()))
        self.count += 1
        return self.forgiving or is_close(actual, expected)


@contextmanager
def watched() -> Iterator[Comparisons]:
    """Look at every comparison that the judge makes."""
    comparisons = Comparisons()
    kept, assertions.is_close = assertions.is_close, comparisons.is_close
    try:
        yield comparisons
    finally:
        assertions.is_close = kept


@dataclass(frozen=True)
class Found:
    """What an answer got with one seed; `error` is None where no comparison decides the verdict."""

    verdict: str
    fraction: float
    error: float | None = None


def judged(submission: Submission, question: Question, device: str, seed: int) -> Found:
    """Grade an answer once, and once more without stopping at a comparison that fails."""
    with watched() as comparisons:
        is_race = is_timed(question)
        limits = LIMITS if is_race else replace(LIMITS, cpu_s=LIMITS.cpu_s // 2)  # a race compiles all that it runs
        found = grade_question(submission, question, device, seed=seed, limits=limits)
        if is_race or found.name not in ("passed", "wrong answer") or not comparisons.count:
            return Found(found.name, found.fraction)
        if found.name == "wrong answer":
            if comparisons.largest <= 1:
                return Found(found.name, found.fraction)  # the inspection of the kernel decides it, say
            comparisons.forgive()
            grade_question(submission, question, device, seed=seed, limits=limits)
        return Found(found.name, found.fraction, comparisons.largest)


def is_timed(question: Question) -> bool:
    """Whether points for a question depend on a time."""
    return question.device == "gpu"


@dataclass
class Answer:
    """One way to answer a question: who answers so, and what it got.

    `due` are the verdicts that it may get; of a race, `due_points` are its points, as `is_due` reads them.
    """

    submission: Submission
    question: Question
    students: list[str]
    due: tuple[str, ...]
    due_points: str
    verdicts: Counter[str] = field(default_factory=Counter)
    errors: list[float] = field(default_factory=list)
    points: list[float] = field(default_factory=list)

    @property
    def is_race(self) -> bool:
        """Whether its points depend on a time."""
        return is_timed(self.question)

    def add(self, found: Found) -> None:
        """Count what it got with one more seed."""
        self.verdicts[found.verdict] += 1
        if self.is_race:
            self.points.append(found.fraction * self.question.points)
        if found.error is not None:
            self.errors.append(found.error)

    @property
    def complaint(self) -> str:
        """What is wrong with it; "" if nothing is."""
        if self.is_race:
            fit = all(is_due(got, self.due_points) for got in self.points)
            return "" if fit else f"DUE ARE {self.due_points} POINTS"
        if len(self.verdicts) > 1:
            return "CHANGES"
        if self.due and not self.verdicts.keys() & set(self.due):
            return f"DUE IS {' or '.join(self.due)!r}"
        if self.errors and "passed" in self.verdicts and max(self.errors) > RIGHT_BELOW:
            return "NO MARGIN"
        if self.errors and "wrong answer" in self.verdicts and min(self.errors) < WRONG_ABOVE:
            return "NO MARGIN"
        return ""

    def __str__(self) -> str:
        """Its line in the report."""
        verdicts = ", ".join(f"{name} {count}" for name, count in sorted(self.verdicts.items()))
        least_and_greatest = self.points if self.is_race else self.errors
        numbers = f"{min(least_and_greatest):10.3g} {max(least_and_greatest):10.3g}" if least_and_greatest else " " * 21
        return (
            f"{self.question.name:<10} {verdicts:<24} {numbers}  {', '.join(self.students)}  {self.complaint}".rstrip()
        )


def answers(name: str, device: str, folder: Path) -> list[Answer]:
    """The different answers of a lab's sample class, of the questions that `device` can run."""
    tree, due = handed_in(name, folder), expected(name)
    found = []
    for one in sample_answers(name, tree, folder / "submissions"):
        row = due[one.students[0], one.question.name]
        verdicts: tuple[str, ...] = (row["verdict"],)
        if device == "gpu" and row["verdict"] == "out of bounds":
            verdicts = ("out of bounds", "crashed")  # a wild address ends the process before anybody can look
        if device == "gpu" or one.question.device != "gpu":
            found.append(Answer(one.submission, one.question, one.students, verdicts, row["points_gpu"]))
    return found


def study(studied: list[Answer], device: str, seeds: Sequence[int], processes: Sequence[ProcessPoolExecutor]) -> None:
    """Judge the answers for one seed after the other, side by side in these processes."""
    waiting = deque((seed, answer) for seed in seeds for answer in studied)
    idle = list(processes)
    running: dict[Future[Found], tuple[ProcessPoolExecutor, Answer]] = {}
    while waiting or running:
        while waiting and idle:
            seed, answer = waiting.popleft()
            if answer.verdicts["timed out"] < FEW_SEEDS:
                process = idle.pop()
                running[process.submit(judged, answer.submission, answer.question, device, seed)] = process, answer
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            process, answer = running.pop(future)
            idle.append(process)
            answer.add(future.result())


def main() -> int:
    """Study the labs that are named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lab", nargs="+")
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds (%(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (%(default)s)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--question", action="append", help="only this one; may be repeated")
    parser.add_argument("--races", action="store_true", help="only questions whose time counts, on a GPU")
    parser.add_argument("--workers", type=int, default=1, help="processes that judge side by side (%(default)s)")
    parser.add_argument("--no-endless", action="store_true", help="leave out answers that are due to take all the time")
    arguments = parser.parse_args()
    device = check_device("gpu" if arguments.races else arguments.device)
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    failed = False
    for name in arguments.lab:
        processes = [worker(index, arguments.workers) for index in range(arguments.workers)]
        with tempfile.TemporaryDirectory() as folder:
            studied = answers(name, device, Path(folder))
            studied = [one for one in studied if one.question.name in (arguments.question or [one.question.name])]
            studied = [one for one in studied if one.is_race or not arguments.races]
            studied = [one for one in studied if not (arguments.no_endless and set(one.students) <= endless(name))]
            with suppress(KeyboardInterrupt):
                study(studied, device, seeds, processes)
        for child in multiprocessing.active_children():
            child.kill()  # after Ctrl-C they judge on
        what = "points" if arguments.races else "error in tolerances (of a race, points)"
        print(f"{name}, seeds {seeds[0]} to {seeds[-1]} on a {device}: least and greatest {what} of a seed")
        for answer in studied:
            print(answer, flush=True)
            failed |= bool(answer.complaint)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
