"""Layouts: a convolution in both, and what it takes to change from one to the other."""

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn import functional

from mlsys import ops
from mlsys.bench.suite.memory import sets_beyond
from mlsys.bench.suite.setting import Setting
from mlsys.measure.gpu_ceilings import PRECISIONS
from mlsys.measure.records import Row
from mlsys.measure.timing import rotate

DTYPE = "fp16"
FORMATS = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}


def convolution(setting: Setting) -> Iterator[Row]:
    """Time a 3 x 3 convolution with images and weights in NCHW, and with both in NHWC.

    The library tries its algorithms before it is timed, and may choose others in the other layout.
    """
    (n, c, h, w), c_out = setting.sizes.layout_images, setting.sizes.layout_filters
    op = ops.conv2d(n=n, c_in=c, h=h, w=w, c_out=c_out, kernel=3, padding=1, dtype=DTYPE)
    ceiling = setting.ceilings.product_roof(DTYPE).m_as("TFLOP/s")
    images = setting.randn(n, c, h, w, dtype=PRECISIONS[DTYPE])
    weights = (9 * c) ** -0.5 * setting.randn(c_out, c, 3, 3, dtype=PRECISIONS[DTYPE])
    calls = {
        layout: partial(functional.conv2d, images.to(memory_format=order), weights.to(memory_format=order), padding=1)
        for layout, order in FORMATS.items()
    }
    how = {"work": op.flop_count / 1e12, "ceiling": ceiling, "rate_unit": "TFLOP/s"}
    for layout, call in calls.items():
        with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, benchmark=True):
            others = {other: calls[other] for other in calls if other != layout}
            peers = setting.peers(call, others)
            yield setting.row("convolution", layout, (n, c, h, w), DTYPE, call=call, peers=peers, **how)


def layout_change(setting: Setting) -> Iterator[Row]:
    """Time images copied within NCHW, from NCHW to NHWC, and back; they change with each call, so none is cached."""
    n, c, h, w = setting.sizes.layout_images
    pair = 2 * 2 * n * c * h * w
    sets = sets_beyond(pair, setting.ceilings.device.cache_bytes)
    for variant, (source, target) in {
        "copy": ("NCHW", "NCHW"),
        "to NHWC": ("NCHW", "NHWC"),
        "to NCHW": ("NHWC", "NCHW"),
    }.items():
        images = [
            tuple(
                setting.randn(n, c, h, w, dtype=PRECISIONS[DTYPE]).to(memory_format=FORMATS[layout])
                for layout in (source, target)
            )
            for _ in range(sets)
        ]
        how = {
            "call": rotate(lambda x, out: out.copy_(x), images),
            "moved": pair,
            "mix": setting.ceilings.roof_mix,
            "graph": True,
        }
        yield setting.bandwidth_row("layout change", variant, (n, c, h, w), DTYPE, **how)
