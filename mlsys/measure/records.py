"""Benchmark records: what was measured on which device with which versions, one JSON file per device.

`mlsys bench` writes them to `labs/results/`, chapters draw from them, and nothing else makes one.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mlsys.core.files import writing_to
from mlsys.errors import UnknownName, UserError

RESULTS_FOLDER = Path("labs/results")
SUITES = ("lab", "book")
RATE_UNITS = ("TFLOP/s", "GB/s")
HEADROOM = 1.25
"""How far a rate may lie above its measured ceiling; beyond this, one of the two was measured wrong.

Under its power limit a GPU lowers its clock by as much, and may do so for the one and not for the other: an H200 was
seen between 1,575 and 1,980 MHz while it ran kernels of the labs (`nvidia-smi`, limit 700 W).
"""


class BrokenRecord(UserError):
    """A benchmark record that does not have the form that `Record` describes."""


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        suite: "lab" or "book".
        name: what was measured, such as "tiling ladder".
        variant: which version of it, such as "64x64x32".
        shape: sizes, such as (4096, 4096, 4096) for m, n, k.
        dtype: number format of the tensors.
        median_s: seconds of one call, median.
        p20_s: 20th percentile.
        p80_s: 80th percentile.
        achieved: rate reached, in `rate_unit`; None where a time is all there is, as for a launch.
        ceiling: the measured ceiling of this device that it is held against, in `rate_unit`; None like `achieved`.
        rate_unit: "TFLOP/s" or "GB/s"; None like `achieved`.
        peers: for each other implementation timed in the same run, its time divided by ours (above 1: ours is faster).
        intervals: for each peer, the least and the greatest such ratio of a round.
        reference_s: for each peer, seconds of one call, median of the rounds in which the two took turns. Its rate is
            the work over these seconds; `achieved` over the ratio mixes two runs, and is as uncertain as both.
        sm_clock_mhz: clock of the SMs in MHz, median of what NVML said while `median_s` was timed; None where it was
            not read.
        power_w: power of the board in watts; read like the clock.
        error: root mean square of the result's error relative to the exact result; None where it was not measured.

    Records from before the last four fields have none of them.
    """

    suite: str
    name: str
    variant: str
    shape: tuple[int, ...]
    dtype: str
    median_s: float
    p20_s: float
    p80_s: float
    achieved: float | None
    ceiling: float | None
    rate_unit: str | None
    peers: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reference_s: Mapping[str, float] = field(default_factory=dict)
    sm_clock_mhz: float | None = None
    power_w: float | None = None
    error: float | None = None


@dataclass(frozen=True)
class Run:
    """What was measured in one go, less what a later run has measured again.

    Attributes:
        commit: of what was measured; "-dirty" follows it if files differed.
        measured_on: the day, such as "2026-11-23".
        host: the machine's CPU, with the threads that torch used on it.
        rows: the measurements, in the order in which they ran.
    """

    commit: str
    measured_on: str
    host: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Record:
    """All measurements on one device, of one run or of several in the same conditions, the latest last.

    `flags` are the settings of torch that decide how its libraries multiply, such as whether float32 may run as tf32.
    """

    device: str
    driver: str
    versions: Mapping[str, str]
    flags: Mapping[str, str]
    runs: tuple[Run, ...]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The measurements of all runs."""
        return tuple(row for run in self.runs for row in run.rows)

    @property
    def label(self) -> str:
        """Device, versions and days, for a caption."""
        versions = ", ".join(f"{name} {number}" for name, number in self.versions.items())
        return f"{self.device}, {versions}, driver {self.driver}, measured {self._days}"

    @property
    def _days(self) -> str:
        *earlier, last = dict.fromkeys(run.measured_on for run in self.runs)
        return f"{', '.join(earlier)} and {last}" if earlier else last

    def host_of(self, name: str) -> str:
        """Return the host of one measurement: of its latest run, if several measured variants of it.

        Raises:
            UnknownName: as `named` does.
        """
        self.named(name)
        return next(run.host for run in reversed(self.runs) if any(row.name == name for row in run.rows))

    def named(self, name: str, variant: str | None = None) -> tuple[Row, ...]:
        """Select the rows of one measurement, or of one of its variants, in the order in which they ran.

        Raises:
            UnknownName: if the record has none; it lists what there is, and says how to measure what is missing.
        """
        found = tuple(row for row in self.rows if row.name == name)
        if not found:
            what = f"measurement in the record of {self.device} ({self._days})"
            raise self._missing(what, name, {row.name for row in self.rows})
        if variant is None:
            return found
        chosen = tuple(row for row in found if row.variant == variant)
        if not chosen:
            what = f"variant of {name!r} in the record of {self.device} ({self._days})"
            raise self._missing(what, variant, {row.variant for row in found})
        return chosen

    def _missing(self, what: str, name: str, known: set[str]) -> UnknownName:
        """Make the error for rows that this record lacks, with the command that measures them."""
        error = UnknownName.of(what, name, known)
        return UnknownName(f"{error}. If the record is older than that measurement, run `mlsys bench` on the device")


def slug(device_name: str) -> str:
    """Make the file name of a device's record.

    >>> slug("NVIDIA H200")
    'nvidia-h200'
    """
    return re.sub(r"[^a-z0-9]+", "-", device_name.lower()).strip("-")


def load(device: str, folder: Path | None = None) -> Record:
    """Read and check the record of a device.

    Args:
        device: the file's name without its ending, such as "nvidia-h200".
        folder: where the records are; by default `labs/results` of the checkout that holds this package, or of the
            current folder where the package is installed without a checkout (a chapter's notebook brings its records).

    Raises:
        UnknownName: if there is no such record; it lists those there are.
        BrokenRecord: if the file is not a record.
    """
    checkout = Path(__file__).parents[2] / RESULTS_FOLDER
    folder = folder or (checkout if checkout.is_dir() else RESULTS_FOLDER)
    path = folder / f"{device}.json"
    if not path.exists():
        raise UnknownName.of("benchmark record", device, (file.stem for file in folder.glob("*.json")))
    return parse(path.read_text(encoding="utf-8"), str(path))


def parse(text: str, place: str) -> Record:
    """Turn the text of a record into a `Record`, checking its form.

    Raises:
        BrokenRecord: naming `place` and what is wrong.
    """
    try:
        data: dict[str, Any] = json.loads(text)
        runs = tuple(_run(run) for run in data.pop("runs"))
        if not runs:
            raise ValueError("it has no runs")
        record = Record(runs=runs, **data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise BrokenRecord(f"{place} is not a benchmark record: {error}; make it anew with mlsys bench") from error
    for row in record.rows:
        check_row(row, place)
    return record


def _run(data: dict[str, Any]) -> Run:
    return Run(rows=tuple(_row(row) for row in data.pop("rows")), **data)


def _row(data: dict[str, Any]) -> Row:
    intervals = {peer: (low, high) for peer, (low, high) in data.get("intervals", {}).items()}
    return Row(**{**data, "shape": tuple(data["shape"]), "intervals": intervals})


def check_row(row: Row, place: str) -> None:
    """Hold a row to what every measurement satisfies.

    Raises:
        BrokenRecord: naming `place`, the row and what is wrong.
    """
    what = f"{place}: {row.name} {row.variant} {row.shape}"
    if row.suite not in SUITES:
        raise BrokenRecord(f"{what} is of suite {row.suite!r}; there are {', '.join(SUITES)}")
    if not row.shape or any(type(size) is not int or size < 1 for size in row.shape):
        raise BrokenRecord(f"{what}: a shape is one or more positive ints")
    if not 0 < row.p20_s <= row.median_s <= row.p80_s:
        raise BrokenRecord(f"{what} has times out of order or not above zero")
    rate = (row.achieved, row.ceiling, row.rate_unit)
    if row.achieved is None or row.ceiling is None or row.rate_unit is None:
        if rate != (None, None, None):
            raise BrokenRecord(f"{what}: of achieved, ceiling and rate_unit, none may stand without the others")
    elif row.rate_unit not in RATE_UNITS:
        raise BrokenRecord(f"{what}: unknown unit {row.rate_unit!r}; there are {', '.join(RATE_UNITS)}")
    elif not 0 < row.achieved <= HEADROOM * row.ceiling:
        raise BrokenRecord(
            f"{what} reaches {row.achieved:g} of a ceiling of {row.ceiling:g} {row.rate_unit}; "
            "one of the two was not measured right"
        )
    for peer, (low, high) in row.intervals.items():
        if peer not in row.peers or not 0 < low <= row.peers[peer] <= high:
            raise BrokenRecord(f"{what}: the ratio to {peer} is not within its interval of {low:g} to {high:g}")
    for peer, time_s in row.reference_s.items():
        if peer not in row.peers or not time_s > 0:
            raise BrokenRecord(f"{what}: {peer} is no peer, or its time of {time_s:g} s is not above zero")
    for reading, unit in ((row.sm_clock_mhz, "MHz"), (row.power_w, "W")):
        if reading is not None and not reading > 0:
            raise BrokenRecord(f"{what}: a reading of {reading:g} {unit} is not above zero; without one it is null")
    if row.error is not None and not 0 <= row.error < 1:
        raise BrokenRecord(f"{what}: an error of {row.error:g} is not from 0 to 1; where none was measured it is null")


def save(record: Record, folder: Path = RESULTS_FOLDER) -> Path:
    """Write `record` to `folder`, in place of an older one of the same device, and return the path.

    Measurements that `record` lacks are kept from the older one, if made in the same conditions.

    Raises:
        BrokenRecord: if a row cannot be right.
        UserError: if the older record has measurements that this one lacks, from another day or other conditions, or
            if `folder` cannot be written.
    """
    parse(_text(record), "the new record")
    path = folder / f"{slug(record.device)}.json"
    measured = {(row.name, row.variant) for row in record.rows}
    with writing_to(folder, "--out"):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(_text(with_kept_rows(record, path, measured)), encoding="utf-8")
    return path


def _text(record: Record) -> str:
    return json.dumps(asdict(record), indent=1) + "\n"


def with_kept_rows(record: Record, path: Path, measured: Collection[str | tuple[str, str]]) -> Record:
    """Add to `record` the rows of the record at `path` that are not `measured`: suites, names, or names with variants.

    Raises:
        UserError: if they were made with another GPU, driver or version, or other flags: those are the same for all
            rows of a record.
    """
    if not path.exists():
        return record
    older = parse(path.read_text(encoding="utf-8"), str(path))

    def kept(rows: Iterable[Row]) -> tuple[Row, ...]:
        return tuple(row for row in rows if not {row.suite, row.name, (row.name, row.variant)}.intersection(measured))

    runs = tuple(replace(run, rows=rows) for run in older.runs if (rows := kept(run.rows)))
    if not runs:
        return record
    names = ", ".join(dict.fromkeys(row.name for run in runs for row in run.rows))
    for what in ("device", "driver", "versions", "flags"):
        then, now = getattr(older, what), getattr(record, what)
        if then != now:
            raise UserError(
                f"{path} also has {names}, measured with {what} = {then}; now it is {now}, and a record has one label: "
                "measure with --suite all, give another folder with --out, or delete that file"
            )
    return replace(record, runs=(*runs, *record.runs))
