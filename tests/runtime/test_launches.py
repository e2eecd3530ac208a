"""Launches that are repeated: Triton's own launcher, with the function in C replaced by a list of its arguments."""

import gc
import threading
import time
import weakref
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import triton.runtime
from triton.backends.nvidia import driver
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.runtime import launches
from mlsys.runtime.launches import remembered

OWN_CALL = driver.CudaLauncher.__call__


@pytest.fixture(autouse=True)
def stream(monkeypatch):
    """The current stream, on a GPU that is not here."""
    now = SimpleNamespace(stream=7, device=0)
    active = SimpleNamespace(get_current_stream=lambda device: now.stream, get_current_device=lambda: now.device)
    monkeypatch.setattr(triton.runtime, "driver", SimpleNamespace(active=active))
    monkeypatch.setattr(launches, "current_device", lambda: now.device)
    yield now
    assert driver.CudaLauncher.__call__ is OWN_CALL


class Kernel:
    """A compiled kernel without a GPU; `started` is what has reached its function in C."""

    def __init__(self, signature=("*fp32", "*fp32", "i32"), scratch_bytes=0):
        self.started = []
        launcher = self.launcher = object.__new__(driver.CudaLauncher)
        types = dict(enumerate(signature))
        in_c = partial(self.start)  # like a function in C, it has no code of Python
        launcher.launch = driver.wrap_handle_tensordesc(in_c, types, None)
        launcher.num_ctas, launcher.launch_cooperative_grid, launcher.launch_pdl = 1, False, False
        launcher.global_scratch_size, launcher.global_scratch_align = scratch_bytes, 1
        launcher.profile_scratch_size, launcher.profile_scratch_align = 0, 1
        launcher.arg_annotations, launcher.kernel_signature = [], b""

    def start(self, *args):
        self.started.append(args)

    def run(self, grid, *args):
        stream = triton.runtime.driver.active.get_current_stream(0)
        self.launcher(*grid, stream, "function", "packed", None, None, None, *args)

    @property
    def given(self):
        """The kernel's own arguments at each start; Triton 3.7 hands them over as one sequence."""
        return [args[-1] if isinstance(args[-1], (list, tuple)) else args[13:] for args in self.started]


def counted(kernel, calls):
    """A remembered function that notes whether it ran itself."""

    @remembered
    def launch(out, x, n):
        calls.append(n)
        kernel.run((n, 2, 1), out, x, n)

    return launch


def test_the_same_call_starts_the_same_kernel_on_the_stream_that_is_then_current(stream):
    kernel, calls = Kernel(), []
    launch, (out, x) = counted(kernel, calls), torch.empty(2, 8)
    launch(out, x, 5)
    stream.stream = 9
    launch(out, x, 5)
    first, second = kernel.started
    assert calls == [5]
    assert first[:3] == second[:3] == (5, 2, 1)
    assert (first[3], second[3]) == (7, 9)
    assert list(kernel.given[1]) == [out.data_ptr(), x.data_ptr(), 5]


def test_descriptors_are_made_once_and_reach_the_kernel_again():
    kernel, made = Kernel(("tensordesc<fp32[4, 4]>", "i32")), []

    @remembered
    def launch(x):
        made.append(TensorDescriptor.from_tensor(x, [4, 4]))
        kernel.run((1, 1, 1), made[-1], 3)

    x = torch.empty(8, 8)
    launch(x)
    launch(x)
    before, again = map(list, kernel.given)
    assert len(made) == 1
    assert before[0] is x
    assert again == [x.data_ptr(), *before[1:]]
    assert again[1:5] == [8, 8, 8, 1]
    assert again[-1] == 3


def test_several_kernels_of_a_call_start_in_their_order():
    first, second = Kernel(), Kernel()
    second.started = first.started

    @remembered
    def launch(out, x):
        first.run((1, 1, 1), out, x, 1)
        second.run((2, 1, 1), x, out, 2)

    out, x = torch.empty(2, 8)
    for _ in range(3):
        launch(out, x)
    assert [args[0] for args in first.started] == [1, 2] * 3
    assert [list(args)[-1] for args in first.given] == [1, 2] * 3


@dataclass(frozen=True)
class Packed:
    words: torch.Tensor
    scale: float


WHOLE = torch.zeros(8, 8)


@pytest.mark.parametrize(
    "other",
    [
        (WHOLE[1:5, :4], 5),  # address
        (WHOLE[:5, :4], 5),  # shape
        (WHOLE.T[:4, :4], 5),  # strides
        (WHOLE.view(torch.int32)[:4, :4], 5),  # dtype
        (WHOLE[:4, :4], 6),  # a number
        ([WHOLE[:4, :4]], 5),  # a list
        (Packed(WHOLE[:4, :4], 1.0), 5),
        (Packed(WHOLE[:4, :4], 2.0), 5),
        (Packed(WHOLE[:4, :5], 1.0), 5),
    ],
)
def test_a_call_with_other_arguments_is_launched_anew(other):
    kernel, calls = Kernel(), []

    @remembered
    def launch(x, n):
        calls.append((x, n))
        kernel.run((1, 1, 1), WHOLE, WHOLE, n)

    usual = [(WHOLE[:4, :4], 5), (Packed(WHOLE[:4, :4], 3.0), 5)]
    for args in (*usual, other):
        launch(*args)
    assert len(calls) == 3
    for args in (other, *usual):
        launch(*args)
    assert len(calls) == 3
    assert len(kernel.started) == 6


def test_another_current_device_and_keywords_are_other_calls(stream):
    kernel, calls = Kernel(), []
    launch, (out, x) = counted(kernel, calls), torch.empty(2, 8)
    for device in (0, 1, 0, 1):
        stream.device = device
        launch(out, x, n=1)
        launch(out, x, n=2)
    assert calls == [1, 2, 1, 2]


def test_no_tensor_is_kept_alive():
    kernel = Kernel()
    launch = counted(kernel, [])
    holds = remembered(lambda packed: kernel.run((1, 1, 1), packed.words, packed.words, 1))
    out, x = torch.empty(8), torch.empty(8)
    launch(out, x, 1)
    holds(Packed(x, 1.0))
    kernel.started.clear()
    gone = [weakref.ref(out), weakref.ref(x)]
    del out, x
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_all_is_forgotten_when_there_is_too_much(monkeypatch):
    monkeypatch.setattr(launches, "MOST_KEPT", 3)
    kernel, calls = Kernel(), []
    launch, (out, x) = counted(kernel, calls), torch.empty(2, 8)
    for n in (1, 2, 3, 1, 4, 4, 1):
        launch(out, x, n)
    assert calls == [1, 2, 3, 4, 1]
    assert [list(args)[-1] for args in kernel.given] == [1, 2, 3, 1, 4, 4, 1]


@pytest.mark.parametrize("where", ["before the launch", "behind it", "in C"])
def test_a_call_that_fails_is_not_remembered(where):
    kernel, calls = Kernel(), []

    @remembered
    def launch(x):
        calls.append(where)
        if where == "before the launch":
            raise ArithmeticError
        kernel.run((1, 1, 1), x, x, 1)
        raise ArithmeticError

    if where == "in C":
        kernel.launcher.launch = lambda *args: 1 / 0
    for _ in range(2):
        with pytest.raises(ArithmeticError):
            launch(WHOLE)
    assert len(calls) == 2


def test_a_function_can_say_that_its_launches_are_not_the_whole_call():
    kernel, calls = Kernel(), []

    @remembered
    def launch(x, repeatable):
        calls.append(repeatable)
        kernel.run((1, 1, 1), x, x, 1)
        return repeatable

    for repeatable in (True, True, False, False):
        launch(WHOLE, repeatable)
    assert calls == [True, False, False]


def test_a_remembered_function_may_be_called_by_one_that_is_not_repeated():
    kernel, calls = Kernel(), []
    inner = counted(kernel, calls)

    @remembered
    def outer(x):
        calls.append("outer")
        inner(x, x, 1)
        return False

    for _ in range(3):
        outer(WHOLE)
    assert calls == ["outer", 1, "outer", "outer"]
    assert len(kernel.started) == 3


@pytest.mark.parametrize("why", ["scratch memory", "another launcher", "no launch"])
def test_what_cannot_be_repeated_is_launched_as_usual(monkeypatch, why):
    kernel, calls = Kernel(scratch_bytes=16 if why == "scratch memory" else 0), []
    allocator = SimpleNamespace(get=lambda: lambda size, align, stream: object())
    monkeypatch.setattr(driver._allocation, "_allocator", allocator)
    if why == "another launcher":
        kernel.launcher.launch = lambda *args: kernel.start(*args)
    if why == "no launch":
        kernel.run = lambda *args: None
    launch = counted(kernel, calls)
    for _ in range(3):
        launch(WHOLE, WHOLE, 1)
    assert calls == [1, 1, 1]
    assert len(kernel.started) == (0 if why == "no launch" else 3)


def test_a_call_of_which_one_launch_cannot_be_repeated_is_not_repeated_in_part():
    plain, other, calls = Kernel(), Kernel(), []
    other.launcher.launch = lambda *args: other.start(*args)

    @remembered
    def launch(x):
        calls.append(x)
        plain.run((1, 1, 1), x, x, 1)
        other.run((1, 1, 1), x, x, 1)

    for _ in range(2):
        launch(WHOLE)
    assert len(calls) == len(plain.started) == len(other.started) == 2


def test_what_another_thread_launches_meanwhile_is_not_kept():
    kernel, other = Kernel(), Kernel()
    out, x = torch.empty(2, 8)

    @remembered
    def launch(out, x):
        thread = threading.Thread(target=lambda: (kernel.run((9, 1, 1), x, x, 9), other.run((9, 1, 1), x, x, 9)))
        kernel.run((1, 1, 1), out, x, 1)
        thread.start()
        thread.join()
        kernel.run((2, 1, 1), out, x, 2)

    launch(out, x)
    assert [args[0] for args in kernel.started] == [1, 9, 2]
    launch(out, x)
    assert [args[0] for args in kernel.started[3:]] == [1, 2]
    assert len(other.started) == 1


def test_threads_record_one_after_the_other():
    kernel, order, begun = Kernel(), [], threading.Event()

    @remembered
    def launch(x, n):
        order.append(n)
        begun.set()
        time.sleep(0.05)  # long enough for the other thread to come in, if it could
        kernel.run((n, 1, 1), x, x, n)
        order.append(n)

    def work(n):
        if n == 2:
            begun.wait()
        launch(WHOLE, n)
        launch(WHOLE, n)

    threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order == [1, 1, 2, 2]
    assert sorted(args[0] for args in kernel.started) == [1, 1, 2, 2]
