"""What the lab on attention measures for the record: the fast kernels beside torch's own, and the ladder.

The peers are the two kernels that torch's `scaled_dot_product_attention` chooses between, FlashAttention-2 and cuDNN's,
each asked for by name. Calls of the forward pass are replayed from CUDA graphs, as in the lab's race. Those of the
backward pass are not, because autograd leaves the stream that a graph is captured from; they take milliseconds, so the
time of their launches does not count. FLOPs are those of the two products, five in the backward pass, and under a
causal mask those of visible pairs only.

| name | variants | shape |
|---|---|---|
| fast attention | the plan | batch, heads, heads of keys, tokens, numbers of a head |
| fast attention backward | the plan | the same |
| specialized attention | the plan | the same |
| attention ladder | the title of a rung | heads, tokens, numbers of a head |

With a causal mask, the first three names end in ", causal". The ladder is causal.

`python labs/attention/bench.py` measures every plan of every kernel, on one GPU, and prints which is best.
"""

import argparse
import importlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from mlsys.bench.lab import lab_module
from mlsys.bench.row import row
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device, detect_device
from mlsys.measure.records import Row
from mlsys.measure.timing import time_kernel

FORMAT = "bf16"
DTYPE = torch.bfloat16
TOKENS = 65_536
"""Queries of all sequences together: a longer text means a smaller batch."""

WIDTH = 2048
"""Heads times numbers of a head."""

LENGTHS = (1000, 2048, 4096, 16_384)
HEAD_SIZES = (64, 128)
BACKWARD_LENGTHS = (2048, 4096)
GROUPED = (4, 32, 8, 4096, 128)
"""Batch, heads, heads of keys, tokens and numbers of the case with shared keys."""

PEERS = {"FlashAttention-2": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}
BACKWARD_PRODUCTS = 2.5
"""Products of the backward pass, of which there are five, over those of the forward pass, of which there are two."""

Work = Callable[[], Any]


def fast_module() -> ModuleType:
    """`fast.py` beside this file."""
    return lab_module(Path(__file__).with_name("fast.py"))


def specialized_module() -> ModuleType:
    """`specialized.py` beside this file."""
    return lab_module(Path(__file__).with_name("specialized.py"))


def harness_module() -> ModuleType:
    """What the rungs of the ladder share."""
    folder = str(Path(__file__).with_name("ladder"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("attention_harness")


def cases() -> list[Any]:
    """The sizes of the forward pass."""
    sizes = fast_module().Sizes
    found = [
        sizes(TOKENS // n, WIDTH // d, WIDTH // d, n, n, d, causal)
        for n, d, causal in product(LENGTHS, HEAD_SIZES, (False, True))
    ]
    batch, heads, kv_heads, n, d = GROUPED
    return [*found, sizes(batch, heads, kv_heads, n, n, d, True)]


class Case:
    """Random tensors of some sizes, and the ways to compute attention and its gradients."""

    def __init__(self, sizes: Any, device: str = "cuda", dtype: torch.dtype = DTYPE) -> None:
        self.sizes, self.fast, self.scale = sizes, fast_module(), sizes.d**-0.5
        sides = ((sizes.heads, sizes.n), (sizes.kv_heads, sizes.m), (sizes.kv_heads, sizes.m), (sizes.heads, sizes.n))
        shapes = [(sizes.batch, *side, sizes.d) for side in sides]
        self.q, self.k, self.v, self.dy = (torch.randn(shape, device=device).to(dtype) for shape in shapes)
        self.out = torch.full_like(self.q, float("nan"))
        self.logsum = torch.full(self.q.shape[:3], float("nan"), device=device)
        self.found = tuple(torch.full_like(tensor, float("nan")) for tensor in (self.q, self.k, self.v))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes as the record has them."""
        one = self.sizes
        return (one.batch, one.heads, one.kv_heads, one.n, one.d)

    @property
    def tflop(self) -> float:
        """Work of the forward products."""
        return float(self.sizes.flops) / 1e12

    def ours(self, plan: Any) -> Work:
        """A call of the forward kernel."""
        device = detect_device()

        def call() -> torch.Tensor:
            given = (self.q, self.k, self.v, self.out, self.logsum)
            self.fast.launch_forward(*given, self.sizes, self.scale, plan, device)
            return self.out

        return call

    def specialized(self, plan: Any, device: Device) -> Work:
        """A call of the forward kernel whose warps have tasks of their own."""
        flat = [tensor.flatten(0, 1) for tensor in (self.q, self.k, self.v, self.out, self.logsum)]
        section = self.sizes.section(device.cache_bytes)

        def call() -> torch.Tensor:
            specialized_module().launch(*flat, plan, self.sizes.causal, section, device.multiprocessors)
            return self.out

        return call

    def our_gradients(self, plan: Any) -> Work:
        """A call of the backward kernels, after one of the forward kernel."""
        device = detect_device()
        self.ours(self.fast.plan_of(self.fast.PLANS, self.sizes, device))()

        def call() -> tuple[torch.Tensor, ...]:
            given = (self.q, self.k, self.v, self.out, self.logsum, self.dy, self.found)
            self.fast.launch_backward(*given, self.sizes, self.scale, device, plan)
            return self.found

        return call

    def torch_attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Attention as torch's user calls it."""
        shared = self.sizes.heads != self.sizes.kv_heads
        fused = torch.nn.functional.scaled_dot_product_attention
        return fused(q, k, v, is_causal=self.sizes.causal, enable_gqa=shared)

    def library(self, backend: SDPBackend) -> Work:
        """A call of one of torch's kernels."""

        def call() -> torch.Tensor:
            with sdpa_kernel(backend):
                return self.torch_attention(self.q, self.k, self.v)

        return call

    def library_gradients(self, backend: SDPBackend) -> Work:
        """A call of the gradients of one of torch's kernels, after its forward pass."""
        leaves = [tensor.detach().requires_grad_() for tensor in (self.q, self.k, self.v)]
        with sdpa_kernel(backend):
            y = self.torch_attention(*leaves)
        return lambda: torch.autograd.grad(y, leaves, self.dy, retain_graph=True)

    def peers(self, make: Callable[[SDPBackend], Work]) -> dict[str, Work]:
        """Torch's kernels by their names in the record; one that does not run here is left out, with a reason."""
        found = {}
        for name, backend in PEERS.items():
            try:
                call = make(backend)
                call()
                found[name] = call
            except RuntimeError as error:
                print(f"  {self.shape} without {name}: {str(error).splitlines()[0][:120]}")
        return found

    def exact(self) -> list[torch.Tensor]:
        """Result and gradients of the last sequence in float64, one group of heads at a time."""
        one = self.sizes
        group = one.heads // one.kv_heads
        later = torch.ones(one.n, one.m, dtype=torch.bool, device=self.q.device).triu(1) if one.causal else None
        wholes: list[list[torch.Tensor]] = []
        for shared in range(min(one.kv_heads, CHECKED_HEADS)):
            heads = slice(shared * group, (shared + 1) * group)
            q, dy = self.q[-1, heads].double().requires_grad_(), self.dy[-1, heads].double()
            k, v = self.k[-1, shared].double().requires_grad_(), self.v[-1, shared].double().requires_grad_()
            scores = q @ k.T * self.scale
            y = (scores if later is None else scores.masked_fill(later, -torch.inf)).softmax(2) @ v
            dq, dk, dv = torch.autograd.grad(y, (q, k, v), dy)
            wholes.append([y.detach(), dq, dk[None], dv[None]])
        return [torch.cat(parts) for parts in zip(*wholes, strict=True)]

    def check(self, found: list[torch.Tensor], what: str) -> None:
        """Raise `ArithmeticError` if a result, or result and gradients, have a hole or are far from float64.

        A tensor may be off by `ERROR` in root mean square, and an element by 64 times that.
        """
        for tensor, exact in zip(found, self.exact(), strict=False):
            part = tensor[-1, : exact.shape[0]].double()
            off = float((part - exact).abs().max() / exact.square().mean().sqrt())
            relative = float((part - exact).norm() / exact.norm())
            holes = bool(tensor.isnan().any())
            if holes or not (relative <= ERROR and off <= 64 * ERROR):
                raise ArithmeticError(
                    f"{what}, {self.shape}: relative error {relative:.1e}, one element is off by {off:.1e}"
                    + (", and there are NaNs" if holes else "")
                )


CHECKED_HEADS = 2
"""Heads of keys whose results are compared; every element of the others is looked at for NaN only."""

ERROR = 2**-7
"""Relative error that bf16 shares, gradients of scores and results leave room for: twice the half of its last digit."""


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the fast kernels, forward and backward, and then the ladder."""
    device = ceilings.device
    fast = fast_module()
    if (device.capability or (0, 0)) >= fast.NEEDS:
        for sizes in cases():
            case = Case(sizes)
            plan = fast.plan_of(fast.PLANS, sizes, device)
            call = case.ours(plan)
            if sizes.n <= CHECKED_TOKENS:
                case.check([call()], f"fast attention {plan}")
            yield attention_row("fast attention", str(plan), case, call, case.library, 1.0, ceilings)
            if specialized_module().runs_on(device):
                plan = specialized_module().PLANS[sizes.d]
                call = case.specialized(plan, device)
                case.out.fill_(float("nan"))
                if sizes.n <= CHECKED_TOKENS:
                    case.check([call()], f"specialized attention {plan}")
                yield attention_row("specialized attention", str(plan), case, call, case.library, 1.0, ceilings)
            if sizes.n in BACKWARD_LENGTHS:
                plan = fast.plan_of(fast.BACKWARD_PLANS, sizes, device, keys_rest=True)
                call = case.our_gradients(plan)
                case.check([case.out, *call()], f"fast attention backward {plan}")
                gradients = case.library_gradients
                name = "fast attention backward"
                yield attention_row(name, str(plan), case, call, gradients, BACKWARD_PRODUCTS, ceilings)
    if device.has_triton_tensor_cores:
        yield from ladder_rows(ceilings)


CHECKED_TOKENS = 4096
"""Longest text whose scores in float64 are computed for a comparison."""


def attention_row(
    name: str,
    variant: str,
    case: Case,
    call: Work,
    make: Callable[[SDPBackend], Work],
    factor: float,
    ceilings: Ceilings,
) -> Row:
    """Measure one row in TFLOP/s; `factor` is its work over that of the forward products."""
    roof = ceilings.product_roof(FORMAT).m_as("TFLOP/s")
    how = {"work": factor * case.tflop, "ceiling": roof, "rate_unit": "TFLOP/s", "graph": factor == 1}
    name += ", causal" if case.sizes.causal else ""
    return row("lab", name, variant, case.shape, FORMAT, call=call, peers=case.peers(make), **how)


def ladder_rows(ceilings: Ceilings) -> Iterator[Row]:
    """Time every rung of the ladder that the device can run; one that fails ends alone, and is raised at the end."""
    ladder = harness_module()
    failed = []
    for rung in ladder.rungs():
        try:
            module = ladder.load(rung)
            if (ceilings.device.capability or (0, 0)) < getattr(module, "NEEDS", (0, 0)):
                continue
            for small in ladder.small_shapes():
                ladder.check(module.attend, small)
            ladder.check(module.attend, ladder.SHAPE)
            q, k, v, out = ladder.tensors(*ladder.SHAPE)
            call = partial(module.attend, q, k, v, out)
            roof = ceilings.product_roof("fp16").m_as("TFLOP/s")
            how = {"work": ladder.flops(*ladder.SHAPE) / 1e12, "ceiling": roof, "rate_unit": "TFLOP/s", "graph": True}
            peers = {"torch": partial(ladder.library, q, k, v)}
            yield row(
                "lab", "attention ladder", ladder.title(rung), ladder.SHAPE, "fp16", call=call, peers=peers, **how
            )
        except Exception as error:
            error.add_note(f"in rung {rung}")
            failed.append(error)
    if failed:
        raise ExceptionGroup("rungs of the attention ladder failed", failed)


def tried(case: Case, calls: dict[str, Work], what: str) -> dict[str, float]:
    """Seconds of each plan that runs and is right, the quickest first."""
    found = {}
    for name, call in calls.items():
        try:
            made = call()
            case.check([made] if what == "forward" else [case.out, *made], what)
            found[name] = time_kernel(call, graph=what == "forward", budget_s=0.1).median_s
        except Exception as error:
            print(f"  {case.shape} {name}: {type(error).__name__}: {str(error).splitlines()[0][:160]}", flush=True)
    return dict(sorted(found.items(), key=lambda one: one[1]))


def main() -> None:
    """Measure all plans of all kernels at one length."""
    parser = argparse.ArgumentParser(description="Measure every plan of the fast attention kernels.")
    parser.add_argument("--tokens", type=int, default=4096)
    given = parser.parse_args()
    fast, device = fast_module(), detect_device()
    print(f"{device.name}, torch {torch.__version__}, {given.tokens} tokens; us and TFLOP/s, the rule's plan marked *")
    for d, causal in product(HEAD_SIZES, (False, True)):
        heads = WIDTH // d
        sizes = fast.Sizes(max(1, TOKENS // given.tokens), heads, heads, given.tokens, given.tokens, d, causal)
        case = Case(sizes)
        rule = fast.plan_of(fast.PLANS, sizes, device)
        calls = {str(plan): case.ours(plan) for plan in fast.candidates(fast.PLANS, d)}
        times = tried(case, calls, "forward")
        print_times("forward", case, times, str(rule), 1.0)
        rule = fast.plan_of(fast.BACKWARD_PLANS, sizes, device, keys_rest=True)
        calls = {str(plan): case.our_gradients(plan) for plan in fast.candidates(fast.BACKWARD_PLANS, d)}
        times = tried(case, calls, "backward")
        print_times("backward", case, times, str(rule), BACKWARD_PRODUCTS)


def print_times(what: str, case: Case, times: dict[str, float], rule: str, factor: float) -> None:
    """Print the plans of one kernel, the quickest first."""
    for plan, seconds in times.items():
        rate = factor * case.tflop / seconds
        mask, chosen = "causal " if case.sizes.causal else "", " *" if plan == rule else ""
        print(f"{what:9} {case.shape} {mask}{plan}{chosen}: {seconds * 1e6:.1f}, {rate:.0f}", flush=True)


if __name__ == "__main__":
    main()
