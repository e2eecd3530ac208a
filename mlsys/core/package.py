"""Modules of this package and what they define, read from their files: nothing is imported."""

import ast
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from mlsys.errors import InvalidValue

PACKAGE = Path(__file__).parents[1]
"""Folder of the package `mlsys`."""

ROOMS_OF_INSTRUCTORS = ("mlsys.classroom", "mlsys.course", "mlsys.fleet", "mlsys.judge", "mlsys.submit")
"""Packages that no student needs. The wheel for students leaves them out, and so does the copy that the sandbox shows,
but for the modules that it runs itself."""


@cache
def modules() -> dict[str, Path]:
    """Return the file of every module of the package, by dotted name."""
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def module_name(path: Path) -> str:
    """Return the dotted name of a file of the package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(source: str) -> list[str]:
    """Return the package's modules that a source text imports, wherever in it, and the packages around them."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in _with_packages(names) if name in modules()]


def reached_modules(roots: Iterable[str]) -> list[str]:
    """Return `roots` and all modules of the package that they import, directly or by way of others, sorted."""
    reached: set[str] = set()
    left = _with_packages(roots)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += _imports_of(name)
    return sorted(reached)


@cache
def _imports_of(module: str) -> tuple[str, ...]:
    return tuple(imported_modules(modules()[module].read_text(encoding="utf-8")))


def _with_packages(names: Iterable[str]) -> list[str]:
    """Return dotted names with the packages around them."""
    parts = [name.split(".") for name in names]
    return [".".join(name[:length]) for name in parts for length in range(1, len(name) + 1)]


def defined_as(name: str) -> str:
    """Return the full name under which a module, class, function or method is defined.

    >>> defined_as("mlsys.traffic.best_schedule")
    'mlsys.traffic.matmul.best_schedule'

    Args:
        name: as it is imported, such as "mlsys.traffic.best_schedule", or as it is defined.

    Raises:
        InvalidValue: the package has nothing of that name.
    """
    module = name
    while module and module not in modules():
        module = module.rpartition(".")[0]
    if name in modules():
        return name
    if module:
        first, _, rest = name.removeprefix(f"{module}.").partition(".")
        if origin := _borrowed_names(module).get(first):
            return defined_as(f"{origin}.{rest}" if rest else origin)
        if name in _defined_names(module):
            return name
    here = (*_defined_names(module), *(f"{module}.{name}" for name in _borrowed_names(module))) if module else ()
    known = {*modules(), *here}
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise InvalidValue(
        f"{name!r} is no module, class or function of the package: {hint}"
        "Write it in full, such as 'mlsys.traffic.best_schedule'"
    )


@cache
def _borrowed_names(module: str) -> dict[str, str]:
    """Return the names that a package imports from its own modules, with where each comes from."""
    if modules()[module].name != "__init__.py":
        return {}
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(modules()[module].read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


@cache
def _defined_names(module: str) -> frozenset[str]:
    """Return the full names of a module's classes, functions and methods."""
    found = set()

    def visit(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                found.add(f"{scope}.{child.name}")
            if isinstance(child, ast.ClassDef):
                visit(child, f"{scope}.{child.name}")

    visit(ast.parse(modules()[module].read_text(encoding="utf-8")), module)
    return frozenset(found)
