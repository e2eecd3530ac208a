"""What waits for a GPU goes elsewhere in a file, and what was found comes back, also after marks were given."""

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import nbformat
import pytest
from helpers.gpu_passes import graded_elsewhere
from helpers.on_gpu import needs_gpu
from rich.console import Console

from mlsys.classroom.batch.task import Judged, Task
from mlsys.classroom.gpu_pass import BadPass, grade_pack, merge, pack
from mlsys.classroom.grade_class import Options, grade_class
from mlsys.classroom.gradebook.marks import marked_records, marks_of
from mlsys.classroom.gradebook.quote_answers import written
from mlsys.classroom.store.record import QuestionRecord
from mlsys.classroom.store.store import FileStore
from mlsys.classroom.students.roster import parse_roster
from mlsys.cli.main import main
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

QUIET = Console(quiet=True)
Waiting = tuple[Path, CourseTree]


@pytest.fixture(scope="module")
def graded(adding: tuple[Path, CourseTree, Path], tmp_path_factory: pytest.TempPathFactory) -> Waiting:
    """A class of two, graded without a GPU, also where there is one. Do not change it."""
    root = tmp_path_factory.mktemp("gpu-pass") / "repository"
    shutil.copytree(adding[0], root)
    tree = CourseTree(root / "_build" / "course")
    with tree.config.open("a") as config:
        config.write("c.RunQuestions.device = 'cpu'\n")
    handed_in = root.parent / "in"
    handed_in.mkdir()
    for name in ("right", "half-done"):
        shutil.copy(adding[2] / f"{name}.ipynb", handed_in)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "")  # for the workers
        grade_class(root, tree, "adding", Options(handed_in, workers=2), QUIET)
    return root, tree


@pytest.fixture
def waiting(graded: Waiting, tmp_path: Path) -> Waiting:
    """A copy of the class."""
    root = tmp_path / "all" / "repository"
    shutil.copytree(graded[0].parent, root.parent)
    return root, CourseTree(root / "_build" / "course")


def mark(tree: CourseTree, student: str, points: float) -> None:
    with open_gradebook(tree) as gradebook:
        gradebook.find_grade("e-why", "adding", "adding", student).manual_score = points
        gradebook.db.commit()


def points_of(tree: CourseTree) -> dict[str, dict[str, tuple[str, float]]]:
    found = marked_records(FileStore(tree), "adding", marks_of(tree, "adding"))
    return {
        student: {one.question: (one.verdict, one.points) for one in record.questions}
        for student, record in found.items()
        if record
    }


def test_only_what_waited_comes_back_and_marks_given_meanwhile_stay(waiting: Waiting, tmp_path: Path) -> None:
    _, tree = waiting
    before = points_of(tree)
    data, count = pack(tree, "adding")
    assert count == 2
    mark(tree, "right", 1.5)
    (tmp_path / "done.zip").write_bytes(graded_elsewhere(data))
    assert merge(tree, "adding", tmp_path / "done.zip").filled == ("half-done", "right")
    after = points_of(tree)
    assert after["right"] == before["right"] | {"d": ("slow", 3.5), "e": ("marked", 1.5)}
    assert after["half-done"] == before["half-done"] | {"d": ("slow", 3.5)}
    with open_gradebook(tree) as gradebook:
        total = sum(points for _, points in after["right"].values())
        assert gradebook.find_submission("adding", "right").score == total
    assert "3.5" in tree.feedback("adding", "right").read_text()
    # Merging again changes nothing.
    again = merge(tree, "adding", tmp_path / "done.zip")
    assert (again.filled, {reason for _, reason in again.left}) == ((), {"nothing waits here any more"})
    assert points_of(tree) == after
    assert main(["undo", "--to", max(path.name for path in tree.backups.iterdir()), "--course", str(tree.root)]) == 3


def test_a_written_answer_looks_as_before_after_the_pass(waiting: Waiting, tmp_path: Path) -> None:
    _, tree = waiting

    def answer() -> tuple[str, str]:
        notebook = nbformat.read(tree.autograded("adding", "right"), as_version=4)
        (cell,) = [one for one in notebook.cells if one.metadata.get("nbgrader", {}).get("grade_id") == "e-why"]
        return cell.source, written(cell)

    before, page = answer(), tree.feedback("adding", "right").read_text()
    (tmp_path / "done.zip").write_bytes(graded_elsewhere(pack(tree, "adding")[0]))
    assert merge(tree, "adding", tmp_path / "done.zip").filled == ("half-done", "right")
    assert answer() == before
    shown = "<strong>bandwidth</strong> is the limit."
    assert shown in page
    assert shown in tree.feedback("adding", "right").read_text()


def test_an_older_gradebook_stops_the_merge(waiting: Waiting, tmp_path: Path) -> None:
    root, tree = waiting
    (tmp_path / "done.zip").write_bytes(graded_elsewhere(pack(tree, "adding")[0]))
    older, before = tree.gradebook.read_bytes(), points_of(tree)
    mark(tree, "right", 1.5)
    grade_class(root, tree, "adding", Options(workers=2), QUIET)  # sees the mark
    tree.gradebook.write_bytes(older)
    words = ["gpu-pass", "adding", "--merge", str(tmp_path / "done.zip"), "--course", str(tree.root)]
    assert main(words) == 3
    assert points_of(tree) == before
    assert main([*words, "--yes"]) == 0
    assert points_of(tree)["right"]["d"] == ("slow", 3.5)


def test_a_submission_that_is_another_by_now_is_left(waiting: Waiting, tmp_path: Path) -> None:
    root, tree = waiting
    data, _ = pack(tree, "adding")
    (tmp_path / "done.zip").write_bytes(graded_elsewhere(data))
    handed_in = root.parent / "in"
    shutil.copy(handed_in / "right.ipynb", handed_in / "half-done.ipynb")
    grade_class(root, tree, "adding", Options(handed_in, workers=2, accept_changes=True), QUIET)
    merged = merge(tree, "adding", tmp_path / "done.zip")
    assert merged.filled == ("right",)
    assert merged.left == (("half-done", "another submission counts by now: pack again"),)


def test_files_of_another_lab_step_or_state_are_refused(waiting: Waiting, tmp_path: Path) -> None:
    root, tree = waiting
    data, _ = pack(tree, "adding")
    path = tmp_path / "pass.zip"
    for content, message in (
        (data, "was not graded yet: use --grade"),
        (graded_elsewhere(data, lab="tiling"), "is of lab 'tiling', not of 'adding'"),
        (graded_elsewhere(data, tests="others"), "check out the same commit"),
        (b"no zip", "is no file of `mlsys gpu-pass`"),
    ):
        path.write_bytes(content)
        with pytest.raises(BadPass, match=message):
            merge(tree, "adding", path)
    with pytest.raises(BadPass, match="does not exist"):
        merge(tree, "adding", tmp_path / "none.zip")
    path.write_bytes(graded_elsewhere(data))
    with pytest.raises(BadPass, match="was graded already: merge it"):
        grade_pack(root, path, Options(), QUIET)
    assert not tree.backups.exists() or len(list(tree.backups.iterdir())) == 1


def test_a_machine_without_a_gpu_says_so(waiting: Waiting, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    root, tree = waiting
    (tmp_path / "pass.zip").write_bytes(pack(tree, "adding")[0])
    with pytest.raises(UserError, match=r"no GPU .*pass\.zip to one that has"):
        grade_pack(root, tmp_path / "pass.zip", Options(workers=1), QUIET)


@pytest.mark.gpu
@needs_gpu
def test_a_pass_on_a_gpu_fills_in_what_waits(waiting: Waiting, tmp_path: Path) -> None:
    root, tree = waiting
    (tmp_path / "pass.zip").write_bytes(pack(tree, "adding")[0])
    data, count = grade_pack(root, tmp_path / "pass.zip", Options(workers=1), QUIET)
    assert count == 2
    (tmp_path / "done.zip").write_bytes(data)
    assert merge(tree, "adding", tmp_path / "done.zip").filled == ("half-done", "right")
    assert points_of(tree)["right"]["d"][0] in ("passed", "slow")


class GpuPool:
    """Judges as a machine with a GPU would; keeps the tasks that it was given."""

    elsewhere, workers = False, 1

    def __init__(self) -> None:
        self.given: list[Task] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def machine(self, device: str) -> dict[str, Any]:
        return {"device": "gpu", "versions": {}}

    def prepare(self, lab: str, device: str, cpu_limit_s: int) -> None:
        pass

    def judge_all(self, tasks: Iterable[Task | Judged]) -> Iterator[Judged]:
        for task in tasks:
            assert isinstance(task, Task)
            self.given += [task] if task.student else []  # the others are of the reference solution
            ids = {"a": "a-test", "b": "b-test", "c": "c-test", "d": "d-speed", "e": "e-why"}
            found = (QuestionRecord(one, "", ids[one], "passed", 1.0, 4.0) for one in task.only or ids)
            yield Judged(task.student, task.submission, tuple(found), notebook=task.notebook, terms=task.terms)

    def device_times(self) -> tuple[()]:
        return ()


def graded_on_gpu(root: Path, tree: CourseTree, **options: Any) -> list[Task]:
    pool = GpuPool()
    grade_class(root, tree, "adding", Options(root.parent / "in", open_pool=lambda *_: pool, **options), QUIET)
    return pool.given


def test_where_only_a_gpu_was_missing_only_that_is_judged(waiting: Waiting) -> None:
    root, tree = waiting
    before = points_of(tree)
    shutil.copy(root.parent / "in" / "right.ipynb", root.parent / "in" / "newcomer.ipynb")
    asked = {task.student: (task.only, task.later) for task in graded_on_gpu(root, tree)}
    assert asked == {"newcomer": ((), ("d",)), "right": (("d",), ()), "half-done": (("d",), ())}
    after = points_of(tree)
    for student, questions in before.items():
        assert questions["d"] == ("needs gpu", 0)
        assert after[student] == questions | {"d": ("passed", 1.0)}


def test_who_joins_a_group_whose_work_waits_gets_all_of_its_points(waiting: Waiting) -> None:
    root, tree = waiting
    (root.parent / "in" / "half-done.ipynb").unlink()
    roster = parse_roster("id,name,group adding\nright,Right,one\nzoe,Zoe,one\n")
    asked = [(task.student, task.only, task.later) for task in graded_on_gpu(root, tree, roster=roster)]
    assert asked == [("right", (), ("d",))]
    assert points_of(tree)["zoe"].keys() == set("abcde")
