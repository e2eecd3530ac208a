"""Code as tokens that do not change when names, numbers, comments or the layout do."""

import io
import keyword
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass

from mlsys.core.cells import MAX_PARSED, plain_python

RUN = 16
"""Tokens in a row that count as one thing in common; a call of `tl.arange` in an assignment has ten."""
MAX_CHARACTERS = 10 * MAX_PARSED
"""Characters of one student's code that are compared; cells beyond it, or longer than `MAX_PARSED`, are left out."""

_LEFT_OUT = {tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER}
_LAYOUT = {tokenize.NEWLINE: "newline", tokenize.INDENT: "indent", tokenize.DEDENT: "dedent"}
_VALUES = ("None", "True", "False")
"""Keywords that stand where a number may: a starter has `None` where a number is to be filled in."""
_NAME, _NUMBER, _TEXT = "name", "0", "text"


@dataclass(frozen=True)
class Token:
    """A token as it is compared, and the line of its cell that it is in, counted from 1."""

    kind: str
    line: int


def tokens(source: str) -> list[Token]:
    """Return the tokens of a cell: a name is one of all names, a number one of all numbers.

    Keywords, operators and attributes such as `load` in `tl.load` stay. Comments, docstrings and commas before a
    closing bracket go. Of what is no Python, the tokens until the first error are returned.

    >>> [token.kind for token in tokens("rows = tl.arange(0, TILE)  # of C")]
    ['name', '=', 'name', '.', 'arange', '(', '0', ',', 'name', ')', 'newline']
    """
    found: list[Token] = []
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(plain_python(source)).readline):
            if token.type in _LEFT_OUT:
                continue
            kind = _kind(token, before)
            ends_string = kind == "newline" and before == _TEXT
            if ends_string and (len(found) == 1 or found[-2].kind in _LAYOUT.values()):
                found.pop()  # a string that stands alone
                before = found[-1].kind if found else ""
                continue
            if kind in (")", "]", "}") and before == ",":
                found.pop()
            found.append(Token(kind, token.start[0]))
            before = kind
    except (tokenize.TokenError, SyntaxError):  # IndentationError too
        pass
    return found


def tokens_of(sources: Sequence[str]) -> tuple[list[list[Token]], int]:
    """Return the tokens of each cell, and how many cells are too long to be compared; those have none."""
    room, left_out = MAX_CHARACTERS, 0
    found: list[list[Token]] = []
    for source in sources:
        fits = len(source) <= min(MAX_PARSED, room)
        found.append(tokens(source) if fits else [])
        room -= len(source) if fits else 0
        left_out += not fits
    return found, left_out


def runs(cell: Sequence[Token]) -> list[int]:
    """Return a number for each run of `RUN` tokens, by the place of its first; the same runs have the same number."""
    kinds = [token.kind for token in cell]
    return [hash(tuple(kinds[place : place + RUN])) for place in range(len(kinds) - RUN + 1)]


def _kind(token: tokenize.TokenInfo, before: str) -> str:
    if token.type in _LAYOUT:
        return _LAYOUT[token.type]
    if token.type == tokenize.NUMBER or token.string in _VALUES:
        return _NUMBER
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) or before == "." else _NAME
    # Newer versions of Python split an f-string into parts.
    is_text = token.type == tokenize.STRING or tokenize.tok_name[token.type].startswith("FSTRING")
    return _TEXT if is_text else token.string
