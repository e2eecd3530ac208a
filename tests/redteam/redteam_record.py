"""The record of the attacks that need a GPU: what each got on which device, and of which list."""

import datetime
import hashlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mlsys.measure.device import Device
from mlsys.measure.records import slug

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def digest_of_list() -> str:
    """SHA-256 of the table of attacks on a GPU and of all its samples."""
    content = hashlib.sha256()
    for path in [HERE / "gpu.csv", *sorted((HERE / "gpu").glob("*.py"))]:
        content.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()


def write_record(device: Device, attacks: list[dict[str, Any]], honest_lost: list[str]) -> Path:
    """Write `results/<device>.json`: each attack and its twin with what it got, and honest work that lost points."""
    record = {
        "device": device.name,
        "driver": device.driver,
        "versions": {name: version(name) for name in ("torch", "triton")},
        "measured_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "list": digest_of_list(),
        "attacks": attacks,
        "honest_lost": honest_lost,
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{slug(device.name)}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return path
