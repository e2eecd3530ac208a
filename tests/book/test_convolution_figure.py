"""The chapter on convolution: its player against torch's own windows, and what its figures and exercises count."""

import re
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: mlsys[book] brings it")
torch = pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _figures import convolution as figures  # noqa: E402
from _interactive import convolution as player  # noqa: E402
from helpers.torch_models import resnet50  # noqa: E402

from mlsys.course.lab import Lab  # noqa: E402
from mlsys.measure import records  # noqa: E402

SHAPES = [(padding, stride) for padding in (0, 1, 2) for stride in (1, 2, 3)]


def unfolded(padding: int, stride: int) -> Any:
    """The player's windows by torch: windows x taps, with the number of the pixel from 1, or 0 in the border."""
    image = torch.arange(1.0, 26.0).reshape(1, 1, 5, 5)
    return torch.nn.functional.unfold(image, 3, padding=padding, stride=stride)[0].T.int()


@pytest.mark.parametrize(("padding", "stride"), SHAPES)
def test_the_player_counts_the_windows_that_torch_unfolds(padding: int, stride: int) -> None:
    found, right = player.windows(padding, stride), unfolded(padding, stride)
    assert (found.rows, found.numbers) == (right.shape[0], 4 * right.numel())
    assert found.times == pytest.approx(right.numel() / 25)
    assert found.places**2 == found.rows


def test_the_table_of_the_player_has_a_line_for_each_padding_and_stride() -> None:
    [table] = player.content().tables
    assert [row[:2] for row in table.rows[1:]] == [(str(padding), str(stride)) for padding, stride in SHAPES]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("side", "stride"), [(7, 1), (8, 2), (5, 3)])
def test_used_bytes_are_those_of_a_marked_memory(layout: str, side: int, stride: int) -> None:
    """Mark each byte in a picture of the memory, instead of computing addresses."""
    channels, pixels, places = 16, 24, -(-side // stride)
    images = -(-pixels // places**2)
    asked = moved = 0
    for tap in range(3):
        marked = np.zeros((images, channels, side, side), bool)
        for number in range(pixels):
            n, p, q = np.unravel_index(number, (images, places, places))
            if 0 <= q * stride + tap - 1 < side:
                marked[n, :, p * stride, q * stride + tap - 1] = True
        stored = marked if layout == "NCHW" else marked.transpose(0, 2, 3, 1)
        memory = np.repeat(np.ascontiguousarray(stored).ravel(), 2)
        memory = np.append(memory, np.zeros(-len(memory) % 32, bool)).reshape(-1, 32)
        asked, moved = asked + memory.sum(), moved + 32 * memory.any(1).sum()
    share = figures.used_share(layout, side=side, stride=stride, channels=channels, pixels=pixels)
    assert share == pytest.approx(asked / moved)


def test_the_layers_are_those_of_torch_and_of_the_record() -> None:
    with torch.device("meta"):
        network, images = resnet50(), torch.empty(32, 3, 224, 224)
    seen: dict[tuple[int, ...], torch.nn.Conv2d] = {}
    for part in network.modules():
        if isinstance(part, torch.nn.Conv2d):
            part.register_forward_hook(
                lambda part, given, _: seen.update(
                    {(*given[0].shape, part.out_channels, *part.kernel_size, part.stride[0]): part}
                )
            )
    network(images)
    layers = figures.resnet_layers(images=32)
    assert set(layers) == set(seen)
    bench = runpy.run_path(str(ROOT / "labs/convolution/bench.py"))
    assert list(layers) == [(x.n, x.c, x.h, x.w, x.k, x.r, x.s, x.stride) for x in bench["resnet_layers"]()]
    for sizes, op in layers.items():
        n, c, h, w, k, taps, _, stride = sizes
        places = -(-h // stride)
        assert op.flop_count == 2 * n * places**2 * k * c * taps**2
        met = np.zeros((h, w), bool)
        for tap in range(taps):
            rows = [p * stride + tap - taps // 2 for p in range(places)]
            met[np.ix_(*[[row for row in rows if 0 <= row < h]] * 2)] = True
        read = n * c * (met.any(1).sum() * met.any(0).sum()) + k * c * taps**2
        assert op.read_count == 2 * read
        assert op.write_count == 2 * n * places**2 * k


def test_a_network_takes_the_sum_over_all_its_convolutions() -> None:
    with torch.device("meta"):
        network, images = resnet50(), torch.empty(32, 3, 224, 224)
    ran: list[tuple[int, ...]] = []
    for part in network.modules():
        if isinstance(part, torch.nn.Conv2d):
            part.register_forward_hook(
                lambda part, given, _: ran.append(
                    (*given[0].shape, part.out_channels, *part.kernel_size, part.stride[0])
                )
            )
    network(images)
    record = records.load("nvidia-h200")
    times = {row.shape: row.reference_s["cuDNN"] for row in record.named("fast convolution")}
    assert len(ran) == 53
    assert figures.network_s(record, "fast convolution", "cuDNN") == pytest.approx(sum(times[sizes] for sizes in ran))


def test_the_profile_of_the_exercise_is_what_the_profiler_says() -> None:
    """Bytes that operators allocate, children included, against the sizes that the page computes."""
    from torch.profiler import ProfilerActivity, profile

    x, w = torch.randn(4, 64, 28, 28), torch.randn(64, 64, 3, 3)
    last = x.to(memory_format=torch.channels_last)
    programs = {
        "P": lambda: w.flatten(1) @ torch.nn.functional.unfold(x, 3, padding=1),
        "Q": lambda: torch.nn.functional.conv2d(x, w, padding=1),
        "R": lambda: torch.nn.functional.conv2d(last, w, padding=1),
    }
    image, filters = 4 * x.numel(), 4 * w.numel()
    expected = {
        "P": {"aten::im2col": 9 * image, "aten::bmm": image},
        "Q": {"aten::mkldnn_convolution": image},
        "R": {"aten::mkldnn_convolution": image, "aten::clone": filters},
    }
    listed = {name for by_name in expected.values() for name in by_name}
    for program, run in programs.items():
        run()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
            run()
        found = {event.key: event.cpu_memory_usage for event in profiled.key_averages()}
        assert {name: size for name, size in found.items() if name in listed and size} == expected[program]


def test_the_page_shows_no_line_of_a_solution() -> None:
    lab = Lab.load(ROOT / "labs/convolution/lab.py")
    regions = re.findall(
        r"### BEGIN (?:SOLUTION|HIDDEN TESTS)\n(.*?)### END", "\n".join(cell.source for cell in lab.cells), re.S
    )
    hidden = {line.strip() for region in regions for line in region.splitlines() if not line.strip().startswith("#:")}
    page = (ROOT / "book/performance/convolution.md").read_text(encoding="utf-8")
    shown = {line.strip() for line in page.splitlines()}
    assert len(hidden) > 100
    # A line such as `for r in range(R):` says nothing about an answer.
    assert {line for line in hidden & shown if len(line) > 25} == set()


def held(pixel: int, tap: int, padding: int, stride: int) -> tuple[int, int]:
    """Pixels of the image and zeros that the tile of a window and a tap reads, by torch; both count from 1."""
    windows = unfolded(padding, stride)
    first = (pixel - 1) // 8 * 8
    column = windows[first : first + 8, tap - 1]
    return int((column > 0).sum()), int((column == 0).sum())


def said(figure: Any, name: str) -> float:
    return float(figure.locator(f"data.{name}").get_attribute("value"))


@pytest.mark.browser
def test_the_player_says_what_the_windows_and_tiles_are(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/performance/convolution.html").as_uri())
    figure = page.locator('figure[data-figure="convolution"]')
    for padding, stride in SHAPES:
        figure.get_by_label("Padding", exact=True).fill(str(padding))
        figure.get_by_label("Stride", exact=True).fill(str(stride))
        right = player.windows(padding, stride)
        assert (said(figure, "places"), said(figure, "rows")) == (right.places, right.rows)
        assert said(figure, "times") == pytest.approx(right.times)
        figure.get_by_label("Pixel of the result", exact=True).focus()
        for key, pixel in (("End", right.rows), ("Home", 1)):
            page.keyboard.press(key)
            assert (said(figure, "pixels"), said(figure, "zeros")) == held(pixel, 1, padding, stride)
        figure.get_by_label("Tap", exact=True).focus()
        for key, tap in (("End", 9), ("ArrowLeft", 8), ("Home", 1)):
            page.keyboard.press(key)
            assert (said(figure, "pixels"), said(figure, "zeros")) == held(1, tap, padding, stride)
    for groups in player.GROUPS:
        figure.get_by_label("Groups", exact=True).select_option(str(groups))
        assert (said(figure, "seen"), said(figure, "sees")) == (4 // groups, 36 // groups)
    page.close()


@pytest.mark.browser
def test_a_stride_that_is_not_possible_is_answered_with_what_is(browser: Any, site: Path) -> None:
    page = browser.new_page()
    page.goto((site / "book/performance/convolution.html").as_uri())
    figure = page.locator('figure[data-figure="convolution"]')
    figure.get_by_label("Stride", exact=True).fill("4")
    assert "Stride: 4 is not possible. Enter a whole number from 1 to 3." in figure.locator(".result").inner_text()
    figure.get_by_label("Stride", exact=True).fill("2")
    assert said(figure, "places") == 3
    page.close()
