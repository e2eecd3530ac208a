from mlsys.classroom.store.record import QuestionRecord
from mlsys.grading.verdicts import Verdict


def question(verdict: Verdict, points: float = 8) -> QuestionRecord:
    return QuestionRecord.of(verdict, question="c", title="", grade_id="c-test", max_points=points, seconds=0.1)


def test_points_follow_the_fraction_and_only_open_verdicts_wait() -> None:
    assert question(Verdict("slow", 0.25)).points == 2
    assert (question(Verdict("needs gpu")).points, question(Verdict("needs gpu")).waiting) == (0, 8)
    assert question(Verdict("wrong answer")).waiting == 0
    assert question(Verdict("needs review")).marked(5.5).waiting == 0
