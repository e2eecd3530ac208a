import os
import stat
from pathlib import Path

import pytest

from mlsys.classroom.store.record import Record
from mlsys.classroom.store.run import Run, attempt_record, one_at_a_time, seed, terms
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError


@pytest.fixture
def tree(tmp_path: Path) -> CourseTree:
    tree = CourseTree(tmp_path / "course")
    tree.create()
    return tree


def begin(tree: CourseTree, *, sandboxed: bool = True) -> Run:
    return Run.begin(tree, "adding", sandboxed=sandboxed, arguments={"student": "ann"})


def test_every_finished_run_is_followed_by_one_with_another_secret(tree: CourseTree) -> None:
    secrets = []
    for _ in range(5):
        run = begin(tree)
        secrets.append(run.secret)
        run.finish(tree, "adding")
    assert len(set(secrets)) == 5
    assert all(len(secret) == 32 for secret in secrets)


def test_an_interrupted_run_goes_on_with_its_secret_and_remembers_its_arguments(tree: CourseTree) -> None:
    first = begin(tree)
    assert begin(tree).secret == first.secret
    last = Run.read(tree, "adding")
    assert last is not None
    assert (last.finished, last.arguments) == (False, {"student": "ann"})


def test_all_students_of_a_run_draw_the_same_and_another_run_draws_something_else(tree: CourseTree) -> None:
    run = begin(tree)
    assert {terms(tree, "adding", student, student).seed for student in ("ann", "bob")} == {
        seed(tree, "adding", run.secret)
    }
    run.finish(tree, "adding")
    begin(tree)
    assert terms(tree, "adding", "ann", "ann").seed != seed(tree, "adding", run.secret)


def test_the_seed_needs_both_secrets_and_the_lab(tree: CourseTree, tmp_path: Path) -> None:
    other = CourseTree(tmp_path / "other")
    other.create()
    found = {seed(tree, "adding", "a"), seed(tree, "adding", "b"), seed(tree, "c", "a"), seed(other, "adding", "a")}
    assert len(found) == 4


@pytest.mark.parametrize("where", ["record", "attempt"])
def test_a_file_that_was_graded_draws_again_as_in_its_record(tree: CourseTree, where: str) -> None:
    first = begin(tree)
    path = tree.record("adding", "ann") if where == "record" else attempt_record(tree, "adding", "ann", "abc")
    Record("ann", "adding", "1", "now", submission="abc", run=first.secret).write(path)
    first.finish(tree, "adding")
    second = begin(tree)
    assert terms(tree, "adding", "ann", "abc").run == first.secret
    assert terms(tree, "adding", "ann", "another").run == second.secret
    assert terms(tree, "adding", "bob", "abc").run == second.secret


def test_a_plain_nbgrader_command_before_any_run_draws_a_secret_that_stays(tree: CourseTree) -> None:
    first = terms(tree, "adding", "ann", "abc")
    assert first.sandboxed
    assert terms(tree, "adding", "bob", "def") == first
    last = Run.read(tree, "adding")
    assert last is not None
    assert last.finished


def test_a_damaged_run_is_named(tree: CourseTree) -> None:
    begin(tree)
    (tree.root / "runs" / "adding.json").write_text("{")
    with pytest.raises(UserError, match=r"adding.json is damaged .*: delete it"):
        begin(tree)


def test_secrets_are_closed_to_other_users(tree: CourseTree) -> None:
    begin(tree)
    assert stat.S_IMODE((tree.root / "runs").stat().st_mode) == 0o700
    assert stat.S_IMODE((tree.root / "secret.txt").stat().st_mode) == 0o600 if tree.secret() else False


def test_a_second_run_is_refused_and_told_which_process_works(tree: CourseTree) -> None:
    with (
        one_at_a_time(tree),
        pytest.raises(UserError, match=rf"process {os.getpid()}\) .*wait until"),
        one_at_a_time(tree),
    ):
        pass
    with one_at_a_time(tree):
        pass
