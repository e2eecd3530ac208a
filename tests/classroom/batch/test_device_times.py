"""The times of devices, with a clock that the test sets."""

import pytest

from mlsys.classroom.batch.device_times import DeviceTime, DeviceTimes


class Clock:
    """Seconds that the test sets."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


def test_a_device_idles_only_while_submissions_wait():
    clock = Clock()
    times = DeviceTimes(["a", "b"], clock)
    times.submissions_wait(True)
    times.begins("a")
    clock.now_s += 10  # a judges one, b has none
    times.begins("a")
    times.begins("b")
    clock.now_s += 5  # a judges two
    times.ends("a")
    clock.now_s += 5
    times.submissions_wait(False)
    times.ends("b")
    clock.now_s += 20  # nothing is left for b
    times.ends("a")
    clock.now_s += 1000
    assert times.found() == (DeviceTime("a", 40, 0), DeviceTime("b", 10, 10))
    assert [one.idle_share for one in times.found()] == [0, 0.5]


def test_a_device_without_work_has_no_share_of_idleness():
    assert DeviceTimes(["a"], Clock()).found()[0].idle_share == 0
    assert DeviceTime("a", judging_s=19, idle_s=1).idle_share == pytest.approx(0.05)
