"""The form in which records, runs and lists of attempts are kept: JSON with the version of its schema."""

import json
from dataclasses import asdict
from typing import Any, TypeVar

import msgspec

SCHEMA = 1
"""Version of the form that is written; files without one are of before it was counted, and are read as well."""

_T = TypeVar("_T")


class Unreadable(Exception):
    """A kept file that cannot be read; the message says why."""


def encode(value: Any) -> bytes:
    """Return a dataclass as JSON text with the version of its schema."""
    text = json.dumps({"schema": SCHEMA, **asdict(value)}, indent=1, ensure_ascii=False) + "\n"
    # People read these files. Half a character, which a student's code may print, has no bytes and stays escaped.
    return text.encode(errors="backslashreplace")


def decode(data: bytes, kind: type[_T]) -> _T:
    """Return the dataclass of type `kind` that `data` holds.

    Raises:
        Unreadable: it is damaged, lacks a value, has one of another type, or is of a later schema.
    """
    return typed(loaded(data), kind)


def loaded(data: bytes) -> Any:
    """Return the JSON in `data`, without the version of its schema.

    Raises:
        Unreadable: it is damaged, or of a later schema.
    """
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:  # and UnicodeDecodeError
        raise Unreadable(str(error)) from error
    schema = content.pop("schema", 0) if isinstance(content, dict) else 0
    if schema not in range(SCHEMA + 1):
        raise Unreadable(f"it has schema {schema!r}, and this version of the package reads up to {SCHEMA}")
    return content


def typed(content: object, kind: type[_T]) -> _T:
    """Return `content` as a dataclass of type `kind`.

    Raises:
        Unreadable: a value is missing or has another type.
    """
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise Unreadable(str(error)) from error
