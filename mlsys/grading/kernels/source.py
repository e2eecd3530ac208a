"""A student's kernel as text: the function, the functions that it calls, and nothing else.

The launcher never runs a student's Python code. It gets the definitions of a kernel and of the functions that it calls,
rewritten: constants are replaced by their values, imported names are Triton's own again, and type hints, docstrings and
unused strings are removed. What is left is checked against `mlsys.grading.kernels.language`.

Notebooks make the same check (`mlsys.grading.kernels.notebook.check_source`), so that students see every refusal before
the lab is graded.
"""

import ast
import builtins
import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from mlsys.core.cells import PARSE_ERRORS
from mlsys.grading.kernels.bindings import Alias, Assigned, Binding, Function, Imported, Other, bindings, stored
from mlsys.grading.kernels.constants import (
    BINARY,
    FUNCTIONS_OF_MATH,
    FUNCTIONS_OF_PYTHON,
    MAX_BITS,
    MAX_LENGTH,
    NO_VALUE,
    UNARY,
    computed,
    expression,
    not_finite,
    value_of_member,
)
from mlsys.grading.kernels.language import MAX_CHAIN, NUMBER_TYPES, PYTHON_NAMES, arguments_of, check_function
from mlsys.grading.verdicts import NotAKernel

HEADER = "import triton\nimport triton.language as tl\n"

MAX_TEXT = 60_000
"""Longest kernel with the functions that it calls, in characters; the longest of the course has 6,000."""

MAX_READ = 40_000
"""Most syntax nodes that are written for one kernel, with all that it calls: 2 s of the judge's time."""

_DROPPED_OPTIONS = ("debug", "do_not_specialize", "do_not_specialize_on_alignment", "noinline")
"""Options of `triton.jit` that change how a kernel is compiled, but not what it computes."""
_TUNERS = ("autotune", "heuristics")


@dataclass(frozen=True)
class KernelSource:
    """The text of a kernel with all that it needs: `text` defines `name`, on top of `triton` and `tl`.

    `lines` holds, for each line of the text, the line of the student's cell that it was written from, or 0.
    """

    name: str
    text: str
    lines: tuple[int, ...] = ()


def kernel_source(cells: Iterable[str], name: str) -> KernelSource:
    """Return the checked source of the kernel that cells bind to `name`.

    Args:
        cells: sources of the cells, in the order in which they run.
        name: what the question calls the kernel; `name = other_kernel` is followed.

    Raises:
        NotAKernel: `name` is not a `@triton.jit` function, or it or one that it calls uses more than Triton's language.
    """
    found = _read(tuple(cells), name)
    if isinstance(found, str):
        raise NotAKernel(found)
    return found


@lru_cache(maxsize=100)  # tests launch the same kernel many times
def _read(cells: tuple[str, ...], name: str) -> KernelSource | str:
    """Return the source, or the reason why there is none, which would take as long to find again."""
    try:
        return _Reading(bindings(cells)).source(name)
    except NotAKernel as error:
        return str(error)
    except PARSE_ERRORS as error:
        return f"{name} is nested too deeply to be read ({type(error).__name__}); write it in a simpler way"


@dataclass
class _Reading:
    """The functions of one kernel as they are found; `texts` holds each one's text after those of what it calls."""

    bound: dict[str, Binding]
    texts: dict[str, str] = field(default_factory=dict)
    lines: dict[str, tuple[int, ...]] = field(default_factory=dict)
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
        lines = [0] * (HEADER.count("\n") + 2)
        for one in self.texts:
            lines += [*self.lines[one], 0, 0]
        return KernelSource(found, text, tuple(lines[:-2]))

    def resolved(self, name: str) -> tuple[str, Binding | None]:
        """Follow `name = other` to the name that is really bound, and what it is bound to."""
        start, seen = name, {name}
        if start in self.followed:
            return self.followed[start], self.bound.get(self.followed[start])
        while isinstance(found := self.bound.get(name), Alias):
            name = found.name
            if name in seen:
                raise NotAKernel(f"{name} is defined in terms of itself; define it with @triton.jit")
            seen.add(name)
        self.followed |= dict.fromkeys(seen, name)
        return name, found

    def function(self, name: str) -> str | None:
        """Add the function that `name` stands for to the texts and return its own name, or None if it is none."""
        name, found = self.resolved(name)
        match found:
            case Assigned(value=ast.Call(func=func, args=[ast.Name(id=inner)])) if self.path(func) == "triton.jit":
                inner, definition = self.resolved(inner)
                if isinstance(definition, Function):
                    return self.add(inner, definition.node, jitted=not definition.node.decorator_list)
            case Assigned(value=ast.Attribute(value=ast.Name(id=owner), attr=inner)):
                return self.method(owner, inner)
        if isinstance(found, Function):
            return self.add(name, found.node)
        return None

    def method(self, owner: str, name: str) -> str | None:
        """Add a function inside a class to the texts; it gets a name made of both."""
        _, found = self.resolved(owner)
        if not isinstance(found, ast.ClassDef):
            return None
        definitions = [node for node in found.body if isinstance(node, ast.FunctionDef) and node.name == name]
        return self.add(f"{owner}_{name}", definitions[-1]) if definitions else None

    def why_no_function(self, name: str) -> str:
        """Say what a name is, if it is not a function that a kernel can call."""
        _, found = self.resolved(name)
        if isinstance(found, Other) and found.why:
            return found.why
        return "is not a function defined with @triton.jit in your cells"

    def add(self, name: str, node: ast.FunctionDef, jitted: bool = False) -> str:
        """Rewrite a function, check it, and add its text."""
        if name in self.texts:
            return name
        self.texts[name] = ""  # a function that calls itself ends here
        self.count(sum(1 for _ in ast.walk(node)))
        decorator = "jit" if jitted else self.decorator(name, node)
        written = _Rewriter(self, node).function(name, decorator)
        check_function(written, self.texts.keys(), node.lineno)
        del self.texts[name]
        self.texts[name] = _text_of(written)
        self.lines[name] = _lines_of(written, self.texts[name])
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
                    f"{name} has @triton.{tuner}, but a kernel is launched only with the constants that your "
                    "function returns. Look at what the decorator chose (with autotune: "
                    f"{name}.best_config after a call), return those numbers from the function that the question asks "
                    "for, such as config, and remove the decorator"
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
        raise NotAKernel(f"{name} has {said}; a kernel and what it calls must have @triton.jit and nothing else")

    def path(self, node: ast.expr) -> str:
        """Return the full name of a module or a member that an expression stands for, or nothing."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute) and len(parts) < MAX_CHAIN:
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        _, found = self.resolved(node.id)
        if isinstance(found, Assigned) and isinstance(found.value, ast.Attribute) and not parts:
            inner = found.value  # exp = tl.exp
            return self.path(inner) if isinstance(inner.value, ast.Name) and inner.value.id != node.id else ""
        if not isinstance(found, Imported):
            return ""
        return ".".join([found.path, *reversed(parts)])

    def value_of(self, name: str) -> Any:
        """Return the value of a constant of the cells, or `NO_VALUE`."""
        if name not in self.values:
            self.values[name] = NO_VALUE  # a constant made of itself has none
            _, found = self.resolved(name)
            if isinstance(found, Assigned):
                self.values[name] = self.value(found.value)
        return self.values[name]

    def value(self, node: ast.expr) -> Any:
        """Compute a constant expression; `NO_VALUE` for any other."""
        match node:
            case ast.Constant(value=str() as text):
                return text if len(text) <= MAX_LENGTH else NO_VALUE
            case ast.Constant(value=bool() | int() | float() | None):
                return node.value
            case ast.Name(id=name):
                imported = self.path(node)
                return value_of_member(imported) if imported else self.value_of(name)
            case ast.Attribute(value=ast.Name(), attr="value") if not self.path(node):
                return self.value(node.value)
            case ast.Attribute():
                return value_of_member(self.path(node))
            case ast.UnaryOp(op=op, operand=operand):
                return computed(UNARY.get(type(op)), [self.value(operand)])
            case ast.BinOp(left=left, op=op, right=right):
                return computed(BINARY.get(type(op)), [self.value(left), self.value(right)])
            case ast.Tuple(elts=parts):
                values = [self.value(part) for part in parts[:MAX_LENGTH]]
                # Tuples of tuples of tuples can be short to write and endless to write out.
                plain = not any(value is NO_VALUE or isinstance(value, tuple) for value in values)
                return tuple(values) if plain and len(values) == len(parts) else NO_VALUE
            case ast.Call(func=func, args=args, keywords=[]):
                return self._called(func, args)
        return NO_VALUE

    def _called(self, func: ast.expr, args: Sequence[ast.expr]) -> Any:
        path = self.path(func)
        values = [self.value(arg) for arg in args]
        if path == "triton.language.constexpr" and len(values) == 1:
            return values[0]
        if path.startswith("math.") and path[5:] in FUNCTIONS_OF_MATH:
            return computed(getattr(math, path[5:]), values)
        if path in ("triton.cdiv", "triton.language.cdiv") and len(values) == 2:
            return computed(lambda a, b: -(-a // b), values)
        if path == "triton.next_power_of_2" and len(values) == 1 and type(values[0]) is int:
            return 1 << max(0, values[0] - 1).bit_length() if 0 < values[0].bit_length() <= MAX_BITS else NO_VALUE
        if isinstance(func, ast.Name) and func.id not in self.bound and func.id in FUNCTIONS_OF_PYTHON:
            if func.id == "float" and len(values) == 1 and isinstance(values[0], str):
                return not_finite(values[0])
            return computed(FUNCTIONS_OF_PYTHON[func.id], values)
        return NO_VALUE


class _Rewriter(ast.NodeTransformer):
    """Rewriter of one function: without hints and docstrings, with values for constants and Triton's own names."""

    def __init__(self, reading: _Reading, node: ast.FunctionDef) -> None:
        self.reading = reading
        self.node = node
        self.own = {one.arg for one in arguments_of(node.args)}
        variables = {name for statement in node.body for name in stored(statement)} - self.own
        self.own |= variables
        # Triton's compiler finds Python's own functions under names that have no value yet.
        self.renamed = {name: _fresh(name, self.own) for name in sorted(variables) if name in PYTHON_NAMES}

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
        for argument in arguments_of(arguments):
            argument.annotation = self._hint(argument.annotation)
        arguments.defaults = [self._default(default) for default in arguments.defaults]
        arguments.kw_defaults = [default and self._default(default) for default in arguments.kw_defaults]
        return arguments

    def _default(self, node: ast.expr) -> ast.expr:
        value = self.reading.value(node)
        if value is NO_VALUE:
            self.refuse(node, f"has the default {_short(node)}", "use a number")
        return ast.copy_location(expression(value), node)

    def _hint(self, node: ast.expr | None) -> ast.expr | None:
        """Keep hints that tell Triton a type, and drop all others."""
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
        """Rewrite a node's parts, and its blocks without unused statements."""
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
        """Leave a node with its own scope as it is; it is refused afterwards."""
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
        """Write strings in one line: a line of a string must not look like a line of the program."""
        if isinstance(node.value, str) and not node.value.isprintable():
            return ast.copy_location(ast.Constant(" ".join(node.value.split())), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """Write the parts of an f-string in one line; an empty one is none."""
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
        """Put values and Triton's own names where the cells' names with attributes stood."""
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
        if value is NO_VALUE:
            self.refuse(node, f"uses {_short(node)}", "write it with Triton's own operations")
        if depth == 1 and node.attr == "value":
            return ast.copy_location(expression(value), node)
        node.value = self.visit(node.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call that has only constants, such as math.sqrt(2.0), by its value."""
        func = node.func
        root = func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id not in self.own and self.reading.path(func).startswith("math."):
            value = self.reading.value(node) if not self._uses_own(node) else NO_VALUE
            if value is NO_VALUE:
                self.refuse(
                    node,
                    f"calls {_short(func)} on something that is not a constant",
                    "use Triton's own, such as tl.sqrt",
                )
            return ast.copy_location(expression(value), node)
        return self.generic_visit(node)

    def _uses_own(self, node: ast.AST) -> bool:
        return any(isinstance(part, ast.Name) and part.id in self.own for part in ast.walk(node))

    def _named(self, node: ast.Name, name: str) -> ast.expr:
        reading = self.reading
        if reading.path(node):
            return self._member(node)
        value = reading.value_of(name)
        if value is not NO_VALUE:
            reading.count(len(value) if isinstance(value, tuple) else 1)
            return ast.copy_location(expression(value), node)
        if name not in reading.bound:
            if name in PYTHON_NAMES:
                return node
            if not hasattr(builtins, name):
                self.refuse(node, f"uses {name}", f"{name} is not defined; is it misspelled?")
            self.refuse(node, f"uses {name}", f"{name} {reading.why_no_function(name)}")
        function = reading.function(name)
        if function is None:
            if isinstance(reading.resolved(name)[1], Assigned):
                self.refuse(
                    node,
                    f"uses {name}",
                    f"what {name} is cannot be read from your cells without running them; write its value out, such as "
                    f"{name} = tl.constexpr(2), or define it with @triton.jit if it is a function",
                )
            self.refuse(node, f"uses {name}", f"{name} {reading.why_no_function(name)}")
        return ast.copy_location(ast.Name(function, ast.Load()), node)

    def _member(self, node: ast.Name | ast.Attribute) -> ast.expr:
        """Return a member of Triton or of math by its usual name."""
        path = self.reading.path(node)
        value = value_of_member(path)
        if value is not NO_VALUE:
            return ast.copy_location(expression(value), node)
        rest = path.removeprefix("triton.language.")
        if path != rest:
            return _dotted("tl", rest, node)
        if path == "triton.language":
            return ast.copy_location(ast.Name("tl", ast.Load()), node)
        if path == "triton" or path.startswith("triton."):
            return _dotted("triton", path.removeprefix("triton").removeprefix("."), node)
        return self.refuse(node, f"uses {path}", "write it with Triton's own operations")

    def refuse(self, node: ast.AST, what: str, instead: str) -> NoReturn:
        """Say what is not allowed.

        Raises:
            NotAKernel: with the line.
        """
        line = getattr(node, "lineno", self.node.lineno) - self.node.lineno + 1
        raise NotAKernel(f"line {line} of {self.node.name} {what}; {instead}")


def _fresh(name: str, taken: set[str]) -> str:
    """Return an unused name, made from another one.

    >>> _fresh("sum", {"sum", "sum_"})
    'sum__'
    """
    while name in taken or name in PYTHON_NAMES:
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
    """Return an expression as text, cut short."""
    if sum(1 for _ in ast.walk(node)) > 200:
        return f"a long {type(node).__name__}"
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."


def _text_of(function: ast.FunctionDef) -> str:
    """Return a function's text, after making sure that reading it gives the tree that was checked."""
    text = ast.unparse(function)
    try:
        compile(text, function.name, "exec")
    except SyntaxError as error:
        raise NotAKernel(f"{function.name} is not valid Python: {error.msg}") from None
    again = ast.parse(text).body
    definitions = [line for line in text.split("\n") if line.lstrip().startswith(("def ", "async ", "class "))]
    if len(again) != 1 or ast.dump(again[0]) != ast.dump(function) or len(definitions) != 1:
        raise NotAKernel(
            f"{function.name} changes when Python writes it out again; use plain names and shorter numbers"
        )
    return text


def _lines_of(function: ast.FunctionDef, text: str) -> tuple[int, ...]:
    """Return for each line of a function's text the line that its statement had in the cell, or 0."""
    lines = [0] * (text.count("\n") + 1)
    for old, new in zip(ast.walk(function), ast.walk(ast.parse(text).body[0]), strict=True):
        if isinstance(new, ast.stmt):
            lines[new.lineno - 1] = getattr(old, "lineno", 0)
    return tuple(lines)
