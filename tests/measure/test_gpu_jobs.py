import os

import pytest

from mlsys.errors import UserError
from mlsys.measure import gpu_jobs as gpu_users
from mlsys.measure.gpu_jobs import GpuProcess, describe_others, parse_processes, refuse_shared_gpu

GIB = 2**30


def test_nvidia_smis_list_is_read():
    text = "812, /usr/bin/python3, 4096\n900, name, with comma, [N/A]\nNo running processes found\n"
    assert parse_processes(text) == [
        GpuProcess(812, "/usr/bin/python3", "4096"),
        GpuProcess(900, "name, with comma", "[N/A]"),
    ]


def test_another_process_is_named_and_our_own_is_not():
    here, parent = os.getpid(), os.getppid()
    ours, other = GpuProcess(here, "python3", "600"), GpuProcess(parent, "train.py", "90000")
    assert describe_others([ours], here, taken_bytes=GIB // 2) == ""
    assert describe_others([ours, other], here, taken_bytes=80 * GIB) == f"train.py (process {parent}, 90000 MiB)"


def test_memory_that_nobody_here_explains_is_named():
    unknown_here = GpuProcess(2**22 + 1, "python3", "600")  # beyond the greatest process number of Linux
    assert "20.0 GiB" in describe_others([unknown_here], os.getpid(), taken_bytes=20 * GIB)
    assert describe_others([unknown_here], os.getpid(), taken_bytes=GIB // 2) == ""


def test_a_gpu_in_use_is_not_measured(monkeypatch):
    monkeypatch.setattr(gpu_users, "other_jobs", lambda: "train.py (process 812, 4096 MiB)")
    with pytest.raises(UserError, match="in use by train.py"):
        refuse_shared_gpu()
    monkeypatch.setattr(gpu_users, "other_jobs", lambda: "")
    refuse_shared_gpu()
