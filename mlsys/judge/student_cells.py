"""Select the statements of a submission that a question needs.

Answer cells run whole. Of added cells, only imports, definitions and assignments can run, and only those whose
names the answers or the tests use, so that an exploratory cell that fails or never ends does no harm. The lab's
own cells outside its questions are treated in the same way.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace

from mlsys.core.cells import PARSE_ERRORS, bound_names, global_reads, once_per_cell, parse, plain_python

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


@dataclass(frozen=True)
class AddedCell:
    """A cell of which single statements may run: its text, and the names that these bind and use.

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
        """Return the same cell without the statements that bind one of `names`."""
        kept = [(bind, use) for bind, use in zip(self.binds, self.uses, strict=True) if not bind[1] & names]
        return replace(self, binds=tuple(bind for bind, _ in kept), uses=tuple(use for _, use in kept))


@once_per_cell
def read_added(source: str) -> AddedCell:
    """Read the statements of a cell that may run; none if it is not valid Python, or nested too deeply."""
    text = plain_python(source)
    try:
        body = parse(text).body
        lines = text.split("\n")
        kept = [(index, statement) for index, statement in enumerate(body) if isinstance(statement, _KEPT)]
        return AddedCell(
            text,
            tuple((index, bound_names(statement)) for index, statement in kept),
            tuple(_uses(statement, lines) for _, statement in kept),
            tuple(statement.lineno for statement in body if isinstance(statement, _LEFT_OUT)),
        )
    except PARSE_ERRORS:
        return AddedCell(text)


def _uses(statement: ast.stmt, lines: Sequence[str]) -> frozenset[str]:
    """Return the global names that a statement of the cell with these lines reads."""
    read = set()
    scoped = False
    for node in ast.walk(statement):
        scoped = scoped or type(node) in _SCOPES
        if type(node) is ast.Name and type(node.ctx) is ast.Load:
            read.add(node.id)
    if scoped:
        try:
            return frozenset(global_reads(_text_of(statement, lines)))
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
    """Select from each cell the statements that bind `names`, or the names that these statements use, and so on."""
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
