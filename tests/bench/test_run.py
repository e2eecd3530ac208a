import dataclasses
import json
import subprocess
import time

import pytest

from mlsys.bench import run as bench
from mlsys.bench.row import row
from mlsys.bench.table import conditions, rows_table
from mlsys.cli import bench as cli_bench
from mlsys.cli import main as cli
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device, torch_sees_gpu
from mlsys.measure.records import Row, load
from mlsys.units import ureg

CEILINGS = Ceilings(Device("gpu", "NVIDIA T4"), ureg("300 GB/s"), {"fp32": ureg("8 TFLOP/s")})
ROW = Row("book", "softmax", "torch", (64, 32), "fp16", 2e-6, 1e-6, 3e-6, 150.0, 300.0, "GB/s", {"torch.compile": 0.8})


def test_a_failing_measurement_ends_alone_and_is_named(capsys):
    def breaks(ceilings):
        yield ROW
        raise RuntimeError("out of memory")

    too_fast = dataclasses.replace(ROW, achieved=500.0)
    later = dataclasses.replace(ROW, name="layernorm")
    found = bench.measure({"softmax": breaks, "layernorm": lambda ceilings: [too_fast, later]}, CEILINGS)
    assert found.rows == [ROW, later]
    assert found.left_out[0] == "softmax: RuntimeError: out of memory"
    assert "reaches 500 of a ceiling of 300 GB/s" in found.left_out[1]
    assert "Traceback" in capsys.readouterr().out


@pytest.mark.alone
def test_a_row_has_the_rate_of_its_work_and_the_interval_of_each_peer():
    found = row(
        "lab",
        "wait",
        "once",
        (1,),
        "int8",
        call=lambda: time.sleep(2e-3),
        peers={"twice": lambda: time.sleep(4e-3)},
        work=3.0,
        ceiling=1e9,
        rate_unit="GB/s",
        on_gpu=False,
        budget_s=0.05,
    )
    assert found.achieved * found.median_s == pytest.approx(3)
    low, high = found.intervals["twice"]
    assert low <= found.peers["twice"] <= high
    assert found.peers["twice"] == pytest.approx(2, rel=0.4)
    assert 4e-3 <= found.reference_s["twice"] < 8e-3


def test_a_sweep_is_one_line_and_its_peers_another():
    wider = dataclasses.replace(ROW, shape=(64, 64), achieved=300.0, peers={"torch.compile": 1.1})
    launch = Row("book", "launch latency", "graph", (1,), "fp32", 2e-6, 1e-6, 3e-6, None, None, None, {})
    assert rows_table([ROW, launch, wider]).splitlines() == [
        "softmax, torch, fp16: 150 (50%) 300 (100%) GB/s",
        "    speed relative to torch.compile: 0.80 1.10",
        "launch latency, graph, fp32: 2 us",
    ]


def test_clock_and_power_are_shown_where_they_were_read():
    read = dataclasses.replace(ROW, shape=(64, 64), sm_clock_mhz=1755.0, power_w=690.4)
    assert rows_table([ROW, read]).splitlines()[-2:] == ["    SM clock, MHz: - 1755", "    power, W: - 690"]
    assert "SM clock" not in rows_table([ROW])
    assert conditions([ROW, read]) == "SM clock: 1,755 to 1,755 MHz in 1 of 2 rows; power: 690 to 690 W in 1 of 2 rows"


def test_suites_choose_what_is_measured(tmp_path):
    (tmp_path / "labs" / "adding").mkdir(parents=True)
    (tmp_path / "labs" / "adding" / "bench.py").write_text("def rows(names, ceilings): return []\n")
    lab, book = (set(bench.measurements_of(tmp_path, suite)) for suite in ("lab", "book"))
    assert lab == {"labs/adding"}
    assert {"copy bandwidth", "launch latency"} <= book
    assert set(bench.measurements_of(tmp_path, "all")) == lab | book


@pytest.mark.skipif(torch_sees_gpu(), reason="has a GPU")
def test_without_a_gpu_bench_says_what_to_do(capsys):
    assert cli.main(["bench", "--suite", "book", "--commit", "abc"]) == 2
    assert "no CUDA GPU here" in capsys.readouterr().err


@pytest.fixture
def pretended_gpu(monkeypatch):
    monkeypatch.setattr(cli_bench, "detect_device", lambda: CEILINGS.device)
    monkeypatch.setattr(cli_bench, "refuse_shared_gpu", lambda: None)
    monkeypatch.setattr(cli_bench, "measure_ceilings", lambda device: CEILINGS)
    monkeypatch.setattr(cli_bench, "measurements_of", lambda root, suite: {"softmax": lambda ceilings: [ROW]})


def test_a_run_writes_a_record_that_another_machine_takes_in(pretended_gpu, tmp_path, capsys):
    pytest.importorskip("torch")
    assert cli.main(["bench", "--suite", "book", "--commit", "abc1234", "--out", str(tmp_path / "there")]) == 0
    printed = capsys.readouterr().out
    assert "softmax, torch, fp16: 150 (50%) GB/s" in printed
    assert "SM clock: not read; power: not read" in printed
    made = tmp_path / "there" / "nvidia-t4.json"
    assert cli.main(["bench", "--import", str(made), "--out", str(tmp_path / "here")]) == 0
    taken = load("nvidia-t4", tmp_path / "here")
    assert [(run.commit, run.rows) for run in taken.runs] == [("abc1234", (ROW,))]
    assert taken.flags["allow_tf32"] in ("True", "False")
    assert "torch" in taken.versions


def test_a_folder_that_cannot_be_written_is_named_before_anything_is_measured(
    pretended_gpu, monkeypatch, tmp_path, capsys
):
    pytest.importorskip("torch")
    command = ["bench", "--suite", "book", "--commit", "abc1234", "--out"]
    assert cli.main([*command, str(tmp_path)]) == 0
    made = tmp_path / "nvidia-t4.json"
    kept, said = made.read_bytes(), f"mlsys: {made} cannot be written (File exists): name another folder with --out\n"
    capsys.readouterr()
    assert cli.main(["bench", "--import", str(made), "--out", str(made)]) == 2
    assert capsys.readouterr().err == said
    monkeypatch.setattr(cli_bench, "measure_ceilings", lambda device: pytest.fail("measured"))
    assert cli.main([*command, str(made)]) == 2
    assert capsys.readouterr().err == said
    assert made.read_bytes() == kept


def test_a_run_with_something_left_out_keeps_the_rest_and_ends_with_status_1(pretended_gpu, monkeypatch, tmp_path):
    pytest.importorskip("torch")

    def breaks(ceilings):
        raise RuntimeError("out of memory")

    both = {"softmax": breaks, "layernorm": lambda ceilings: [ROW]}
    monkeypatch.setattr(cli_bench, "measurements_of", lambda root, suite: both)
    assert cli.main(["bench", "--suite", "book", "--commit", "abc1234", "--out", str(tmp_path)]) == 1
    assert load("nvidia-t4", tmp_path).rows == (ROW,)


def test_a_suite_that_failed_altogether_does_not_replace_the_older_record(pretended_gpu, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    command = ["bench", "--suite", "all", "--commit", "abc1234", "--out", str(tmp_path)]
    in_lab = dataclasses.replace(ROW, suite="lab")
    monkeypatch.setattr(
        cli_bench, "measurements_of", lambda root, suite: {"a": lambda _: [ROW], "b": lambda _: [in_lab]}
    )
    assert cli.main(command) == 0

    def breaks(ceilings):
        raise RuntimeError("an illegal memory access")

    monkeypatch.setattr(cli_bench, "measurements_of", lambda root, suite: {"a": lambda _: [ROW], "b": breaks})
    assert cli.main(command) == 1
    assert load("nvidia-t4", tmp_path).rows == (ROW, in_lab)
    assert load("nvidia-t4", tmp_path / "incomplete").rows == (ROW,)


def test_a_commit_whose_files_were_changed_is_called_dirty(tmp_path):
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        (tmp_path / "file").write_text("as committed")
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True)
    clean = bench.commit_of(tmp_path)
    (tmp_path / "file").write_text("changed")
    assert bench.commit_of(tmp_path) == f"{clean}-dirty"


def test_a_suite_beside_one_of_another_driver_is_refused_at_once(pretended_gpu, monkeypatch, tmp_path, capsys):
    pytest.importorskip("torch")
    assert cli.main(["bench", "--suite", "book", "--commit", "abc1234", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"driver": "1.2"}))
    monkeypatch.setattr(cli_bench, "measure_ceilings", lambda device: pytest.fail("measured"))
    assert cli.main(["bench", "--suite", "lab", "--commit", "abc1234", "--out", str(tmp_path)]) == 2
    assert "measured with driver = 1.2" in capsys.readouterr().err


def test_only_the_measurements_that_are_named_are_made():
    known = {"stride": list, "launch latency": list}
    assert list(bench.chosen(known, ["stride"])) == ["stride"]
    assert bench.chosen(known, []) == known
    with pytest.raises(LookupError, match="unknown measurement 'strides'.*did you mean 'stride'"):
        bench.chosen(known, ["strides"])
