"""The rubric of a question: points, each with a comment, that are kept and used again.

A question without a kept rubric has the one in the lab's `README.md`, under a heading such as "Rubric for d-why (5
points)", with lines such as "- 2: what is lost".
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlsys.classroom.store.codec import Unreadable, decode, encode
from mlsys.core.files import write_atomically
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError

MAX_TEXT = 1000
"""Most characters of a comment in a rubric."""

_HEADING = re.compile(r"^## Rubric for (\S+) ")
_ITEM = re.compile(r"^- ([\d.]+): (.*)")


@dataclass(frozen=True)
class Item:
    """One part of a rubric: its points, negative for a deduction, and the comment, on one line."""

    points: float
    text: str

    @classmethod
    def read(cls, points: str, text: str) -> "Item":
        """Return an item as a person typed it.

        Raises:
            InvalidValue: the points are no number, or there is no text or too much of it.
        """
        text = " ".join(text.split())
        if not 0 < len(text) <= MAX_TEXT:
            raise InvalidValue(f"a comment of the rubric has 1 to {MAX_TEXT} characters, this one has {len(text)}")
        return cls(number(points), text)


@dataclass(frozen=True)
class _Kept:
    questions: dict[str, tuple[Item, ...]] = field(default_factory=dict)


def number(text: str) -> float:
    """Return points as a person typed them, with a point or a comma.

    Raises:
        InvalidValue: it is no number.
    """
    try:
        value = float(text.strip().replace(",", "."))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidValue(f"{text.strip()!r} is not a number of points: write one such as 1.5")
    return value


def rubric_of(tree: CourseTree, root: Path, lab: str, question: str) -> tuple[Item, ...]:
    """Return the rubric of a question: the one that is kept, or else that of the lab's `README.md`.

    Raises:
        UserError: the file of rubrics is damaged.
    """
    kept = _kept(tree, lab)
    return kept[question] if question in kept else _of_readme(root / "labs" / lab / "README.md", question)


def save_rubric(tree: CourseTree, lab: str, question: str, items: Sequence[Item]) -> None:
    """Keep the rubric of a question. Marks that were given by an earlier one stay as they are.

    Raises:
        UserError: the file of rubrics is damaged, or cannot be written.
    """
    write_atomically(tree.rubric(lab), encode(_Kept(_kept(tree, lab) | {question: tuple(items)})))


def total(rubric: Sequence[Item], chosen: Sequence[str], most: float) -> float:
    """Return the points of the items that were chosen, by their texts, within 0 and the most points of the question.

    A rubric of deductions alone takes them off the most points.

    >>> rubric = [Item(-1, "no unit"), Item(-2, "no reason")]
    >>> total(rubric, ["no unit"], 5), total([Item(2, "a"), Item(1, "b")], ["a", "b"], 2)
    (4.0, 2.0)
    """
    sum_of_chosen = sum(item.points for item in rubric if item.text in chosen)
    return float(min(most, max(0.0, start(rubric, most) + sum_of_chosen)))


def start(rubric: Sequence[Item], most: float) -> float:
    """Return the points from which a rubric counts: all of them if it has deductions only."""
    return most if rubric and all(item.points < 0 for item in rubric) else 0.0


def split(comment: str, items: Sequence[Item]) -> tuple[tuple[Item, ...], str]:
    r"""Return which items of a rubric a comment holds as lines of their own, and the rest of it.

    >>> split("Right idea.\n\nSee the hint.", [Item(1, "Right idea."), Item(2, "All of it.")])
    ((Item(points=1, text='Right idea.'),), 'See the hint.')
    """
    lines = comment.splitlines()
    chosen = tuple(item for item in items if item.text in lines)
    texts = {item.text for item in chosen}
    return chosen, "\n".join(line for line in lines if line not in texts).strip()


def joined(items: Sequence[Item], text: str) -> str:
    """Return the comment of a mark: the text of each item that was chosen, and what was written beside them."""
    return "\n\n".join([*(item.text for item in items), *([text.strip()] if text.strip() else [])])


def _kept(tree: CourseTree, lab: str) -> dict[str, tuple[Item, ...]]:
    path = tree.rubric(lab)
    try:
        return decode(path.read_bytes(), _Kept).questions
    except FileNotFoundError:
        return {}
    except Unreadable as error:
        raise UserError(f"{path} is damaged ({error}): correct it, or delete it to begin with new rubrics") from error


def _of_readme(path: Path, question: str) -> tuple[Item, ...]:
    if not path.is_file():
        return ()
    found: list[Item] = []
    inside = continues = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = _HEADING.match(line)
            inside = heading is not None and heading[1] == question
        elif inside and (item := _ITEM.match(line)):
            found.append(Item.read(item[1], item[2]))
        elif continues and inside and line.startswith("  "):
            found[-1] = Item.read(str(found[-1].points), f"{found[-1].text} {line}")
        continues = bool(line.strip()) and bool(found)
    return tuple(found)
