import os
import stat
from pathlib import Path

import pytest

from mlsys.classroom.store.record import Record
from mlsys.classroom.store.run import Run, seed
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.store.terms import begin_run, finish_run, terms
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    tree = CourseTree(tmp_path / "course")
    tree.create()
    return FileStore(tree)


def begin(store: FileStore, *, sandboxed: bool = True) -> Run:
    return begin_run(store, "adding", sandboxed=sandboxed, arguments={"student": "ann"})


def test_every_finished_run_is_followed_by_one_with_another_secret(store: FileStore) -> None:
    secrets = []
    for _ in range(5):
        run = begin(store)
        secrets.append(run.secret)
        finish_run(store, "adding", run)
    assert len(set(secrets)) == 5
    assert all(len(secret) == 32 for secret in secrets)


def test_an_interrupted_run_goes_on_with_its_secret_and_remembers_its_arguments(store: FileStore) -> None:
    first = begin(store)
    assert begin(store).secret == first.secret
    last = store.run("adding")
    assert last is not None
    assert (last.finished, last.arguments) == (False, {"student": "ann"})


def test_all_students_of_a_run_draw_the_same_and_another_run_draws_something_else(store: FileStore) -> None:
    run = begin(store)
    assert {terms(store, "adding", student, student).seed for student in ("ann", "bob")} == {
        seed(store.secret(), "adding", run.secret)
    }
    finish_run(store, "adding", run)
    begin(store)
    assert terms(store, "adding", "ann", "ann").seed != seed(store.secret(), "adding", run.secret)


def test_the_seed_needs_both_secrets_and_the_lab(store: FileStore, tmp_path: Path) -> None:
    other = CourseTree(tmp_path / "other")
    other.create()
    mine = store.secret()
    found = {seed(mine, "adding", "a"), seed(mine, "adding", "b"), seed(mine, "c", "a")}
    assert len(found | {seed(other.secret(), "adding", "a")}) == 4


@pytest.mark.parametrize("where", ["record", "attempt"])
def test_a_file_that_was_graded_draws_again_as_in_its_record(store: FileStore, where: str) -> None:
    first = begin(store)
    record = Record("ann", "adding", "1", "now", submission="abc", run=first.secret)
    (store.save_record if where == "record" else store.save_attempt_record)(record)
    finish_run(store, "adding", first)
    second = begin(store)
    assert terms(store, "adding", "ann", "abc").run == first.secret
    assert terms(store, "adding", "ann", "another").run == second.secret
    assert terms(store, "adding", "bob", "abc").run == second.secret


def test_a_plain_nbgrader_command_before_any_run_draws_a_secret_that_stays(store: FileStore) -> None:
    first = terms(store, "adding", "ann", "abc")
    assert first.sandboxed
    assert terms(store, "adding", "bob", "def") == first
    last = store.run("adding")
    assert last is not None
    assert last.finished


def test_a_damaged_run_is_named(store: FileStore) -> None:
    begin(store)
    store.tree.run("adding").write_text("{")
    with pytest.raises(UserError, match=r"adding.json is damaged .*: delete it"):
        begin(store)


def test_secrets_are_closed_to_other_users(store: FileStore) -> None:
    begin(store)
    root = store.tree.root
    assert stat.S_IMODE((root / "runs").stat().st_mode) == 0o700
    assert stat.S_IMODE((root / "secret.txt").stat().st_mode) == 0o600 if store.secret() else False


def test_a_second_run_is_refused_and_told_which_process_works(store: FileStore) -> None:
    with (
        store.lock(),
        pytest.raises(UserError, match=rf"process {os.getpid()}\) .*wait until"),
        store.lock(),
    ):
        pass
    with store.lock():
        pass
