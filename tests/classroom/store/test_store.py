"""What is kept of a class is read again as it was, in every form in which it was ever written."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Run
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError
from mlsys.grading.verdicts import Verdict

SEED = 94666634836525636993858132440932657400895983231343687186786338945838635224432

FIRST_RECORD = """{
 "student": "ann", "lab": "adding", "version": "1", "graded_at": "2026-11-20T10:00:00+00:00", "state": "abc",
 "submission": "def", "device": "cpu", "versions": {"torch": "2.13.0+cpu"}, "seed": 12, "refused": "",
 "repairs": ["one"],
 "questions": [{"question": "c", "title": "C", "grade_id": "c-test", "verdict": "slow", "points": 2, "max_points": 8,
   "message": "m", "detail": "d", "seconds": 0.25}]
}"""
"""As the first version of the package wrote it: without run, sandbox and pictures."""

LATER_RECORD = """{
 "student": "ann", "lab": "adding", "version": "2", "graded_at": "2026-11-23T03:56:15+00:00", "state": "c051",
 "submission": "00ab", "device": "gpu", "versions": {"python": "3.11.7"}, "run": "cb84", "seed": SEED,
 "sandboxed": false, "refused": "", "repairs": [],
 "questions": [{"question": "a", "title": "A", "grade_id": "a-test", "verdict": "error", "points": 0.0,
   "max_points": 10.0, "message": "cut \\ud83d off", "detail": "", "seconds": 9.7, "picture": {"rows": [1, NaN]},
   "lost": true}]
}""".replace("SEED", str(SEED))
"""As it was written before a schema was counted, with what JSON allows and strict readers refuse."""


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    tree = CourseTree(tmp_path / "course")
    tree.create()
    return FileStore(tree)


def place(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_record_is_read_as_it_was_written(store: FileStore) -> None:
    verdicts = (Verdict.passed(), Verdict("error", message="line\n=1+1 \ud83d"))
    about = {"question": "c", "title": "", "grade_id": "c-test", "max_points": 8, "seconds": 0.1}
    record = Record(
        student="ann",
        lab="tiling",
        version="1",
        graded_at="2026-01-01T00:00:00+00:00",
        versions={"torch": "2"},
        run="abc",
        seed=SEED,
        sandboxed=False,
        repairs=("one",),
        questions=tuple(QuestionRecord.of(verdict, **about) for verdict in verdicts),  # type: ignore[arg-type]
    )
    store.save_record(record)
    assert store.record("tiling", "ann") == record
    assert store.records("tiling") == {"ann": record}
    folder = store.tree.records("tiling")
    assert [path.name for path in folder.iterdir()] == ["ann.json"]
    assert json.loads((folder / "ann.json").read_text())["schema"] == 1


def test_the_first_form_of_a_record_is_still_read(store: FileStore) -> None:
    place(store.tree.record("adding", "ann"), FIRST_RECORD)
    question = QuestionRecord("c", "C", "c-test", "slow", 2, 8, "m", "d", 0.25)
    assert store.record("adding", "ann") == Record(
        student="ann",
        lab="adding",
        version="1",
        graded_at="2026-11-20T10:00:00+00:00",
        state="abc",
        submission="def",
        device="cpu",
        versions={"torch": "2.13.0+cpu"},
        seed=12,
        repairs=("one",),
        questions=(question,),
    )


def test_a_record_without_a_schema_is_still_read(store: FileStore) -> None:
    for path in (store.tree.record("adding", "ann"), store.tree.attempt_record("adding", "ann", "00ab")):
        place(path, LATER_RECORD)
    record = store.record("adding", "ann")
    assert record is not None
    assert (record.run, record.seed, record.sandboxed, record.device) == ("cb84", SEED, False, "gpu")
    (question,) = record.questions
    assert (question.lost, question.message) == (True, "cut \ud83d off")
    attempt = store.attempt_record("adding", "ann", "00ab")
    assert attempt is not None
    assert (attempt.state, attempt.submission) == ("c051", "00ab")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "[" * 100_000,
        '{"questions": [], "repairs": []}',
        '{"questions": [{"a": 1}], "repairs": []}',
        FIRST_RECORD.replace('"seed": 12', '"seed": "12"'),
        FIRST_RECORD.replace("{\n", '{"schema": 2,\n', 1),
        FIRST_RECORD.replace("{\n", '{"schema": null,\n', 1),
    ],
)
def test_a_record_that_cannot_be_read_counts_as_none_and_is_listed(store: FileStore, content: str) -> None:
    place(store.tree.record("adding", "bad"), content)
    assert store.record("adding", "bad") is None
    assert store.records("adding") == {"bad": None}
    assert store.record("adding", "missing") is None


def test_a_run_is_read_as_it_was_written_and_in_its_first_form(store: FileStore) -> None:
    run = Run("ab", "2026-11-23T03:55:53+00:00", sandboxed=False, arguments={"student": "ann"}, finished=True)
    store.save_run("adding", run)
    assert store.run("adding") == run
    first = '{"secret": "cd", "started_at": "2026-11-23T03:55:53+00:00", "arguments": {}, "finished": false}'
    store.tree.run("adding").write_text(first)
    assert store.run("adding") == Run("cd", "2026-11-23T03:55:53+00:00")
    assert store.run("another") is None


@pytest.mark.parametrize("content", ['{"secret": 3, "started_at": "x"}', '{"started_at": "x"}', '{"schema": 9}', "[]"])
def test_a_run_of_another_form_is_named(store: FileStore, content: str) -> None:
    place(store.tree.run("adding"), content)
    with pytest.raises(UserError, match=r"adding.json is damaged \(.+\): delete it"):
        store.run("adding")


ATTEMPT = Attempt("d1", "x.ipynb", "canvas", datetime(2026, 11, 20, 17, tzinfo=UTC), 901, True, "102", "")


def test_a_history_is_read_as_it_was_written_and_as_a_list_alone(store: FileStore) -> None:
    history = History((ATTEMPT, Attempt("", "y", "flat", refused="it is empty")))
    store.save_history("adding", "ann", history)
    assert store.history("adding", "ann") == history
    path = store.tree.attempts("adding", "ann")
    kept = json.loads(path.read_text())
    assert kept["schema"] == 1
    path.write_text(json.dumps(kept["attempts"]))
    assert store.history("adding", "ann") == history
    assert store.history("adding", "bob") == History()


@pytest.mark.parametrize(
    "content", ["3", "[3]", "{}", '[{"time": null}]', '[{"digest": 3, "name": "", "origin": "", "time": null}]']
)
def test_a_history_of_another_form_is_named(store: FileStore, content: str) -> None:
    path = store.tree.attempts("adding", "ann")
    place(path, content)
    with pytest.raises(UserError, match=r"attempts.json cannot be read \(.+\): correct it"):
        store.history("adding", "ann")


def test_half_a_character_that_a_students_code_printed_is_kept(tmp_path: Path) -> None:
    store = FileStore(CourseTree(tmp_path))
    question = QuestionRecord("a", "A", "a-test", "error", 0, 1, message="half \ud83d, and a whole 🙂")
    kept = Record("ann", "adding", "1", "now", questions=(question,))
    store.save_record(kept)
    assert store.record("adding", "ann") == kept
