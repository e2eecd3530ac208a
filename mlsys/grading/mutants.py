"""Mutants: variants of a kernel with one mistake each, of the sorts that people make.

Tests of a kernel are good if they find every mutant that is wrong. A mutant is made from the kernel's syntax tree.
Whether it is wrong, and on which input, is for a test to find out. Some are not: a mask that no shape needs can go.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mlsys.errors import InvalidValue


@dataclass(frozen=True)
class Mutant:
    """A kernel with one mistake.

    Attributes:
        mistake: sort of mistake, a key of `MISTAKES`.
        line: line of the function, counted from its first.
        before: the expression or statement that was changed.
        after: what is there instead; "" if nothing is.
        text: source of the mutated function, with its decorator.
    """

    mistake: str
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.before} -> {self.after or 'nothing'}"


Change = Callable[[ast.AST, "_Kernel"], Iterator[ast.AST | None]]
"""Yields what may be in place of a node, None for nothing."""


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a kernel, without those that Python writes in the same way.

    Args:
        source: text of one function with its decorator.

    Raises:
        InvalidValue: the text is not one function.
    """
    body = ast.parse(source).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef):
        raise InvalidValue(f"{source[:40]!r} is not one function: pass the text of a kernel")
    kernel = _Kernel(body[0])
    seen = {ast.unparse(body[0])}
    found = []
    nodes = [node for statement in body[0].body for node in ast.walk(statement)]
    for mistake, change in MISTAKES.items():
        for node in nodes:
            for new in change(node, kernel):
                text = ast.unparse(_replaced(body[0], node, new))
                if text not in seen:
                    seen.add(text)
                    after = "" if new is None else ast.unparse(new)
                    line = getattr(node, "lineno", body[0].lineno) - body[0].lineno + 1
                    found.append(Mutant(mistake, line, ast.unparse(node), after, text))
    return found


class _Kernel:
    """What a change needs to know of the kernel around a node."""

    def __init__(self, function: ast.FunctionDef) -> None:
        names = [argument.arg for argument in function.args.args]
        self.strides = [name for name in names if name.startswith("stride")]
        self.programs = {
            target.id
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and _is_program_id(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }


def _replaced(tree: ast.AST, old: ast.AST, new: ast.AST | None) -> ast.AST:
    """Return a copy of a tree with another node in one place."""
    if tree is old:
        return ast.Pass() if new is None else new

    def part(value: object) -> object:
        if isinstance(value, list):
            return [part(item) for item in value]
        return _replaced(value, old, new) if isinstance(value, ast.AST) else value

    fields = {name: part(value) for name, value in ast.iter_fields(tree)}
    return ast.copy_location(type(tree)(**fields), tree)


def _no_mask(name: str) -> Change:
    """Drop the mask of a load, with its `other`, or of a store."""

    def change(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
        if _calls(node, name) and _keyword(node, "mask"):
            yield _without(node, "mask", "other")

    return change


def _no_other(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    if _calls(node, "load") and _keyword(node, "mask") and _keyword(node, "other"):
        yield _without(node, "other")


def _another_other(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Replace an `other` of minus infinity by zero, and of zero by one."""
    other = _keyword(node, "other") if _calls(node, "load") else None
    if other is not None:
        assert isinstance(node, ast.Call)
        zero = isinstance(other.value, ast.Constant) and other.value.value == 0
        new = copy.deepcopy(node)
        for keyword in new.keywords:
            if keyword.arg == "other":
                keyword.value = ast.Constant(1.0 if zero else 0.0)
        yield new


def _half_a_mask(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left=left, op=ast.BitAnd(), right=right):
            yield left
            yield right


def _one_more(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Turn `<` into `<=`, and the other way round."""
    match node:
        case ast.Compare(left=left, ops=[ast.Lt()], comparators=[right]):
            yield ast.Compare(left, [ast.LtE()], [right])
        case ast.Compare(left=left, ops=[ast.LtE()], comparators=[right]):
            yield ast.Compare(left, [ast.Lt()], [right])


def _no_program(node: ast.AST, kernel: _Kernel) -> Iterator[ast.AST]:
    """Forget the program's offset, or its index."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if _is_index(left, kernel) or _is_index(right, kernel):
            yield ast.Constant(0)
        case ast.Call() if _is_program_id(node):
            yield ast.Constant(0)


def _another_axis(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Ask for the program's index in another dimension."""
    if _is_program_id(node):
        assert isinstance(node, ast.Call)
        new = copy.deepcopy(node)
        for constant in (part for part in ast.walk(new) if isinstance(part, ast.Constant)):
            constant.value = 1 if constant.value == 0 else 0
        yield new


def _another_stride(node: ast.AST, kernel: _Kernel) -> Iterator[ast.AST]:
    """Use the next stride in the list of arguments."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()) if name in kernel.strides and len(kernel.strides) > 1:
            place = kernel.strides.index(name)
            yield ast.Name(kernel.strides[(place + 1) % len(kernel.strides)], ast.Load())


def _no_stride(node: ast.AST, kernel: _Kernel) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Name(id=name)) if name in kernel.strides:
            yield left


def _other_dimension(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Turn a column of indices into a row, and the other way round."""
    match node:
        case ast.Subscript(value=value, slice=ast.Tuple(elts=[one, two])) if _is_none(one) != _is_none(two):
            yield ast.Subscript(value, ast.Tuple([two, one], ast.Load()), ast.Load())


def _short_loop(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Let a loop end one step early, begin one step late, or leave out its ragged rest."""
    match node:
        case ast.Call(func=function, args=[start, end, step]) if _is_range(node):
            yield ast.Call(function, [start, ast.BinOp(end, ast.Sub(), step), step], [])
            yield ast.Call(function, [step, end, step], [])
        case ast.Call(func=function, args=[start, end]) if _is_range(node):
            yield ast.Call(function, [start, ast.BinOp(end, ast.Sub(), ast.Constant(1))], [])
        case ast.Call(func=function, args=[end]) if _is_range(node):
            yield ast.Call(function, [ast.BinOp(end, ast.Sub(), ast.Constant(1))], [])
        case ast.Call(func=ast.Attribute(attr="cdiv"), args=[one, two]):
            yield ast.BinOp(one, ast.FloorDiv(), two)


def _no_update(node: ast.AST, _: _Kernel) -> Iterator[ast.AST | None]:
    """Replace a sum by its last term, or leave out a step of a pointer or a sum."""
    match node:
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            yield ast.Assign([ast.Name(name, ast.Store())], value, lineno=node.lineno)
            yield None


def _half_precision(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    match node:
        case ast.Attribute(value=ast.Name(id="tl"), attr="float32"):
            yield ast.Attribute(ast.Name("tl", ast.Load()), "float16", ast.Load())


def _no_atomic(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Load, add and store in place of an atomic addition."""
    if _calls(node, "atomic_add"):
        assert isinstance(node, ast.Call)
        pointer, value, *mask = node.args
        masks = [one for one in node.keywords if one.arg == "mask"] + [ast.keyword("mask", one) for one in mask[:1]]
        loaded = ast.Call(_tl("load"), [pointer], list(masks))
        yield ast.Call(_tl("store"), [pointer, ast.BinOp(loaded, ast.Add(), value)], list(masks))


def _another_reduction(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Reduce along the other axis."""
    match node:
        case ast.keyword(arg="axis", value=ast.Constant(value=0 | 1 as axis)):
            yield ast.keyword("axis", ast.Constant(1 - axis))


def _another_sign(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            yield ast.BinOp(left, ast.Add(), right)


def _no_division(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=_):
            yield left


def _late_start(node: ast.AST, _: _Kernel) -> Iterator[ast.AST]:
    """Count the lanes of a block from one."""
    if _calls(node, "arange"):
        assert isinstance(node, ast.expr)
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))


def _no_factor(node: ast.AST, kernel: _Kernel) -> Iterator[ast.AST]:
    """Leave out a factor that is neither an index nor a stride."""
    match node:
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if not (
            _is_index(left, kernel) or _is_index(right, kernel) or getattr(right, "id", "") in kernel.strides
        ):
            yield left
            yield right


MISTAKES: dict[str, Change] = {
    "load without a mask": _no_mask("load"),
    "store without a mask": _no_mask("store"),
    "load without other=": _no_other,
    "another other=": _another_other,
    "half of a mask": _half_a_mask,
    "< for <=, or <= for <": _one_more,
    "no program's offset": _no_program,
    "another program_id axis": _another_axis,
    "another stride": _another_stride,
    "no stride": _no_stride,
    "row for column": _other_dimension,
    "loop too short": _short_loop,
    "no sum or no step": _no_update,
    "float16 for float32": _half_precision,
    "load and store for atomic_add": _no_atomic,
    "another reduction axis": _another_reduction,
    "another sign": _another_sign,
    "no division": _no_division,
    "lanes from one": _late_start,
    "no factor": _no_factor,
}
"""The sorts of mistakes, each with the change of a syntax tree that makes it."""


def _calls(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="tl"), attr=called)):
            return called == name
    return False


def _keyword(node: ast.AST, name: str) -> ast.keyword | None:
    return next((one for one in getattr(node, "keywords", ()) if one.arg == name), None)


def _without(node: ast.AST, *names: str) -> ast.Call:
    assert isinstance(node, ast.Call)
    return ast.Call(node.func, node.args, [one for one in node.keywords if one.arg not in names])


def _tl(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("tl", ast.Load()), name, ast.Load())


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_range(node: ast.Call) -> bool:
    match node.func:
        case ast.Name(id="range") | ast.Attribute(value=ast.Name(id="tl"), attr="range" | "static_range"):
            return True
    return False


def _is_program_id(node: ast.AST) -> bool:
    return _calls(node, "program_id")


def _is_index(node: ast.expr, kernel: _Kernel) -> bool:
    return _is_program_id(node) or (isinstance(node, ast.Name) and node.id in kernel.programs)
