import os
import sys
from types import SimpleNamespace

import pynvml
import pytest
import torch

from mlsys.errors import UserError
from mlsys.measure import gpu_jobs as gpu_users
from mlsys.measure.gpu_jobs import GpuProcess, describe_others, listed_processes, refuse_shared_gpu

GIB = 2**30


@pytest.fixture
def library(monkeypatch):
    """The functions of `pynvml` on a machine with one GPU and three processes, the last in another container."""
    names = {812: "/usr/bin/python3", 900: "name, with comma"}
    processes = [(812, 4096 * 2**20 + 1), (900, None), (7, 2**20)]
    calls = []

    def process_name(pid):
        if pid not in names:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return names[pid]

    fake = {
        "nvmlInit": lambda: calls.append("init"),
        "nvmlDeviceGetHandleByUUID": lambda uuid: calls.append(uuid) or "handle",
        "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
            SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in processes if handle == "handle"
        ],
        "nvmlSystemGetProcessName": process_name,
        "nvmlShutdown": lambda: calls.append("shutdown"),
    }
    for name, function in fake.items():
        monkeypatch.setattr(pynvml, name, function)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(uuid="ab-12"))
    return calls


def test_processes_of_torchs_gpu_are_listed_with_name_and_memory(library):
    assert listed_processes() == [
        GpuProcess(812, "/usr/bin/python3", "4096"),
        GpuProcess(900, "name, with comma", "[N/A]"),
        GpuProcess(7, "[Not Found]", "1"),
    ]
    assert library == ["init", "GPU-ab-12", "shutdown"]


@pytest.mark.parametrize("function", ["nvmlDeviceGetHandleByUUID", "nvmlDeviceGetComputeRunningProcesses"])
@pytest.mark.parametrize("problem", ["NOT_FOUND", "NO_PERMISSION", "NOT_SUPPORTED", "GPU_IS_LOST"])
def test_a_library_that_cannot_tell_lists_nothing_and_is_closed(library, monkeypatch, function, problem):
    def refuse(_):
        raise pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{problem}"))

    monkeypatch.setattr(pynvml, function, refuse)
    assert listed_processes() == []
    assert library[-1] == "shutdown"


@pytest.mark.parametrize("problem", ["LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED"])
def test_without_nvidias_driver_nothing_is_listed(library, monkeypatch, problem):
    def refuse():
        raise pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{problem}"))

    monkeypatch.setattr(pynvml, "nvmlInit", refuse)
    assert listed_processes() == []
    assert library == []


def test_without_the_package_nothing_is_listed(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert listed_processes() == []


def test_another_process_is_named_and_our_own_is_not():
    here, parent = os.getpid(), os.getppid()
    ours, other = GpuProcess(here, "python3", "600"), GpuProcess(parent, "train.py", "90000")
    assert describe_others([ours], here, taken_bytes=GIB // 2) == ""
    assert describe_others([ours, other], here, taken_bytes=80 * GIB) == f"train.py (process {parent}, 90000 MiB)"


def test_memory_that_nobody_here_explains_is_named():
    unknown_here = GpuProcess(2**22 + 1, "python3", "600")  # beyond the greatest process number of Linux
    assert "20.0 GiB" in describe_others([unknown_here], os.getpid(), taken_bytes=20 * GIB)
    assert describe_others([unknown_here], os.getpid(), taken_bytes=GIB // 2) == ""


def test_what_torch_holds_here_is_no_job(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (60 * GIB, 80 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 19 * GIB)
    assert gpu_users.taken_bytes() == GIB


def test_a_gpu_in_use_is_not_measured(monkeypatch):
    monkeypatch.setattr(gpu_users, "other_jobs", lambda: "train.py (process 812, 4096 MiB)")
    with pytest.raises(UserError, match="in use by train.py"):
        refuse_shared_gpu()
    monkeypatch.setattr(gpu_users, "other_jobs", lambda: "")
    refuse_shared_gpu()
