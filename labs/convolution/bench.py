"""What the lab on convolution measures for the record: the fastest kernel on the layers of ResNet-50, and its rivals.

All are replayed from CUDA graphs, as in the lab's race. The peers are what torch calls: cuDNN with the channels last,
which is the layout of the kernels, and with the channels first; the same followed by bias and ReLU; and cuDNN's kernel
that does all three. Then one layer with a copy of its windows and without, and one with a filter per channel.

| name | variants | shape |
|---|---|---|
| fast convolution | the plan | images, channels, height, width, filters, rows and columns of taps, stride |
| fast convolution + bias + ReLU | the plan | the same |
| convolution routes | copy of the windows, product with the copy, copy then product, one kernel | the same |
| depthwise convolution | cuDNN | the same |
| fast convolution, host | launch alone | the same |

The last row is the host's own time for a call, of a layer so small that the GPU never keeps it waiting.

`python labs/convolution/bench.py` measures every plan that may suit a layer, on one GPU, and prints which is best.
"""

import argparse
import json
import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.nn import functional

from mlsys.bench.lab import lab_module
from mlsys.bench.row import row
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import detect_device
from mlsys.measure.records import Row
from mlsys.measure.timing import time_kernel, time_pair
from mlsys.models.convolutional import build_resnet50
from mlsys.models.images import ImageNetwork
from mlsys.models.shapes import shapes

BATCH = 32
DTYPE = torch.bfloat16
FORMAT = "bf16"
LAST, FIRST = torch.channels_last, torch.contiguous_format
LIBRARY = {"cuDNN": LAST, "cuDNN channels first": FIRST}
BATCH_S = 0.005
"""Seconds of a batch of a pair in `main`."""

ROUTES_LAYER = (32, 128, 56, 56, 256, 3, 3, 1, 1)
"""Sizes of the layer that is computed with a copy of its windows and without, as for `Layer`."""

DEPTHWISE_LAYER = (32, 256, 56, 56, 256, 3, 3, 1, 1, 256)
"""Sizes of the layer with a filter per channel."""

HOST_LAYER = (1, 64, 8, 8, 64, 3, 3, 1, 1)
"""Sizes of the layer whose call is timed on the host."""

PIECE = torch.complex128
"""Widest type that torch copies, 16 bytes: only the bits count."""

Work = Callable[[], torch.Tensor]


def fast_module() -> ModuleType:
    """`fast.py` beside this file."""
    return lab_module(Path(__file__).with_name("fast.py"))


def resnet_layers(batch: int = BATCH) -> list[Any]:
    """The distinct convolutions of ResNet-50, in order."""
    shape, layer = shapes().resnet50, fast_module().Layer
    net = ImageNetwork(n=batch, c=shape.channels, h=shape.image, w=shape.image, dtype=FORMAT)
    build_resnet50(net)
    return [
        layer(one.n, one.c, one.h, one.w, one.c_out, one.kernel, one.kernel, one.stride, one.padding)
        for one in dict.fromkeys(net.conv_sizes)
    ]


class Case:
    """A layer with random data, and the ways to compute it."""

    def __init__(self, layer: Any, device: str = "cuda", dtype: torch.dtype = DTYPE) -> None:
        self.layer, self.fast = layer, fast_module()
        sides = (layer.n, layer.c, layer.h, layer.w), (layer.k, layer.c // layer.groups, layer.r, layer.s)
        x, w = (torch.randn(shape, device=device) for shape in sides)
        w /= math.sqrt(w[0].numel())
        self.x, self.w = (tensor.to(dtype).to(memory_format=LAST) for tensor in (x, w))
        self.bias = torch.randn(layer.k, device=device).to(dtype)
        self.where = {"stride": layer.stride, "padding": layer.padding, "groups": layer.groups}

    @property
    def shape(self) -> tuple[int, ...]:
        """Images, channels, rows, columns; filters, rows and columns of taps; stride."""
        layer = self.layer
        return (layer.n, layer.c, layer.h, layer.w, layer.k, layer.r, layer.s, layer.stride)

    @property
    def tflop(self) -> float:
        """Work of the products."""
        layer = self.layer
        return 2 * layer.pixels * layer.k * layer.c // layer.groups * layer.r * layer.s / 1e12

    def ours(self, plan: Any, *, fused: bool) -> Work:
        """A call of the fastest kernel into an output of its own."""
        shape = (self.layer.n, self.layer.k, self.layer.p, self.layer.q)
        out = torch.empty(shape, dtype=self.x.dtype, device=self.x.device, memory_format=LAST).fill_(float("nan"))
        device = detect_device()

        def call() -> torch.Tensor:
            self.fast.launch(self.x, self.w, self.bias if fused else None, out, self.layer, plan, device, fused)
            return out

        return call

    def library(self, layout: torch.memory_format, *, fused: bool) -> Work:
        """The same by torch, with images and filters in a layout."""
        x, w = (tensor.contiguous(memory_format=layout) for tensor in (self.x, self.w))
        if fused:
            return lambda: torch.relu(functional.conv2d(x, w, self.bias, **self.where))
        return lambda: functional.conv2d(x, w, **self.where)

    def one_call(self) -> Work:
        """The same by cuDNN's own fused kernel, which torch calls where it is asked by name."""
        args = [[side, side] for side in (self.layer.stride, self.layer.padding, 1)]
        return lambda: torch.cudnn_convolution_relu(self.x, self.w, self.bias, *args, self.layer.groups)

    def one_call_peer(self) -> dict[str, Work]:
        """`one_call` by its name in the record; none where cuDNN has no such kernel, and then the reason is printed."""
        call = self.one_call()
        try:
            call()
        except Exception as error:
            print(f"  {self.shape} without cuDNN fused: {type(error).__name__}: {str(error).splitlines()[0][:120]}")
            return {}
        return {"cuDNN fused": call}

    def peers(self, *, fused: bool) -> dict[str, Work]:
        """The library's ways, by their names in the record."""
        both = {name: self.library(layout, fused=fused) for name, layout in LIBRARY.items()}
        return both | (self.one_call_peer() if fused else {})

    @cached_property
    def exact(self) -> torch.Tensor:
        """The result in float32, without bias."""
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=False):
            return functional.conv2d(self.x.float(), self.w.float(), **self.where)

    @cached_property
    def library_error(self) -> float:
        """Relative error of cuDNN's result."""
        theirs = self.library(LAST, fused=False)()
        return float((theirs.float() - self.exact).norm() / self.exact.norm())

    def check(self, found: torch.Tensor, *, fused: bool, what: str) -> None:
        """Raise `ArithmeticError` if a result has a hole, or is further from float32 than twice the library's."""
        exact = (self.exact + self.bias.float()[:, None, None]).relu_() if fused else self.exact
        error = (found.float() - exact).abs()
        relative = float(error.norm() / exact.norm())
        # rounding to bf16's 8 bits: half a unit of the last is 2^-9 of the value
        most = float((error / exact.abs().clamp(min=float(exact.square().mean().sqrt()))).max())
        if not (relative <= 2 * self.library_error + 1e-4 and most <= 2**-7):
            raise ArithmeticError(
                f"{what}: error {relative:.1e}, cuDNN's {self.library_error:.1e}; one element is off by {most:.1e}"
            )


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the fastest kernel on every layer, alone and with bias and ReLU; the routes; a depthwise layer; the host."""
    prepare()
    if (ceilings.device.capability or (0, 0)) < fast_module().NEEDS:
        return
    for layer in resnet_layers():
        case = Case(layer)
        plan = case.fast.plan_of(layer, ceilings.device)
        for fused in (False, True):
            call = case.ours(plan, fused=fused)
            case.check(call(), fused=fused, what=f"{layer}, {plan}")
            name = "fast convolution + bias + ReLU" if fused else "fast convolution"
            yield product_row(name, tile_of(plan), case, call, case.peers(fused=fused), ceilings)
    yield from routes(ceilings)
    yield depthwise(ceilings)
    yield host()


def tile_of(plan: Any) -> str:
    """Filters, pixels and step of a plan, as in the record."""
    return f"{plan.filters}x{plan.pixels}x{plan.step}"


def product_row(name: str, variant: str, case: Case, call: Work, peers: dict[str, Work], ceilings: Ceilings) -> Row:
    """Measure one row in TFLOP/s."""
    roof = ceilings.product_roof(FORMAT).m_as("TFLOP/s")
    how = {"work": case.tflop, "ceiling": roof, "rate_unit": "TFLOP/s", "graph": True}
    return row("lab", name, variant, case.shape, FORMAT, call=call, peers=peers, **how)


def bandwidth_row(
    name: str, variant: str, case: Case, call: Work, peers: dict[str, Work], moved: int, ceilings: Ceilings
) -> Row:
    """Measure one row in GB/s."""
    roof = ceilings.bandwidth("copy").m_as("GB/s")
    how = {"work": moved / 1e9, "ceiling": roof, "rate_unit": "GB/s", "graph": True}
    return row("lab", name, variant, case.shape, FORMAT, call=call, peers=peers, **how)


def routes(ceilings: Ceilings) -> Iterator[Row]:
    """Time a layer by a copy of its windows and a product, each alone and one after the other, and by one kernel.

    The images that are copied already have their border of zeros, and it is not counted in the bytes moved.
    """
    case = Case(fast_module().Layer(*ROUTES_LAYER))
    layer = case.layer
    view, windows = window_copy(case)
    matrix = windows.view(case.x.dtype).view(layer.pixels, -1)
    filters = case.w.permute(0, 2, 3, 1).reshape(layer.k, -1)
    result = torch.empty(layer.pixels, layer.k, dtype=case.x.dtype, device=case.x.device)

    def copy() -> torch.Tensor:
        return windows.copy_(view)

    def product() -> torch.Tensor:
        return torch.mm(matrix, filters.T, out=result)

    def both() -> torch.Tensor:
        copy()
        return product()

    plan = case.fast.plan_of(layer, ceilings.device)
    ours = case.ours(plan, fused=False)
    found = both().view(layer.n, layer.p, layer.q, layer.k).permute(0, 3, 1, 2)
    case.check(found, fused=False, what="copy, then product")
    case.check(ours(), fused=False, what=f"{layer}, {plan}")
    one_kernel = case.peers(fused=False)
    name = "convolution routes"
    yield bandwidth_row(name, "copy of the windows", case, copy, {}, case.x.nbytes + windows.nbytes, ceilings)
    yield product_row(name, "product with the copy", case, product, {}, ceilings)
    yield product_row(name, "copy, then product", case, both, {**one_kernel, "fast convolution": ours}, ceilings)
    yield product_row(name, "one kernel", case, ours, one_kernel, ceilings)


def window_copy(case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """The windows of images with a border as a view, and room for a copy, both in `PIECE`s."""
    layer = case.layer
    border = (0, 0, layer.padding, layer.padding, layer.padding, layer.padding)
    images = functional.pad(case.x.permute(0, 2, 3, 1), border).contiguous().view(PIECE)
    image, line, pixel, one = images.stride()
    shape = (layer.n, layer.p, layer.q, layer.r, layer.s, images.shape[3])
    strides = (image, layer.stride * line, layer.stride * pixel, line, pixel, one)
    return images.as_strided(shape, strides), torch.empty(shape, dtype=PIECE, device=images.device)


def depthwise(ceilings: Ceilings) -> Row:
    """Time a layer with one filter per channel: cuDNN in both layouts, and our kernel, which makes products of it."""
    case = Case(fast_module().Layer(*DEPTHWISE_LAYER))
    plan = case.fast.plan_of(case.layer, ceilings.device)
    ours = case.ours(plan, fused=False)
    case.check(ours(), fused=False, what=f"{case.layer}, {plan}")
    peers = {"cuDNN channels first": case.library(FIRST, fused=False), "fast convolution": ours}
    call = case.library(LAST, fused=False)
    moved = case.x.nbytes + case.w.nbytes + call().nbytes
    return bandwidth_row("depthwise convolution", "cuDNN", case, call, peers, moved, ceilings)


def host() -> Row:
    """Time a call of the fastest convolution, and of cuDNN's by torch, on the host."""
    case = Case(fast_module().Layer(*HOST_LAYER))
    call, peers = partial(case.fast.convolve, case.x, case.w, **case.where), {"cuDNN": case.library(LAST, fused=False)}
    return row(
        "lab", "fast convolution, host", "launch alone", case.shape, FORMAT, call=call, peers=peers, on_gpu=False
    )


def prepare() -> None:
    """Let cuDNN measure its algorithms and choose, and keep float32 in full, for comparisons."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False


def compile_plan(job: tuple[tuple[int, ...], tuple[Any, ...], bool]) -> None:
    """Launch a plan once, which leaves its kernel in Triton's cache on disk."""
    fast = fast_module()
    layer, plan, fused = fast.Layer(*job[0]), fast.Plan(*job[1]), job[2]
    try:
        Case(layer).ours(plan, fused=fused)()
        torch.cuda.synchronize()
    except Exception as error:
        print(f"{layer}, {plan}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)


def compile_all(pool: Any, jobs: list[tuple[Any, Any, bool]]) -> None:
    """Compile plans in several processes."""
    plain = [(astuple(layer), astuple(plan), fused) for layer, plan, fused in jobs]
    pool.map(compile_plan, sorted(plain, key=lambda job: (job[1], job[0])), chunksize=4)


def tried(case: Any, plans: list[Any]) -> dict[Any, float]:
    """Seconds of each plan that runs and is right."""
    found = {}
    for plan in plans:
        try:
            call = case.ours(plan, fused=False)
            case.check(call(), fused=False, what=str(plan))
            found[plan] = time_kernel(call, graph=True, budget_s=0.02).median_s
        except Exception as error:
            print(f"  {case.shape} {plan}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
            torch.cuda.synchronize()
    return found


def ratio(ours: Work, library: Work) -> float:
    """How many times as fast as the library."""
    return time_pair(ours, library, graph=True, batch_s=BATCH_S, rounds=3).ratio


def short(plan: Any) -> str:
    """A plan in few letters."""
    kind = "" if plan.copies else "g"
    return f"{plan.filters}x{plan.pixels}w{plan.num_warps}s{plan.num_stages}{'p' if plan.persistent else ''}{kind}"


def main() -> None:
    """Measure all plans on all layers."""
    parser = argparse.ArgumentParser(description="Measure every plan of the fastest convolution on ResNet-50's layers.")
    parser.add_argument("--json", type=Path, help="write all times to this file")
    parser.add_argument("--processes", type=int, default=min(14, os.cpu_count() or 1), help="that compile")
    given = parser.parse_args()
    prepare()
    begin, device, fast = time.perf_counter(), detect_device(), fast_module()
    layers = resnet_layers()
    print(f"{device.name}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {len(layers)} layers")
    written: list[dict[str, Any]] = []
    lines = []
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        jobs = [(layer, plan, False) for layer in layers for plan in fast.candidates(layer, device)]
        compile_all(pool, jobs)
        print(f"{len(jobs)} plans compiled after {time.perf_counter() - begin:.0f} s; best plans, us:", flush=True)
        best = {}
        for layer in layers:
            case = Case(layer)
            times = tried(case, fast.candidates(layer, device))
            order = sorted(times, key=times.__getitem__)
            best[layer] = order[0]
            rule = fast.plan_of(layer, device)
            shown = "  ".join(f"{short(plan)} {times[plan] * 1e6:.1f}" for plan in order[:6])
            name = f"{layer.c}->{layer.k} @{layer.h} {layer.r}x{layer.s}/{layer.stride}"
            chosen = f"{short(rule)} {times.get(rule, math.nan) * 1e6:.1f}"
            print(f"{name:22} {shown} | rule {chosen}", flush=True)
            written.append({"layer": astuple(layer), "us": {short(plan): times[plan] * 1e6 for plan in order}})
        compile_all(pool, [(layer, plan, True) for layer, plan in best.items()])
    print(
        f"after {time.perf_counter() - begin:.0f} s; times as fast as cuDNN (last, first), with bias and ReLU ", end=""
    )
    print("(last, first, cuDNN's one call):", flush=True)
    for layer, plan in best.items():
        case = Case(layer)
        alone, fused = case.ours(plan, fused=False), case.ours(plan, fused=True)
        case.check(fused(), fused=True, what=f"{layer}, {plan}")
        ratios = [ratio(alone, case.library(layout, fused=False)) for layout in (LAST, FIRST)]
        ratios += [ratio(fused, case.library(layout, fused=True)) for layout in (LAST, FIRST)]
        try:
            ratios.append(ratio(fused, case.one_call()))
        except Exception as error:
            print(f"  without cuDNN's one call: {type(error).__name__}: {str(error).splitlines()[0][:120]}")
            ratios.append(math.nan)
        seconds = time_kernel(alone, graph=True, budget_s=0.02).median_s
        name = f"{layer.c}->{layer.k} @{layer.h} {layer.r}x{layer.s}/{layer.stride}"
        rate = f"{seconds * 1e6:7.1f} us {case.tflop / seconds:5.0f} TFLOP/s"
        print(f"{name:22} {rate}  {'  '.join(f'{one:.2f}' for one in ratios)}  {short(plan)}", flush=True)
        lines.append(ratios)
    columns = list(zip(*lines, strict=True))
    means = [statistics.geometric_mean(column) if not any(map(math.isnan, column)) else math.nan for column in columns]
    print(f"geometric means  {'  '.join(f'{one:.3f}' for one in means)}")
    print(f"least            {'  '.join(f'{min(column):.3f}' for column in columns)}")
    print(f"{time.perf_counter() - begin:.0f} s in all")
    if given.json:
        for entry, ratios in zip(written, lines, strict=True):
            entry["ratios"] = ratios
        given.json.write_text(json.dumps(written))


if __name__ == "__main__":
    main()
