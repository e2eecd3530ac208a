"""What of a student's cells runs when a question is graded.

Answer cells run whole. Of added cells only imports, definitions and assignments can run, and of these only the ones
whose names the answers use, so that an exploratory cell that fails or never ends costs nothing.
"""

import ast
import re
import symtable
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_RUNS_BELOW = ("%%time", "%%timeit", "%%capture", "%%prun")
_KEPT = (
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
)
_LEFT_OUT = (ast.If, ast.For, ast.While, ast.With, ast.Try)
_MAGIC = re.compile(r"^\s*(![\w(./]|%[a-z_]\w*(\s|$))")
_PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


MAX_PARSED = 20_000
"""Characters of a cell: Python's parser takes time that grows with the square of some, 0.1 s for this many."""
_once_per_cell = lru_cache(maxsize=2000)  # recognising cells and every question ask for the same ones again


def parse(source: str) -> ast.Module:
    """The syntax tree of a student's cell.

    Raises:
        ValueError: it is longer than `MAX_PARSED`.
        SyntaxError: it is no valid Python; other errors of `ast.parse` for what is nested too deeply.
    """
    if len(source) > MAX_PARSED:
        raise ValueError(
            f"a cell of {len(source):,} characters; the limit is {MAX_PARSED:,}: take pasted data out of it"
        )
    return ast.parse(source)


@dataclass(frozen=True)
class AddedCell:
    """A cell that the student added: its text, and the statements of it that may run, by the names they bind."""

    source: str
    binds: tuple[tuple[int, frozenset[str]], ...]
    uses: tuple[frozenset[str], ...]


@_once_per_cell
def plain_python(source: str) -> str:
    r"""`source` without the lines that only a notebook understands; line numbers stay.

    >>> plain_python("%%time\nx = 1\n!pip install y\nprint(x)").split("\n")
    ['', 'x = 1', '', 'print(x)']
    """
    try:
        parse(source)
    except _PARSE_ERRORS:
        return _without_magics(source)
    return source


def _without_magics(source: str) -> str:
    lines = source.split("\n")
    first = lines[0].split()[:1]
    if first and first[0].startswith("%%"):
        if first[0] not in _RUNS_BELOW:
            return "\n" * (len(lines) - 1)
        lines[0] = ""
    return "\n".join("" if _MAGIC.match(line) else line for line in lines)


@_once_per_cell
def defined_names(source: str) -> frozenset[str]:
    """Names that a cell binds at its top level; none when it is no valid Python."""
    try:
        body = parse(plain_python(source)).body
        return frozenset().union(*(_bound(statement) for statement in body))
    except _PARSE_ERRORS:
        return frozenset()


@_once_per_cell
def read_added(source: str) -> AddedCell:
    """The statements of an added cell that may run; none when it is no valid Python, or nested too deeply."""
    text = plain_python(source)
    try:
        body = parse(text).body
        kept = [(index, statement) for index, statement in enumerate(body) if isinstance(statement, _KEPT)]
        return AddedCell(
            text,
            tuple((index, _bound(statement)) for index, statement in kept),
            tuple(used_names(ast.unparse(statement)) for _, statement in kept),
        )
    except _PARSE_ERRORS:
        return AddedCell(text, (), ())


def left_out(source: str) -> list[int]:
    """First lines of the loops, conditions and other blocks of an added cell, which do not run."""
    try:
        body = parse(plain_python(source)).body
    except _PARSE_ERRORS:
        return []
    return [statement.lineno for statement in body if isinstance(statement, _LEFT_OUT)]


@_once_per_cell
def used_names(source: str) -> frozenset[str]:
    r"""Global names that a cell reads, in its functions too; none when it is no valid Python.

    >>> sorted(used_names("def f(x):\n    y = g(x)\n    return y + SIZE"))
    ['SIZE', 'g']
    """
    try:
        parse(source)
        table = symtable.symtable(source, "cell", "exec")
    except _PARSE_ERRORS:
        return frozenset()
    found: set[str] = set()

    def visit(scope: symtable.SymbolTable) -> None:
        for symbol in scope.get_symbols():
            if symbol.is_referenced() and (scope.get_type() == "module" or symbol.is_global()):
                found.add(symbol.get_name())
        for inner in scope.get_children():
            visit(inner)

    visit(table)
    return frozenset(found)


def needed_statements(added: list[AddedCell], answers: Iterable[str]) -> list[list[int]]:
    """For each added cell, which of its statements the answers need, directly or through other added cells."""
    binding: dict[str, list[tuple[int, int, frozenset[str]]]] = defaultdict(list)
    for number, cell in enumerate(added):
        for (index, binds), uses in zip(cell.binds, cell.uses, strict=True):
            for name in binds:
                binding[name].append((number, index, uses))
    open_names = ["*", *(name for source in answers for name in used_names(plain_python(source)))]
    chosen: set[tuple[int, int]] = set()
    while open_names:
        for number, index, uses in binding.pop(open_names.pop(), ()):
            if (number, index) not in chosen:
                chosen.add((number, index))
                open_names += uses
    return [[index for index, _ in cell.binds if (number, index) in chosen] for number, cell in enumerate(added)]


def _bound(statement: ast.stmt) -> frozenset[str]:
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
