"""The starter that a student gets in place of a solution.

nbgrader by itself can only put one fixed stub there. Here the lab says it: inside a solution region, lines that begin
with `#: ` are the starter, and everything else goes.
"""

import re

_BEGIN, _END = "### BEGIN SOLUTION", "### END SOLUTION"
_STARTER_LINE = re.compile(r"^(\s*)#:(?: (.*))?$")


def starter(source: str) -> str:
    """Return the text of a solution cell as students get it.

    >>> print(starter('''def double(x):
    ...     ### BEGIN SOLUTION
    ...     #: raise NotImplementedError("double")
    ...     return 2 * x
    ...     ### END SOLUTION
    ... double(3)'''))
    def double(x):
        raise NotImplementedError("double")
    double(3)
    """
    lines: list[str] = []
    in_solution = False
    for line in source.split("\n"):
        if _BEGIN in line:
            in_solution = True
        elif _END in line:
            in_solution = False
        elif not in_solution:
            lines.append(line)
        elif kept := _STARTER_LINE.match(line):
            lines.append((kept.group(1) + (kept.group(2) or "")).rstrip())
    return "\n".join(lines)


def solution(source: str) -> str:
    """Return the text of a solution cell as a student would have written it: no markers, no starter."""
    lines = source.split("\n")
    return "\n".join(line for line in lines if not (_BEGIN in line or _END in line or _STARTER_LINE.match(line)))


def without_hidden_tests(source: str) -> str:
    """Return the text of a test cell as students get it."""
    lines: list[str] = []
    hidden = False
    for line in source.split("\n"):
        if "BEGIN HIDDEN TESTS" in line or "END HIDDEN TESTS" in line:
            hidden = "BEGIN" in line
        elif not hidden:
            lines.append(line)
    return "\n".join(lines)
