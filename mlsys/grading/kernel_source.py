"""A student's kernel as text that may run beside the clock: Triton's language and nothing else.

The launcher never runs a student's Python. It takes the source of a `@triton.jit` function, of the jit functions that
it calls and of the constants that it names, after every node of their syntax trees has been held against the lists
below. What is not listed is refused, with its line and what to write instead.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlsys.grading.student_code import parse
from mlsys.grading.verdicts import NotAKernel

LANGUAGE = frozenset(
    """
    abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas atomic_max atomic_min
    atomic_or atomic_xchg atomic_xor bfloat16 broadcast broadcast_to cast cat cdiv ceil clamp constexpr cos cumprod
    cumsum
    debug_barrier device_assert device_print div_rn dot dot_scaled erf exp exp2 expand_dims fdiv flip float16
    float32 float64 float8e4nv float8e5 floor fma full gather histogram int1 int16 int32 int64 int8 interleave join
    load log log2
    make_block_ptr make_tensor_descriptor max max_constancy max_contiguous maximum min minimum mul multiple_of
    num_programs permute program_id rand randint randn range ravel reduce reshape rsqrt sigmoid sin softmax sort split
    sqrt sqrt_rn squeeze static_assert static_print static_range store sub sum swizzle2d topk trans uint16 uint32 uint64
    uint8 umulhi unsqueeze view where xor_sum zeros zeros_like
    """.split()
)
"""Names of `triton.language`; inline assembly and libraries are not here, for they reach beyond the language."""

MATH = frozenset("abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi".split())
"""Names of `triton.language.math`."""

MEMBERS = LANGUAGE | frozenset(
    "T dtype element_ty shape to item is_fp16 is_bf16 is_fp32 block_shape scatter value".split()
)
"""Attributes and methods of a block, a dtype or a descriptor."""

BUILTINS = frozenset(("abs", "bool", "float", "int", "len", "max", "min", "range"))

_NODES = (
    ast.Add, ast.And, ast.AnnAssign, ast.Assign, ast.Attribute, ast.AugAssign, ast.BinOp, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.BoolOp, ast.Break, ast.Call, ast.Compare, ast.Constant, ast.Continue, ast.Div, ast.Eq, ast.Expr,
    ast.FloorDiv, ast.For, ast.Gt, ast.GtE, ast.If, ast.IfExp, ast.Invert, ast.Is, ast.IsNot, ast.LShift, ast.List,
    ast.Load, ast.Lt, ast.LtE, ast.MatMult, ast.Mod, ast.Mult, ast.Name, ast.Not, ast.NotEq, ast.Or, ast.Pass, ast.Pow,
    ast.RShift, ast.Return, ast.Slice, ast.Starred, ast.Store, ast.Sub, ast.Subscript, ast.Tuple, ast.UAdd, ast.USub,
    ast.UnaryOp, ast.While, ast.keyword,
)  # fmt: skip


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel with all that it needs: `text` defines `name`, on top of `triton` and `tl`."""

    name: str
    text: str


@dataclass(frozen=True)
class _Constant:
    name: str
    value: ast.expr


Binding = ast.FunctionDef | _Constant | ast.Name | ast.stmt


def kernel_source(cells: Iterable[str], name: str) -> KernelSource:
    """The checked source of the kernel that a student's cells bind to `name`.

    Args:
        cells: sources of the student's cells, in the order in which they run.
        name: what the question calls the kernel; `name = other_kernel` is followed.

    Raises:
        NotAKernel: if `name` is no `@triton.jit` function, or it or one that it calls uses more than Triton's language.
    """
    bound = _bindings(cells)
    seen = {name}
    while isinstance(found := bound.get(name), ast.Name):
        name = found.id
        if name in seen:
            raise NotAKernel(f"{name} is defined by itself; define it with @triton.jit")
        seen.add(name)
    parts: dict[str, str] = {}
    _collect(name, bound, parts)
    text = "import triton\nimport triton.language as tl\n\n\n" + "\n\n\n".join(parts.values()) + "\n"
    return KernelSource(name, text)


def _bindings(cells: Iterable[str]) -> dict[str, Binding]:
    """What the last top-level statement that binds each name binds it to; anything unusual stays a statement."""
    bound: dict[str, Binding] = {}
    for cell in cells:
        for statement in parse(cell).body:
            for target in _targets(statement):
                value = getattr(statement, "value", None)
                if isinstance(statement, ast.FunctionDef):
                    bound[target] = statement
                elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Name):
                    bound[target] = value
                elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and (literal := _literal(value)) is not None:
                    bound[target] = _Constant(target, literal)
                else:
                    bound[target] = statement
    return bound


def _targets(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((alias.asname or alias.name).split(".")[0] for alias in statement.names)
    else:
        yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))


def _literal(value: ast.expr | None) -> ast.expr | None:
    """A number or a string, plain or inside `tl.constexpr(...)`."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "tl.constexpr" and len(value.args) == 1:
        value = value.args[0]
    inner = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else value
    return value if isinstance(inner, ast.Constant) and isinstance(inner.value, (bool, int, float, str)) else None


def _collect(name: str, bound: dict[str, Binding], parts: dict[str, str]) -> None:
    """Add the text of `name` to `parts`, after the text of what it uses."""
    found = bound.get(name)
    if name.startswith("__"):
        raise NotAKernel(f"{name} is a name of Python's own; choose another")
    if isinstance(found, _Constant):
        parts[name] = f"{name} = tl.constexpr({ast.unparse(found.value)})"
        return
    if not isinstance(found, ast.FunctionDef):
        raise NotAKernel(f"{name} is not a function defined with @triton.jit in your cells")
    decorators = [ast.unparse(decorator) for decorator in found.decorator_list]
    if decorators != ["triton.jit"]:
        said = " and ".join(f"@{decorator}" for decorator in decorators) or "no decorator"
        raise NotAKernel(f"{name} has {said}; a kernel and the functions it calls have @triton.jit and nothing else")
    parts[name] = ""  # a function that calls itself ends here
    for used in _check(found):
        if used not in parts:
            _collect(used, bound, parts)
    del parts[name]
    parts[name] = _written_out(found)


def _written_out(function: ast.FunctionDef) -> str:
    """The function's text, of which it is sure that what was checked is what runs."""
    try:
        text = ast.unparse(function)
        same = ast.dump(ast.parse(text)) == ast.dump(ast.Module([function], []))
    except (ValueError, SyntaxError, RecursionError):
        same = False
    if not same:
        raise NotAKernel(
            f"{function.name} does not read the same when Python writes it out; use plain names and shorter numbers"
        )
    return text


def _check(function: ast.FunctionDef) -> list[str]:
    """Hold every node against the lists; returns the names that come from outside the function."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if arguments.vararg or arguments.kwarg:
        _refuse(function, function, "takes *args or **kwargs", "name every argument")
    for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d)):
        if _literal(default) is None:
            _refuse(function, default, f"has the default {ast.unparse(default)}", "use a number")
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.annotation is not None and ast.unparse(argument.annotation) not in ("tl.constexpr", "tl.const"):
            _refuse(function, argument, f"annotates {argument.arg}", "annotate with tl.constexpr or not at all")
    if function.returns is not None:
        _refuse(function, function.returns, "annotates its result", "leave that out, for a kernel returns nothing")
    if getattr(function, "type_params", None):  # from Python 3.12 on
        _refuse(function, function, "takes type parameters", "leave them out")
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    local = {*names, *(n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))}
    outside: dict[str, None] = {}
    for node in nodes:
        if not isinstance(node, _NODES):
            _refuse(function, node, f"uses {type(node).__name__}", "write it with Triton's own operations")
        if isinstance(node, ast.Constant) and not isinstance(node.value, (bool, int, float, str, type(None))):
            _refuse(function, node, f"uses the constant {node.value!r}", "use numbers")
        if isinstance(node, ast.Attribute):
            _check_attribute(function, node)
        if isinstance(node, ast.Name) and node.id not in local and node.id not in ("tl", *BUILTINS):
            outside[node.id] = None
        if isinstance(node, ast.Name) and (node.id.startswith("__") or (node.id == "tl" and node.id in local)):
            _refuse(function, node, f"uses the name {node.id}", "choose another name")
    # `tl` alone would be an object to pass around; only tl.NAME is a word of the language.
    allowed = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id == "tl" and id(node) not in allowed:
            _refuse(function, node, "uses tl by itself", "use tl.NAME")
    return list(outside)


def _check_attribute(function: ast.FunctionDef, node: ast.Attribute) -> None:
    base = ast.unparse(node.value)
    allowed = {"tl": LANGUAGE | {"math"}, "tl.math": MATH}.get(base, MEMBERS)
    if node.attr not in allowed:
        _refuse(function, node, f"uses {ast.unparse(node)}", "write it with Triton's own operations")


def _refuse(function: ast.FunctionDef, node: ast.AST, what: str, instead: str) -> None:
    line = getattr(node, "lineno", function.lineno) - function.lineno + 1
    raise NotAKernel(f"{function.name}, line {line} of it, {what}; {instead}")
