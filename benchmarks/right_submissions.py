"""Right submissions to the tiling lab that differ in their text, and course trees to grade them in."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode

from mlsys.course.lab import PREDICT, SOLUTION, Lab
from mlsys.course.notebook import read_notebook, write_notebook
from mlsys.course.release import release
from mlsys.course.starter import solution
from mlsys.course.tree import CourseTree

ROOT = Path(__file__).parents[1]
LAB = "tiling"
_LOCAL_NAMES = re.compile(r"\b(acc|rows|cols|ks|tiles_m|tiles_n|pairs|capacity)\b")
_PLAIN_CONFIG = """c = get_config()
c.CourseDirectory.course_id = "plain"
c.Execute.timeout = 600
"""


def answers_of(lab: Lab, number: int) -> dict[str, str]:
    """The lab's reference solution with other local names and a comment, different for each number."""
    answers = {}
    for cell in lab.cells:
        if cell.role in (PREDICT, SOLUTION):
            answers[cell.id] = _LOCAL_NAMES.sub(rf"\1_{number}", solution(cell.source)) + f"\n# answer {number}"
    return answers


def right_submission(lab: Lab, released: NotebookNode, number: int) -> NotebookNode:
    """The released notebook with these answers."""
    notebook = released.copy()
    notebook.cells = [cell.copy() for cell in released.cells]
    answers = answers_of(lab, number)
    for cell in notebook.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if grade_id in answers and cell.cell_type == "code":
            cell.source = answers[grade_id]
    return notebook


def make_trees(folder: Path, count: int) -> tuple[CourseTree, CourseTree]:
    """A course tree as the course makes it and one of plain nbgrader, each with the same submissions handed in."""
    ours, plain = CourseTree(folder / "ours"), CourseTree(folder / "plain")
    release(ROOT, ours, [LAB])
    config = ours.root / "nbgrader_config.py"
    config.write_text(config.read_text() + 'c.RunQuestions.device = "cpu"\n')
    plain.source(LAB).parent.mkdir(parents=True)
    shutil.copyfile(ours.source(LAB), plain.source(LAB))
    (plain.root / "nbgrader_config.py").write_text(_PLAIN_CONFIG)
    nbgrader(plain, "generate_assignment", LAB)
    lab, released = Lab.load(ROOT / "labs" / LAB / "lab.py"), read_notebook(ours.release(LAB))
    for number in range(count):
        for tree in (ours, plain):
            write_notebook(right_submission(lab, released, number), tree.submitted(LAB, f"student-{number:03d}"))
    return ours, plain


def nbgrader(tree: CourseTree, *arguments: str) -> None:
    """Run one command of nbgrader in a course's folder."""
    command = [str(Path(sys.executable).with_name("nbgrader")), *arguments]
    subprocess.run(command, cwd=tree.root, check=True, capture_output=True)
