"""Interactive figures: the numbers they are made from, and what a reader sees who clicks, types or has no script."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlsys import Hardware, numerics, ops, runtime, systolic, traffic
from mlsys.course.pages.plain_markdown import PlainMarkdown
from mlsys.hardware.occupancy import occupancy
from mlsys.roofline import Roofline
from mlsys.traffic.coalescing import strided_addresses, warp_transactions

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _interactive import accumulate, compilers, tiling  # noqa: E402
from _interactive import layouts as coalescing  # noqa: E402
from _interactive import numerics as explorer  # noqa: E402
from _interactive import runtimes as planner  # noqa: E402
from _interactive import systolic as player  # noqa: E402

pytestmark = pytest.mark.timeout(900)
"""The first test builds the pages with all figures, which takes minutes on a busy machine."""

FIGURES = (
    "accumulate",
    "amdahl",
    "attention",
    "compilers",
    "convolution",
    "dataflow",
    "divergence",
    "economics",
    "feasibility",
    "fit",
    "fusion",
    "journey",
    "layouts",
    "limit",
    "mapping",
    "numerics",
    "occupancy",
    "overlap",
    "packing",
    "parallelism",
    "primitives",
    "roofline",
    "runtimes",
    "serving",
    "soc",
    "stages",
    "strategies",
    "sustainability",
    "systolic",
    "tiling",
    "timeline",
    "triage",
)
PHONE = {"width": 390, "height": 844}
CONFIG = """
execute: {execute_notebooks: "off"}
only_build_toc_files: true
sphinx:
  local_extensions: {course_figures: book/_ext, course_interactive: book/_ext}
  config:
    extensions: [myst_nb, jupyter_book, sphinx_comments, sphinx_design, sphinx_external_toc, sphinx_book_theme,
      course_figures, course_interactive]
    html_static_path: [book/_static]
    language: en
    html_context: {default_mode: auto}
"""


def _build(root: Path, page: str, **others: str) -> "subprocess.CompletedProcess[str]":
    """Build a book of one page, or of others too, with the figures of this repository, warnings as errors."""
    for folder in ("_ext", "_figures", "_interactive", "_languages", "_static"):
        shutil.copytree(
            ROOT / "book" / folder,
            root / "book" / folder,
            ignore=shutil.ignore_patterns("__pycache__"),
            dirs_exist_ok=True,
        )
    shutil.copy(ROOT / "book/references.bib", root / "book")  # the timeline names documents
    (root / "_config.yml").write_text(CONFIG)
    chapters = "chapters:\n" + "".join(f"  - file: book/{name}\n" for name in others) if others else ""
    (root / "_toc.yml").write_text(f"format: jb-book\nroot: book/page\n{chapters}")
    for name, text in {"page": page, **others}.items():
        (root / f"book/{name}.md").write_text(text)
    tools = Path(sys.executable).parent
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(root)}
    build = [str(tools / "jupyter-book"), "build", ".", "--warningiserror", "--nitpick", "--keep-going"]
    return subprocess.run(build, cwd=root, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built page that has all figures, beside it a page for each of them."""
    root = tmp_path_factory.mktemp("interactive")
    texts = {name: f"\n:::{{interactive}} {name}\nWhat to try.\n:::\n" for name in FIGURES}
    done = _build(root, "# Page\n" + "".join(texts.values()), **{name: f"# Page\n{texts[name]}" for name in FIGURES})
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "_build/html/book/page.html"


@pytest.fixture
def page(browser: Any, built: Path) -> Iterator[Any]:
    """A page from the disk, without a server; it must ask nobody else for anything and not complain."""
    page = browser.new_page(viewport={"width": 1280, "height": 2000}, base_url=built.as_uri())
    elsewhere: list[str] = []
    page.on("request", lambda request: request.url.startswith(("file:", "data:")) or elsewhere.append(request.url))
    page.on("requestfailed", lambda request: elsewhere.append(request.url))
    page.on("console", lambda message: elsewhere.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: elsewhere.append(str(error)))
    yield page
    page.close()
    assert elsewhere == []


def _figure(page: Any, name: str) -> Any:
    """Open the page that has only this figure, which is much lighter than the page of all."""
    page.goto(f"{name}.html")
    page.wait_for_function("document.querySelector('.course-interactive .drawing svg > *')")
    return page.locator(f"figure[data-figure={name}]")


def _choose(figure: Any, name: str, label: str) -> None:
    figure.get_by_role("combobox", name=name).select_option(label=label)


def _said(figure: Any, name: str) -> float:
    """The exact number behind one that stands in the result."""
    return float(figure.locator(f".result data.{name}").get_attribute("value"))


# The numbers


def test_no_rule_of_one_figure_changes_what_another_rule_says() -> None:
    sheet = (ROOT / "book" / "_static" / "interactive" / "interactive.css").read_text()
    sheet = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    sheet = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
    said = Counter(
        (" ".join(selector.split()), line.partition(":")[0].strip())
        for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet)
        for selector in re.split(r",(?![^(]*\))", selectors)
        for line in body.split(";")
        if ":" in line
    )
    assert len(said) > 300
    assert [rule for rule, times in said.items() if times > 1] == []


@pytest.mark.parametrize("along", [3, 4, 7, 12])
def test_short_ways_count_what_the_full_replay_counts(along: int) -> None:
    tile, size = 2, 2
    for places in range(1, along * (along + 3) + 4):
        near = places * size * tile**2
        found = traffic.tiled_matmul(*(along * tile,) * 3, tile, tile, tile, memory_bytes=near, dtype="fp16")
        walked = (found.read["A"], found.read["B"], found.read.get("C", 0), found.written["C"])
        assert tiling.moved(along * tile, tile, near, "fp16", longest_replay=1) == walked, places


def test_tiles_that_fit_nowhere_have_no_traffic() -> None:
    assert tiling.moved(512, 256, 64 * 1024, "fp16") is None
    assert tiling.moved(512, 128, 64 * 1024, "fp16") is not None


@pytest.mark.parametrize("dataflow", systolic.DATAFLOWS)
@pytest.mark.parametrize("example", list(player.EXAMPLES))
def test_what_leaves_the_array_is_the_product(example: str, dataflow: str) -> None:
    _, size, a, b = player.EXAMPLES[example]
    seen = player.content().numbers["examples"][example]["runs"][dataflow]
    left = {(i, j): value for cycle in seen for i, j, value in cycle["leaves"]}
    product = np.array(a) @ np.array(b)
    assert left == {place: int(value) for place, value in np.ndenumerate(product)}
    cycles = systolic.gemm_cycles(len(a), len(b[0]), len(b), rows=size, cols=size, dataflow=dataflow, drain=True)
    assert len(seen) == cycles
    worked = sum(value is not None for cycle in seen for row in cycle["product"] for value in row)
    assert worked == len(a) * len(b) * len(b[0])


# What the reader sees


OPERATIONS = {
    "matrix product, 4,096 × 4,096": lambda dtype: ops.matmul(m=4096, n=4096, k=4096, dtype=dtype),
    "dense layer 2,048 → 2,048, batch 32": lambda dtype: ops.linear(batch=32, d_in=2048, d_out=2048, dtype=dtype),
    "dense layer 2,048 → 2,048, batch 256": lambda dtype: ops.linear(batch=256, d_in=2048, d_out=2048, dtype=dtype),
    "softmax of 4,096 × 4,096": lambda dtype: ops.softmax(rows=4096, cols=4096, dtype=dtype),
}


@pytest.mark.browser
@pytest.mark.parametrize(
    ("chip", "precision"), [("a100-80gb-sxm", "fp16"), ("t4", "int8"), ("h100-sxm", "tf32"), ("b200", "fp8")]
)
def test_roofline_explorer_says_what_the_package_computes(page: Any, chip: str, precision: str) -> None:
    figure = _figure(page, "roofline")
    _choose(figure, "Chip", Hardware.get(chip).name)
    _choose(figure, "Number format", f"{precision}, matrix units")
    roofline = Roofline.of(Hardware.get(chip), precision)
    for label, op_of in OPERATIONS.items():
        _choose(figure, "Operation", label)
        op = op_of(precision)
        assert _said(figure, "attainable") == pytest.approx(roofline.attainable(op).m_as("flop/s"))
        assert _said(figure, "intensity") == pytest.approx(op.intensity.m_as("flop/byte"))
        assert _said(figure, "ridge") == pytest.approx(roofline.ridge(op.engine).m_as("flop/byte"))
        assert _said(figure, "time") == pytest.approx(roofline.time(op).m_as("second"))
        limit = {"memory": "memory is the limit", "compute": "arithmetic is the limit"}[roofline.bound(op)]
        assert figure.locator(".result .limit").inner_text() == limit


@pytest.mark.browser
def test_roofline_explorer_takes_an_intensity_typed_or_slid_by_keyboard(page: Any) -> None:
    figure = _figure(page, "roofline")
    typed, slide = figure.get_by_role("spinbutton"), figure.get_by_role("slider")
    typed.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("200")
    assert "at most 312 TFLOP/s" in figure.locator(".result").inner_text()
    assert figure.get_by_role("combobox", name="Operation").input_value() == "own"
    _choose(figure, "Chip", Hardware.get("h100-sxm").name)
    assert "at most 670 TFLOP/s" in figure.locator(".result").inner_text(), "200 FLOP/byte at 3,350 GB/s"
    slide.focus()
    before = _said(figure, "intensity")
    page.keyboard.press("ArrowRight")
    assert _said(figure, "intensity") > before
    page.keyboard.press("End")
    assert "arithmetic is the limit" in figure.locator(".result").inner_text()
    page.keyboard.press("Home")
    assert _said(figure, "attainable") == pytest.approx(0.1 * 3350e9)


@pytest.mark.browser
def test_roofline_explorer_admits_that_a_rate_is_unknown(page: Any) -> None:
    figure = _figure(page, "roofline")
    _choose(figure, "Chip", "Google TPU v4")
    _choose(figure, "Operation", "softmax of 4,096 × 4,096")
    assert "give no rate for its vector units" in figure.locator(".result").inner_text()
    assert figure.locator(".result data.peak").count() == 0


FRONT = {
    "a large matrix product": OPERATIONS["matrix product, 4,096 × 4,096"],
    "a dense layer for one sample": lambda dtype: ops.linear(batch=1, d_in=2048, d_out=2048, dtype=dtype),
    "a softmax": OPERATIONS["softmax of 4,096 × 4,096"],
}


@pytest.mark.browser
@pytest.mark.parametrize(("chip", "label"), [("h100-sxm", "H100 SXM5"), ("t4", "T4")])
def test_front_page_says_what_the_package_computes(page: Any, chip: str, label: str) -> None:
    figure = _figure(page, "limit")
    _choose(figure, "Your chip", label)
    roofline = Roofline.of(Hardware.get(chip), "fp16")
    for name, op_of in FRONT.items():
        _choose(figure, "An operation", name)
        op = op_of("fp16")
        assert _said(figure, "attainable") == pytest.approx(roofline.attainable(op).m_as("flop/s"))
        limit = {"memory": "Memory is the limit", "compute": "Arithmetic is the limit"}[roofline.bound(op)]
        assert figure.locator(".result .limit").inner_text() == limit


@pytest.mark.browser
def test_front_page_shows_no_share_of_a_rate_that_no_document_gives(page: Any) -> None:
    figure = _figure(page, "limit")
    _choose(figure, "Your chip", "TPU v5e")
    _choose(figure, "An operation", "a softmax")
    assert "Memory is the limit" in figure.locator(".result").inner_text()
    assert figure.locator(".result data.share").count() == 0


@pytest.mark.browser
def test_amdahl_says_what_the_parts_of_the_time_add_up_to(page: Any) -> None:
    figure = _figure(page, "amdahl")
    share, speedup = (figure.get_by_role("slider", name=name) for name in ("Accelerated share", "Speedup S"))
    for slide, key in ((share, "ArrowRight"), (speedup, "End"), (share, "Home"), (share, "End")):
        slide.focus()
        page.keyboard.press(key)
        # A job of 100 seconds, of which the share is done in its time by S.
        p, s = _said(figure, "share"), _said(figure, "factor")
        after = (100 - 100 * p) + 100 * p / s
        assert _said(figure, "speedup") == pytest.approx(100 / after)
        assert _said(figure, "left") == pytest.approx((100 - 100 * p) / after)
        assert _said(figure, "speedup") <= _said(figure, "ceiling") * (1 + 1e-9)
    assert speedup.get_attribute("aria-valuetext") == "1000"
    assert share.get_attribute("aria-valuetext") == "0.999"


@pytest.mark.browser
@pytest.mark.parametrize(
    ("chip", "threads", "registers", "shared_kib"),
    [
        ("h100-sxm", 256, 64, 0),
        ("h100-sxm", 320, 37, 0),
        ("a100-80gb-sxm", 97, 40, 20),
        ("a100-80gb-sxm", 1024, 65, 0),
        ("t4", 96, 40, 5),
        ("t4", 1, 1, 64),
        ("l4", 128, 48, 24),
    ],
)
def test_occupancy_explorer_counts_the_blocks_that_the_package_counts(
    page: Any, chip: str, threads: int, registers: int, shared_kib: int
) -> None:
    figure = _figure(page, "occupancy")
    _choose(figure, "Chip", Hardware.get(chip).name)
    _choose(figure, "Bytes that each thread has in flight", "16 bytes")
    for name, number in (("Threads", threads), ("Registers", registers), ("Shared", shared_kib)):
        figure.get_by_role("spinbutton", name=name).fill(str(number))
    found = occupancy(chip, threads=threads, registers=registers, shared_bytes=1024 * shared_kib)
    said = figure.locator(".result").inner_text()
    assert _said(figure, "blocks") == found.blocks
    assert figure.locator(".result .limit").inner_text() == " and ".join(found.limited_by)
    assert figure.locator("svg .place:is(.A, .B, .C)").count() == found.warps
    if not found.blocks:
        assert "this launch fails" in said
        return
    assert _said(figure, "share") == pytest.approx(found.share)
    assert _said(figure, "bytes") == found.warps * 32 * 16
    assert ("No latency" in said) == (chip in ("t4", "l4"))


@pytest.mark.browser
@pytest.mark.parametrize(
    ("name", "typed", "answer"),
    [
        ("Threads", "1500", "1500 is not possible. Enter a whole number from 1 to 1,024."),
        ("Registers", "0", "0 is not possible. Enter a whole number from 1 to 255."),
        ("Registers", "", "nothing is not possible. Enter a whole number from 1 to 255."),
        ("Shared", "228", "228 is not possible. Enter a whole number from 0 to 227."),
        ("Shared", "1.5", "1.5 is not possible. Enter a whole number from 0 to 227."),
    ],
)
def test_occupancy_explorer_says_what_is_allowed(page: Any, name: str, typed: str, answer: str) -> None:
    figure = _figure(page, "occupancy")
    field = figure.get_by_role("spinbutton", name=name)
    field.fill(typed)
    assert answer in figure.locator(".result").inner_text()
    assert field.get_attribute("aria-invalid") == "true"
    figure.get_by_role("slider", name=name).press("ArrowRight")
    assert field.get_attribute("aria-invalid") is None
    assert "An SM holds" in figure.locator(".result").inner_text()


@pytest.mark.browser
def test_occupancy_explorer_keeps_to_what_the_new_chip_has(page: Any) -> None:
    """200 KiB fit a block of an H100 and none of a T4."""
    figure = _figure(page, "occupancy")
    figure.get_by_role("spinbutton", name="Shared").fill("200")
    assert _said(figure, "blocks") == 1
    _choose(figure, "Chip", Hardware.get("t4").name)
    assert "Enter a whole number from 0 to 64." in figure.locator(".result").inner_text()


@pytest.mark.browser
def test_tiling_explorer_says_what_the_replay_counts(page: Any) -> None:
    figure = _figure(page, "tiling")
    slide, result = figure.get_by_role("slider"), figure.locator(".result")
    near = int(Hardware.get("a100-80gb-sxm").field("shared_memory_per_block").value.m_as("byte"))
    slide.focus()
    for keys, side, tile, verdict in (
        ([], 4096, 128, "they fit"),
        (["ArrowRight", "ArrowRight"], 4096, 192, "they do not fit"),
    ):
        for key in keys:
            page.keyboard.press(key)
        replayed = traffic.tiled_matmul(side, side, side, tile, tile, tile, memory_bytes=near, dtype="fp16")
        assert slide.get_attribute("aria-valuetext") == str(tile)
        assert _said(figure, "moved") == replayed.total_bytes
        assert _said(figure, "room") == replayed.working_set
        assert result.locator(".limit").inner_text() == verdict
    page.keyboard.press("End")
    assert result.locator(".limit").inner_text() == "not even one of them fits"


@pytest.mark.browser
def test_tiling_explorer_follows_lists_and_clicks_on_its_curve(page: Any) -> None:
    figure = _figure(page, "tiling")
    side = figure.get_by_role("combobox", name="Side of the matrices")
    side.focus()
    page.keyboard.press("ArrowUp")  # from 4,096 to 2,048
    assert side.input_value() == "2048"
    _choose(figure, "Number format", "FP32")
    _choose(figure, "Near memory", "4 MiB, L2 cache of a T4")
    figure.locator("svg .point").filter(has_text="side 256:").click()
    replayed = traffic.tiled_matmul(2048, 2048, 2048, 256, 256, 256, memory_bytes=4 * 2**20, dtype="fp32")
    assert figure.get_by_role("slider").get_attribute("aria-valuetext") == "256"
    assert _said(figure, "moved") == replayed.total_bytes
    assert _said(figure, "a") == replayed.read["A"]
    assert _said(figure, "least") == 3 * 4 * 2048**2


@pytest.mark.browser
@pytest.mark.parametrize(("dataflow", "label"), [("os", "outputs stay"), ("ws", "weights stay"), ("is", "inputs stay")])
def test_player_shows_each_cycle_by_click_and_by_keyboard(page: Any, dataflow: str, label: str) -> None:
    figure = _figure(page, "systolic")
    description, size, a, b = player.EXAMPLES["misfit"]
    _choose(figure, "Array and matrices", description)
    _choose(figure, "What stays in the elements", label)
    further = figure.get_by_role("button", name="Next")
    frames = list(systolic.frames(a, b, rows=size, cols=size, dataflow=dataflow))
    for number, frame in enumerate(frames, 1):
        assert _said(figure, "cycle") == number
        assert _said(figure, "busy") == frame.active.sum()
        assert figure.locator("svg .element.works").count() == frame.active.sum()
        if number % 2 and number < len(frames):
            further.click()
        else:
            further.press("Enter")
    assert _said(figure, "cycle") == len(frames), "there is nothing after the last cycle"
    product = np.array(a) @ np.array(b)
    shown = figure.locator("svg .entry-text.C").all_text_contents()
    assert shown == [str(value) for value in product.ravel()]
    figure.get_by_role("slider").press("Home")
    assert _said(figure, "cycle") == 1
    figure.get_by_role("button", name="Back").press("Enter")
    assert _said(figure, "cycle") == 1, "there is nothing before the first cycle"


@pytest.mark.browser
def test_player_plays_until_it_is_paused(page: Any) -> None:
    figure = _figure(page, "systolic")
    figure.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('figure[data-figure=systolic] data.cycle').value === '3'")
    assert figure.locator(".result").get_attribute("aria-live") == "off", "nobody can listen that fast"
    figure.get_by_role("button", name="Pause").click()
    paused = _said(figure, "cycle")
    page.wait_for_timeout(1800)
    assert _said(figure, "cycle") == paused
    assert figure.locator(".result").get_attribute("aria-live") == "polite"


@pytest.mark.browser
@pytest.mark.parametrize("name", ["time", "size", "area", "lifetime", "search"])
def test_planner_places_one_buffer_a_step_and_says_what_the_plan_needs(page: Any, name: str) -> None:
    figure = _figure(page, "runtimes")
    words, order, offsets = planner.plans()[name]
    _choose(figure, "Which buffer is placed first?", words)
    slide = figure.get_by_role("slider")
    assert _said(figure, "height") == runtime.plan_height(planner.BUFFERS, offsets)
    slide.press("Home")
    assert figure.locator("svg .buffer").count() == 0
    for count, place in enumerate(order, 1):
        slide.press("ArrowRight")
        assert _said(figure, "offset") == offsets[place]
        assert figure.locator("svg .buffer").count() == count
        placed = order[:count]
        so_far = [planner.BUFFERS[one] for one in placed]
        assert _said(figure, "height") == runtime.plan_height(so_far, [offsets[one] for one in placed])
    slide.press("ArrowRight")
    assert figure.locator("svg .buffer").count() == len(order), "there is nothing after the last buffer"
    waste = runtime.plan_height(planner.BUFFERS, offsets) - runtime.peak_live(planner.BUFFERS)
    assert (figure.locator(".result data.waste").count() == 0) == (waste == 0) == (name == "search")


@pytest.mark.browser
def test_the_compiler_is_followed_through_its_stages_to_the_measured_time(page: Any) -> None:
    figure = _figure(page, "compilers")
    numbers = compilers.content().numbers
    slide, result = figure.get_by_role("slider"), figure.locator(".result")
    for way in numbers["ways"]:
        _choose(figure, "Compiled with", way["name"])
        slide.press("Home")
        for stage in way["stages"]:
            assert slide.get_attribute("aria-valuetext") == stage["name"]
            first = numbers["first"]["operation"]
            chosen = figure.locator(".listing .chosen").all_text_contents()
            assert [text[1:].rstrip("\n") for text in chosen] == [
                stage["lines"][place] for place in stage["marked"][first]
            ]
            assert stage["said"][first] in result.inner_text()
            if stage["name"] == "lower":
                assert _said(figure, "kernels") == way["kernels"]
            slide.press("ArrowRight")
        if not numbers["times"]:  # the record has no times of the network, so the viewer ends before
            continue
        assert slide.get_attribute("aria-valuetext") == "run"
        times = next(one for one in numbers["times"] if one["name"] == way["name"])
        assert (_said(figure, "graph"), _said(figure, "call")) == (times["graph"], times["call"])
        assert figure.locator("svg .time").count() == 2 * len(numbers["times"])


def _moved(figure: Any) -> tuple[float, ...]:
    return tuple(_said(figure, name) for name in ("sectors", "lines", "moved", "used"))


def _counted(addresses: list[int], width: int) -> tuple[float, ...]:
    found = warp_transactions(addresses, element_bytes=width)
    return found.sectors, found.lines, found.bytes_moved, found.bytes_used


@pytest.mark.browser
@pytest.mark.parametrize("width", coalescing.WIDTHS)
def test_coalescing_player_counts_what_the_package_counts(page: Any, width: int) -> None:
    figure = _figure(page, "layouts")
    _choose(figure, "Bytes that a lane reads", str(width))
    typed, start = figure.get_by_role("spinbutton"), figure.get_by_role("slider", name="First element")
    for stride in (0, 1, 3, 8, 32, 4096):
        typed.fill(str(stride))
        start.press("Home")
        for first in range(3):
            addresses = strided_addresses(stride=stride, element_bytes=width, base=first)
            assert _moved(figure) == _counted(addresses, width), (stride, first)
            start.press("ArrowRight")


@pytest.mark.browser
@pytest.mark.parametrize("name", list(coalescing.PATTERNS))
def test_coalescing_player_shows_layouts_and_gathers_lane_by_lane(page: Any, name: str) -> None:
    figure = _figure(page, "layouts")
    pattern = coalescing.PATTERNS[name]
    _choose(figure, "What the warp reads", pattern["label"])
    width = pattern["width"]
    elements = pattern.get("elements") or [lane * pattern["stride"] for lane in range(32)]
    addresses = [width * element for element in elements]
    assert _moved(figure) == _counted(addresses, width)
    lanes = figure.get_by_role("slider", name="Lanes that have read")
    lanes.press("Home")
    for lane in range(1, 6):
        assert _moved(figure) == _counted(addresses[:lane], width)
        assert figure.locator("svg .asked").count() == lane
        assert figure.locator("svg .sector.moves").count() == _said(figure, "sectors")
        figure.get_by_role("button", name="Next").click()


@pytest.mark.browser
@pytest.mark.parametrize("entered", ["4097", "-1", "1.5", ""])
def test_coalescing_player_says_which_strides_it_can_draw(page: Any, entered: str) -> None:
    figure = _figure(page, "layouts")
    typed, before = figure.get_by_role("spinbutton"), _moved(figure)
    typed.fill(entered)
    assert "from 0 to 4,096. The drawing still shows a stride of 2." in figure.locator(".result").inner_text()
    assert typed.get_attribute("aria-invalid") == "true"
    assert _moved(figure) == before
    typed.fill("4")
    assert "must be" not in figure.locator(".result").inner_text()


def _telling(form: numerics.FloatFormat) -> list[float]:
    """Numbers of a format, the ties between them and their neighbors, the ends of its range, and random sizes."""
    rng = np.random.default_rng(7)
    codes = np.arange(2**form.bits) if form.bits <= 8 else rng.integers(0, 2**form.bits, 2000)
    held = form.decode(codes)
    held = held[np.isfinite(held)]
    gap = np.exp2(np.maximum(np.frexp(held)[1] - 1, 1 - form.bias) - form.mantissa_bits)
    wide = rng.normal(size=2000) * np.exp2(rng.uniform(-160, 140, 2000))
    ends = [0.0, 5e-324, form.min_subnormal / 2, form.min_normal, form.max, 1.001 * form.max, 1e300]
    tie = form.max + 2.0 ** (np.floor(np.log2(form.max)) - form.mantissa_bits) / 2
    ends += [tie, np.nextafter(tie, 0)] + ([np.inf] if form.specials != "none" else [])
    found = np.concatenate([held, held + gap / 2, held - gap / 2, held + 0.3 * gap, wide, ends])
    return [float(x) for x in np.concatenate([found, -found])]


def _same(found: object, expected: float) -> bool:
    """Whether the browser found the number, minus zero included; what JSON cannot hold comes as a text."""
    return repr(float(str(found))) == repr(expected)


@pytest.mark.browser
@pytest.mark.parametrize("name", numerics.FLOAT_FORMATS)
def test_the_bits_in_the_browser_are_those_of_the_package(page: Any, name: str) -> None:
    _figure(page, "numerics")
    form = numerics.float_format(name)
    values = _telling(form)
    told = """([form, values]) => values.map((text) => {
      const x = text === "inf" ? Infinity : text === "-inf" ? -Infinity : Number(text);
      const held = courseFormats.round(form, x);
      return [Object.is(held, -0) ? "-0.0" : String(held).replace("Infinity", "inf"), courseFormats.encode(form, x)];
    })"""
    found = page.evaluate(told, [explorer.formats()[name], [repr(x) for x in values]])
    rounded, codes = form.round(values), form.encode(values)
    wrong = [
        (x, held, code)
        for x, (held, code), y, expected in zip(values, found, rounded.tolist(), codes.tolist(), strict=True)
        if not _same(held, y) or code != expected
    ]
    assert wrong == []
    every = sorted({int(code) for code in codes})
    decoded = page.evaluate(
        "([form, codes]) => codes.map((code) => courseFormats.decode(form, code)).map((x) => Object.is(x, -0) ? '-0.0' "
        ": String(x).replace('Infinity', 'inf'))",
        [explorer.formats()[name], every],
    )
    assert all(_same(x, y) for x, y in zip(decoded, form.decode(every).tolist(), strict=True))
    steps = [x for x in values if 0 < abs(x) < form.max]
    gaps = page.evaluate(
        "([form, values]) => values.map((x) => courseFormats.spacing(form, x))", [explorer.formats()[name], steps]
    )
    for x, gap in zip(steps, gaps, strict=True):  # no number of the format is nearer than the gap says
        below = float(form.round(x))
        if abs(below) <= abs(x) and 0 < abs(below) < form.max:
            following = float(form.decode(int(form.encode(abs(below))[()]) + 1))
            assert following - abs(below) == float(gap)


@pytest.mark.browser
@pytest.mark.parametrize("bits", explorer.INTEGERS)
def test_integers_in_the_browser_are_those_of_the_package(page: Any, bits: int) -> None:
    _figure(page, "numerics")
    form = numerics.IntFormat(bits)
    values = [x / 4 for x in range(-1200, 1201)] + [1e300, -1e300]
    told = "([form, values]) => values.map((x) => [courseFormats.round(form, x), courseFormats.encode(form, x)])"
    found = np.array(page.evaluate(told, [explorer.formats()[f"int{bits}"], values]))
    np.testing.assert_array_equal(found.T, [form.round(values), form.encode(values)])
    codes = list(range(2**bits))
    decoded = page.evaluate(
        "([form, codes]) => codes.map((code) => courseFormats.decode(form, code))",
        [explorer.formats()[f"int{bits}"], codes],
    )
    assert decoded == form.decode(codes).tolist()


def _bits(figure: Any) -> str:
    return "".join(figure.locator(".bits button").all_text_contents())


@pytest.mark.browser
def test_explorer_shows_a_typed_number_and_flips_its_bits(page: Any) -> None:
    figure = _figure(page, "numerics")
    typed = figure.get_by_role("textbox", name="Your number")
    for name in ("fp16", "bf16", "fp8-e4m3", "fp32"):
        form = numerics.float_format(name)
        _choose(figure, "Format", f"{explorer.label(name)}, {form.bits} bits")
        typed.fill("0.3")
        assert _bits(figure) == "".join(form.layout(0.3))
        assert _said(figure, "held") == float(form.round(0.3))
        for place in (0, 2, form.bits - 1):
            before = _bits(figure)
            figure.locator(".bits button").nth(place).click()
            flipped = before[:place] + "10"[int(before[place])] + before[place + 1 :]
            assert _bits(figure) == flipped
            assert _said(figure, "held") == float(form.decode(int(flipped, 2)))
            assert _said(figure, "code") == int(flipped, 2)
            assert float(typed.input_value().replace("−", "-")) == float(form.decode(int(flipped, 2)))


@pytest.mark.browser
def test_explorer_says_what_happens_outside_the_range_and_what_may_be_typed(page: Any) -> None:
    figure = _figure(page, "numerics")
    typed, result = figure.get_by_role("textbox", name="Your number"), figure.locator(".result")
    for shown, number, verdict in (
        ("FP16, 16 bits", "70000", "the largest number is 65504, and what rounds to more becomes infinity"),
        ("FP8 E4M3, 8 bits", "500", "it stays at the end of the range, 448"),
        ("INT8, 8 bits", "-200", "it stays at the end of the range, −128"),
        ("FP16, 16 bits", "1e-9", "the smallest positive number is 5.96046e−8"),
        ("FP16, 16 bits", "1e-6", "a subnormal number"),
        ("BF16, 16 bits", "0.5", "held exactly"),
        ("FP4 E2M1, 4 bits", "inf", "neither infinity nor NaN: it holds finite numbers only, from −6 to 6"),
        ("INT4, 4 bits", "nan", "neither infinity nor NaN: it holds finite numbers only, from −8 to 7"),
        ("FP32, 32 bits", "0,1", "Type digits with a point, such as 0.1"),
        ("FP32, 32 bits", "1e999", "up to 1e308, or inf or nan"),
        ("FP32, 32 bits", "<b>x</b>", "“<b>x</b>” is not a number"),
        ("FP32, 32 bits", "-inf", "Infinity is a code of its own"),
    ):
        typed.fill("1")
        _choose(figure, "Format", shown)
        typed.fill(number)
        assert verdict in result.inner_text(), number
    typed.fill("inf")
    _choose(figure, "Format", "INT8, 8 bits")
    assert "finite numbers only, from −128 to 127" in result.inner_text(), "the new format cannot hold what is there"
    figure.locator(".bits button").last.click()
    assert _said(figure, "held") == 1


@pytest.mark.browser
@pytest.mark.parametrize("kind", accumulate.KINDS)
def test_sums_are_those_of_the_package(page: Any, kind: str) -> None:
    figure = _figure(page, "accumulate")
    _choose(figure, "Products", accumulate.KINDS[kind])
    slide = figure.get_by_role("slider")
    first, second = (figure.get_by_role("textbox", name=f"{which} factor") for which in ("First", "Second"))
    for a, b, factors, terms in ((0.1, 0.1, "fp16", 11), (7.3, -0.9, "fp8-e4m3", 9), (1.5, 1.0, "fp4-e2m1", 12)):
        first.fill(str(a))
        second.fill(str(b))
        _choose(figure, "Format of the factors", explorer.label(factors))
        slide.focus()
        page.keyboard.press("Home")
        for _ in range(terms):
            page.keyboard.press("ArrowRight")
        added = accumulate.products(kind, a, b, factors, 2**terms)
        for name in accumulate.ACCUMULATORS:
            assert _said(figure, name) == numerics.running_sum(added, name)
        assert _said(figure, "exact") == pytest.approx(sum(added), abs=1e-9)


@pytest.mark.browser
def test_sums_overflow_in_sight_and_refuse_what_is_too_large(page: Any) -> None:
    figure = _figure(page, "accumulate")
    first, result = figure.get_by_role("textbox", name="First factor"), figure.locator(".result")
    first.fill("1000")
    assert "FP16: ∞, because it exceeds 65,504" in result.inner_text()
    for wrong in ("1001", "", "ten", "0,5"):
        first.fill(wrong)
        assert "must be a number from −1,000 to 1,000" in result.inner_text()
        assert first.get_attribute("aria-invalid") == "true"
    first.fill("2")
    assert "FP16: 4,096, an error of 50%, unchanged since product 2,048" in result.inner_text()


@pytest.mark.browser
def test_the_viewer_marks_a_line_in_every_stage_and_says_which_thread_holds_an_element(page: Any) -> None:
    figure = _figure(page, "stages")
    slide, typed, result = figure.get_by_role("slider"), figure.get_by_role("spinbutton"), figure.locator(".result")
    _choose(figure, "Line of the kernel", "y = tl.maximum(x * scale + shift, 0.0)")
    slide.press("Home")
    for name, sign in (("Python", "tl.maximum"), ("TTIR", "mulf"), ("TTGIR", "mulf"), ("PTX", "fma"), ("SASS", "FFMA")):
        assert slide.get_attribute("aria-valuetext") == name
        chosen = figure.locator(".listing .chosen").all_text_contents()
        assert any(sign in text for text in chosen), name
        assert all(text.startswith("▸") for text in chosen)
        if name == "Python":
            assert "No thread has it yet" in result.inner_text()
        else:
            assert _said(figure, "lines") == len(chosen)
        slide.press("ArrowRight")
    for element in (0, 137, 511):
        typed.fill(str(element))
        held = 32 * _said(figure, "warp") + _said(figure, "lane")
        assert 4 * held + _said(figure, "place") == element
    for wrong in ("512", "-1", "1.5", ""):
        typed.fill(wrong)
        assert result.locator(".limit").inner_text() == "The block has the elements 0 to 511"
        assert figure.locator("svg .holds").count() == 0


@pytest.mark.browser
def test_numbers_move_only_for_readers_who_allow_motion(page: Any) -> None:
    figure = _figure(page, "systolic")
    places = "figure => [...figure.querySelectorAll('.number')].map(mark => mark.getAttribute('transform'))"
    step = f"figure => {{ figure.querySelector('.buttons button:nth-child(2)').click(); return ({places})(figure); }}"
    moved = {}
    for wish in ("no-preference", "reduce"):
        page.emulate_media(reduced_motion=wish)
        at_once = figure.evaluate(step)
        page.wait_for_timeout(600)
        moved[wish] = at_once != figure.evaluate(places)
    assert moved == {"no-preference": True, "reduce": False}


@pytest.mark.browser
@pytest.mark.parametrize("name", FIGURES)
def test_every_control_is_reached_by_tab_and_shows_its_focus(page: Any, name: str) -> None:
    figure = _figure(page, name)
    controls = figure.locator(".controls").locator("select:visible, input:visible, button:visible")
    controls.first.focus()
    page.keyboard.press("Shift+Tab")
    for place in range(controls.count()):
        page.keyboard.press("Tab")
        control = controls.nth(place)
        assert control.evaluate("control => control === document.activeElement"), place
        width, style = control.evaluate(
            "control => { const look = getComputedStyle(control); return [look.outlineWidth, look.outlineStyle]; }"
        )
        assert (width, style) == ("3px", "solid")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_fit_a_phone_and_their_text_does_not_leave_the_drawing(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size(PHONE)
    page.goto("page.html")
    page.wait_for_function("document.querySelectorAll('.course-interactive .drawing svg > *').length > 20")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    cut = """figures => figures.flatMap(figure => {
      const room = figure.querySelector('svg').getBoundingClientRect();
      return [...figure.querySelectorAll('svg text')].filter(text => {
        const box = text.getBoundingClientRect();
        return box.left < room.left - 1 || box.right > room.right + 1
          || box.top < room.top - 1 || box.bottom > room.bottom + 1;
      }).map(text => text.textContent);
    })"""
    assert page.eval_on_selector_all("figure.course-interactive", cut) == []


@pytest.mark.browser
@pytest.mark.parametrize("name", FIGURES)
def test_without_script_there_are_a_picture_and_a_table(browser: Any, built: Path, name: str) -> None:
    context = browser.new_context(java_script_enabled=False, viewport=PHONE)
    page = context.new_page()
    page.goto(built.with_name(f"{name}.html").as_uri())
    figure = page.locator(f"figure[data-figure={name}]")
    image = figure.locator("img")
    image.scroll_into_view_if_needed()
    assert image.bounding_box()["width"] > 200
    assert len(image.get_attribute("alt")) > 100
    assert figure.locator("table").first.is_visible()
    assert not figure.locator(".controls").is_visible()
    context.close()


def test_the_page_and_all_scripts_of_its_figures_are_small(built: Path) -> None:
    scripts = built.parents[1].joinpath("_static/interactive").rglob("*.js")
    compressed = sum(len(gzip.compress(path.read_bytes())) for path in (built, *scripts))
    assert compressed < 300 * 1024


# What the build refuses


def test_the_build_names_the_page_and_what_is_wrong(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "book" / "_interactive", tmp_path / "book" / "_interactive")
    bad = "# Page\n\n:::{interactive} rofline\nCaption.\n:::\n\n:::{interactive} systolic\n:::\n"
    done = _build(tmp_path, bad)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert (
        "book/page.md:3: ERROR: interactive figure 'rofline': unknown figure 'rofline': did you mean 'roofline'?"
        in said
    )
    assert "book/page.md:7: ERROR: interactive figure 'systolic' has no caption" in said


def test_a_missing_number_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import _interactive.roofline as explorer

    monkeypatch.setattr(explorer, "CHIPS", ["a100-80gb-sxm", "h1000"])
    with pytest.raises(LookupError, match="unknown chip 'h1000': did you mean"):
        explorer.content()


@pytest.mark.parametrize("fence", [":::", "```"])
def test_a_notebook_says_where_the_figure_is(fence: str) -> None:
    page = f"Before.\n\n{fence}{{interactive}} tiling\nTry it.\n{fence}\n\nAfter."
    before, said, after = (line for line in PlainMarkdown("page.md", numbers={}).convert(page).splitlines() if line)
    assert (before, after) == ("Before.", "After.")
    assert "has an interactive figure here: tiling" in said
