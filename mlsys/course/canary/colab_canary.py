"""Run the published notebooks with the versions that Colab has: `python colab_canary.py [TREE]`.

For each set of versions a virtual environment is made, the wheel of the published tree is installed into it, and every
lab and three chapters are run from top to bottom, as in Colab. It uses nothing but Python itself, because it also runs
from the published tree: the workflow that `mlsys publish` writes starts it once a week. The sets lie beside this file,
each with its source; "unpinned" takes the newest versions of all, which Colab may have next month.

The machine of a T4 in Colab is imitated where this can be done without one: two cores and 12 GiB for each notebook.
What Triton does for a T4's GPU is not tested here, because nothing here is one.
"""

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
UNPINNED = "unpinned"
NEEDED = ("ipykernel", "matplotlib", "nbclient", "numpy", "torch", "tqdm", "triton")
"""What Colab has and notebooks need, for the set without versions."""
CHAPTERS = ("first-kernels", "numerics", "tiling")
"""Chapters that are run: one that runs kernels, one that computes, one that draws a record."""
CORES, MEMORY_BYTES = 2, 12 * 2**30
"""What a notebook gets of the machine, as in Colab beside a T4."""
NOTEBOOK_S, CELL_S = 600, 180
"""Longest time in seconds for a notebook, and for one of its cells."""
UNANSWERED = set(
    "InterpreterError KernelError NameError NeedsGpu NotImplementedError NotImplementedYet "
    "OutOfBounds WrongAnswer".split()
)
"""Errors that a lab without answers shows by itself; with answers, only `NeedsGpu`."""

RUN = """
import json, sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
nbclient.NotebookClient(notebook, timeout=int(sys.argv[2]), allow_errors=True).execute()
errors = [[cell.get("id", str(place)), output.ename, output.evalue[:200]] for place, cell in enumerate(notebook.cells)
          if cell.cell_type == "code" for output in cell.outputs if output.output_type == "error"]
print("CANARY" + json.dumps(errors))
"""


@dataclass(frozen=True)
class Outcome:
    """How one notebook ran with one set: the seconds it took, and what went wrong."""

    versions: str
    notebook: str
    seconds: float
    wrong: tuple[str, ...]


def set_names() -> list[str]:
    """Return the names of the sets, the newest first, and the one without versions."""
    return [*sorted((path.stem for path in (HERE / "colab").glob("*.txt")), reverse=True), UNPINNED]


def own_files() -> list[Path]:
    """Return the files that the published tree needs for this: this one and the sets."""
    return [Path(__file__).resolve(), *sorted((HERE / "colab").glob("*.txt"))]


def python_for(name: str) -> tuple[str, str]:
    """Return the interpreter for a set and what to say of it: that of Colab where this machine has it."""
    own = ".".join(map(str, sys.version_info[:2]))
    if name == UNPINNED:
        return sys.executable, f"Python {own}"
    found = re.search(r"^# Python (\d+\.\d+)", (HERE / "colab" / f"{name}.txt").read_text(encoding="utf-8"), re.M)
    wanted = found[1] if found else own
    path = sys.executable if wanted == own else shutil.which(f"python{wanted}")
    # A version manager has commands for versions that are switched off.
    works = path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
    return (
        (str(path), f"Python {wanted}") if works else (sys.executable, f"Python {own}, not {wanted}, which is not here")
    )


def make_environment(name: str, folder: Path) -> Path:
    """Make a virtual environment with the versions of a set, and return its Python."""
    interpreter, _ = python_for(name)
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    what = list(NEEDED) if name == UNPINNED else ["-r", str(HERE / "colab" / f"{name}.txt")]
    _pip(python, "install", *what)
    return python


def install_wheel(python: Path, tree: Path) -> tuple[str, ...]:
    """Install the tree's wheel, and return what it changed of what was there, which it must not."""
    wheels = sorted((tree / "wheels").glob("mlsys-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise SystemExit(f"{tree} has no wheel in wheels/: name the folder that `mlsys publish` wrote")
    before = _installed(python)
    _pip(python, "install", str(wheels[-1]))
    after = _installed(python)
    return tuple(f"{name} {old} became {after.get(name)}" for name, old in before.items() if after.get(name) != old)


def notebooks_of(tree: Path, answers: Path | None) -> list[Path]:
    """Return the notebooks that are run: all labs, those with answers where there are any, and three chapters."""
    labs = sorted((tree / "labs").glob("*/*.ipynb"))
    if answers:
        labs = [answers / path.name for path in labs]
    found = [*labs, *(tree / "chapters" / f"{name}.ipynb" for name in CHAPTERS)]
    if missing := [str(path) for path in found if not path.is_file()]:
        raise SystemExit(f"{missing[0]} is missing: name a tree that `mlsys publish` wrote with the book built")
    return found


def run(python: Path, notebook: Path, allowed: set[str]) -> tuple[float, tuple[str, ...]]:
    """Run a notebook in a folder of its own, and return its seconds and what went wrong."""
    with TemporaryDirectory() as folder:
        shutil.copy(notebook, folder)
        command = [str(python), "-c", RUN, notebook.name, str(CELL_S)]
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        started = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=folder, env=_environment(path, folder), capture_output=True, text=True,
                timeout=NOTEBOOK_S, preexec_fn=_limit, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return NOTEBOOK_S, (f"did not end within {NOTEBOOK_S} s",)
        seconds = time.perf_counter() - started
    said = [line.removeprefix("CANARY") for line in done.stdout.splitlines() if line.startswith("CANARY")]
    if not said:
        return seconds, (f"stopped: {(done.stderr or done.stdout).strip()[-300:]}",)
    return seconds, tuple(f"{cell}: {name}: {what}" for cell, name, what in json.loads(said[-1]) if name not in allowed)


def canary(
    tree: Path, sets: list[str], only: list[str], answers: Path | None, say: Callable[[str], None]
) -> Iterator[Outcome]:
    """Run what is asked for, and yield an outcome for each notebook with each set."""
    notebooks = [path for path in notebooks_of(tree, answers) if not only or path.stem in only]
    if not notebooks:
        raise SystemExit(f"no notebook is called {', '.join(only)}")
    for name in sets:
        _, spoken = python_for(name)
        say(f"{name}: installing ({spoken})")
        with TemporaryDirectory() as folder:
            python = make_environment(name, Path(folder) / "venv")
            changed = install_wheel(python, tree)
            yield Outcome(name, "the wheel", 0, changed)
            for path in notebooks:
                lab = path.parent.name != "chapters"
                allowed = set() if not lab else {"NeedsGpu"} if answers else UNANSWERED
                yield Outcome(name, path.stem, *run(python, path, allowed))


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, print a row for each outcome, and return 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("tree", nargs="?", type=Path, default=HERE.parent, help="what `mlsys publish` wrote")
    parser.add_argument("--set", action="append", choices=set_names(), help="a set of versions; by default all")
    parser.add_argument("--only", action="append", default=[], help="a notebook, by its name; by default all")
    parser.add_argument("--answers", type=Path, help="a folder with the labs' notebooks with right answers")
    asked = parser.parse_args(arguments)
    wrong = 0
    for outcome in canary(
        asked.tree, asked.set or set_names(), asked.only, asked.answers, lambda line: print(line, flush=True)
    ):
        took = f"{outcome.seconds:5.0f} s" if outcome.seconds else "       "
        print(
            f"{outcome.versions:<11} {outcome.notebook:<14} {took}  {'; '.join(outcome.wrong) or 'as it should'}",
            flush=True,
        )
        wrong += bool(outcome.wrong)
    print(f"{wrong} of the rows above went wrong." if wrong else "Everything ran as it should.")
    return 1 if wrong else 0


def _pip(python: Path, *words: str) -> None:
    done = subprocess.run([str(python), "-m", "pip", *words, "--quiet", "--disable-pip-version-check"], check=False)
    if done.returncode:
        raise SystemExit(f"pip {' '.join(words[:3])} failed with exit status {done.returncode}: see above")


def _installed(python: Path) -> dict[str, str]:
    command = [str(python), "-m", "pip", "list", "--format=json", "--disable-pip-version-check"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return {entry["name"].lower(): entry["version"] for entry in listed}


def _environment(path: str, folder: str) -> dict[str, str]:
    """Return the environment of a fresh machine: no settings of this one reach the notebook."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "SSL_CERT_FILE") if name in os.environ}
    return {**kept, "PATH": path, "HOME": folder, "IPYTHONDIR": f"{folder}/.ipython", "MPLBACKEND": "agg"}


def _limit() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    sys.exit(main())
