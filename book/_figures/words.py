"""Words of figures in the language of the page: `said("copy in")`. The functions that draw say them in English.

A translated page chooses its language once, by `use("he")`; the words are in `book/_languages/he.toml` under
`[figures]`.
"""

import tomllib
from pathlib import Path

from mlsys.errors import UserError

FOLDER = Path(__file__).parents[1] / "_languages"

_language: dict = {"code": "en", "direction": "ltr", "figures": {}}


def use(code: str) -> None:
    """Draw the figures that follow with the words of a language."""
    _language.update(tomllib.loads((FOLDER / f"{code}.toml").read_text(encoding="utf-8")), code=code)


def said(english: str) -> str:
    """Return a text of a figure in the language of the page.

    Raises:
        UserError: the language has no word for it.
    """
    if _language["code"] == "en":
        return english
    if english not in _language["figures"]:
        key = english.replace("\n", "\\n")
        raise UserError(
            f'book/_languages/{_language["code"]}.toml: [figures] lacks "{key}": add it with its translation'
        )
    return str(_language["figures"][english])


def with_words(text: str, *english: str) -> str:
    """Return a text, such as the label of a record, with these English words of it in the language of the page."""
    for word in english:
        text = text.replace(word, said(word))
    return text


def amount(number: str, unit: str) -> str:
    """Return a number and its unit; among words from right to left they are isolated, so that they keep this order."""
    return f"\u2066{number} {unit}\u2069" if from_the_right() else f"{number} {unit}"


def from_the_right() -> bool:
    """Whether the language of the page is written from right to left."""
    return bool(_language["direction"] == "rtl")
