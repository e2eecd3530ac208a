"""The price of a token: by a simulated hour, at both roofs, and against the roofline's own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware, models
from mlsys.costs.economics import price_per_rate
from mlsys.costs.serving import token_price
from mlsys.errors import InvalidValue

H100 = Hardware.Cloud.H100
CHIP = {"bandwidth": H100.memory_bw, "peak": H100.peak("fp16"), "hourly_rent": 2.49}


def test_an_hour_of_steps_counted_one_by_one_gives_the_same_price():
    work = {"weights": 14e9, "kv_cache": 1e9, "flops_per_token": 14e9}
    price = token_price(**work, bandwidth=2e12, peak=1e15, hourly_rent=3.0, batch=8, busy=0.25)
    spent_s, tokens = 0.0, 0
    while spent_s < 0.25 * 3600:  # the busy part of an hour
        spent_s += 14e9 / 2e12 + 8 * 1e9 / 2e12
        tokens += 8
    assert price.per_million.m_as("USD") == pytest.approx(3.0 / tokens * 1e6, rel=1e-4)
    assert price.roof == "memory"


def test_a_token_of_one_user_costs_many_times_a_token_of_a_prompt():
    llama = models.llama2_7b(seq=1, decode=True)
    work = {"weights": llama.weight_bytes, "flops_per_token": llama.flops}
    written, read = token_price(**work, **CHIP), token_price(**work, **CHIP, batch=2048)
    assert (written.roof, read.roof) == ("memory", "compute")
    # The ridge point: FLOPs that the chip could do while it moves what one token needs.
    ridge = (llama.weight_bytes * H100.peak("fp16") / H100.memory_bw / llama.flops).m_as("")
    assert (written.per_million / read.per_million).m_as("") == pytest.approx(ridge)


@given(st.integers(1, 5000), st.floats(0.05, 1), st.floats(0.05, 1))
def test_the_roof_that_is_named_is_the_one_that_another_chip_must_raise(batch, bandwidth_share, compute_share):
    work = {"weights": 14e9, "kv_cache": 1e7, "flops_per_token": 14e9, "hourly_rent": 1.0, "batch": batch}
    shares = {"bandwidth_share": bandwidth_share, "compute_share": compute_share}
    now = token_price(**work, bandwidth=3e12, peak=1e15, **shares)
    wider = token_price(**work, bandwidth=6e12, peak=1e15, **shares)
    quicker = token_price(**work, bandwidth=3e12, peak=2e15, **shares)
    helps, does_not = (wider, quicker) if now.roof == "memory" else (quicker, wider)
    assert helps.per_million < now.per_million
    assert does_not.per_million == now.per_million
    assert now.rate.m_as("token/s") * now.step.m_as("s") == pytest.approx(batch)


def test_at_the_peak_a_token_costs_its_flops():
    price = token_price(weights=0, flops_per_token=2e9, bandwidth=1e12, peak=4e14, hourly_rent=3.6, compute_share=0.5)
    per_flop = price_per_rate(3.6 / 3600, 4e14, utilization=0.5).m_as("USD/(FLOP/s)")  # dollars for a second of it
    assert price.per_million.m_as("USD") == pytest.approx(1e6 * 2e9 * per_flop)


@pytest.mark.parametrize("name", ["bandwidth_share", "compute_share", "busy"])
@pytest.mark.parametrize("bad", [0, 1.5, -1, float("nan")])
def test_an_impossible_share_is_refused_by_its_name(name, bad):
    with pytest.raises(InvalidValue, match=f"{name} is {bad!r}"):
        token_price(weights=1, flops_per_token=1, bandwidth=1, peak=1, hourly_rent=1, **{name: bad})
