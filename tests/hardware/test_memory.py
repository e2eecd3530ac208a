import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware, models
from mlsys.errors import InvalidValue, UnknownName
from mlsys.feasibility import fits
from mlsys.hardware import UnknownField
from mlsys.hardware.energy import MixedBases, basis
from mlsys.hardware.links import link
from mlsys.hardware.memory import level, levels
from mlsys.models.kv_cache import kv_cache_bytes
from mlsys.units import GB, MiB, ureg

LLAMA_7B = {"layers": 32, "kv_heads": 32, "head_dim": 128}


@pytest.mark.parametrize("system", ["h100-sxm", "a100-80gb-sxm", "cpu"])
def test_farther_levels_are_slower(system):
    latencies = [one.latency for one in levels(system) if one.name != "shared"]
    assert latencies == sorted(latencies)
    assert len(set(latencies)) == len(latencies)


@pytest.mark.parametrize(
    ("name", "cycles"), [("shared", (25, 45)), ("l1", (25, 45)), ("l2", (200, 300)), ("hbm", (450, 800))]
)
@pytest.mark.parametrize("chip", ["h100-sxm", "a100-80gb-sxm"])
def test_latencies_lie_where_gpu_measurements_lie(chip, name, cycles):
    count = (level(chip, name).latency * Hardware.get(chip).field("boost_clock").value).m_as("")
    assert cycles[0] <= count <= cycles[1]


@pytest.mark.parametrize(("chip", "low", "high"), [("h100-sxm", 484, 702), ("a100-80gb-sxm", 550, 570)])
def test_a_latency_range_holds_every_measurement(chip, low, high):
    hbm, clock = level(chip, "hbm"), Hardware.get(chip).field("boost_clock").value
    assert [round((end * clock).m_as("")) for end in hbm.latency_range] == [low, high]
    assert hbm.latency in hbm.latency_range
    assert "elsewhere" in hbm.field("latency").condition


def test_latencies_of_two_chips_are_compared_as_one_program_measured_them():
    documents = {
        level(chip, name).field("latency").source.title
        for chip in ("h100-sxm", "a100-80gb-sxm")
        for name in ("l1", "l2", "hbm")
    }
    assert len(documents) == 1


def test_a_level_with_one_measurement_has_a_range_of_no_width():
    low, high = level("cpu", "dram").latency_range
    assert low == high == level("cpu", "dram").latency


def test_latency_of_hbm_is_not_below_that_of_a_servers_dram():
    assert level("h100-sxm", "hbm").latency > level("cpu", "dram").latency


def test_registers_of_an_h100_hold_33_mebibytes_and_more_than_its_shared_memory():
    registers = level("h100-sxm", "register").capacity
    assert registers.m_as(MiB) == 132 * 65536 * 4 / 2**20 == 33
    assert registers > level("h100-sxm", "shared").capacity


def test_faster_levels_have_more_bandwidth_than_hbm():
    shared, l2, hbm = (level("h100-sxm", name).bandwidth for name in ("shared", "l2", "hbm"))
    assert shared > l2 > hbm
    # 128 bytes a clock and SM is what 32 banks of 4 bytes can give
    assert shared.m_as("byte/s") == pytest.approx(132 * 128 * 1.98e9, rel=0.01)


@pytest.mark.parametrize(
    ("chip", "pcie", "times"), [("h100-sxm", "pcie-5-x16", 52), ("a100-80gb-sxm", "pcie-4-x16", 64)]
)
def test_hbm_against_the_host_link(chip, pcie, times):
    assert round((level(chip, "hbm").bandwidth / link(pcie).per_direction).m_as("")) == times


@pytest.mark.parametrize(("chip", "megabytes"), [("h100-sxm", 1.68), ("a100-80gb-sxm", 1.02)])
def test_bytes_in_flight_by_littles_law(chip, megabytes):
    assert level(chip, "hbm").bytes_in_flight(500e-9).m_as("MB") == pytest.approx(megabytes, rel=5e-3)


def test_idle_latency_asks_for_fewer_bytes_in_flight():
    hbm = level("h100-sxm", "hbm")
    assert hbm.bytes_in_flight() < hbm.bytes_in_flight(500e-9)


def test_energy_of_a_level_keeps_its_basis():
    hbm = level("h100-sxm", "hbm").energy(bits=32)
    assert hbm / basis("hopper-measured").access("hbm", bits=1) == pytest.approx(32)
    with pytest.raises(MixedBases):
        hbm + basis("horowitz-45nm").access("dram", bits=32)


def test_what_no_document_gives_is_refused():
    with pytest.raises(UnknownField, match="bandwidth"):
        level("cpu", "l1").bandwidth  # noqa: B018
    with pytest.raises(UnknownField, match="energy"):
        level("h100-sxm", "shared").energy()
    with pytest.raises(UnknownName, match="h100-sxm"):
        levels("h100")
    with pytest.raises(UnknownName, match="hbm"):
        level("h100-sxm", "hbm3")


def test_kv_cache_of_a_7b_model():
    assert kv_cache_bytes(**LLAMA_7B, tokens=1).m_as("byte") == 524_288
    assert kv_cache_bytes(**LLAMA_7B, tokens=2048).m_as(GB) == pytest.approx(1.07, abs=0.005)
    assert kv_cache_bytes(layers=48, kv_heads=25, head_dim=64, tokens=1).m_as("kB") == pytest.approx(307, abs=0.5)


def test_users_of_a_7b_model_on_80_gb():
    free = 80 * GB - 14 * GB
    assert int(free / kv_cache_bytes(**LLAMA_7B, tokens=2048)) == 61


def test_tokens_of_a_7b_model_on_16_gb():
    tokens = (16 * GB - 14 * GB) / kv_cache_bytes(**LLAMA_7B, tokens=1)
    assert tokens.m_as("") == pytest.approx(3800, rel=0.01)


def test_kv_cache_agrees_with_the_model_library():
    model = models.llama2_7b(seq=2048, decode=True)
    own = kv_cache_bytes(layers=model.layers, kv_heads=model.kv_heads, head_dim=model.head_dim, tokens=2048)
    assert own.m_as("byte") == pytest.approx(2 * 32 * 4096 * 2048 * 2)


@given(st.integers(1, 64), st.integers(1, 4096), st.sampled_from([("fp32", 4), ("fp16", 2), ("int8", 1)]))
def test_kv_cache_grows_with_batch_tokens_and_width_of_the_format(batch, tokens, dtype):
    one = kv_cache_bytes(layers=2, kv_heads=2, head_dim=8, tokens=1, dtype="int8").m_as("byte")
    all_of_it = kv_cache_bytes(layers=2, kv_heads=2, head_dim=8, tokens=tokens, batch=batch, dtype=dtype[0])
    assert all_of_it.m_as("byte") == one * batch * tokens * dtype[1]


def test_grouped_queries_shrink_the_cache():
    many, few = (kv_cache_bytes(layers=80, kv_heads=heads, head_dim=128, tokens=100) for heads in (64, 8))
    assert many / few == 8


@pytest.mark.parametrize(
    ("dtype", "fit", "left"), [("fp16", False, -2), ("int8", True, 11), ("int4", True, 17.5), ("fp32", False, -28)]
)
def test_13b_on_24_gb(dtype, fit, left):
    verdict = fits(13e9, Hardware.get("l4"), dtype)
    assert bool(verdict) is fit
    assert verdict.headroom.m_as(GB) == pytest.approx(left)


def test_the_last_byte_decides():
    assert fits(10, capacity=20)
    assert not fits(10, capacity=20, other=1)
    assert fits(10 * ureg.param, capacity=21 * ureg.byte, other=1 * ureg.byte)


@pytest.mark.parametrize("bad", [{"layers": 0}, {"head_dim": 1.5}, {"tokens": -1}])
def test_impossible_caches_are_refused(bad):
    with pytest.raises(InvalidValue, match=next(iter(bad))):
        kv_cache_bytes(**{**LLAMA_7B, "tokens": 1, **bad})


def test_an_unknown_format_is_refused():
    with pytest.raises(UnknownName):
        fits(1e9, 80e9, dtype="fp17")
