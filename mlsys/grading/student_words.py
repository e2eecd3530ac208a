"""What a student's process says in words, as far as it may be shown.

A message can hold whatever the student's code knows: terminal codes, a web page, or in a hidden test its inputs. So
every message is made printable and short, and of what is said in a hidden test only the kind of exception and the
student's own lines are kept, as they stand in the notebook.
"""

import builtins
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

MAX_MESSAGE = 2000
"""Characters of a message: a diagnosis with a table of constants takes a few hundred."""

_LINE = re.compile(r"(.+), line (\d+)(:| failed\b)")
_KNOWN = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
_KNOWN |= {"CompilationError", "InterpreterError", "OutOfResources", "SystemExit", "KeyboardInterrupt"}


def printable(text: str, most: int = MAX_MESSAGE) -> str:
    r"""`text` with what is no visible character written out, and cut to `most` characters.

    >>> printable("red \x1b[31m\r\nnext line")
    'red \\x1b[31m\\r\nnext line'
    """
    shown = "".join(
        character if character in "\n\t" or unicodedata.category(character)[0] != "C" else _written_out(character)
        for character in text[:most]
    )
    return shown if len(shown) <= most and len(text) <= most else shown[: most - 3] + "..."


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def without_inputs(message: str, verdict: str) -> str:
    """What is left of a message from a hidden test: the kind of exception.

    >>> without_inputs("ValueError: tile of 37 x 53", "error")
    'ValueError (its text may hold inputs of a hidden test, so it is not shown)'
    """
    kind = message.split(":", 1)[0]
    name = kind if kind in _KNOWN else {"out of bounds": "A write outside the result, or into an input"}.get(verdict)
    return f"{name or 'An exception'} (its text may hold inputs of a hidden test, so it is not shown)"


def own_lines(lines: Iterable[str], cells: Iterable[Mapping[str, Any]]) -> list[str]:
    """The lines that a traceback names, as the judge has them and not as a process tells them."""
    sources = {cell["label"]: cell["source"].split("\n") for cell in cells}
    found = []
    for line in lines:
        match = _LINE.match(line)
        if match is None or not 1 <= int(match[2]) <= len(sources.get(match[1], ())):
            continue
        label, number, how = match.groups()
        found.append(f"{label}, line {number}{how} {sources[label][int(number) - 1].strip()}".rstrip())
    return found
