"""The explorer of primitives and the counted instructions of functions: what they say, and where it comes from."""

import sys
from collections.abc import Iterator
from decimal import Decimal, localcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.compiled_files import PINNED, assert_script_makes, assert_version_is_pinned

from mlsys import Hardware
from mlsys.ops import primitives

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _figures import functions  # noqa: E402
from _figures import primitives as figures  # noqa: E402
from _interactive import primitives as explorer  # noqa: E402


def test_counts_of_the_largest_sizes_stay_exact_in_javascript() -> None:
    largest = max(
        step.each * explorer.LARGEST ** len(step.over) for steps in primitives.LAYERS.values() for step in steps
    )
    assert largest <= 1e18  # shown with three digits; beyond 2^53 only the last digits are lost
    assert set(explorer.SIZES) == {name for layer in primitives.LAYERS for name in primitives.sizes_of(layer)}


def test_newton_doubles_the_bits_of_the_table() -> None:
    errors = figures.newton_errors(3)
    assert errors[0] == pytest.approx(2**-9)
    for before, after in pairwise(errors):
        assert after == pytest.approx(1.5 * before**2, rel=0.01), "the known error of the method"


def test_the_errors_of_newton_are_those_of_an_exact_calculation() -> None:
    with localcontext() as context:
        context.prec = 60
        exact = 1 / Decimal(3).sqrt()
        guess = exact * (1 + Decimal(2) ** -9)
        for error in figures.newton_errors(3):
            assert error == pytest.approx(float(abs(guess / exact - 1)), rel=1e-6)
            guess = guess * (3 - 3 * guess * guess) / 2


triton = pytest.importorskip("triton", reason="triton is not installed: mlsys[labs] brings it on Linux")


def test_the_counted_functions_are_of_the_pinned_version() -> None:
    assert_version_is_pinned(functions.VERSIONS, "compile_functions.py")


@pytest.mark.skipif([triton.__version__] != PINNED, reason="another Triton than the pinned one is installed")
def test_the_counted_functions_are_what_the_compiler_makes() -> None:
    assert_script_makes("compile_functions.py", "functions")


@pytest.fixture
def figure(browser: Any, site: Path) -> Iterator[Any]:
    page = browser.new_page(viewport={"width": 1000, "height": 1200})
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((site / "book/hardware/primitives.html").as_uri())
    found = page.locator("figure[data-figure=primitives]")
    found.locator(".drawing svg rect").first.wait_for(state="attached")
    yield found
    page.close()
    assert complaints == []


@pytest.mark.browser
def test_the_explorer_says_what_the_package_counts(figure: Any) -> None:
    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    h100 = Hardware.get("h100-sxm")
    for dtype, label in (("fp16", "H100, products in FP16"), ("fp8", "H100, products in FP8")):
        figure.get_by_role("combobox", name="Chip").select_option(label=label)
        for width in (64, 128):
            figure.get_by_role("spinbutton", name="head width").fill(str(width))
            found, rates = (
                primitives.counts("attention, one head", tokens=4096, width=width),
                primitives.rates(h100, dtype),
            )
            times = {unit: found[unit] / rate for unit, rate in rates.items()}
            assert said("share") == pytest.approx(times["special"] / times["matrix"])
            assert said("longest") == pytest.approx(max(times.values()))
            assert said("scalar") == sum(found.values())
            assert said("issued") == sum(primitives.instructions(n, 8) for n in found.values() if n)
    figure.get_by_role("combobox", name="Layer").select_option(label="embedding")
    assert "the memory is the limit" in figure.locator(".result").inner_text()
    for typed, shown in (("0", "0"), ("1.5", "1.5"), ("", "nothing"), ("100001", "100001")):
        figure.get_by_role("spinbutton", name="tokens").fill(typed)
        assert f"tokens: {shown} is not possible" in figure.locator(".result").inner_text()
        assert "from 1 to 100,000" in figure.locator(".result").inner_text()
