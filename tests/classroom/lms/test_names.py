from hypothesis import given
from hypothesis import strategies as st

from mlsys.classroom.lms.names import canvas_readings, moodle_readings, the_one
from mlsys.classroom.students.roster import Student

WORD = st.text(st.sampled_from("ab_1-"), max_size=8)


def canvas_name(name: str, late: bool, user: int, file: int, title: str) -> str:
    """What `lib/content_zipper.rb` of Canvas makes."""
    kept = "".join(letter for letter in name.lower() if letter.isalnum() or letter == "_")
    return f"{kept}{'_LATE' if late else ''}_{user}_{file}_{title}"


@given(WORD, st.booleans(), st.integers(1, 10**6), st.integers(1, 10**9), WORD)
def test_what_canvas_meant_is_always_among_the_readings(
    name: str, late: bool, user: int, file: int, title: str
) -> None:
    made = canvas_name(name, late, user, file, f"{title}.ipynb")
    readings = [
        (reading.person.canvas_id, reading.number, reading.late, reading.title) for reading in canvas_readings(made)
    ]
    assert (str(user), file, late, f"{title}.ipynb") in readings


@given(WORD, st.booleans(), WORD)
def test_no_name_and_title_of_one_student_are_taken_for_anothers_or_without_the_mark(
    name: str, late: bool, title: str
) -> None:
    students = [Student("eve", "Evans, Eve", canvas_id="11"), Student("bob", "a", canvas_id="1")]
    for display in (f"a_1_1_{name}", f"evanseve_11_1_{name}", f"{name}_1_11_{title}"):
        made = canvas_name(display, late, 11, 900, f"{title}.ipynb")
        reading = the_one(canvas_readings(made), students)
        assert reading is None or (reading.person.canvas_id, reading.late, reading.number) == ("11", late, 900)


def test_names_of_many_scripts_are_canvas_names() -> None:
    for name in ("müllerjörg", "नमस्तेराम", "李娜", "student7", "o_neil"):
        assert [reading.person.name for reading in canvas_readings(f"{name}_101_900_tiling.ipynb")] == [name]


def test_moodles_name_that_holds_another_one_is_in_doubt() -> None:
    (one,) = moodle_readings("Ann Baker_4711_assignsubmission_file_tiling.ipynb")
    assert (one.person.name, one.key, one.title) == ("Ann Baker", "Ann-Baker_4711", "tiling.ipynb")
    several = moodle_readings("Bob Carter_1_assignsubmission_file_x_4711_assignsubmission_file_")
    assert [reading.person.name for reading in several] == ["Bob Carter", "Bob Carter 1 assignsubmission file x"]
    assert the_one(several, [Student("bob", "Bob Carter")]) is None
    assert moodle_readings("Ann Baker_assignsubmission_file_tiling.ipynb") == []
