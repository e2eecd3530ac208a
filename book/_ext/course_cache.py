"""Chapters are executed again when anything that their numbers come from has changed.

The execution cache of the book compares the cells of a chapter only: an edited function of the package would leave the
old number on the page. Here the cache lives in a folder named after a fingerprint of the package, the recorded
measurements, the figures and the pinned versions, and Sphinx reads every page again when the fingerprint changes.
It also does when one of these extensions has changed, without executing the chapters.

What a cell prints reaches the notebook in pieces, cut wherever the kernel happened to send them. The pieces are joined
exactly as a chapter runs, so that two builds of one text are equal: joined later, by the page's renderer, they would
lose the blank lines at their ends.
"""

import hashlib
import shutil
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import nbclient
from jupyter_cache.executors import utils as executors
from sphinx.application import Sphinx
from sphinx.config import Config

SOURCES_OF_NUMBERS = (
    "mlsys",
    "labs/results",
    "labs/tiling/ladder/profiles",
    "tests/scaling/results",
    "book/_figures",
    "book/_languages",
    "requirements.txt",
)
EXTENSIONS = ("book/_ext", "book/_interactive")


def fingerprint(root: Path, sources: Iterable[str] = SOURCES_OF_NUMBERS) -> str:
    """A digest of the names and contents of all files that can change a number in a chapter, or of other sources."""
    digest = hashlib.sha256()
    for name in sources:
        source = root / name
        found = [source] if source.is_file() else sorted(p for p in source.rglob("*") if p.is_file())
        for path in found:
            if "__pycache__" in path.parts:
                continue
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()[:16]


def use_keyed_cache(app: Sphinx, config: Config) -> None:
    """Point the execution cache at the folder of the present fingerprint, and drop those of earlier ones."""
    key = fingerprint(Path(app.srcdir))
    caches = Path(app.outdir).parent / ".jupyter_cache"
    caches.mkdir(parents=True, exist_ok=True)
    for entry in caches.iterdir():
        if entry.name != key:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    config["course_fingerprint"] = f"{key} {fingerprint(Path(app.srcdir), EXTENSIONS)}"
    config["nb_execution_cache_path"] = str(caches / key)


def join_printed_output() -> None:
    """Let chapters run with the option that joins what a cell prints; no setting of the cache reaches it."""
    executors.executenb = partial(nbclient.execute, coalesce_streams=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx; a changed value of `course_fingerprint` makes it read every page again."""
    join_printed_output()
    app.add_config_value("course_fingerprint", "", "env", [str])
    app.connect("config-inited", use_keyed_cache, priority=900)  # after the values of _config.yml are in place
    return {"parallel_read_safe": True, "parallel_write_safe": True}
