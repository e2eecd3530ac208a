"""Measure the labs' kernels and the chapters' suite on this GPU, for the record that the book draws from.

A lab that has something to measure brings `labs/<lab>/bench.py` with `rows(names, ceilings) -> list[Row]`; `names` are
the names that the lab's own setup and solutions define.
"""

import datetime
import runpy
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import distributions, version
from pathlib import Path
from types import ModuleType
from typing import Any

from mlsys.errors import UnknownName, UserError
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device, cpu_device
from mlsys.measure.records import (
    BrokenRecord,
    Record,
    Row,
    Run,
    check_row,
    parse,
)

RECORDED_PACKAGES = ("mlsys", "torch", "triton", "liger-kernel")
Measurement = Callable[[Ceilings], Iterable[Row]]


@dataclass
class Findings:
    """The rows of a run, and what could not be measured, with the reason."""

    rows: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, row: Row, measurement: str) -> None:
        """Keep a row, or name what cannot be right about it."""
        try:
            check_row(row, measurement)
        except BrokenRecord as error:
            self.left_out.append(str(error))
        else:
            self.rows.append(row)


def measurements_of(root: Path, suite: str) -> dict[str, Measurement]:
    """Collect the measurements of a suite, or of all, by name.

    Raises:
        UserError: if no lab under `root` has a benchmark although the labs shall be measured.
    """
    found: dict[str, Measurement] = {}
    if suite in ("lab", "all"):
        found |= {f"labs/{path.parent.name}": partial(lab_rows, path) for path in sorted(root.glob("labs/*/bench.py"))}
        if not found:
            raise UserError(f"no labs/*/bench.py under {root}: run `mlsys bench` at the top of the course's repository")
    if suite in ("book", "all"):
        from mlsys.bench.suite import MEASUREMENTS

        found |= {name: partial(chapter_rows, name) for name in MEASUREMENTS}
    return found


def chosen(measurements: dict[str, Measurement], names: list[str]) -> dict[str, Measurement]:
    """Select measurements by name; all of them if no name is given.

    Raises:
        UnknownName: for a name that none has; it lists what there is.
    """
    for name in names:
        if name not in measurements:
            raise UnknownName.of("measurement", name, measurements)
    return {name: rows for name, rows in measurements.items() if not names or name in names}


def measure(measurements: dict[str, Measurement], ceilings: Ceilings) -> Findings:
    """Run every measurement; one that fails ends alone, keeps the rows before, and is named with its reason."""
    found = Findings()
    for name, rows in measurements.items():
        print(f"measuring {name} ...", flush=True)
        try:
            for measured in rows(ceilings):
                found.add(measured, name)
        except Exception as error:
            # The other measurements shall not be lost with this one; the run ends with this reason and status 1.
            traceback.print_exc(file=sys.stdout)
            found.left_out.append(f"{name}: {type(error).__name__}: {error}")
    return found


def record_of(device: Device, commit: str, rows: Iterable[Row]) -> Record:
    """Make the record of a run that ends now, with the versions and settings of the run."""
    import torch

    installed = [package for package in RECORDED_PACKAGES if list(distributions(name=package))]
    multiply = torch.backends.cuda.matmul
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Record(
        device=device.name,
        driver=device.driver,
        versions={package: version(package) for package in installed} | {"cuda": device.cuda},
        flags={
            "allow_tf32": str(multiply.allow_tf32),
            "allow_fp16_reduced_precision_reduction": str(multiply.allow_fp16_reduced_precision_reduction),
            "allow_bf16_reduced_precision_reduction": str(multiply.allow_bf16_reduced_precision_reduction),
        },
        runs=(Run(commit, today, f"{cpu_device().name}, {torch.get_num_threads()} threads", tuple(rows)),),
    )


def read_record(path: Path) -> Record:
    """Read a record made on another machine.

    Raises:
        UserError: if it cannot be read or is not a record.
    """
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error}") from error


def chapter_rows(name: str, ceilings: Ceilings) -> Iterator[Row]:
    """Run one measurement of the chapters' suite."""
    from mlsys.bench.suite import MEASUREMENTS, Setting

    return MEASUREMENTS[name](Setting(ceilings))


def lab_rows(path: Path, ceilings: Ceilings) -> Iterable[Row]:
    """Run the benchmark file of a lab."""
    rows: Callable[[dict[str, Any], Ceilings], Iterable[Row]] = runpy.run_path(str(path))["rows"]
    return rows(lab_names(path.with_name("lab.py")), ceilings)


def lab_names(path: Path) -> dict[str, Any]:
    """Run a lab's setup and solution cells in order, and return the names that they define."""
    from mlsys.core.cells import run_cell
    from mlsys.course.lab import ANSWERS, SETUP, Lab

    module = ModuleType(path.parent.name)
    for cell in Lab.load(path).cells:
        if cell.kind == "code" and cell.role in (SETUP, *ANSWERS):
            run_cell(cell.source, f"{path.parent.name}/{cell.id}", module.__dict__)
    return module.__dict__


def commit_of(root: Path) -> str:
    """Return the commit that is checked out, followed by "-dirty" if files differ from it.

    Raises:
        UserError: in a copy without git, for a record says what was measured.
    """
    done = subprocess.run(
        ["git", "describe", "--always", "--exclude=*", "--dirty"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise UserError(f"{root} is not a git checkout: say with --commit which commit is measured")
    return done.stdout.strip()
