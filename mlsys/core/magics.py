r"""Notebook syntax that is not Python: magics, shell commands, questions about names, and what stands in for them.

A notebook hands each cell to IPython, which rewrites these lines before Python sees them. Here they are replaced by
something harmless on the same line, so that the rest of the cell runs and line numbers stay. IPython's own rewriting
takes time that grows with the square of a hostile cell; this takes time in proportion to its length.
"""

import ast
import re
from typing import Any

_RUNS_BELOW = ("%%time", "%%timeit", "%%capture", "%%prun")
"""Cell magics whose cell is Python and runs in the notebook; the cells of others belong to another program."""

_TOKEN = re.compile(
    r"""
    (?P<comment> \#[^\n]*+ )
    | (?P<text> ''' | \"\"\" )
    | (?P<string> '(?:[^'\\\n]|\\.)*+'? | "(?:[^"\\\n]|\\.)*+"? )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    | (?P<joined> \\\n )
    | (?P<end> \n )
    | (?P<assigned> =[ \t]*+(?=[!%]) )
    | [^'"\#()\[\]{}\\\n=]++ | .
    """,
    re.VERBOSE | re.DOTALL,
)  # a string without an end is read once, and not again from each of its quotes
_REST_OF_TEXT = {
    mark: re.compile(rf"(?:[^\\{mark}]|\\.|{mark}(?!{mark}{mark}))*+(?:{mark * 3})?", re.DOTALL) for mark in "'\""
}
_LINE = re.compile(r"[^\n]*+")
_JOINED_LINES = re.compile(r"(?:[^\\\n]|\\.|\\\Z)*+", re.DOTALL)
MAX_TIMED = 1000
"""Most characters after `%time` that are read as a statement of their own."""

_TIMED = re.compile(r"%time[ \t]++(?!-)")
_BINDS = (ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.AugAssign)


def without_magics(source: str) -> str:
    r"""Return a cell in which plain Python stands in for what only a notebook understands; line numbers stay.

    A command leaves nothing, or `pass` where a block may need a statement; what is assigned from a shell command is an
    empty list, and what is assigned from a magic a `NoNotebook`. `%time` is what it times, where that binds names.

    >>> without_magics("%%time\nif x:\n    !pip install y\nz = !ls\n%time w = f(2)").split("\n")
    ['', 'if x:', '    pass', 'z = []', 'w = f(2)']
    """
    lines = source.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    lines = [line.removeprefix(indent) for line in lines]
    if lines[first].startswith("%%"):
        if lines[first].split()[0] not in _RUNS_BELOW:
            return "\n" * (len(lines) - 1)
        lines[first] = ""
    return _replaced("\n".join(lines))


def _replaced(source: str) -> str:
    parts, position = [], 0
    while position < len(source):
        line = _LINE.match(source, position)
        assert line is not None
        if _is_command(line[0]):
            command = _JOINED_LINES.match(source, position)
            assert command is not None
            part, position = _stand_in(command[0]), command.end()
        else:
            part, position = _statement(source, position)
        parts.append(part)
        if position < len(source):
            parts.append("\n")
            position += 1
    return "".join(parts)


def _is_command(line: str) -> bool:
    line = line.strip()
    return line.startswith(("!", "%", "?")) or (line.endswith("?") and not any(mark in line for mark in "'\"#"))


def _stand_in(command: str) -> str:
    text = command.lstrip()
    indent = command[: len(command) - len(text)]
    lost = "\n" * command.count("\n")
    if (timed := _TIMED.match(text)) and not lost and len(text) <= MAX_TIMED:
        rest = text[timed.end() :]
        try:
            if isinstance(ast.parse(rest).body[0], _BINDS):
                return indent + rest
        except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError):
            pass
    return (f"{indent}pass" if indent else "") + lost


def _statement(source: str, start: int) -> tuple[str, int]:
    """Return one statement with all its lines, and where it ends."""
    depth, position = 0, start
    while position < len(source):
        token = _TOKEN.match(source, position)
        assert token is not None
        if token["end"] and depth == 0:
            return source[start:position], position
        position = token.end()
        if token["text"]:
            rest = _REST_OF_TEXT[token["text"][0]].match(source, position)
            assert rest is not None
            position = rest.end()
        elif token["open"]:
            depth += 1
        elif token["close"]:
            depth = max(0, depth - 1)
        elif token["assigned"] and depth == 0:
            command = _JOINED_LINES.match(source, position)
            assert command is not None
            return source[start:position] + _value(command[0]), command.end()
    return source[start:], len(source)


def _value(command: str) -> str:
    """Return what is assigned in place of the outcome of a command."""
    lost = "\n" * command.count("\n")
    if command.startswith("!"):
        return "[]" + lost
    if (timed := _TIMED.match(command)) and not lost:
        return command[timed.end() :]
    return "get_ipython()" + lost


class NoNotebook:
    """What stands in for IPython, and for what its magics return: everything can be asked of it, and nothing happens.

    It has the numbers of a `%timeit -o` that took one second, for code that computes with them.
    """

    best = worst = average = 1.0
    stdev = compile_time = 0.0
    loops = repeat = 1
    all_runs = timings = (1.0,)

    def __getattr__(self, name: str) -> "NoNotebook":
        if name.startswith("__"):  # what Python itself looks for
            raise AttributeError(name)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> "NoNotebook":
        """Do nothing."""
        return self

    def __getitem__(self, key: object) -> "NoNotebook":
        return self

    def __contains__(self, item: object) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())


def notebook_names() -> dict[str, Any]:
    """Return the names that a notebook has without an import."""
    here = NoNotebook()
    return {"get_ipython": here, "display": here}
