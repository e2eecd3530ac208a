"""Digests that tell whether something has to be done again."""

import hashlib
from collections.abc import Iterable
from functools import cache

from mlsys.core.package import PACKAGE, modules, reached_modules


def digest(*parts: bytes | str) -> str:
    """Return a short digest of `parts` in order; where one part ends is part of it.

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
    """Return the digest of all files of the installed package, or of one of its folders: code, data and templates."""
    root = PACKAGE / part
    files = sorted(path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return digest(*(item for path in files for item in (str(path.relative_to(root)), path.read_bytes())))


def modules_digest(roots: Iterable[str]) -> str:
    """Return the digest of some modules of the package, of all modules that they import, and of the data of these.

    A data file belongs to the modules that name it or its folder; one that none names counts as well.

    Args:
        roots: dotted names of modules.
    """
    reached = reached_modules(roots)
    texts = {name: path.read_bytes() for name, path in modules().items()}
    here = b"".join(texts[name] for name in reached)
    elsewhere = b"".join(text for name, text in texts.items() if name not in reached)
    parts: list[bytes | str] = [part for name in reached for part in (name, texts[name])]
    data = PACKAGE / "data"
    for path in sorted(path for path in data.rglob("*") if path.is_file()):
        name = path.relative_to(data).as_posix()
        known_as = (f"{name.partition('/')[0]}/" if "/" in name else name).encode()
        if known_as in here or known_as not in elsewhere:
            parts += [name, path.read_bytes()]
    return digest(*parts)
