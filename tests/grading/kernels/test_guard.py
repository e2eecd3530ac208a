import gc
import math
import os
import subprocess
import sys
import weakref

import pytest
import torch

from mlsys.grading import OutOfBounds, guarded
from mlsys.grading.kernels import guard
from mlsys.grading.verdicts import StillRunning, Verdict


def beyond(tensor, offset):
    """A one-element view `offset` elements from the tensor's start, inside or outside it."""
    return tensor.as_strided((1,), (1,), tensor.storage_offset() + offset)


def test_an_honest_function_gives_its_result_and_leaves_its_arguments():
    a, b = torch.randn(5, 7), torch.randn(7, 3).T.contiguous().T
    before = a.clone(), b.clone()

    def multiply(a, b, scale=1.0):
        out = torch.empty(5, 3)
        return torch.mul(a @ b, scale, out=out)

    assert torch.equal(guarded(multiply)(a, b, scale=2.0), 2 * (a @ b))
    assert torch.equal(a, before[0])
    assert torch.equal(b, before[1])


@pytest.mark.parametrize("layout", [(7, 1), (1, 5), (30, 3)])
def test_strides_are_kept(layout):
    x = torch.randn(200).as_strided((5, 7), layout)
    assert guarded(lambda x: x.stride())(x) == layout
    assert torch.equal(guarded(lambda x: x.clone())(x), x)


@pytest.mark.parametrize("offset", [-1, 12, 5000, -5000])
def test_a_write_outside_the_result_is_reported_with_its_reach(offset):
    def store(x):
        out = torch.empty_like(x)
        out.copy_(x)
        beyond(out, offset).fill_(1.0)
        return out

    reach = f"{-offset} before the start" if offset < 0 else f"{offset - 11} past the end"
    with pytest.raises(OutOfBounds, match=reach):
        guarded(store)(torch.ones(3, 4))


def test_a_write_that_repeats_its_neighbor_is_seen_too():
    # Guards of zeros would miss an unmasked x + y, which writes the sum of two guards.
    def add(x, y):
        out = torch.empty(4)
        out.copy_(x + y)
        beyond(out, 4).copy_(beyond(x, 4) + beyond(y, 4))
        return out

    with pytest.raises(OutOfBounds, match="past the end"):
        guarded(add)(torch.ones(4), torch.ones(4))


def test_a_write_into_the_gaps_of_a_strided_input_is_reported():
    with pytest.raises(OutOfBounds, match="argument 0.*gaps"):
        guarded(lambda x: beyond(x, 1).fill_(0.0))(torch.zeros(4, 6)[:, ::2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64, torch.int32, torch.bool])
def test_a_changed_input_is_reported_with_its_index(dtype):
    x = torch.zeros(3, 4, dtype=dtype)

    def change(x):
        x[1, 2] = 1

    with pytest.raises(OutOfBounds, match=r"argument 0.*\(1, 2\)"):
        guarded(change)(x)
    assert not x.any()


def test_a_read_outside_an_input_is_not_a_number():
    x = torch.ones(3, 4)
    assert guarded(lambda x: beyond(x, 12).clone())(x).isnan().all()
    assert guarded(lambda x: beyond(x, -1).clone())(x).isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_fresh_tensor_holds_no_number(dtype):
    assert guarded(lambda: torch.empty(6, 5, dtype=dtype))().isnan().all()
    assert guarded(lambda x: x.new_empty(3))(torch.ones(2, dtype=dtype)).isnan().all()


def test_a_fresh_tensor_starts_where_torch_would_let_it_start():
    """On a CPU at a multiple of 64 bytes; on a GPU of 512, which a kernel's tensor descriptors rely on."""
    fresh = guarded(lambda: [torch.empty(3, dtype=torch.int8) for _ in range(8)] + [torch.zeros(5) for _ in range(8)])
    assert {tensor.data_ptr() % 64 for tensor in fresh()} == {0}


def test_zeros_ones_and_full_hold_what_they_say():
    assert not guarded(lambda: torch.zeros(3, 2))().any()
    assert (guarded(lambda x: torch.ones_like(x))(torch.zeros(2)) == 1).all()
    assert (guarded(lambda: torch.full((3,), 2.5))() == 2.5).all()


def test_what_a_call_allocates_is_freed_when_it_returns_and_not_at_a_collection_later():
    seen = []

    def allocates(x):
        seen.extend(map(weakref.ref, (x, torch.empty(1000), torch.zeros(1000))))
        return 1.0

    gc.disable()
    try:
        assert guarded(allocates)(torch.ones(10)) == 1.0
        assert [one() for one in seen] == [None, None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("count", [0, 1, 4095, 4096, 4097, 10_000])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.bfloat16, torch.float16, torch.float32, torch.int64])
def test_a_poisoned_buffer_holds_no_number_and_repeats_a_drawn_block(count, dtype):
    made = guard._poison(count, torch.empty(0, dtype=dtype))
    assert (made.shape, made.dtype) == ((count,), dtype)
    assert made.untyped_storage().nbytes() == count * made.element_size()
    assert not dtype.is_floating_point or bool(made.isnan().all())
    bits = guard._bits(made)
    assert torch.equal(bits[4096:], bits[: max(count - 4096, 0)] if count <= 8192 else bits[:-4096])
    kinds = {torch.bool: 2, torch.bfloat16: 2**6, torch.float16: 2**9, torch.float32: 2**22}.get(dtype, 63)
    assert count < 4095 or len(bits.unique()) > 0.9 * min(kinds, 4096)


def test_empty_tensors_and_scalars_pass_through():
    assert guarded(lambda x, n: torch.empty(0, n))(torch.empty(0, 3), 4).shape == (0, 4)


KERNEL = """
import torch
import triton
import triton.language as tl

from mlsys import grading


@triton.jit
def helper(x, N: tl.constexpr):
    return x + tl.zeros((N + 1,), tl.float32)


@triton.jit
def add(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(out_ptr + i, {}, mask=i < n)


def f(x):
    out = torch.empty_like(x)
    add[(2,)](x, out, x.numel(), N=4)
    return out


try:
    grading.guarded(f)(torch.ones(8))
except Exception as error:
    print(error._render_traceback_()[0])
"""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "x + nothing",
            "line 18 (`tl.store(out_ptr + i, x + nothing, mask=i < n)`), program 0: NameError: name 'nothing'",
        ),
        (
            "helper(x, N)",
            "line 11 (`return x + tl.zeros((N + 1,), tl.float32)`), program 0: ValueError: Shape element 0",
        ),
    ],
)
def test_what_the_interpreter_raises_comes_with_the_kernels_line_alone(tmp_path, value, said):
    script = tmp_path / "cell.py"
    script.write_text(KERNEL.format(value))
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=True)
    assert f"ERROR: {said}" in done.stdout


class _Event:
    """An event of a GPU that has not come when it is asked so often."""

    asked, due = 0, 3

    def record(self):
        type(self).asked = 0

    def query(self):
        type(self).asked += 1
        return self.asked > self.due


def test_a_kernel_that_ends_is_waited_for_and_one_that_does_not_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", _Event)
    guard.wait_for_kernels()
    assert _Event.asked == 4
    monkeypatch.setattr(_Event, "due", math.inf)
    monkeypatch.setattr(guard, "LONGEST_KERNEL_S", 0.05)
    with pytest.raises(StillRunning, match=r"still running after 0\.05 s on the GPU: look for a loop") as found:
        guard.wait_for_kernels()
    assert Verdict.of(found.value).name == "timed out"
