import os

from helpers.browser import browser
from hypothesis import settings

from mlsys.measure.device import torch_sees_gpu

__all__ = ["browser"]  # one for all tests: a process can drive only one at a time

# CI machines are shared: a slow moment is no failure, and every run draws the same examples.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")

# Triton reads this once, when the first test imports it.
if not torch_sees_gpu():
    os.environ["TRITON_INTERPRET"] = "1"
