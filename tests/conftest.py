import os

from hypothesis import settings

from mlsys.measure.device import torch_sees_gpu

# CI machines are shared: a slow moment is no failure, and every run draws the same examples.
settings.register_profile("course", deadline=None, derandomize=True)
settings.load_profile("course")

# Triton reads this once, when the first test imports it.
if not torch_sees_gpu():
    os.environ["TRITON_INTERPRET"] = "1"
