"""Gradescope's export of submissions: folders by number, and the list that says whose they are.

submission_901:
  :submitters:
  - :name: Ann Baker
    :sid: '100003'
    :email: ab1@uni.edu
  :created_at: 2026-11-20 22:58:03.123456 Z
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import yaml  # type: ignore[import-untyped]

from mlsys.classroom.lms.names import Reading
from mlsys.classroom.students.identity import Person, words_of
from mlsys.errors import InvalidValue

GRADESCOPES_LIST = "submission_metadata.yml"
"""Name of the list in the export."""


class BadGradescope(InvalidValue):
    """A list that cannot be read; the message says why and what to do."""


def gradescope_list(name: str, data: bytes) -> dict[str, list[Reading]]:
    """Return who handed in each folder of an export, by the folder's name.

    Args:
        name: of the list's file, for messages.
        data: what is in it.

    Raises:
        BadGradescope: the list cannot be read.
    """
    try:
        content = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadGradescope(f"{name} cannot be read ({str(error)[:200]}): export the submissions again") from error
    if not isinstance(content, dict):
        raise BadGradescope(f"{name} is no list of submissions: export the submissions again")
    return {str(folder): _readings(entry) for folder, entry in content.items() if isinstance(entry, dict)}


def _readings(entry: Mapping[str, Any]) -> list[Reading]:
    time = entry.get(":created_at")
    clock = time if isinstance(time, datetime) and time.tzinfo else None
    found = []
    for one in entry.get(":submitters") or []:
        if isinstance(one, dict):
            name, sid, email = (str(one.get(key) or "").strip() for key in (":name", ":sid", ":email"))
            key = email or sid or "-".join(words_of(name))
            found.append(Reading(Person(name, sis_user_id=sid, student=email), key, "", clock=clock))
    return found
