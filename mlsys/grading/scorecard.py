"""The table of points in a student's notebook: what passes, what a GPU decides, what a person reads.

With it come the `work_log`, which notes the runs of test cells for the student and for nobody else, and the saving of
answers where a machine can be taken away, see `mlsys.grading.session.answers`.
"""

from collections.abc import Iterable, Mapping
from html import escape

from mlsys.errors import UnknownName
from mlsys.grading.session.answers import begin_saving
from mlsys.grading.session.failed_cells import watch_cells
from mlsys.grading.session.work_log import begin_log

OPEN, PASSING, ANSWERED = "not yet", "visible tests pass", "answered, checked when graded"
IN_PART = "passed in part"
GPU, READ = "timed on a GPU", "a person reads it"


class Scorecard:
    """Points by question, and how far each question is in this notebook.

    An estimate: the hidden tests, and a GPU where one is asked for, decide.
    """

    def __init__(self, points: Mapping[str, int], *, gpu: Iterable[str] = (), read: Iterable[str] = ()) -> None:
        self.points = dict(points)
        self.state = dict.fromkeys(points, OPEN) | dict.fromkeys(gpu, GPU) | dict.fromkeys(read, READ)
        self.fraction = dict.fromkeys(points, 0.0)
        self.work_log = begin_log(points, self._outcome)
        self._failed_cells = watch_cells()
        begin_saving(self.points)

    def passed(self, question: str, fraction: float = 1.0) -> None:
        """Note that the visible tests of a question pass, or the part of its points that a measurement gives.

        Raises:
            GradingError: the cell of the answer ended with an exception, so that a judge will not take it.
        """
        self._known(question)
        self._failed_cells.check()
        self.state[question], self.fraction[question] = PASSING if fraction == 1 else IN_PART, fraction
        print(f"Question {question}: {self.state[question]} ({_short(fraction * self.points[question])} points).")

    def answered(self, question: str) -> None:
        """Note that a question is answered whose answer only the hidden tests know.

        Raises:
            GradingError: as in `passed`.
        """
        self._known(question)
        self._failed_cells.check()
        self.state[question] = ANSWERED
        print(f"Question {question}: answered. You will see whether it is right when the lab is graded.")

    def rows(self) -> list[tuple[str, str, str]]:
        """Return (question, points so far, state) for each question and the sum."""
        rows = [
            (name, f"{_short(self.fraction[name] * most)} of {most}", self.state[name])
            for name, most in self.points.items()
        ]
        reached = sum(self.fraction[name] * most for name, most in self.points.items())
        waiting = sum(most for name, most in self.points.items() if self.state[name] in (GPU, READ, ANSWERED))
        return [
            *rows,
            ("sum", f"{_short(reached)} of {sum(self.points.values())}", f"{waiting} wait" if waiting else ""),
        ]

    def _outcome(self, question: str) -> str:
        """Return how the visible tests of a question came out that ran to their end, for the work log."""
        if self.state[question] == ANSWERED:
            return "answered"
        return "passed" if self.fraction[question] == 1 else IN_PART

    def _known(self, question: str) -> None:
        if question not in self.points:
            raise UnknownName.of("question", question, self.points)

    def __str__(self) -> str:
        return "\n".join(f"{name:<10} {points:>12}  {state}" for name, points, state in self.rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows())
        head = "<tr><th>question</th><th>points</th><th>state</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _short(points: float) -> str:
    return f"{round(points, 1):g}"
