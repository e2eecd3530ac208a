"""What the lab on memory access measures for the record: transposes, sums over channels in two layouts, gathers.

All are replayed from CUDA graphs, so the host's launches do not count, for the peers either.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from mlsys.bench.lab import LabBench
from mlsys.bench.suite.setting import Setting
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.records import Row

SHAPES = ((8192, 8192), (12000, 4800), (8191, 8191))
"""Two races of the lab, and a matrix whose rows do not begin at multiples of 16 bytes."""

FLAT = {"ROWS": 1, "COLS": 1024, "num_warps": 4}
"""Tile of the naive kernel: it loads along a row and stores down a column."""

IMAGES, CHANNELS, PIXELS = 64, 64, 112 * 112
BLOCKS = {"256 pixels": {"PIXELS": 256, "CHANNELS": 8}, "64 channels": {"PIXELS": 32, "CHANNELS": 64}}
"""Blocks of 2048 numbers, long in pixels and long in channels."""

TABLE_BYTES, BAGS, BAG_SIZE, DIMS = 2**30, 65536, 32, (16, 64, 256)
FP32_BYTES = 4


def rows(names: dict[str, Any], ceilings: Ceilings) -> Iterator[Row]:
    """Time the lab's kernels on random data, beside a copy of the same bytes and the same work by PyTorch."""
    bench = AccessBench(names, Setting(ceilings))
    for shape in SHAPES:
        yield bench.transpose(shape)
    yield bench.padded_transpose((8191, 8191))
    for layout in ("NCHW", "NHWC"):
        for about, block in BLOCKS.items():
            yield bench.channel_sum(layout, about, block)
    for dim in DIMS:
        yield bench.embedding_bag(dim)


class AccessBench(LabBench):
    """The measurements."""

    def transpose(self, shape: tuple[int, int]) -> Row:
        """A transpose by tiles, beside the naive one, PyTorch's, and a copy of the same bytes."""
        return self._transposed("tiled", shape, self.setting.randn(*shape))

    def padded_transpose(self, shape: tuple[int, int]) -> Row:
        """A transpose between matrices whose rows are padded to whole sectors."""
        stride = self.names["padded_stride"](shape[1], FP32_BYTES)
        return self._transposed("padded", shape, self.setting.randn(shape[0], stride)[:, : shape[1]])

    def _transposed(self, variant: str, shape: tuple[int, int], x: torch.Tensor) -> Row:
        stride = self.names["padded_stride"](shape[0], FP32_BYTES) if variant == "padded" else shape[0]

        def result() -> torch.Tensor:
            return torch.empty(shape[1], stride, device=x.device)[:, : shape[0]]

        launched = partial(self.launched, "launch_transpose")
        call = launched("transpose_kernel", self.names["tile_config"](shape, "fp32"), result(), x)
        others = {
            "naive": launched("transpose_kernel", FLAT, result(), x),
            "torch": lambda: x.T.contiguous(),
        }
        copied = torch.empty_like(x.contiguous())
        peers = self.setting.peers(call, others) | {"copy": lambda: copied.copy_(x)}
        moved = 2 * shape[0] * shape[1] * FP32_BYTES
        return self.bandwidth_row(
            "access transpose", variant, shape, "fp32", call=call, peers=peers, moved=moved, mix="copy"
        )

    def channel_sum(self, layout: str, about: str, block: dict[str, int]) -> Row:
        """A sum over the channels of each pixel, beside PyTorch's."""
        numbers = self.setting.randn(IMAGES * PIXELS, CHANNELS, dtype=torch.float16)
        x = self.names["images_in"](layout, numbers, IMAGES, CHANNELS)
        y = torch.empty(x.shape[:2], device=x.device)
        call = self.launched("launch_channel_sum", "channel_sum_kernel", block | {"num_warps": 4}, y, x)
        peers = self.setting.peers(call, {"torch": lambda: x.sum(2, dtype=torch.float32)})
        shape = (IMAGES, CHANNELS, PIXELS)
        variant, how = f"{layout}, {about}", {"call": call, "peers": peers, "moved": x.nbytes, "mix": "read"}
        return self.bandwidth_row("access channel sum", variant, shape, "fp16", **how)

    def embedding_bag(self, dim: int) -> Row:
        """A sum of the rows of each bag, beside PyTorch's."""
        table = self.setting.randn(TABLE_BYTES // (FP32_BYTES * dim), dim)
        index = torch.randint(table.shape[0], (BAGS * BAG_SIZE,), device=table.device)
        offset = torch.arange(0, BAGS * BAG_SIZE + 1, BAG_SIZE, device=table.device)
        out = torch.empty(BAGS, dim, device=table.device)
        constants = {"BLOCK": dim, "num_warps": max(1, dim // 128)}
        call = self.launched("launch_embedding_bag", "embedding_bag_kernel", constants, out, table, index, offset)
        others = {"torch": partial(functional.embedding_bag, index.reshape(BAGS, BAG_SIZE), table, mode="sum")}
        moved = index.numel() * dim * FP32_BYTES + index.nbytes + offset.nbytes + out.nbytes
        peers = self.setting.peers(call, others)
        shape = (BAGS, BAG_SIZE, dim)
        how = {"call": call, "peers": peers, "moved": moved, "mix": "read"}
        return self.bandwidth_row("access embedding", "bag", shape, "fp32", **how)
