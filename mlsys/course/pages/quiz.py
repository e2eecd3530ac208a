r"""Self-checks of a page: one question, its choices, one of them right, and feedback on each.

>>> quiz = read_quiz('''
... question: Which is smaller?
... choices:
...   - text: 1
...     right: true
...     feedback: One comes first.
...   - text: 2
...     right: false
...     feedback: Two comes after one.
... ''')
>>> [choice.text for choice in quiz.choices if choice.right]
['1']
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from mlsys.errors import UserError

_COMMENT = re.compile(r"(?:^|(?<=\s))#", re.M)


class QuizError(UserError, ValueError):
    """A quiz that cannot be shown: what is wrong with it, and how to mend it."""


@dataclass(frozen=True)
class Choice:
    """One answer that can be chosen; `text` and `feedback` are inline MyST."""

    text: str
    right: bool
    feedback: str


@dataclass(frozen=True)
class Quiz:
    """A question and its choices, in the order in which they are shown."""

    question: str
    choices: tuple[Choice, ...]


def read_quiz(body: str) -> Quiz:
    """The quiz that is written in the body of a `{quiz}` directive.

    Args:
        body: YAML with `question` and `choices`, each choice with `text`, `right` and `feedback`.

    Raises:
        QuizError: for YAML that cannot be read, a missing or unknown key, fewer than two choices, or not exactly one
            right choice.
    """
    data = _load(body)
    _check_keys(data, ("question", "choices"), "the quiz")
    if not isinstance(data["choices"], list) or len(data["choices"]) < 2:
        raise QuizError("it has fewer than two choices: list them under `choices:`, each beginning with `- text:`")
    choices = tuple(_choice(entry, place) for place, entry in enumerate(data["choices"], 1))
    right = [place for place, choice in enumerate(choices, 1) if choice.right]
    if len(right) != 1:
        found = f"choices {', '.join(map(str, right))} are" if right else "no choice is"
        raise QuizError(f"{found} marked right: give exactly one `right: true` and the others `right: false`")
    return Quiz(_text(data["question"], "the question"), choices)


def _load(body: str) -> Mapping[str, Any]:
    try:
        data = yaml.safe_load(body)
        scalars = [token for token in yaml.scan(body) if isinstance(token, yaml.ScalarToken)]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in its line {mark.line + 1}" if mark else ""
        raise QuizError(
            f"its YAML cannot be read{place}: put a text that holds ': ' or begins with {{, [, *, ` or & into "
            "quotes, or on lines of its own after `>-`"
        ) from error
    for found in _COMMENT.finditer(body):
        if not any(token.start_mark.index <= found.start() < token.end_mark.index for token in scalars):
            line = body[: found.start()].count("\n") + 1
            raise QuizError(f"the # in its line {line} begins a comment and cuts the text: put the text into quotes")
    if not isinstance(data, Mapping):
        raise QuizError("it is empty or no mapping: write `question:` and `choices:`")
    return data


def _choice(entry: Any, place: int) -> Choice:
    name = f"choice {place}"
    if not isinstance(entry, Mapping):
        raise QuizError(f"{name} is no mapping: write `- text:`, `right:` and `feedback:`")
    _check_keys(entry, ("text", "right", "feedback"), name)
    if not isinstance(entry["right"], bool):
        raise QuizError(f"{name} has `right: {entry['right']}`: write `right: true` or `right: false`")
    return Choice(
        _text(entry["text"], f"the text of {name}"), entry["right"], _text(entry["feedback"], f"the feedback of {name}")
    )


def _check_keys(entry: Mapping[str, Any], known: tuple[str, ...], name: str) -> None:
    missing = [key for key in known if entry.get(key) in (None, "")]
    if missing:
        raise QuizError(f"{name} has no {' and no '.join(missing)}: each quiz needs {', '.join(known)} there")
    unknown = [str(key) for key in entry if key not in known]
    if unknown:
        raise QuizError(f"{name} has unknown keys {', '.join(unknown)}: allowed are {', '.join(known)}")


def _text(value: Any, name: str) -> str:
    """A text, or a whole number as text; what YAML reads as anything else needs quotes to be a text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise QuizError(f"{name} is read as {value!r}, not as text: put it into quotes")
    return " ".join(str(value).split())
