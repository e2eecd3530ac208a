"""The simulated class: against Erlang's formula, a second simulator, and what must hold of every queue."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys.costs.prices import rent
from mlsys.errors import InvalidValue
from mlsys.runtime.batching import serve
from mlsys.runtime.class_queue import Bill, Deadline, mean_wait_mmc, serve_in_turn, waited


@pytest.mark.parametrize(("workers", "rate"), [(1, 0.7), (3, 2.4), (10, 8.5)])
def test_the_mean_wait_is_erlangs(workers, rate):
    draws = np.random.default_rng(1)
    count = 200_000
    arrived = np.cumsum(draws.exponential(1 / rate, count))
    served = serve_in_turn(arrived, draws.exponential(1.0, count), workers)
    assert served.mean_wait_s == pytest.approx(mean_wait_mmc(rate=rate, service_s=1, workers=workers), rel=0.06)


def test_one_worker_is_the_server_without_batches():
    other = serve(lambda batch: 1e-3, rate=800, requests=5_000, max_batch=1, max_wait_s=0)
    served = serve_in_turn(other.arrived_s, np.full(5_000, 1e-3), 1)
    assert served.started_s == pytest.approx(other.started_s)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), min_size=1, max_size=40), st.integers(1, 6))
def test_nobody_overtakes_and_no_worker_rests_while_somebody_waits(jobs, workers):
    jobs = sorted(jobs)
    arrived, service = (np.array(column) for column in zip(*jobs, strict=True))
    served = serve_in_turn(arrived, service, workers)
    assert (np.diff(served.started_s) >= 0).all()
    for start, came in zip(served.started_s, served.arrived_s, strict=True):
        busy = int(((served.started_s < start) & (served.ended_s > came)).sum())
        assert start == came or busy >= workers  # whoever waits does so behind as many as there are workers


def test_of_all_hand_ins_so_many_come_late():
    class_ = Deadline(20_000, 1, 3600.0, (1.0,))
    served = class_.simulate(10_000)
    assert (served.arrived_s > -3600).mean() == pytest.approx(class_.in_last(3600), abs=0.02)
    assert (served.arrived_s <= 0).all()


def test_the_fewest_workers_are_the_fewest():
    class_ = Deadline(200, 3, 6 * 3600.0, (60.0, 120.0))
    workers = class_.workers_for(300)
    assert waited(class_.simulate(workers), 95) <= 300 < waited(class_.simulate(workers - 1), 95)


def test_a_bill_is_hours_times_rent():
    price = rent("h200", 2026)
    bill = Bill.of(10, price)
    assert (bill.low, bill.high) == (25.0, 70.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: serve_in_turn(np.array([1.0, 0.0]), np.ones(2), 1),
        lambda: serve_in_turn(np.zeros(2), -np.ones(2), 1),
        lambda: serve_in_turn(np.zeros(2), np.ones(2), 0),
        lambda: mean_wait_mmc(rate=2, service_s=1, workers=2),
        lambda: Deadline(10, 1, 60, ()).simulate(1),
        lambda: Deadline(10, 1, 60, (1.0,)).workers_for(1, percent=101),
    ],
)
def test_what_makes_no_queue_is_an_error(wrong):
    with pytest.raises(InvalidValue):
        wrong()
