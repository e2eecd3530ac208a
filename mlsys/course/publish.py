"""`mlsys publish DIR`: the public tree that students get, and nothing else.

It holds the built site, the released notebooks and the chapters' notebooks for Colab, and a wheel of the package; no
lab source, no solution and no hidden test. The site is at its top, so that a static host can serve it as it is. A
script in `canary/` runs the notebooks with Colab's versions, once a week by a workflow.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from mlsys.core.package import ROOMS_OF_INSTRUCTORS
from mlsys.course.canary import colab_canary
from mlsys.course.digest import package_digest
from mlsys.course.lab import find_labs
from mlsys.course.release import is_released
from mlsys.course.settings import Settings, read_settings
from mlsys.course.student_site import check_site, site_files
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError

INSTRUCTORS = (
    *(room.replace(".", "/") for room in ROOMS_OF_INSTRUCTORS),
    "mlsys/bench/lab.py",
    "mlsys/bench/row.py",
    "mlsys/bench/run.py",
    "mlsys/bench/suite",
    "mlsys/cli/bench.py",
    "mlsys/cli/classroom",
    "mlsys/cli/course",
    "mlsys/cli/export.py",
    "mlsys/cli/feedback.py",
    "mlsys/cli/gpu_pass.py",
    "mlsys/cli/grade.py",
    "mlsys/cli/grade_output.py",
    "mlsys/cli/publish.py",
    "mlsys/cli/release.py",
    "mlsys/cli/submit/serve.py",
    "mlsys/cli/submit/tokens.py",
    "mlsys/cli/undo.py",
)
"""What the student's wheel leaves out; no lab, no chapter and no command of a student needs it."""

FOR_HELPERS = Path(__file__).parent / "for_ai_helpers.md"
HELPERS = "AGENTS.md"
"""Where AI helpers look for rules in a repository; on a web site they look for llms.txt."""

WORKFLOW = ".github/workflows/pages.yml"
CANARY_WORKFLOW = ".github/workflows/canary.yml"
LIST = ".published"
"""Names the files that `mlsys publish` wrote, so that it takes away only what it brought."""

_OF_A_FRESH_CLONE = {"README.md", "LICENSE", ".gitignore", ".gitattributes", ".github", "CNAME"}
"""What a new repository may hold; a README and a license are replaced."""

_PAGES = """# Serves this folder as it is with GitHub Pages: choose "GitHub Actions" under Settings, Pages.
name: Site
on:
  push:
    branches: [{branch}]
  workflow_dispatch:
permissions:
  contents: read
  pages: write
  id-token: write
concurrency: pages
jobs:
  deploy:
    runs-on: ubuntu-latest
    environment:
      name: github-pages
    steps:
      - uses: actions/checkout@v4
      - uses: actions/configure-pages@v5
      - uses: actions/upload-pages-artifact@v3
        with:
          path: .
      - uses: actions/deploy-pages@v4
"""

_CANARY = """# Runs every lab and three chapters with the versions that Colab has, or may have soon: once a week.
name: Canary
on:
  schedule:
    - cron: "23 4 * * 1"
  workflow_dispatch:
permissions:
  contents: read
jobs:
  notebooks:
    runs-on: ubuntu-latest
    timeout-minutes: 120
    strategy:
      fail-fast: false
      matrix:
        set: [{sets}]
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: |
            3.12
            3.13
      - run: python canary/colab_canary.py --set ${{{{ matrix.set }}}}
"""

_LLMS = """# AI hardware acceleration

> A course on AI hardware acceleration and GPU kernels, with graded labs. Its contents: index.html. The rules for
> helpers of students follow.
"""

_README = """# AI hardware acceleration: the course for students

This folder is made by `mlsys publish`; changes made here are lost with the next edition.

- **Read:** open `index.html`; it needs no network. *How to use this course* comes first; a syllabus, under *About*,
  says which chapters and labs come in which week.
- **Run:** {labs} and `chapters/` hold notebooks. In Colab, switch on the GPU and save a copy first.
- **AI helpers:** what they may do for you is on the site, under *About*; `AGENTS.md` says it to them.
- **Install** on your own machine (Linux, Python 3.11 or newer): `pip install wheels/{wheel} torch triton jupyterlab`,
  in an environment of its own. *How to use this course* on the site says every step. Colab needs none of this.

{links}
"""


@dataclass(frozen=True)
class Edition:
    """What was published: the count of files, the labs in it, and those that are held back."""

    files: int
    labs: tuple[str, ...]
    held_back: tuple[str, ...]


def publish(root: Path, tree: CourseTree, folder: Path, labs: Collection[str] = ()) -> Edition:
    """Write the student tree, if the site and the address are those of the book as it is now.

    Args:
        root: the course repository.
        tree: the nbgrader tree.
        folder: where the student tree goes: empty, published before, or a fresh clone of a repository.
        labs: labs that come out now, beside those of the last edition; when none is named, those of the last edition,
            and in the first edition all released ones.

    Raises:
        UserError: an unknown lab, or one that is not released; a placeholder for an address; a site older than the
            book, or none where one was published; a folder that holds other files or cannot be written; or the wheel
            fails.
    """
    settings = read_settings(root)
    check_site(root, settings)
    site = root / "_build" / "html" / "index.html"
    if site.name in _published_before(folder) and not site.is_file():
        raise UserError(
            f"{folder} has a site, which would go, for none is built here: run `make book` and publish again"
        )
    return write_edition(root, tree, folder, labs)


def write_edition(root: Path, tree: CourseTree, folder: Path, labs: Collection[str] = ()) -> Edition:
    """Write the student tree as `publish` does, whatever site and address there are."""
    settings = read_settings(root)
    before = _published_before(folder)
    chosen, held_back = _labs(root, tree, labs, before)
    for name, path in chosen.items():
        if not is_released(path, tree, settings):
            raise UserError(
                f"lab {name} is not released, or it has changed since, or the address in _config.yml: run "
                "`mlsys release`"
            )
    files: dict[str, Path | str] = {}
    site = root / "_build" / "html"
    if (site / "index.html").is_file():
        files |= site_files(site, held_back)
        # As the build of the site left them: made again now, they could differ from the pages.
        files |= {f"chapters/{path.name}": path for path in sorted((root / "_build" / "chapters").glob("*.ipynb"))}
    files |= {f"labs/{name}/{name}.ipynb": tree.release(name) for name in chosen}
    files |= {f"wheels/{settings.wheel_name}": build_wheel(root, settings)}
    files |= {path.name: path for path in sorted(root.glob("LICENSE*"))}
    files |= {"README.md": _readme(settings, list(chosen)), ".nojekyll": ""}
    files |= {HELPERS: FOR_HELPERS, "llms.txt": f"{_LLMS}\n{FOR_HELPERS.read_text(encoding='utf-8')}"}
    files |= {f"canary/{path.relative_to(colab_canary.HERE)}": path for path in colab_canary.own_files()}
    sets = ", ".join(f'"{name}"' for name in colab_canary.set_names())
    workflows = {WORKFLOW: _PAGES.format(branch=settings.branch), CANARY_WORKFLOW: _CANARY.format(sets=sets)}
    # One that was there before the first edition is the instructor's own.
    files |= {name: text for name, text in workflows.items() if name in before or not (folder / name).exists()}
    # Students' own copies of the notebooks install the package that they began with.
    old_wheels = {name for name in before if name.startswith("wheels/") and (folder / name).is_file()}
    try:
        _write(folder, files, before, old_wheels)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written ({error}): choose another folder or correct its permissions"
        ) from error
    return Edition(len(files), tuple(chosen), tuple(held_back))


def _labs(
    root: Path, tree: CourseTree, named: Collection[str], before: Collection[str]
) -> tuple[dict[str, Path], list[str]]:
    """Return the labs of this edition with their paths, and the others."""
    known = find_labs(root)
    for name in named:
        if name not in known:
            raise UnknownName.of("lab", name, known)
    last = [name for name in known if f"labs/{name}/{name}.ipynb" in before]
    first = [] if named or last else [name for name in known if tree.release(name).is_file()]
    chosen = {name: path for name, path in known.items() if name in {*named, *last, *first}}
    if not chosen:
        raise UserError(f"no lab is released in {tree.root}: run `mlsys release` first")
    return chosen, [name for name in known if name not in chosen]


def build_wheel(root: Path, settings: Settings) -> Path:
    """Build the student's wheel of the package at `root`, unless the one that is there is up to date."""
    folder = root / "_build" / "wheels"
    wheel, stamp = folder / settings.wheel_name, folder / ".state"
    if wheel.is_file() and stamp.is_file() and stamp.read_text() == package_digest():
        return wheel
    if find_spec("hatchling") is None:
        raise UserError("hatchling is not installed, and builds the wheel: pip install 'mlsys[grading]'")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder.resolve())]
    with TemporaryDirectory() as source:
        _copy_for_students(root, Path(source))
        done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode or not wheel.is_file():
        raise UserError(f"the wheel could not be built: {(done.stderr or done.stdout).strip()[-400:]}")
    stamp.write_text(package_digest())
    return wheel


def _copy_for_students(root: Path, folder: Path) -> None:
    """Copy what the student's wheel is built from."""

    def left_out(inside: str, names: list[str]) -> list[str]:
        place = Path(inside).relative_to(root)
        return [name for name in names if name == "__pycache__" or str(place / name) in INSTRUCTORS]

    for path in (root / "pyproject.toml", root / "README.md", *root.glob("LICENSE*")):
        shutil.copy(path, folder)
    shutil.copytree(root / "mlsys", folder / "mlsys", ignore=left_out)


def _published_before(folder: Path) -> list[str]:
    """Return the files of the last edition, or raise an error if the folder holds something else."""
    try:
        if not folder.exists():
            return []
        if not folder.is_dir():
            raise UserError(f"{folder} is not a folder")
        if (folder / LIST).is_file():
            return (folder / LIST).read_text(encoding="utf-8").splitlines()
        found = {path.name for path in folder.iterdir()}
        foreign = sorted(found - {".git"} - (_OF_A_FRESH_CLONE if ".git" in found else set()))
    except PermissionError as error:
        raise UserError(
            f"{folder} cannot be read ({error.strerror}): choose another folder or correct its permissions"
        ) from error
    if foreign:
        raise UserError(
            f"{folder} holds files that `mlsys publish` did not write (such as {foreign[0]}): name an empty folder, "
            "or a fresh clone of the public repository"
        )
    return []


def _write(folder: Path, files: dict[str, Path | str], before: list[str], kept: Collection[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(13, "no permission to write", str(folder))
    (folder / LIST).write_text("\n".join(sorted({*files, *before})) + "\n", encoding="utf-8")
    for name, source in files.items():
        data = source.encode() if isinstance(source, str) else source.read_bytes()
        target = folder / name
        if not target.is_file() or target.read_bytes() != data:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    for name in set(before) - {*files, *kept}:
        if ".." not in Path(name).parts and not Path(name).is_absolute():
            (folder / name).unlink(missing_ok=True)
    (folder / LIST).write_text("\n".join(sorted({*files, *kept})) + "\n", encoding="utf-8")


def _readme(settings: Settings, labs: list[str]) -> str:
    links = [f"- [Lab {name} in Colab]({settings.colab_url(f'labs/{name}/{name}.ipynb')})" for name in labs]
    where = ", ".join(f"`labs/{name}/`" for name in labs)
    return _README.format(labs=where, wheel=settings.wheel_name, links="\n".join(links))
