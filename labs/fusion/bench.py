"""What the fusion lab measures for the record: its fused kernels, held against the bandwidth of a copy.

The rows `fast ...` are of `fast.py`, at widths that suit a power of two and at others, with as many numbers each.

All are replayed from CUDA graphs, as in the lab's races: what counts is the work on the GPU, for the peers too.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import triton
from torch.nn import functional

from mlsys import ops
from mlsys.bench.lab import LabBench, lab_module
from mlsys.bench.suite.setting import Setting, Work, compiled, liger
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.gpu_ceilings import PRECISIONS
from mlsys.measure.records import Row

NAMES = {"bias_gelu": "bias + GELU"} | {op: op for op in ("softmax", "layernorm", "rmsnorm", "chain")}
"""Operations as the rows call them."""

Gradients = tuple[torch.Tensor, ...]
"""Those of x, gamma and beta; a compiler drops the work for what a function does not return."""

ROWS = 65536
COLUMNS = (1024, 4096, 8192)
WIDTH = 4096
"""Columns of the element-wise kernels and of the backward pass."""

NUMBERS = 2**28
"""Numbers of the matrix of a row `fast ...`, less than a row of them: its rows are NUMBERS // columns."""

WIDTHS = (1000, 4096, 12288, 16384, 32768, 65536)
"""Columns of the fastest kernels on rows."""

COMPILED = (1000, 4096, 16384, 65536)
"""Those of them at which torch.compile is a peer, whose compiler takes seconds each time."""

RAGGED = (1000,)
"""Columns of the fastest element-wise kernels, at which the lab's own load two bytes at a time."""

FAST = dict.fromkeys(("softmax", "layernorm", "rmsnorm"), WIDTHS) | dict.fromkeys(("chain", "bias_gelu"), RAGGED)
"""Columns of the rows `fast ...` of each operation."""

TILE = {"ROWS": 16, "BLOCK": 256, "num_warps": 4}
"""Tile of the element-wise kernels: 32 numbers per thread; a warp's access is one row of 256 numbers of 2 bytes."""


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the lab's kernels on random normal data, beside eager torch, torch.compile and liger-kernel."""
    bench = FusionBench(names, Setting(ceilings))
    for columns in COLUMNS:
        yield bench.softmax(columns)
    for columns in COLUMNS:
        yield bench.layernorm(columns)
    yield bench.chain()
    yield bench.bias_gelu()
    yield bench.layernorm_backward()
    for op, widths in FAST.items():
        for columns in widths:
            yield bench.fast(op, columns)


def fast_module() -> ModuleType:
    """`fast.py` beside this file."""
    return lab_module(Path(__file__).with_name("fast.py"))


class FusionBench(LabBench):
    """The measurements, in the 16-bit format of the device."""

    def __init__(self, names: dict[str, Any], setting: Setting) -> None:
        super().__init__(names, setting)
        self.dtype = setting.half
        self.torch_dtype = PRECISIONS[self.dtype]

    def randn(self, *shape: int) -> torch.Tensor:
        """Random normal numbers in the 16-bit format of the device."""
        return self.setting.randn(*shape, dtype=self.torch_dtype)

    def row(self, name: str, columns: int, call: Work, others: dict[str, Work], moved: float) -> Row:
        """One row in GB/s of `moved` bytes, after the peers have agreed with `call`; see `Setting.peers`."""
        shape, peers = (ROWS, columns), self.setting.peers(call, others)
        return self.bandwidth_row(name, "fused", shape, self.dtype, call=call, peers=peers, moved=moved, mix="copy")

    def fused(self, launch: str, kernel: str, constants: dict[str, int], x: torch.Tensor, *vectors: Any) -> Work:
        """A call of one of the lab's kernels into an output like its first input."""
        return self.launched(launch, kernel, constants, torch.empty_like(x), x, *vectors)

    def fast(self, op: str, columns: int) -> Row:
        """One of the fastest kernels, by the plan of its rule."""
        fast, device = fast_module(), self.setting.ceilings.device
        shape, epsilon = (max(1, NUMBERS // columns), columns), self.names["EPSILON"]
        x, out = self.randn(*shape), torch.empty(shape, dtype=self.torch_dtype, device=self.setting.device)
        vectors = tuple(self.randn(columns) for _ in fast.VECTORS[op])
        if op == "chain":
            vectors[1].square_()  # a variance
        fast.check(op, x, vectors, out)
        plan = fast.plan_of(op, columns, x.itemsize, fast.vector_of(columns), device)

        def call() -> torch.Tensor:
            fast.launch(op, x, vectors, out, plan, device, epsilon)
            return out

        function, by_liger = self.libraries(op)
        others = {"eager torch": partial(function, x, *vectors)}
        if columns in COMPILED:
            others |= compiled(function, x, *vectors)
        if by_liger:
            others |= liger(by_liger[0], x, *vectors, *by_liger[1:])
        peers = self.setting.peers(call, others)
        moved = (2 * x.numel() + len(vectors) * columns) * x.element_size()
        name, variant = f"fast {NAMES[op]}", type(plan).__name__.lower()
        return self.bandwidth_row(name, variant, shape, self.dtype, call=call, peers=peers, moved=moved, mix="copy")

    def libraries(self, op: str) -> tuple[Callable[..., torch.Tensor], tuple[Any, ...]]:
        """PyTorch's function for an operation, and the name and last arguments of liger-kernel's, if it has one."""
        epsilon = self.names["EPSILON"]
        found: dict[str, tuple[Callable[..., torch.Tensor], tuple[Any, ...]]] = {
            "softmax": (lambda x: torch.softmax(x, 1), ("LigerSoftmaxFunction",)),
            "layernorm": (
                lambda x, gamma, beta: functional.layer_norm(x, gamma.shape, gamma, beta, epsilon),
                ("LigerLayerNormFunction", epsilon),
            ),
            "rmsnorm": (
                lambda x, gamma: functional.rms_norm(x, gamma.shape, gamma, epsilon),
                ("LigerRMSNormFunction", epsilon, 0.0, "llama", False),
            ),
            "chain": (self.unfused_chain, ()),
            "bias_gelu": (lambda x, bias: functional.gelu(x + bias), ()),
        }
        return found[op]

    def unfused_chain(self, x: torch.Tensor, *vectors: torch.Tensor) -> torch.Tensor:
        """ReLU, batch normalization and scale by PyTorch."""
        mean, var, gamma, beta, scale = vectors
        epsilon = self.names["EPSILON"]
        normal = functional.batch_norm(functional.relu(x), mean, var, gamma, beta, training=False, eps=epsilon)
        return normal * scale

    def softmax(self, columns: int) -> Row:
        """Softmax of every row."""
        x = self.randn(ROWS, columns)
        constants = softmax_config(columns)
        others = eager(lambda x: torch.softmax(x, 1), x) | liger("LigerSoftmaxFunction", x)
        moved = ops.softmax(rows=ROWS, cols=columns, dtype=self.dtype).bytes.m_as("byte")
        call = self.fused("launch_softmax", "softmax_kernel", constants, x)
        return self.row("fused softmax", columns, call, others, moved)

    def layernorm(self, columns: int) -> Row:
        """Layer normalization of every row."""
        x, gamma, beta = self.randn(ROWS, columns), self.randn(columns), self.randn(columns)
        epsilon = self.names["EPSILON"]
        constants = self.names["row_config"]((ROWS, columns), self.dtype)
        others = eager(functional.layer_norm, x, (columns,), gamma, beta, epsilon)
        others |= liger("LigerLayerNormFunction", x, gamma, beta, epsilon)
        moved = ops.layernorm(rows=ROWS, cols=columns, dtype=self.dtype).bytes.m_as("byte")
        call = self.fused("launch_layernorm", "layernorm_kernel", constants, x, gamma, beta)
        return self.row("fused layernorm", columns, call, others, moved)

    def chain(self) -> Row:
        """ReLU, batch normalization, scale."""
        x = self.randn(ROWS, WIDTH)
        mean, gamma, beta, scale = (self.randn(WIDTH) for _ in range(4))
        var = self.randn(WIDTH).square()
        call = self.fused("launch_chain", "chain_kernel", TILE, x, mean, var, gamma, beta, scale)
        moved = (2 * x.numel() + 5 * WIDTH) * x.element_size()
        return self.row("fused chain", WIDTH, call, eager(self.unfused_chain, x, mean, var, gamma, beta, scale), moved)

    def bias_gelu(self) -> Row:
        """Bias and GELU."""
        x, bias = self.randn(ROWS, WIDTH), self.randn(WIDTH)
        call = self.fused("launch_bias_gelu", "bias_gelu_kernel", TILE, x, bias)
        others = eager(lambda x, bias: functional.gelu(x + bias), x, bias)
        moved = (2 * x.numel() + WIDTH) * x.element_size()
        return self.row("fused bias + GELU", WIDTH, call, others, moved)

    def layernorm_backward(self) -> Row:
        """The three gradients of layer normalization; compulsory traffic is x and dy in, dx out, and the vectors."""
        x, dy = self.randn(ROWS, WIDTH), self.randn(ROWS, WIDTH)
        gamma, beta = self.randn(WIDTH), self.randn(WIDTH)
        mean = x.float().mean(1)
        r = torch.rsqrt(x.float().var(1, unbiased=False) + self.names["EPSILON"])
        constants = backward_config(WIDTH, self.setting.ceilings.device.multiprocessors)
        dx = torch.empty_like(x)

        def call() -> Gradients:
            sums = self.names["launch_backward"](
                self.names["layernorm_backward_kernel"], constants, dx, x, gamma, mean, r, dy
            ).to(gamma.dtype)
            return dx, sums[0], sums[1]

        def library(dy: torch.Tensor, x: torch.Tensor) -> Gradients:
            return torch.ops.aten.native_layer_norm_backward(
                dy, x, [WIDTH], mean[:, None], r[:, None], gamma, beta, [True, True, True]
            )

        def by_liger() -> Gradients:
            from liger_kernel.ops.layer_norm import layer_norm_backward

            return layer_norm_backward(dy, x, gamma, beta, mean, r)

        others = eager(library, dy, x)
        if liger("LigerLayerNormFunction"):
            others |= {"liger-kernel": by_liger}
        moved = (3 * x.numel() + 3 * WIDTH) * x.element_size() + 2 * ROWS * mean.element_size()
        return self.row("fused layernorm backward", WIDTH, call, others, moved)


def softmax_config(columns: int) -> dict[str, int]:
    """Rows, block and warps for softmax: 16 numbers per thread, and at least 2048 per program.

    The lab's own rule has 32 and two rows, which suits layer normalization: its rows share gamma and beta. Softmax has
    nothing to share, and with twice the warps a row's two reductions wait less (0.996 instead of 0.957 of a copy with
    8192 columns on an H200).
    """
    block = max(16, triton.next_power_of_2(columns))
    tile_rows = max(1, 2048 // block)
    return {"ROWS": tile_rows, "BLOCK": block, "num_warps": min(32, tile_rows * block // 512)}


def backward_config(columns: int, multiprocessors: int) -> dict[str, int]:
    """Programs, block and warps of the backward pass: two programs per multiprocessor, 16 numbers of x per thread.

    Its sums take two registers per number all the time, so a thread holds half of what it holds in the forward pass.
    """
    block = triton.next_power_of_2(columns)
    warps = min(32, max(1, block // 512))
    return {"PROGRAMS": 2 * multiprocessors, "BLOCK": block, "STAGES": 3, "num_warps": warps}


def eager(function: Callable[..., Any], *inputs: Any) -> dict[str, Work]:
    """The peers that PyTorch brings: the function as it stands, and compiled."""
    return {"eager torch": partial(function, *inputs)} | compiled(function, *inputs)
