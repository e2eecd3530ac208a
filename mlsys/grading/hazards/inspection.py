"""Inspect a kernel: run it in Triton's interpreter and find what the interpreter hides."""

import math
import random
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Number
from typing import TYPE_CHECKING, Any

from mlsys.errors import InvalidValue, UnknownName, a_kind
from mlsys.grading.checks.tolerances import is_close
from mlsys.grading.hazards.accesses import Accesses, TooManyAccesses
from mlsys.grading.hazards.finding import Finding
from mlsys.grading.hazards.memory import ATOMIC, WRITE, View, lay_out, place_of
from mlsys.grading.verdicts import OutOfBounds, WrongAnswer

if TYPE_CHECKING:
    import torch

OPTIONS = frozenset("num_warps num_stages num_ctas maxnreg launch_cooperative_grid launch_pdl".split())
"""Options that a launch gives to the compiler, beside the kernel's own arguments; they change no result."""

MORE_ACCESSES = 10
"""How many times the accesses of the first run another order may make before it is stopped."""

MOST_TOLD = 3
"""Most findings in the message of one verdict."""

Grid = Sequence[int] | Callable[[Mapping[str, Any]], Sequence[int]]


def inspect(
    kernel: Any = None, grid: Grid | None = None, *args: Any, unwritten: Collection[str] = (), **constants: Any
) -> list[Finding]:
    """Run a kernel in Triton's interpreter, and return what is wrong with its accesses.

    The kernel runs on copies of its tensors: the caller's stay as they are. `mlsys.grading.hazards.finding.KINDS` lists
    the kinds of findings. Each wrong line is reported once for each tensor and kind. If the kernel itself raises an
    exception, an `InterpreterError` of Triton's says its line.

    Args:
        kernel: a `@triton.jit` function, made with or without TRITON_INTERPRET.
        grid: count of programs in each dimension, or a function from the arguments to that, as in a launch.
        args: the kernel's arguments in order: tensors on the CPU, and numbers.
        unwritten: names of arguments that hold no values before the launch, such as outputs from `torch.empty`. A
            tensor of floats in which every element is NaN is one too.
        constants: further arguments by name, and options of the compiler, which change nothing here.

    Returns:
        The findings in the order in which they were seen; an empty list for a right kernel.

    Raises:
        InvalidValue: an argument that a launch could not use, with what to pass.
    """
    _check_kernel(kernel)
    return _inspect(kernel, grid, args, constants, frozenset(unwritten))[0]


class Inspected:
    """A kernel whose launches are inspected: they change its tensors as usual, and raise what is wrong.

    Args:
        kernel: a `@triton.jit` function that Triton interprets.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """Launch on a grid, as a kernel does.

        Raises (from the launch):
            OutOfBounds: an access is outside its tensor.
            WrongAnswer: the result is right by chance at best: any other kind of finding.
        """

        def launch(*args: Any, **kwargs: Any) -> None:
            findings, run = _inspect(self._kernel, grid, args, kwargs, frozenset())
            for name, view in run.views.items():
                if WRITE in view.region.last or ATOMIC in view.region.last:
                    run.tensors[name].untyped_storage().copy_(view.tensor.untyped_storage())
            raise_findings(findings)

        return launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class _InspectedFirst:
    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        def launch(*args: Any, **constants: Any) -> None:
            plain = self._kernel._kernel if isinstance(self._kernel, Inspected) else self._kernel
            for finding in inspect(plain, grid, *on_host(args), **constants):
                raise WrongAnswer(str(finding))
            self._kernel[grid](*args, **constants)

        return launch


def on_host(args: Sequence[Any]) -> list[Any]:
    """Return arguments of a launch with their tensors in host memory, laid out as they are on their device.

    `tensor.cpu()` would pack a slice, while the strides that the kernel gets as numbers stay those of the whole tensor.
    Tensors that share memory go on sharing it.
    """
    import torch

    memory: dict[int, torch.UntypedStorage] = {}

    def copied(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        host = memory.setdefault(storage.data_ptr(), storage.cpu())
        view = tensor.storage_offset(), tensor.size(), tensor.stride()
        return torch.empty(0, dtype=tensor.dtype).set_(host, *view)

    return [copied(one) if torch.is_tensor(one) else one for one in args]


def inspect_first(kernel: Any) -> Any:
    """Return a kernel that is inspected on every device, on copies in host memory, before each launch.

    So a kernel that is right only by luck, such as one with a race, fails in a small test on a GPU too. Its launch
    raises `WrongAnswer` with the first finding.

    Args:
        kernel: a `@triton.jit` function, as a launch function of a lab gets it.
    """
    return _InspectedFirst(kernel)


def in_kernels_words(error: Exception) -> Exception | None:
    """Return what Triton's interpreter raised in a launch as an exception of the kernel's line; None for any other."""
    if "triton.runtime.interpreter" not in sys.modules:
        return None
    from triton.runtime.errors import InterpreterError

    from mlsys.grading.hazards.interpret import KernelError, kernel_error

    raw = isinstance(error, InterpreterError) and not isinstance(error, KernelError)
    return kernel_error(error) if raw else None


def inspected(kernel: Any) -> Any:
    """Return a kernel whose launches are inspected where Triton interprets it; any other kernel as it is."""
    if "triton.runtime.interpreter" not in sys.modules:
        return kernel
    from triton.runtime.interpreter import InterpretedFunction

    return Inspected(kernel) if isinstance(kernel, InterpretedFunction) else kernel


def raise_findings(findings: Sequence[Finding]) -> None:
    """Raise the verdict of a kernel with these findings, if there are any.

    Raises:
        OutOfBounds: one is an access outside its tensor.
        WrongAnswer: there are others.
    """
    if not findings:
        return
    outside = [one for one in findings if one.kind == "out of bounds"]
    first = [*outside, *(one for one in findings if one not in outside)][:MOST_TOLD]
    told = "\n  ".join(one.message if one in outside else f"{one.kind}: {one.message}" for one in first)
    raise OutOfBounds(told) if outside else WrongAnswer(told)


def _inspect(
    kernel: Any, grid: Grid | None, args: tuple[Any, ...], constants: Mapping[str, Any], unwritten: frozenset[str]
) -> "tuple[list[Finding], _Run]":
    if grid is None:
        raise InvalidValue("inspect needs the grid of the launch as its second argument, such as (4,) or (4, 2)")
    arguments = _bound(kernel, args, constants)
    tensors = _tensors(arguments)
    shape = _checked_grid(grid, arguments)
    unknown = sorted(unwritten - set(tensors))
    if unknown:
        raise UnknownName.of("tensor in unwritten=", unknown[0], tensors)
    empty = unwritten | {name for name, tensor in tensors.items() if _is_poison(tensor)}
    first = _Run(kernel, arguments, tensors, shape, empty)
    first.run(list(range(math.prod(shape))))
    accesses = first.accesses
    accesses.finish()
    findings = list(accesses.findings.values())
    if accesses.meets or accesses.uses_old_values or len(accesses.atomics) > 1:
        findings += _order(first)
    return findings, first


class _Run:
    """One launch on copies of the tensors."""

    def __init__(
        self,
        kernel: Any,
        arguments: Mapping[str, Any],
        tensors: "Mapping[str, torch.Tensor]",
        grid: tuple[int, ...],
        unwritten: frozenset[str],
        most: int | None = None,
    ) -> None:
        from mlsys.grading.hazards.interpret import current_line

        self.kernel, self.arguments, self.tensors, self.grid = kernel, arguments, tensors, grid
        self.views = lay_out(dict(tensors))
        self.accesses = Accesses(self.views, grid, unwritten, current_line, most)

    def run(self, order: list[int]) -> None:
        """Run the programs."""
        from mlsys.grading.hazards.builder import CheckingBuilder
        from mlsys.grading.hazards.interpret import pointer_to, run_programs

        given = dict(self.arguments)
        for name, view in self.views.items():
            described = hasattr(given[name], "base") and not hasattr(given[name], "data_ptr")  # by a tensor descriptor
            given[name] = replace(given[name], base=view.tensor) if described else pointer_to(view.tensor, view)
        run_programs(self.kernel, given, CheckingBuilder(self.accesses), self.grid, order)

    def again(self) -> "_Run":
        """Return a fresh launch of the same kernel, which is stopped if it makes many more accesses than this one."""
        most = MORE_ACCESSES * len(self.accesses.events.programs) + 1_000
        return _Run(self.kernel, self.arguments, self.tensors, self.grid, frozenset(), most)


def _order(first: _Run) -> list[Finding]:
    """Run the programs in other orders, and return where the result differs."""
    total = math.prod(first.grid)
    shuffled = random.Random(total).sample(range(total), total)
    for said, order in (("in the reverse order", list(range(total))[::-1]), ("in a shuffled order", shuffled)):
        other = first.again()
        try:
            other.run(order)
        except TooManyAccesses:
            return [_endless(first, said)]
        for name, view in first.views.items():
            where = _first_difference(view, other.views[name], exact=not first.accesses.atomics)
            if where is not None:
                return [_differs(first, view, other.views[name], where, said)]
    return []


def _first_difference(view: View, other: View, *, exact: bool) -> tuple[int, ...] | None:
    """Return the first element that differs in two runs; sums of floats by atomics may differ by their rounding."""
    import torch

    one, two = view.tensor, other.tensor
    differs = ~((one == two) | ((one != one) & (two != two)))
    if not exact and one.is_floating_point() and differs.any():
        kept = torch.where(one.isfinite() & two.isfinite(), one, 0)
        if is_close(torch.where(one.isfinite() & two.isfinite(), two, 0), kept):
            differs &= ~(one.isfinite() & two.isfinite())
    if not differs.any():
        return None
    return tuple(int(index) for index in differs.nonzero()[0])


def _differs(first: _Run, view: View, other: View, index: tuple[int, ...], said: str) -> Finding:
    accesses = first.accesses
    offset = sum(place * step for place, step in zip(index, view.tensor.stride(), strict=True))
    place = place_of(accesses.events, accesses.last_writer(view, view.start + offset * view.itemsize), first.grid)
    element = f"{view.name}[{', '.join(map(str, index))}]"
    stored, there = _apart(view.tensor[index].item(), other.tensor[index].item())
    message = (
        f"{place}: stores {stored} at {element}, but {there} is there "
        f"when the programs run {said}. A GPU runs programs in any order, many at a time: let no program depend on "
        "what another one leaves."
    )
    return Finding("order dependent", place.line, place.program, message, None, view.name)


def _apart(one: float, other: float) -> tuple[str, str]:
    """Write two numbers with as many digits as tell them apart.

    >>> _apart(0.5, 2), _apart(1.0000001, 1.0000002)
    (('0.5', '2'), ('1.0000001', '1.0000002'))
    """
    short = f"{one:.6g}", f"{other:.6g}"
    return short if short[0] != short[1] else (f"{one:.9g}", f"{other:.9g}")


def _endless(first: _Run, said: str) -> Finding:
    events = first.accesses.events
    place = place_of(events, len(events.programs) - 1, first.grid)
    message = (
        f"{place}: the launch does not end when its programs run {said}, because one waits for another that has not "
        "begun. Let no program wait for one with a higher index, or draw the index from an atomic counter."
    )
    return Finding("order dependent", place.line, place.program, message)


def _check_kernel(kernel: Any) -> None:
    if kernel is None:
        raise InvalidValue("inspect needs a kernel: inspect(kernel, grid, *args, **constants)")
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    if isinstance(kernel, (InterpretedFunction, JITFunction)):
        return
    inner = getattr(kernel, "fn", None)
    if isinstance(inner, (InterpretedFunction, JITFunction)) or hasattr(inner, "fn"):
        raise InvalidValue(
            f"the kernel is {a_kind(kernel)}: pass the @triton.jit function inside it, `.fn`, and the "
            "constants of one configuration"
        )
    name = getattr(kernel, "__name__", repr(kernel))
    raise InvalidValue(
        f"{name} is {a_kind(kernel)}, not a kernel: write @triton.jit above its definition, and pass it "
        "without a grid in brackets"
    )


def _bound(kernel: Any, args: tuple[Any, ...], constants: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of each parameter."""
    from inspect import signature

    parameters = signature(kernel.fn).parameters
    name = kernel.fn.__name__
    given = {key: value for key, value in constants.items() if key in parameters or key not in OPTIONS}
    if len(args) > len(parameters):
        raise InvalidValue(f"{name} has {len(parameters)} arguments, got {len(args)}: leave out the last ones")
    for key in given:
        if key not in parameters:
            raise UnknownName.of(f"argument of {name}", key, parameters)
    bound = dict(zip(parameters, args, strict=False))
    for key, value in given.items():
        if key in bound:
            raise InvalidValue(f"{key} of {name} is given twice, in its place and by name: leave out one")
        bound[key] = value
    for key, parameter in parameters.items():
        if key not in bound:
            if parameter.default is parameter.empty:
                raise InvalidValue(f"{name} needs a value for {key}: pass it as in a launch, such as {key}=...")
            bound[key] = parameter.default
    return {key: bound[key] for key in parameters}


def _tensors(arguments: Mapping[str, Any]) -> "dict[str, torch.Tensor]":
    """Return the arguments that are tensors.

    Raises:
        InvalidValue: an argument is neither a tensor on the CPU nor a number.
    """
    import torch
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction
    from triton.tools.tensor_descriptor import TensorDescriptor

    plain = (Number, str, type(None), tuple, tl.constexpr, tl.dtype, torch.dtype)
    tensors = {}
    for name, argument in arguments.items():
        value = argument.base if isinstance(argument, TensorDescriptor) else argument
        if isinstance(value, torch.Tensor):
            if value.device.type != "cpu":
                raise InvalidValue(f"{name} is on {value.device}: the interpreter reads host memory; pass {name}.cpu()")
            if value.layout != torch.strided or value.is_complex() or value.is_quantized:
                kind = "complex" if value.is_complex() else str(value.layout).removeprefix("torch.")
                raise InvalidValue(f"{name} is a {kind} tensor: pass a dense tensor of numbers")
            tensors[name] = value.detach()
        elif isinstance(value, tuple) and any(isinstance(part, torch.Tensor) for part in value):
            raise InvalidValue(f"{name} is a tuple with tensors: give each tensor an argument of its own")
        elif not isinstance(value, (*plain, InterpretedFunction, JITFunction)):
            shown = repr(value)[:60]
            raise InvalidValue(
                f"{name} is {shown}, {a_kind(value)}: pass a torch tensor or a number, such as "
                "torch.as_tensor(...) of an array"
            )
    return tensors


def _checked_grid(grid: Any, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the grid as a tuple of ints."""
    sizes = grid(dict(arguments)) if callable(grid) else grid
    if not isinstance(sizes, (tuple, list)) or not 1 <= len(sizes) <= 3:
        raise InvalidValue(f"the grid is {sizes!r}: pass a tuple of one to three counts of programs, such as (4,)")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise InvalidValue(f"the grid {tuple(sizes)!r} has {size!r}: each part is a count of programs, such as 4")
    return tuple(sizes)


def _is_poison(tensor: "torch.Tensor") -> bool:
    """Return whether every element is NaN, as in an output that is filled before a launch to show what is missing."""
    return tensor.is_floating_point() and tensor.numel() > 0 and bool(tensor.isnan().all())
