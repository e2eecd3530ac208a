"""`mlsys bench`: measure this GPU and the labs' kernels, or import a record from another machine."""

import argparse
from pathlib import Path

from mlsys.bench.run import chosen, commit_of, measure, measurements_of, read_record, record_of
from mlsys.bench.table import ceilings_table, conditions, rows_table
from mlsys.core.files import writing_to
from mlsys.errors import UserError
from mlsys.measure.ceilings import measure_ceilings
from mlsys.measure.device import detect_device
from mlsys.measure.gpu_jobs import refuse_shared_gpu
from mlsys.measure.records import RESULTS_FOLDER, SUITES, save, slug, with_kept_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to measure, where to write, or which record to import."""
    parser.add_argument("--suite", choices=[*SUITES, "all"], default="all", help="labs, chapters, or both (default)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only this measurement, such as stride; repeatable"
    )
    parser.add_argument("--out", type=Path, default=RESULTS_FOLDER, help="folder for the record")
    parser.add_argument("--commit", default="", help="commit that is measured; by default the one checked out")
    parser.add_argument("--import", dest="record", type=Path, help="check a record made on another machine and keep it")


def run(args: argparse.Namespace) -> int:
    """Measure here, or import a record; the exit status is 1 if something could not be measured."""
    if args.record:
        record = read_record(args.record)
        print(f"{record.label}\n{conditions(record.rows)}")
        print(f"{len(record.rows)} measurements: {save(record, args.out)}")
        return 0
    root = Path.cwd()
    commit = args.commit or commit_of(root)
    device = detect_device()
    if device.kind != "gpu":
        raise UserError("no CUDA GPU here: run `mlsys bench` where there is one, then `mlsys bench --import FILE` here")
    measurements = chosen(measurements_of(root, args.suite), args.only)
    suites = set(SUITES) if args.suite == "all" else {args.suite}
    # Raises now what `save` would raise after all is measured.
    with writing_to(args.out, "--out"):
        args.out.mkdir(parents=True, exist_ok=True)
        with_kept_rows(record_of(device, commit, ()), args.out / f"{slug(device.name)}.json", set(args.only) or suites)
    refuse_shared_gpu()
    print(f"measuring the ceilings of {device.name} ...", flush=True)
    ceilings = measure_ceilings(device)
    print(ceilings_table(ceilings), flush=True)
    found = measure(measurements, ceilings)
    record = record_of(device, commit, found.rows)
    print(f"\n{rows_table(record.rows)}\n\n{record.label}\n{conditions(record.rows)}")
    for reason in found.left_out:
        print(f"left out: {reason}")
    whole = bool(args.only) or suites <= {row.suite for row in record.rows}
    path = save(record, args.out if whole else args.out / "incomplete")  # an older record keeps what failed here
    print(f"{len(record.rows)} measurements: {path}")
    return 1 if found.left_out else 0
