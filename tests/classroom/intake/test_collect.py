import io
import json
import os
import struct
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from helpers.handing_in import DUE, NOW, folder, notebook, stamped, submitted, take, zipped
from hypothesis import given
from hypothesis import strategies as st

from mlsys.classroom.intake import archive as handed_zip
from mlsys.classroom.intake import files as handed_files
from mlsys.classroom.intake.archive import BadArchive
from mlsys.classroom.intake.collect import collect
from mlsys.classroom.intake.files import SubmittedFile, safe_name
from mlsys.classroom.intake.layouts import place
from mlsys.classroom.intake.reader import MAX_BYTES, Refused
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.attempt_policy import Choice, best, candidates
from mlsys.classroom.students.history import Attempt
from mlsys.classroom.students.late import Late, Rule
from mlsys.classroom.students.roster import Roster, Student, parse_roster
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError


def content(tree: CourseTree, student: str, attempt: Attempt) -> bytes:
    return FileStore(tree).content("tiling", student, attempt.digest)


@pytest.fixture
def tree(tmp_path: Path) -> CourseTree:
    return CourseTree(tmp_path / "course")


def test_canvas_download_finds_students_by_user_id(tree: CourseTree, tmp_path: Path) -> None:
    source = zipped(
        tmp_path / "canvas.zip",
        {
            "bakerann_101_900_tiling.ipynb": notebook("ann"),
            "renamed_LATE_102_901_tiling-1.ipynb": notebook("bob"),
            "stranger_555_902_tiling.ipynb": notebook("stranger"),
        },
        NOW,
    )
    result = take(source, tree)
    assert result.students == ["ann", "bob", "stranger_555"]
    assert [submitted(tree, student) for student in result.students] == [
        notebook("ann"),
        notebook("bob"),
        notebook("stranger"),
    ]
    assert [note.name for note in result.unknown] == ["stranger_555"]
    assert result.missing == ("cy",)
    bob = result.choices["bob"][0].attempt
    assert bob is not None
    # The time in Canvas's zip is that of the download, and is not taken for the student's.
    assert (bob.time, bob.number, bob.late, bob.canvas_id) == (None, 901, True, "102")


def test_moodle_download_finds_students_by_name(tree: CourseTree, tmp_path: Path) -> None:
    source = zipped(
        tmp_path / "moodle.zip",
        {
            "Ann Baker_4711_assignsubmission_file_/my work.ipynb": notebook("ann"),
            "Bob Carter_4712_assignsubmission_file_tiling.ipynb": notebook("bob"),
            "Cy Dunn_4713_assignsubmission_onlinetext_/onlinetext.html": b"<p>see mail</p>",
            "Participant 9_4714_assignsubmission_file_/tiling.ipynb": notebook("who"),
        },
        NOW,
    )
    result = take(source, tree)
    assert result.students == ["Participant-9_4714", "ann", "bob", "cy"]
    assert submitted(tree, "ann") == notebook("ann")
    assert result.histories["ann"].attempts[0].time is None
    assert result.refused == {
        "cy": "no notebook was handed in, only online text onlinetext.html: hand in tiling.ipynb",
    }
    assert [note.name for note in result.unknown] == ["Participant-9_4714"]


def test_nbgrader_tree_brings_its_own_times(tree: CourseTree, tmp_path: Path) -> None:
    stamps = {
        "submitted/ann/tiling/timestamp.txt": (b"2026-11-19 10:00:00.123456 UTC", NOW),
        "submitted/bob/tiling/timestamp.txt": (b"2026-11-19 10:00:00", NOW),
    }
    books = {f"submitted/{name}/tiling/Copy of tiling.ipynb": (notebook(name), NOW) for name in ("ann", "bob")}
    result = take(folder(tmp_path / "in", {**stamps, **books}), tree)
    times = {name: choices[0].attempt.time for name, choices in result.choices.items() if choices[0].attempt}
    assert times == {"ann": datetime(2026, 11, 19, 10, 0, 0, 123456, UTC), "bob": None}
    assert ["names no time zone" in note.reason for note in result.doubtful] == [True]
    assert tree.submitted("tiling", "ann").with_name("timestamp.txt").read_text().startswith("2026-11-19 10:00:00.1")


def test_flat_folder_and_the_zip_of_it_are_the_same(tree: CourseTree, tmp_path: Path) -> None:
    flat = folder(tmp_path / "flat", {"ann.ipynb": (notebook("a"), DUE), "cy.ipynb": (notebook("c"), DUE)})
    packed = zipped(tmp_path / "f.zip", {f"flat/{file.name}": file.read_bytes() for file in flat.iterdir()}, DUE)
    one = take(flat, tree)
    other = take(packed, CourseTree(tmp_path / "other"))
    for result in (one, other):
        assert {name: history.attempts[0].time for name, history in result.histories.items()} == {
            "ann": None,
            "cy": None,
        }
    assert one.students == other.students == ["ann", "cy"]


def test_without_a_roster_the_file_names_the_student(tree: CourseTree, tmp_path: Path) -> None:
    result = take(folder(tmp_path / "in", {"zed.ipynb": (notebook(), DUE)}), tree, roster=None)
    assert (result.students, result.unknown, result.missing) == (["zed"], (), ())


def test_resubmission_is_another_attempt_and_both_are_kept(tree: CourseTree, tmp_path: Path) -> None:
    first = {"ann.ipynb": (notebook("first"), DUE - timedelta(days=2))}
    second = {"ann.ipynb": (notebook("second"), DUE - timedelta(days=1))}
    take(stamped(tmp_path / "in", first), tree)
    history = take(stamped(tmp_path / "in", second), tree).histories["ann"]
    assert [content(tree, "ann", attempt) for attempt in history.attempts] == [
        notebook("first"),
        notebook("second"),
    ]
    assert submitted(tree, "ann") == notebook("second")
    # An old copy that comes in later is no newer for that.
    again = take(stamped(tmp_path / "old", first), tree)
    assert again.histories["ann"].attempts == history.attempts
    assert submitted(tree, "ann") == notebook("second")


@pytest.mark.parametrize("kind", ["canvas", "flat", "moodle"])
def test_collecting_again_changes_nothing(tree: CourseTree, tmp_path: Path, kind: str) -> None:
    names = {"canvas": "bakerann_101_900_tiling.ipynb", "flat": "ann.ipynb"}
    names["moodle"] = "Ann Baker_1_assignsubmission_file_/tiling.ipynb"
    source = zipped(tmp_path / "in.zip", {names[kind]: notebook()}, DUE if kind == "flat" else None)
    first = take(source, tree)
    files = {path: path.read_bytes() for path in tree.root.rglob("*") if path.is_file()}
    assert take(source, tree) == first
    # What lies in the tree by now is no further attempt either.
    assert take(None, tree).histories == first.histories
    assert {path: path.read_bytes() for path in tree.root.rglob("*") if path.is_file()} == files


def test_draft_left_by_a_kill_does_no_harm(tree: CourseTree, tmp_path: Path) -> None:
    source = folder(tmp_path / "in", {"ann.ipynb": (notebook("a"), DUE)})
    clean = take(source, CourseTree(tmp_path / "clean")).histories["ann"].attempts
    path = tree.attempts("tiling", "ann")
    path.parent.mkdir(parents=True)
    path.with_name("attempts.json.part").write_text("[{")
    FileStore(tree).save_content("tiling", "ann", "0123456789abcdef", b"a kept file that no list names yet")
    assert take(source, tree).histories["ann"].attempts == clean


def test_damaged_list_is_named_and_not_begun_anew(tree: CourseTree, tmp_path: Path) -> None:
    source = folder(tmp_path / "in", {"ann.ipynb": (notebook("a"), DUE)})
    take(source, tree)
    path = tree.attempts("tiling", "ann")
    path.write_text("[{")
    with pytest.raises(UserError, match=r"attempts.json cannot be read"):
        take(source, tree)


@pytest.mark.parametrize("time", ["yesterday", "2026-11-20T18:00"])
def test_a_time_entered_in_another_form_is_named_with_one_that_can_be_read(
    tree: CourseTree, tmp_path: Path, time: str
) -> None:
    source = folder(tmp_path / "in", {"ann.ipynb": (notebook("a"), DUE)})
    take(source, tree)
    path = tree.attempts("tiling", "ann")
    kept = json.loads(path.read_text())
    kept["attempts"] = [entry | {"time": time} for entry in kept["attempts"]]
    path.write_text(json.dumps(kept))
    with pytest.raises(UserError, match=rf"attempts.json cannot be read .*{time[:9]}.*times look like") as found:
        take(source, tree)
    entered = str(found.value).split("look like ")[1].split(")")[0]
    path.write_text(path.read_text().replace(f'"{time}"', entered))
    assert take(source, tree).histories["ann"].attempts[0].time == datetime(2026, 11, 20, 17, tzinfo=UTC)


def test_time_that_a_person_entered_counts_and_stays(tree: CourseTree, tmp_path: Path) -> None:
    first = {"carterbob_LATE_102_900_tiling.ipynb": notebook("one")}
    both = first | {"carterbob_LATE_102_910_tiling-1.ipynb": notebook("two")}
    take(zipped(tmp_path / "one.zip", first), tree)
    result = take(zipped(tmp_path / "two.zip", both), tree, policy="on-time")
    assert "enter its time in attempts.json" in result.refused["bob"]
    path = tree.attempts("tiling", "bob")
    kept = json.loads(path.read_text())
    entries = kept["attempts"]
    entries[0]["time"], entries[1]["time"] = "2026-11-20T23:59:00+01:00", "2026-11-23T00:00:00+01:00"
    path.write_text(json.dumps(kept))
    result = take(tmp_path / "two.zip", tree, policy="on-time")
    assert submitted(tree, "bob") == notebook("one")
    assert len(result.histories["bob"].attempts) == 2
    path.write_text(path.read_text().replace("+01:00", ""))
    with pytest.raises(UserError, match=r"has no time zone: add its distance from UTC, as in 2026-11-20T18:00\+01:00"):
        take(tmp_path / "two.zip", tree)


def test_what_lay_in_the_tree_before_is_kept_as_an_attempt(tree: CourseTree, tmp_path: Path) -> None:
    folder(tree.root, {"submitted/ann/tiling/tiling.ipynb": (notebook("old"), DUE - timedelta(days=3))})
    history = take(folder(tmp_path / "in", {"ann.ipynb": (notebook("new"), DUE)}), tree).histories["ann"]
    assert [attempt.origin for attempt in history.attempts] == ["submitted", "flat"]
    assert content(tree, "ann", history.attempts[0]) == notebook("old")


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "the file is empty"), (b"{", "damaged or cut off"), (b"PK\x03\x04", "not a notebook"), (b"x" * 9, "not a")],
)
def test_unreadable_resubmission_is_refused_and_the_old_score_is_not_kept(
    tree: CourseTree, tmp_path: Path, data: bytes, reason: str
) -> None:
    take(folder(tmp_path / "in", {"ann.ipynb": (notebook("good"), DUE - timedelta(days=1))}), tree)
    result = take(folder(tmp_path / "in", {"ann.ipynb": (data, DUE)}), tree)
    assert reason in result.refused["ann"]
    assert submitted(tree, "ann") == data
    assert len(result.histories["ann"].attempts) == 2
    readable = take(None, tree, policy="best").choices["ann"]
    assert [choice.attempt.refused for choice in readable if choice.attempt] == [""]


def test_file_too_big_leaves_nothing_old_to_grade(tree: CourseTree, tmp_path: Path) -> None:
    take(folder(tmp_path / "in", {"ann.ipynb": (notebook("good"), DUE - timedelta(days=1))}), tree)
    result = take(folder(tmp_path / "in", {"ann.ipynb": (b" " * (MAX_BYTES + 1), DUE)}), tree)
    assert "the limit is 20 MB" in result.refused["ann"]
    assert not list(tree.submitted("tiling", "ann").parent.iterdir())
    assert len(list((tree.root / "attempts").rglob("*.ipynb"))) == 1


def test_several_notebooks_of_other_names_are_not_guessed_among(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "bakerann_101_900_tiling.ipynb": notebook("old"),
        "bakerann_101_950_tiling-1.ipynb": notebook("new"),
        "bakerann_101_951_scratch.ipynb": notebook("scratch"),
        "carterbob_102_910_one.ipynb": notebook("one"),
        "carterbob_102_911_two.ipynb": notebook("two"),
    }
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert submitted(tree, "ann") == notebook("new")
    assert "several notebooks were handed in (one.ipynb, two.ipynb)" in result.refused["bob"]


def test_empty_folder_of_a_student_is_refused_and_listed(tree: CourseTree, tmp_path: Path) -> None:
    (tmp_path / "in" / "submitted" / "ann" / "tiling").mkdir(parents=True)
    assert "no file was handed in" in take(tmp_path / "in", tree).refused["ann"]


# Policies


def attempts(*offsets: int | None, **about: bool) -> list[Attempt]:
    """Attempts that many hours after the due time."""
    return [
        Attempt(f"d{index}", "x", "flat", None if hours is None else DUE + timedelta(hours=hours), **about)
        for index, hours in enumerate(offsets)
    ]


def counted(choices: list[Choice]) -> str:
    (choice,) = choices
    return choice.attempt.digest if choice.attempt else choice.reason


def test_newest_counts_and_its_lateness_is_told() -> None:
    (choice,) = candidates(attempts(-5, 30), "newest", Rule(DUE))
    assert choice.attempt is not None
    assert choice.attempt.digest == "d1"
    assert choice.late is not None
    assert (choice.late.minutes, choice.late.needed) == (30 * 60, 2)


def test_last_on_time_counts_late_days_included() -> None:
    assert counted(candidates(attempts(-5, 0, 1), "on-time", Rule(DUE))) == "d1"
    assert counted(candidates(attempts(-5, 0, 1, 25), "on-time", Rule(DUE, 1))) == "d2"
    assert "each of the 2 attempts came after the due time 2026-11-20 22:59 UTC" in counted(
        candidates(attempts(1, 2), "on-time", Rule(DUE))
    )


def test_unknown_time_is_never_taken_for_on_time() -> None:
    assert "is not known" in counted(candidates(attempts(-5, None), "on-time", Rule(DUE)))
    # Where the LMS says whether it is late, that counts.
    assert counted(candidates(attempts(None, late=False), "on-time", Rule(DUE))) == "d0"
    assert "came after" in counted(candidates(attempts(None, late=True), "on-time", Rule(DUE)))
    assert "is not known" in counted(candidates(attempts(None, late=True), "on-time", Rule(DUE, 2)))


def test_best_needs_every_attempt_graded_and_takes_the_newest_of_equals() -> None:
    choices = candidates(attempts(1, 2, 3), "best")
    with pytest.raises(UserError, match="not graded yet"):
        best(choices, {"d0": 3, "d1": 9})
    assert counted([best(choices, {"d0": 3, "d1": 9, "d2": 9})]) == "d2"
    assert counted([best(choices, {"d0": 3, "d1": 9, "d2": 0})]) == "d1"


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=6, unique=True), st.integers(0, 3))
def test_last_on_time_is_the_latest_not_after_the_limit(hours: list[int], late_days: int) -> None:
    choice = counted(candidates(attempts(*sorted(hours)), "on-time", Rule(DUE, late_days)))
    allowed = [hour for hour in sorted(hours) if hour <= 24 * late_days]
    assert choice == f"d{len(allowed) - 1}" if allowed else "came after" in choice


def test_worse_resubmission_follows_the_policy(tree: CourseTree, tmp_path: Path) -> None:
    for name, hours in (("good", -1), ("worse", 3)):
        take(stamped(tmp_path / "in", {"ann.ipynb": (notebook(name), DUE + timedelta(hours=hours))}), tree)
    assert submitted(tree, "ann") == notebook("worse")
    take(None, tree, policy="on-time")
    assert submitted(tree, "ann") == notebook("good")
    assert len(take(None, tree, policy="best").choices["ann"]) == 2
    take(None, tree)
    assert submitted(tree, "ann") == notebook("worse")
    assert len(FileStore(tree).history("tiling", "ann").attempts) == 2


def test_extension_and_late_days_of_the_roster_hold(tree: CourseTree, tmp_path: Path) -> None:
    late = DUE + timedelta(hours=30)
    files = {f"{name}.ipynb": (notebook(name), late) for name in ("ann", "bob", "cy")}
    result = take(stamped(tmp_path / "in", files), tree, policy="on-time")
    assert list(result.refused) == ["ann"]
    assert result.choices["bob"][0].late == Late(30 * 60, 2, 2)
    assert result.choices["cy"][0].late == Late()
    assert not list(tree.submitted("tiling", "ann").parent.iterdir())
    # The empty place in the tree is no attempt of its own, and another policy finds what was handed in.
    assert take(None, tree, policy="on-time").refused == result.refused
    assert take(None, tree).refused == {}
    assert submitted(tree, "ann") == notebook("ann")


def test_late_days_spent_on_one_lab_are_gone_for_the_next(tree: CourseTree, tmp_path: Path) -> None:
    due = {"warmup": DUE - timedelta(days=7), "tiling": DUE}
    roster = Roster({"bob": Student("bob", late_days=2, due=due)}, ("warmup", "tiling"))
    spent = {"bob.ipynb": (notebook("warmup"), due["warmup"] + timedelta(hours=30))}
    collect(stamped(tmp_path / "warmup", spent, "warmup"), tree, "warmup", roster, policy="on-time", now=NOW)
    late = stamped(tmp_path / "in", {"bob.ipynb": (notebook("tiling"), DUE + timedelta(hours=1))})
    assert "came after the due time" in take(late, tree, roster, "on-time").refused["bob"]
    assert "bob" not in take(late, CourseTree(tmp_path / "other"), roster, "on-time").refused


def test_policy_that_needs_due_times_says_so(tree: CourseTree, tmp_path: Path) -> None:
    source = folder(tmp_path / "in", {"ann.ipynb": (notebook(), DUE)})
    with pytest.raises(UserError, match=r"'on-time' needs due times: give a roster with a column 'due tiling'"):
        take(source, tree, roster=None, policy="on-time")
    with pytest.raises(UnknownName, match="did you mean 'newest'"):
        take(source, tree, policy="newst")


def test_time_in_the_future_is_in_doubt_and_not_on_time(tree: CourseTree, tmp_path: Path) -> None:
    source = stamped(tmp_path / "in", {"cy.ipynb": (notebook(), NOW + timedelta(days=400))})
    result = take(source, tree, policy="on-time")
    assert "is in the future" in result.doubtful[0].reason
    assert "is not known" in result.refused["cy"]


# Attacks


@pytest.mark.parametrize(
    "name",
    [
        "../../evil.ipynb",
        "/etc/cron.d/evil.ipynb",
        "a/../../tiling/evil.ipynb",
        "..\\..\\evil.ipynb",
        "C:evil.ipynb",
        "x\n/tiling/tiling.ipynb",
        "../tiling/tiling.ipynb",
        "a\u202ebpyni.exe.ipynb",
        "ann//tiling/tiling.ipynb",
    ],
)
def test_name_that_climbs_is_listed_and_goes_nowhere(tree: CourseTree, tmp_path: Path, name: str) -> None:
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    deep = CourseTree(inside / "course")
    result = take(zipped(tmp_path / "in.zip", {name: notebook("evil"), "ann.ipynb": notebook("ann")}), deep)
    assert result.students == ["ann"]
    assert ["leads out of the folder" in note.reason for note in result.ignored] == [True]
    assert result.ignored[0].name.isprintable()
    files = {path for path in tmp_path.rglob("*") if path.is_file()} - {tmp_path / "in.zip"}
    assert not [path for path in files if b"evil" in path.read_bytes()]
    assert {path.relative_to(deep.root).parts[1] for path in files} == {"ann"}


@pytest.mark.parametrize("student", ['a"b', "=cmd", ".", "-x", "ann'", "a;b", "x" * 150, "a,b"])
def test_odd_student_name_is_listed_and_the_others_go_on(tree: CourseTree, tmp_path: Path, student: str) -> None:
    files = {f"{student}.ipynb": notebook("odd"), "bob.ipynb": notebook("bob")}
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert result.students == ["bob"]
    assert len(result.ignored) == 1


def test_links_are_refused_in_folders_and_zips(tree: CourseTree, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(notebook("secret"))
    source = folder(tmp_path / "in", {"bob.ipynb": (notebook("bob"), DUE)})
    (source / "ann.ipynb").symlink_to(secret)
    os.mkfifo(source / "cy.ipynb")
    assert set(take(source, tree).refused.values()) == {"it is a link or a device, not a file"}
    link = zipfile.ZipInfo("ann.ipynb")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "links.zip", "w") as archive:
        archive.writestr(link, str(secret))
    other = CourseTree(tmp_path / "other")
    assert take(tmp_path / "links.zip", other).refused == {"ann": "it is a link or a device, not a file"}
    assert not [path for path in tree.root.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


def test_link_put_there_after_the_look_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(notebook("secret"))
    source = folder(tmp_path / "in", {"ann.ipynb": (notebook(), DUE)})
    with handed_zip.open_source(source) as (file,):
        (source / "ann.ipynb").unlink()
        (source / "ann.ipynb").symlink_to(tmp_path / "secret")
        with pytest.raises(Refused, match="could not be read"):
            file.read()


def test_file_that_may_be_of_two_students_is_given_to_neither(tree: CourseTree, tmp_path: Path) -> None:
    roster = parse_roster("id,name,sis login id\nann,Ann,\nother,Other,ann\n")
    result = take(folder(tmp_path / "in", {"ann.ipynb": (notebook(), DUE)}), tree, roster)
    assert result.students == []
    assert "ids belong to several students: ann, other" in result.ignored[0].reason
    assert result.missing == ("ann", "other")


def test_folder_that_is_a_link_is_not_followed(tree: CourseTree, tmp_path: Path) -> None:
    folder(tmp_path / "private", {"tiling/tiling.ipynb": (notebook("secret"), DUE)})
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "ann").symlink_to(tmp_path / "private")
    assert take(tmp_path / "in", tree).students == []


def test_bomb_costs_only_its_own_student(tree: CourseTree, tmp_path: Path) -> None:
    files = {"ann.ipynb": b" " * 15_000_000, "bob.ipynb": b" " * (MAX_BYTES + 1), "cy.ipynb": notebook("cy")}
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert "unpacks to more than 100 times its size" in result.refused["ann"]
    assert "the limit is 20 MB" in result.refused["bob"]
    assert submitted(tree, "cy") == notebook("cy")


def test_size_that_the_zip_lies_about_is_not_believed(tree: CourseTree, tmp_path: Path) -> None:
    path = zipped(tmp_path / "in.zip", {"ann.ipynb": b" " * (MAX_BYTES + 5), "cy.ipynb": notebook("cy")})
    data = path.read_bytes().replace(struct.pack("<L", MAX_BYTES + 5), struct.pack("<L", 1000))
    path.write_bytes(data)
    result = take(path, tree)
    assert "damaged inside the zip" in result.refused["ann"]
    assert "cy" not in result.refused


def test_zip_of_too_many_files_is_refused_before_it_is_listed(
    tree: CourseTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed_zip, "MAX_FILES", 50)
    path = zipped(tmp_path / "in.zip", {f"s{number}.ipynb": b"" for number in range(51)})
    with pytest.raises(BadArchive, match="holds 51 files, the limit is 50"):
        take(path, tree)
    monkeypatch.setattr(handed_zip, "ENTRY_BYTES", 46)
    monkeypatch.setattr(zipfile.ZipFile, "__init__", lambda *_: pytest.fail("the directory was read"))
    with pytest.raises(BadArchive, match="the limit is 50"):
        handed_zip.opened(path)


def test_notebooks_too_big_together_are_refused(
    tree: CourseTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handed_zip, "MAX_TOTAL_BYTES", 1000)
    path = zipped(tmp_path / "in.zip", {f"s{number}.ipynb": notebook("x" * 100) for number in range(9)})
    with pytest.raises(BadArchive, match="grade it in several parts"):
        take(path, tree)


def test_overlapping_entries_are_refused(tree: CourseTree, tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ann.ipynb", os.urandom(4000))
        first = archive.infolist()[0]
        for number in range(5):
            copy = zipfile.ZipInfo(f"s{number}.ipynb")
            copy.header_offset, copy.CRC, copy.compress_type = first.header_offset, first.CRC, first.compress_type
            copy.file_size, copy.compress_size = first.file_size, first.compress_size
            archive.filelist.append(copy)
    (tmp_path / "in.zip").write_bytes(out.getvalue())
    with pytest.raises(BadArchive, match="overlap"):
        take(tmp_path / "in.zip", tree)


def test_encrypted_and_oddly_packed_members_are_refused_one_by_one(tree: CourseTree, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "in.zip", "w") as archive:
        archive.writestr("ann.ipynb", notebook("a"))
        archive.writestr("bob.ipynb", notebook("b"), zipfile.ZIP_LZMA)
        archive.writestr("cy.ipynb", notebook("c"))
        archive.infolist()[0].flag_bits |= 1
    reasons = take(tmp_path / "in.zip", tree).refused
    assert {name: reason.split(":")[0] for name, reason in reasons.items()} == {
        "ann": "it is encrypted",
        "bob": "it is packed in a way that is not read here",
    }


@pytest.mark.parametrize("name", ["nowhere.zip", "text.zip", "cut.zip"])
def test_what_is_no_source_is_named(tree: CourseTree, tmp_path: Path, name: str) -> None:
    (tmp_path / "text.zip").write_text("not a zip")
    (tmp_path / "cut.zip").write_bytes(zipped(tmp_path / "in.zip", {"ann.ipynb": notebook()}).read_bytes()[:-30])
    with pytest.raises(UserError, match=name):
        take(tmp_path / name, tree)


def test_folder_of_too_many_files_is_refused(tree: CourseTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handed_files, "MAX_FILES", 3)
    source = folder(tmp_path / "in", {f"s{number}.ipynb": (notebook(), DUE) for number in range(4)})
    with pytest.raises(UserError, match="more than 3 files"):
        take(source, tree)


def test_debris_of_file_managers_is_no_submission(tree: CourseTree, tmp_path: Path) -> None:
    files = {
        "class/ann.ipynb": notebook("ann"),
        "class/.ipynb_checkpoints/ann-checkpoint.ipynb": notebook("older"),
        "./": b"",
        "__MACOSX/class/._ann.ipynb": b"\x00\x05\x16\x07",
        "class/.DS_Store": b"x",
        "./class/readme.txt": b"hello",
    }
    result = take(zipped(tmp_path / "in.zip", files), tree)
    assert result.students == ["ann"]
    assert [note.name for note in result.ignored] == ["class/readme.txt"]


@pytest.mark.parametrize(
    ("name", "key", "title", "late"),
    [
        ("student7_12345_678_tiling.ipynb", "student7_12345", "tiling.ipynb", False),
        ("doejane_LATE_12345_678_3_tiling_2.ipynb", "doejane_12345", "3_tiling_2.ipynb", True),
        ("anon_Ab3dE_678_12_tiling.ipynb", "anon_Ab3dE", "12_tiling.ipynb", False),
        ("LATE_anon_Ab3dE_678_tiling.ipynb", "anon_Ab3dE", "tiling.ipynb", True),
        ("müllerjörg_1_2_x.ipynb", "müllerjörg_1", "x.ipynb", False),
    ],
)
def test_names_of_canvas_are_taken_apart(name: str, key: str, title: str, late: bool) -> None:
    (handed,), ignored = place([SubmittedFile(name)], "tiling")
    assert (handed.origin, handed.key, handed.title, handed.late, ignored) == ("canvas", key, title, late, [])


@given(st.lists(st.text(max_size=20), max_size=6))
def test_no_name_leads_to_a_place_outside(names: list[str]) -> None:
    handed, ignored = place([SubmittedFile(name) for name in names], "tiling")
    assert all(safe_name(item.file.name) for item in handed)
    assert len(handed) + len(ignored) <= len(names)
