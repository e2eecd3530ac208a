"""A student's kernel as text of its own: the function, the functions that it calls, and nothing of the rest.

The launcher never runs a student's Python. It gets the definition of a kernel and of the functions that it calls,
written anew: constants stand where their names stood, names that were imported are Triton's own again, type hints,
docstrings and texts that nobody reads are gone. What is left is held against `mlsys.grading.kernel_language`.

Notebooks ask the same questions (`check_in_notebook`), so that nobody hears of a refusal for the first time when the
lab is graded.
"""

import ast
import builtins
import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mlsys.grading.kernel_language import LANGUAGE, MAX_CHAIN, NUMBER_TYPES, check_function
from mlsys.grading.student_code import parse, plain_python
from mlsys.grading.verdicts import NotAKernel

HEADER = "import triton\nimport triton.language as tl\n"

MAX_TEXT = 60_000
"""Most characters of a kernel with the functions that it calls; the longest of the course has 6,000."""

MAX_READ = 40_000
"""Most nodes of syntax trees that are written for one kernel, with all that it calls: 2 s of the judge's time."""

_BROKEN = (SyntaxError, ValueError, RecursionError, MemoryError)
_CONSTANTS_OF_MATH = {name: getattr(math, name) for name in ("pi", "e", "tau", "inf", "nan")}
_FUNCTIONS_OF_MATH = frozenset("ceil cos exp exp2 fabs floor log log10 log1p log2 pow sin sqrt".split())
_FUNCTIONS_OF_PYTHON: dict[str, Any] = {"abs": abs, "float": float, "int": int, "max": max, "min": min}
_MAX_BITS = 256
"""Most bits of an integer constant while it is computed: 2**(10**9) would take the memory of the machine."""
_MAX_LENGTH = 200
"""Most parts of a tuple and characters of a text that is a constant."""
_DROPPED_OPTIONS = ("debug", "do_not_specialize", "do_not_specialize_on_alignment", "noinline")
"""Options of `triton.jit` that change how a kernel is compiled and not what it computes."""
_TUNERS = ("autotune", "heuristics")


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel with all that it needs: `text` defines `name`, on top of `triton` and `tl`."""

    name: str
    text: str


@dataclass(frozen=True)
class _DType:
    """A dtype of Triton, as the value of a constant."""

    name: str


@dataclass(frozen=True)
class _Imported:
    """A module, or a member of one, by its full name, such as "triton.language.load"."""

    path: str


@dataclass(frozen=True)
class _Function:
    """A function's definition."""

    node: ast.FunctionDef


@dataclass(frozen=True)
class _Alias:
    """Another name for something."""

    name: str


@dataclass(frozen=True)
class _Assigned:
    """A name that is bound to the value of an expression."""

    value: ast.expr


@dataclass(frozen=True)
class _Other:
    """Anything else, with why a kernel cannot use it."""

    why: str = ""


Binding = _Imported | _Function | _Alias | _Assigned | _Other | ast.ClassDef
_NO_VALUE = object()


def kernel_source(cells: Iterable[str], name: str) -> KernelSource:
    """Return the checked source of the kernel that cells bind to `name`.

    Args:
        cells: sources of the cells, in the order in which they run.
        name: what the question calls the kernel; `name = other_kernel` is followed.

    Raises:
        NotAKernel: `name` is no `@triton.jit` function, or it or one that it calls uses more than Triton's language.
    """
    try:
        return _Reading(_bindings(cells)).source(name)
    except _BROKEN as error:
        raise NotAKernel(f"{name} is nested too deeply to be read ({type(error).__name__}); write it plainly") from None


def _bindings(cells: Iterable[str]) -> dict[str, Binding]:
    """What the last statement that binds each name binds it to."""
    bound: dict[str, Binding] = {"triton": _Imported("triton"), "tl": _Imported("triton.language")}
    for cell in cells:
        try:
            body = parse(plain_python(cell)).body
        except _BROKEN:
            continue  # a notebook's history holds cells that never ran
        for statement in body:
            bound.update(_bound_by(statement))
    return bound


def _bound_by(statement: ast.stmt) -> dict[str, Binding]:
    match statement:
        case ast.FunctionDef(name=name):
            return {name: _Function(statement)}
        case ast.ClassDef(name=name):
            return {name: statement}
        case ast.Import(names=names):
            return {
                (alias.asname or alias.name.partition(".")[0]): _Imported(
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                for alias in names
            }
        case ast.ImportFrom(module="triton.language", names=[ast.alias(name="*")], level=0):
            return {name: _Imported(f"triton.language.{name}") for name in (*LANGUAGE, "math")}
        case ast.ImportFrom(module=module, names=names, level=level):
            prefix = "." * level + (module or "")
            return {alias.asname or alias.name: _Imported(f"{prefix}.{alias.name}") for alias in names}
        case ast.Assign(targets=targets, value=value):
            found: dict[str, Binding] = {}
            for target in targets:
                found.update(_assigned(target, value))
            return found
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return _assigned(ast.Name(name), value)
        case ast.AnnAssign():
            return {}
        case ast.If() | ast.Try() | ast.With():
            return _bound_in_branches(statement)
    return dict.fromkeys(_stored(statement), _Other("is bound by a statement that only Python understands"))


def _assigned(target: ast.expr, value: ast.expr) -> dict[str, Binding]:
    match target, value:
        case ast.Name(id=name), ast.Name(id=other):
            return {name: _Alias(other)}
        case ast.Name(id=name), _:
            return {name: _Assigned(value)}
        case (ast.Tuple(elts=names), ast.Tuple(elts=values)) | (ast.List(elts=names), ast.List(elts=values)) if len(
            names
        ) == len(values) and all(isinstance(one, ast.Name) for one in names):
            found: dict[str, Binding] = {}
            for one, part in zip(names, values, strict=True):
                found.update(_assigned(one, part))
            return found
    return dict.fromkeys(_stored(target), _Other("is assigned together with others; assign it on a line of its own"))


def _bound_in_branches(statement: ast.If | ast.Try | ast.With) -> dict[str, Binding]:
    """What a block binds; which of two branches runs is not known here."""
    found: dict[str, Binding] = {}
    inner = [node for name in ("body", "handlers", "orelse", "finalbody") for node in getattr(statement, name, ())]
    for node in inner:
        for part in node.body if isinstance(node, ast.ExceptHandler) else [node]:
            for name, binding in _bound_by(part).items():
                twice = name in found and found[name] != binding
                found[name] = _Other("is defined in two branches; define it once") if twice else binding
    return found


def _stored(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))


@dataclass
class _Reading:
    """The functions of one kernel as they are found; `texts` holds each one's text after those of what it calls."""

    bound: dict[str, Binding]
    texts: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    followed: dict[str, str] = field(default_factory=dict)
    written: int = 0

    def count(self, nodes: int) -> None:
        """Count nodes that are written.

        Raises:
            NotAKernel: they are too many.
        """
        self.written += nodes
        if self.written > MAX_READ:
            raise NotAKernel(f"a kernel and what it calls may have {MAX_READ:,} parts, constants included; write less")

    def source(self, name: str) -> KernelSource:
        """Return the text of a kernel and of what it calls."""
        found = self.function(name)
        if found is None:
            raise NotAKernel(f"{name} {self.why_no_function(name)}")
        text = HEADER + "\n\n" + "\n\n\n".join(self.texts.values()) + "\n"
        if len(text) > MAX_TEXT:
            raise NotAKernel(f"{name} and what it calls have {len(text):,} characters; the limit is {MAX_TEXT:,}")
        return KernelSource(found, text)

    def resolved(self, name: str) -> tuple[str, Binding | None]:
        """Follow `name = other` to the name that is really bound, and what it is bound to."""
        start, seen = name, {name}
        if start in self.followed:
            return self.followed[start], self.bound.get(self.followed[start])
        while isinstance(found := self.bound.get(name), _Alias):
            name = found.name
            if name in seen:
                raise NotAKernel(f"{name} is defined by itself; define it with @triton.jit")
            seen.add(name)
        self.followed |= dict.fromkeys(seen, name)
        return name, found

    def function(self, name: str) -> str | None:
        """Add the function that `name` stands for to the texts and return its own name, or None if it is none."""
        name, found = self.resolved(name)
        match found:
            case _Assigned(value=ast.Call(func=func, args=[ast.Name(id=inner)])) if self.path(func) == "triton.jit":
                inner, definition = self.resolved(inner)
                if isinstance(definition, _Function):
                    return self.add(inner, definition.node, jitted=not definition.node.decorator_list)
            case _Assigned(value=ast.Attribute(value=ast.Name(id=owner), attr=inner)):
                return self.method(owner, inner)
        if isinstance(found, _Function):
            return self.add(name, found.node)
        return None

    def method(self, owner: str, name: str) -> str | None:
        """The same for a function inside a class; it gets a name made of both."""
        _, found = self.resolved(owner)
        if not isinstance(found, ast.ClassDef):
            return None
        definitions = [node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == name]
        return self.add(f"{owner}_{name}", definitions[-1]) if definitions else None

    def why_no_function(self, name: str) -> str:
        """Say what a name is, if it is no function that a kernel can call."""
        _, found = self.resolved(name)
        if isinstance(found, _Other) and found.why:
            return found.why
        return "is not a function defined with @triton.jit in your cells"

    def add(self, name: str, node: ast.FunctionDef, jitted: bool = False) -> str:
        """Write a function anew, check it, and add its text."""
        if name in self.texts:
            return name
        self.texts[name] = ""  # a function that calls itself ends here
        self.count(sum(1 for _ in ast.walk(node)))
        decorator = "jit" if jitted else self.decorator(name, node)
        written = _Rewriter(self, node).function(name, decorator)
        check_function(written, self.texts.keys(), node.lineno)
        del self.texts[name]
        self.texts[name] = _text_of(written)
        return name

    def decorator(self, name: str, node: ast.FunctionDef) -> str:
        """Return which of Triton's decorators a function has.

        Raises:
            NotAKernel: none, or others as well.
        """
        found = [decorator for decorator in node.decorator_list if not _is_staticmethod(decorator)]
        names = [self.path(one.func if isinstance(one, ast.Call) else one) for one in found]
        for tuner in _TUNERS:
            if f"triton.{tuner}" in names:
                raise NotAKernel(
                    f"{name} has @triton.{tuner}, and a kernel is launched with the constants that your function "
                    "returns, nothing else. Look at what it chose (with autotune: "
                    f"{name}.best_config after a call), return those numbers from the function that the question asks "
                    "for, such as config, and leave the decorator out"
                )
        if names == ["triton.constexpr_function"] and not isinstance(found[0], ast.Call):
            return "constexpr_function"
        if names == ["triton.jit"]:
            options = found[0].keywords if isinstance(found[0], ast.Call) else []
            if not (isinstance(found[0], ast.Call) and found[0].args):
                unknown = [option.arg for option in options if option.arg not in _DROPPED_OPTIONS]
                if not unknown:
                    return "jit"
        said = " and ".join(f"@{_short(decorator)}" for decorator in node.decorator_list[:3]) or "no decorator"
        raise NotAKernel(f"{name} has {said}; a kernel and the functions it calls have @triton.jit and nothing else")

    def path(self, node: ast.expr) -> str:
        """The full name of a module or a member that an expression stands for, or nothing."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < MAX_CHAIN:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        _, found = self.resolved(node.id)
        if isinstance(found, _Assigned) and isinstance(found.value, ast.Attribute) and not parts:
            inner = found.value  # exp = tl.exp
            return self.path(inner) if isinstance(inner.value, ast.Name) and inner.value.id != node.id else ""
        if not isinstance(found, _Imported):
            return ""
        return ".".join([found.path, *reversed(parts)])

    def value_of(self, name: str) -> Any:
        """The value of a constant of the cells, or `_NO_VALUE`."""
        if name not in self.values:
            self.values[name] = _NO_VALUE  # a constant made of itself has none
            _, found = self.resolved(name)
            if isinstance(found, _Assigned):
                self.values[name] = self.value(found.value)
        return self.values[name]

    def value(self, node: ast.expr) -> Any:
        """Compute a constant expression; `_NO_VALUE` for any other."""
        match node:
            case ast.Constant(value=str() as text):
                return text if len(text) <= _MAX_LENGTH else _NO_VALUE
            case ast.Constant(value=bool() | int() | float() | None):
                return node.value
            case ast.Name(id=name):
                imported = self.path(node)
                return _value_of_member(imported) if imported else self.value_of(name)
            case ast.Attribute(value=ast.Name(), attr="value") if not self.path(node):
                return self.value(node.value)
            case ast.Attribute():
                return _value_of_member(self.path(node))
            case ast.UnaryOp(op=op, operand=operand):
                return _computed(_UNARY.get(type(op)), [self.value(operand)])
            case ast.BinOp(left=left, op=op, right=right):
                return _computed(_BINARY.get(type(op)), [self.value(left), self.value(right)])
            case ast.Tuple(elts=parts):
                values = [self.value(part) for part in parts[:_MAX_LENGTH]]
                # Tuples of tuples of tuples can be short to write and endless to write out.
                plain = not any(value is _NO_VALUE or isinstance(value, tuple) for value in values)
                return tuple(values) if plain and len(values) == len(parts) else _NO_VALUE
            case ast.Call(func=func, args=args, keywords=[]):
                return self._called(func, args)
        return _NO_VALUE

    def _called(self, func: ast.expr, args: Sequence[ast.expr]) -> Any:
        path = self.path(func)
        values = [self.value(arg) for arg in args]
        if path == "triton.language.constexpr" and len(values) == 1:
            return values[0]
        if path.startswith("math.") and path[5:] in _FUNCTIONS_OF_MATH:
            return _computed(getattr(math, path[5:]), values)
        if path in ("triton.cdiv", "triton.language.cdiv") and len(values) == 2:
            return _computed(lambda a, b: -(-a // b), values)
        if path == "triton.next_power_of_2" and len(values) == 1 and type(values[0]) is int:
            return 1 << max(0, values[0] - 1).bit_length() if 0 < values[0].bit_length() <= _MAX_BITS else _NO_VALUE
        if (
            isinstance(func, ast.Name)
            and func.id not in self.bound
            and func.id in ("float", "int", "min", "max", "abs")
        ):
            if func.id == "float" and len(values) == 1 and isinstance(values[0], str):
                return _not_finite(values[0])
            return _computed({"float": float, "int": int, "min": min, "max": max, "abs": abs}[func.id], values)
        return _NO_VALUE


def _value_of_member(path: str) -> Any:
    module, _, member = path.rpartition(".")
    if module in ("math", "numpy"):
        return _CONSTANTS_OF_MATH.get(member, _NO_VALUE)
    name = path.removeprefix("triton.language.")
    return _DType(name) if path != name and name in NUMBER_TYPES else _NO_VALUE


def _not_finite(text: str) -> Any:
    return float(text) if text.strip().lower().lstrip("+-") in ("inf", "infinity", "nan") else _NO_VALUE


def _computed(operation: Any, values: Sequence[Any]) -> Any:
    """The result of an operation on numbers; `_NO_VALUE` where there is none."""
    if operation is None or not values or not all(type(value) in (bool, int, float) for value in values):
        return _NO_VALUE
    if any(type(value) is int and value.bit_length() > _MAX_BITS for value in values):
        return _NO_VALUE
    try:
        result = operation(*values)
    except (ArithmeticError, ValueError, TypeError):
        return _NO_VALUE
    if type(result) not in (bool, int, float) or (type(result) is int and result.bit_length() > _MAX_BITS):
        return _NO_VALUE
    return result


def _power(base: Any, exponent: Any) -> Any:
    if type(base) is int and type(exponent) is int and abs(exponent) * max(base.bit_length(), 1) > _MAX_BITS:
        raise ValueError("too large")
    return base**exponent


def _shifted(value: Any, by: Any) -> Any:
    if by > _MAX_BITS:
        raise ValueError("too large")
    return value << by


_UNARY: dict[type[ast.unaryop], Any] = {ast.USub: lambda a: -a, ast.UAdd: lambda a: +a, ast.Invert: lambda a: ~a}
_BINARY: dict[type[ast.operator], Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: _power,
    ast.LShift: _shifted,
    ast.RShift: lambda a, b: a >> b,
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}


def _expression(value: Any) -> ast.expr:
    """The expression that a constant is written as."""
    match value:
        case _DType(name=name):
            return ast.Attribute(ast.Name("tl", ast.Load()), name, ast.Load())
        case tuple():
            return ast.Tuple([_expression(part) for part in value], ast.Load())
        case float() if not math.isfinite(value):
            return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(str(value))], [])
        case int() | float() if not isinstance(value, bool) and (value < 0 or math.copysign(1, value) < 0):
            return ast.UnaryOp(ast.USub(), ast.Constant(-value))
        case str():
            return ast.Constant(" ".join(value.splitlines()))
    return ast.Constant(value)


class _Rewriter(ast.NodeTransformer):
    """Writes one function anew: without hints and docstrings, with values for constants and Triton's own names."""

    def __init__(self, reading: _Reading, node: ast.FunctionDef) -> None:
        self.reading = reading
        self.node = node
        arguments = node.args
        self.own = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        stored = {name for statement in node.body for name in _stored(statement)} - self.own
        self.own |= stored
        # Triton's compiler finds Python's own functions under names that have no value yet.
        self.renamed = {name: _fresh(name, self.own) for name in sorted(stored) if name in _PYTHON}

    def function(self, name: str, decorator: str) -> ast.FunctionDef:
        """Return the new definition."""
        node = self.node
        body = self._body([copy.deepcopy(statement) for statement in node.body])
        new = ast.FunctionDef(
            name, self._arguments(copy.deepcopy(node.args)), body or [ast.Pass()], [_dotted("triton", decorator)]
        )
        if hasattr(node, "type_params"):  # from Python 3.12 on
            setattr(new, "type_params", node.type_params)  # noqa: B010 - older Pythons have no such attribute
        ast.copy_location(new, node)
        return ast.fix_missing_locations(new)

    def _arguments(self, arguments: ast.arguments) -> ast.arguments:
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            argument.annotation = self._hint(argument.annotation)
        arguments.defaults = [self._default(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self._default(default) for default in arguments.kw_defaults]
        return arguments

    def _default(self, node: ast.expr) -> ast.expr:
        value = self.reading.value(node)
        if value is _NO_VALUE:
            self.refuse(node, f"has the default {_short(node)}", "use a number")
        return ast.copy_location(_expression(value), node)

    def _hint(self, node: ast.expr | None) -> ast.expr | None:
        """Keep what tells Triton a type, drop what only tells the reader."""
        if node is None:
            return None
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        path = f"triton.language.{text[3:]}" if text.startswith("tl.") else self.reading.path(node)
        name = path.removeprefix("triton.language.")
        if path != name and name in ("constexpr", *NUMBER_TYPES):
            return _dotted("tl", name)
        return None

    def _body(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        kept = []
        for statement in statements:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Constant, ast.JoinedStr)):
                continue  # a docstring, an ellipsis, a note to the reader
            new = self.visit(statement)
            if new is not None:
                kept.append(new)
        return kept

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Write a node's parts anew; its blocks without what nobody reads."""
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                block = self._body(value)
                setattr(node, name, block or ([ast.copy_location(ast.Pass(), value[0])] if name == "body" else []))
            elif isinstance(value, list):
                setattr(node, name, [self.visit(part) if isinstance(part, ast.AST) else part for part in value])
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def _leave(self, node: ast.AST) -> ast.AST:
        """Leave what has a scope of its own as it is: it is refused afterwards."""
        return node

    visit_Lambda = visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _leave  # noqa: N815
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _leave  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """Keep `x: tl.constexpr = 2`; `x: int = 2` is `x = 2`, and `x: int` is nothing."""
        if node.value is None:
            return None
        value, target = self.visit(node.value), self.visit(node.target)
        hint = self._hint(node.annotation)
        if hint is not None and isinstance(target, ast.Name):
            return ast.copy_location(ast.AnnAssign(target, hint, value, 1), node)
        return ast.copy_location(ast.Assign([target], value), node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """Texts in one line: a line of a text must not read like a line of the program."""
        if isinstance(node.value, str) and not node.value.isprintable():
            return ast.copy_location(ast.Constant(" ".join(node.value.split())), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """The same for the parts of an f-string; an empty one is none."""
        self.generic_visit(node)
        node.values = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Put values and Triton's own names where the cells' names stood."""
        if node.id in self.renamed:
            return ast.copy_location(ast.Name(self.renamed[node.id], node.ctx), node)
        if node.id in self.own or not isinstance(node.ctx, ast.Load):
            return node
        return self._named(node, node.id)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """The same for a name with attributes, read as a whole."""
        base: ast.expr = node
        depth = 0
        while isinstance(base, ast.Attribute):
            base, depth = base.value, depth + 1
        if depth > MAX_CHAIN:
            self.refuse(node, f"has {depth} attributes in a row", f"use at most {MAX_CHAIN}")
        if not isinstance(base, ast.Name) or base.id in self.own:
            node.value = self.visit(node.value)
            return node
        if self.reading.path(base):
            return self._member(node)
        if isinstance(node.value, ast.Name) and (name := self.reading.method(node.value.id, node.attr)):
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        value = self.reading.value_of(base.id)
        if value is _NO_VALUE:
            self.refuse(node, f"uses {_short(node)}", "write it with Triton's own operations")
        if depth == 1 and node.attr == "value":
            return ast.copy_location(_expression(value), node)
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call with constants alone, such as math.sqrt(2.0), is its value."""
        func = node.func
        root = func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.own and self.reading.path(func).startswith("math."):
            value = self.reading.value(node) if not self._uses_own(node) else _NO_VALUE
            if value is _NO_VALUE:
                self.refuse(node, f"calls {_short(func)} on what is no constant", "use Triton's own, such as tl.sqrt")
            return ast.copy_location(_expression(value), node)
        return self.generic_visit(node)

    def _uses_own(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self.own for part in ast.walk(node))

    def _named(self, node: ast.Name, name: str) -> ast.expr:
        reading = self.reading
        if reading.path(node):
            return self._member(node)
        value = reading.value_of(name)
        if value is not _NO_VALUE:
            reading.count(len(value) if isinstance(value, tuple) else 1)
            return ast.copy_location(_expression(value), node)
        if name not in reading.bound:
            if name in _PYTHON:
                return node
            self.refuse(node, f"uses {name}", f"{name} {reading.why_no_function(name)}")
        function = reading.function(name)
        if function is None:
            self.refuse(node, f"uses {name}", f"{name} {reading.why_no_function(name)}")
        return ast.copy_location(ast.Name(function, ast.Load()), node)

    def _member(self, node: ast.Name | ast.Attribute) -> ast.expr:
        """A member of Triton or of math by its usual name."""
        path = self.reading.path(node)
        value = _value_of_member(path)
        if value is not _NO_VALUE:
            return ast.copy_location(_expression(value), node)
        rest = path.removeprefix("triton.language.")
        if path != rest:
            return _dotted("tl", rest, node)
        if path == "triton.language":
            return ast.copy_location(ast.Name("tl", ast.Load()), node)
        if path == "triton" or path.startswith("triton."):
            return _dotted("triton", path.removeprefix("triton").removeprefix("."), node)
        return self.refuse(node, f"uses {path}", "write it with Triton's own operations")

    def refuse(self, node: ast.AST, what: str, instead: str) -> NoReturn:
        """Say what cannot stay.

        Raises:
            NotAKernel: with the line.
        """
        line = getattr(node, "lineno", self.node.lineno) - self.node.lineno + 1
        raise NotAKernel(f"{self.node.name}, line {line} of it, {what}; {instead}")


_PYTHON = frozenset(dir(builtins))


def _fresh(name: str, taken: set[str]) -> str:
    """A name that is not taken, made of another.

    >>> _fresh("sum", {"sum", "sum_"})
    'sum__'
    """
    while name in taken or name in _PYTHON:
        name += "_"
    return name


def _dotted(root: str, rest: str, like: ast.AST | None = None) -> ast.expr:
    node: ast.expr = ast.Name(root, ast.Load())
    for part in filter(None, rest.split(".")):
        node = ast.Attribute(node, part, ast.Load())
    if like is not None:
        for made in ast.walk(node):
            ast.copy_location(made, like)
    return node


def _is_staticmethod(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "staticmethod"


def _short(node: ast.AST) -> str:
    """An expression as text, cut short."""
    if sum(1 for _ in ast.walk(node)) > 200:
        return f"a long {type(node).__name__}"
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."


def _text_of(function: ast.FunctionDef) -> str:
    """The function's text, of which it is sure that what was checked is what is read again from it."""
    text = ast.unparse(function)
    try:
        compile(text, function.name, "exec")
    except SyntaxError as error:
        raise NotAKernel(f"{function.name} is no valid Python: {error.msg}") from None
    again = ast.parse(text).body
    definitions = [line for line in text.split("\n") if line.lstrip().startswith(("def ", "async ", "class "))]
    if len(again) != 1 or ast.dump(again[0]) != ast.dump(function) or len(definitions) != 1:
        raise NotAKernel(
            f"{function.name} does not read the same when Python writes it out; use plain names and shorter numbers"
        )
    return text
