"""Print how close the memory planner comes on MiniMalloc's eleven challenging problems, as a table in Markdown.

    python scripts/plan_memory.py

The plans are checked by the tests' own check, which knows nothing of the planner. They are the same on every machine;
the seconds are those of one core of this one.
"""

import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from helpers.minimalloc import CAPACITY, NAMES, height_of, problem  # noqa: E402

from mlsys.runtime import peak_live, plan_memory  # noqa: E402


def main() -> None:
    """Plan the eleven problems, and print a line for each."""
    print(f"Heights as shares of the capacity of {CAPACITY:,}.\n")
    print("| problem | buffers | live at once | one pass | search | seconds |")
    print("|---|---|---|---|---|---|")
    for name in NAMES:
        buffers = problem(name)
        started = time.process_time()
        searched = height_of(buffers, plan_memory(buffers))
        seconds = time.process_time() - started
        one_pass = height_of(buffers, plan_memory(buffers, effort=0))
        shares = " | ".join(f"{height / CAPACITY:.3f}" for height in (peak_live(buffers), one_pass, searched))
        print(f"| {name} | {len(buffers)} | {shares} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
