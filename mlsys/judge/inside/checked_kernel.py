"""Make a kernel from its checked source, so that what was checked is what runs.

Triton reads the source of a function again: its compiler parses the text that `inspect` finds, and its interpreter
looks for the line that begins with "def" and parses what follows. Each reads the text a second time, by different
rules. So here the interpreter gets the tree that was checked, and the tree that the compiler has read is compared with
it. Each text is a file of its own to them: with one name for two kernels, one would get the lines of the other.
"""

import ast
import builtins
import copy
import linecache
from functools import cache
from types import ModuleType
from typing import Any

from mlsys.grading.hazards.finding import LINES
from mlsys.grading.kernels.language import BUILTINS
from mlsys.grading.kernels.source import HEADER, KernelSource


def define(source: KernelSource, label: str) -> Any:
    """Return the kernel that a checked source defines; the same for the same source, so that it is compiled once.

    Args:
        source: what `kernel_source` returns.
        label: what tracebacks call the source's file; `files_of` returns the names of all files with this label.

    Raises:
        RuntimeError: Triton has read something other than what was checked.
    """
    return _define(source.text, source.lines, label)[source.name]


def files_of(label: str) -> set[str]:
    """Return the names that the files of all kernels defined with a label have in tracebacks."""
    return {file for file in _FILES if file == label or file.startswith(f"{label} (")}


_FILES: set[str] = set()


@cache
def _define(text: str, lines: tuple[int, ...], label: str) -> dict[str, Any]:
    import triton
    import triton.language as tl

    module = ModuleType("kernel")
    names = module.__dict__
    allowed = {name: getattr(builtins, name) for name in sorted(BUILTINS)}
    names |= {"__builtins__": allowed, "triton": triton, "tl": tl}
    tree = ast.parse(text, label)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if not text.startswith(HEADER) or len(functions) + len(ast.parse(HEADER).body) != len(tree.body):
        raise RuntimeError(f"{label} contains more than functions")
    others = len(files_of(label))
    label = f"{label} ({others + 1})" if others else label
    _FILES.add(label)
    # Triton asks `inspect` for a function's lines, which finds them here.
    LINES[label] = lines
    linecache.cache[label] = (len(text), None, text.splitlines(keepends=True), label)
    exec(compile(ast.Module(list(functions), []), label, "exec"), names)
    for node in functions:
        _hand_over(names[node.name], node, label)
    return names


def _hand_over(function: Any, node: ast.FunctionDef, label: str) -> None:
    """Give the interpreter the checked tree, or compare it with the tree that the compiler has read."""
    checked = copy.deepcopy(node)
    checked.decorator_list = []
    rewriter = getattr(function, "rewriter", None)
    if rewriter is not None:
        rewriter.rewrite_ast = lambda: _rewritten(rewriter, checked, label)
    elif hasattr(function, "parse") and ast.dump(function.parse().body[0]) != ast.dump(checked):
        raise RuntimeError(f"Triton reads another function {node.name} than the one that was checked")


def _rewritten(rewriter: Any, node: ast.FunctionDef, label: str) -> Any:
    """Do what the interpreter's own `rewrite_ast` does after it has parsed the source."""
    tree = rewriter.ast_transformer.visit(ast.Module([copy.deepcopy(node)], []))
    rewriter.filename = label
    return rewriter._compile_and_exec(ast.fix_missing_locations(tree))
