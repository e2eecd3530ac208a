"""Choose the device of a lab before Triton is imported."""

import os
import sys
from importlib.util import find_spec

from mlsys.errors import UserError
from mlsys.measure.device import interpreter_fault, torch_sees_gpu

JUDGE_VARIABLE = "MLSYS_IN_JUDGE"
"""Environment variable that is set in the judge: its tensors stay in host memory, whatever this machine has."""


class TritonTooEarly(UserError, RuntimeError):
    """Triton was imported before it was told to interpret."""


def use_device() -> str:
    """Pick "cuda" if there is a CUDA GPU, else "cpu" with Triton's interpreter, and say so in one line.

    Call it before `import triton`: Triton reads TRITON_INTERPRET when a kernel is defined and when its own library is.

    Raises:
        UserError: torch or triton is missing; or, on a machine without a GPU, triton was imported first, or its
            interpreter does not fit the NumPy that is installed.
    """
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise UserError(
            f"this lab needs {' and '.join(missing)}: install with `pip install {' '.join(missing)}` "
            "(Linux; on macOS or Windows open the lab in Colab)"
        )
    if os.environ.get(JUDGE_VARIABLE):
        return "cpu"
    if torch_sees_gpu():
        import torch

        name, (major, minor) = torch.cuda.get_device_name(), torch.cuda.get_device_capability()
        print(f"Kernels run on {name}, compute capability {major}.{minor}. Questions that need more than that wait.")
        return "cuda"
    if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
        raise TritonTooEarly("triton is already imported: restart the kernel and run this cell first")
    if fault := interpreter_fault():
        raise UserError(fault)
    os.environ["TRITON_INTERPRET"] = "1"
    print(
        "No GPU here: kernels run on the CPU in Triton's interpreter. Questions marked (GPU) wait for one; all others "
        "are checked here."
    )
    return "cpu"
