"""How busy each GPU of a run was: for how long submissions were judged there, and how long it idled while some waited.

A GPU counts as judging while one of its workers has a submission, whatever the submission's code does meanwhile.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class DeviceTime:
    """How busy one device was.

    Attributes:
        device: its name.
        judging_s: seconds in which at least one submission was judged there.
        idle_s: seconds in which none was, although some waited.

    >>> print(DeviceTime("NVIDIA T4 (GPU-6f1d)", judging_s=297, idle_s=3))
    NVIDIA T4 (GPU-6f1d): judged for 297 s; idle for 3 s (1%) while submissions waited
    """

    device: str
    judging_s: float = 0.0
    idle_s: float = 0.0

    @property
    def idle_share(self) -> float:
        """Part of the time with work, judged or waiting, in which the device idled, from 0 to 1."""
        with_work_s = self.judging_s + self.idle_s
        return self.idle_s / with_work_s if with_work_s else 0.0

    def __str__(self) -> str:
        idle = f"idle for {self.idle_s:.0f} s ({self.idle_share:.0%}) while submissions waited"
        return f"{self.device}: judged for {self.judging_s:.0f} s; {idle}"


class DeviceTimes:
    """Adds up the times of devices, from calls at each change; calls may come from any thread.

    Args:
        devices: their names.
        clock: returns the time in seconds.
    """

    def __init__(self, devices: Iterable[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._judging: dict[str, int] = dict.fromkeys(devices, 0)
        self._judging_s = dict.fromkeys(self._judging, 0.0)
        self._idle_s = dict.fromkeys(self._judging, 0.0)
        self._some_wait = False
        self._since_s = clock()
        self._lock = threading.Lock()

    def begins(self, device: str) -> None:
        """Note that the judging of a submission begins on a device."""
        with self._lock:
            self._add_up()
            self._judging[device] += 1

    def ends(self, device: str) -> None:
        """Note that the judging of a submission has ended on a device."""
        with self._lock:
            self._add_up()
            self._judging[device] -= 1

    def submissions_wait(self, some: bool) -> None:
        """Note whether submissions wait from now on."""
        with self._lock:
            self._add_up()
            self._some_wait = some

    def found(self) -> tuple[DeviceTime, ...]:
        """Return the times until now, by device."""
        with self._lock:
            self._add_up()
            return tuple(DeviceTime(one, self._judging_s[one], self._idle_s[one]) for one in self._judging)

    def _add_up(self) -> None:
        now_s = self._clock()
        for device, count in self._judging.items():
            if count:
                self._judging_s[device] += now_s - self._since_s
            elif self._some_wait:
                self._idle_s[device] += now_s - self._since_s
        self._since_s = now_s
