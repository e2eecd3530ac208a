"""A page that was moved or deleted leaves nothing in the site, which would be published with it."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_pages = pytest.importorskip("course_pages", reason="sphinx is not installed: mlsys[book] brings it")

NOW = ("html/book/performance/tiling.html", "html/_sources/book/performance/tiling.md")
NOW += ("jupyter_execute/book/performance/tiling.glue.json", "html/chapters/tiling.ipynb", "html/search.html")
BEFORE = ("html/book/tiling.html", "html/_sources/book/tiling.md", "html/book/labs/old.html")
BEFORE += ("jupyter_execute/book/tiling.glue.json", "jupyter_execute/book/tiling.ipynb")


@pytest.fixture
def build(tmp_path: Path) -> Path:
    for name in (*NOW, *BEFORE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    return tmp_path


def files_after(build: Path, error: Exception | None) -> set[str]:
    app = SimpleNamespace(
        builder=SimpleNamespace(name="html"),
        outdir=str(build / "html"),
        env=SimpleNamespace(found_docs={"book/performance/tiling"}),
    )
    course_pages.remove_old_pages(app, error)
    return {path.relative_to(build).as_posix() for path in build.rglob("*") if path.is_file()}


def test_what_old_pages_left_is_taken_away_and_all_else_stays(build: Path) -> None:
    assert files_after(build, None) == set(NOW)


def test_a_failed_build_takes_nothing_away(build: Path) -> None:
    assert files_after(build, RuntimeError("no build")) == {*NOW, *BEFORE}
