"""Bindings of a notebook's names, as far as a kernel can use them: read from the text, never run."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlsys.core.cells import PARSE_ERRORS, parse, plain_python
from mlsys.grading.kernels.language import LANGUAGE


@dataclass(frozen=True)
class Imported:
    """A module, or a member of one, by its full name, such as "triton.language.load"."""

    path: str


@dataclass(frozen=True)
class Function:
    """A function's definition."""

    node: ast.FunctionDef


@dataclass(frozen=True)
class Alias:
    """Another name for something."""

    name: str


@dataclass(frozen=True)
class Assigned:
    """A name that is bound to the value of an expression."""

    value: ast.expr


@dataclass(frozen=True)
class Other:
    """Anything else, with the reason why a kernel cannot use it."""

    why: str = ""


Binding = Imported | Function | Alias | Assigned | Other | ast.ClassDef


def bindings(cells: Iterable[str]) -> dict[str, Binding]:
    """Return, for each name, what the last statement that binds it binds it to."""
    bound: dict[str, Binding] = {"triton": Imported("triton"), "tl": Imported("triton.language")}
    for cell in cells:
        try:
            body = parse(plain_python(cell)).body
        except PARSE_ERRORS:
            continue  # a notebook's history holds cells that never ran
        for statement in body:
            bound.update(_bound_by(statement))
    return bound


def _bound_by(statement: ast.stmt) -> dict[str, Binding]:
    match statement:
        case ast.FunctionDef(name=name):
            return {name: Function(statement)}
        case ast.ClassDef(name=name):
            return {name: statement}
        case ast.Import(names=names):
            return {
                (alias.asname or alias.name.partition(".")[0]): Imported(
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
                for alias in names
            }
        case ast.ImportFrom(module="triton.language", names=[ast.alias(name="*")], level=0):
            return {name: Imported(f"triton.language.{name}") for name in (*LANGUAGE, "math")}
        case ast.ImportFrom(module=module, names=names, level=level):
            prefix = "." * level + (module or "")
            return {alias.asname or alias.name: Imported(f"{prefix}.{alias.name}") for alias in names}
        case ast.Assign(targets=targets, value=value):
            found: dict[str, Binding] = {}
            for target in targets:
                found.update(_assigned(target, value))
            return found
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            return _assigned(ast.Name(name), value)
        case ast.AnnAssign():
            return {}
        case ast.If() | ast.Try() | ast.With():
            return _bound_in_branches(statement)
    return dict.fromkeys(stored(statement), Other("is bound by a statement that only Python understands"))


def _assigned(target: ast.expr, value: ast.expr) -> dict[str, Binding]:
    match target, value:
        case ast.Name(id=name), ast.Name(id=other):
            return {name: Alias(other)}
        case ast.Name(id=name), _:
            return {name: Assigned(value)}
        case (ast.Tuple(elts=names), ast.Tuple(elts=values)) | (ast.List(elts=names), ast.List(elts=values)) if len(
            names
        ) == len(values) and all(isinstance(one, ast.Name) for one in names):
            found: dict[str, Binding] = {}
            for one, part in zip(names, values, strict=True):
                found.update(_assigned(one, part))
            return found
    return dict.fromkeys(stored(target), Other("is assigned together with others; assign it on a line of its own"))


def _bound_in_branches(statement: ast.If | ast.Try | ast.With) -> dict[str, Binding]:
    """Return what a block binds; which of two branches runs is not known here."""
    found: dict[str, Binding] = {}
    inner = [node for name in ("body", "handlers", "orelse", "finalbody") for node in getattr(statement, name, ())]
    for node in inner:
        for part in node.body if isinstance(node, ast.ExceptHandler) else [node]:
            for name, binding in _bound_by(part).items():
                twice = name in found and found[name] != binding
                found[name] = Other("is defined in two branches; define it once") if twice else binding
    return found


def stored(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement assigns to, in its parts too."""
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store))
