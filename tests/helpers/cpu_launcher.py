"""A launcher in a sandbox that races kernels on the CPU, in Triton's interpreter; all else is the launcher's own."""

from types import SimpleNamespace

from mlsys.judge.inside import launcher


def serve(channel):
    launcher.RACE_DEVICE = "cpu"
    launcher.check_gpu = lambda *_: None
    launcher.taken_bytes = lambda: 0
    launcher.gpu_device = lambda: SimpleNamespace(name="a CPU")
    launcher.serve(channel)
