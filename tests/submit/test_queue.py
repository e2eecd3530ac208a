"""The queue's database: many at once, a full disk, and PostgreSQL in place of SQLite."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlsys.errors import UserError
from mlsys.submit.queue import DONE, REPLACED, Found, Queue
from mlsys.submit.tokens import STUDENT, check_token, new_token

from .conftest import Clock, Course, serving


def test_many_threads_hand_in_at_once_and_every_number_is_given_once(course: Course) -> None:
    desk = course.desk()
    with ThreadPoolExecutor(8) as threads:
        hand_ins = [(f"s{number}", "adding", course.another(number)) for number in range(60)]
        receipts = [answer.receipt for answer in threads.map(lambda one: desk.hand_in(*one), hand_ins)]
    assert sorted(one.number for one in receipts) == list(range(1, 61))
    assert sorted(one.place for one in receipts) == list(range(1, 61))
    in_order = sorted(receipts, key=lambda one: one.number)
    assert [one.when for one in in_order] == sorted(one.when for one in receipts)


def test_a_full_disk_is_a_sentence_and_what_was_kept_stays(course: Course) -> None:
    with serving(course) as running:
        ann = running.client("ann")
        assert ann.hand_in(course.right)[0] == 201
        with course.queue._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        course.queue.close()

        def small(connection: sqlite3.Connection, _: object) -> None:
            connection.execute(f"PRAGMA max_page_count={pages}")

        import sqlalchemy as sa

        sa.event.listen(course.queue._engine, "connect", small)
        large = b'{"cells": [], "metadata": {"note": "' + b"x" * 2_000_000 + b'"}}'
        status, reply = ann.hand_in(large)
        assert (status, "full" in reply["fault"], "nothing was taken" in reply["fault"]) == (500, True, True)
        assert [one.number for one in course.queue.hand_ins()] == [1]
        assert ann.get("/hand-in/1")[0] == 200


def test_a_database_that_cannot_be_reached_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "queue.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(UserError, match="cannot be used"):
        Queue(tmp_path)


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[str]:
    pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed")
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    server = pgserver.get_server(tmp_path / "pg", cleanup_mode="delete")
    yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    server.cleanup()


@pytest.mark.proof
def test_a_real_postgresql_does_the_same(course: Course, postgres: str) -> None:
    clock = Clock()
    queue = Queue(course.tree.queue, postgres)
    course.queue.close()
    course.queue = queue
    desk = course.desk(clock)
    for number, student in enumerate(("ann", "bob", "ann")):
        assert desk.hand_in(student, "adding", course.another(number)).receipt.number == number + 1
        clock.on(seconds=1)
    assert next(iter(queue.hand_ins())).state == REPLACED
    assert [one.number for one in queue.take(5)] == [2, 3]
    queue.save_found(2, Found(refused="no"))
    assert (queue.hand_in(2).state, queue.content(2)) == (DONE, course.another(1))
    assert (queue.place(3), queue.counts()["adding", DONE]) == (1, 1)
    token = new_token(queue, "ann", STUDENT, clock.now.replace(year=2100))
    assert check_token(queue, token).person == "ann"
    assert queue.forget(person="ann") == 1
