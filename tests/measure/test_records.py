import dataclasses
import json
from pathlib import Path

import pytest

from mlsys.errors import UserError
from mlsys.measure.records import BrokenRecord, Record, Row, Run, load, parse, save

ROW = Row(
    "lab",
    "tiling ladder",
    "32x32x32",
    (64, 64, 64),
    "fp32",
    2e-3,
    1e-3,
    3e-3,
    20.0,
    50.0,
    "TFLOP/s",
    {"cuBLAS": 0.5},
    {"cuBLAS": (0.4, 0.6)},
)
LAUNCH = Row("book", "launch latency", "graph", (1,), "fp32", 2e-6, 1e-6, 3e-6, None, None, None, {})
RUN = Run("abc1234", "2026-11-20", "a CPU, 2 threads", (ROW, LAUNCH))
RECORD = Record("NVIDIA T4", "580.1", {"torch": "2.11"}, {"allow_tf32": "False"}, (RUN,))


def changed(**change):
    return dataclasses.replace(RECORD, runs=(dataclasses.replace(RUN, rows=(dataclasses.replace(ROW, **change),)),))


def test_a_record_comes_back_as_it_was_saved(tmp_path):
    assert save(RECORD, tmp_path).name == "nvidia-t4.json"
    assert load("nvidia-t4", tmp_path) == RECORD


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_folder_that_cannot_be_written_is_named_with_the_cure(tmp_path, inside):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / inside
    with pytest.raises(UserError) as refused:
        save(RECORD, folder)
    why = "Not a directory" if inside else "File exists"
    assert str(refused.value) == f"{folder} cannot be written ({why}): name another folder with --out"


def test_a_record_without_clock_power_and_reference_times_is_still_read():
    older = json.loads(json.dumps(dataclasses.asdict(RECORD)))
    for row in older["runs"][0]["rows"]:
        del row["reference_s"], row["sm_clock_mhz"], row["power_w"]
    assert parse(json.dumps(older), "older.json") == RECORD


def test_clock_power_and_reference_times_come_back_as_they_were_saved(tmp_path):
    record = changed(reference_s={"cuBLAS": 1e-3}, sm_clock_mhz=1755.0, power_w=690.5)
    save(record, tmp_path)
    assert load("nvidia-t4", tmp_path) == record


def test_committed_records_are_valid():
    paths = list((Path(__file__).parents[2] / "labs/results").rglob("*.json"))
    assert len({path.parent for path in paths}) == 2  # kernels of the labs and the book, and those of the compiler
    for path in paths:
        assert load(path.stem, path.parent).rows


RECORDS = sorted((Path(__file__).parents[2] / "labs/results").glob("*.json"))
CHAINS = {precision: f"mma chain {precision}" for precision in ("fp16", "bf16", "tf32", "int8", "fp8")} | {
    "fp32": "fma chain fp32"
}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_nothing_in_a_record_computes_faster_than_its_roofs(path):
    record = load(path.stem)
    roofs = {row.variant: row.achieved for row in record.named("independent roofs")}
    drawn = [row for row in record.rows if row.rate_unit == "TFLOP/s" and row.name != "independent roofs"]
    assert {row.dtype for row in drawn} >= {"fp32", "fp16"}
    too_fast = [(row.name, row.variant, row.shape) for row in drawn if row.achieved > roofs[CHAINS[row.dtype]]]
    assert too_fast == []


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_no_sum_of_two_vectors_is_faster_than_the_triad_that_moves_as_much(path):
    record = load(path.stem)
    (triad,) = record.named("independent roofs", "stream triad")
    sums = [*record.named("vector add"), *record.named("copy bandwidth", "add"), *record.named("roofline add")]
    assert max(row.achieved for row in sums) < 1.01 * triad.achieved


def test_a_variant_that_a_run_did_not_make_is_kept(tmp_path):
    save(RECORD, tmp_path)
    path = save(changed(variant="64x64x32"), tmp_path)
    kept = parse(path.read_text(), "kept").rows
    assert [row.variant for row in kept] == ["32x32x32", "graph", "64x64x32"]


def test_an_unknown_device_lists_the_known_ones(tmp_path):
    save(RECORD, tmp_path)
    with pytest.raises(LookupError, match="did you mean 'nvidia-t4'"):
        load("nvidia-t44", tmp_path)


def test_an_unknown_measurement_lists_the_known_ones():
    with pytest.raises(LookupError, match="Known: launch latency, tiling ladder"):
        RECORD.named("softmax")


def test_a_record_older_than_a_measurement_says_how_to_measure_it():
    with pytest.raises(LookupError, match=r"T4 \(2026-11-20\) 'host add'.*run `mlsys bench` on the device"):
        RECORD.named("host add")
    with pytest.raises(
        LookupError, match="unknown variant of 'tiling ladder' .*'64x64x32'.*Known: 32x32x32.*mlsys bench"
    ):
        RECORD.named("tiling ladder", "64x64x32")
    assert RECORD.named("tiling ladder", "32x32x32") == (ROW,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"median_s": 0.0}, "times out of order"),
        ({"p20_s": 1.0}, "times out of order"),
        ({"achieved": 70.0}, "reaches 70 of a ceiling of 50 TFLOP/s"),
        ({"achieved": None}, "none may stand without the others"),
        ({"ceiling": None}, "none may stand without the others"),
        ({"rate_unit": "TB/s"}, "unknown unit 'TB/s'; there are TFLOP/s, GB/s"),
        ({"suite": "books"}, "suite 'books'; there are lab, book"),
        ({"shape": ()}, "a shape is one or more positive ints"),
        ({"shape": (64, 0.5)}, "a shape is one or more positive ints"),
        ({"intervals": {"cuBLAS": (0.6, 0.7)}}, "the ratio to cuBLAS is not within its interval"),
        ({"intervals": {"torch": (0.6, 0.7)}}, "the ratio to torch is not within its interval"),
        ({"reference_s": {"torch": 1e-3}}, "torch is no peer"),
        ({"reference_s": {"cuBLAS": 0.0}}, "its time of 0 s is not above zero"),
        ({"sm_clock_mhz": 0.0}, "a reading of 0 MHz is not above zero"),
        ({"power_w": -1.0}, "a reading of -1 W is not above zero"),
    ],
)
def test_impossible_measurements_are_refused(change, message):
    with pytest.raises(BrokenRecord, match=message):
        parse(json.dumps(dataclasses.asdict(changed(**change))), "t4.json")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"runs": []}', '{"runs": [{"rows": [{"shape": 3}]}]}', '{"runs": [], "device": "T4"}'],
)
def test_what_is_no_record_is_refused_with_its_place(text):
    with pytest.raises(BrokenRecord, match="t4.json is not a benchmark record"):
        parse(text, "t4.json")


def test_measurements_that_a_run_did_not_make_are_kept_if_they_are_of_the_same_conditions(tmp_path):
    path = save(RECORD, tmp_path)
    with pytest.raises(UserError, match=r"driver = .*--suite all"):
        save(dataclasses.replace(changed(), driver="1.2"), tmp_path)
    assert parse(path.read_text(), "kept") == RECORD
    measured_again = dataclasses.replace(ROW, median_s=2.5e-3)
    second = Run("def5678", "2026-11-21", "another CPU, 2 threads", (measured_again,))
    later = save(dataclasses.replace(RECORD, runs=(second,)), tmp_path)
    both = parse(later.read_text(), "both")
    assert both.runs == (dataclasses.replace(RUN, rows=(LAUNCH,)), second)
    assert both.rows == (LAUNCH, measured_again)
    assert both.label.endswith("measured 2026-11-20 and 2026-11-21")
    assert (both.host_of("tiling ladder"), both.host_of("launch latency")) == (second.host, RUN.host)
    third = Run("0123456", "2026-11-22", RUN.host, (ROW,))
    save(dataclasses.replace(RECORD, runs=(third,)), tmp_path)
    assert [run.commit for run in parse(path.read_text(), "third").runs] == ["abc1234", "0123456"]
    save(RECORD, tmp_path)  # all of its measurements: it replaces the older one
    assert parse(path.read_text(), "again") == RECORD
