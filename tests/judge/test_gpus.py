"""Which GPUs there are, and what of them a sandbox sees. The GPUs are simulated, as answers of CUDA's driver."""

import os
from itertools import pairwise
from uuid import UUID

import pytest
import torch
from helpers.on_gpu import needs_gpu

from mlsys.errors import UserError
from mlsys.judge import gpus
from mlsys.judge.gpus import Gpu, gpus_to_grade_on, visible_gpus, visible_in_sandbox
from mlsys.judge.sandbox.host import bubblewrap

UUIDS = ["6f1d2c3b-0000-1111-2222-333344445555", "9a8b7c6d-0000-1111-2222-333344445555"]

INFORMATION = """Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 18
GPU UUID: \t GPU-{uuid}
Bus Location: \t 0000:{bus}:00.0
Device Minor: \t {minor}
GPU Excluded:\t No
"""
"""The driver's file about a GPU, as NVIDIA's README for Linux describes it (chapter on /proc)."""


class Driver:
    """Functions of CUDA's driver, as ctypes calls them, on a machine with GPUs of these models."""

    def __init__(self, names, fault=0):
        self.names, self.fault = names, fault

    def cuInit(self, flags):
        return self.fault

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.names)

    def cuDeviceGet(self, device, number):
        device._obj.value = number

    def cuDeviceGetUuid(self, uuid, device):
        uuid._obj.raw = UUID(UUIDS[device.value]).bytes

    def cuDeviceGetName(self, name, size, device):
        name.value = self.names[device.value].encode()[: size - 1]


@pytest.fixture
def cuda_shows(monkeypatch):
    """Let CUDA show GPUs of these models."""

    def show(*names, fault=0):
        monkeypatch.setattr(gpus, "torch_sees_gpu", lambda: bool(names))
        monkeypatch.setattr(gpus.ctypes, "CDLL", lambda _: Driver(names, fault))
        gpus.judging_gpu.cache_clear()

    yield show
    gpus.judging_gpu.cache_clear()


def test_where_there_are_two_each_can_be_shown_alone(cuda_shows, monkeypatch):
    cuda_shows("H100", "H100")
    monkeypatch.setenv(gpus.VISIBLE, "0,1")
    assert visible_gpus() == tuple(Gpu(f"GPU-{uuid}", "H100", f"GPU-{uuid}") for uuid in UUIDS)
    assert visible_in_sandbox() == f"GPU-{UUIDS[0]}"  # not "0,1": the sandbox would choose for itself


@pytest.mark.parametrize("said", ["", "1", "MIG-6f1d2c3b"])
def test_a_single_one_is_called_what_the_person_who_grades_calls_it(cuda_shows, monkeypatch, said):
    cuda_shows("H100")
    monkeypatch.setenv(gpus.VISIBLE, said)
    assert [one.visible for one in visible_gpus()] == [""]
    assert visible_in_sandbox() == said


def test_a_class_is_graded_on_gpus_of_one_model(cuda_shows):
    cuda_shows("H100", "T4")
    assert [one.name for one in gpus_to_grade_on("auto")] == ["H100"]
    assert gpus_to_grade_on("cpu") == ()
    cuda_shows()
    assert gpus_to_grade_on("auto") == ()


def test_a_driver_that_does_not_tell_is_named_with_its_error(cuda_shows):
    cuda_shows("H100", fault=999)
    with pytest.raises(UserError, match="answers cuInit with error 999: look with `nvidia-smi`"):
        visible_gpus()


@needs_gpu
def test_the_driver_knows_a_gpu_by_the_name_and_uuid_that_torch_does():
    properties = torch.cuda.get_device_properties(0)
    assert (visible_gpus()[0].uuid, visible_gpus()[0].name) == (f"GPU-{properties.uuid}", properties.name)


@pytest.fixture
def driver(tmp_path):
    """The driver's folder on a machine whose GPUs are numbered otherwise than their buses."""
    for uuid, bus, minor in zip(UUIDS, ("07", "0f"), (1, 0), strict=True):
        folder = tmp_path / f"0000:{bus}:00.0"
        folder.mkdir()
        (folder / "information").write_text(INFORMATION.format(uuid=uuid, bus=bus, minor=minor))
    return tmp_path


def test_the_driver_says_which_device_file_is_that_of_a_gpu(driver, tmp_path):
    assert [bubblewrap.device_number(f"GPU-{uuid}", driver) for uuid in UUIDS] == ["1", "0"]
    for unknown in ("", "0", "MIG-6f1d2c3b", "GPU-0"):
        assert bubblewrap.device_number(unknown, driver) == ""
    assert bubblewrap.device_number("GPU-0", tmp_path / "no driver") == ""


def flags(monkeypatch, tmp_path, visible, number):
    site = tmp_path / "site"
    site.mkdir(mode=0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "device_number", lambda _: number)
    monkeypatch.setattr(bubblewrap.glob, "glob", lambda _: ["/dev/nvidia0", "/dev/nvidia1"])
    command = bubblewrap.sandbox_command(site, index=9, gpu=True, visible=visible, scratch_bytes=1, command=[])
    shown = [word for before, word in pairwise(command) if before == "--dev-bind"]
    setting = command.index(gpus.VISIBLE) if gpus.VISIBLE in command else None
    return [name for name in shown if name.startswith("/dev/nvidia")], setting and command[setting + 1]


def test_a_sandbox_sees_the_gpu_of_its_judge(monkeypatch, tmp_path):
    assert flags(monkeypatch, tmp_path, "GPU-b", "1") == (["/dev/nvidia1"], "GPU-b")


@pytest.mark.parametrize(("visible", "told"), [("1", "1"), ("", None)])
def test_where_the_device_file_is_not_known_cuda_alone_chooses(monkeypatch, tmp_path, visible, told):
    assert flags(monkeypatch, tmp_path, visible, "") == (["/dev/nvidia0", "/dev/nvidia1"], told)


def test_without_a_sandbox_too_code_sees_the_gpu_of_its_judge(tmp_path):
    how = {"index": 9, "scratch": tmp_path, "command": []}
    assert f"{gpus.VISIBLE}=GPU-b" in bubblewrap.unsandboxed_command(gpu=True, visible="GPU-b", **how)
    assert gpus.VISIBLE not in os.pathsep.join(bubblewrap.unsandboxed_command(gpu=False, visible="GPU-b", **how))
