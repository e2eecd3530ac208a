"""Choice of the files of one person that are attempts at the lab."""

import re

from mlsys.classroom.intake.layouts import NOTEBOOK, Upload
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.lms.names import LINK

MAX_AT_ONCE = 20
"""Notebooks of one person that one download may hold: each is an attempt that may have to be judged."""
_COPY = re.compile(r"([ -]?\(\d+\)|-\d+)$")


def notebook_of(handed: list[Upload], lab: str) -> list[Upload]:
    """Return those of one person's files that are attempts at the lab, oldest first.

    Files called like the lab (`tiling.ipynb`, `tiling-1.ipynb`, `tiling (2).ipynb`) count before all others; otherwise
    the only notebook does, whatever its name. What is in folders of the student's own counts only where no notebook
    is outside of them.

    Raises:
        Refused: no notebook, too many, or several, none of which has the lab's name.
    """
    notebooks = [item for item in handed if item.is_notebook]
    if not notebooks and {item.title for item in handed} == {LINK}:
        raise Refused(f"a link was handed in, not a file: download the notebook there and hand in {lab}{NOTEBOOK}")
    if not notebooks:
        raise Refused(f"no notebook was handed in, only {_listed(handed)}: hand in {lab}{NOTEBOOK}")
    depth = min(item.title.count("/") for item in notebooks)
    outer = [item for item in notebooks if item.title.count("/") == depth]
    named = [item for item in outer if _is_called(item, lab)]
    deeper = [item for item in notebooks if item.title.count("/") > depth and _is_called(item, lab)]
    chosen = named or [*outer, *deeper]
    if len(chosen) > MAX_AT_ONCE:
        raise Refused(
            f"{len(chosen)} notebooks were handed in, the limit is {MAX_AT_ONCE}: hand in {lab}{NOTEBOOK} only"
        )
    numbers = {item.number for item in chosen}
    if len(chosen) > 1 and (not named or None in numbers or len(numbers) < len(chosen)):
        exact = [item for item in named if item.title.rpartition("/")[2] == f"{lab}{NOTEBOOK}"]
        if len(exact) == 1:
            return exact
        several = f"several notebooks were handed in ({_listed(chosen)})"
        raise Refused(f"{several}: hand in one, called {lab}{NOTEBOOK}")
    return sorted(chosen, key=lambda item: item.number or 0)


def left_out(handed: list[Upload], chosen: list[Upload]) -> list[str]:
    """Return the titles of notebooks that do not count, although they are not in folders of the student's own."""
    return sorted(item.title for item in handed if item.is_notebook and item not in chosen and "/" not in item.title)


def _is_called(item: Upload, lab: str) -> bool:
    name = item.title.rpartition("/")[2]
    return _COPY.sub("", name[: -len(NOTEBOOK)]).lower() == lab.lower()


def _listed(handed: list[Upload], most: int = 5) -> str:
    titles = sorted(item.title for item in handed)
    more = f" and {len(titles) - most} more" if len(titles) > most else ""
    return ", ".join(titles[:most]) + more
