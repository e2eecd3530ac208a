"""The work log of a notebook: each run of a test cell, with its verdict and its time. It belongs to the student.

A kernel cannot write its notebook's metadata: Jupyter and Colab keep the file to themselves. What travels with the
notebook are the outputs of its cells, and these have metadata too. So each run of a test cell adds a line to the output
of that cell, and the metadata of this line holds the runs of that question so far. A picture at the end of the notebook
holds all of them. After a restart of the kernel, the log goes on with what it finds in the saved notebook.

Nothing else reads the log. Grading takes no outputs over from what is handed in, see
`mlsys.classroom.intake.reader`. Whoever clears the outputs has deleted it.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from html import escape
from typing import Any

import msgspec

from mlsys.grading.session.notebook import cells_of, find_shell, read_notebook
from mlsys.grading.verdicts import Verdict

KEY = "work_log"
"""Name of the log in the metadata of an output, under "mlsys"."""
GOOD = ("passed", "answered", "needs gpu", "needs review")
"""Verdicts that ask for nothing more of the student."""

_TESTS = re.compile(r"\bscorecard\.(?:passed|answered)\(\s*[\"']([^\"']+)")
_WIDTH, _LEFT, _ROW, _TOP = 560, 96, 18, 34  # of the picture, in pixels


@dataclass(frozen=True)
class Run:
    """One run of the test cell of a question: its verdict, when it began (ISO 8601, local), and its seconds."""

    question: str
    verdict: str
    at: str
    seconds: float


class WorkLog:
    """The runs of a notebook's test cells, in their order.

    Args:
        questions: names of the lab's questions, in their order.
        runs: those so far.
    """

    def __init__(self, questions: Iterable[str], runs: Iterable[Run] = ()) -> None:
        self.questions = tuple(questions)
        self.runs = sorted({run for run in runs if run.question in self.questions}, key=lambda run: run.at)

    def add(self, run: Run) -> None:
        """Add a run."""
        self.runs.append(run)

    def of(self, question: str) -> list[Run]:
        """Return the runs of one question."""
        return [run for run in self.runs if run.question == question]

    def __str__(self) -> str:
        lines = [self._head()]
        for question in self.questions:
            runs = self.of(question)
            if runs:
                spent_s = sum(run.seconds for run in runs)
                lines.append(
                    f"{question}: {_counted(len(runs), 'run')} in {spent_s:.1f} s, the last {runs[-1].verdict}"
                )
        return "\n".join(lines)

    __repr__ = __str__

    def _head(self) -> str:
        days = sorted({run.at[:10] for run in self.runs})
        when = f" on {_counted(len(days), 'day')}, {days[0]} to {days[-1]}" if len(days) > 1 else ""
        when = f" on {days[0]}" if len(days) == 1 else when
        return f"Work log: {_counted(len(self.runs), 'run')} of tests{when}"

    def svg(self) -> str:
        """Return the picture: a row per question, a mark per run, from left to right in their order."""
        asked = [question for question in self.questions if self.of(question)]
        step = min(14.0, (_WIDTH - _LEFT - 20) / max(1, len(self.runs)))
        rows = {question: _TOP + _ROW * place + _ROW / 2 for place, question in enumerate(asked)}
        height = _TOP + _ROW * len(asked) + 30
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" role="img" '
            f'viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" font-size="12" fill="#222">',
            f"<title>{escape(self._head())}</title><desc>{escape(str(self))}</desc>",
            f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#fff" stroke="#ccc"/>',
            f'<text x="12" y="20">{escape(self._head())}</text>',
        ]
        for question, y in rows.items():
            parts.append(f'<text x="12" y="{y + 4:.0f}">{escape(question)}</text>')
            parts.append(f'<path d="M{_LEFT} {y:.0f}H{_WIDTH - 12}" stroke="#e4e4e4"/>')
        for place, run in enumerate(self.runs):
            said = f"{run.question}: {run.verdict}, {run.at[:16].replace('T', ' ')}, {run.seconds:.1f} s"
            parts.append(_mark(_LEFT + step * (place + 0.5), rows[run.question], run.verdict in GOOD, said))
        y = height - 13
        parts += [_mark(18, y - 4, True, ""), f'<text x="28" y="{y}">tests pass, or the answer waits</text>']
        parts += [_mark(232, y - 4, False, ""), f'<text x="242" y="{y}">something is still wrong</text>', "</svg>"]
        return "".join(parts)

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        return {"image/svg+xml": self.svg(), "text/plain": str(self)}, _metadata(self.runs)


def begin_log(questions: Iterable[str], state: Callable[[str], str]) -> WorkLog:
    """Return the log of this notebook, which notes each run of a test cell from now on.

    It goes on with the runs that this kernel has seen and that the saved notebook holds. Outside a notebook, and in a
    judge, nothing is noted.

    Args:
        questions: names of the lab's questions, in their order.
        state: says for a question whose test cell ran to its end how it came out.
    """
    global _watch
    shell = find_shell()
    if shell is None:
        return WorkLog(questions)
    earlier = list(_watch.log.runs) if _watch else []
    if _watch:
        _watch.stop()
    log = WorkLog(questions, [*earlier, *saved_runs(read_notebook(shell.user_ns))])
    _watch = _Watch(shell, log, state)
    return log


class _Watch:
    """The watching of a notebook's cells."""

    def __init__(self, shell: Any, log: WorkLog, state: Callable[[str], str]) -> None:
        self.shell, self.log, self.state = shell, log, state
        self.began: tuple[datetime, float] | None = None
        shell.events.register("pre_run_cell", self.before)
        shell.events.register("post_run_cell", self.after)

    def stop(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.before)
        self.shell.events.unregister("post_run_cell", self.after)

    def before(self, info: Any) -> None:
        self.began = datetime.now().astimezone(), time.perf_counter()

    def after(self, result: Any) -> None:
        asked = _TESTS.search(str(getattr(result.info, "raw_cell", "")))
        if self.began is None or asked is None or asked[1] not in self.log.questions:
            return
        (at, started_s), question = self.began, asked[1]
        error = result.error_before_exec or result.error_in_exec
        verdict = self.state(question) if error is None else _verdict_of(error)
        self.log.add(
            Run(question, verdict, at.isoformat(timespec="seconds"), round(time.perf_counter() - started_s, 1))
        )
        runs = self.log.of(question)
        said = f"Work log: run {len(runs)} of question {question}, {verdict}, {runs[-1].seconds:.1f} s"
        self.shell.display_pub.publish(data={"text/plain": said}, metadata=_metadata(runs))


_watch: _Watch | None = None


def saved_runs(notebook: object) -> Iterator[Run]:
    """Yield the runs that a saved notebook holds."""
    for cell in cells_of(notebook):
        for output in _listed(cell.get("outputs")):
            yield from runs_in(output)


def runs_in(output: object) -> Iterator[Run]:
    """Yield the runs in the metadata of a saved output; what has another form is left out."""
    found = output
    for key in ("metadata", "mlsys", KEY):
        found = found.get(key) if isinstance(found, Mapping) else None
    for entry in _listed(found):
        try:
            yield msgspec.convert(entry, Run)
        except msgspec.ValidationError:
            continue


def _listed(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _verdict_of(error: BaseException) -> str:
    return "interrupted" if isinstance(error, KeyboardInterrupt) else Verdict.of(error).name


def _metadata(runs: Collection[Run]) -> dict[str, Any]:
    return {"mlsys": {KEY: [asdict(run) for run in runs]}}


def _mark(x: float, y: float, good: bool, said: str) -> str:
    """Return a dot or a cross, which differ in form and color."""
    title = f"<title>{escape(said)}</title>" if said else ""
    if good:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1b7f3b">{title}</circle>'
    corners = f"M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
    return f'<path d="{corners}" stroke="#b34700" stroke-width="2" fill="none">{title}</path>'


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
