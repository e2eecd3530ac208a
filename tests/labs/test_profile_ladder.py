"""The script that profiles the ladder, with a stand-in for `ncu`, which is not here."""

import csv
import importlib
import json
import stat
import sys
from pathlib import Path
from runpy import run_path

import matplotlib as mpl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from mlsys.measure import records

pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts/profile_ladder.py"

COLUMNS = (
    "ID", "Process ID", "Kernel Name", "Device", "CC", "dram__bytes_read.sum", "gpu__time_duration.sum",
    "launch__registers_per_thread",
    *(f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio" for why in "barrier wait gmma drain".split()),
)  # fmt: skip
UNITS = ("", "", "", "", "", "byte", "ns", "register/thread", "inst", "inst", "inst", "inst")
KERNELS = (
    ("0", "1", "nvjet_hsh_256x128", "0", "9.0", "67,108,864", "213888", "168", "0.5", "0.25", "1.75", "n/a"),
    ("1", "1", "naive_kernel", "0", "9.0", "71000000", "300000000", "20", "0", "12.5", "0", "0.1"),
    ("2", "1", "pipelined_kernel", "0", "9.0", "71000000", "300000", "112", "2", "1", "3", "0"),
)
RAW = "==PROF== Connected to process 1 (/usr/bin/python3)\n" + "".join(
    ",".join(f'"{cell}"' for cell in line) + "\n" for line in (COLUMNS, UNITS, *KERNELS)
)

FAKE_NCU = """#!{python}
import sys
from pathlib import Path
words = sys.argv[1:]
if "--version" in words:
    print("Version 2025.3.1.0 (build 1)")
elif "--query-metrics" in words:
    print("\\n".join(name + "  # text" for name in {listed!r}))
elif "--import" in words:
    print(Path(words[words.index("--import") + 1]).read_text())
else:
    metrics = words[words.index("--metrics") + 1].split(",")
    jobs = words[words.index("--work") + 1:]
    refused = [m for m in metrics if m.startswith("lts__t_bytes")]
    for metric in refused:
        print("==ERROR== Failed to find metric regex:^" + metric.split(".")[0] + "(\\\\.|$)")
    if not refused:
        print("==PROF== Profiling \\"x\\" - 0: 0%....100% - 9 passes")
        lines, number = [], 0
        for job in jobs:
            if job in {failing!r}:
                print("FAILED " + job + ": RuntimeError: no")
                continue
            print("done " + job + ": relative error 1e-4")
            name = {names!r}.get(job, "gemm")
            lines.append(",".join('"' + cell + '"' for cell in (str(number), name, str(len(lines)))))
            number += 1
        Path(words[words.index("--export") + 1] + ".ncu-rep").write_text(
            '"ID","Kernel Name","gpu__time_duration.sum"\\n"","","ns"\\n' + "\\n".join(lines) + "\\n"
        )
"""


@pytest.fixture(scope="module")
def script():
    return run_path(str(SCRIPT), run_name="profile_ladder")


def exports(folder):
    return {path.stem: list(csv.DictReader(path.open())) for path in sorted(folder.glob("*.csv")) if path.stem != "raw"}


def test_a_raw_export_becomes_one_small_table_per_job(script, tmp_path):
    jobs = ["cublas", "01_naive", "06_pipelined"]
    script["write_exports"](script["read_raw"](RAW), jobs, tmp_path)
    found = exports(tmp_path)
    assert list(found) == sorted(jobs)
    values = {row["quantity"]: (row["value"], row["unit"]) for row in found["cublas"]}
    assert values["device memory bytes read"] == ("67108864", "byte")
    assert values["time"] == ("213888", "ns")
    assert values["registers per thread"] == ("168", "register/thread")
    stalls = [row["quantity"] for row in found["cublas"] if row["quantity"].startswith("stalled")]
    assert stalls == ["stalled: gmma", "stalled: barrier", "stalled: wait"]
    assert {row["quantity"]: row["value"] for row in found["01_naive"]}["stalled: wait"] == "12.5"


def test_every_job_has_a_kernel_that_its_source_names(script):
    names = {job: script["kernel_of"](job) for job in script["job_names"]()}
    assert names["01_naive"] == "naive_kernel"
    assert names["tile_16x16x64"] == names["06_pipelined"] == "pipelined_kernel"
    assert names["10_persistent"] == "persistent_kernel"
    assert names["cublas"] == ""
    rungs = [name for job, name in names.items() if job[0].isdigit()]
    assert len(set(rungs)) == len(rungs)


def test_the_tiles_are_those_of_the_benchmark(script):
    bench = run_path(str(ROOT / "labs/tiling/bench.py"))
    assert tuple(script["TILES"].values()) == bench["FLOAT16_TILES"]


@pytest.mark.parametrize("listed", ["all but the clock", "nothing"])
def test_what_ncu_refuses_is_left_out_and_what_fails_is_named(script, tmp_path, capsys, listed):
    known = [metric.split(".")[0] for metric in script["all_metrics"]() if "cycles_elapsed" not in metric]
    names = {job: script["kernel_of"](job) for job in script["job_names"]() if job != "cublas"}
    ncu = tmp_path / "ncu"
    failing = ["tile_16x16x64"]
    ncu.write_text(
        FAKE_NCU.format(
            python=sys.executable, listed=known if listed != "nothing" else [], failing=failing, names=names
        )
    )
    ncu.chmod(ncu.stat().st_mode | stat.S_IXUSR)
    out = tmp_path / "profiles"
    jobs = script["job_names"]()
    assert script["profile"](str(ncu), jobs, out, script["time"].monotonic() + 200) == 1
    said = capsys.readouterr().out
    assert "ncu has no metric lts__t_bytes.sum: left out" in said
    assert "no profile of tile_16x16x64" in said
    found = exports(out)
    assert set(found) == set(jobs) - set(failing)
    assert [row["value"] for row in found["tile_32x32x64"]] == ["0"]  # the first that was profiled in its run
    assert [row["value"] for row in found["01_naive"]] == ["1"]  # the second, after the library
    about = json.loads((out / "about.json").read_text())
    missing = {"lts__t_bytes.sum"} | ({"sm__cycles_elapsed.avg.per_second"} if listed != "nothing" else set())
    assert set(about["missing"]) == missing
    assert about["ncu"] == "2025.3.1.0"


def test_a_command_that_does_not_end_is_stopped_with_all_that_it_started(script):
    said = script["bounded"]([sys.executable, "-c", "import time; print('here', flush=True); time.sleep(60)"], 2)
    assert "here" in said
    assert "stopped after 2 s" in said


def test_every_rung_is_in_the_record_and_has_a_profile_and_the_figures_show_all(script, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book")
    figures = importlib.import_module("_figures.tiling")
    found = figures.profiles()
    assert set(found) == set(script["job_names"]())
    record = records.load("nvidia-h200")
    rungs = record.named("matmul ladder")
    assert [row.variant for row in rungs] == [rung[3:].replace("_", " ") for rung in script["rungs"]()]
    figures.rungs(rungs)
    assert len(plt.gca().patches) == len(rungs)
    figures.busy({rung: found[rung] for rung in [*script["rungs"](), "cublas"]})
    assert all(len(panel.patches) == len(rungs) + 1 for panel in plt.gcf().axes)
    plt.close("all")


def test_tiles_fetch_from_the_l2_what_the_rule_counts(monkeypatch):
    """The committed profiles against the chapter's count, N^3 (1/rows + 1/columns) numbers of two bytes."""
    monkeypatch.syspath_prepend(ROOT / "book")
    found = importlib.import_module("_figures.tiling").profiles()
    for rows, columns in [(16, 16), (32, 32), (64, 64), (128, 128), (128, 256)]:
        counted = 2 * 4096**3 * (1 / rows + 1 / columns)
        assert found[f"tile_{rows}x{columns}x64"]["bytes from L2 to SMs"] == pytest.approx(counted, rel=0.01)
