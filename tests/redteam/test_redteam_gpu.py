"""Attacks that need a GPU, graded end to end on one: `python -m pytest tests/redteam/test_redteam_gpu.py -m gpu`.

With `-k "[attack"` or `-k "[twin"` it grades one half of them. It writes the record that is committed,
`tests/redteam/results/<device>.json`; `test_redteam_record.py` holds the record to the present list.
"""

import os
from typing import Any

import pytest
from helpers.on_gpu import GRADING_CONFIG, needs_gpu, read_records, write_record
from helpers.redteam_record import RESULTS, digest_of_list
from helpers.redteam_samples import Attack, Graded, grade_attacks, read_attacks

from mlsys.measure.device import gpu_device

ATTACKS = read_attacks("gpu")
KINDS = ("attack", "twin")


@pytest.fixture(scope="module", params=KINDS)
def graded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Graded]:
    """The attacks, then their twins: two classes, so that either can be graded and recorded by itself."""
    kind = request.param
    found = grade_attacks(
        tmp_path_factory.mktemp(f"redteam-{kind}"),
        ATTACKS,
        GRADING_CONFIG,
        workers=len(os.sched_getaffinity(0)),
        kinds=[kind],
    )
    rows = []
    for attack in ATTACKS:
        verdict, points, message = found.found(attack, kind)
        rows.append(
            {
                "sample": attack.name,
                "kind": kind,
                "question": attack.question,
                "verdict": verdict,
                "points": points,
                "message": message.split("\n")[0][:200],
            }
        )
    honest_lost = [" ".join([kind, *lost[:3]]) for lost in found.lost_by_honest()]
    write_record(RESULTS, with_other_kind(kind, rows, honest_lost))
    return kind, found


def with_other_kind(kind: str, rows: list[dict[str, Any]], honest_lost: list[str]) -> dict[str, Any]:
    """Add what the record of this device holds of the other kind, if it is about the same list."""
    device, digest = gpu_device().name, digest_of_list()
    for record in read_records(RESULTS):
        if record["device"] == device and record["list"] == digest:
            rows = [row for row in record["attacks"] if row["kind"] != kind] + rows
            honest_lost = [one for one in record["honest_lost"] if not one.startswith(f"{kind} ")] + honest_lost
    return {
        "list": digest,
        "attacks": sorted(rows, key=lambda row: (row["kind"], row["sample"])),
        "honest_lost": honest_lost,
    }


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_on_a_gpu_scores_nothing_and_gets_its_verdict(graded: tuple[str, Graded], attack: Attack) -> None:
    kind, found = graded
    verdict, points, message = found.found(attack, kind)
    assert verdict in attack.verdicts, message
    assert points == 0, message


@pytest.mark.gpu
@needs_gpu
@pytest.mark.timeout(1800)
def test_honest_work_on_the_same_gpu_keeps_its_points(graded: tuple[str, Graded]) -> None:
    assert graded[1].lost_by_honest() == []
