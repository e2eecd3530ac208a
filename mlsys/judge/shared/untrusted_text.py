"""Untrusted text: make what a sandboxed process says safe to show.

A message can contain anything that the student's code knows: terminal codes, a web page, or the inputs of a hidden
test. So every message is made printable and short. Once hidden tests have begun, only the kind of exception and a few
of the student's own lines are kept, as they are in the notebook. A kernel can also shape the messages of the process
that launches it.
"""

import builtins
import re
import unicodedata
from collections.abc import Iterable, Mapping

from mlsys.errors import a_kind
from mlsys.grading.checks.assertions import MAX_SHOWN_CHARACTERS
from mlsys.judge.shared.messages import Cell

MAX_MESSAGE = 2000
"""Longest message, in characters; a diagnosis with a table of constants takes a few hundred."""

MAX_HIDDEN_LINES = 2
"""Most lines of a traceback, and most notes, shown from a hidden test: their numbers could spell its inputs."""

MAX_MARKS = 4
"""Most marks on one letter, such as accents and vowel signs; a pile of them would hide the lines around it."""

_LINE = re.compile(r"(.+), line (\d{1,6})(:| failed\b)")
_KNOWN = {name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, Exception)}
_KNOWN |= {"CompilationError", "InterpreterError", "OutOfResources", "SystemExit", "KeyboardInterrupt"}
_KNOWN |= {"InvalidValue", "UnknownName"}
_BY_VERDICT = {
    "out of bounds": "An access outside a tensor, or a write into an input",
    "needs gpu": "No suitable GPU was free to time this question",
}
_BLANKS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"


def printable(text: str, most: int = MAX_MESSAGE) -> str:
    r"""Return `text` with invisible characters written out, cut to `most` characters.

    >>> printable("red \x1b[31m\r\nnext line")
    'red \\x1b[31m\\r\nnext line'
    """
    shown, marks = [], 0
    for character in text[:most]:
        category = unicodedata.category(character)
        marks = marks + 1 if category[0] == "M" else 0
        if category == "Zs":
            shown.append(" ")
        elif character in "\n\t" or (character.isprintable() and character not in _BLANKS and marks <= MAX_MARKS):
            shown.append(character)
        else:
            shown.append(character.encode("unicode_escape").decode("ascii"))
    written = "".join(shown)
    return written if len(written) <= most and len(text) <= most else written[: most - 3] + "..."


def exception_kind(message: str) -> str:
    """Return the name of the exception that a message begins with, if it is one of Python's or Triton's; or nothing."""
    name = message.split(":", 1)[0]
    return name if name in _KNOWN else ""


def without_inputs(message: str, verdict: str) -> str:
    """Return what is left of a message from a hidden test: the kind of exception.

    >>> without_inputs("ValueError: tile of 37 x 53", "error")
    'ValueError (its text may hold inputs of a hidden test, so it is not shown)'
    """
    name = exception_kind(message) or _BY_VERDICT.get(verdict, "An exception")
    return f"{name} (its text may hold inputs of a hidden test, so it is not shown)"


def long_texts(value: object) -> dict[str, str]:
    """Return the texts that a value and its parts are written as, where they have room for an input, and what each is.

    Texts that are longer than a message are left out: see `without_texts`.

    >>> long_texts({"TILE_M": 16, "TILE_N": "1231 x 77"})
    {"{'TILE_M': 16, 'TILE_N': '1231 x 77'}": 'a dict'}
    """
    found: dict[str, str] = {}

    def keep(part: object) -> int:
        """Keep the texts of a part, and return about how long its own is."""
        if isinstance(part, dict | list | tuple):
            inside = [*part, *part.values()] if isinstance(part, dict) else part
            length = sum(map(keep, inside))
            texts = [repr(part)] if length <= MAX_MESSAGE else []
        else:
            texts = [part, repr(part)] if isinstance(part, str) else [repr(part)]
            length = len(texts[0])
        if texts and length <= MAX_MESSAGE and len(texts[0]) > MAX_SHOWN_CHARACTERS:
            found.update(dict.fromkeys(texts, a_kind(part)))
        return length

    keep(value)
    return found


def without_texts(message: str, texts: Mapping[str, str], verdict: str) -> str:
    """Return a message in which what each of these texts is stands in its place.

    A message that is too long even so may quote a longer text, and becomes a general one.

    >>> without_texts("config() = {'LEAK': 271828}: five keys", {"{'LEAK': 271828}": "a dict"}, "wrong answer")
    'config() = a dict: five keys'
    """
    for text in sorted(texts, key=len, reverse=True):
        message = message.replace(text, texts[text])
    return message if len(message) <= MAX_MESSAGE else without_inputs(message, verdict)


def own_lines(lines: Iterable[str], cells: Iterable[Cell]) -> list[str]:
    """Return the last lines that a traceback names, and the first notes, with their text as the judge has it."""
    sources = {cell.label: cell.source.split("\n") for cell in cells}
    found: dict[str, list[str]] = {":": [], " failed": []}
    for line in lines:
        match = _LINE.match(line)
        if match is None or not 1 <= int(match[2]) <= len(sources.get(match[1], ())):
            continue
        label, number, how = match.groups()
        text = f"{label}, line {int(number)}{how} {sources[label][int(number) - 1].strip()}".rstrip()
        if text not in found[how]:
            found[how].append(text)
    return found[":"][-MAX_HIDDEN_LINES:] + found[" failed"][:MAX_HIDDEN_LINES]
