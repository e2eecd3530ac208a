"""The folder that the sandbox shows: a copy of the package without what student code must not import.

The judge imports the whole package. A question's processes import this copy. It leaves out what only instructors use,
and the functions that a lab withholds raise an error in it: a question that asks for a formula is not answered by
importing it.
"""

import ast
import shutil
import tempfile
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from multiprocessing.util import Finalize
from pathlib import Path

import mlsys
from mlsys.errors import InvalidValue
from mlsys.grading import session
from mlsys.grading.slot.slot import WARM_UP

INSTRUCTORS = (
    "mlsys.cli",
    "mlsys.course",
    "mlsys.doctor",
    "mlsys.grading",
    "mlsys.measure.bench",
    "mlsys.measure.book_suite",
    "mlsys.sandbox_check",
)
"""Modules and packages of which the copy has only what something else in it imports."""

ENTRIES = (
    *(entry.partition(":")[0] for entry in session.ENTRIES.values()),
    WARM_UP,
    "mlsys.grading",
    "mlsys.grading.compiler_report",
    "mlsys.grading.slot.probe",
    "mlsys.grading.slot.warm_parent",
)
"""Modules of `mlsys.grading` that the sandbox starts with or that labs import."""

_PACKAGE = Path(mlsys.__file__).parent


@cache
def site(withheld: tuple[str, ...] = ()) -> Path:
    """Copy the package into a folder that lasts as long as this process.

    The sandbox shows this folder in place of the repository, which holds hidden tests.

    Args:
        withheld: modules, classes and functions, such as "mlsys.traffic.best_schedule", whose functions raise an error
            in the copy; `check_withheld` has passed them.
    """
    folder = Path(tempfile.mkdtemp(prefix="mlsys-site-"))
    Finalize(
        None, shutil.rmtree, (folder, True), exitpriority=0
    )  # `atexit` is not heard in processes of multiprocessing
    for path in _shown_files():
        target = folder / "mlsys" / path.relative_to(_PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        names = [name for name in withheld if path.suffix == ".py" and _touches(name, _module_name(path))]
        if names:
            target.write_text(without_bodies(path.read_text(encoding="utf-8"), _module_name(path), names), "utf-8")
        else:
            shutil.copyfile(path, target)
    folder.chmod(0o755)
    return folder


def check_withheld(names: Iterable[str]) -> None:
    """Raise `InvalidValue` unless each name is a module, class or function of the package, by where it is defined."""
    for name in names:
        module = name
        while module and module not in _modules():
            module = module.rpartition(".")[0]
        known = {*_modules(), *(_defined_names(module) if module else ())}
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise InvalidValue(
                f"{name!r} is no module, class or function of the package: {hint}"
                "Write it in full, by the module that defines it, such as 'mlsys.traffic.best_schedule'"
            )


def without_bodies(source: str, module: str, names: Iterable[str]) -> str:
    r"""Return a module's source in which every function that `names` name, or that is inside what they name, raises.

    >>> print(without_bodies("def area(a, b):\n    return a * b", "shapes", ["shapes.area"]))
    def area(a, b):
        raise RuntimeError('shapes.area is left out when this lab is graded: write what it does yourself.')
    """
    return ast.unparse(_BodyRemover(module, tuple(names)).visit(ast.parse(source)))


class _BodyRemover(ast.NodeTransformer):
    """Replaces bodies of functions and methods; a function inside a function goes with it."""

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
            text = f"{name} is left out when this lab is graded: write what it does yourself."
            node.body = ast.parse(f"raise RuntimeError({text!r})").body
        return node


def _is_in(name: str, whole: str) -> bool:
    """Whether a dotted name is `whole` or something inside it."""
    return f"{name}.".startswith(f"{whole}.")


def _touches(name: str, module: str) -> bool:
    return _is_in(name, module) or _is_in(module, name)


@cache
def _modules() -> dict[str, Path]:
    """The file of every module of the package, by dotted name."""
    return {_module_name(path): path for path in sorted(_PACKAGE.rglob("*.py"))}


def _module_name(path: Path) -> str:
    parts = path.relative_to(_PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _defined_names(module: str) -> set[str]:
    """Full names of a module's classes, functions and methods."""
    found = set()

    def visit(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                found.add(f"{scope}.{child.name}")
            if isinstance(child, ast.ClassDef):
                visit(child, f"{scope}.{child.name}")

    visit(ast.parse(_modules()[module].read_text(encoding="utf-8")), module)
    return found


@cache
def _shown_files() -> tuple[Path, ...]:
    """Files of the copy: modules that are not for instructors alone, what they import, and data."""
    shown: set[str] = set()
    found = [*ENTRIES, *(name for name in _modules() if not _is_for_instructors(name))]
    while found:
        name = found.pop()
        if name not in shown:
            shown.add(name)
            found += _imports(name)
    data = [path for path in _PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")]
    return (
        *(_modules()[name] for name in sorted(shown)),
        *(path for path in sorted(data) if not _is_for_instructors(_module_name(path.parent / "__init__.py"))),
    )


def _is_for_instructors(name: str) -> bool:
    return any(_is_in(name, other) for other in INSTRUCTORS)


def _imports(module: str) -> list[str]:
    """The package's modules that a module imports, wherever in it, and the packages around them."""
    names = [module]
    for node in ast.walk(ast.parse(_modules()[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    parts = [name.split(".") for name in names]
    around = [".".join(name[:length]) for name in parts for length in range(1, len(name) + 1)]
    return [name for name in around if name in _modules()]
