"""Downloads of Blackboard, Brightspace, Gradescope and GitHub Classroom, and what is said about odd hand-ins."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.handing_in import DUE, folder, notebook, submitted, take, zipped

from mlsys.classroom.intake.files import SubmittedFile
from mlsys.classroom.intake.layouts import place
from mlsys.classroom.lms.gradescope import BadGradescope
from mlsys.classroom.students.roster import parse_roster
from mlsys.course.tree import CourseTree

ROSTER = parse_roster(
    "id,name,sis user id,github login,time zone,due tiling\n"
    "*,,,,Europe/Berlin,2026-11-20 23:59\n"
    'ab1,"Baker, Ann",100003,annbaker,,\n'
    "b_c2,Bob Carter,100004,bob-c,,\n"
    "cy,Cy Dunn,100005,,,\n"
)
TIME = datetime(2026, 11, 20, 21, 58, tzinfo=UTC)


@pytest.fixture
def tree(tmp_path: Path) -> CourseTree:
    return CourseTree(tmp_path / "course")


def test_blackboard_names_say_login_and_time(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "Lab_1: Tiling_ab1_attempt_2026-11-19-10-00-00.txt": b"Name: Ann Baker (ab1)",
        "Lab_1: Tiling_ab1_attempt_2026-11-19-10-00-00_tiling.ipynb": notebook("first"),
        "Lab_1: Tiling_ab1_attempt_2026-11-20-22-58-00.txt": b"Name: Ann Baker (ab1)",
        "Lab_1: Tiling_ab1_attempt_2026-11-20-22-58-00_tiling.ipynb": notebook("second"),
        "Lab_1: Tiling_b_c2_attempt_2026-11-20-22-58-00_mine.ipynb": notebook("bob"),
        "Lab_1: Tiling_cy_attempt_2026-11-20-22-58-00.txt": b"no file",
        "Lab_1: Tiling_zed_attempt_2026-11-20-22-58-00_tiling.ipynb": notebook("zed"),
    }
    result = take(zipped(tmp_path / "in.zip", files), tree, ROSTER)
    assert (result.students, result.ignored) == (["ab1", "b_c2", "cy", "zed"], ())
    assert [attempt.time for attempt in result.histories["ab1"].attempts][-1] == TIME
    assert (submitted(tree, "ab1"), submitted(tree, "b_c2")) == (notebook("second"), notebook("bob"))
    assert "only text of the submission" in result.refused["cy"]
    assert [note.name for note in result.unknown] == ["zed"]


def test_a_title_like_another_platforms_name_hands_in_for_nobody(tree: CourseTree, tmp_path: Path) -> None:
    """A student of Canvas chooses the title, and with it a login of Blackboard."""
    name = "evanseve_104_900_x_ab1_attempt_2026-11-20-22-58-00_tiling.ipynb"
    result = take(zipped(tmp_path / "in.zip", {name: notebook()}), tree, ROSTER)
    assert result.students == []
    assert "in doubt: Blackboard or Canvas may have made this name" in result.ignored[0].reason


@pytest.mark.parametrize("end", ["/tiling.ipynb", " - tiling.ipynb"])
def test_brightspace_names_say_name_and_time(tree: CourseTree, tmp_path: Path, end: str) -> None:
    files = {f"12345-67890 - Ann Baker - Nov 20, 2026 1058 PM{end}": notebook("ann"), "index.html": b"a list"}
    result = take(zipped(tmp_path / "in.zip", files), tree, ROSTER)
    assert (result.students, result.ignored) == (["ab1"], ())
    assert result.histories["ab1"].attempts[0].time == TIME
    assert submitted(tree, "ab1") == notebook("ann")


def test_two_of_one_name_in_brightspace_are_two(tree: CourseTree, tmp_path: Path) -> None:
    files = {f"{user}-67890 - Minji Kim - Nov 20, 2026 1058 PM/tiling.ipynb": notebook(user) for user in ("7", "8")}
    result = take(zipped(tmp_path / "in.zip", files), tree, None)
    assert result.students == ["Minji-Kim_7", "Minji-Kim_8"]


@pytest.mark.parametrize("who", ["Eve - Nov 19, 2026 1000 AM", "Eve - Nov 19, 2026 1000 AM - x"])
def test_a_name_with_a_time_in_it_makes_nobody_early(tree: CourseTree, tmp_path: Path, who: str) -> None:
    """Students may choose the name that others see."""
    files = {f"12345-67890 - {who} - Nov 20, 2026 1158 PM/tiling.ipynb": notebook("eve")}
    result = take(zipped(tmp_path / "in.zip", files), tree, ROSTER)
    assert result.students == []
    assert "in doubt: it may be" in result.ignored[0].reason


GRADESCOPE = """---
submission_901:
  :submitters:
  - :name: Ann B.
    :sid: '100003'
    :email: ann@elsewhere.org
  :created_at: 2026-11-20 21:58:00.000000000 Z
  :score: 0.0
submission_902:
  :submitters:
  - :name: Bob Carter
    :sid: '100004'
  - :name: Cy Dunn
    :sid: '100005'
  :created_at: 2026-11-20 21:58:00.000000000 Z
"""


@pytest.mark.parametrize("kind", ["zip", "folder"])
def test_gradescopes_export_says_who_and_when(tree: CourseTree, tmp_path: Path, kind: str) -> None:
    files = {
        "assignment_77_export/submission_metadata.yml": GRADESCOPE.encode(),
        "assignment_77_export/submission_901/tiling.ipynb": notebook("ann"),
        "assignment_77_export/submission_902/tiling.ipynb": notebook("both"),
    }
    if kind == "zip":
        source = zipped(tmp_path / "in.zip", files)
    else:
        source = folder(tmp_path / "in", {name: (data, DUE) for name, data in files.items()})
    result = take(source, tree, ROSTER)
    assert result.students == ["ab1"]
    assert result.histories["ab1"].attempts[0].time == TIME
    assert [note.reason for note in result.ignored] == [
        "in doubt: Gradescope says that Bob Carter and Cy Dunn handed it in: put a copy for each as <student>.ipynb"
    ]


@pytest.mark.parametrize("text", ["[1, 2", "- a list", "x: 2026-13-45 10:00:00"])
def test_a_damaged_list_of_gradescope_is_named(tree: CourseTree, tmp_path: Path, text: str) -> None:
    files = {"submission_metadata.yml": text.encode(), "submission_901/tiling.ipynb": notebook()}
    with pytest.raises(BadGradescope, match="export the submissions again"):
        take(zipped(tmp_path / "in.zip", files), tree, ROSTER)


def test_folders_of_github_classroom_are_found_by_the_rosters_logins(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "tiling-submissions/tiling-AnnBaker/tiling.ipynb": notebook("ann"),
        "tiling-submissions/tiling-AnnBaker/.git/config": b"[core]",
        "tiling-submissions/tiling-bob-c/tiling/tiling.ipynb": notebook("bob"),
        "tiling-submissions/tiling-stranger/tiling.ipynb": notebook("stranger"),
    }
    result = take(folder(tmp_path / "in", {name: (data, DUE) for name, data in files.items()}), tree, ROSTER)
    assert result.students == ["ab1", "b_c2"]
    assert [note.name for note in result.ignored] == ["tiling-submissions/tiling-stranger/tiling.ipynb"]


def test_a_repository_that_two_logins_fit_is_in_doubt() -> None:
    roster = parse_roster("id,name,github login\nann,Ann,b\nbob,Bob,ann-b\n")
    handed, ignored = place(
        [SubmittedFile("tiling-ann-b/tiling.ipynb"), SubmittedFile("tiling-b/tiling.ipynb")],
        "tiling",
        roster.students.values(),
    )
    assert [item.person.student for item in handed] == ["ann"]
    assert "it may be the repository of ann or bob" in ignored[0].reason


def test_a_link_in_place_of_a_file_is_said(tree: CourseTree, tmp_path: Path) -> None:
    result = take(zipped(tmp_path / "in.zip", {"bakerann_101_link.html": b"https://colab"}), tree, None)
    assert "a link was handed in, not a file: download the notebook there" in result.refused["bakerann_101"]


def test_a_second_notebook_that_does_not_count_is_said(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "bakerann_101_900_tiling.ipynb": notebook("graded"),
        "bakerann_101_901_tiling_final.ipynb": notebook("newer"),
    }
    result = take(zipped(tmp_path / "in.zip", files), tree, None)
    assert submitted(tree, "bakerann_101") == notebook("graded")
    assert [(note.name, note.reason) for note in result.beside] == [
        ("bakerann_101: tiling_final.ipynb", "tiling.ipynb is graded, because it has the lab's name")
    ]
