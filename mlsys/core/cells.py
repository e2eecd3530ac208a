"""Notebook cells: parse them, name what they define and use, and run them."""

import ast
import inspect
import linecache
import symtable
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

from mlsys.core.magics import without_magics

PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


MAX_PARSED = 20_000
"""Characters of a cell: Python's parser takes time that grows with the square of some, 0.1 s for this many."""


once_per_cell = lru_cache(maxsize=2000)  # recognizing cells and every question ask for the same ones again


def parse(source: str) -> ast.Module:
    """Return the syntax tree of a student's cell.

    Raises:
        ValueError: it is longer than `MAX_PARSED`.
        SyntaxError: it is no valid Python; other errors of `ast.parse` for what is nested too deeply.
    """
    if len(source) > MAX_PARSED:
        raise ValueError(
            f"a cell of {len(source):,} characters; the limit is {MAX_PARSED:,}: take pasted data out of it"
        )
    return ast.parse(source)


@once_per_cell
def plain_python(source: str) -> str:
    r"""Return `source` with plain Python in place of what only a notebook understands; line numbers stay.

    >>> plain_python("%%time\nx = 1\n!pip install y\nprint(x)").split("\n")
    ['', 'x = 1', '', 'print(x)']
    """
    try:
        parse(source)
    except PARSE_ERRORS:
        return without_magics(source)
    return source


@once_per_cell
def defined_names(source: str) -> frozenset[str]:
    """Return the names that a cell binds at its top level; none when it is no valid Python."""
    try:
        body = parse(plain_python(source)).body
        return frozenset().union(*(bound_names(statement) for statement in body))
    except PARSE_ERRORS:
        return frozenset()


@once_per_cell
def used_names(source: str) -> frozenset[str]:
    r"""Return the global names that a cell reads, in its functions too; none when it is no valid Python.

    >>> sorted(used_names("def f(x):\n    y = g(x)\n    return y + SIZE"))
    ['SIZE', 'g']
    """
    try:
        parse(source)
        return frozenset(global_reads(source))
    except PARSE_ERRORS:
        return frozenset()


def free_names(source: str) -> frozenset[str]:
    r"""Return the global names that a cell reads and does not bind itself, those of Python among them.

    >>> sorted(free_names("for x in range(3):\n    check(double(x), SIZE)"))
    ['SIZE', 'check', 'double', 'range']
    """
    try:
        symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    except PARSE_ERRORS:
        return frozenset()
    own = {one.get_name() for one in symbols if one.is_assigned() or one.is_imported() or one.is_namespace()}
    return used_names(source) - own


def global_reads(source: str) -> Iterator[str]:
    """Yield the global names that Python text reads, in its functions too."""
    scopes = [symtable.symtable(source, "cell", "exec")]
    while scopes:  # deep nesting must not reach the limit of recursion
        scope = scopes.pop()
        for symbol in scope.get_symbols():
            if symbol.is_referenced() and (scope.get_type() == "module" or symbol.is_global()):
                yield symbol.get_name()
        scopes += scope.get_children()


def bound_names(statement: ast.stmt) -> frozenset[str]:
    """Return the names that a statement of a cell binds, or changes in part."""
    match statement:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return frozenset((alias.asname or alias.name).split(".")[0] for alias in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return frozenset({name})
        case ast.Assign(targets=targets):
            return frozenset(name for target in targets for name in _roots(target))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return frozenset(_roots(target))
    return frozenset()


def _roots(target: ast.expr) -> list[str]:
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _roots(part)]
        case ast.Starred(value=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return _roots(inner)
    return []


def run_cell(source: str, label: str, names: dict[str, Any], whole: str = "") -> object:
    """Run one cell in `names` and return the value of its last expression; `label` names it in tracebacks.

    `whole` is the text of which `source` is a part with the same line numbers, where a cell is run part by part.
    """
    shown = whole or source
    # triton.jit reads a kernel's source, which inspect finds here.
    linecache.cache[label] = (len(shown), None, shown.splitlines(keepends=True), label)
    body = ast.parse(source, label)
    last = body.body[-1] if body.body else None
    if not isinstance(last, ast.Expr):
        run_code(body, label, names)
        return None
    run_code(ast.Module(body.body[:-1], body.type_ignores), label, names)
    return run_code(ast.Expression(last.value), label, names)


def run_code(tree: ast.Module | ast.Expression, label: str, names: dict[str, Any]) -> object:
    """Run statements or an expression; as in a notebook, they may await something."""
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    code: CodeType = compile(tree, label, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    value: object = eval(code, names)
    if code.co_flags & inspect.CO_COROUTINE:
        return _awaited(value)
    return value


def _awaited(coroutine: Any) -> object:
    import asyncio

    class Loop(asyncio.SelectorEventLoop):
        """A loop without the pair of sockets by which threads wake one: a sandbox has none."""

        def _make_self_pipe(self) -> None:
            self._ssock = self._csock = None

        def _close_self_pipe(self) -> None:
            pass

    with asyncio.Runner(loop_factory=Loop) as runner:
        value: object = runner.run(coroutine)
    return value
