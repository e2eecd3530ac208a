"""Work that drives a browser of its own, beside the browser that a test already holds."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def in_a_thread(work: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Do the work in another thread: Playwright starts only once in each."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *arguments, **named).result()
