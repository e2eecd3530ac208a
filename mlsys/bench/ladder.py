"""Ladders of kernels: the files of a folder, from the first rung up, each of which can be run alone.

Nothing here imports Triton: a rung says beforehand whether to interpret.
"""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

from mlsys.measure.device import Device


def rungs(folder: Path) -> list[str]:
    """Return the names of all rungs, from the bottom up."""
    return [path.stem for path in sorted(folder.glob("[0-9][0-9]_*.py"))]


def title(rung: str) -> str:
    """Return the name of a rung as the record and the figures have it.

    >>> title("05_large_tiles")
    'large tiles'
    """
    return rung[3:].replace("_", " ")


@cache
def load(folder: Path, rung: str) -> ModuleType:
    """Import the file of a rung, whose name begins with a digit."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))  # where the rung finds what all of them share
    spec = importlib.util.spec_from_file_location(f"{folder.parent.name}_rung_{rung}", folder / f"{rung}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_device(rung: ModuleType, device: Device) -> None:
    """End the program if a rung needs a newer GPU than the one that is here."""
    needs = getattr(rung, "NEEDS", None)
    if needs and device.kind == "gpu" and (device.capability or (0, 0)) < needs:
        raise SystemExit(f"not run: this rung needs a GPU of compute capability {needs[0]}.{needs[1]} or more")
