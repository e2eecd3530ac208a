r"""Predictions of a chapter: a question with lettered choices before the text, settled in a later section.

>>> prediction = read_prediction("Which is larger?\n\n- (a) one\n- (b) two\n", right="b", settled="larger-settled")
>>> prediction.letters
('a', 'b')
"""

import re
from dataclasses import dataclass

from mlsys.errors import UserError

_ITEM = re.compile(r"^[-*+][ ]+(?P<text>.*)$", re.M)
_LETTER = re.compile(r"\((?P<letter>\w)\)[ ]+\S")


class PredictionError(UserError, ValueError):
    """A prediction that cannot be shown: what is wrong with it, and how to mend it."""


@dataclass(frozen=True)
class Prediction:
    """The letters that can be chosen, the right one, and the label of the section that settles the question."""

    letters: tuple[str, ...]
    right: str
    settled: str


def read_prediction(body: str, right: str, settled: str) -> Prediction:
    """Return the prediction that is written in the body and the options of a `{predict}` directive.

    Args:
        body: Markdown with one list, each item of which begins with its letter: `- (a) one choice`.
        right: the letter of the right choice.
        settled: the label of the section that holds the `{settled}` directive.

    Raises:
        PredictionError: for fewer than two choices, a choice without a letter, a letter given twice, a right letter
            that is none of them, or a missing option.
    """
    letters = []
    for item in _ITEM.finditer(body):
        found = _LETTER.match(item["text"])
        if not found:
            raise PredictionError(
                f"the choice {item['text']!r} has no letter: begin it with `- (a) `, `- (b) ` and so on"
            )
        letters.append(found["letter"])
    if len(letters) < 2:
        raise PredictionError("it has fewer than two choices: list them as `- (a) ...`, each on a line of its own")
    twice = [letter for letter in letters if letters.count(letter) > 1]
    if twice:
        raise PredictionError(f"two of its choices have the letter ({twice[0]}): give each its own")
    if right not in letters:
        known = ", ".join(letters)
        said = f"`:right: {right}` names none of its choices" if right else "it does not say which choice is right"
        raise PredictionError(f"{said}: write `:right:` with one of {known}")
    if not settled:
        raise PredictionError("it does not say where it is settled: write `:settled:` with the label of that section")
    return Prediction(tuple(letters), right, settled)
