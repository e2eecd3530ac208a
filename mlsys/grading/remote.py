"""What stands in a test for a name that only the student's cells define.

A test calls it as it would call the student's function; the call runs in the student's process. It cannot be a kernel
launch, for a test has no business with a student's grid.
"""

from collections.abc import Callable
from typing import Any

Ask = Callable[[str, tuple[Any, ...], dict[str, Any], bool], Any]


class Proxy:
    """A function of the student's; with `guarded`, its tensors get guard bands over there."""

    def __init__(self, name: str, ask: Ask, session: Any, guarded: bool = False) -> None:
        self.__name__ = name
        self.session = session
        self._ask = ask
        self._guarded = guarded

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the student's function and return its result."""
        return self._ask(self.__name__, args, kwargs, self._guarded)

    def with_guards(self) -> "Proxy":
        """Return the same function, called inside `mlsys.grading.guarded`."""
        return Proxy(self.__name__, self._ask, self.session, guarded=True)

    def __getitem__(self, grid: object) -> Any:
        """Tests call functions; launching a kernel is up to the student's own function."""
        raise TypeError(f"a test cannot launch {self.__name__}; it calls functions only")
