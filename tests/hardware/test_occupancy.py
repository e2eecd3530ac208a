import csv
import random
from pathlib import Path

import pytest
from helpers import nvidia_occupancy

from mlsys import Hardware
from mlsys.errors import InvalidValue
from mlsys.hardware import UnknownField
from mlsys.hardware.occupancy import SM, occupancy

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/occupancy.csv"
PROFILES = ROOT / "labs/tiling/ladder/profiles"
CHIPS = tuple(nvidia_occupancy.CHIPS)


def golden() -> list[dict[str, str]]:
    """Twenty launches: published examples, and arithmetic done by hand with the rules of NVIDIA's calculator."""
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def profile(name: str) -> dict[str, float]:
    with (PROFILES / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return {line["quantity"]: float(line["value"]) for line in csv.DictReader(file)}


@pytest.mark.parametrize("row", golden(), ids=lambda row: f"{row['chip']} {row['threads']} x {row['registers']}")
def test_published_examples_and_arithmetic_by_hand(row: dict[str, str]) -> None:
    found = occupancy(
        row["chip"],
        threads=int(row["threads"]),
        registers=int(row["registers"]),
        shared_bytes=int(row["shared_bytes"]),
    )
    assert found.blocks == int(row["blocks"])
    assert 100 * found.share == pytest.approx(float(row["percent"]))
    assert " and ".join(found.limited_by) == row["limited_by"]


@pytest.mark.skipif(nvidia_occupancy.header_folder() is None, reason="needs triton's copy of cuda_occupancy.h, and cc")
def test_nvidias_calculator_agrees_on_drawn_launches_and_on_the_golden_ones(tmp_path: Path) -> None:
    draw = random.Random(2)
    launches = [(r["chip"], int(r["threads"]), int(r["registers"]), int(r["shared_bytes"])) for r in golden()]
    for _ in range(6000):
        chip = draw.choice(CHIPS)
        most = nvidia_occupancy.CHIPS[chip].shared_per_block
        shared = draw.choice((0, draw.randrange(8192), draw.randrange(most + 1), most))
        launches.append((chip, draw.randint(1, 1024), draw.randint(1, 255), shared))
    expected = nvidia_occupancy.blocks(nvidia_occupancy.build(tmp_path), launches)
    found = [occupancy(c, threads=t, registers=r, shared_bytes=s).blocks for c, t, r, s in launches]
    assert [(launch, f, e) for launch, f, e in zip(launches, found, expected, strict=True) if f != e] == []
    assert {0, 1, 2, 16, 32} <= set(expected), "the drawn launches reach the ends of the range"


@pytest.mark.parametrize("path", sorted(PROFILES.glob("*.csv")), ids=lambda path: path.stem)
def test_no_profiled_kernel_has_more_warps_than_the_limits_allow(path: Path) -> None:
    """The profiler's counters on an H200; its shared memory includes what the system reserves in a block."""
    seen = profile(path.stem)
    found = occupancy(
        "h200",
        threads=int(seen["threads per program"]),
        registers=int(seen["registers per thread"]),
        shared_bytes=int(seen["shared memory per program"]) - 1024,
    )
    assert 0.95 * found.share < seen["achieved occupancy"] / 100 <= found.share or path.stem == "cublas"
    if path.stem == "cublas":  # some warps of its only block are done before the others
        assert found.blocks == 1
        assert 0.5 * found.share < seen["achieved occupancy"] / 100 <= found.share


def test_an_unused_resource_sets_no_limit() -> None:
    assert set(occupancy("t4", threads=32, registers=0).limits) == {"warps", "blocks"}
    assert "registers" not in occupancy("h100-sxm", threads=32, registers=0).limits


def test_a_block_holds_warps_and_not_threads() -> None:
    """One thread more than three warps costs a fourth, with its registers."""
    full, more = (occupancy("a100-80gb-sxm", threads=threads, registers=64) for threads in (96, 97))
    assert (full.warps_per_block, more.warps_per_block) == (3, 4)
    assert more.limits["registers"] < full.limits["registers"]


def test_more_of_anything_never_makes_room() -> None:
    draw = random.Random(3)
    for _ in range(300):
        launch = {
            "threads": draw.randint(1, 992),
            "registers": draw.randint(1, 200),
            "shared_bytes": draw.randrange(60000),
        }
        chip = draw.choice(CHIPS)
        here = occupancy(chip, **launch).blocks
        for name, step in (("threads", 32), ("registers", 1), ("shared_bytes", 128)):
            assert occupancy(chip, **launch | {name: launch[name] + step}).blocks <= here


def test_the_limits_are_those_that_a_driver_reports() -> None:
    for name, reported in nvidia_occupancy.CHIPS.items():
        sm = SM.of(Hardware.get(name))
        assert (sm.threads, sm.shared_bytes, sm.shared_bytes_per_block) == (
            reported.threads_per_sm,
            reported.shared_per_sm,
            reported.shared_per_block,
        )
        assert sm.shared_reserved == reported.reserved


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (
            {"threads": 1056, "registers": 32},
            "threads must be at most 1024 .a block has at most 1024 threads., got 1056",
        ),
        ({"threads": 0, "registers": 32}, "threads must be a positive integer, got 0"),
        ({"threads": 32, "registers": 256}, "registers must be at most 255, got 256: the compiler spills"),
        ({"threads": 32, "registers": -1}, "registers must be"),
        ({"threads": 32, "registers": 32, "shared_bytes": 70000}, "shared_bytes must be at most 65536, got 70000"),
    ],
)
def test_a_launch_that_no_block_can_have_is_refused_with_what_is_allowed(launch: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        occupancy("t4", **launch)


def test_a_chip_without_sms_says_which_limit_is_missing() -> None:
    with pytest.raises(UnknownField, match="TPU v4: no sourced 'threads_per_sm'"):
        occupancy("tpu-v4", threads=32, registers=32)
