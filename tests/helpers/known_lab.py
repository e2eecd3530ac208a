"""A lab of the course as its tests use it: cells, verdicts on changed solutions, kernels compiled for any GPU."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

from mlsys.course.lab import Lab
from mlsys.judge.grade_question import StudentCell, Submission, grade_question
from mlsys.judge.run_tests import segments

ROOT = Path(__file__).parents[2]
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"


class KnownLab:
    """A lab with its solutions, after terms with these seeds; `change` gives what a student hands in as a cell."""

    def __init__(self, name, seeds=()):
        self.lab = Lab.load(ROOT / "labs" / name / "lab.py", seeds)
        self.cells = {cell.id: cell for cell in self.lab.cells}
        self.code_questions = [question.name for question in self.lab.questions if not question.written]

    def verdict(self, question, change=lambda cell: cell.source, seed=1):
        cells = [StudentCell(cell.id, change(cell)) for cell in self.lab.cells if cell.role and cell.kind == "code"]
        return grade_question(Submission(self.lab, tuple(cells)), self.lab.question(question), "cpu", seed=seed)

    def with_fault(self, cell_id, right, wrong):
        """The lab's solutions with one text of one cell replaced."""
        source = self.cells[cell_id].source
        assert right in source
        return self.with_cell(cell_id, source.replace(right, wrong))

    def with_cell(self, cell_id, source):
        """The lab's solutions with another text for one cell."""
        return lambda cell: source if cell.id == cell_id else cell.source

    def function(self, cell_id, name):
        """The syntax tree of a function that a cell defines."""
        return next(node for node in ast.parse(self.cells[cell_id].source).body if getattr(node, "name", "") == name)

    def made(self, cell_id, name, **names):
        """A function that a cell defines, made with no other names than these."""
        exec(compile(ast.Module([self.function(cell_id, name)], []), cell_id, "exec"), names)
        return names[name]

    def hidden(self, cell_id, part=0):
        """A hidden part of a cell of tests, as the judge divides it."""
        return [text for is_hidden, text in segments(self.cells[cell_id].source) if is_hidden][part]

    def rival(self, cell_id):
        """The kernel that a race is against: what its cell hides up to the function that follows."""
        return self.hidden(cell_id).split("\n\n\ndef ")[0]


def compile_kernels(module, jobs, cache=None):
    """What each job for `compile_kernels.py` needs; it runs in a process in which triton does not interpret."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("compile_kernels.py"), module],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        env=environment | ({"TRITON_CACHE_DIR": str(cache)} if cache else {}),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
