"""Figures and calculators of the part on choosing: what they draw was counted, and what they say is the package's."""

import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

from mlsys import Hardware, models
from mlsys.costs import carbon
from mlsys.costs.economics import crossing_intensity, price_per_attainable
from mlsys.costs.prices import rent, rents
from mlsys.errors import UnknownName
from mlsys.feasibility import feasibility
from mlsys.measure import records

plt = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book"))

from _figures import decoding, economics, job_memory, sustainability  # noqa: E402
from _figures import feasibility as gates  # noqa: E402
from _interactive import economics as cost_form  # noqa: E402
from _interactive import feasibility as gate_form  # noqa: E402
from _interactive import sustainability as carbon_form  # noqa: E402

pytestmark = pytest.mark.usefixtures("closed_figures")
PHONE = {"width": 390, "height": 844}
H200 = records.load("nvidia-h200")


def texts() -> list[str]:
    return [text.get_text() for text in plt.gca().texts]


def test_rankings_are_relative_to_the_first_chip_and_show_both_ends_of_a_range() -> None:
    economics.rankings({"old": [50.0], "new": [20.0, 30.0]}, {"old": [8.0], "new": [6.0, 10.0]})
    assert {"1.00", "0.40 – 0.60", "0.75 – 1.25"} <= set(texts())


def test_two_price_lines_meet_at_the_marked_point() -> None:
    a100, h100 = Hardware.Cloud.A100, Hardware.Cloud.H100
    at = crossing_intensity(3, h100, 1.5, a100).m
    economics.crossing({"A100": (a100, 1.5), "H100": (h100, 3.0)}, at)
    *_, point = plt.gca().lines
    assert point.get_xdata()[0] == pytest.approx(at)
    for chip, hourly in ((a100, 1.5), (h100, 3.0)):  # dollars an hour over the FLOPs of an hour, for 1e18 of them
        roof = min(chip.peak("fp16").m_as("FLOP/s"), chip.memory_bw.m_as("B/s") * at)
        assert point.get_ydata()[0] == pytest.approx(hourly / 3600 / roof * 1e18)


def test_only_the_binding_gate_is_marked() -> None:
    work = {"flops": 1e12, "memory": 100e9, "bandwidth": 1e12, "peak": 1e14}
    gates.loads({"slow": feasibility(weights=60e9, deadline=0.05, **work)})
    assert [text for text in texts() if "binds" in text] == ["1.20  binds"]


def test_no_measured_kernel_beats_its_gates() -> None:
    kernels = gates.timed(H200, "h200")
    assert len(kernels) > 30
    assert all(one.measured_s > one.gates_s for one in kernels)


def test_gates_of_a_vector_sum_are_three_vectors_over_the_bandwidth() -> None:
    [row] = [row for row in H200.named("vector add") if row.shape == (2**28,)]
    [one] = [one for one in gates.timed(H200, "h200") if one.measured_s == row.median_s]
    assert one.gates_s == pytest.approx(3 * 4 * 2**28 / 4.8e12)


def test_base_and_slope_of_the_power_are_those_of_the_normal_equations() -> None:
    rows = H200.named("bytes in flight")
    rates, powers = [row.achieved for row in rows], [row.power_w for row in rows]
    base, each = sustainability.line_of(rows)
    slope, intercept = statistics.linear_regression(rates, powers)
    assert (base, each) == pytest.approx((intercept, slope))


def test_grids_are_drawn_from_the_cleanest_on_with_the_names_of_people() -> None:
    sustainability.by_grid({"world": 30.0, "norway": 2.0, "united-states": 20.0}, 2023)
    assert [tick.get_text() for tick in plt.gca().get_yticklabels()] == ["Norway", "United States", "the world"]


@pytest.mark.parametrize("key", sorted(job_memory.LANGUAGE))
@pytest.mark.parametrize(("batch", "tokens"), [(1, 1), (3, 700), (16, 1024)])
def test_a_step_from_slopes_is_the_step_that_the_package_counts(key: str, batch: int, tokens: int) -> None:
    step, whole = decoding.steps()[key], job_memory.LANGUAGE[key](batch=batch, seq=tokens, decode=True)
    assert batch * (step.flops + step.flops_each * tokens) == pytest.approx(whole.flops.m_as("flop"))
    assert batch * tokens * step.cache == whole.kv_cache_bytes(tokens, batch).m_as("byte")
    assert batch * step.results == pytest.approx(whole.peak_activation_bytes.m_as("byte"), rel=1e-3)
    assert step.weights("fp16") == whole.weight_bytes.m_as("byte")


def test_formats_of_the_calculators_halve_the_weights() -> None:
    step = decoding.steps()["llama2-7b"]
    assert [step.weights("fp16") / step.weights(dtype) for dtype in decoding.FORMATS] == [1, 2, 4]


def test_a_rent_is_offered_only_where_one_is_quoted() -> None:
    chips = {chip["id"]: chip for chip in cost_form.content().numbers["chips"]}
    assert {key for key, chip in chips.items() if "rent" in chip} == set(rents(cost_form.YEAR)) & set(chips)
    with pytest.raises(UnknownName, match="h100-sxm"):
        rent("t4", cost_form.YEAR)


def test_a_fleets_year_is_its_average_power_for_8760_hours() -> None:
    watts = carbon_form.average_watts(600, 130, 60)
    assert watts == pytest.approx(0.6 * 600 + 0.4 * 130)
    found = carbon_form.yearly(watts, chips=10, pue=1.5, grams=400, kilos=200, life=4)
    assert found["kwh"] == pytest.approx(10 * watts / 1000 * 8760 * 1.5)
    assert found["used"] == pytest.approx(found["kwh"] * 0.4 / 1000)
    assert found["made"] == pytest.approx(10 * 200 / 4 / 1000)


def _open(browser: Any, site: Path, name: str) -> tuple[Any, Any]:
    page = browser.new_page(viewport=PHONE)
    page.goto((site / f"book/choosing/{name}.html").as_uri())
    figure = page.locator(f"figure[data-figure={name}]")
    figure.locator("svg > *").first.wait_for(state="attached")
    return page, figure


def _said(figure: Any, name: str) -> float:
    return float(figure.locator(f".result data.{name}").get_attribute("value"))


def _fill(figure: Any, label: str, value: object) -> None:
    figure.get_by_role("spinbutton", name=label).fill(str(value))


def _choose(figure: Any, label: str, value: str) -> None:
    figure.get_by_role("combobox", name=label).select_option(value=value)


@pytest.mark.browser
def test_the_cost_form_says_what_the_package_computes(browser: Any, site: Path) -> None:
    page, figure = _open(browser, site, "economics")
    for chip, model, dtype, batch, tokens, hourly, busy in (
        ("h100-sxm", "llama2-7b", "fp16", 8, 2048, 2.49, 100),
        ("a100-80gb-sxm", "llama2-70b", "int4", 300, 1, 1.49, 25),
        ("h200", "gpt2-xl", "int8", 1, 1024, 2.5, 7.5),
    ):
        _choose(figure, "Chip", chip)
        _choose(figure, "Model", model)
        _choose(figure, "Weights", dtype)
        for label, value in (("Users", batch), ("Tokens", tokens), ("Hours", busy)):
            _fill(figure, label, value)
        token = cost_form.price(chip, model, dtype, batch, tokens, hourly, busy / 100)
        assert _said(figure, "price") == pytest.approx(token.per_million.m)
        assert _said(figure, "step") == pytest.approx(token.step.m_as("s"))
        words = {"memory": "memory", "compute": "arithmetic"}
        assert figure.locator(".result .limit").inner_text() == words[token.roof]
    _choose(figure, "Chip", "t4")
    result = figure.locator(".result")
    assert "No rent of 2026 is quoted here for NVIDIA T4: enter what you pay" in result.inner_text()
    _fill(figure, "Rent, dollars", 0.4)
    assert _said(figure, "price") > 0
    _choose(figure, "Chip", "h100-sxm")
    _fill(figure, "Year of this", 2024)
    assert "This rent is of 2024, a price of another year" in result.locator(".other-year").inner_text()
    _fill(figure, "Users", 0)
    assert "0 is not possible. Enter a whole number from 1 to 100,000." in result.inner_text()
    page.close()


@pytest.mark.browser
def test_the_gate_form_opens_what_it_says_it_opens_and_no_more(browser: Any, site: Path) -> None:
    page, figure = _open(browser, site, "feasibility")
    start = {"model": "llama2-70b", "chip": "h100-sxm", "dtype": "fp16", "batch": 4, "tokens": 2048}
    for changed in (
        {},
        {"dtype": "int4", "batch": 200, "deadline": 20},
        {"model": "llama2-7b", "chip": "l4", "batch": 64, "deadline": 30, "bandwidth": 70},
        {"model": "gpt2-small", "tokens": 1, "batch": 9000, "deadline": 1, "compute": 5},
    ):
        now = start | {"chips": 1, "deadline": 50, "bandwidth": 85, "compute": 50} | changed
        for label, key in (("Model", "model"), ("Weights", "dtype"), ("Chip", "chip")):
            _choose(figure, label, now[key])
        for label, key in (("Number", "chips"), ("Users", "batch"), ("Tokens", "tokens"), ("Deadline", "deadline"),
                           ("Reached bandwidth", "bandwidth"), ("Reached peak", "compute")):  # fmt: skip
            _fill(figure, label, now[key])
        verdict = gate_form.verdict(**now)
        assert figure.locator(".result .binding").inner_text() == verdict.binding.name
        assert _said(figure, "load") == pytest.approx(verdict.binding.load, rel=1e-3)
        assert ("does not pass" in figure.locator(".result").inner_text()) is not verdict.feasible
        for key, step in (("batch", 1), ("tokens", 1), ("chips", -1)):
            if figure.locator(f".result data.{key}").count():
                to = int(_said(figure, key))
                assert gate_form.verdict(**now | {key: to}).feasible
                assert not gate_form.verdict(**now | {key: to + step}).feasible
        if figure.locator(".result data.most").count():
            most = int(_said(figure, "most"))
            assert gate_form.verdict(**now | {"batch": most}).feasible
            assert most == 10_000 or not gate_form.verdict(**now | {"batch": most + 1}).feasible
    _fill(figure, "Tokens", 4097)
    assert "4097 is not possible. Enter a whole number from 1 to 1,024." in figure.locator(".result").inner_text()
    page.close()


@pytest.mark.browser
def test_the_carbon_form_computes_a_year_and_refuses_another(browser: Any, site: Path) -> None:
    page, figure = _open(browser, site, "sustainability")
    for grid, year, making, life, watts, idle, busy in (
        ("france", "2023", "a100-with-server", 6, 400, 60, 35),
        ("united-states", "2025", "h100-share-of-board", 3.5, 700, 130, 100),
    ):
        _choose(figure, "Year of the grid", year)
        for label, value in (("Grid", grid), ("Making", making), ("Building", "average")):
            figure.get_by_role("combobox", name=label, exact=label == "Grid").select_option(value=value)
        for label, number in (
            ("Watts of", watts),
            ("Watts without", idle),
            ("Hours", busy),
            ("Years", life),
            ("Chips", 50),
        ):
            _fill(figure, label, number)
        found = carbon_form.yearly(
            carbon_form.average_watts(watts, idle, busy),
            50,
            carbon.pue("average").value.m,
            carbon.grid(grid, int(year)).m_as("gCO2/(kW*hour)"),
            carbon.embodied(making).value.m_as("kgCO2"),
            life,
        )
        assert _said(figure, "kwh") == pytest.approx(found["kwh"])
        assert _said(figure, "used") == pytest.approx(found["used"])
        assert _said(figure, "making") == pytest.approx(found["made"])
        assert _said(figure, "bill") == pytest.approx(found["kwh"] * carbon_form.price_per_kwh("texas-industrial"))
    result = figure.locator(".result")
    assert "The price is of 2023 and the grid of 2025" in result.locator(".other-year").inner_text()
    figure.get_by_role("combobox", name="Grid", exact=True).select_option(value="france")
    assert result.inner_text() == (
        "The carbon intensity of France is known for 2023, not for 2025: choose 2023, or enter a number of your own."
    )
    _choose(figure, "Year of the grid", "own")
    _fill(figure, "Own intensity", 12)
    assert _said(figure, "used") == pytest.approx(_said(figure, "kwh") * 12 / 1e6)
    page.close()


def test_the_prices_of_the_figure_are_those_of_the_roofline() -> None:
    """A million tokens of one user, from bytes and rent alone."""
    token = cost_form.price("h100-sxm", "llama2-7b", "fp16", 1, 2048, 2.49)
    moved = 2 * 6_738_415_616 + 2048 * 524_288
    assert token.per_million.m == pytest.approx(2.49 / 3600 * moved / 3.35e12 * 1e6)
    assert price_per_attainable(1, Hardware.Cloud.H100, 1).m_as("USD/(TFLOP/s)") == pytest.approx(1 / 3.35)
    assert models.llama2_7b().params.m == 6_738_415_616
