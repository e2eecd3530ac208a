"""What a class hands in: notebooks, folders, zips, a roster, and the taking in of them."""

import json
import os
import struct
import zipfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from mlsys.classroom.intake.collect import Collected, collect
from mlsys.classroom.students.roster import Roster, parse_roster
from mlsys.course.tree import CourseTree

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
DUE = datetime(2026, 11, 20, 22, 59, tzinfo=UTC)
ROSTER = parse_roster(
    "id,name,canvas id,time zone,late days,due tiling\n"
    "*,,,Europe/Berlin,,2026-11-20 23:59\n"
    'ann,"Baker, Ann",101,,,\n'
    "bob,Bob Carter,102,,2,\n"
    "cy,Cy Dunn,103,,,2026-11-27 23:59\n"
)


def notebook(text: str = "") -> bytes:
    cell = {"cell_type": "code", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def zipped(path: Path, files: Mapping[str, bytes], time: datetime | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (2026, 11, 25, 8, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            if time is not None:
                info.extra = struct.pack("<HHBl", 0x5455, 5, 1, int(time.timestamp()))
            archive.writestr(info, data)
    return path


def folder(path: Path, files: Mapping[str, tuple[bytes, datetime]]) -> Path:
    for name, (data, time) in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (time.timestamp(),) * 2)
    return path


def stamped(path: Path, files: Mapping[str, tuple[bytes, datetime]], lab: str = "tiling") -> Path:
    """The notebooks `<student>.ipynb` as nbgrader keeps them, with the times at which they were handed in."""
    kept = {}
    for name, (data, time) in files.items():
        place = f"{name.removesuffix('.ipynb')}/{lab}"
        kept |= {f"{place}/{lab}.ipynb": (data, time), f"{place}/timestamp.txt": (f"{time.isoformat()}".encode(), time)}
    return folder(path, kept)


def take(source: Path | None, tree: CourseTree, roster: Roster | None = ROSTER, policy: str = "newest") -> Collected:
    return collect(source, tree, "tiling", roster, policy=policy, now=NOW)


def submitted(tree: CourseTree, student: str) -> bytes:
    return tree.submitted("tiling", student).read_bytes()
