"""Whose work it is, whatever students call their folders, files and themselves; and what too much of it costs."""

import os
import random
import unicodedata
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.handing_in import DUE, ROSTER, folder, notebook, submitted, take, zipped

from mlsys.classroom.intake import archive as handed_zip
from mlsys.classroom.intake.files import SubmittedFile
from mlsys.classroom.intake.layouts import place
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.roster import Roster, parse_roster
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@pytest.fixture
def tree(tmp_path: Path) -> CourseTree:
    return CourseTree(tmp_path / "course")


NESTED = {
    "ann/tiling/tiling.ipynb": notebook("ann"),
    "ann/tiling/bob/tiling/tiling.ipynb": notebook("ann for bob"),
    "ann/tiling/cy/tiling/tiling.ipynb": notebook("ann for cy"),
    "ann/tiling/cy/tiling/timestamp.txt": b"2026-11-18 10:00:00 UTC",
    "bob/tiling/tiling.ipynb": notebook("bob"),
}


@pytest.mark.parametrize("kind", ["folder", "submitted", "zip", "zip of a folder", "the tree itself"])
def test_folders_inside_a_submission_name_nobody_else(tree: CourseTree, tmp_path: Path, kind: str) -> None:
    above = {"submitted": "submitted/", "zip of a folder": "week 3/submitted/"}.get(kind, "")
    files = {above + name: data for name, data in NESTED.items()}
    if kind == "the tree itself":
        folder(tree.root / "submitted", {name: (data, DUE) for name, data in NESTED.items()})
        result = take(None, tree)
    elif kind.startswith("zip"):
        result = take(zipped(tmp_path / "in.zip", files, DUE), tree)
    else:
        result = take(folder(tmp_path / "in", {name: (data, DUE) for name, data in files.items()}), tree)
    assert (result.students, result.missing, result.refused) == (["ann", "bob"], ("cy",), {})
    assert [submitted(tree, student) for student in ("ann", "bob")] == [notebook("ann"), notebook("bob")]
    assert not tree.submitted("tiling", "cy").exists()


@pytest.mark.parametrize("roster", [ROSTER, None])
def test_the_only_folder_of_a_source_is_a_student_and_not_one_for_all(
    tree: CourseTree, tmp_path: Path, roster: Roster | None
) -> None:
    files = {name: data for name, data in NESTED.items() if name.startswith("ann")}
    files["ann/tiling/tiling/tiling.ipynb"] = notebook("deeper")
    assert take(zipped(tmp_path / "in.zip", files), tree, roster).students == ["ann"]


def test_a_time_that_a_student_wrote_into_a_folder_of_her_own_counts_for_nothing(
    tree: CourseTree, tmp_path: Path
) -> None:
    early = b"2026-11-01 10:00:00 UTC"
    files = {
        "ann/tiling/timestamp.txt": (b"2026-11-25 10:00:00 UTC", DUE),
        "ann/tiling/inner/tiling/tiling.ipynb": (notebook("ann"), DUE - timedelta(days=9)),
        "ann/tiling/inner/tiling/timestamp.txt": (early, DUE),
        "ann/tiling/bob/tiling/timestamp.txt": (early, DUE),
        "bob/tiling/tiling.ipynb": (notebook("bob"), DUE),
        "cy/tiling/inner/tiling.ipynb": (notebook("cy"), DUE),
        "cy/tiling/inner/timestamp.txt": (early, DUE),
    }
    result = take(folder(tmp_path / "in", files), tree)
    times = {name: history.attempts[0].time for name, history in result.histories.items()}
    assert times == {"ann": datetime(2026, 11, 25, 10, tzinfo=UTC), "bob": None, "cy": None}


def test_in_a_folder_of_moodle_no_inner_name_counts(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "Ann Baker_1_assignsubmission_file_/tiling.ipynb": notebook("ann"),
        "Ann Baker_1_assignsubmission_file_/Bob Carter_2_assignsubmission_file_/tiling.ipynb": notebook("for bob"),
        "Ann Baker_1_assignsubmission_file_/tiling/Cy Dunn_3_assignsubmission_file_tiling.ipynb": notebook("for cy"),
    }
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert (result.students, result.missing) == (["ann"], ("bob", "cy"))
    assert submitted(tree, "ann") == notebook("ann")


def test_canvas_and_flat_names_count_at_the_top_only(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "bakerann_101_900_tiling.ipynb": notebook("ann"),
        "more/carterbob_102_901_tiling.ipynb": notebook("bob"),
        "more/cy.ipynb": notebook("cy"),
    }
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert result.students == ["ann"]
    assert [note.name for note in result.ignored] == list(files)[1:]


def test_students_own_folders_hold_the_notebook_only_where_none_lies_outside(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "ann/tiling/Copy of tiling.ipynb": notebook("copy"),
        "ann/tiling/old/tiling.ipynb": notebook("old"),
        "bob/tiling/draft/tiling.ipynb": notebook("bob"),
        "cy/tiling/mine.ipynb": notebook("cy"),
        "cy/tiling/old/scratch.ipynb": notebook("scratch"),
    }
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert [submitted(tree, student) for student in ("bob", "cy")] == [notebook("bob"), notebook("cy")]
    assert "several notebooks were handed in (Copy of tiling.ipynb, old/tiling.ipynb)" in result.refused["ann"]


def test_a_student_who_is_called_like_the_lab_is_taken_where_the_roster_says_so(
    tree: CourseTree, tmp_path: Path
) -> None:
    files = {f"class/{name}/tiling/tiling.ipynb": notebook(name) for name in ("ann", "tiling")}
    source = zipped(tmp_path / "in.zip", files)
    known = take(source, tree, parse_roster("id,name\nann,Ann\ntiling,Tilda Ling\n"))
    assert known.students == ["ann", "tiling"]
    unknown = take(source, CourseTree(tmp_path / "other"), None)
    assert unknown.students == []
    assert "in doubt: 'class' may be a student's folder or hold those of all" in unknown.ignored[0].reason


def test_an_unnamed_notebook_in_a_folder_is_in_doubt(tree: CourseTree, tmp_path: Path) -> None:
    source = zipped(tmp_path / "in.zip", {"ann/tiling.ipynb": notebook()})
    result = take(source, tree, None)
    assert result.students == []
    assert "in doubt: it may be of a student 'ann' or of one called 'tiling'" in result.ignored[0].reason


@pytest.mark.parametrize(
    "names",
    [
        ("ann/tiling/tiling.ipynb", "ann.ipynb"),
        ("ann.ipynb", "bakerann_101_900_tiling.ipynb"),
        ("ann.ipynb", "ann.IPYNB"),
        ("Ann Baker_1_assignsubmission_file_tiling.ipynb", "Ann Baker_2_assignsubmission_file_tiling.ipynb"),
        ("bakerann_777_900_tiling.ipynb", "bakerann_778_901_tiling.ipynb"),
    ],
)
def test_two_who_would_be_one_student_are_both_in_doubt(
    tree: CourseTree, tmp_path: Path, names: tuple[str, str]
) -> None:
    roster = ROSTER if "777" not in names[0] else parse_roster("id,name\nann,Ann Baker\nbob,Bob Carter\n")
    files = {**{name: notebook(name) for name in names}, "bob.ipynb": notebook("bob")}
    result = take(zipped(tmp_path / "in.zip", files), tree, roster)
    assert result.students == ["bob"]
    assert {note.name for note in result.ignored} == set(names)
    for note in result.ignored:
        (other,) = set(names) - {note.name}
        assert "in doubt: it would be ann's" in note.reason
        assert other in note.reason


@pytest.mark.parametrize("names", [("jos\u00e9", "jose\u0301"), ("Ann", "ann"), ("ann", "ann "), ("ann", "ann.")])
def test_ids_that_some_disks_cannot_tell_apart_are_in_doubt(
    tree: CourseTree, tmp_path: Path, names: tuple[str, str]
) -> None:
    files = {f"{name}/tiling/tiling.ipynb": notebook(name) for name in (*names, "bob")}
    result = take(zipped(tmp_path / "in.zip", files), tree, None)
    assert result.students == ["bob"]
    assert ["in doubt" in note.reason for note in result.ignored] == [True, True]


def test_an_id_in_capitals_is_the_rosters(tree: CourseTree, tmp_path: Path) -> None:
    result = take(zipped(tmp_path / "in.zip", {"ANN.ipynb": notebook(), "bob.ipynb": notebook()}), tree)
    assert (result.students, result.ignored) == (["ann", "bob"], ())


def test_two_files_of_one_name_in_a_zip_are_not_guessed_between(tree: CourseTree, tmp_path: Path) -> None:
    twice = {"bakerann_101_900_tiling.ipynb": notebook("ann"), "bob/tiling/timestamp.txt": b"2026-11-18 10:00:00 UTC"}
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("bob/tiling/tiling.ipynb", notebook("bob"))
        for name, data in twice.items():
            archive.writestr(name, data)
            with pytest.warns(UserWarning, match="Duplicate name"):
                archive.writestr(name, data + b" ")
    result = take(tmp_path / "in.zip", tree)
    assert "several notebooks were handed in (tiling.ipynb, tiling.ipynb)" in result.refused["ann"]
    assert result.histories["bob"].attempts[0].time is None
    assert [note.reason for note in result.doubtful] == ["timestamp.txt: it is there twice"]


NAMES = [
    "Åsa Öberg",
    "Ольга Ёлкина",
    "Ἑλένη Δήμος",
    "محمّد عليّ",
    "מֹשֶׁה כהן",
    "प्रिया शर्मा",
    "ศิริพร แก้วมณี",
    "தமிழ் செல்வன்",
    "小龙 李",
    "민지 김",
]
"""Names in ten scripts."""


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_are_read_from_a_zip_that_does_not_say_that_they_are_utf_8(
    tree: CourseTree, tmp_path: Path, form: str
) -> None:
    """The zips of macOS and of Info-ZIP; `zipfile` takes such names for code page 437."""
    path = zipped(tmp_path / "in.zip", {unicodedata.normalize(form, f"{name}.ipynb"): notebook() for name in NAMES})
    with zipfile.ZipFile(path) as archive:
        entries = [(entry.header_offset, entry.filename) for entry in archive.infolist()]
    data = bytearray(path.read_bytes())
    for start, name in entries:
        data[start + 7] &= ~0x08  # bit 11 of the flags
        directory = data.rindex(name.encode()) - 46
        data[directory + 9] &= ~0x08
    path.write_bytes(data)
    roster = parse_roster("id,name\n" + "".join(f"s{number},{name}\n" for number, name in enumerate(NAMES)))
    result = take(path, tree, roster)
    assert (result.students, result.ignored) == (sorted(roster.students), ())
    assert not result.refused


def test_a_name_in_an_older_code_page_stays_what_zipfile_reads(tree: CourseTree, tmp_path: Path) -> None:
    path = zipped(tmp_path / "in.zip", {"Jose.ipynb": notebook()})
    path.write_bytes(path.read_bytes().replace(b"Jose", b"Jos\x82"))
    assert take(path, tree, parse_roster("id,name\njo,José\n")).students == ["jo"]


def test_a_notebook_in_the_wrong_folder_of_a_student_gets_the_cure(tree: CourseTree, tmp_path: Path) -> None:
    result = take(zipped(tmp_path / "in.zip", {"bob.ipynb": notebook(), "ann/x/tiling.ipynb": notebook()}), tree)
    (note,) = result.ignored
    assert note.reason == "it is in a folder of ann, but not in ann/tiling/: move it there, or call it ann.ipynb"


def test_a_file_that_is_called_like_a_student_and_is_no_notebook_gets_the_cure(
    tree: CourseTree, tmp_path: Path
) -> None:
    result = take(zipped(tmp_path / "in.zip", {"bob.ipynb": notebook(), "ann.zip": b"PK", "notes.txt": b"x"}), tree)
    assert {note.name: note.reason for note in result.ignored} == {
        "ann.zip": "it is called like ann, but is no notebook: put ann.ipynb in its place",
        "notes.txt": "it is not placed like a submission: its name says no student",
    }


def test_who_handed_in_nothing_but_what_jupyter_left_is_told(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "ann/tiling/.ipynb_checkpoints/tiling-checkpoint.ipynb": notebook(),
        "bob/tiling/tiling.ipynb": notebook(),
        "__MACOSX/tiling/._x.ipynb": b"",
    }
    result = take(zipped(tmp_path / "in.zip", files), tree, None)
    assert result.students == ["ann", "bob"]
    assert result.refused == {"ann": "no file was handed in"}


def test_other_folders_of_a_course_are_no_students(tree: CourseTree, tmp_path: Path) -> None:
    names = ("submitted/ann", "source", "release", "autograded/ann")
    result = take(zipped(tmp_path / "in.zip", {f"{name}/tiling/tiling.ipynb": notebook(name) for name in names}), tree)
    assert result.students == ["ann"]
    assert submitted(tree, "ann") == notebook("submitted/ann")


# Names that Canvas makes of what a student chose


EVE = parse_roster('id,name,canvas id\neve,"Evans, Eve",104\nbob,"Carter, Bob",102\n')


@pytest.mark.parametrize(
    "name",
    [
        "eve_666_1__LATE_104_900_tiling.ipynb",  # she loses her mark by an id that nobody has
        "evanseve_104_1__LATE_104_900_tiling.ipynb",  # by her own
        "carterbob_102_1__104_900_tiling.ipynb",  # she hands in for another
        "carterbob_102_1__LATE_104_900_tiling.ipynb",
        "carterbob_102_1__104_text.html",
        "evanseve_104_900_carterbob_102_5_tiling.ipynb",  # by the title
        "anon_abc_1__LATE_104_900_tiling.ipynb",
        "x" + "_1" * 200 + "_tiling.ipynb",
    ],
)
def test_a_display_name_neither_takes_off_a_mark_nor_hands_in_for_another(
    tree: CourseTree, tmp_path: Path, name: str
) -> None:
    result = take(zipped(tmp_path / "in.zip", {name: notebook("eve")}), tree, EVE)
    assert result.students == []
    assert [note.name for note in result.ignored] == [name]
    assert "in doubt: it may be" in result.ignored[0].reason
    assert "call it <student>.ipynb" in result.ignored[0].reason


@pytest.mark.parametrize(
    ("name", "title", "late"),
    [
        ("evanseve_104_900_tiling.ipynb", "tiling.ipynb", False),
        ("evanseve_LATE_104_900_2026_11_20_tiling.ipynb", "2026_11_20_tiling.ipynb", True),
        ("evanseve_104_900_2026_11_20_tiling.ipynb", "2026_11_20_tiling.ipynb", False),
        ("renamed_LATE_104_900_tiling.ipynb", "tiling.ipynb", True),
        ("evans_eve_104_900_tiling.ipynb", "tiling.ipynb", False),
        ("evanseve_late_104_900_tiling.ipynb", "tiling.ipynb", True),
        ("_104_900_tiling.ipynb", "tiling.ipynb", False),
    ],
)
def test_honest_names_of_canvas_are_read(tree: CourseTree, tmp_path: Path, name: str, title: str, late: bool) -> None:
    (handed,), ignored = place([SubmittedFile(name)], "tiling", EVE.students.values())
    assert (handed.title, handed.late, handed.number, ignored) == (title, late, 900, [])
    assert take(zipped(tmp_path / "in.zip", {name: notebook()}), tree, EVE).students == ["eve"]


def test_without_a_roster_only_a_name_with_one_reading_is_taken(tree: CourseTree, tmp_path: Path) -> None:
    files = {"eve_666_1__104_900_tiling.ipynb": notebook(), "carterbob_102_901_tiling.ipynb": notebook()}
    result = take(zipped(tmp_path / "in.zip", files), tree, None)
    assert result.students == ["carterbob_102"]
    assert "in doubt" in result.ignored[0].reason


# Limits of one student, and of all


def test_twenty_thousand_files_of_one_student_cost_that_student_only(tree: CourseTree, tmp_path: Path) -> None:
    source = folder(tmp_path / "in", {f"{name}/tiling/tiling.ipynb": (notebook(name), DUE) for name in ("ann", "bob")})
    many = source / "ann" / "tiling" / "data"
    many.mkdir()
    for number in range(20_001):
        (many / str(number)).touch()
    result = take(source, tree)
    assert result.students == ["ann", "bob"]
    assert result.refused == {"ann": "it holds more than 2000 files: hand in the notebook only"}


@pytest.mark.parametrize(
    "names",
    [
        [f"ann/tiling/{number}.txt" for number in range(20_001)],
        [f"ann/tiling/{number}/" for number in range(2_001)],
        [f"Ann Baker_1_assignsubmission_file_/{number // 50}/{number}.txt" for number in range(2_001)],
        [f"bakerann_101_{number}_tiling-{number}.ipynb" for number in range(2_001)],
    ],
)
def test_too_many_entries_of_one_student_in_a_zip_cost_that_student_only(
    tree: CourseTree, tmp_path: Path, names: list[str]
) -> None:
    bob = {"ann/": "bob/tiling/tiling.ipynb", "Ann ": "Bob Carter_2_assignsubmission_file_/tiling.ipynb"}
    files = {**dict.fromkeys(names, b""), bob.get(names[0][:4], "carterbob_102_1_tiling.ipynb"): notebook("bob")}
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    result = take(tmp_path / "in.zip", tree)
    assert result.students == ["ann", "bob"]
    assert list(result.refused) == ["ann"]
    assert "more than 2000 files" in result.refused["ann"]


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_notebooks_of_one_student_that_are_too_big_together_cost_that_student_only(
    tree: CourseTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(handed_zip, "MAX_TOTAL_BYTES", 100_000_000)
    files = {f"ann/tiling/{number}.IPYNB": bytes(19_000_000) for number in range(6)}
    files["bob/tiling/tiling.ipynb"] = notebook("bob")
    monkeypatch.setattr(handed_zip, "MAX_RATIO", 100_000)
    if kind == "zip":
        source = zipped(tmp_path / "in.zip", files)
    else:
        source = folder(tmp_path / "in", {name: (data, DUE) for name, data in files.items()})
    result = take(source, tree)
    assert result.refused == {"ann": "its notebooks have 114 MB, the limit is 100 MB: hand in one, without outputs"}
    assert submitted(tree, "bob") == notebook("bob")


@pytest.mark.parametrize(
    "name",
    [
        "\u6f22" * 83 + ".ipynb",
        "\u6f22" * 83 + "/tiling/tiling.ipynb",
        "\u6f22" * 90 + "_1_assignsubmission_file_/tiling.ipynb",
        "\u6f22" * 90 + "_101_900_tiling.ipynb",
        "\U0001d49c" * 60 + ".ipynb",
    ],
)
@pytest.mark.parametrize("roster", [ROSTER, None])
def test_a_name_too_long_for_a_disk_is_listed_and_nobody_else_is_harmed(
    tree: CourseTree, tmp_path: Path, name: str, roster: Roster | None
) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr(name, notebook("long"))
        archive.writestr("bob.ipynb" if "/" not in name else "bob/tiling/tiling.ipynb", notebook("bob"))
    result = take(tmp_path / "in.zip", tree, roster if "101" not in name else None)
    assert result.students == ["bob"]
    assert [note.name for note in result.ignored] == [name]
    assert "bytes, the limit is 200" in result.ignored[0].reason


def test_files_named_after_the_longest_id_fit_on_a_disk(tree: CourseTree, tmp_path: Path) -> None:
    student = "\u6f22" * 66 + "ab"
    result = take(zipped(tmp_path / "in.zip", {f"{student}.ipynb": notebook()}), tree, None)
    assert result.students == [student]
    path = tree.record("tiling", student)
    path.parent.mkdir(parents=True)
    path.with_name(path.name + ".part").touch()


def test_a_folder_that_cannot_be_looked_through_costs_its_student_only(tree: CourseTree, tmp_path: Path) -> None:
    source = folder(tmp_path / "in", {"bob/tiling/tiling.ipynb": (notebook("bob"), DUE)})
    loop = source / "ann" / "tiling"
    loop.mkdir(parents=True)
    (loop / "again").symlink_to(loop)
    deep = source / "cy" / "tiling"
    folder(deep, {"/".join("abcdefgh") + "/tiling.ipynb": (notebook("deep"), DUE)})
    result = take(source, tree)
    assert result.students == ["ann", "bob", "cy"]
    assert set(result.refused) == {"ann", "cy"}
    assert "again" in result.refused["ann"]
    assert "hand in tiling.ipynb" in result.refused["cy"]


def test_folders_without_end_cost_their_student_only(tree: CourseTree, tmp_path: Path) -> None:
    source = folder(tmp_path / "in", {"bob/tiling/tiling.ipynb": (notebook("bob"), DUE)})
    for number in range(2_100):
        (source / "ann" / "tiling" / str(number % 60) / str(number)).mkdir(parents=True)
        (source / "cy" / str(number)).mkdir(parents=True)
    folder(source, {"cy/tiling/tiling.ipynb": (notebook("cy"), DUE)})
    result = take(source, tree)
    assert "more than 2000 files" in result.refused["ann"]
    assert [submitted(tree, student) for student in ("bob", "cy")] == [notebook("bob"), notebook("cy")]


def test_many_notebooks_at_once_are_not_all_judged(tree: CourseTree, tmp_path: Path) -> None:
    files = {f"bakerann_101_{900 + number}_tiling-{number}.ipynb": notebook(str(number)) for number in range(21)}
    assert take(zipped(tmp_path / "in.zip", files), tree, policy="best").refused == {
        "ann": "21 notebooks were handed in, the limit is 20: hand in tiling.ipynb only"
    }


def test_a_link_called_like_the_lab_is_not_followed_among_many_files(tree: CourseTree, tmp_path: Path) -> None:
    secret = folder(tmp_path / "secret", {"tiling.ipynb": (notebook("secret"), DUE)})
    source = folder(tmp_path / "in", {"bob/tiling/tiling.ipynb": (notebook("bob"), DUE)})
    (source / "ann").mkdir()
    (source / "ann" / "tiling").symlink_to(secret)
    for number in range(2_001):
        (source / "ann" / str(number)).touch()
    result = take(source, tree)
    assert result.students == ["bob"]
    assert "ann/" in [note.name for note in result.ignored]


def test_one_user_under_two_names_is_one_person_by_the_roster_and_in_doubt_without(
    tree: CourseTree, tmp_path: Path
) -> None:
    files = {f"{name}_101_90{number}_tiling-{number}.ipynb": notebook(name) for number, name in enumerate("ab")}
    source = zipped(tmp_path / "in.zip", files)
    assert len(take(source, tree).histories["ann"].attempts) == 2
    unknown = take(source, CourseTree(tmp_path / "other"), None)
    assert unknown.students == []
    assert "in doubt: Canvas's user 101 has several names here (a_101, b_101)" in unknown.ignored[0].reason


def test_a_path_of_a_zip_that_is_too_deep_is_refused_alone(tree: CourseTree, tmp_path: Path) -> None:
    files = {"ann/tiling/" + "x/" * 30_000 + "tiling.ipynb": notebook("deep"), "bob/tiling/tiling.ipynb": notebook()}
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert result.refused == {"ann": "folders lie deeper in each other than 8"}


def test_what_lies_in_place_of_a_notebook_in_the_tree_stops_nobody_and_leads_nowhere(
    tree: CourseTree, tmp_path: Path
) -> None:
    """A student may hand in folders and links that are called like the files that are written here."""
    (tmp_path / "precious").write_text("precious")
    books = {f"{name}/tiling/draft/tiling.ipynb": (notebook(name), DUE) for name in ("ann", "bob", "cy")}
    source = folder(tree.root / "submitted", books)
    (source / "ann" / "tiling" / "tiling.ipynb").mkdir()
    (source / "ann" / "tiling" / "timestamp.txt").mkdir()
    (source / "bob" / "tiling" / "tiling.ipynb.part").symlink_to(tmp_path / "precious")
    os.mkfifo(source / "cy" / "tiling" / "tiling.ipynb.part")
    result = take(None, tree)
    assert (result.students, result.refused) == (["ann", "bob", "cy"], {})
    assert [submitted(tree, student) for student in result.students] == [notebook(name) for name in result.students]
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_link_in_the_tree_is_not_taken_for_an_earlier_attempt(tree: CourseTree, tmp_path: Path) -> None:
    secret = folder(tmp_path / "secret", {"tiling/tiling.ipynb": (notebook("secret"), DUE)})
    (tree.root / "submitted").mkdir(parents=True)
    (tree.root / "submitted" / "ann").symlink_to(secret)
    history = take(folder(tmp_path / "in", {"ann.ipynb": (notebook("new"), DUE)}), tree).histories["ann"]
    assert [FileStore(tree).content("tiling", "ann", attempt.digest) for attempt in history.attempts] == [
        notebook("new")
    ]


def test_damaged_zips_give_a_sentence_and_never_a_traceback(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "in.zip", {"ann.ipynb": notebook("ann"), "b\u00f6b/tiling/tiling.ipynb": notebook()}, DUE)
    data, draw = whole.read_bytes(), random.Random(7)
    said = []
    for number in range(600):
        changed = bytearray(data)
        # Where zipfile looks: the directory and the headers more often than the contents.
        for _ in range(draw.choice([1, 1, 2, 8])):
            start = draw.choice([0, 0, data.rindex(b"PK\x01\x02"), data.index(b"PK\x01\x02"), len(data) - 22])
            changed[min(len(changed) - 1, start + draw.randrange(46))] = draw.choice([0, 1, 8, 99, 127, 128, 254, 255])
        (tmp_path / f"{number}.zip").write_bytes(changed[: draw.choice([len(data)] * 9 + [draw.randrange(len(data))])])
        said += what_reading_says(tmp_path / f"{number}.zip")
    assert all(text.isprintable() and len(text) < 400 for text in said)
    assert said.count("read") > 100
    assert len({text for text in said if "damaged" in text}) > 20


def what_reading_says(path: Path) -> list[str]:
    """For each file of a zip that it was read, or why not; any other error is the test's."""
    said = []
    try:
        with handed_zip.open_source(path) as files:
            place(files, "tiling")
            for file in files:
                try:
                    file.read()
                    said.append("read")
                except Refused as reason:
                    said.append(str(reason))
    except UserError as error:
        said.append(str(error).replace(str(path), ""))
    return said


@pytest.mark.parametrize("offset", [6, 8, 10])
@pytest.mark.parametrize("value", [0x20, 0x40, 0x41, 99])
def test_a_zip_of_a_kind_that_is_not_read_is_a_sentence(tmp_path: Path, offset: int, value: int) -> None:
    """Versions, flags and packings that `zipfile` does not know."""
    path = zipped(tmp_path / "in.zip", {"ann.ipynb": notebook("ann")})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + offset] = value
    path.write_bytes(data)
    assert len(what_reading_says(path)) == 1
