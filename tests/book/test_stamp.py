"""A site whose build failed has no stamp, so that `mlsys publish` does not take it."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_ext"))

import course_notebooks

from mlsys.course.settings import Settings
from mlsys.course.student_site import STAMP


@pytest.mark.parametrize(("warnings", "stamped"), [(0, True), (1, False)])
def test_only_a_build_without_warnings_stamps_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warnings: int, stamped: bool
) -> None:
    monkeypatch.setattr(course_notebooks, "build_chapters", lambda root: [])
    monkeypatch.setattr(course_notebooks, "read_settings", lambda root: Settings("https://github.com/a/b", "main", "1"))
    (tmp_path / STAMP).write_text("of an earlier build")
    app = SimpleNamespace(
        builder=SimpleNamespace(name="html"),
        srcdir=tmp_path,
        outdir=tmp_path,
        env=SimpleNamespace(metadata={}),
        config=SimpleNamespace(course_site_state="now"),
        keep_going=True,
        _warncount=warnings,
    )
    course_notebooks.copy_notebooks(app, None)
    assert (tmp_path / STAMP).is_file() is stamped
    assert not stamped or (tmp_path / STAMP).read_text() == "now"
