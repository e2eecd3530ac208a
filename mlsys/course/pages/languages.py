"""Languages of the book: the words that stand around the text of a page, from `book/_languages/CODE.toml`.

English is what every other language is held against: a word that a language lacks is named, never shown in English.

>>> read_language("en")["quiz"]["right"]
'Right.'
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mlsys.errors import UnknownName, UserError

REPOSITORY = Path(__file__).parents[3]
FOLDER = "book/_languages"
ENGLISH = "en"
DIRECTIONS = ("ltr", "rtl")
_BRACES = re.compile(r"\{\w*\}")


class LanguageError(UserError):
    """A file of words that lacks one, or has one that nothing uses; it names the file and the key."""


@dataclass(frozen=True)
class Language:
    """The words of one language, by the group in which its file has them.

    Attributes:
        code: such as "he", as HTML names the language.
        name: as its readers call it.
        direction: "ltr" or "rtl".
        file: its file, below the repository, for messages.
        groups: its words; those of figures have the English words as their keys.
    """

    code: str
    name: str
    direction: str
    file: str
    groups: Mapping[str, Mapping[str, str]]

    def __getitem__(self, group: str) -> Mapping[str, str]:
        """Return the words of one group, such as "quiz"."""
        return self.groups.get(group, {})

    def said(self, group: str, english: str) -> str:
        """Return what the language says for an English text of a figure or of the theme.

        Raises:
            LanguageError: it says nothing for it.
        """
        if self.code == ENGLISH:
            return english
        if english not in self[group]:
            raise LanguageError(f'{self.file}: [{group}] lacks "{english}": add it with its translation')
        return self[group][english]


def codes(root: Path = REPOSITORY) -> tuple[str, ...]:
    """Return the languages of a repository but English."""
    return tuple(sorted(path.stem for path in (root / FOLDER).glob("*.toml") if path.stem != ENGLISH))


def language_of(page: Path) -> str:
    """Return the language of a page: that of its folder, such as `book/he`, or English."""
    known = (page.parents[1] / Path(FOLDER).name / f"{page.parent.name}.toml").is_file() and page.parent.name
    return known or ENGLISH


def read_language(code: str, root: Path = REPOSITORY) -> Language:
    """Read a language of a repository.

    Raises:
        UnknownName: it has no file.
        LanguageError: its file lacks a word that English has, or has another that English lacks.
    """
    path = root / FOLDER / f"{code}.toml"
    if not path.is_file():
        raise UnknownName.of("language", code, (ENGLISH, *codes(root)))
    return _read(path, path.stat().st_mtime_ns, root)


@cache
def _read(path: Path, changed: int, root: Path) -> Language:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise LanguageError(f"{FOLDER}/{path.name}: {error}") from error
    file = f"{FOLDER}/{path.name}"
    if path.stem != ENGLISH:
        english = tomllib.loads((root / FOLDER / f"{ENGLISH}.toml").read_text(encoding="utf-8"))
        faults = list(_faults(data, english))
        if faults:
            raise LanguageError("; ".join(f"{file}: {fault}" for fault in faults))
    if data.get("direction") not in DIRECTIONS:
        raise LanguageError(f"{file}: direction is {data.get('direction')!r}: write one of {', '.join(DIRECTIONS)}")
    groups: dict[str, Mapping[str, str]] = {}
    for name, words in data.items():
        if isinstance(words, dict):
            groups[name] = words
    return Language(path.stem, data["name"], data["direction"], file, groups)


def _faults(data: dict, english: dict) -> list[str]:
    """What is wrong with the words of a language, beside those of English."""
    faults = [
        f"{key} is missing: English says {word!r}"
        for key, word in english.items()
        if isinstance(word, str) and key not in data
    ]
    for group, words in english.items():
        if isinstance(words, str):
            continue
        own = data.get(group, {})
        for key, word in words.items():
            said = own.get(key, "")
            if not said:
                faults.append(f'[{group}] lacks "{key}": English says "{word}"')
            elif sorted(_BRACES.findall(said)) != sorted(_BRACES.findall(word)):
                faults.append(
                    f'[{group}] "{key}" must have {" ".join(_BRACES.findall(word)) or "no braces"}, as in English'
                )
        faults += [
            f'[{group}] has "{key}", which English lacks: correct the key, or take it out'
            for key in own
            if key not in words
        ]
    return faults
