"""Make a new edition of the course: `make edition VERSION=0.2.0`.

The command sets the version in the three places that state it, dates the section of the change log, builds the student
tree, the wheel and the source archive in two fresh clones, and compares them byte for byte. Dates inside archives are
that of the edition. Only if both are equal, it commits, tags, and leaves in `dist/`: the archives, their SHA-256 sums,
and what changed for students. If anything fails, nothing is changed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from mlsys.course.settings import read_settings
from mlsys.course.student_site import check_address
from mlsys.errors import UserError

ROOT = Path(__file__).parents[1]
COLOR = re.compile(r"\x1b\[[0-9;]*m")
UNRELEASED = re.compile(r"^## (\d+\.\d+\.\d+) \(unreleased\)$", re.MULTILINE)
STUDENTS = "### For students"
"""Heading in the change log above what students notice."""
PLACES = (
    ("pyproject.toml", re.compile(r'^version = "(.+)"$', re.MULTILINE)),
    ("mlsys/__init__.py", re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)),
    ("CITATION.cff", re.compile(r"^version: (.+)$", re.MULTILINE)),
)
RELEASED = re.compile(r'^date-released: "(.+)"$', re.MULTILINE)


@dataclass(frozen=True)
class Edition:
    """A version of the course, the day that it came out, and what it changed for students."""

    version: str
    day: date
    for_students: str


def plan_edition(root: Path, version: str, day: date) -> Edition:
    """Return the edition, if this repository is ready for it.

    Raises:
        UserError: the version is no version or not newer than the last; the change log has no section for it, or none
            for students; changes are not committed; the tag is there; or the public address was not entered.
    """
    check_address(root, read_settings(root))
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise UserError(f"{version!r} is no version: write three numbers, such as 0.2.0")
    log = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = UNRELEASED.search(log)
    if not found:
        raise UserError(
            f"CHANGELOG.md has no section that is not released: add `## {version} (unreleased)` with the changes"
        )
    dated = [tuple(map(int, one.split("."))) for one in re.findall(r"^## (\d+\.\d+\.\d+) \(\d", log, re.MULTILINE)]
    if dated and tuple(map(int, version.split("."))) <= max(dated):
        raise UserError(f"{version} is not newer than {'.'.join(map(str, max(dated)))}, the last edition")
    section = log[found.end() :].split("\n## ")[0]
    _, heading, rest = section.partition(f"\n{STUDENTS}\n")
    changed = rest.split("\n### ")[0].strip()
    if not heading or not changed:
        raise UserError(f"CHANGELOG.md says nothing under `{STUDENTS}`: say there what students will notice")
    if _git(root, "status", "--porcelain"):
        raise UserError("some changes are not committed: commit them first, so that the edition can be built again")
    if _git(root, "tag", "--list", f"v{version}"):
        raise UserError(f"the tag v{version} is there already: take the next version")
    return Edition(version, day, changed)


def write_version(root: Path, edition: Edition) -> None:
    """Write the version and the date where they are stated."""
    for name, pattern in PLACES:
        _replace(root / name, pattern, edition.version)
    _replace(root / "CITATION.cff", RELEASED, edition.day.isoformat())
    log = root / "CHANGELOG.md"
    text = UNRELEASED.sub(f"## {edition.version} ({edition.day.isoformat()})", log.read_text(encoding="utf-8"), count=1)
    log.write_text(text, encoding="utf-8")


def build(root: Path, folder: Path, edition: Edition) -> None:
    """Build the archives of the edition from a checkout into a folder."""
    folder.mkdir(parents=True)
    seconds = int(datetime(edition.day.year, edition.day.month, edition.day.day, tzinfo=UTC).timestamp())
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds), "PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
    for command in (
        ["mlsys", "release"],  # the book's pages on labs lead to the released notebooks
        ["jupyter-book", "build", ".", "--warningiserror", "--nitpick", "--keep-going", "--quiet"],
        ["mlsys", "publish", str(folder / "tree")],
        [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)],
    ):
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = COLOR.sub("", done.stderr or done.stdout).strip()
            raise UserError(f"{' '.join(command[:3])} failed:\n{said[-2000:]}")
    pack(folder / "tree", folder / f"course-{edition.version}.zip", edition.day)
    shutil.rmtree(folder / "tree")


def pack(tree: Path, archive: Path, day: date) -> None:
    """Pack a folder so that the same files give the same bytes: sorted, with one date and one mode."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(path for path in tree.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(tree).as_posix(), (day.year, day.month, day.day, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            packed.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)


def differences(one: Path, other: Path) -> list[str]:
    """Return what differs between two folders of archives: a file in a zip, and the first line of it that differs."""
    names = sorted({path.name for folder in (one, other) for path in folder.iterdir()})
    found = []
    for name in names:
        paths = [folder / name for folder in (one, other)]
        if not all(path.is_file() for path in paths):
            found.append(f"{name} is in one of them only")
        elif paths[0].read_bytes() != paths[1].read_bytes():
            first, second = (_files_inside(path) for path in paths)
            parts = [key for key in sorted({*first, *second}) if first.get(key) != second.get(key)]
            found += [f"{name}: {part}{_first_difference(first.get(part), second.get(part))}" for part in parts] or [
                name
            ]
    return found


def _files_inside(path: Path) -> dict[str, bytes]:
    if not zipfile.is_zipfile(path):
        return {}
    with zipfile.ZipFile(path) as packed:
        return {entry.filename: packed.read(entry) for entry in packed.infolist()}


def _first_difference(one: bytes | None, other: bytes | None) -> str:
    """Say where two files begin to differ, in words that follow their name."""
    if one is None or other is None:
        return ", which one of them lacks"
    lines = zip(one.splitlines(), other.splitlines(), strict=False)
    for number, (left, right) in enumerate(lines, 1):
        if left != right:
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
            at = max(0, same - 40)
            shown = (text[at : at + 120].decode(errors="replace") for text in (left, right))
            return ", line {}: {!r} or {!r}".format(number, *shown)
    return ", in length"


def make_edition(root: Path, version: str, day: date) -> list[Path]:
    """Make the edition, and return the files in `dist/`.

    Raises:
        UserError: as `plan_edition`; a build fails; or two builds differ.
    """
    edition = plan_edition(root, version, day)
    with TemporaryDirectory() as temporary:
        made = []
        for place in ("first", "second"):
            clone, folder = Path(temporary) / place / "course", Path(temporary) / place / "dist"
            _git(root, "clone", "--quiet", str(root), str(clone))
            write_version(clone, edition)
            build(clone, folder, edition)
            made.append(folder)
        if unequal := differences(*made):
            shown = "; ".join(unequal[:5]) + (f"; and {len(unequal) - 5} more" if len(unequal) > 5 else "")
            raise UserError(f"two builds of {version} differ, so that nobody could build it again: {shown}")
        target = root / "dist" / version
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(made[0], target)
    archives = sorted(target.iterdir())
    sums = "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in archives)
    (target / "SHA256SUMS").write_text(sums)
    (target / "FOR-STUDENTS.md").write_text(f"# What is new in {version}\n\n{edition.for_students}\n", encoding="utf-8")
    try:
        write_version(root, edition)
        _git(root, "commit", "--quiet", "--all", "--message", f"Version {version}")
    except UserError:
        _git(root, "checkout", "--quiet", "--", ".")
        raise
    _git(root, "tag", "--annotate", f"v{version}", "--message", f"Version {version}\n\n{edition.for_students}")
    return sorted(target.iterdir())


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, make the edition, and say what it holds."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("version", help="three numbers, such as 0.2.0")
    parser.add_argument("--date", type=date.fromisoformat, default=datetime.now(UTC).date(), help="by default today")
    asked = parser.parse_args(arguments)
    try:
        files = make_edition(ROOT, asked.version, asked.date)
    except UserError as error:
        print(f"edition: {error}", file=sys.stderr)
        return 2
    print(f"Version {asked.version} is committed and tagged v{asked.version}; two builds were equal.")
    for path in files:
        print(f"{path.stat().st_size:>12,} bytes  {path.relative_to(ROOT)}")
    print("To bring it out: git push --follow-tags, and `mlsys publish` into the public folder.")
    return 0


def _replace(path: Path, pattern: re.Pattern[str], new: str) -> None:
    text = path.read_text(encoding="utf-8")
    found = pattern.search(text)
    if not found:
        raise UserError(f"{path} states no version in the form that is expected: {pattern.pattern}")
    path.write_text(text[: found.start(1)] + new + text[found.end(1) :], encoding="utf-8")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"git {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
