"""Digests that tell whether something has to be done again."""

import hashlib
from functools import cache

from mlsys.core.package import PACKAGE


def digest(*parts: bytes | str) -> str:
    """A short digest of `parts` in order; where one part ends is part of it.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "big") + data)
    return total.hexdigest()[:16]


@cache
def package_digest(part: str = "") -> str:
    """The digest of all files of the installed package, or of one of its folders: code, data and templates."""
    root = PACKAGE / part
    files = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return digest(*(item for path in files for item in (str(path.relative_to(root)), path.read_bytes())))
