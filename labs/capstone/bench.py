"""What the capstone measures for the record: a token of GPT-2 124M at batch 1, and its rivals.

The model has GPT-2's shapes and random weights in bf16; 512 tokens are in the cache, the newest one included. Every row
computes the same token again and again: the scores of all tokens, and the best one. Kernels of 250 MB of weights find
none of them in the cache of an H200, so nothing has to be emptied.

| name | variants | shape |
|---|---|---|
| decode GPT-2 124M | five kernels a layer, persistent kernel | layers, width, vocabulary, tokens |
| decode GPT-2 124M, launched by the host | eager, five kernels a layer | the same |
| decode GPT-2 124M without weights | five kernels a layer, persistent kernel | kernels or barriers, width |
| grid barrier | programs of the persistent kernel | programs, barriers |

The first row's peers are torch's operations one after the other and after torch.compile, all replayed from CUDA graphs.
Without weights, as many kernels pass a row on to each other and compute next to nothing: that is what a token loses
between them. One kernel without weights has a barrier wherever one of these kernels ends. The persistent kernel of a
token has none: its programs wait as often, but each only for the numbers that it needs. So it should lose no more than
the barriers cost. `python labs/capstone/bench.py` prints the times of one GPU beside what `mlsys` predicts, the bytes
and that loss, and with `--plans` those of other rows, shares and warps.
"""

import argparse
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.nn import functional

from mlsys import models
from mlsys.bench.lab import lab_module
from mlsys.bench.row import row
from mlsys.formulas import token_latency
from mlsys.measure.ceilings import Ceilings, measure_ceilings
from mlsys.measure.device import detect_device
from mlsys.measure.records import Row
from mlsys.measure.timing import time_kernel
from mlsys.models.decoder import EPSILON, Decoder, random_gpt2

SIZE = "small"
TOKENS = 512
DTYPE, FORMAT = torch.bfloat16, "bf16"
BARRIERS = 100
"""Barriers of one launch of the row that measures them."""

NAME = "decode GPT-2 124M"
BY_HOST = f"{NAME}, launched by the host"
WEIGHTLESS = f"{NAME} without weights"
FUSED, PERSISTENT, EAGER, COMPILED = "five kernels a layer", "persistent kernel", "eager", "torch.compile"

Work = Callable[[], object]


def fast_module() -> ModuleType:
    """`fast.py` beside this file."""
    return lab_module(Path(__file__).with_name("fast.py"))


def library_step(model: Decoder, cache: torch.Tensor, token: int, position: int) -> torch.Tensor:
    """Return the best next token by torch's operations, one after the other; the cache gets the newest keys and values.

    The cache is (layers, 2, heads, positions, numbers of a head), as torch's attention reads it fastest.
    """
    width, heads = model.width, model.heads
    x = (model.tokens[token] + model.positions[position])[None]
    for layer in range(model.layers):
        normed = functional.layer_norm(x, (width,), model.norm1_gain[layer], model.norm1_shift[layer], EPSILON)
        qkv = functional.linear(normed, model.qkv_weight[layer], model.qkv_bias[layer]).view(3, heads, 1, -1)
        cache[layer, :, :, position] = qkv[1:, :, 0]
        keys, values = cache[layer, :, None, :, : position + 1]
        seen = functional.scaled_dot_product_attention(qkv[None, 0], keys, values).reshape(1, width)
        x = x + functional.linear(seen, model.projection_weight[layer], model.projection_bias[layer])
        normed = functional.layer_norm(x, (width,), model.norm2_gain[layer], model.norm2_shift[layer], EPSILON)
        hidden = functional.linear(normed, model.up_weight[layer], model.up_bias[layer])
        hidden = functional.gelu(hidden, approximate="tanh")
        x = x + functional.linear(hidden, model.down_weight[layer], model.down_bias[layer])
    normed = functional.layer_norm(x, (width,), model.norm_gain, model.norm_shift, EPSILON)
    return functional.linear(normed, model.tokens).argmax()


class Case:
    """The model, a full cache, and the ways to compute the same token."""

    def __init__(self, plan: Any = None, *, model: Decoder | None = None, tokens: int = TOKENS) -> None:
        self.fast = fast_module()
        self.model = model if model is not None else random_gpt2(SIZE, device="cuda").to(DTYPE)
        self.tokens = tokens
        self.decoder = self.fast.FastDecoder(self.model, plan)
        generator = torch.Generator(self.model.tokens.device).manual_seed(1)
        self.decoder.cache.normal_(0, 0.5, generator=generator)
        # layers, positions, key or value, width -> layers, key or value, heads, positions, numbers
        parts = self.decoder.cache.unflatten(3, (self.model.heads, -1))
        self.library_cache = parts.permute(0, 2, 3, 1, 4).contiguous()
        self.decoder.begin([1] * tokens)
        self.decoder.length.fill_(tokens)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Layers, width, vocabulary, tokens."""
        return self.model.layers, self.model.width, self.model.vocabulary, self.tokens

    @property
    def ours(self) -> dict[str, Work]:
        """Our ways, by their names in the record."""
        return {
            FUSED: lambda: self.decoder.step(hold=True),
            PERSISTENT: lambda: self.decoder.persistent_step(hold=True),
        }

    @property
    def eager(self) -> Work:
        """Torch's operations."""
        return lambda: library_step(self.model, self.library_cache, 1, self.tokens - 1)

    @property
    def compiled(self) -> Work:
        """The same after torch.compile."""
        step = torch.compile(library_step, fullgraph=True)
        return lambda: step(self.model, self.library_cache, 1, self.tokens - 1)

    def check(self, ways: Collection[str] = (FUSED, PERSISTENT)) -> None:
        """Raise `ArithmeticError` if one of these ways gives other scores than the reference in float32."""
        cache = self.decoder.cache.float()
        right = self.model.to(torch.float32).step(1, self.tokens - 1, cache)
        steps = {FUSED: self.decoder.step, PERSISTENT: self.decoder.persistent_step}
        for name in ways:
            step = steps[name]
            self.decoder.scores.fill_(float("nan"))
            step(scores=True, hold=True)
            error = float((self.decoder.scores - right).abs().max() / right.std())
            best = self.decoder.next_token()
            # sums in float32 of the same 16-bit weights; the cache's newest entry is rounded to 16 bits
            if not error <= 0.02 or best != int(self.decoder.scores.argmax()):
                raise ArithmeticError(f"{name}: a score is off by {error:.1e} of their deviation, best token {best}")

    @property
    def moved(self) -> float:
        """Bytes of a step by `mlsys`: all weights and the cache (0.6% more than are read: the table of positions)."""
        step = models.gpt2(SIZE, seq=self.tokens, decode=True, dtype=FORMAT)
        return float((step.weight_bytes + step.kv_cache_bytes(self.tokens)).m_as("byte"))

    @property
    def weightless(self) -> dict[str, Work]:
        """The same ways without weights."""
        return {FUSED: self.decoder.weightless_step, PERSISTENT: self.decoder.weightless_persistent_step}

    def barriers(self) -> Work:
        """A launch with nothing but barriers."""
        ours = self.decoder

        def call() -> None:
            ours.count.zero_()
            self.fast.barriers_kernel[(ours.programs,)](ours.count, BARRIERS, **ours.persistent_options)

        return call


def predicted(case: Case, ceilings: Ceilings, weightless_s: float) -> float:
    """Return the seconds of a token by `mlsys`: its bytes at copy bandwidth, and its time without them.

    The sum assumes that memory is idle during every wait. Where weights arrive while programs wait, a token takes less,
    but never less than its bytes do.
    """
    return float(token_latency(case.moved, ceilings.copy_bandwidth).m_as("second")) + weightless_s


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time a token by five kernels a layer and by one kernel, beside torch; then what the host costs, and a barrier."""
    if (ceilings.device.capability or (0, 0)) < fast_module().NEEDS or not ceilings.device.has_bf16:
        return
    case = Case()
    case.check()
    roof = ceilings.bandwidth("copy").m_as("GB/s")
    how = {"work": case.moved / 1e9, "ceiling": roof, "rate_unit": "GB/s"}
    peers = {EAGER: case.eager, COMPILED: case.compiled}
    for name, call in case.ours.items():
        yield row("lab", NAME, name, case.shape, FORMAT, call=call, peers=peers, graph=True, **how)
    for name, call in {EAGER: case.eager, FUSED: case.ours[FUSED]}.items():
        yield row("lab", BY_HOST, name, case.shape, FORMAT, call=call, graph=False, **how)
    shape = (case.decoder.kernels, case.model.width)
    for name, call in case.weightless.items():
        yield row("lab", WEIGHTLESS, name, shape, "fp32", call=call, graph=True)
    programs = case.decoder.programs
    shape = (programs, BARRIERS)
    yield row("lab", "grid barrier", f"{programs} programs", shape, "int32", call=case.barriers(), graph=True)


def plans(fast: ModuleType) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Plans to try, and the ways that they change: each kernel's rows, and warps, apart from the others."""
    usual = fast.Plan()
    yield usual, (FUSED, PERSISTENT)
    yield replace(usual, overlap=True), (FUSED,)
    choices = {
        "qkv": (8, 16, 32),
        "project": (4, 8, 16),
        "up": (8, 16, 32),
        "down": (2, 4, 8),
        "head": (8, 16, 32),
        "piece": (128, 256),
        "long_piece": (256, 512, 1024),
        "splits": (2, 4, 8),
        "keys": (64, 128, 256),
        "num_warps": (4, 8, 16),
        "persistent_warps": (8, 16),
        "persistent_head": (8, 16, 32),
        "persistent_ahead": (0, 32, 128),
    }
    for name, values in choices.items():
        for value in values:
            if value == getattr(usual, name):
                continue
            changed = replace(usual, **{name: value})
            if not name.startswith("persistent"):
                yield replace(changed, overlap=True), (FUSED,)
            if name.startswith("persistent") or name in ("splits", "keys", "piece", "long_piece"):
                yield changed, (PERSISTENT,)


def main() -> None:
    """Measure a token, and print it beside its prediction."""
    parser = argparse.ArgumentParser(description="Measure a token of GPT-2 124M beside what mlsys predicts.")
    parser.add_argument("--plans", action="store_true", help="also other rows, shares and warps")
    given = parser.parse_args()
    ceilings, fast = measure_ceilings(), fast_module()
    fast.check_device(detect_device(), DTYPE)
    case = Case()
    case.check()
    barrier_s = time_kernel(case.barriers(), graph=True).median_s / BARRIERS
    launch_s = float(ceilings.launch_latency["graph"].m_as("second"))
    print(f"{ceilings.device.name}: a kernel in a graph {launch_s * 1e6:.2f} us, a barrier {barrier_s * 1e6:.2f} us")
    due = {}
    for name, call in case.weightless.items():
        weightless_s = time_kernel(call, graph=True).median_s
        print(f"{name} without weights: {weightless_s * 1e6:.1f} us")
        due[name] = predicted(case, ceilings, weightless_s)
    for name, call in case.ours.items():
        seconds = time_kernel(call, graph=True).median_s
        print(f"{name}: {seconds * 1e6:.1f} us, predicted {due[name] * 1e6:.1f}, {seconds / due[name]:.2f} times")
    for name, call in {EAGER: case.eager, COMPILED: case.compiled}.items():
        print(f"{name} in a graph: {time_kernel(call, graph=True).median_s * 1e6:.1f} us")
    print(f"{EAGER}: {time_kernel(case.eager).median_s * 1e6:.1f} us")
    for plan, ways in plans(fast) if given.plans else ():
        other = Case(plan, model=case.model)
        other.check(ways)
        times = {name: time_kernel(other.ours[name], graph=True, budget_s=0.1).median_s for name in ways}
        print(plan, "  ".join(f"{name} {seconds * 1e6:.1f} us" for name, seconds in times.items()), flush=True)


if __name__ == "__main__":
    main()
