"""Without a GPU, the committed record stands for the attacks that need one, as long as it is about the present list."""

import csv

import pytest
from helpers.on_gpu import read_records
from helpers.redteam_record import HERE, RESULTS, digest_of_list

DIGEST = digest_of_list()
KINDS = ("attack", "twin")
RECORDS = read_records(RESULTS)
HOW = "run `python -m pytest tests/redteam/test_redteam_gpu.py -m gpu` on a GPU and commit tests/redteam/results"


def test_a_record_is_about_the_present_list():
    if not RECORDS:
        pytest.skip(f"the attacks that need a GPU have no record yet: {HOW}")
    assert [record["device"] for record in RECORDS if record["list"] == DIGEST] != [], HOW


@pytest.mark.parametrize("record", [record for record in RECORDS if record["list"] == DIGEST])
def test_every_attack_in_it_got_its_verdict_and_no_points_and_honest_work_lost_none(record):
    with (HERE / "gpu.csv").open(newline="") as file:
        due = {(row["sample"], kind): row["verdict"].split(" or ") for row in csv.DictReader(file) for kind in KINDS}
    found = {(row["sample"], row["kind"]): row for row in record["attacks"]}
    assert found.keys() == due.keys()
    assert [row for key, row in found.items() if row["verdict"] not in due[key] or row["points"] != 0] == []
    assert record["honest_lost"] == []
