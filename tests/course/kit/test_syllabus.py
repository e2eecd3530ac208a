import tomllib
from datetime import date
from pathlib import Path

import pytest

from mlsys.course.kit.syllabus import DATA, dated_page, first_days, page_title, read_syllabi
from mlsys.course.pages.contents import book_pages
from mlsys.errors import InvalidValue, UnknownName

ROOT = Path(__file__).parents[3]
SYLLABI = read_syllabi(ROOT)
CONCEPTS = tomllib.loads((ROOT / "book" / "concepts.toml").read_text(encoding="utf-8"))
LABS = {page.stem for page in (ROOT / "book" / "labs").glob("*.md")}


def test_there_are_courses_of_six_ten_and_fourteen_weeks() -> None:
    assert sorted(SYLLABI) == [6, 10, 14]


@pytest.mark.parametrize("length", SYLLABI)
def test_no_chapter_comes_before_those_that_it_needs(length: int) -> None:
    read: set[str] = set()
    for week in SYLLABI[length].weeks:
        read |= set(week.read)
        assert [
            (name, need) for name in week.read for need in CONCEPTS.get(name, {}).get("needs", ()) if need not in read
        ] == []


@pytest.mark.parametrize("length", SYLLABI)
def test_a_lab_that_is_begun_is_handed_in_once_and_at_its_last_week(length: int) -> None:
    weeks = SYLLABI[length].weeks
    for lab in {week.lab for week in weeks} - {""}:
        assert [week.hand_in for week in weeks if week.lab == lab][::-1].index(True) == 0
        assert sum(week.hand_in for week in weeks if week.lab == lab) == 1


@pytest.mark.parametrize("length", SYLLABI)
def test_nothing_is_read_twice(length: int) -> None:
    read = [name for week in SYLLABI[length].weeks for name in week.read]
    assert len(read) == len(set(read))


def test_the_longest_course_has_every_chapter_and_every_lab() -> None:
    weeks = SYLLABI[14].weeks
    assert set(CONCEPTS) - {name for week in weeks for name in week.read} == set()
    assert {week.lab for week in weeks if week.hand_in} == LABS


def test_the_page_of_a_term_has_the_dates_that_a_calendar_on_the_wall_has() -> None:
    # 1 February 2027 is a Monday; the week with 30 March is free.
    days = first_days(SYLLABI[10], date(2027, 2, 1), [date(2027, 3, 30)])
    assert {day.weekday() for day in days} == {0}
    assert (days[7], days[8]) == (date(2027, 3, 22), date(2027, 4, 5))
    page = dated_page(ROOT, SYLLABI[10], days)
    assert "| 2 | 2027-02-08 | First kernels in Triton, The limits of a speedup |" in page
    assert "Lab: first kernels, by 2027-02-14 |" in page


def test_a_free_day_before_the_term_is_refused() -> None:
    with pytest.raises(InvalidValue, match="2027-01-01 is before the first day of the term, .* to 2027-03-14"):
        first_days(SYLLABI[6], date(2027, 2, 1), [date(2027, 1, 1)])


@pytest.mark.parametrize("day", ["2027-03-22", "2028-03-29"])
def test_a_free_day_after_the_term_is_refused(day: str) -> None:
    # Six weeks from 1 February 2027 and a free one end on Sunday 21 March.
    free = [date(2027, 2, 10), date.fromisoformat(day)]
    message = f"the free day {day} is after the last day of the term, which is from 2027-02-01 to 2027-03-21"
    with pytest.raises(InvalidValue, match=message):
        first_days(SYLLABI[6], date(2027, 2, 1), free)


def test_a_free_day_in_what_would_be_the_last_week_moves_the_end_of_the_term() -> None:
    assert first_days(SYLLABI[6], date(2027, 2, 1), [date(2027, 3, 14)])[-1] == date(2027, 3, 15)


def test_titles_are_those_of_the_pages() -> None:
    assert page_title(book_pages(ROOT)["memory-wall"]) == "The memory wall"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('[2]\naim = "a"\nhours = 1\n[[2.weeks]]\nread = []\ndo = ""\n', InvalidValue, r"\[2\] lists 1 weeks"),
        ('[1]\naim = "a"\nhours = 1\n[[1.weeks]]\nread = ["tilling"]\ndo = ""\n', UnknownName, "tilling"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    (tmp_path / "_toc.yml").write_text("root: book/index\nparts: []\n", encoding="utf-8")
    (tmp_path / "book").mkdir()
    (tmp_path / DATA).write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_syllabi(tmp_path)
