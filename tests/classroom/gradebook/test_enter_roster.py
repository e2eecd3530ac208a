"""Names and due times of the roster in nbgrader's gradebook, where formgrader shows them."""

from datetime import timedelta
from pathlib import Path

import pytest

from mlsys.classroom.gradebook.nbgrader import enter_roster
from mlsys.classroom.students.roster import parse_roster
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree

ROSTER = """id,name,sis login id,time zone,due adding
*,,,Europe/Berlin,2026-11-20 23:59
ann,"Baker, Ann",ab1@uni.edu,,
bob,Bob van Dyke,,,2026-11-27 23:59
cy,,,,
zoe,Zoe Zero,,,
"""


@pytest.mark.filterwarnings("ignore:Object of type <SubmittedAssignment> not in session")  # nbgrader's own order
def test_formgrader_finds_names_addresses_and_due_times(course_repository: Path) -> None:
    tree = CourseTree(course_repository / "_build" / "course")
    tree.create()
    with open_gradebook(tree) as gradebook:
        gradebook.add_assignment("adding")
        for student in ("ann", "bob", "cy", "guest"):
            gradebook.add_student(student)
        for student in ("ann", "bob"):
            gradebook.add_submission("adding", student)
    for _ in range(2):  # again changes nothing
        enter_roster(tree, "adding", parse_roster(ROSTER))
        with open_gradebook(tree) as gradebook:
            found = {one.id: (one.last_name, one.first_name, one.email) for one in gradebook.students}
            assert found == {
                "ann": ("Baker", "Ann", "ab1@uni.edu"),
                "bob": ("Dyke", "Bob van", None),
                "cy": (None, None, None),
                "guest": (None, None, None),
            }
            due = gradebook.find_assignment("adding").duedate
            assert due.isoformat() == "2026-11-20T22:59:00"  # in UTC, as nbgrader keeps times
            assert gradebook.find_submission("adding", "ann").duedate == due
            assert gradebook.find_submission("adding", "bob").duedate == due + timedelta(days=7)
    enter_roster(tree, "adding", parse_roster("id,name\nann,Ann\n"))
    with open_gradebook(tree) as gradebook:
        assert gradebook.find_assignment("adding").duedate is None
        assert gradebook.find_submission("adding", "bob").extension is None
