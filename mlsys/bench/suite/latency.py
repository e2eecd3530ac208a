"""Latency of the memory: what one load takes, and how many must be under way to fill the time."""

from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec

import torch

from mlsys.bench.suite.setting import Setting
from mlsys.measure.records import Row

INDEX_BYTES = 4


def pointer_chase(setting: Setting) -> Iterator[Row]:
    """Time loads of which each says where the next is, on rings of growing size.

    A ring visits the lines of its memory in an order drawn at random, one place in each line of 128 bytes. A call goes
    on where the last one ended; so a ring larger than the caches never finds a line again. Time is all there is: a
    step takes `median_s` over the steps.
    """
    if find_spec("triton") is None:
        return
    from mlsys.measure.triton_kernels import chase

    steps = setting.sizes.chase_steps
    for size in setting.sizes.chased_bytes:
        ring, order = ring_of(size, setting.device)
        place = order[:1].clone()
        chase(ring, place, steps)
        if place != order[steps % len(order)]:
            raise ArithmeticError(f"{steps} steps along a ring of {len(order)} lines ended at {place.item()}")
        how = {"call": partial(chase, ring, place, steps)}
        yield setting.row("pointer chase", "one thread", (size, steps), "int32", **how)


def ring_of(size: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a ring through all lines of `size` bytes: the first element of each line holds the index of another's.

    Returns the ring, and its places in their order.
    """
    from mlsys.measure.triton_kernels import CHASE_STRIDE

    ring = torch.zeros(size // INDEX_BYTES, dtype=torch.int32, device=device)
    order = CHASE_STRIDE * torch.randperm(len(ring) // CHASE_STRIDE, device=device).int()
    ring[order] = order.roll(-1)
    return ring, order


def bytes_in_flight(setting: Setting) -> Iterator[Row]:
    """Time reads by ever more programs, each of which waits for what it asked for before it asks for more."""
    if find_spec("triton") is None:
        return
    from mlsys.measure.triton_kernels import WAITING_BLOCK, waiting_reads

    asked = WAITING_BLOCK * INDEX_BYTES
    for programs in setting.sizes.waiting_programs:
        steps = setting.sizes.waiting_bytes // (programs * asked)
        x = torch.zeros(steps * programs * WAITING_BLOCK, dtype=torch.int32, device=setting.device)
        places = torch.empty(programs, dtype=torch.int32, device=setting.device)
        call = partial(waiting_reads, x, places)
        call()
        ends = len(x) + WAITING_BLOCK * torch.arange(1, programs + 1, device=setting.device) - 1
        if not torch.equal(places.long(), ends):
            raise ArithmeticError(f"{programs} programs did not read all {len(x)} elements")
        how = {"call": call, "moved": x.nbytes, "mix": "read"}
        yield setting.bandwidth_row("bytes in flight", "read", (programs, asked), "int32", **how)
