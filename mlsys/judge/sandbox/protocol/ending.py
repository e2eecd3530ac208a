"""How the run of one question ended."""

import os
import signal
from dataclasses import dataclass
from typing import Literal

from mlsys.judge.sandbox.protocol.limits import Limits

Kind = Literal["exited", "crashed", "timed out", "out of memory", "tampered", "killed", "starved", "lost"]
Limit = Literal["cpu", "memory", "machine"]
"""What the watchdog ended a question for: its CPU time, its memory, or the memory of the whole machine."""


@dataclass(frozen=True)
class Report:
    """What the warm parent tells at the end of a question.

    Attributes:
        wait_status: of the process that ran student code; None if the whole question was killed.
        over: the limit for which the watchdog killed it.
        cpu_s: CPU time of all its processes.
        waited_s: how long the questions that then ran in the slot were ready to run and had no CPU, one after another.
        wall_s: from the fork to the end.
        peak_rss_bytes: of its largest process.
    """

    wait_status: int | None
    over: Limit | None
    cpu_s: float
    waited_s: float
    wall_s: float
    peak_rss_bytes: int


LOST = Report(None, over=None, cpu_s=0.0, waited_s=0.0, wall_s=0.0, peak_rss_bytes=0)

STARVED_SHARE = 0.5
"""Share of the wall time from which on waiting for a CPU is the reason that the time was over.

A question cannot feign it: to keep itself from running for so long, it would use up its CPU time.
"""


@dataclass(frozen=True)
class Ending:
    """What is known about a question that has ended.

    Attributes:
        kind: "exited" by itself with `exit_status`; "crashed" by `signal`; "timed out" of CPU or wall time; "out of
            memory" by the watchdog; "tampered" with the transport; "killed" by the judge, as when it did not leave on
            closing; "starved" when its wall time was over and it had spent half of that waiting for a CPU that others
            used; "lost" with its whole slot, before it began, or because the machine ran out of memory. What is
            starved or lost is no fault of the question: judge it again, alone.
        exit_status: of the process that ran student code, if it exited.
        signal: that ended it, if one did.
        cpu_s: CPU time of all its processes, up to 10 ms of it the sandbox's own.
        wall_s: from the fork to the end.
        peak_rss_bytes: of its largest process, with what that shares with the warm parent.
        output: the first part of stdout and stderr.
    """

    kind: Kind
    exit_status: int | None
    signal: int | None
    cpu_s: float
    wall_s: float
    peak_rss_bytes: int
    output: str

    @classmethod
    def of(cls, report: Report, reason: Kind | None, output: str, limits: Limits) -> "Ending":
        """From the warm parent's report; `reason` is why the judge killed it, if it did."""
        code = None if report.wait_status is None else os.waitstatus_to_exitcode(report.wait_status)
        exit_status = code if code is not None and code >= 0 else None
        killer = -code if code is not None and code < 0 else None
        kind: Kind = reason or _kind(report, exit_status, killer, limits)
        if reason == "timed out" and report.over is None and report.waited_s >= STARVED_SHARE * limits.wall_s:
            kind = "starved"
        return cls(kind, exit_status, killer, report.cpu_s, report.wall_s, report.peak_rss_bytes, output)


def _kind(report: Report, exit_status: int | None, killer: int | None, limits: Limits) -> Kind:
    if report.over == "machine":
        return "lost"
    if report.over == "memory":
        return "out of memory"
    if report.over == "cpu":
        return "timed out"
    if killer == signal.SIGXCPU or (killer == signal.SIGKILL and report.cpu_s >= limits.cpu_s):
        return "timed out"
    if killer is not None:
        return "crashed"
    return "lost" if exit_status is None else "exited"


class QuestionOver(Exception):
    """The question has ended and answers no more; `ending` says how."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(f"the question has ended: {ending.kind}")
        self.ending = ending
