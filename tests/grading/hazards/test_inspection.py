"""`grading.inspect`: each kind of finding, and no finding for a right kernel."""

import inspect as python_inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import hazard_kernels as kernels
from helpers.on_gpu import needs_gpu
from triton.runtime.errors import InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

from mlsys.errors import InvalidValue, UserError
from mlsys.grading import inspect, inspect_first
from mlsys.grading.hazards.finding import KINDS
from mlsys.grading.hazards.inspection import on_host

TESTS = Path(__file__).parents[2]


def x(count=10):
    return torch.linspace(-1, 2, count)


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(shape, dtype=dtype)


def counter():
    return torch.zeros(1, dtype=torch.int32)


def described(tensor):
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), [8, 8])


RIGHT = {
    "add": ((3,), x(), x(), zeros(10), 10, 4),
    "copy": ((3,), torch.ones(3, 20)[:, ::2], zeros(3, 10), 3, 10, 20, 2, 16),
    "copy_by_block_pointers": ((3,), x(), zeros(10), 10, 4),
    "copy_by_descriptor": ((2, 2), described(torch.ones(12, 12)), zeros(12, 12), 12, 12, 8),
    "programs_store_the_same": ((3,), zeros(8), 8),
    "lanes_meet_with_one_value": ((1,), zeros(8), 16),
    "total": ((3,), x(), zeros(1), 10, 4),
    "total_under_a_lock": ((5,), x(), zeros(1), counter(), 10, 2),
    "last_one_adds": ((3,), x(), torch.full((3,), float("nan")), zeros(1), counter(), 10, 4, 4),
    "in_place": ((3,), x(), 10, 4),
    "adds_to_what_is_there": ((3,), x(), zeros(10), 10, 4),
    "reads_what_it_has_written": ((3,), x(), torch.full((10,), float("nan")), 10, 4),
    "replaces_undefined_lanes": ((1,), x(), zeros(1), 10, 16),
    "gathers": ((1,), x(), torch.arange(10).flip(0), zeros(10), 10, 16),
    "mask_of_values": ((1,), x(), zeros(10), 10, 16),
    "softmax_of_rows": ((2,), torch.ones(3, 10), zeros(3, 10), 3, 10, 2, 16),
    "product": ((2, 3), torch.ones(20, 30), torch.ones(30, 40), zeros(20, 40), 20, 40, 30, 16),
    "moves_lanes": ((1,), x(), zeros(10), 10, 16),
    "running_sum": ((1,), x(), zeros(10), 10, 16),
    "calls_functions": ((1,), x(), zeros(1), 10, 16),
    "one_lane": ((10,), x(), zeros(10), 10),
}
WRONG = {
    "loads_past_the_end": (((3,), x(), x(), zeros(10), 10, 4), "out of bounds", (2,), (2,), "x"),
    "stores_past_the_end": (((3,), x(), x(), zeros(10), 10, 4), "out of bounds", (2,), (2,), "out"),
    "programs_store_their_index": (((3,), zeros(8), 8), "conflicting stores", (1,), (0,), "out"),
    "lanes_meet": (((1,), zeros(8), 16), "conflicting stores", (0,), (0,), "out"),
    "total_without_atomics": (((3,), x(), zeros(1), 10, 4), "race", None, None, "out"),
    "clears_then_adds": (((3,), x(12), zeros(1), 4), "race", None, None, "out"),
    "neighbors": (((5,), x(5), zeros(5), 5), "race", None, None, "out"),
    "copy_by_descriptor": (
        ((2, 2), described(torch.ones(12, 12)), zeros(8, 12), 12, 12, 8), "out of bounds", (1, 0), (0, 0), "out",
    ),
    "sums_undefined_lanes": (((1,), x(), zeros(1), 10, 16), "masked lane used", (0,), (10,), "x"),
    "sum_by_block_pointer": (((1,), x(), zeros(1), 10, 16), "masked lane used", (0,), (10,), "x"),
    "stores_undefined_lanes": (((1,), x(), zeros(16), 10, 16), "masked lane used", (0,), (10,), "x"),
    "undefined_condition": (((4,), x(3), zeros(1), 3), "masked lane used", (3,), (0,), "x"),
    "undefined_bound": (((2,), torch.ones(1, dtype=torch.int32), zeros(1), 1), "masked lane used", (1,), (0,), "x"),
    "gathers_undefined": (
        ((1,), x(), torch.arange(10), zeros(10), 10, 16), "masked lane used", (0,), (10,), "index",
    ),
    "running_sum_from_the_end": (((1,), x(), zeros(10), 10, 16), "masked lane used", (0,), (0,), "x"),
    "draws_tickets": (((4,), zeros(4), counter()), "order dependent", (0,), None, "out"),
    "adds_and_takes_the_largest": (((4,), counter()), "order dependent", None, None, "out"),
    "waits_for_its_neighbor": (((3,), torch.zeros(3, dtype=torch.int32)), "order dependent", None, None, None),
}  # fmt: skip


WRONG_AND_RIGHT = RIGHT | {f"{name} ": launch for name, (launch, *_) in WRONG.items()}


def found(name, grid, *args, **more):
    return inspect(getattr(kernels, name.strip()), grid, *args, **more)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_has_no_findings(name):
    assert [str(one) for one in found(name, *RIGHT[name])] == []


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_found_where_it_is_wrong(name):
    launch, kind, program, lane, tensor = WRONG[name]
    findings = {one.kind: one for one in found(name, *launch)}
    one = findings[kind]
    source = Path(kernels.__file__).read_text().splitlines()
    start = source.index(next(line for line in source if line.startswith(f"def {name}(")))
    end = next((i for i in range(start + 1, len(source)) if source[i].startswith("@")), len(source))
    assert start < one.line - 1 < end
    assert program in (None, one.program)
    assert lane is None or one.lane == lane
    assert one.tensor == tensor
    assert f"line {one.line} (`{source[one.line - 1].strip()}`)" in one.message


def test_every_kind_has_a_kernel_that_shows_it():
    assert {kind for _, kind, *_ in WRONG.values()} | {"unwritten read"} == set(KINDS)


@pytest.mark.parametrize(
    ("launch", "part"),
    [
        (((3,), torch.ones(3, 20)[:, ::2], zeros(3, 10), 3, 10, 20, 1, 16), "in the gaps between its strided elements"),
        (((4,), torch.ones(3, 20)[:, ::2], zeros(4, 10), 3, 10, 20, 2, 16), "past its end"),
        (((3,), torch.ones(4, 10)[1:], zeros(3, 10), 3, 10, -10, 1, 16), "10 elements before its start"),
        (((3,), torch.ones(10, 3).T, zeros(3, 10), 3, 10, 10, 3, 16), "past its end"),
    ],
)
def test_what_is_outside_the_view_and_inside_its_storage_is_out_of_bounds(launch, part):
    (one,) = found("copy", *launch)
    assert (one.kind, one.tensor) == ("out of bounds", "x")
    assert part in one.message


def test_the_neighbor_in_memory_is_not_the_tensor():
    both = torch.ones(20)
    (one,) = found("loads_past_the_end", (3,), both[:10], both[10:], zeros(10), 10, 4)
    assert (one.kind, one.tensor) == ("out of bounds", "x")
    assert "1 element past its end, in y" in one.message


def test_an_element_is_unwritten_where_the_caller_says_so_or_the_tensor_is_all_nan():
    empty = torch.empty(10)
    by_name = found("adds_to_what_is_there", (3,), x(), empty.fill_(1), 10, 4, unwritten=["out"])
    by_value = found("adds_to_what_is_there", (3,), x(), empty.fill_(float("nan")), 10, 4)
    for (one,) in (by_name, by_value):
        assert (one.kind, one.program, one.lane, one.tensor) == ("unwritten read", (0,), (0,), "out")
    some = x()
    some[3] = float("nan")  # data may hold NaNs
    assert found("adds_to_what_is_there", (3,), some, zeros(10), 10, 4) == []


def test_a_load_whose_lanes_are_all_masked_off_reads_nothing_unwritten():
    assert found("reads_what_it_has_written", (4,), x(), torch.full((10,), float("nan")), 10, 4) == []


@pytest.mark.parametrize("name", ["add", "stores_past_the_end", "total_without_atomics"])
def test_the_callers_tensors_stay_as_they_are(name):
    grid, *args = RIGHT["add"] if name == "add" else WRONG[name][0]
    before = [one.clone() if torch.is_tensor(one) else one for one in args]
    found(name, grid, *args)
    assert all(torch.equal(one, other) for one, other in zip(before, args, strict=True) if torch.is_tensor(one))


def test_tensors_that_share_memory_share_it_in_the_inspection():
    data = x()
    kinds = {one.kind for one in found("neighbors", (5,), data[1:6], data[:5], 5)}
    assert "race" in kinds


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int64, torch.bool])
def test_every_element_type_is_followed(dtype):
    data = torch.ones(10, dtype=dtype)
    assert found("copy", (1,), data, torch.zeros(10, dtype=dtype), 1, 10, 10, 1, 16) == []
    (one,) = found("copy", (2,), data, torch.zeros(20, dtype=dtype), 1, 10, 10, 1, 16)
    assert one.kind == "out of bounds"


def test_a_grid_may_be_a_function_and_constants_may_be_named():
    assert inspect(kernels.add, lambda meta: (-(-meta["n"] // meta["B"]),), x(), x(), zeros(10), n=10, B=4) == []
    assert inspect(kernels.add, (3,), x(), x(), zeros(10), n=10, B=4, num_warps=8) == []


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "needs a kernel"),
        ((kernels.add,), "needs the grid"),
        ((kernels.not_a_kernel, (1,)), "not_a_kernel is a function, not a kernel"),
        ((kernels.add, 3, *RIGHT["add"][1:]), "the grid is 3: pass a tuple"),
        ((kernels.add, (1.5,), *RIGHT["add"][1:]), "has 1.5"),
        ((kernels.add, (1, 1, 1, 1), *RIGHT["add"][1:]), "one to three counts"),
        ((kernels.add, (3,), x(), x(), zeros(10), 10), "needs a value for B"),
        ((kernels.add, (3,), x(), x(), zeros(10), 10, 4, 5), "has 5 arguments, got 6"),
        ((kernels.add, (3,), x().numpy(), x(), zeros(10), 10, 4), "a ndarray: pass a torch tensor"),
        ((kernels.add, (3,), (x(), x()), x(), zeros(10), 10, 4), "a tuple with tensors: give each"),
        ((kernels.add, (3,), x().to("meta"), x(), zeros(10), 10, 4), "x is on meta: .*pass x.cpu"),
        ((kernels.add, (3,), x().to(torch.complex64), x(), zeros(10), 10, 4), "x is a complex tensor"),
    ],
)
def test_bad_input_is_named_with_what_to_do(arguments, part):
    with pytest.raises(InvalidValue, match=part):
        inspect(*arguments)


def test_an_exception_of_the_kernel_says_its_line_and_a_notebook_shows_no_more():
    with pytest.raises(InterpreterError) as caught:
        inspect(kernels.mixes_shapes, (3,), x(), zeros(10), 10, 4)
    source, first = python_inspect.getsourcelines(kernels.mixes_shapes.fn)
    line = first + next(number for number, text in enumerate(source) if "+ other" in text)
    said = str(caught.value)
    assert said.startswith(
        f"line {line} (`tl.store(out + i, tl.load(x + i, mask=i < n) + other, mask=i < n)`), program 0"
    )
    assert said.endswith("ValueError: Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8")
    assert caught.value._render_traceback_() == [f"ERROR: {said}"]


def test_unknown_names_are_named():
    with pytest.raises(UserError, match="unknown argument of add 'BLOCK'"):
        inspect(kernels.add, (3,), x(), x(), zeros(10), 10, BLOCK=4)
    with pytest.raises(UserError, match="unknown tensor in unwritten= 'outt': did you mean 'out'"):
        inspect(kernels.add, (3,), x(), x(), zeros(10), 10, 4, unwritten=["outt"])


WITHOUT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from grading.hazards.test_inspection import WRONG_AND_RIGHT, found, kernels
from triton.runtime.jit import JITFunction
assert isinstance(kernels.add, JITFunction)
names = set(vars(kernels))
launches = WRONG_AND_RIGHT
print(json.dumps({name: [str(one) for one in found(name, *launch)] for name, launch in launches.items()}))
assert set(vars(kernels)) == names
"""


def test_a_kernel_made_for_the_compiler_is_inspected_likewise():
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", WITHOUT, str(TESTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    launches = WRONG_AND_RIGHT
    here = {name: [str(one) for one in found(name, *launch)] for name, launch in launches.items()}
    assert json.loads(done.stdout) == here


@needs_gpu
@pytest.mark.gpu
def test_a_slice_on_a_gpu_is_inspected_with_its_strides():
    given = torch.ones(3, 20, device="cuda")[:, ::2], torch.zeros(3, 10, device="cuda"), 3, 10, 20, 2
    inspect_first(kernels.copy)[(3,)](*given, B=16)
    assert torch.equal(given[1], given[0])


def test_what_is_inspected_first_keeps_its_strides_and_what_it_shares():
    whole = torch.arange(60.0).reshape(3, 20)
    part, other, count = on_host((whole[1:, 3::2], whole, 7))
    assert torch.equal(part, whole[1:, 3::2])
    assert (part.stride(), part.storage_offset(), count) == ((20, 2), 23, 7)
    assert part.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
