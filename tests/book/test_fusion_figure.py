"""The chapter on fusion: the compiler's reports, the kernel that is printed and measured, and the chains to cut."""

import ast
import re
import sys
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.compiled_files import PINNED, assert_script_makes, assert_version_is_pinned

from mlsys import ops
from mlsys.ops.chain import Chain

pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
triton = pytest.importorskip("triton", reason="triton is not installed: mlsys[labs] brings it on Linux")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _figures import fused  # noqa: E402
from _figures import fusion as figures  # noqa: E402
from _interactive import fusion as player  # noqa: E402

PAGE = (ROOT / "book" / "mapping" / "fusion.md").read_text(encoding="utf-8")
COLUMNS = player.columns()
MATRIX = 2 * player.ROWS * COLUMNS


def test_the_reports_are_of_the_pinned_version() -> None:
    assert_version_is_pinned(fused.VERSIONS, "compile_fusion.py")


@pytest.mark.skipif([triton.__version__] != PINNED, reason="another Triton than the pinned one is installed")
def test_the_reports_are_what_the_compiler_makes() -> None:
    assert_script_makes("compile_fusion.py", "fused")


def test_the_page_prints_the_kernel_that_was_compiled() -> None:
    assert f"```{{code-cell}} ipython3\n{fused.ADD_NORM}" in PAGE


def test_the_kernel_that_is_measured_is_the_printed_one() -> None:
    def body(text: str, name: str) -> list[str]:
        [kernel] = [part for part in ast.parse(text).body if isinstance(part, ast.FunctionDef) and part.name == name]
        return [
            ast.unparse(part) for part in kernel.body if not isinstance(part, ast.Expr) or "store" in ast.unparse(part)
        ]

    module = (ROOT / "mlsys" / "measure" / "triton_kernels.py").read_text(encoding="utf-8")
    assert body(module, "add_norm_kernel") == body(fused.ADD_NORM, "add_norm")


@pytest.mark.parametrize("reports", [fused.BY_WARPS, fused.BY_STEPS, *fused.EPILOGUES.values(),
                                     *(chain["kernels"] for chain in fused.CHAINS.values())])  # fmt: skip
def test_a_kernel_spills_only_with_all_the_registers_that_it_can_have(reports: dict[Any, dict[str, int]]) -> None:
    for name, report in reports.items():
        assert 8 <= report["registers"] <= figures.MOST_REGISTERS, name
        assert report["stored"] == 0 or report["registers"] == figures.MOST_REGISTERS, name


def test_a_thread_has_registers_for_its_part_of_the_row() -> None:
    """h is in FP32, a register for each number, while the sum is made; a thread without room for it spills."""
    for warps, report in fused.BY_WARPS.items():
        numbers = fused.COLUMNS // (32 * warps)
        assert (report["registers"] > numbers) == (report["stored"] == 0)


def test_chains_have_the_passes_of_a_count_by_hand() -> None:
    by_hand = {
        "ReLU, batch normalization, scale, shift": (8, 2),
        "softmax": (8, 2),
        "residual and RMS normalization": (10, 4),
        "product, bias, GELU, residual": (9, 3),
    }
    for name, chain in player.chains(player.ROWS).items():
        everywhere = range(1, len(chain.operations))
        found = [chain.bytes(cuts).m_as("byte") / MATRIX for cuts in (everywhere, ())]
        assert found == pytest.approx(by_hand[name], rel=0.03), "vectors and the weights of the product are small"


def test_a_product_behind_an_activation_keeps_its_time() -> None:
    """Removing the cuts behind a compute-bound product removes what the other kernels moved and started."""
    rates = player.Rates.measured()
    chain = player.chains(player.ROWS)["product, bias, GELU, residual"]
    apart, whole = (player.seconds(chain, player.ROWS, cuts, queued=False, rates=rates) for cuts in ((1, 2, 3), ()))
    product = ops.matmul(m=player.ROWS, n=COLUMNS, k=COLUMNS).flop_count / rates.product
    others = sum(
        2 * sum(chain.elements[name] for name in (*kernel.reads, *kernel.writes))
        for kernel in chain.kernels((1, 2, 3))[1:]
    )
    assert whole == pytest.approx(product + rates.start_s)
    assert apart - whole == pytest.approx(others / rates.bandwidth + 3 * rates.start_s)


def test_gains_of_the_record_are_products_of_their_parts() -> None:
    for row in (row for name in figures.PASSES for row in player.records.load("nvidia-h200").named(name)):
        gain = figures.gain(row)
        assert gain.passes * gain.rates == pytest.approx(gain.measured)
        assert gain.compiled == pytest.approx(gain.measured / row.peers["torch.compile"])


def _cuttings(chain: Chain) -> list[tuple[int, ...]]:
    places = range(1, len(chain.operations))
    return [cuts for count in range(len(places) + 1) for cuts in combinations(places, count)]


@pytest.mark.browser
def test_the_figure_says_what_the_package_counts_for_every_cutting(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/mapping/fusion.html").as_uri())
    figure = page.locator('figure[data-figure="fusion"]')
    rates = player.Rates.measured()

    def said(name: str) -> float:
        return float(figure.locator(f".result data.{name}").get_attribute("value"))

    for rows, queued in ((player.ROWS, False), (128, True)):
        figure.get_by_role("combobox", name="Launches").select_option("queued" if queued else "graph")
        figure.get_by_role("spinbutton", name="Rows").fill(str(rows))
        for name, chain in player.chains(rows).items():
            figure.get_by_role("combobox", name="Chain").select_option(label=name)
            for cuts in _cuttings(chain):
                for place, operation in enumerate(chain.operations[:-1], 1):
                    box = figure.get_by_role("checkbox", name=operation.name, exact=True)
                    box.set_checked(place in cuts)
                runs = [f"{first}-{end}" for first, end in pairwise([0, *cuts, len(chain.operations)])]
                registers = [fused.CHAINS[name]["kernels"][run]["registers"] for run in runs]
                assert said("kernels") == len(runs)
                assert said("moved") == chain.bytes(cuts).m_as("byte")
                assert said("time") == pytest.approx(player.seconds(chain, rows, cuts, queued=queued, rates=rates))
                assert said("registers") == max(registers)
    page.close()


@pytest.mark.browser
def test_buttons_cut_everywhere_or_nowhere_and_a_spill_is_said(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/mapping/fusion.html").as_uri())
    figure = page.locator('figure[data-figure="fusion"]')
    figure.get_by_role("combobox", name="Chain").select_option(label="product, bias, GELU, residual")
    assert figure.locator("svg .kernel").count() == 4
    assert figure.locator("data.spilled").count() == 0
    figure.get_by_role("button", name="One kernel").press("Enter")
    assert figure.locator("svg .kernel").count() == 1
    whole = fused.CHAINS["product, bias, GELU, residual"]["kernels"]["0-4"]
    assert float(figure.locator("data.spilled").get_attribute("value")) == whole["stored"]
    figure.get_by_role("checkbox", name="GELU", exact=True).press(" ")
    assert figure.locator("svg .kernel").count() == 2
    figure.get_by_role("button", name="Cut everywhere").click()
    assert figure.locator("svg .kernel").count() == 4
    page.close()


@pytest.mark.browser
@pytest.mark.parametrize(("typed", "shown"), [("0", "0"), ("1.5", "1.5"), ("", "nothing"), ("1000001", "1000001")])
def test_rows_that_cannot_be_are_answered_with_what_can(typed: str, shown: str, browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/mapping/fusion.html").as_uri())
    figure = page.locator('figure[data-figure="fusion"]')
    figure.get_by_role("spinbutton", name="Rows").fill(typed)
    said = figure.locator(".result").inner_text()
    assert re.search(rf"Rows: {shown} is not possible\. Enter a whole number from 1 to 1,000,000\.", said)
    page.close()
