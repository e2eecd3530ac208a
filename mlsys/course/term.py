"""Terms of a course: each draws variants of the labs, so that a solution of last term does not fit.

A lab declares what may differ in one cell, with the role "variants", which students do not get:

    TERM_WARPS = drawn(8, 2, 16)
    TERM_NUMBERS = 1024 // (32 * TERM_WARPS)

Wherever such a name stands in another cell of the lab, in its prose or in its sample class, its value is put in the
place of the name. Without a term each `drawn` gives its first value. A term draws one of the others with its seed, and
the next term one of those that the term before did not have. So two terms in a row differ in everything that is drawn.

The terms of a course are listed in its `terms.json`. When a lab is released in a new term, what it was in the old term
moves to `terms/`: submissions of that term go on being graded with it.
"""

import hmac
import json
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from mlsys.core.files import write_atomically
from mlsys.course.notebook import read_notebook
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UserError

MAX_NAME = 40
"""Longest name of a term, in characters: it is a folder's name too."""

_T = TypeVar("_T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PLACE = re.compile(r"\bTERM_[A-Z0-9_]+\b")
_NO_TERM = "_"  # the archive of what was released before the first term
_seeds: ContextVar[tuple[str, ...]] = ContextVar("seeds", default=())


@dataclass(frozen=True)
class Term:
    """A term: its name, the seed that its variants are drawn from, and when it began, in UTC."""

    name: str
    seed: str
    began: str


def drawn(*choices: _T) -> _T:
    """Return the choice of the present term; the first one without a term.

    Each term draws among the choices that the term before did not have. What a term draws does not depend on other
    calls.

    Raises:
        InvalidValue: there are not two choices that differ.
    """
    if len({repr(choice) for choice in choices}) < 2:
        raise InvalidValue(f"drawn{choices!r}: give at least two choices that differ")
    index = 0
    for seed in _seeds.get():
        others = [number for number in range(len(choices)) if repr(choices[number]) != repr(choices[index])]
        draw = hmac.digest(seed.encode(), repr(choices).encode(), "sha256")
        index = others[int.from_bytes(draw, "big") % len(others)]
    return choices[index]


def read_variants(source: str, seeds: Sequence[str] = ()) -> dict[str, str]:
    r"""Return what stands for the names of a variants cell, after terms with these seeds.

    >>> read_variants("from mlsys.course.term import drawn\nTERM_A = drawn(8, 2, 16)\nTERM_B = 64 // TERM_A")
    {'TERM_A': '8', 'TERM_B': '8'}
    """
    names: dict[str, Any] = {}
    token = _seeds.set(tuple(seeds))
    try:
        exec(compile(source, "variants", "exec"), names)
    finally:
        _seeds.reset(token)
    return {name: str(value) for name, value in names.items() if _PLACE.fullmatch(name)}


def with_variants(text: str, variants: Mapping[str, str]) -> str:
    r"""Return a text with the values of a lab's variants in their places.

    A value of several lines, in a line of its own, is indented as its name is.

    >>> with_variants("if x:\n    TERM_LINES\n", {"TERM_LINES": "y = 1\nz = 2"})
    'if x:\n    y = 1\n    z = 2\n'

    Raises:
        InvalidValue: a name that the variants do not have.
    """

    def value(place: re.Match[str]) -> str:
        if place[0] not in variants:
            raise InvalidValue(f"{place[0]} is not in the variants of this lab: declare it in their cell")
        before = text[text.rfind("\n", 0, place.start()) + 1 : place.start()]
        indent = before if not before.strip("#: ") else ""
        return variants[place[0]].replace("\n", f"\n{indent}")

    return _PLACE.sub(value, text)


def read_terms(tree: CourseTree) -> list[Term]:
    """Return the terms of a course, the present one last.

    Raises:
        UserError: their list is damaged.
    """
    try:
        return msgspec.convert(json.loads(tree.terms.read_bytes()), list[Term])
    except FileNotFoundError:
        return []
    except (ValueError, msgspec.ValidationError) as error:
        raise UserError(f"{tree.terms} is damaged ({error}): restore it, for old notebooks follow from it") from error


def present_term(tree: CourseTree) -> str:
    """Return the name of the present term, or nothing before the first one."""
    terms = read_terms(tree)
    return terms[-1].name if terms else ""


def new_term(tree: CourseTree, name: str) -> Term:
    """Return a term that may begin now, with a seed of its own.

    Raises:
        UserError: it has no name, one that cannot be a folder's, or one that was used.
    """
    if not name.strip():
        raise UserError("a term needs a name: write it after --term, such as --term 2027a")
    if not _NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise UserError(
            f"{name!r} cannot be the name of a term: use up to {MAX_NAME} letters, digits, dots, dashes and "
            "underscores, such as 2027a"
        )
    terms = read_terms(tree)
    if name.casefold() in (term.name.casefold() for term in terms):
        raise UserError(
            f"the term {name!r} was used already; the terms are {', '.join(term.name for term in terms)}. Leave --term "
            f"out to release in the present one, {terms[-1].name}, or name a new term"
        )
    return Term(name, secrets.token_hex(16), datetime.now(UTC).isoformat(timespec="seconds"))


def begin_term(tree: CourseTree, term: Term) -> None:
    """Let a term begin: from now on, labs are released in it.

    Raises:
        UserError: the list of terms cannot be written.
    """
    terms = [asdict(one) for one in (*read_terms(tree), term)]
    write_atomically(tree.terms, (json.dumps(terms, indent=1) + "\n").encode())
    tree.terms.chmod(0o600)  # variants follow from the seeds


def set_aside(tree: CourseTree, lab: str) -> None:
    """Move what a lab was in an earlier term to `terms/`, unless it was released in the present one."""
    source = tree.source(lab)
    if not source.is_file():
        return
    term = str(read_notebook(source).metadata["mlsys"].get("term", ""))
    if term == present_term(tree):
        return
    archive = _archive(tree, term)
    # The source goes last: as long as it is there, a kill on the way is made good by the next call.
    for path, target in (
        (tree.version(lab, "1").parent, archive.version(lab, "1").parent),
        (tree.release(lab).parent, archive.release(lab).parent),
        (source.parent, archive.source(lab).parent),
    ):
        if path.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(target, ignore_errors=True)
            shutil.move(path, target)


def tree_of(tree: CourseTree, lab: str, term: str) -> CourseTree:
    """Return the tree that holds a lab as it was released in a term.

    Raises:
        UserError: what the lab was in that term is not kept.
    """
    archive = _archive(tree, term)
    if archive.source(lab).is_file():
        return archive
    source = tree.source(lab)
    now = str(read_notebook(source).metadata["mlsys"].get("term", "")) if source.is_file() else term
    if now == term:
        return tree
    raise UserError(
        f"{lab} as it was in term {term or 'none'} is not in {archive.root}: restore that folder, or submissions "
        "of that term cannot be graded"
    )


def archives(tree: CourseTree, lab: str) -> list[CourseTree]:
    """Return the trees that hold a lab as it was in earlier terms, in alphabetical order."""
    found = (CourseTree(path) for path in sorted(tree.root.glob("terms/*")))
    return [archive for archive in found if archive.source(lab).is_file()]


def _archive(tree: CourseTree, term: str) -> CourseTree:
    return CourseTree(tree.root / "terms" / (term or _NO_TERM))
