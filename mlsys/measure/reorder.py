"""The same values in another order for each call of a lap: new inputs at the price of a copy.

Short runs of elements stay together. Run `i` comes from place `(i step + first) mod count`, where step and first follow
from a key, and step and count share no factor; what does not fill a run stays at the end. To draw random orders, or to
write a lap's inputs through other memory first, would take most of a race's time.
"""

# A kernel's parameters are pointers and constants of Triton's compiler, for which Python has no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"

import hashlib
import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl

_RUN = 32
"""Elements of a run, in tensors of at least 64 runs; in smaller ones, every element moves by itself."""

_BLOCK = 2048
"""Words of 4 bytes that a program of 4 warps moves."""


def put_reordered(values: torch.Tensor, keys: Sequence[str], targets: Sequence[torch.Tensor]) -> None:
    """Write the same values into a target for each key, in an order that follows from the key.

    Args:
        values: one row of them, contiguous.
        keys: as many as targets; the same key gives the same order on the same device.
        targets: tensors of the same size and dtype, on the same device.
    """
    run = _RUN if values.numel() >= 64 * _RUN else 1
    count = values.numel() // run
    if count < 2:
        for target in targets:
            target.copy_(values.view(target.shape))
        return
    steps, firsts = _steps(keys, count)
    if run > 1 and values.is_cuda and all(target.is_contiguous() for target in targets):
        put_with_kernel(values, run, steps, firsts, targets)
        return
    step, first = (torch.tensor(numbers, device=values.device).unsqueeze(1) for numbers in (steps, firsts))
    order = torch.arange(count, device=values.device).mul(step).add_(first).remainder_(count)
    runs = values[: count * run].view(torch.uint8).view(count, -1)
    moved = runs[order].view(len(keys), -1).view(values.dtype)
    rows = torch.cat([moved, values[count * run :].expand(len(keys), -1)], 1)
    for target, row in zip(targets, rows, strict=True):
        target.copy_(row.view(target.shape))


def put_with_kernel(
    values: torch.Tensor, run: int, steps: Sequence[int], firsts: Sequence[int], targets: Sequence[torch.Tensor]
) -> None:
    """Write runs of 4, 8, 16, ... bytes into contiguous targets, by one launch for all of them."""
    count = values.numel() // run
    words = values.element_size() * run // 4
    shift = words.bit_length() - 1  # a division of 64 bits for every word would take longer than to move it
    numbers = torch.tensor([[one.data_ptr() for one in targets], steps, firsts], device=values.device)
    grid = (triton.cdiv(count * words, _BLOCK), len(targets))
    reorder_kernel[grid](values.view(torch.uint8), numbers, len(targets), count, shift, BLOCK=_BLOCK)
    if count * run < values.numel():
        for target in targets:
            target.view(-1)[count * run :] = values[count * run :]


@triton.jit(do_not_specialize=["calls", "count", "shift"])
def reorder_kernel(values_ptr, numbers_ptr, calls, count, shift, BLOCK: tl.constexpr):
    """Write runs of 2^shift words of 4 bytes; `numbers` has the address, the step and the first run of each call."""
    call = tl.program_id(1)
    target_ptr = tl.load(numbers_ptr + call).to(tl.pointer_type(tl.int32))
    step = tl.load(numbers_ptr + calls + call)
    first = tl.load(numbers_ptr + 2 * calls + call)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    run = place >> shift
    source = ((run * step + first) % count << shift) + (place - (run << shift))
    inside = run < count
    word = tl.load(values_ptr.to(tl.pointer_type(tl.int32)) + source, mask=inside)
    tl.store(target_ptr + place, word, mask=inside)


def number_of(text: str) -> int:
    """Return a number of 64 bits that tells nothing about the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _steps(keys: Sequence[str], count: int) -> tuple[list[int], list[int]]:
    """Return the step and the first place of every key."""
    steps, firsts = ([1 + number_of(f"{key}/{what}") % count for key in keys] for what in ("step", "first"))
    while math.gcd(math.prod(steps), count) > 1:
        steps = [step + (math.gcd(step, count) > 1) for step in steps]
    return steps, firsts
