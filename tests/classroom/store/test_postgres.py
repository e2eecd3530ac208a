"""A class in a real PostgreSQL: kept as in files, locked, and whole after kills of a connection and of the server."""

import os
import shutil
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from helpers.postgres import Server, postgres

from mlsys.classroom.similarity.works import students_with_attempts
from mlsys.classroom.store import postgres as module
from mlsys.classroom.store.configured import store_of
from mlsys.classroom.store.move import move_to_database, move_to_files
from mlsys.classroom.store.postgres import PostgresStore
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.run import Run
from mlsys.classroom.store.store import KINDS, FileStore
from mlsys.classroom.students.history import Attempt, History
from mlsys.cli.main import main
from mlsys.course.nbgrader import check_database, database_url, gradebook_url, open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError

__all__ = ["postgres"]


@pytest.fixture
def url(postgres: Server) -> str:
    return postgres.create()


@pytest.fixture
def tree(prototype: CourseTree, tmp_path: Path) -> CourseTree:
    shutil.copytree(prototype.root, tmp_path / "course")
    return CourseTree(tmp_path / "course")


@pytest.fixture(scope="module")
def prototype(tmp_path_factory: pytest.TempPathFactory) -> CourseTree:
    tree = CourseTree(tmp_path_factory.mktemp("prototype") / "course")
    tree.create()
    fill(FileStore(tree))
    with open_gradebook(tree) as gradebook:
        gradebook.update_or_create_assignment("adding", duedate=datetime(2026, 11, 20, 18, 0, 0, 5))
        gradebook.add_student("ann", first_name="Ánn", last_name="O'Neil")
    return tree


@pytest.fixture
def moved(tree: CourseTree, url: str) -> Iterator[tuple[CourseTree, PostgresStore]]:
    move_to_database(tree, url)
    store = store_of(tree)
    assert isinstance(store, PostgresStore)
    yield tree, store
    if store._connection is not None:
        store._connection.close()


def record(student: str = "ann", points: float = 2.0) -> Record:
    questions = (QuestionRecord("a", "A", "a-test", "passed", points, 2.0, "cut \ud83d off\x00"),)
    return Record(
        student, "adding", "1", "2026-11-20T10:00:00+00:00", "state", "def", run="r1", seed=2**255, questions=questions
    )


def fill(store: FileStore) -> None:
    store.secret()
    store.save_record(record())
    store.save_attempt_record(replace(record(), submission=""))
    store.save_run("adding", Run.new())
    store.save_marks("adding", {})
    store.save_scores("adding", store.scores("adding", "ann").with_record(record(), "2026-11-20 10:00"))
    time = datetime(2026, 11, 20, 18, tzinfo=UTC)
    store.save_history("adding", "ann", History((Attempt("def", "a.ipynb", "flat", time),)))
    store.save_content("adding", "ann", "def", bytes(range(256)))


def documents(store: FileStore | PostgresStore) -> dict[object, bytes | None]:
    return {key: store.read(key) for key in store.all_keys()}


def rows_of(tree: CourseTree) -> list[tuple[object, ...]]:
    with open_gradebook(tree) as gradebook:
        students = [(one.id, one.first_name, one.last_name) for one in gradebook.students]
        return [*students, *((one.name, one.duedate) for one in gradebook.assignments)]


def test_a_class_goes_into_a_database_and_back_with_every_byte(tree: CourseTree, url: str) -> None:
    before, rows = documents(FileStore(tree)), rows_of(tree)
    assert {key.kind for key in before} == set(KINDS)  # type: ignore[attr-defined]
    move_to_database(tree, url)
    store = store_of(tree)
    assert isinstance(store, PostgresStore)
    assert documents(store) == before
    assert rows_of(tree) == rows
    assert gradebook_url(tree) == url
    assert not tree.gradebook.exists()
    assert not (tree.root / "records").exists()
    move_to_files(tree)
    assert documents(store_of(tree)) == before  # type: ignore[arg-type]
    assert rows_of(tree) == rows
    with closing(sqlite3.connect(tree.gradebook)) as file:
        assert file.execute("SELECT version_num FROM alembic_version").fetchone()
    move_to_database(tree, url)  # what was there is set aside, so the database is empty again
    assert documents(store_of(tree)) == before  # type: ignore[arg-type]


def test_similar_kernels_are_looked_for_in_a_database_too(tree: CourseTree, url: str) -> None:
    assert students_with_attempts(tree, "adding") == ["ann"]
    move_to_database(tree, url)
    assert not (tree.root / "attempts").exists()
    assert students_with_attempts(tree, "adding") == ["ann"]
    assert students_with_attempts(tree, "tiling") == []


def test_what_is_kept_reads_the_same_in_files_and_in_a_database(tree: CourseTree, url: str) -> None:
    files = FileStore(tree)
    seen = [files.records("adding"), files.run("adding"), files.history("adding", "ann"), files.scores("adding", "ann")]
    move_to_database(tree, url)
    store = store_of(tree)
    assert seen == [
        store.records("adding"),
        store.run("adding"),
        store.history("adding", "ann"),
        store.scores("adding", "ann"),
    ]
    assert store.content("adding", "ann", "def") == bytes(range(256))
    assert store.record("adding", "bob") is None
    with pytest.raises(FileNotFoundError, match="bob"):
        store.content("adding", "bob", "x")


def grades(store: PostgresStore) -> list[tuple[object, ...]]:
    query = "SELECT run, student, question, digest, points FROM mlsys_store.grades ORDER BY 1, 2, 3, 4"
    return store.do(lambda connection: connection.execute(query).fetchall())


def test_a_grade_that_comes_twice_is_kept_once(moved: tuple[CourseTree, PostgresStore]) -> None:
    _, store = moved
    assert grades(store) == [("r1", "ann", "a", "def", 2.0)]
    store.save_record(record(points=1.0))
    store.save_record(record(points=1.0))
    assert grades(store) == [("r1", "ann", "a", "def", 1.0)]
    store.save_record(replace(record(), submission="fed"))
    assert len(grades(store)) == 2


def test_two_heads_at_once_are_refused_and_the_first_one_is_named(moved: tuple[CourseTree, PostgresStore]) -> None:
    tree, store = moved
    with store.lock():
        with pytest.raises(UserError, match=rf"another grading run \(mlsys, process {os.getpid()} on .*wait until"):
            store_of(tree).lock().__enter__()
        store.save_record(record("bob"))
    with store_of(tree).lock():
        pass


def test_of_many_heads_that_begin_together_one_works(moved: tuple[CourseTree, PostgresStore]) -> None:
    tree, _ = moved
    begin, inside, refused = threading.Barrier(6), [], []
    over = threading.Event()

    def head() -> None:
        store = store_of(tree)
        begin.wait()
        try:
            with store.lock():
                inside.append(1)
                over.wait(20)
        except UserError:
            refused.append(1)
            if len(refused) == 5:
                over.set()

    threads = [threading.Thread(target=head) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(inside), len(refused)) == (1, 5)


def test_a_killed_connection_is_opened_again_with_its_lock(
    moved: tuple[CourseTree, PostgresStore], postgres: Server
) -> None:
    tree, store = moved
    with store.lock():
        for student in ("bob", "cid", "dan"):
            postgres.cut_connections()
            store.save_record(record(student))
            with pytest.raises(UserError, match="another grading run"):
                store_of(tree).lock().__enter__()
    assert sorted(store.records("adding")) == ["ann", "bob", "cid", "dan"]


def test_a_server_that_is_killed_and_starts_again_loses_nothing(
    moved: tuple[CourseTree, PostgresStore], postgres: Server
) -> None:
    tree, store = moved
    with store.lock():
        store.save_record(record("bob"))
        postgres.stop(signal.SIGKILL)
        starting = threading.Timer(0.5, postgres.start)
        starting.start()
        store.save_record(record("cid"))  # waits for it
        starting.join()
    assert sorted(store.records("adding")) == ["ann", "bob", "cid"]
    assert rows_of(tree)  # and the gradebook's connection is another one too


def test_a_run_whose_lock_another_run_has_had_stops(moved: tuple[CourseTree, PostgresStore], postgres: Server) -> None:
    tree, store = moved
    with store.lock():
        postgres.cut_connections()
        with store_of(tree).lock():
            pass
        with pytest.raises(UserError, match="another run has worked there meanwhile"):
            store.save_record(record("bob"))


def test_a_full_disk_is_named_at_once_and_nothing_is_half_written(moved: tuple[CourseTree, PostgresStore]) -> None:
    _, store = moved
    code = "BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END"
    full = f"CREATE FUNCTION mlsys_store.no_room() RETURNS trigger LANGUAGE plpgsql AS $$ {code} $$"
    on_grades = (
        "CREATE TRIGGER no_room BEFORE INSERT ON mlsys_store.grades FOR EACH ROW EXECUTE FUNCTION mlsys_store.no_room()"
    )
    store.do(lambda connection: (connection.execute(full), connection.execute(on_grades)))
    with pytest.raises(UserError, match=r"has no room \(could not extend file: No space left.*What is graded is kept"):
        store.save_record(record("bob"))
    assert store.record("adding", "bob") is None  # its document was in the same transaction
    store.do(lambda connection: connection.execute("DROP TRIGGER no_room ON mlsys_store.grades"))
    store.save_record(record("bob"))
    assert store.record("adding", "bob") == record("bob")


def test_a_database_that_never_answers_is_named_at_once(tree: CourseTree) -> None:
    wrong = "postgresql+psycopg://mlsys:word@127.0.0.1:1/course"
    with pytest.raises(UserError, match=r"mlsys@127.0.0.1:1/course cannot be reached .*correct the address") as caught:
        move_to_database(tree, wrong)
    assert "word" not in str(caught.value)
    assert database_url(tree) == ""


def test_a_wait_for_a_database_ends(
    moved: tuple[CourseTree, PostgresStore], postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store = moved
    monkeypatch.setattr(module, "PATIENCE_S", 0.3)
    store.secret()
    postgres.stop()
    with pytest.raises(UserError, match="start the database, then run the same command again"):
        store.save_record(record("bob"))
    postgres.start()


def test_a_lost_line_of_the_configuration_begins_no_empty_class(
    moved: tuple[CourseTree, PostgresStore], url: str
) -> None:
    tree, _ = moved
    text = tree.config.read_text()
    for changed in (
        text.replace("c.CourseDirectory.db_url", "# "),
        text + "c.CourseDirectory.db_url = 'sqlite:///a.db'\n",
    ):
        tree.config.write_text(changed)
        with pytest.raises(UserError, match=r"db_url"):
            store_of(tree)
        with pytest.raises(UserError, match=r"db_url"), open_gradebook(tree):
            pass
    tree.config.unlink()
    with pytest.raises(UserError, match=r"names no database"):
        store_of(tree)
    assert not tree.gradebook.exists()
    tree.config.write_text(text.replace(url, f"{url}x"))
    with pytest.raises(UserError, match=r"names postgresql.*x: correct the line"):
        store_of(tree)


def test_a_shadowed_configuration_of_nbgrader_is_refused(moved: tuple[CourseTree, PostgresStore], url: str) -> None:
    tree, _ = moved
    check_database(tree, url)
    with pytest.raises(UserError, match=r"nbgrader uses the gradebook sqlite:///"):
        check_database(tree, f"sqlite:///{tree.gradebook}")


def test_a_database_in_the_configuration_alone_is_no_move(tree: CourseTree, url: str) -> None:
    tree.config.write_text(f"{tree.config.read_text()}c.CourseDirectory.db_url = {url!r}\n")
    with pytest.raises(UserError, match="the class is kept in files: run `mlsys store --to`"):
        store_of(tree)


@pytest.mark.parametrize(
    "wrong", ["postgresql://host/course", "mysql://host/course", "host", "postgresql+psycopg://host"]
)
def test_an_address_of_another_form_is_named(tree: CourseTree, wrong: str) -> None:
    with pytest.raises(InvalidValue, match=r"no address of a PostgreSQL database: such an address looks like"):
        move_to_database(tree, wrong)


def test_a_database_of_another_course_is_refused(
    moved: tuple[CourseTree, PostgresStore], tmp_path: Path, url: str
) -> None:
    other = CourseTree(tmp_path / "other")
    other.create()
    with pytest.raises(UserError, match="keeps another course than"):
        move_to_database(other, url)


def test_tables_of_another_schema_are_refused(moved: tuple[CourseTree, PostgresStore]) -> None:
    tree, store = moved
    store.do(lambda connection: connection.execute("UPDATE mlsys_store.about SET schema = 7"))
    with pytest.raises(UserError, match=r"have schema 7, and this version of the package uses 1"):
        store_of(tree).record("adding", "ann")


def test_the_command_moves_a_class_and_says_where_it_is(
    tree: CourseTree, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, said in (
        ((), "gradebook.db: 1 records"),
        (("--to", url), f"{url}: 1 records"),
        (("--to", "files"), "1 records"),
    ):
        assert main(["store", "--course", str(tree.root), *words]) == 0
        assert said in capsys.readouterr().out
    assert main(["store", "--course", str(tree.root), "--to", "files"]) == 2
    shutil.rmtree(tree.root)
    assert main(["store", "--course", str(tree.root)]) == 2
