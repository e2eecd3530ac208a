r"""The prose of a chapter in plain Markdown, which Colab and Jupyter show without the book's own markup.

>>> plain = PlainMarkdown("page.md", numbers={"time": "0.44 ms"})
>>> print(plain.convert("It takes {glue:text}`time` per {term}`tile <tile>`."))
It takes 0.44 ms per tile.
>>> print(plain.convert(":::{dropdown} Answer\nYes.\n:::"))
<details><summary>Answer</summary>
<BLANKLINE>
Yes.
<BLANKLINE>
</details>
"""

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from mlsys.course.pages.languages import ENGLISH, Language, read_language
from mlsys.course.pages.quiz import read_quiz
from mlsys.errors import UserError

BOXES = ("admonition", "important", "note", "tip", "warning")
"""Directives that become a block quote with a bold title; `dropdown` becomes a fold."""
LEFT_OUT = ("interactive",)
"""Directives that only a page can show, such as a control that needs its script."""
_ROLE = re.compile(r"\{([\w:-]+)\}`([^`]+)`")
_OPEN = re.compile(r"(:{3,})\{([\w-]+)\}\s*(.*)")
_FENCE = re.compile(r"`{3,}\{([\w-]+)\}\s*(.*)")
_OPTION = re.compile(r":(?P<name>[\w-]+):\s*(?P<value>.*)")
_LABEL = re.compile(r"\([\w-]+\)=\s*")
_PAGE_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


class PlainMarkdown:
    """Turns MyST into plain Markdown for one page; markup that it does not know is refused, never passed on raw."""

    def __init__(
        self,
        page: str,
        numbers: Mapping[str, str],
        bibliography: Path | None = None,
        figures: Sequence[str] = (),
        sections: Mapping[str, str] | None = None,
        language: Language | None = None,
    ) -> None:
        """Take what the page's markup refers to: numbers, works, figures, and titles of sections by their labels."""
        self.page = page
        self.sections = dict(sections or {})
        said = language or read_language(ENGLISH)
        self.words, self._frame = said["predict"], said["notebook"]
        self._right: dict[str, str] = {}  # letters of the predictions that came so far
        self.numbers = numbers
        self.figures = list(figures)
        self._bibliography = bibliography
        self._roles: dict[str, Callable[[str], str]] = {
            "glue:text": self._number,
            "numref": lambda label: self._frame["figure"].format(number=self.figures.index(label) + 1),
            "term": _shown,
            "ref": _shown,
            "doc": _shown,
            "index": lambda text: text,
            "cite:p": lambda keys: f"({'; '.join(self._cited(key, '{}, {}') for key in keys.split(','))})",
            "cite:t": lambda key: self._cited(key, "{} ({})"),
        }

    def convert(self, text: str) -> str:
        """The same prose without MyST roles, directives, labels, comments and links to other pages.

        Raises:
            UserError: for a role or directive that has no plain form, or a number that the page never computed.
        """
        lines: list[str] = []
        closings: list[tuple[str, str]] = []  # of the open directives: the colons that end it, what to write there
        source = deque(text.splitlines())
        while source:
            line = source.popleft()
            fence = _FENCE.fullmatch(line)
            opened = _OPEN.fullmatch(line)
            if fence:
                body = "\n".join(_taken(source, "```"))
                lines += [self._interactive(fence[2])] if fence[1] == "interactive" else self._fenced(fence[1], body)
            elif opened and opened[2] == "interactive":
                _taken(source, opened[1])
                lines.append(self._interactive(opened[3]))
            elif opened:
                colons, name, title = opened.groups()
                options = {}
                while source and (option := _OPTION.fullmatch(source[0])):
                    options[option["name"]] = option["value"]
                    source.popleft()
                before, after = self._box(name, title, options)
                lines += before
                closings.append((colons, after))
            elif closings and line == closings[-1][0]:
                lines += ["", closings.pop()[1]]
            elif not line.startswith("%") and not _LABEL.fullmatch(line):
                lines.append(self._inline(line))
        return "\n".join(lines)

    def _box(self, name: str, title: str, options: Mapping[str, str]) -> tuple[list[str], str]:
        if name in ("predict", "settled"):
            return self._prediction(title, options) if name == "predict" else self._settled(title)
        title = self._inline(title)
        if name == "dropdown":
            return [f"<details><summary>{title}</summary>", ""], "</details>"
        if name in BOXES:
            return [f"**{title or name.capitalize()}**"], "---"
        known = ", ".join(("dropdown", "predict", "settled", *BOXES))
        raise UserError(f"{self.page}: a notebook cannot show the directive {name!r}; use one of {known}")

    def _prediction(self, name: str, options: Mapping[str, str]) -> tuple[list[str], str]:
        """A prediction: its title, and after its choices where the answer is."""
        self._right[name] = options.get("right", "")
        label = options.get("settled", "")
        if label not in self.sections:
            raise UserError(
                f"{self.page}: prediction {name!r} is settled in {label!r}, which is no section of the page"
            )
        where = self.words["where"].format(section=f"*{self._inline(self.sections[label])}*")
        return [f"**{self.words['title']}**"], f"{where}\n\n---"

    def _settled(self, name: str) -> tuple[list[str], str]:
        if name not in self._right:
            raise UserError(f"{self.page}: {name!r} is settled without a prediction before it")
        return [f"**{self.words['answer'].format(letter=self._right[name])}**", ""], "---"

    def _fenced(self, name: str, body: str) -> list[str]:
        """A directive between backticks: a quiz becomes a list of choices, with the answers in a fold."""
        if name in LEFT_OUT:
            return []
        if name != "quiz":
            known = ", ".join(("quiz", *LEFT_OUT))
            raise UserError(
                f"{self.page}: a notebook cannot show the directive {name!r} between backticks; use {known}"
            )
        quiz = read_quiz(body)
        texts = [self._inline(choice.text) for choice in quiz.choices]
        right = f"**{self._frame['right']}** "
        answers = [
            f"- *{text}*: {right if choice.right else ''}{self._inline(choice.feedback)}"
            for text, choice in zip(texts, quiz.choices, strict=True)
        ]
        shown = [f"**{self._inline(quiz.question)}**", "", *(f"- {text}" for text in texts), ""]
        return [*shown, f"<details><summary>{self._frame['answers']}</summary>", "", *answers, "", "</details>"]

    def _interactive(self, name: str) -> str:
        """What stands for a figure that the reader operates: its script and its caption have no place in a notebook."""
        return f"*{self._frame['interactive'].format(name=name)}*"

    def _inline(self, line: str) -> str:
        if "[](" in line:
            raise UserError(f"{self.page}: a link without text shows nothing in a notebook: give it one, in {line!r}")
        return _PAGE_LINK.sub(r"\1", _ROLE.sub(self._role, line))

    def _role(self, found: re.Match[str]) -> str:
        name, text = found.groups()
        if name not in self._roles:
            known = ", ".join(self._roles)
            raise UserError(f"{self.page}: a notebook cannot show the role {name!r} of {text!r}; use one of {known}")
        return self._roles[name](text)

    def _number(self, name: str) -> str:
        if name not in self.numbers:
            raise UserError(f"{self.page}: no cell computes the number {name!r}; it has {', '.join(self.numbers)}")
        return self.numbers[name]

    @cached_property
    def _works(self) -> dict[str, tuple[str, str]]:
        """Authors and year of each work of the bibliography."""
        from pybtex.database import parse_file

        works = {}
        for key, entry in parse_file(str(self._bibliography)).entries.items():
            names = [" ".join(person.last_names) for person in entry.persons["author"]]
            authors = {1: names[0], 2: " and ".join(names)}.get(len(names), f"{names[0]} et al.")
            works[key] = (authors, entry.fields["year"])
        return works

    def _cited(self, key: str, form: str) -> str:
        if key not in self._works:
            raise UserError(f"{self.page}: cites {key!r}, which {self._bibliography} does not have")
        return form.format(*self._works[key])


def _taken(source: deque[str], end: str) -> list[str]:
    """Take lines up to the one that ends a directive, which is taken as well."""
    taken = []
    while source and (line := source.popleft()).strip() != end:
        taken.append(line)
    return taken


def _shown(text: str) -> str:
    """The visible part of `text <target>`."""
    return text.split("<")[0].strip() or text
