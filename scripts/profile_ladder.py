"""Profile every rung of the tiling lab's ladder with Nsight Compute, and write a small CSV export for each.

    python scripts/profile_ladder.py                  on a machine with the GPU and `ncu`
    python scripts/profile_ladder.py --dry-run        print what would run
    python scripts/profile_ladder.py --parse raw.csv  make the exports again from a raw export

The exports are `labs/tiling/ladder/profiles/<rung>.csv`, one line per quantity; `about.json` beside them says which
device and versions, and which metrics `ncu` did not have. What `ncu` does not know is left out and named; a run that
fails is repeated rung by rung while the time lasts. `raw.csv` and `ncu.log`, which git ignores, keep all that was said.
"""

import argparse
import csv
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
LADDER = ROOT / "labs/tiling/ladder"
OUT = LADDER / "profiles"
NCU_PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")

TILES = {  # the pipelined rung with growing tiles: tile_m, tile_n, tile_k, warps, as in ../bench.py
    "tile_16x16x64": (16, 16, 64, 1),
    "tile_32x32x64": (32, 32, 64, 2),
    "tile_64x64x64": (64, 64, 64, 4),
    "tile_128x128x64": (128, 128, 64, 8),
    "tile_128x256x64": (128, 256, 64, 8),
    "tile_256x256x64": (256, 256, 64, 8),
}
LIBRARY = "cublas"
PROBE = "probe"
"""A small product of torch, with which `ncu` and the list of metrics are tried before the long run."""

PERCENT = ".avg.pct_of_peak_sustained_elapsed"
METRICS = {
    "time": "gpu__time_duration.sum",
    "SM clock": "sm__cycles_elapsed.avg.per_second",
    "SM throughput": f"sm__throughput{PERCENT}",
    "instructions": "smsp__inst_executed.sum",
    "issue slots used": f"sm__inst_issued{PERCENT}",
    "tensor pipe active": f"sm__pipe_tensor_cycles_active{PERCENT}",
    "FMA pipe active": f"sm__pipe_fma_cycles_active{PERCENT}",
    "device memory throughput": f"dram__throughput{PERCENT}",
    "device memory bytes read": "dram__bytes_read.sum",
    "device memory bytes written": "dram__bytes_write.sum",
    "L2 throughput": f"lts__throughput{PERCENT}",
    "L2 hit rate": "lts__t_sector_hit_rate.pct",
    "L2 bytes": "lts__t_bytes.sum",
    "bytes from L2 to SMs": "l1tex__m_xbar2l1tex_read_bytes.sum",
    "L1 throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "L1 hit rate": "l1tex__t_sector_hit_rate.pct",
    "sectors per load": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "shared memory reads": f"l1tex__data_bank_reads{PERCENT}",
    "shared memory writes": f"l1tex__data_bank_writes{PERCENT}",
    "shared memory wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "spilled bytes read": "l1tex__t_bytes_pipe_lsu_mem_local_op_ld.sum",
    "achieved occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers per thread": "launch__registers_per_thread",
    "shared memory per program": "launch__shared_mem_per_block",
    "programs": "launch__grid_size",
    "threads per program": "launch__block_size",
}
STALLS = (
    "barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle", "long_scoreboard",
    "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction", "not_selected", "short_scoreboard",
    "sleeping", "tex_throttle", "wait",
)  # fmt: skip
SHOWN_STALLS = 3
FIELDS = ("quantity", "value", "unit", "metric")


def stall_metric(reason: str) -> str:
    """Return the metric of a stall: how many warps wait for this reason, on average, whenever one issues."""
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


def all_metrics() -> list[str]:
    """Return every metric that is asked for."""
    return [*METRICS.values(), *map(stall_metric, STALLS)]


def main() -> None:
    """Profile, or parse, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the exports")
    parser.add_argument("--only", nargs="+", metavar="JOB", help="rungs, tiles or cublas; default: all")
    parser.add_argument("--budget-s", type=float, default=180, help="seconds after which nothing more is started")
    parser.add_argument("--ncu", help="path of ncu, if it is not on the PATH")
    parser.add_argument("--dry-run", action="store_true", help="print the command instead of running it")
    parser.add_argument("--parse", type=Path, metavar="CSV", help="parse this raw export instead of profiling")
    parser.add_argument("--work", nargs="+", metavar="JOB", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        work(args.work)
        return
    jobs = args.only or job_names()
    if unknown := set(jobs) - {*job_names(), PROBE}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(job_names())}")
    if args.dry_run:
        print(" ".join(ncu_command(args.ncu or "ncu", all_metrics(), jobs, Path("report"))))
        return
    if args.parse:
        write_exports(read_raw(args.parse.read_text(encoding="utf-8")), jobs, args.out)
        return
    sys.exit(profile(find_ncu(args.ncu), jobs, args.out, time.monotonic() + args.budget_s))


def job_names() -> list[str]:
    """Return all jobs in the order in which they run: the library first, for it needs no compiler."""
    return [LIBRARY, *rungs(), *TILES]


def rungs() -> list[str]:
    """Return the names of all rungs, from the bottom up."""
    return [path.stem for path in sorted(LADDER.glob("[0-9][0-9]_*.py"))]


def work(jobs: Sequence[str]) -> None:
    """Do each job once outside the profiled range, to compile it, and once inside; this runs under `ncu`."""
    sys.path[:0] = [str(LADDER), str(ROOT)]
    import harness
    import torch

    for job in jobs:
        try:
            side = 256 if job == PROBE else harness.SIDE
            a, b, out = harness.matrices(side, side, side)
            call = prepared(job, a, b, out)
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            call()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
            error = harness.error(out, a, b)
            print(f"done {job}: relative error {error:.1e}", flush=True)
        except Exception as error:
            print(f"FAILED {job}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def prepared(job, a, b, out):
    """Return a function that does the product of a job once."""
    import harness
    import torch

    if job in (LIBRARY, PROBE):
        return lambda: torch.matmul(a, b, out=out)
    if job in TILES:
        tile_m, tile_n, tile_k, warps = TILES[job]
        tile = {"TILE_M": tile_m, "TILE_N": tile_n, "TILE_K": tile_k}
        return lambda: harness.load("06_pipelined").matmul(a, b, out, tile, warps)
    return lambda: harness.load(job).matmul(a, b, out)


def kernel_of(job: str) -> str:
    """Return what the name of a job's kernel contains; "" for the library, whose kernels have names of their own."""
    if job in (LIBRARY, PROBE):
        return ""
    source = "06_pipelined" if job in TILES else job
    found = re.search(r"^def (\w+_kernel)\(", (LADDER / f"{source}.py").read_text(encoding="utf-8"), re.M)
    return found[1] if found else "persistent_kernel"  # the last rung calls that of fast.py


def find_ncu(path: str | None) -> str:
    """Return the path of `ncu`.

    Raises:
        SystemExit: there is none.
    """
    places = [place for pattern in NCU_PLACES for place in sorted(Path("/").glob(pattern[1:]))]
    found = path or shutil.which("ncu") or next(map(str, places), None)
    if found is None:
        raise SystemExit("no ncu found: install Nsight Compute, or say with --ncu where it is")
    return found


def ncu_command(ncu: str, metrics: Iterable[str], jobs: Iterable[str], report: Path) -> list[str]:
    """Return the command that profiles some jobs into a report; the clock stays as it is."""
    return [
        ncu, "--metrics", ",".join(metrics), "--clock-control", "none", "--profile-from-start", "off",
        "--force-overwrite", "--export", str(report), sys.executable, str(Path(__file__).resolve()), "--work", *jobs,
    ]  # fmt: skip


def profile(ncu: str, jobs: Sequence[str], out: Path, deadline: float) -> int:
    """Profile all jobs and write their exports; returns 1 if one is missing, else 0."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "raw.csv").unlink(missing_ok=True)
    log: list[str] = []
    metrics, missing = known_metrics(ncu, all_metrics())
    metrics, refused = accepted(ncu, metrics, out, log, deadline)
    missing += refused
    for name in missing:
        print(f"ncu has no metric {name}: left out", flush=True)
    found: dict[str, dict[str, tuple[str, str]]] = {}
    groups = [[job for job in jobs if job not in TILES], [job for job in jobs if job in TILES]]
    groups += [[job] for job in jobs]  # whatever did not come out of the two runs, one by one
    for group in groups:
        todo = [job for job in group if job not in found]
        left_s = deadline - time.monotonic()
        if not todo or left_s < 10:
            continue
        said, raw = run_ncu(ncu, metrics, todo, out / "raw.csv", log, left_s)
        found |= matched(read_raw(raw), done_jobs(said, todo))
        print(f"profiled {', '.join(job for job in todo if job in found) or 'nothing'}", flush=True)
    (out / "ncu.log").write_text("\n".join(log), encoding="utf-8")
    write_exports_of(found, out)
    about = about_this(ncu, missing)
    (out / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    lacking = [job for job in jobs if job not in found]
    if lacking:
        print(f"no profile of {', '.join(lacking)}; see {out / 'ncu.log'}")
    return int(bool(lacking))


def known_metrics(ncu: str, wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split metrics into those that `ncu` lists for this chip and those that it does not.

    Where it lists few of them, the list is not what was expected, and all are kept.
    """
    listed = subprocess.run([ncu, "--query-metrics", "--chips", "gh100"], capture_output=True, text=True, check=False)
    names = set(re.findall(r"^(\w+__\w+)", listed.stdout, re.M))
    # What the launch says and averages over instructions are in other lists.
    unlisted = [m for m in wanted if m.split(".")[0] not in names and not re.search("launch__|__average_", m)]
    if len(unlisted) > len(wanted) // 3:
        return list(wanted), []
    return [metric for metric in wanted if metric not in unlisted], unlisted


def accepted(ncu: str, metrics: list[str], out: Path, log: list[str], deadline: float) -> tuple[list[str], list[str]]:
    """Try metrics on a small product, without those that `ncu` refuses, until it takes the rest.

    Where it profiles nothing and does not say why, only the plainest are tried: those of the launch, and throughputs.
    """
    refused: list[str] = []
    while time.monotonic() < deadline - 60:
        said, raw = run_ncu(ncu, metrics, [PROBE], out / "raw.csv", log, 60)
        names = refused_names(said)
        named = [metric for metric in metrics if metric.split(".")[0] in names]
        if not named and not read_raw(raw):
            named = [
                metric for metric in metrics if not re.search("launch__|__throughput|dram__bytes|duration", metric)
            ]
        if not named:
            break
        refused += named
        metrics = [metric for metric in metrics if metric not in named]
    return metrics, refused


def refused_names(log: str) -> set[str]:
    r"""Return the metrics, without their suffixes, that a log of `ncu` says it does not have.

    >>> refused_names("==ERROR== Failed to find metric regex:^sm__pipes(\\.|$)")
    {'sm__pipes'}
    """
    return set(re.findall(r"[Ff]ailed to find metric (?:regex:)?\^?(\w+)", log))


def done_jobs(said: str, jobs: Sequence[str]) -> list[str]:
    """Return those of the jobs that a run says it has done, or all if it says nothing of any."""
    lines = re.findall(r"(done|FAILED) (\w+): ", said)
    return [job for job in jobs if ("done", job) in lines] if lines else list(jobs)


def run_ncu(
    ncu: str, metrics: Sequence[str], jobs: Sequence[str], raw: Path, log: list[str], limit_s: float
) -> tuple[str, str]:
    """Profile some jobs in one process; return what was said, and the raw export, which is also appended to a file."""
    report = raw.with_name("report")
    report.with_suffix(".ncu-rep").unlink(missing_ok=True)
    said = bounded(ncu_command(ncu, metrics, jobs, report), limit_s)
    log.append(said)
    print("\n".join(line for line in said.splitlines() if re.match("done|FAILED|==(ERROR|WARNING)", line)), flush=True)
    if not report.with_suffix(".ncu-rep").exists():
        return said, ""
    export = [ncu, "--import", f"{report}.ncu-rep", "--csv", "--page", "raw", "--print-units", "base"]
    text = bounded(export, 60)
    report.with_suffix(".ncu-rep").unlink()
    with raw.open("a", encoding="utf-8") as file:
        file.write(text)
    return said, text


def bounded(command: Sequence[str], limit_s: float) -> str:
    """Run a command for at most some seconds, end what it has started, and return all that it says."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **pipe, env=environment, start_new_session=True) as process:
        try:
            return process.communicate(timeout=limit_s)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"{process.communicate()[0]}\n==ERROR== stopped after {limit_s:.0f} s"


Kernel = dict[str, tuple[str, str]]
"""Value and unit of each column of a raw export for one profiled kernel."""


def read_raw(text: str) -> list[Kernel]:
    """Read `ncu --csv --page raw`: a line of names, a line of units, then one line per profiled kernel."""
    lines = text.splitlines()
    kernels: list[Kernel] = []
    starts = [place for place, line in enumerate(lines) if line.startswith('"ID"')]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        table = [row for row in csv.reader(lines[start:end]) if row]
        names, units = table[0], table[1]
        rows = [row for row in table[2:] if len(row) == len(names) and row[0].isdigit()]
        kernels += [dict(zip(names, zip(row, units, strict=False), strict=False)) for row in rows]
    return kernels


def matched(kernels: Sequence[Kernel], jobs: Sequence[str]) -> dict[str, Kernel]:
    """Give each job the next kernel with its name, in the order in which the jobs ran."""
    left, found = list(kernels), {}
    for job in jobs:
        name = kernel_of(job)
        ours = {kernel_of(other) for other in job_names()} - {""}
        for place, kernel in enumerate(left):
            called = kernel["Kernel Name"][0]
            if name in called if name else not any(other in called for other in ours):
                found[job] = kernel
                del left[: place + 1]
                break
    return found


def number(text: str) -> float | None:
    """Return the number that a cell holds, or None where `ncu` has none.

    >>> number("1,234.5"), number("n/a")
    (1234.5, None)
    """
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


def quantities(kernel: Kernel) -> list[tuple[str, float, str, str]]:
    """Return what an export holds: every metric that has a value, and the most frequent reasons to stall."""
    rows = [
        (quantity, value, kernel[metric][1], metric)
        for quantity, metric in METRICS.items()
        if metric in kernel and (value := number(kernel[metric][0])) is not None
    ]
    stalls = [
        (value, reason, stall_metric(reason))
        for reason in STALLS
        if stall_metric(reason) in kernel and (value := number(kernel[stall_metric(reason)][0])) is not None
    ]
    worst = sorted(stalls, reverse=True)[:SHOWN_STALLS]
    return rows + [(f"stalled: {reason.replace('_', ' ')}", value, "warps", metric) for value, reason, metric in worst]


def write_exports(kernels: Sequence[Kernel], jobs: Sequence[str], out: Path) -> None:
    """Write the exports of jobs from the kernels of a raw export."""
    out.mkdir(parents=True, exist_ok=True)
    write_exports_of(matched(kernels, jobs), out)


def write_exports_of(found: dict[str, Kernel], out: Path) -> None:
    """Write one CSV file per job."""
    for job, kernel in found.items():
        with (out / f"{job}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(FIELDS)
            writer.writerows(
                (quantity, f"{value:.10g}", unit, metric) for quantity, value, unit, metric in quantities(kernel)
            )


DEVICE_AND_VERSIONS = """
import torch, triton
from mlsys.measure.device import detect_device
device = detect_device()
print(*(device.name, device.driver, torch.__version__, triton.__version__), sep=";")
"""


def about_this(ncu: str, missing: Sequence[str]) -> dict[str, object]:
    """Return the device, the versions and what `ncu` did not have."""
    said = bounded([sys.executable, "-c", DEVICE_AND_VERSIONS], 60).strip().splitlines() or [""]
    tool = re.search(r"Version (\S+)", bounded([ncu, "--version"], 20))
    return {
        **dict(zip(("device", "driver", "torch", "triton"), said[-1].split(";"), strict=False)),
        "ncu": tool[1] if tool else "",
        "side": 4096,
        "dtype": "fp16",
        "measured_on": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "clock": "not fixed (--clock-control none); caches emptied before each pass",
        "missing": list(missing),
    }


if __name__ == "__main__":
    main()
