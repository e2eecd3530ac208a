"""Marks that people give on our page: one store with formgrader, nobody's name, nothing overwritten in silence."""

import re
import threading
from pathlib import Path

import pytest

from mlsys.classroom.gradebook.marks import marked_records, marks_of
from mlsys.classroom.marking.answers import CHANGED, MARKED, TESTED, WAITING, Marking, Outdated
from mlsys.classroom.marking.rubric import Item, joined, rubric_of, save_rubric, split, total
from mlsys.classroom.store.backup import backups
from mlsys.classroom.store.store import FileStore
from mlsys.cli.main import main
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError

from .conftest import Class, Client

REPOSITORY = Path(__file__).parents[3]


def of(marking: Marking, student: str, question: str = "e"):  # type: ignore[no-untyped-def]
    (answer,) = [one for one in marking.answers(question) if one.student == student]
    return answer


def in_gradebook(tree: CourseTree, student: str) -> tuple[float | None, bool, str | None]:
    """Points, whether they wait, and comment of question e, as formgrader reads them."""
    with open_gradebook(tree) as gradebook:
        (notebook,) = gradebook.find_submission("adding", student).notebooks
        (grade,) = [one for one in notebook.grades if one.cell.name == "e-why"]
        (remark,) = [one for one in notebook.comments if one.cell.name == "e-why"]
        return grade.manual_score, grade.needs_manual_grade, remark.manual_comment


def test_a_mark_is_the_same_in_the_gradebook_the_page_and_the_scores(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann")
    assert (answer.state, answer.points) == (WAITING, None)
    marking.save("e", answer.key, answer.seen, 1.5, "see *this*")
    assert in_gradebook(course.tree, "ann") == (1.5, False, "see *this*")
    page = course.tree.feedback("adding", "ann").read_text()
    assert "see <em>this</em>" in page
    assert "needs review" not in page
    record = marked_records(FileStore(course.tree), "adding", marks_of(course.tree, "adding"))["ann"]
    assert record is not None
    assert {one.points for one in record.questions if one.question == "e"} == {1.5}
    assert FileStore(course.tree).scores("adding", "ann").last_marked("e").points == 1.5  # type: ignore[union-attr]


def test_a_gradebook_without_the_submissions_takes_no_marks(course: Class) -> None:
    course.tree.gradebook.unlink()
    with pytest.raises(
        UserError, match="lacks 3 graded submissions to adding, such as that of ann: run `mlsys grade adding`"
    ):
        course.marking.check()


def test_an_older_gradebook_takes_no_mark_and_what_it_lacks_stays_known(course: Class) -> None:
    marking, older = course.marking, course.tree.gradebook.read_bytes()
    answer, other = of(marking, "ann"), of(marking, "cy")
    marking.save("e", answer.key, answer.seen, 1.5, "so")
    course.tree.gradebook.write_bytes(older)
    with pytest.raises(
        UserError, match="lacks 1 of the marks that people gave.*nothing was saved: `mlsys grade adding`"
    ):
        marking.save("e", other.key, other.seen, 2, "")
    assert course.tree.gradebook.read_bytes() == older
    assert FileStore(course.tree).marks("adding")["ann"].points == {"e-why": 1.5}


def test_a_mark_given_in_formgrader_is_the_one_on_our_page(course: Class) -> None:
    with open_gradebook(course.tree) as gradebook:
        (notebook,) = gradebook.find_submission("adding", "ann").notebooks
        for grade in notebook.grades:
            if grade.cell.name == "e-why":
                grade.manual_score, grade.needs_manual_grade = 0.5, False
        for remark in notebook.comments:
            if remark.cell.name == "e-why":
                remark.manual_comment = "from there"
        gradebook.db.commit()
    answer = of(course.marking, "ann")
    assert (answer.state, answer.points, answer.comment) == (MARKED, 0.5, "from there")


def test_of_two_people_who_mark_at_once_the_second_sees_the_first_and_overwrites_nothing(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann")
    marking.save("e", answer.key, answer.seen, 2, "first")
    with pytest.raises(Outdated, match="marked by someone else.*Nothing was saved"):
        marking.save("e", answer.key, answer.seen, 0, "second")
    assert in_gradebook(course.tree, "ann")[::2] == (2, "first")
    now = of(marking, "ann")
    marking.save("e", now.key, now.seen, 1, "third")
    assert in_gradebook(course.tree, "ann")[::2] == (1, "third")


def test_of_many_at_the_same_time_exactly_one_is_written(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann")
    saved, refused = [], []

    def save(number: int) -> None:
        try:
            marking.save("e", answer.key, answer.seen, number / 4, f"by {number}")
            saved.append(number)
        except Outdated:
            refused.append(number)

    people = [threading.Thread(target=save, args=(number,)) for number in range(4)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert (len(saved), len(refused)) == (1, 3)
    assert in_gradebook(course.tree, "ann")[::2] == (saved[0] / 4, f"by {saved[0]}")


def test_while_a_run_is_grading_nothing_is_saved(course: Class, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlsys.classroom.marking.answers.MAX_WAIT_S", 0.1)
    answer = of(course.marking, "ann")
    with FileStore(course.tree).lock(), pytest.raises(UserError, match="another grading run"):
        course.marking.save("e", answer.key, answer.seen, 1, "")
    assert in_gradebook(course.tree, "ann")[0] is None


@pytest.mark.parametrize("points", [-0.5, 2.5])
def test_points_beyond_those_of_the_question_are_refused(course: Class, points: float) -> None:
    answer = of(course.marking, "ann")
    with pytest.raises(InvalidValue, match="not between 0 and the 2"):
        course.marking.save("e", answer.key, answer.seen, points, "")


def test_a_mark_that_is_taken_back_stops_no_later_run(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann")
    marking.save("e", answer.key, answer.seen, 2, "right")
    answer = of(marking, "ann")
    marking.save("e", answer.key, answer.seen, None, "")
    assert in_gradebook(course.tree, "ann") == (None, True, None)
    course.again("bob", "Now another one.")  # would stop if a mark were missing
    assert "needs review" in course.tree.feedback("adding", "ann").read_text()
    assert [one.why for one in FileStore(course.tree).scores("adding", "ann").scores if one.question == "e"] == [
        "first graded",
        "marked by a person",
        "the mark was taken back",
    ]


def test_an_answer_that_changed_since_it_was_marked_is_listed_with_what_changed(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann")
    marking.save("e", answer.key, answer.seen, 1.5, "well argued")
    course.again("ann", "So **bandwidth**, and latency.")
    now = of(course.marking, "ann")
    assert (now.state, now.points, now.key) == (CHANGED, None, answer.key)
    former = course.marking.former(now)
    assert former is not None
    assert former.points == 1.5
    assert "-So **bandwidth**.\n+So **bandwidth**, and latency." in former.difference
    with pytest.raises(Outdated):
        marking.save("e", answer.key, answer.seen, 2, "")


def test_the_first_mark_makes_a_backup_and_undo_takes_back_what_was_marked_since(course: Class) -> None:
    before = backups(course.tree)
    marking = course.marking
    for student, points in (("ann", 1.5), ("cy", 0)):
        answer = of(marking, student)
        marking.save("e", answer.key, answer.seen, points, "so")
    assert len(backups(course.tree)) == len(before) + 1
    assert main(["undo", "--course", str(course.tree.root), "--yes"]) == 0
    assert [of(course.marking, student).state for student in ("ann", "cy")] == [WAITING, WAITING]
    assert "needs review" in course.tree.feedback("adding", "ann").read_text()


def test_marks_after_another_run_have_a_backup_of_their_own(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann")
    marking.save("e", answer.key, answer.seen, 1, "")
    course.again("bob", "Now another one.")
    answer = of(marking, "cy")
    marking.save("e", answer.key, answer.seen, 2, "")
    bobs = of(marking, "bob").submission
    assert main(["undo", "--course", str(course.tree.root), "--yes"]) == 0
    assert of(course.marking, "bob").submission == bobs  # the run stays
    assert [of(course.marking, student).points for student in ("ann", "cy")] == [1, None]


def test_points_of_code_can_be_replaced_and_other_states_are_told_apart(course: Class) -> None:
    marking = course.marking
    answer = of(marking, "ann", "b")
    assert answer.state == TESTED
    marking.save("b", answer.key, answer.seen, 0, "copied")
    with open_gradebook(course.tree) as gradebook:
        (notebook,) = gradebook.find_submission("adding", "ann").notebooks
        assert {one.cell.name: one.manual_score for one in notebook.grades}["b-test"] == 0
        assert {one.cell.name: one.manual_comment for one in notebook.comments}["b-kernel"] == "copied"
    assert (of(course.marking, "ann", "b").state, of(course.marking, "ann", "b").comment) == (MARKED, "copied")
    answer = of(marking, "ann", "d")
    with pytest.raises(InvalidValue, match="takes no comment"):
        marking.save("d", answer.key, answer.seen, 0, "text")


def test_nobodys_name_is_on_a_page_and_the_order_says_nothing(course: Class, client: Client) -> None:
    answers = course.marking.answers("e")
    paths = ["/", "/q/e", "/q/e?show=all", *(f"/q/e/{answer.key}" for answer in answers)]
    for path in paths:
        status, page = client.get(path)
        assert status == 200
        assert not re.search(r"\b(ann|bob|cy)\b", page), path
    assert [one.key for one in answers] == sorted(one.key for one in answers)


def test_the_rubric_is_that_of_the_readme_until_one_is_kept(course: Class) -> None:
    assert rubric_of(course.tree, course.root, "adding", "e") == (Item(1, "bytes cross the bus"), Item(0.5, "a number"))
    assert rubric_of(course.tree, course.root, "adding", "b") == ()
    save_rubric(course.tree, "adding", "e", [Item(2, "all")])
    assert rubric_of(course.tree, course.root, "adding", "e") == (Item(2, "all"),)
    save_rubric(course.tree, "adding", "e", [])
    assert rubric_of(course.tree, course.root, "adding", "e") == ()


@pytest.mark.parametrize("lab", sorted(path.parent.name for path in REPOSITORY.glob("labs/*/README.md")))
def test_the_rubric_of_each_lab_adds_up_to_what_its_heading_says(lab: str) -> None:
    text = (REPOSITORY / "labs" / lab / "README.md").read_text()
    for name, points in re.findall(r"## Rubric for (\S+) \((\d+) points\)", text):
        assert sum(item.points for item in rubric_of(CourseTree(Path("none")), REPOSITORY, lab, name)) == int(points)


def test_a_comment_is_taken_apart_into_what_it_was_put_together_from() -> None:
    rubric = [Item(1, "one"), Item(-0.5, "two"), Item(1, "three")]
    for chosen in ([], [rubric[0]], rubric):
        for text in ("", "more\n\ntext"):
            assert split(joined(chosen, text), rubric) == (tuple(chosen), text)
    assert total(rubric, ["one", "three", "two"], 5) == 1.5
    assert total(rubric, ["two"], 5) == 0
    assert total([Item(-1, "a"), Item(-9, "b")], ["a", "b"], 5) == 0
    assert total([Item(-1, "a"), Item(-9, "b")], [], 5) == 5
