"""Dynamic batching, held to queueing theory where theory is exact, and to what must hold for any batches."""

import numpy as np
import pytest

from mlsys.errors import InvalidValue
from mlsys.runtime.batching import mean_wait_md1, serve

SERVICE_S = 1e-3


@pytest.mark.parametrize("utilization", [0.3, 0.5, 0.8])
def test_one_at_a_time_is_the_queue_of_theory(utilization):
    """M/D/1: the mean by Pollaczek and Khinchine; by Little's law the mean length; and the share that never waits."""
    rate = utilization / SERVICE_S
    served = serve(lambda _: SERVICE_S, rate=rate, requests=400_000, max_batch=1, max_wait_s=0, seed=1)
    assert served.mean_wait_s == pytest.approx(utilization * SERVICE_S / (2 * (1 - utilization)), rel=0.04)
    assert mean_wait_md1(rate=rate, service_s=SERVICE_S) == pytest.approx(
        utilization * SERVICE_S / (2 * (1 - utilization))
    )
    at_once = (served.started_s == served.arrived_s).mean()
    assert at_once == pytest.approx(1 - utilization, abs=0.01)
    # Erlang: P(wait <= t) = (1 - u) exp(rate t) while t <= one service time
    for share in (0.25, 0.5, 1.0):
        expected = (1 - utilization) * np.exp(utilization * share)
        assert (served.started_s - served.arrived_s <= share * SERVICE_S).mean() == pytest.approx(expected, abs=0.01)


def test_service_times_that_vary_wait_twice_as_long():
    """M/M/1: exponential service doubles the mean wait."""
    draw = np.random.default_rng(2)
    served = serve(lambda _: draw.exponential(SERVICE_S), rate=500, requests=400_000, max_batch=1, max_wait_s=0, seed=3)
    assert served.mean_wait_s == pytest.approx(2 * mean_wait_md1(rate=500, service_s=SERVICE_S), rel=0.05)


def test_every_request_is_served_once_in_order_and_no_batch_is_too_large():
    served = serve(lambda batch: 1e-3 + 1e-4 * batch, rate=4000, requests=5000, max_batch=16, max_wait_s=2e-3)
    assert sum(served.batches) == 5000
    assert max(served.batches) == 16
    assert served.mean_batch == pytest.approx(np.mean(served.batches))
    assert (np.diff(served.started_s) >= 0).all()
    assert (served.started_s >= served.arrived_s).all()
    starts, ends = np.unique(served.started_s), np.unique(served.ended_s)
    assert (starts[1:] >= ends[:-1] - 1e-12).all()


def test_a_request_alone_waits_for_company_and_no_longer():
    served = serve(lambda _: 1e-6, rate=1, requests=200, max_batch=8, max_wait_s=1e-3)
    assert served.mean_wait_s == pytest.approx(1e-3, rel=0.05)
    assert served.percentile(0) >= 1e-6


def test_batches_carry_a_load_that_single_requests_cannot():
    def service(batch):
        return 1e-3 + 1e-5 * batch

    one = serve(service, rate=2000, requests=20_000, max_batch=1, max_wait_s=0)
    many = serve(service, rate=2000, requests=20_000, max_batch=64, max_wait_s=0)
    assert one.percentile(50) > 1  # the queue grows for ever
    assert many.percentile(99) < 5e-3
    assert many.percentile(50) <= many.percentile(99)


def test_a_full_batch_does_not_wait():
    served = serve(lambda _: 0.0, rate=1000, requests=1000, max_batch=4, max_wait_s=1e9)
    assert set(served.batches) == {4}
    assert (served.started_s.reshape(-1, 4) == served.arrived_s.reshape(-1, 4)[:, -1:]).all()


def test_the_last_requests_do_not_wait_for_company_that_never_comes():
    served = serve(lambda _: 0.0, rate=1000, requests=6, max_batch=4, max_wait_s=5)
    assert served.batches == (4, 2)
    assert served.started_s[-1] == served.arrived_s[4] + 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0}, "rate is 0, so no request would ever arrive"),
        ({"rate": -1}, "rate must be a finite number of 0 or more"),
        ({"requests": 0}, "requests must be a positive integer"),
        ({"max_batch": 0}, "max_batch must be a positive integer"),
        ({"max_wait_s": -1}, "max_wait_s must be a finite number of 0 or more"),
        ({"service_time": lambda _: -1.0}, r"service_time\(1\) is -1\.0"),
    ],
)
def test_what_cannot_be_served_is_refused(change, message):
    arguments = {"service_time": lambda _: 1.0, "rate": 1, "requests": 3, "max_batch": 1, "max_wait_s": 0}
    with pytest.raises(InvalidValue, match=message):
        serve(**(arguments | change))


def test_a_percentile_is_from_0_to_100():
    with pytest.raises(InvalidValue, match="percent is 101; it must be from 0 to 100"):
        serve(lambda _: 1.0, rate=1, requests=3, max_batch=1, max_wait_s=0).percentile(101)


def test_a_queue_that_grows_for_ever_has_no_mean_wait():
    with pytest.raises(InvalidValue, match="the utilization is 1; from 1 on the queue grows for ever"):
        mean_wait_md1(rate=1000, service_s=1e-3)
