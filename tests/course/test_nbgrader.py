from pathlib import Path

import pytest

from mlsys.course.nbgrader import nbgrader_config
from mlsys.course.tree import CONFIG, CourseTree

OLD = '''"""Written by `mlsys release`."""

from mlsys.grading.nbgrader_plugin import configure

c = get_config()
configure(c)
c.RunQuestions.cpu_limit_s = 20
c.CourseDirectory.course_id = "acceleration-2026"
'''
"""As an earlier layout of the package wrote it, with two lines that an instructor added."""


def test_a_configuration_of_an_earlier_layout_goes_on_with_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nbgrader_config.py").write_text(OLD, encoding="utf-8")
    config = nbgrader_config(CourseTree(tmp_path))
    assert (config.RunQuestions.cpu_limit_s, config.CourseDirectory.course_id) == (20, "acceleration-2026")
    said = capsys.readouterr().out
    assert "brought up to date" in said
    assert said.count("\n") == 1
    now = (tmp_path / "nbgrader_config.py").read_text(encoding="utf-8").splitlines()
    changed = [(old, new) for old, new in zip(OLD.splitlines(), now, strict=True) if old != new]
    assert [new for _, new in changed] == [line for line in CONFIG.splitlines() if line.startswith("from mlsys")]
    nbgrader_config(CourseTree(tmp_path))
    assert capsys.readouterr().out == ""


def test_a_configuration_of_today_stays_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    nbgrader_config(CourseTree(tmp_path))
    assert (tmp_path / "nbgrader_config.py").read_text(encoding="utf-8") == CONFIG
    assert capsys.readouterr().out == ""
