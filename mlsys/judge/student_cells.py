"""Select the statements of a submission that a question needs.

Answer cells run whole. Of added cells only imports, definitions and assignments can run, and of these only the ones
whose names the answers or the tests use, so that an exploratory cell that fails or never ends costs nothing. The lab's
own cells outside its questions are treated in the same way.
"""

import ast
import symtable
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from mlsys.core.magics import without_magics

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
_SCOPES = frozenset(
    (
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Lambda,
        ast.ListComp,
        ast.SetComp,
        ast.DictComp,
        ast.GeneratorExp,
    )
)
PARSE_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError)


MAX_PARSED = 20_000
"""Characters of a cell: Python's parser takes time that grows with the square of some, 0.1 s for this many."""
_once_per_cell = lru_cache(maxsize=2000)  # recognising cells and every question ask for the same ones again


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


@dataclass(frozen=True)
class AddedCell:
    """A cell of which single statements may run: its text, and what these bind and use.

    Attributes:
        source: the text as plain Python.
        binds: for each statement that may run, its number in the cell and the names that it binds.
        uses: for each of these, the global names that it reads.
        left_out: first lines of the loops, conditions and other blocks of the cell, which do not run.
    """

    source: str
    binds: tuple[tuple[int, frozenset[str]], ...] = ()
    uses: tuple[frozenset[str], ...] = ()
    left_out: tuple[int, ...] = ()

    def without(self, names: Set[str]) -> "AddedCell":
        """The same cell without the statements that bind one of `names`."""
        kept = [(bind, use) for bind, use in zip(self.binds, self.uses, strict=True) if not bind[1] & names]
        return replace(self, binds=tuple(bind for bind, _ in kept), uses=tuple(use for _, use in kept))


@_once_per_cell
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


@_once_per_cell
def defined_names(source: str) -> frozenset[str]:
    """Return the names that a cell binds at its top level; none when it is no valid Python."""
    try:
        body = parse(plain_python(source)).body
        return frozenset().union(*(_bound(statement) for statement in body))
    except PARSE_ERRORS:
        return frozenset()


@_once_per_cell
def read_added(source: str) -> AddedCell:
    """Read the statements of a cell that may run; none when it is no valid Python, or nested too deeply."""
    text = plain_python(source)
    try:
        body = parse(text).body
        lines = text.split("\n")
        kept = [(index, statement) for index, statement in enumerate(body) if isinstance(statement, _KEPT)]
        return AddedCell(
            text,
            tuple((index, _bound(statement)) for index, statement in kept),
            tuple(_uses(statement, lines) for _, statement in kept),
            tuple(statement.lineno for statement in body if isinstance(statement, _LEFT_OUT)),
        )
    except PARSE_ERRORS:
        return AddedCell(text)


@_once_per_cell
def used_names(source: str) -> frozenset[str]:
    r"""Return the global names that a cell reads, in its functions too; none when it is no valid Python.

    >>> sorted(used_names("def f(x):\n    y = g(x)\n    return y + SIZE"))
    ['SIZE', 'g']
    """
    try:
        parse(source)
        return frozenset(_global_reads(source))
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


def _global_reads(source: str) -> Iterator[str]:
    scopes = [symtable.symtable(source, "cell", "exec")]
    while scopes:  # deep nesting must not reach the limit of recursion
        scope = scopes.pop()
        for symbol in scope.get_symbols():
            if symbol.is_referenced() and (scope.get_type() == "module" or symbol.is_global()):
                yield symbol.get_name()
        scopes += scope.get_children()


def _uses(statement: ast.stmt, lines: Sequence[str]) -> frozenset[str]:
    """The global names that a statement of the cell with these lines reads."""
    read = set()
    scoped = False
    for node in ast.walk(statement):
        scoped = scoped or type(node) in _SCOPES
        if type(node) is ast.Name and type(node.ctx) is ast.Load:
            read.add(node.id)
    if scoped:
        try:
            return frozenset(_global_reads(_text_of(statement, lines)))
        except SyntaxError:  # such as brackets round a decorator, which begin above it
            pass
    return frozenset(read)


def _text_of(statement: ast.stmt, lines: Sequence[str]) -> str:
    end_line, end = statement.end_lineno or statement.lineno, statement.end_col_offset
    start_line, start = statement.lineno, statement.col_offset
    if decorators := getattr(statement, "decorator_list", ()):
        start_line, start = decorators[0].lineno, 0
    text = [line.encode() for line in lines[start_line - 1 : end_line]]  # the tree counts in bytes of UTF-8
    text[-1] = text[-1][:end]
    text[0] = text[0][start:]
    return b"\n".join(text).decode()


def needed_statements(cells: Sequence[AddedCell], names: Iterable[str]) -> list[list[int]]:
    """For each cell, select the statements that bind `names`, or what such statements use in their turn."""
    binding: dict[str, list[tuple[int, int, frozenset[str]]]] = defaultdict(list)
    for number, cell in enumerate(cells):
        for (index, binds), uses in zip(cell.binds, cell.uses, strict=True):
            for name in binds:
                binding[name].append((number, index, uses))
    open_names = ["*", *names]
    chosen: set[tuple[int, int]] = set()
    while open_names:
        for number, index, uses in binding.pop(open_names.pop(), ()):
            if (number, index) not in chosen:
                chosen.add((number, index))
                open_names += uses
    return [[index for index, _ in cell.binds if (number, index) in chosen] for number, cell in enumerate(cells)]


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
