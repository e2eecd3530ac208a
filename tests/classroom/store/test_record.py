from pathlib import Path

from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.grading.verdicts import Verdict


def question(verdict: Verdict, points: float = 8) -> QuestionRecord:
    return QuestionRecord.of(verdict, question="c", title="", grade_id="c-test", max_points=points, seconds=0.1)


def test_points_follow_the_fraction_and_only_open_verdicts_wait() -> None:
    assert question(Verdict("slow", 0.25)).points == 2
    assert (question(Verdict("needs gpu")).points, question(Verdict("needs gpu")).waiting) == (0, 8)
    assert question(Verdict("wrong answer")).waiting == 0
    assert question(Verdict("needs review")).marked(5.5).waiting == 0


def test_record_survives_writing_and_reading(tmp_path: Path) -> None:
    record = Record(
        student="ann",
        lab="tiling",
        version="1",
        graded_at="2026-01-01T00:00:00+00:00",
        versions={"torch": "2"},
        repairs=("one",),
        questions=(question(Verdict.passed()), question(Verdict("error", message="line\n=1+1"))),
    )
    record.write(tmp_path / "deep" / "ann.json")
    assert Record.read(tmp_path / "deep" / "ann.json") == record
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["ann.json"]


def test_unreadable_record_counts_as_none(tmp_path: Path) -> None:
    assert Record.read(tmp_path / "missing.json") is None
    for content in ("", "[]", '{"questions": [], "repairs": []}', '{"questions": [{"a": 1}], "repairs": []}'):
        (tmp_path / "bad.json").write_text(content)
        assert Record.read(tmp_path / "bad.json") is None
