"""Run the chapters' suite on the CPU with small tensors, and print its rows as JSON.

A process of its own with TRITON_INTERPRET=1, which must be set before Triton is imported.
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch

from mlsys.bench.run import measure
from mlsys.bench.suite import MEASUREMENTS, Setting, Sizes, memory
from mlsys.measure import timing
from mlsys.measure.ceilings import Ceilings
from mlsys.measure.device import Device
from mlsys.measure.roofs import RoofSizes
from mlsys.units import ureg

SMALL = Sizes(
    copy_bytes=2**16,
    working_sets=(2**12, 2**14),
    stride_elements=4096,
    strides=(1, 4),
    chased_bytes=(2**10, 2**12),
    chase_steps=40,
    waiting_programs=(1, 2),
    waiting_bytes=2**14,
    link_bytes=(4096,),
    add_elements=(1024,),
    matmul=(64,),
    aligned=(62, 64),
    density_side=128,
    density_block=16,
    densities=(0.5,),
    sparse_matmul=(64,),
    dense_side=64,
    batches=(1, 4),
    images=(1, 2),
    image_side=32,
    decoders=("small",),
    context=4,
    prompts=(1,),
    sequences=(1, 2),
    layout_images=(2, 4, 8, 8),
    layout_filters=4,
    rows=64,
    columns=(32,),
    chain_columns=32,
    norm_columns=24,
    norm_warps=(4, 1),
    table_bytes=2**14,
    bags=16,
    bag_size=4,
    row_elements=(8,),
    launch_elements=(1, 16),
    host_add_elements=(1024,),
    host_array_bytes=2**16,
    roofs=RoofSizes(triad_elements=2048, programs=1, mma_steps=4, fma_steps=16),
)
FAST, QUICK = ureg("1e6 TFLOP/s"), ureg("1e6 GB/s")
CEILINGS = Ceilings(
    Device("cpu", "a CPU"),
    QUICK,
    {"fp32": FAST, "fp16": FAST},
    dict.fromkeys(("read", "add", "fill", "triad", "cached copy"), QUICK),
    {"fp32": FAST},
    host_link=dict.fromkeys(("pinned to device", "pinned to host"), QUICK),
)


def main(result):
    torch.set_num_threads(1)
    torch.compile = lambda function, dynamic: function  # its compiler takes seconds per kernel
    timing.WARMUP_S = 0.001
    memory.cpu_cache_bytes = lambda: 2**14
    memory.bandwidths = lambda budget_s, array_bytes: {"read": QUICK}  # numpy on small arrays is slower than torch
    setting = Setting(CEILINGS, "cpu", SMALL, budget_s=0.001)
    found = measure({name: lambda _, rows=rows: rows(setting) for name, rows in MEASUREMENTS.items()}, CEILINGS)
    rows = [dataclasses.asdict(row) for row in found.rows]
    Path(result).write_text(json.dumps({"rows": rows, "left_out": found.left_out}))


if __name__ == "__main__":
    main(sys.argv[1])
