"""The folder that the sandbox shows: a copy of the package without what student code must not import.

The judge imports the whole package. A question's processes import this copy. It leaves out what only instructors use,
and the functions that a lab withholds raise an error in it: a question that asks for a formula is not answered by
importing it.
"""

import ast
import shutil
import tempfile
from collections.abc import Iterable
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

from mlsys.core.package import PACKAGE, ROOMS_OF_INSTRUCTORS, defined_as, module_name, modules, reached_modules
from mlsys.judge import session
from mlsys.judge.sandbox.host.sandbox import WARM_UP

INSTRUCTORS = (*ROOMS_OF_INSTRUCTORS, "mlsys.bench", "mlsys.cli")
"""Modules and packages of which the copy has only the parts that other modules in it import."""

ENTRIES = (
    *(entry.partition(":")[0] for entry in session.ENTRIES.values()),
    WARM_UP,
    "mlsys.judge.sandbox.inside.probe",
    "mlsys.judge.sandbox.inside.fork_server",
)
"""Modules of the judge that the sandbox starts with."""


@cache
def site(withheld: tuple[str, ...] = ()) -> Path:
    """Copy the package into a folder that lasts as long as this process.

    The sandbox shows this folder in place of the repository, which holds hidden tests.

    Args:
        withheld: modules, classes and functions, such as "mlsys.traffic.best_schedule", whose functions raise an error
            in the copy; `course.lab` has checked them.
    """
    withheld = tuple(defined_as(name) for name in withheld)
    folder = Path(tempfile.mkdtemp(prefix="mlsys-site-"))
    Finalize(
        None, shutil.rmtree, (folder, True), exitpriority=0
    )  # `atexit` is not heard in processes of multiprocessing
    for path in _shown_files():
        target = folder / "mlsys" / path.relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        names = [name for name in withheld if path.suffix == ".py" and _touches(name, module_name(path))]
        if names:
            target.write_text(without_bodies(path.read_text(encoding="utf-8"), module_name(path), names), "utf-8")
        else:
            shutil.copyfile(path, target)
    folder.chmod(0o755)
    return folder


def without_bodies(source: str, module: str, names: Iterable[str]) -> str:
    r"""Return a module's source in which every function that `names` name or contain raises an error.

    >>> print(without_bodies("def area(a, b):\n    return a * b", "shapes", ["shapes.area"]))
    def area(a, b):
        raise RuntimeError('shapes.area is removed when this lab is graded: write what it does yourself.')
    """
    return ast.unparse(_BodyRemover(module, tuple(names)).visit(ast.parse(source)))


class _BodyRemover(ast.NodeTransformer):
    """Replacement of the bodies of functions and methods; a function inside a function goes with it."""

    def __init__(self, module: str, names: tuple[str, ...]) -> None:
        self._scope = module
        self._names = names

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        outside, self._scope = self._scope, f"{self._scope}.{node.name}"
        self.generic_visit(node)
        self._scope = outside
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        name = f"{self._scope}.{node.name}"
        if any(_is_in(name, other) for other in self._names):
            text = f"{name} is removed when this lab is graded: write what it does yourself."
            node.body = ast.parse(f"raise RuntimeError({text!r})").body
        return node


def _is_in(name: str, whole: str) -> bool:
    """Return whether a dotted name is `whole` or something inside it."""
    return f"{name}.".startswith(f"{whole}.")


def _touches(name: str, module: str) -> bool:
    return _is_in(name, module) or _is_in(module, name)


@cache
def _shown_files() -> tuple[Path, ...]:
    """List the files of the copy: modules for students, the modules that these import, and data."""
    shown = reached_modules([*ENTRIES, *(name for name in modules() if not _is_for_instructors(name))])
    data = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    return (
        *(modules()[name] for name in shown),
        *(path for path in sorted(data) if not _is_for_instructors(module_name(path.parent / "__init__.py"))),
    )


def _is_for_instructors(name: str) -> bool:
    return any(_is_in(name, other) for other in INSTRUCTORS)
