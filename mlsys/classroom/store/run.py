"""A grading run: one call of `mlsys grade`, until everything that was open is graded, also after a kill.

Each run draws a secret. Together with the course's it seeds what hidden tests draw, so all submissions of a run meet
the same inputs, and nobody can prepare for them who saw an earlier run's feedback. The record of a submission keeps the
secret of the run that it was graded in, and a regrade of the same file draws the same again: what changes then comes
from the tests or the package, not from luck.
"""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mlsys.course.digest import digest


@dataclass(frozen=True)
class Run:
    """The latest run of a lab; it was interrupted if it is neither finished nor at work.

    Attributes:
        secret: drawn for this run.
        started_at: when it began, in UTC.
        sandboxed: whether student code runs in the sandbox.
        arguments: the words of the command line that chose submissions and roster, for `--resume`.
        finished: whether everything that was open is graded.
        package: digest of what in the package decided verdicts; empty in runs of before it was kept.
    """

    secret: str
    started_at: str
    sandboxed: bool = True
    arguments: Mapping[str, str] = field(default_factory=dict)
    finished: bool = False
    package: str = ""

    @classmethod
    def new(cls, *, finished: bool = False) -> "Run":
        """Return a run that begins now, with a secret of its own."""
        return cls(secrets.token_hex(16), datetime.now(UTC).isoformat(timespec="seconds"), finished=finished)

    def unfinished(self, lab: str) -> str:
        """Say that scores may be missing or old, and what to do; nothing if everything is graded."""
        if self.finished:
            return ""
        return (
            f"The grading of {lab} that began {self.started_at} is not finished, so scores may be missing or old: "
            f"continue it with `mlsys grade {lab} --resume`"
        )


@dataclass(frozen=True)
class Terms:
    """What a submission is judged under: the run whose secret it draws with, and whether it is sandboxed.

    `term` is the name of the term whose lab it is graded with.
    """

    run: str
    seed: int
    sandboxed: bool = True
    term: str = ""


def seed(course_secret: str, lab: str, run_secret: str) -> int:
    """Return what the hidden tests of a lab draw their inputs from in a run: 256 bits."""
    return int.from_bytes(hmac.digest(course_secret.encode(), digest(lab, run_secret).encode(), "sha256"), "big")
