"""The kernels of all rungs of the tiling lab's ladder in one module, for `compile_kernels.py`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "labs/tiling/ladder"))

import harness

for rung in harness.rungs()[:-1]:  # the last calls a kernel of fast.py
    globals().update({name: found for name, found in vars(harness.load(rung)).items() if name.endswith("_kernel")})
