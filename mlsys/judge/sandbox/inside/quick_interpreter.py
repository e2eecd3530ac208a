"""Triton's interpreter without work whose result nobody reads."""

import inspect
from dataclasses import replace
from functools import cache
from typing import Any

from triton.language.core import is_builtin
from triton.runtime import interpreter


def skip_unread_work() -> None:
    """Change the interpreter in this process; a kernel of small tiles then takes two thirds of the time.

    Two things go. Every sum, difference and product of integers is computed once more in 64 bits for an assertion on
    overflow, which is dropped unless `debug` is on. And at each launch, and each call of another kernel, all members of
    `triton.language` are listed and sorted to find its built-in functions, which stay the same.
    """
    builder = interpreter.interpreter_builder
    if not builder.options.debug:
        builder.options = replace(builder.options, sanitize_overflow=False)
    interpreter._patch_builtin = _patch_builtin


@cache
def _names_of_builtins(package: Any) -> list[str]:
    return [name for name, member in inspect.getmembers(package) if is_builtin(member)]


def _patch_builtin(package: Any, *rest: Any) -> None:
    for name in _names_of_builtins(package):
        member = getattr(package, name)
        if is_builtin(member):  # not within a launch, where it is replaced already
            interpreter._patch_attr(package, name, member, *rest)
