"""Whether the sandbox that grading needs holds on this machine, found by running a question in it."""

import sys
from pathlib import Path

import mlsys


def check_sandbox(site: Path | None = None) -> str:
    """Start a slot without torch, and look around from a question inside.

    Args:
        site: folder to import `mlsys` from inside; the one that it lies in when None.

    Returns:
        "" if it holds, else what is wrong and what to do.
    """
    if sys.platform != "linux":
        return "grading needs Linux; on Windows use WSL2"
    from mlsys.grading.slot import QuestionOver, SandboxError, Slot, Tampered

    site = site or Path(mlsys.__file__).parents[1]
    try:
        with Slot(site, preload=()) as slot, slot.open("mlsys.grading.slot.probe:serve") as question:
            found = question.request({}).header["found"]
    except QuestionOver as error:
        return f"{error}\n{error.ending.output}"
    except (SandboxError, Tampered, ValueError) as error:
        return str(error)
    return "; ".join(found)
