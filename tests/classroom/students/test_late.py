"""Late work: what a submission costs, the ledger of late days, and groups."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.classroom.students.attempt_policy import best, candidates
from mlsys.classroom.students.history import Attempt, History, shared
from mlsys.classroom.students.late import Late, Rule
from mlsys.classroom.students.ledger import Ledger
from mlsys.classroom.students.roster import Roster, parse_roster

DUE = datetime(2026, 11, 20, 22, 59, tzinfo=UTC)
HEAD = "id,name,time zone,late days,grace minutes,late percent,due one,due two,group two\n"
EVERYBODY = "*,,UTC,3,15,10,2026-10-01 12:00,2026-11-01 12:00,\n"


def ledger(rows: str, handed_in: dict[tuple[str, str], str]) -> tuple[Roster, Ledger]:
    roster = parse_roster(HEAD + EVERYBODY + rows)
    times = {key: datetime.fromisoformat(text).replace(tzinfo=UTC) for key, text in handed_in.items()}
    return roster, Ledger(roster, lambda lab, student: times.get((lab, student)))


@pytest.mark.parametrize(
    ("minutes", "needed", "off"),
    [(-1, 0, 0), (0, 0, 0), (15, 0, 0), (16, 1, 0), (1440 + 15, 1, 0), (1440 + 16, 2, 0.1), (20 * 1440, 20, 1)],
)
def test_grace_ends_each_day_later_and_days_beyond_the_budget_cost_a_part_of_the_points(
    minutes: int, needed: int, off: float
) -> None:
    late = Rule(DUE, late_days=1, grace_minutes=15, percent=10).late(DUE + timedelta(minutes=minutes))
    assert (late.minutes, late.needed, late.off) == (max(0, minutes), needed, pytest.approx(off))


@given(st.integers(0, 20), st.integers(0, 20), st.floats(0, 100))
def test_what_is_taken_off_is_a_part_of_the_points_and_grows_with_the_days(
    needed: int, left: int, percent: float
) -> None:
    late = Late(1, needed, left, percent)
    assert 0 <= late.off <= Late(1, needed + 1, left, percent).off <= 1
    assert late.spent + late.uncovered == needed
    assert late.off == 0 or left < needed


def test_a_refusal_says_what_was_needed_and_what_is_left() -> None:
    attempts = [Attempt("d", "x.ipynb", "flat", DUE + timedelta(hours=30))]
    (choice,) = candidates(attempts, "on-time", Rule(DUE, late_days=1))
    assert choice.reason.endswith(
        "came after the due time 2026-11-20 22:59 UTC: 1 d 6 h late, which needs 2 late days; left: 1"
    )


def test_the_best_attempt_is_the_one_with_the_most_points_after_the_penalty() -> None:
    times = {"early": -1, "late": 50}
    attempts = [Attempt(name, name, "flat", DUE + timedelta(hours=hours)) for name, hours in times.items()]
    choices = candidates(attempts, "best", Rule(DUE, percent=10))
    for points, counts in (({"early": 71, "late": 100}, "early"), ({"early": 69, "late": 100}, "late")):
        chosen = best(choices, points).attempt
        assert chosen is not None
        assert chosen.digest == counts


def test_late_days_are_spent_in_the_order_of_due_times_whatever_the_order_of_handing_in() -> None:
    _, book = ledger("ann,Ann,,,,,,,\n", {("one", "ann"): "2026-10-03 11:00", ("two", "ann"): "2026-11-04 11:00"})
    assert book.late("ann", "one") == Late(47 * 60, 2, 3, 10)
    assert book.left("ann", "two") == 1
    late = book.late("ann", "two")
    assert late is not None
    assert (late.needed, late.spent, late.off) == (3, 1, pytest.approx(0.2))
    assert late.cost == "it needs 3 late days, 1 was left; 20% of the points are taken off"


def test_an_extension_gives_back_the_late_days_that_it_makes_unnecessary() -> None:
    times = {("one", "ann"): "2026-10-03 11:00", ("two", "ann"): "2026-11-04 11:00"}
    _, book = ledger("ann,Ann,,,,,2026-10-03 12:00,,\n", times)
    assert book.left("ann", "two") == 3
    assert book.late("ann", "two") == Late(71 * 60, 3, 3, 10)


def test_a_group_has_the_latest_due_time_and_the_fewest_late_days_of_its_members() -> None:
    rows = "ann,Ann,,,,,,2026-11-02 12:00,g\nbob,Bob,,,,,,,g\ncy,Cy,,,,,,,\n"
    times = {("one", "bob"): "2026-10-03 11:00"} | {("two", one): "2026-11-04 11:00" for one in ("ann", "bob", "cy")}
    roster, book = ledger(rows, times)
    assert roster.members("bob", "two") == ("ann", "bob")
    assert roster.members("bob", "one") == ("bob",)
    # Two days late after Ann's extension; Bob has spent two of three days at the first lab.
    assert book.late("ann", "two") == book.late("bob", "two") == Late(47 * 60, 2, 1, 10)
    assert book.late("cy", "two") == Late(71 * 60, 3, 3, 10)


def test_a_groups_attempts_are_those_of_all_members_and_collecting_again_adds_none() -> None:
    first, second = (Attempt(name, f"{name}.ipynb", "flat") for name in ("first", "second"))
    now = [History((first,)), History((second,))]
    both = shared([History(), History()], now)
    assert [one.digest for one in both.attempts] == ["first", "second"]
    # The same folder again: each member's own file is in the group's list.
    again = shared([both, both], [both.with_attempt(first), both.with_attempt(second)])
    assert again == both
    # One member alone hands in the first file again: it counts as the newest.
    assert [one.digest for one in shared([both, both], [both.with_attempt(first)]).attempts][-1] == "first"


def test_where_times_are_known_the_newest_of_a_group_is_the_newest_whoever_handed_it_in() -> None:
    early, late = (Attempt(name, name, "canvas", DUE + timedelta(hours=hour)) for name, hour in (("a", 0), ("b", 1)))
    assert shared([History(), History()], [History((late,)), History((early,))]).attempts == (early, late)
