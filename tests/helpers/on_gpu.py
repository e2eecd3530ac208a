"""What tests on a GPU share: when they run, how they grade, and the records of what they found.

Records are committed, and held to the present samples where no GPU is at hand.
"""

import datetime
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from mlsys.measure.device import gpu_device, torch_sees_gpu
from mlsys.measure.records import slug

GRADING_CONFIG = 'c.RunQuestions.device = "gpu"\n'
"""For nbgrader's configuration: the limits are those of any class."""

needs_gpu = pytest.mark.skipif(not torch_sees_gpu(), reason="needs a CUDA GPU")


def present_gpu() -> dict[str, Any]:
    """The GPU at hand and its software, as a record names them."""
    device = gpu_device()
    versions = {name: version(name) for name in ("torch", "triton")}
    return {"device": device.name, "driver": device.driver, "versions": versions}


def write_record(folder: Path, found: dict[str, Any]) -> Path:
    """Write `<folder>/<device>.json`: the GPU at hand, its software, the day, and what was found on it."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    record = {**present_gpu(), "measured_on": today, **found}
    folder.mkdir(exist_ok=True)
    path = folder / f"{slug(record['device'])}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The committed records, one per device."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
