"""How a process of a question ended."""

import os
import signal
from dataclasses import dataclass
from typing import Literal

from mlsys.judge.sandbox.protocol.limits import Limits

Kind = Literal["exited", "crashed", "timed out", "out of memory", "tampered", "killed", "starved", "lost"]
Limit = Literal["cpu", "memory", "machine"]
"""Limit for which the watchdog ended a process: its CPU time, its memory, or the memory of the whole machine."""


@dataclass(frozen=True)
class Report:
    """The fork server's report on the end of a process and all below it.

    Attributes:
        wait_status: of the process that ran student code; None if the whole tree was killed.
        over: the limit for which the watchdog killed it.
        cpu_s: CPU time of all its processes.
        waited_s: how long the processes that then ran in the sandbox were ready to run and had no CPU, added up.
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
"""Least share of the wall time spent waiting for a CPU that makes this the reason for the time being over.

A process cannot feign it: to keep itself from running for so long, it would use up its CPU time.
"""


@dataclass(frozen=True)
class Ending:
    """Everything known about a process that has ended.

    Attributes:
        kind: "exited" by itself with `exit_status`; "crashed" by `signal`; "timed out" of CPU or wall time; "out of
            memory" by the watchdog; "tampered" with the transport; "killed" by the judge, as when it did not leave on
            closing; "starved" when its wall time was over and it had spent half of that waiting for a CPU that others
            used; "lost" with its whole sandbox, before it began, or because the machine ran out of memory. What is
            starved or lost is no fault of the student: judge the question again, alone.
        exit_status: of the process that ran student code, if it exited.
        signal: that ended it, if one did.
        cpu_s: CPU time of all its processes, up to 10 ms of it the sandbox's own.
        wall_s: from the fork to the end.
        peak_rss_bytes: of its largest process, with what that shares with the fork server.
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
        """Combine the fork server's report with `reason`, why the judge killed the process, if it did."""
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


class ProcessEnded(Exception):
    """The process has ended and answers no more; `ending` says how."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(f"the process has ended: {ending.kind}")
        self.ending = ending
