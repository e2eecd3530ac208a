from pathlib import Path

import pytest

from mlsys.course.lab import Lab, LabError, find_lab, find_labs
from mlsys.errors import UserError

ADDING = Path(__file__).parent / "labs" / "adding" / "lab.py"


def write_changed(tmp_path: Path, old: str, new: str) -> Path:
    text = ADDING.read_text()
    assert old in text
    path = tmp_path / "lab.py"
    path.write_text(text.replace(old, new, 1))
    return path


def test_questions_points_and_needs_are_read() -> None:
    lab = Lab.load(ADDING)
    assert [(question.name, question.points, question.device) for question in lab.questions] == [
        ("a", 1, "any"),
        ("b", 3, "any"),
        ("c", 2, "any"),
        ("d", 4, "gpu"),
        ("e", 2, "any"),
    ]
    assert lab.needed(lab.question("c")) == ("b", "c")
    assert (lab.name, lab.version, lab.title) == ("adding", "1", "Adding")


def test_names_that_are_withheld_are_read(tmp_path: Path) -> None:
    assert Lab.load(ADDING).withheld == ()
    path = write_changed(tmp_path, 'version: "1"', 'version: "1"\n#     withheld: [mlsys.traffic.untiled, mlsys.ops]')
    assert Lab.load(path).withheld == ("mlsys.ops", "mlsys.traffic.untiled")


def test_every_load_gives_the_same_cell_ids() -> None:
    assert [cell.id for cell in Lab.load(ADDING).cells] == [cell.id for cell in Lab.load(ADDING).cells]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version: "1"', "author: me", "header needs"),
        ('"grade_id": "b-test"', '"grade_id": "a-test"', "'a-test' appears more than once"),
        ('"role": "predict"', '"role": "predictor"', "did you mean 'predict'"),
        ('"points": 3,', "", "'b-test'.*points"),
        ('"needs": ["setup", "b"]', '"needs": ["setup", "bb"]', "did you mean 'b'"),
        ('"needs": ["setup"], "title": "Add with', '"needs": ["setup", "c"], "title": "Add with', "need each other"),
        ("### END HIDDEN TESTS", "", "must come in pairs"),
        ("### BEGIN SOLUTION\n#: bytes", "#: bytes", "must come in pairs"),
        ('"grade_id": "setup", "locked": true', '"grade_id": "setup", "locked": false', "locked"),
        ('WHEEL = "MLSYS_WHEEL_URL"', "### BEGIN SOLUTION\n### END SOLUTION", "students would see it"),
        ('"device": "gpu"', '"device": "tpu"', "'tpu' is not known; use one of any, cpu, gpu"),
        ('"device": "gpu"', '"device": "cpu"', "question 'd' is timed"),
        ("# %% [markdown]\n# ", "# %% [markdown] ", "stands behind `%%`"),
        ('version: "1"', 'version: "1"\n#     withheld: [mlsys.opps]', "withheld.*did you mean 'mlsys.ops'"),
        ('version: "1"', 'version: "1"\n#     withheld: mlsys.ops', "must be a list of names"),
    ],
)
def test_broken_rule_is_named_with_its_cell(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Lab.load(write_changed(tmp_path, old, new))


def test_unreadable_file_is_a_lab_error(tmp_path: Path) -> None:
    (tmp_path / "lab.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LabError, match="not readable"):
        Lab.load(tmp_path / "lab.py")


def test_unknown_lab_lists_the_nearest(course_repository: Path) -> None:
    assert list(find_labs(course_repository)) == ["adding"]
    with pytest.raises(UserError, match="did you mean 'adding'"):
        find_lab(course_repository, "ading")
