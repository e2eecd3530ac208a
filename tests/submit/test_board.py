"""The race board: pseudonyms, the best ratio of each student, and lines where they belong."""

import re

import pytest

from mlsys.classroom.overview.kernels import roof_of
from mlsys.classroom.store.record import QuestionRecord
from mlsys.grading.timed import Timed
from mlsys.submit.board import pseudonyms, races

from .conftest import Course, serving

H200 = "NVIDIA H200"


def raced(verdict: str, *ratios: float, device: str = H200) -> QuestionRecord:
    timed = tuple(Timed(device, "1024", "fp32", 1e-3 / one, 1e-3, one, 2e9, 1e6) for one in ratios)
    return QuestionRecord("d", "Be fast", "d-speed", verdict, 0.0, 4.0, timed=timed)


def test_pseudonyms_are_unique_stable_and_differ_from_lab_to_lab() -> None:
    students = [f"student{number}" for number in range(5000)]
    names = pseudonyms("secret", "tiling", students)
    assert len(set(names.values())) == 5000
    assert names == pseudonyms("secret", "tiling", students[::-1])
    elsewhere = pseudonyms("secret", "roofline", students)
    assert sum(names[one] == elsewhere[one] for one in students) < 50
    assert not any(word in name for name in names.values() for word in ("student", "1000"))


def test_the_best_ratio_of_each_counts_and_what_is_not_right_does_not() -> None:
    names = {"ann": "keen owl", "bob": "calm lynx", "cy": "swift ibis"}
    found = [
        ("ann", [raced("passed", 0.5)]),
        ("ann", [raced("passed", 0.9)]),
        ("ann", [raced("slow", 0.2)]),
        ("bob", [raced("slow", 0.3)]),
        ("cy", [raced("suspicious", 9.0)]),
        ("left the roster", [raced("passed", 2.0)]),
    ]
    (race,) = races(found, names)
    assert [(lane.pseudonym, lane.ratio) for lane in race.lanes] == [("keen owl", 0.9), ("calm lynx", 0.3)]
    roof = roof_of(H200, "fp32")
    assert roof is not None
    assert race.ceiling == pytest.approx(1e-3 / max(1e6 / roof.bytes_per_s, 2e9 / roof.flops_per_s))


def test_lines_and_bars_stand_at_their_ratios() -> None:
    (race,) = races([("ann", [raced("passed", 0.5)])], {"ann": "keen owl"})
    chart = race.chart("keen owl")
    assert race.ceiling is not None
    ends = {kind: float(re.findall(rf'class="{kind}" x1="([\d.]+)"', chart)[0]) for kind in ("reference", "ceiling")}
    start, width = (float(one) for one in re.findall(r'class="bar own" x="(\d+)" y="\d+" width="([\d.]+)"', chart)[0])
    assert (ends["reference"] - start) * 0.5 == pytest.approx(width, abs=0.1)
    assert (ends["reference"] - start) * race.ceiling == pytest.approx(ends["ceiling"] - start, rel=0.02)


def test_a_device_without_a_record_has_no_ceiling_and_says_so() -> None:
    (race,) = races([("ann", [raced("passed", 0.5, device="Another GPU")])], {"ann": "keen owl"})
    assert race.ceiling is None
    assert "No ceiling" in race.note
    assert "ceiling" not in race.chart()


def test_there_is_no_board_unless_the_instructor_says_so(course: Course) -> None:
    with serving(course) as off:
        assert off.client("ann").get("/board/adding")[0] == 404
        assert "Race board" not in off.client("ann").get("/lab/adding")[1]
    with serving(course, race_boards=("adding",)) as on:
        status, text = on.client("ann").get("/board/adding")
        assert (status, "Nobody has raced yet" in text) == (200, True)
        assert "/board/adding" in on.client("ann").get("/lab/adding")[1]
