"""Where everything of a course is on disk: the nbgrader tree, plus versions, records and results beside it."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from mlsys.core.files import write_secret
from mlsys.errors import UserError

COURSE = "_build/course"
"""Where the tree lies in a repository."""

ATTEMPTS = "attempts.json"
"""Name of the list of a student's attempts, in which people may enter times."""

CONFIG = '''"""Written by `mlsys release`: makes the plain nbgrader commands in this folder use the course's own steps.

Lines below `configure` change them, such as `c.RunQuestions.cpu_limit_s = 20` or `c.RunQuestions.device = "cpu"`.
"""

from mlsys.classroom.gradebook.nbgrader_plugin import configure

c = get_config()  # noqa: F821  nbgrader provides it
configure(c)
'''


@dataclass(frozen=True)
class CourseTree:
    """The folder that nbgrader works in, `_build/course` of a repository."""

    root: Path

    def source(self, lab: str) -> Path:
        """Return the instructor's notebook, with solutions and hidden tests."""
        return self.root / "source" / lab / f"{lab}.ipynb"

    def release(self, lab: str) -> Path:
        """Return the notebook that students get."""
        return self.root / "release" / lab / f"{lab}.ipynb"

    def version(self, lab: str, version: str) -> Path:
        """Return the source of one released version, kept so that its submissions are graded with its tests."""
        return self.root / "versions" / lab / f"{version}.ipynb"

    def versions(self, lab: str) -> list[Path]:
        """Return the sources of all released versions, in alphabetical order."""
        return sorted((self.root / "versions" / lab).glob("*.ipynb"))

    @property
    def submissions(self) -> Path:
        """The folder of the students' folders, as nbgrader knows it."""
        return self.root / "submitted"

    def submitted(self, lab: str, student: str) -> Path:
        """Return a student's submission that counts, for nbgrader's own commands."""
        return self.submissions / student / lab / f"{lab}.ipynb"

    @property
    def terms(self) -> Path:
        """The list of the course's terms."""
        return self.root / "terms.json"

    @property
    def sample_course(self) -> "CourseTree":
        """A tree of its own for sample classes: nobody of them is ever among the students."""
        return CourseTree(self.root / "sample-class")

    def sample_class(self, lab: str) -> Path:
        """Return the folder of the lab's sample class, as it is handed in."""
        return self.root / "handed-in" / lab

    def attempts(self, lab: str, student: str) -> Path:
        """Return the list of a student's attempts; the folder around it holds what was handed in."""
        return self.root / "attempts" / student / lab / ATTEMPTS

    def attempt(self, lab: str, student: str, digest: str) -> Path:
        """Return what was handed in with one attempt."""
        return self.attempts(lab, student).with_name(f"{digest}.ipynb")

    def attempt_record(self, lab: str, student: str, digest: str) -> Path:
        """Return what is recorded about the grading of one of several attempts."""
        return self.attempts(lab, student).with_name(f"{digest or 'none'}.json")

    def autograded(self, lab: str, student: str) -> Path:
        """Return the graded notebook of a student."""
        return self.root / "autograded" / student / lab / f"{lab}.ipynb"

    def feedback(self, lab: str, student: str) -> Path:
        """Return the page that a student gets back."""
        return self.root / "feedback" / student / lab / f"{lab}.html"

    def records(self, lab: str) -> Path:
        """Return the folder of the records of a lab."""
        return self.root / "records" / lab

    def record(self, lab: str, student: str) -> Path:
        """Return what is recorded about the grading of one submission."""
        return self.records(lab) / f"{student}.json"

    def run(self, lab: str) -> Path:
        """Return what is kept of the latest grading run of a lab."""
        return self.root / "runs" / f"{lab}.json"

    def marks(self, lab: str) -> Path:
        """Return what is kept of the marks that people gave in a lab."""
        return self.root / "marks" / f"{lab}.json"

    def scores(self, lab: str, student: str) -> Path:
        """Return the history of a student's scores."""
        return self.root / "scores" / lab / f"{student}.json"

    def rubric(self, lab: str) -> Path:
        """Return the points and comments that are kept for marking a lab."""
        return self.root / "rubrics" / f"{lab}.json"

    def class_page(self, lab: str) -> Path:
        """Return the page about a lab's class, for the instructor."""
        return self.root / "results" / f"{lab}.html"

    @property
    def queue(self) -> Path:
        """The folder of the submit queue: its database, its settings, and the key that signs receipts."""
        return self.root / "queue"

    @property
    def backups(self) -> Path:
        """The folder of the backups, each made before a run."""
        return self.root / "backups"

    @property
    def lock(self) -> Path:
        """The file that a grading run holds as long as it works."""
        return self.root / "grading.lock"

    def results(self, lab: str) -> Path:
        """Return the table of all students and questions."""
        return self.root / "results" / f"{lab}.csv"

    def log(self, step: str) -> Path:
        """Return what nbgrader said during a step."""
        return self.root / "logs" / f"{step}.log"

    @property
    def gradebook(self) -> Path:
        """The file of nbgrader's gradebook, where no database keeps it."""
        return self.root / "gradebook.db"

    @property
    def database(self) -> Path:
        """The file that names the database in which the class is kept, once it was moved there."""
        return self.root / "database.txt"

    @property
    def config(self) -> Path:
        """The configuration that nbgrader reads in this folder."""
        return self.root / "nbgrader_config.py"

    def create(self) -> None:
        """Make the folder and its configuration.

        Raises:
            UserError: the folder cannot be written.
        """
        try:
            for folder in ("source", "release", "versions", "submitted", "records", "results", "logs"):
                (self.root / folder).mkdir(parents=True, exist_ok=True)
            if not self.config.is_file():  # an instructor may have added lines
                self.config.write_text(CONFIG, encoding="utf-8")
            if not os.access(self.root, os.W_OK):
                raise PermissionError(13, "no permission to write", str(self.root))
        except OSError as error:
            raise UserError(
                f"{self.root} cannot be written ({error}): choose another folder or correct its permissions"
            ) from error

    def secret(self) -> str:
        """Return the course's secret, drawn once; hidden tests draw their inputs from it."""
        path = self.root / "secret.txt"
        if not path.is_file():
            write_secret(path, secrets.token_hex(16))
        return path.read_text(encoding="utf-8").strip()

    def students(self, lab: str) -> list[str]:
        """Return the students with a folder for `lab` under `submitted`, in alphabetical order."""
        return sorted(path.parent.name for path in self.submissions.glob(f"*/{lab}") if path.is_dir())
