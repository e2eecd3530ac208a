"""Which versions of Triton and NumPy go together in Triton's interpreter."""

from types import SimpleNamespace

import pytest
import torch

from mlsys.errors import UserError
from mlsys.grading.device import use_device
from mlsys.measure import device


@pytest.mark.parametrize(
    ("triton", "numpy", "fits"),
    [
        ("3.6.0", "2.5.2", False),  # seen to fail: TypeError, only 0-dimensional arrays can be converted
        ("3.4.0", "2.4.0", False),
        ("3.6.0", "2.3.5", True),
        ("3.7.1", "2.4.6", True),  # the pinned ones
    ],
)
def test_an_interpreter_that_numpy_breaks_is_refused_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, triton: str, numpy: str, fits: bool
) -> None:
    monkeypatch.setattr(device, "version", {"triton": triton, "numpy": numpy}.__getitem__)
    assert (device.interpreter_fault() == "") is fits
    monkeypatch.setattr("mlsys.grading.device.torch_sees_gpu", lambda: False)
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    if fits:
        assert use_device() == "cpu"
    else:
        with pytest.raises(UserError, match=r"NumPy .*: pip install 'numpy<2\.4', then restart Python"):
            use_device()


def test_each_gpu_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def properties(number: int) -> SimpleNamespace:
        asked.append(number)
        sizes = {"total_memory": 2**30, "multi_processor_count": 4, "L2_cache_size": 2**20}
        return SimpleNamespace(name=f"GPU {number}", major=9, minor=0, shared_memory_per_block_optin=2**16, **sizes)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", properties)
    device.numbered_gpu.cache_clear()
    try:
        for number in (0, 1, 0, 1):
            monkeypatch.setattr(torch.cuda, "current_device", lambda number=number: number)
            assert device.detect_device().name == f"GPU {number}"
    finally:
        device.numbered_gpu.cache_clear()
    assert asked == [0, 1]
