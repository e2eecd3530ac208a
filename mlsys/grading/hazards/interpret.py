"""Triton's interpreter with a builder of our own, for kernels of processes that interpret and of those that compile."""

import ast
import inspect
import linecache
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.core import is_builtin
from triton.runtime import interpreter
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import FunctionRewriter, InterpretedFunction, ReduceOps, ScanOps, TensorHandle
from triton.runtime.jit import JITFunction

from mlsys.grading.hazards.accesses import TooManyAccesses
from mlsys.grading.hazards.builder import CheckingBuilder, CheckingSemantic
from mlsys.grading.hazards.finding import Place, line_in_cell, listed

TRITON_FOLDER = str(Path(triton.__file__).parent)
_FOLDERS = (TRITON_FOLDER, str(Path(__file__).parent), str(Path(np.__file__).parent))


class KernelError(InterpreterError):  # type: ignore[misc]
    """An exception of a kernel's own code, with the line; a notebook shows it without the interpreter's traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"ERROR: {self}"]


_TO_TENSOR = interpreter.interpreter_semantic  # makes tensors of the numbers that a kernel assigns to its variables


@cache
def _is_kernel(file: str) -> bool:
    return not file.startswith(_FOLDERS)


def current_line() -> tuple[str, int]:
    """Return file and line of the kernel's statement that is being run: the innermost that is not the interpreter's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _is_kernel(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)


def run_programs(
    kernel: Any, arguments: Mapping[str, Any], builder: CheckingBuilder, grid: tuple[int, ...], order: "list[int]"
) -> None:
    """Run the programs of a kernel in a given order.

    Args:
        kernel: what `triton.jit` returned, with or without TRITON_INTERPRET.
        arguments: the values of all its parameters; a tensor that is a view of the launch comes as its pointer.
        builder: carries out the operations.
        grid: count of programs in each dimension.
        order: numbers of programs.

    Raises:
        KernelError: from an exception of the kernel's own.
    """
    wide = (*grid, 1, 1)[:3]
    with _interpreting(builder), np.errstate(all="ignore"):
        function = python_function(kernel)
        constants = constants_of(kernel)
        ready = {
            name: value if name in constants else interpreter._implicit_cvt(value) for name, value in arguments.items()
        }
        builder.set_grid_dim(*wide)
        try:
            for number in order:
                builder.accesses.events.start(number)
                builder.set_grid_idx(*(int(index) for index in np.unravel_index(number, wide)))
                function(**ready)
        except TooManyAccesses:
            raise
        except Exception as error:
            program = tuple(int(index) for index in np.unravel_index(number, grid))
            raise _kernel_error(error, program) from error


def kernel_error(error: InterpreterError) -> KernelError:
    """Return what Triton's own interpreter raised in a launch as the exception of the kernel's line."""
    program = tuple(map(int, interpreter.interpreter_builder.grid_idx or ()))
    while len(program) > 1 and program[-1] == 0:  # a launch has three dimensions; those at the end are mostly unused
        program = program[:-1]
    return _kernel_error(error.__cause__ or error, program)


def _kernel_error(error: BaseException, program: tuple[int, ...]) -> KernelError:
    errors = [error]
    while isinstance(errors[-1], InterpreterError) and errors[-1].__cause__ is not None:  # of a function it calls
        errors.append(errors[-1].__cause__)
    return KernelError(f"{_line_of(errors, program)}: {type(errors[-1]).__name__}: {errors[-1]}")


def _line_of(errors: list[BaseException], program: tuple[int, ...]) -> Place | str:
    """Return the innermost line of the kernel that raised an exception and its causes; the program if no line did."""
    steps = [step for error in errors for step in traceback.walk_tb(error.__traceback__)]
    for frame, line in reversed(steps):
        file = frame.f_code.co_filename
        if _is_kernel(file):
            return Place(line_in_cell(file, line), linecache.getline(file, line).strip(), program)
    return f"program {listed(program)}"


def constants_of(kernel: Any) -> frozenset[str]:
    """Return the names of a kernel's parameters that are constants."""
    return frozenset(
        name
        for name, hint in kernel.fn.__annotations__.items()
        if hint is tl.constexpr or (isinstance(hint, str) and hint.rpartition(".")[2] == "constexpr")
    )


def pointer_to(tensor: Any, view: Any) -> Any:
    """Return the pointer to a tensor that a kernel gets, which knows its view."""
    pointer = interpreter._implicit_cvt(tensor)
    pointer.handle.attr["view"] = view
    return pointer


def python_function(kernel: Any) -> Callable[..., Any]:
    """Return the Python function that interprets a kernel, or a function that a kernel calls.

    Where Triton interprets, it is the function that a launch runs. Otherwise it is made here from the source that the
    compiler has read, in a copy of its module's names, because Triton's own rewriter adds names to the module.
    """
    if isinstance(kernel, InterpretedFunction):
        made: Callable[..., Any] = kernel.rewrite()
        return made
    if not kernel.fn.__module__.startswith("triton."):
        return _Rewriter(kernel.fn).rewrite(kernel)
    if kernel.fn not in _OF_TRITON:
        _OF_TRITON[kernel.fn] = _Rewriter(kernel.fn).rewrite(kernel)
    return _OF_TRITON[kernel.fn]


_OF_TRITON: dict[Callable[..., Any], Callable[..., Any]] = {}
"""What interprets Triton's own functions, which do not change while a notebook runs."""


class _Rewriter(FunctionRewriter):  # type: ignore[misc]
    """The interpreter's rewriter, which leaves the function's module as it is."""

    def rewrite(self, kernel: JITFunction) -> Callable[..., Any]:
        """Return the function that interprets what the compiler has read of a kernel."""
        self.filename, first_line = kernel.fn.__code__.co_filename, _line_of_def(kernel)
        tree = ast.fix_missing_locations(self.ast_transformer.visit(kernel.parse()))
        made: Callable[..., Any] = self._compile_and_exec(ast.increment_lineno(tree, first_line - 1))
        return made

    def _compile_and_exec(self, tree: ast.Module) -> Any:
        code = compile(tree, filename=self.filename, mode="exec")
        names = {**self.fn.__globals__, "interpreter_semantic": _TO_TENSOR}
        names.update(inspect.getclosurevars(self.fn).nonlocals)
        exec(code, names)
        return names[self.fn.__name__]


def _line_of_def(kernel: JITFunction) -> int:
    """Return the number of the line with `def` in the kernel's file, which comes behind those of its decorators."""
    lines = enumerate(kernel.raw_src, start=kernel.starting_line_number)
    return next(number for number, line in lines if line.lstrip().startswith("def "))


@contextmanager
def _interpreting(builder: CheckingBuilder) -> Iterator[None]:
    """Let `triton.language` carry out its operations with a builder."""
    scope = interpreter._LangPatchScope()
    functions: dict[int, Callable[..., Any]] = {}

    def call(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        function = functions.get(id(kernel))
        if function is None:
            function = functions[id(kernel)] = python_function(kernel)
        result = function(*args, **kwargs)
        if kernel.fn is _FLIP:
            _mark_flip(builder, result, *args, **kwargs)
        return result

    with triton.knobs.runtime.scope():
        triton.knobs.runtime.interpret = True
        try:
            scope.set_attr(interpreter, "interpreter_builder", builder)
            scope.set_attr(interpreter, "interpreter_semantic", CheckingSemantic(builder))
            for package in (tl, tl.math, tl.core, tl.tensor, tl.core.tensor_descriptor_base):
                for name in _names_of_builtins(package):
                    member = getattr(package, name)
                    if is_builtin(member):
                        scope.set_attr(package, name, _carried_out(member))
            for language in (tl, tl.core):
                interpreter._patch_lang_tensor(language.tensor, scope)
                interpreter._patch_lang_core(language, scope)
            _patch_marks(builder, scope)
            for kind in (JITFunction, InterpretedFunction):
                scope.set_attr(kind, "__call__", call)
            scope.set_attr(JITFunction, "__get__", _method)  # for `x.sum()`, where Triton compiles
            yield
        finally:
            scope.restore()


def _carried_out(member: Callable[..., Any]) -> Callable[..., Any]:
    """Return a built-in function of the language that the interpreter carries out, with the function's own arguments.

    Triton's own `_patch_attr` adds an argument, `member`: what to call in its place. A kernel could give that too.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = interpreter.interpreter_semantic
        return member(*args, **kwargs)

    return call


def _method(function: Any, owner: Any, _: Any = None) -> Any:
    return function if owner is None else partial(function, owner)


_FLIP = tl.flip.fn


@cache
def _names_of_builtins(package: Any) -> list[str]:
    return [name for name, member in inspect.getmembers(package) if is_builtin(member)]


def _patch_marks(builder: CheckingBuilder, scope: Any) -> None:
    """Let what the interpreter does without its builder pass marks on too."""

    def truth(tensor: Any) -> bool:
        if tensor.handle.attr and not _called_by_triton():
            builder.decides(tensor.handle)
        data = tensor.handle.data
        return bool(data) if data.size == 1 else True

    def index(tensor: Any) -> int:
        builder.decides(tensor.handle)
        return int(tensor.handle.data.squeeze())

    def transposed(tensor: Any) -> Any:
        shape = list(tensor.type.shape)
        shape[-1], shape[-2] = shape[-2], shape[-1]
        axes = tuple(reversed(range(tensor.handle.data.ndim)))
        return tl.tensor(builder.create_trans(tensor.handle, axes), tl.block_type(tensor.dtype, shape))

    def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: Any = False, **_: Any) -> Any:  # noqa: A002
        result = ReduceOps(axis, combine_fn, keep_dims).apply(input)
        builder.reduced(_as_tuple(result), _as_tuple(input), axis, bool(keep_dims))
        return result

    def scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:  # noqa: A002
        result = ScanOps(axis, combine_fn, reverse).apply(input)
        builder.scanned(_as_tuple(result), _as_tuple(input), axis, bool(reverse))
        return result

    scope.set_attr(tl.tensor, "__bool__", truth)
    scope.set_attr(tl.tensor, "__index__", index)
    scope.set_attr(tl.tensor, "T", property(transposed))
    for package in (tl, tl.core):
        scope.set_attr(package, "reduce", reduce)
        scope.set_attr(package, "associative_scan", scan)


def _called_by_triton() -> bool:
    return sys._getframe(2).f_code.co_filename.startswith(TRITON_FOLDER)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _mark_flip(builder: CheckingBuilder, result: Any, x: Any, dim: Any = None) -> None:
    axis = getattr(dim, "value", dim)
    if isinstance(x.handle, TensorHandle):
        builder.flipped(result.handle, x.handle, -1 if axis is None else axis)
