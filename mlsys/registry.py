"""What a chapter was built with: seeds, style and versions, fixed and recorded in its first cell."""

import platform
import random
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from mlsys.errors import InvalidValue

RECORDED_PACKAGES = ("mlsys", "numpy", "matplotlib", "pint", "torch", "triton")


@dataclass(frozen=True)
class Chapter:
    """One chapter's run: its id, its seed and the versions it ran with."""

    id: str
    seed: int
    python: str
    versions: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        """One line for the foot of a page."""
        packages = ", ".join(f"{name} {number}" for name, number in self.versions)
        return f"Chapter {self.id}: seed {self.seed}, Python {self.python}, {packages}"


def installed_versions() -> tuple[tuple[str, str], ...]:
    """Versions of the packages that can change a number or a picture; those not installed are left out."""
    found = []
    for package in RECORDED_PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue  # torch and triton are optional for a chapter
    return tuple(found)


def start_chapter(chapter_id: str, seed: int = 0) -> Chapter:
    """Seed Python's and NumPy's global generators, set the figure style and return what was fixed.

    Args:
        chapter_id: the name of the chapter's file without its ending.
        seed: a whole number from 0 to 2^32 - 1.

    Raises:
        InvalidValue: if the id is empty or the seed is out of range.
    """
    if not chapter_id:
        raise InvalidValue("chapter id is empty: give the name of the chapter's file without its ending")
    if not 0 <= seed < 2**32:
        raise InvalidValue(f"seed {seed} is not between 0 and 2^32 - 1")
    import numpy as np

    from mlsys.viz import apply_style

    random.seed(seed)
    np.random.seed(seed)
    apply_style()
    return Chapter(chapter_id, seed, platform.python_version(), installed_versions())
