"""Answers that survive a machine which is taken away: each cell is saved before it runs, and comes back with `restore`.

A Colab notebook that was opened from GitHub lives in a browser tab and on a machine that Google takes back after some
hours. So every cell that defines something is written to a file before it runs, even if it is the cell that ends the
machine. The file is on Google Drive if the student has mounted it, else on the machine itself, where it survives a
restart of the kernel but not the end of the machine. `MLSYS_ANSWERS` names another folder, as a hub for a class may.
Elsewhere, Jupyter itself saves the notebook's file, and nothing is done.

Cells are told apart by the names that they define, since a kernel does not know which cell it runs. Older versions of
a cell are kept: a fresh copy of the lab that is run from the top defines the same names, with the starter code.
"""

import ast
import copy
import json
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from mlsys.core.files import write_atomically
from mlsys.errors import UserError
from mlsys.grading.session.notebook import (
    cells_of,
    find_shell,
    has_tests,
    in_colab,
    notebook_path,
    read_file,
    read_notebook,
)

FOLDER_VARIABLE = "MLSYS_ANSWERS"
"""Environment variable that names the folder for the answers."""
DRIVE = Path("/content/drive/MyDrive")
"""Where Colab mounts a student's Drive, as its own dialog does."""
MACHINE = Path("/content")
"""Folder of a Colab machine that its file list shows."""
VERSIONS = 30
"""Most versions of one cell that are kept."""
MAX_CELL_CHARS = 200_000
"""Longest cell that is saved."""
WRITTEN_EVERY_S = 30
"""Shortest time in seconds between two looks at the written answers, which the front end has to be asked for."""

_DEFINES = re.compile(r"^(?:async\s+)?(?:def|class)\s+(\w+)|^(\w+)\s*(?::[^=\n]+)?=(?!=)", re.MULTILINE)


class Saved(msgspec.Struct, frozen=True):
    """A version of a cell: the names that it defines, its text, and when it ran (ISO 8601, local)."""

    names: tuple[str, ...]
    source: str
    at: str


class Answers(msgspec.Struct):
    """Content of a file of answers: versions of code cells, oldest first, and written answers by their cell's id."""

    code: list[Saved] = []
    written: dict[str, str] = {}

    def add(self, source: str, at: str) -> bool:
        """Add a cell that ran, and return whether it is a new version of one that defines something."""
        names = defined_names(source)
        if not names or len(source) > MAX_CELL_CHARS or has_tests(source):
            return False
        same = [saved for saved in self.code if saved.names == names]
        if same and same[-1].source == source:
            return False
        outdated = {id(saved) for saved in same[: len(same) + 1 - VERSIONS]} if len(same) >= VERSIONS else set()
        outdated |= {id(saved) for saved in same if saved.source == source}
        self.code = [saved for saved in self.code if id(saved) not in outdated]
        self.code.append(Saved(names, source, at))
        return True

    def answer_to(self, starter: str) -> Saved | None:
        """Return the newest version of the cell that defines all that the starter does, and is not the starter."""
        wanted = set(defined_names(starter))
        fits = [saved for saved in self.code if wanted and wanted <= set(saved.names) and saved.source != starter]
        # The last of those with the fewest other names: a scratch cell may define the same and more.
        least = min((len(saved.names) for saved in fits), default=0)
        return next((saved for saved in reversed(fits) if len(saved.names) == least), None)


@dataclass(frozen=True)
class Restored:
    """A notebook that was put together from saved answers: where it is, and what is in it."""

    path: Path
    answers: tuple[str, ...]
    own_cells: int
    missing: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{self.path} has your saved answers: {', '.join(self.answers) or 'none'}."]
        if self.own_cells:
            parts.append(f"Cells that you added ({self.own_cells}) stand after the first cell.")
        if self.missing:
            parts.append(f"Nothing was saved for {', '.join(self.missing)}.")
        parts.append("Open it and go on there" + (": File, Open notebook, Google Drive." if in_colab() else "."))
        return " ".join(parts)

    __repr__ = __str__


def defined_names(source: str) -> tuple[str, ...]:
    r"""Return the names that a cell defines at its top, sorted; also of a cell with magics or an error in its syntax.

    >>> defined_names("@triton.jit\ndef kernel(x): pass\nTILE: int = 16")
    ('TILE', 'kernel')
    >>> defined_names("%time total = 3\nx = (")
    ('x',)
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return tuple(sorted({first or second for first, second in _DEFINES.findall(source)}))
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return tuple(sorted(names))


def answers_file(questions: Mapping[str, int]) -> Path | None:
    """Return the file for the answers of a lab, told by its questions and points; None where nothing is saved."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named and not in_colab():
        return None
    folder = Path(named) if named else (DRIVE if DRIVE.is_dir() else MACHINE) / "mlsys-answers"
    digest = sha256(json.dumps(sorted(questions.items())).encode()).hexdigest()[:8]
    return folder / f"{'-'.join(questions)[:60]}-{digest}.json"


def begin_saving(questions: Mapping[str, int]) -> None:
    """Save each cell before it runs from now on; in a judge, and where Jupyter saves the notebook, do nothing."""
    global _keeper
    shell = find_shell()
    place = answers_file(questions)
    if _keeper:
        _keeper.stop()
        _keeper = None
    if shell is None or place is None:
        return
    _keeper = _Keeper(shell, place)
    _keeper.greet()


def restore(notebook: str | os.PathLike[str] = "", answers: str | os.PathLike[str] = "") -> Restored:
    """Write a notebook of the lab with the saved answers in their cells, beside the file that holds them.

    Args:
        notebook: the lab's notebook as it was released; by default the one that is open.
        answers: a file of saved answers, as from another machine; by default that of this lab.

    Raises:
        UserError: nothing was saved, or the notebook cannot be read.
    """
    place = Path(answers) if answers else _keeper.path if _keeper else None
    if place is None:
        raise UserError(
            "no answers are saved here: run the lab's first cell first; outside Colab, Jupyter saves the notebook "
            f"itself, unless {FOLDER_VARIABLE} names a folder"
        )
    kept = _read(place)
    if not kept.code and not kept.written:
        raise UserError(f"{place} holds no answers: nothing was saved yet")
    names = getattr(find_shell(), "user_ns", {})
    base = read_file(Path(notebook)) if notebook else read_notebook(names)
    if not isinstance(base, dict) or not any(_is_answer(cell) for cell in cells_of(base)):
        raise UserError(
            f"{notebook or 'the open notebook'} cannot be read, or is no lab: name the lab's notebook, "
            "as in grading.restore('tiling.ipynb')"
        )
    stem = (Path(notebook) if notebook else notebook_path(names)).stem
    return _fill(base, kept, place.parent / f"{stem or 'lab'}-restored.ipynb")


def _fill(base: dict[str, Any], kept: Answers, target: Path) -> Restored:
    filled = copy.deepcopy(base)
    given = {_text(cell) for cell in cells_of(base)}
    used: set[int] = set()
    answers, missing, names_given = [], [], set()
    for cell in cells_of(filled):
        names_given |= set(defined_names(_text(cell))) if cell.get("cell_type") == "code" else set()
        if not _is_answer(cell):
            continue
        label = _id(cell)
        if cell.get("cell_type") == "code":
            found = kept.answer_to(_text(cell))
            used |= {id(found)}
            text = found.source if found else None
        else:
            text = kept.written.get(label)
        if text is None or text == _text(cell):
            missing.append(label)
        else:
            cell["source"] = text
            answers.append(label)
    newest = {saved.names: saved for saved in kept.code}
    own = [
        saved.source
        for saved in newest.values()
        if id(saved) not in used and saved.source not in given and not set(saved.names) & names_given
    ]
    cells = filled["cells"]
    after = next((place + 1 for place, cell in enumerate(cells) if cell.get("cell_type") == "code"), 0)
    cells[after:after] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"own-{place}",
            "metadata": {},
            "outputs": [],
            "source": text,
        }
        for place, text in enumerate(own)
    ]
    write_atomically(target, json.dumps(filled, ensure_ascii=False, indent=1).encode())
    return Restored(target, tuple(answers), len(own), tuple(missing))


class _Keeper:
    """The saving of a notebook's cells."""

    def __init__(self, shell: Any, path: Path) -> None:
        self.shell, self.path = shell, path
        self.answers = _read(path)
        self.earlier = self.answers.code[-1].at if self.answers.code else ""
        self.failed = False
        self.looked_s = -float("inf")
        shell.events.register("pre_run_cell", self.before)

    def stop(self) -> None:
        self.shell.events.unregister("pre_run_cell", self.before)

    def greet(self) -> None:
        """Say where cells are saved, and that there are answers of an earlier time."""
        if in_colab() and DRIVE not in self.path.parents:
            print(
                f"Your cells are saved in {self.path.parent}, which ends with this machine. To keep them, mount your "
                "Drive (folder symbol on the left, Mount Drive) and run this cell again."
            )
        if self.earlier:
            print(
                f"Answers that ran on {self.earlier[:16].replace('T', ' ')} are saved. If they are missing here, "
                "grading.restore() writes a notebook that has them."
            )

    def before(self, info: Any) -> None:
        source = str(getattr(info, "raw_cell", "") or "")
        changed = self.answers.add(source, datetime.now().astimezone().isoformat(timespec="seconds"))
        if has_tests(source) and time.monotonic() - self.looked_s > WRITTEN_EVERY_S:
            changed |= self._look_at_written()
        if not changed:
            return
        try:
            write_atomically(self.path, msgspec.json.encode(self.answers))
            self.failed = False
        except UserError as error:
            if not self.failed:
                reason = getattr(error.__cause__, "strerror", error)
                print(f"This cell could not be saved in {self.path} ({reason}): save the notebook yourself.")
            self.failed = True

    def _look_at_written(self) -> bool:
        """Take over the written answers from the notebook, and return whether one is new."""
        self.looked_s = time.monotonic()
        found = {
            _id(cell): _text(cell)
            for cell in cells_of(read_notebook(self.shell.user_ns))
            if _is_answer(cell) and cell.get("cell_type") == "markdown"
        }
        starters = {label for label, text in found.items() if "Your answer" in text and label in self.answers.written}
        found = {label: text for label, text in found.items() if label not in starters}
        changed = any(self.answers.written.get(label) != text for label, text in found.items())
        self.answers.written |= found
        return changed


_keeper: _Keeper | None = None


def _is_answer(cell: Mapping[str, Any]) -> bool:
    return _of(cell, "nbgrader").get("solution") is True


def _id(cell: Mapping[str, Any]) -> str:
    return str(_of(cell, "nbgrader").get("grade_id", ""))


def _of(cell: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    metadata = cell.get("metadata")
    found = metadata.get(key) if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _text(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _read(path: Path) -> Answers:
    """Return the answers in a file; one that cannot be read is set aside, and said."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Answers)
    except FileNotFoundError:
        return Answers()
    except (OSError, msgspec.DecodeError) as error:
        aside = path.with_suffix(f".unreadable-{int(time.time())}")
        try:
            path.rename(aside)
        except OSError:
            aside = path
        print(f"The saved answers in {aside} cannot be read ({error}); saving begins anew.")
        return Answers()
