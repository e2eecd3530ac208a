"""Publish the student tree as it is now, and run it with Colab's versions: with the labs' right answers in them.

`python scripts/run_canary.py` makes both under `_build/canary`; its arguments are those of `colab_canary.py`.
"""

import shutil
import sys
from pathlib import Path

from mlsys.course.canary import colab_canary
from mlsys.course.lab import find_labs
from mlsys.course.publish import write_edition
from mlsys.course.release import release
from mlsys.course.sample_class import hand_in
from mlsys.course.tree import CourseTree

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Make the tree and the answered notebooks, and run the canary on them."""
    folder = ROOT / "_build" / "canary"
    shutil.rmtree(folder, ignore_errors=True)
    course = CourseTree(folder / "course")
    course.create()
    release(ROOT, course)
    write_edition(ROOT, course, folder / "tree")
    for name, source in find_labs(ROOT).items():
        handed_in = folder / "handed-in" / name
        hand_in(source, handed_in, course)
        (folder / "answers").mkdir(exist_ok=True)
        shutil.copy(handed_in / "right.ipynb", folder / "answers" / f"{name}.ipynb")
    return colab_canary.main([str(folder / "tree"), "--answers", str(folder / "answers"), *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
