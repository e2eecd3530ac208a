"""Records of what tests found on a GPU: committed, and held to the present samples where no GPU is at hand."""

import datetime
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mlsys.measure.device import gpu_device
from mlsys.measure.records import slug


def write_record(folder: Path, found: dict[str, Any]) -> Path:
    """Write `<folder>/<device>.json`: the GPU at hand, its software, the day, and what was found on it."""
    device = gpu_device()
    record = {
        "device": device.name,
        "driver": device.driver,
        "versions": {name: version(name) for name in ("torch", "triton")},
        "measured_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
        **found,
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{slug(device.name)}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path


def read_records(folder: Path) -> list[dict[str, Any]]:
    """The committed records, one per device."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
