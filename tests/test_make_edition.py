"""A new edition: what it refuses, what it writes, and that an archive depends on its files alone."""

import os
import re
import runpy
import shutil
import subprocess
import time
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlsys.errors import UserError

ROOT = Path(__file__).parents[1]
MODULE = runpy.run_path(str(ROOT / "scripts" / "make_edition.py"))
DAY = date(2027, 1, 15)
LOG = (
    "# Changelog\n\n## 0.2.0 (unreleased)\n\n### For students\n\n- A new lab.\n\n### For instructors\n\n- A command.\n"
)


CONFIG = (ROOT / "_config.yml").read_text(encoding="utf-8").replace("YOUR_ORGANISATION", "an-institute")


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the real files that state the version, and a change log that is ready."""
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "A teacher")
        monkeypatch.setenv(f"{name}_EMAIL", "teacher@example.org")
    root = tmp_path / "course"
    (root / "mlsys").mkdir(parents=True)
    for name in ("pyproject.toml", "mlsys/__init__.py", "CITATION.cff"):
        shutil.copy(ROOT / name, root / name)
    (root / "CHANGELOG.md").write_text(LOG)
    (root / "_config.yml").write_text(CONFIG)
    (root / ".gitignore").write_text("/dist/\n")
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "All")
    return root


def plan(root: Path, version: str = "0.2.0") -> object:
    return MODULE["plan_edition"](root, version, DAY)


def commit_log(root: Path, text: str) -> None:
    (root / "CHANGELOG.md").write_text(text)
    git(root, "commit", "--quiet", "--all", "--message", "Log")


def test_what_changed_for_students_is_what_the_log_says_to_them(repository: Path) -> None:
    assert plan(repository).for_students == "- A new lab."  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("version", "log", "said"),
    [
        ("2.0", LOG, "'2.0' is no version: write three numbers"),
        ("0.2.0", "# Changelog\n", "has no section that is not released"),
        ("0.2.0", LOG.replace("### For students", "### For all"), "says nothing under `### For students`"),
        ("0.2.0", LOG.replace("- A new lab.\n", ""), "says nothing under"),
        ("0.2.0", LOG + "\n## 0.10.0 (2026-12-01)\n", "0.2.0 is not newer than 0.10.0"),
    ],
)
def test_an_edition_that_is_not_ready_is_refused(repository: Path, version: str, log: str, said: str) -> None:
    if log != LOG:
        commit_log(repository, log)
    with pytest.raises(UserError, match=re.escape(said)):
        plan(repository, version)


def test_open_changes_and_a_tag_that_is_there_are_refused(repository: Path) -> None:
    git(repository, "tag", "v0.2.0")
    with pytest.raises(UserError, match=r"tag v0\.2\.0 is there already"):
        plan(repository)
    (repository / "new.txt").write_text("mine")
    with pytest.raises(UserError, match="not committed"):
        plan(repository)


def test_the_version_and_the_date_are_written_in_every_place(repository: Path) -> None:
    MODULE["write_version"](repository, plan(repository))
    assert '\nversion = "0.2.0"\n' in (repository / "pyproject.toml").read_text()
    assert '\n__version__ = "0.2.0"\n' in (repository / "mlsys/__init__.py").read_text()
    citation = (repository / "CITATION.cff").read_text()
    assert "\nversion: 0.2.0\n" in citation
    assert '\ndate-released: "2027-01-15"\n' in citation
    assert "## 0.2.0 (2027-01-15)\n" in (repository / "CHANGELOG.md").read_text()
    changed = git(repository, "diff", "--numstat").splitlines()
    assert [line.split()[:2] for line in changed] == [["1", "1"], ["2", "2"], ["1", "1"], ["1", "1"]]


def test_an_archive_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    made = []
    for number, order in enumerate((("b.txt", "a/c.txt"), ("a/c.txt", "b.txt"))):
        for name in order:
            path = tmp_path / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (time.time() - 1e6 * number,) * 2)
            path.chmod(0o600 + number)
        made.append(tmp_path / f"{number}.zip")
        MODULE["pack"](tmp_path / str(number), made[-1], DAY)
    assert made[0].read_bytes() == made[1].read_bytes()


@pytest.fixture
def built(repository: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Builds that take a moment instead of minutes: what each writes into its archive, in their order."""
    texts = ["same", "same"]
    begun = iter(range(2))

    def build(root: Path, folder: Path, edition: object) -> None:
        assert '__version__ = "0.2.0"' in (root / "mlsys/__init__.py").read_text()
        tree = folder / "tree"
        tree.mkdir(parents=True)
        (tree / "page.html").write_text(texts[next(begun)])
        MODULE["pack"](tree, folder / "course-0.2.0.zip", DAY)
        shutil.rmtree(tree)

    monkeypatch.setitem(MODULE["make_edition"].__globals__, "build", build)
    return texts


def test_two_equal_builds_become_a_commit_a_tag_and_archives_with_their_sums(
    repository: Path, built: list[str]
) -> None:
    files = MODULE["make_edition"](repository, "0.2.0", DAY)
    assert [path.name for path in files] == ["FOR-STUDENTS.md", "SHA256SUMS", "course-0.2.0.zip"]
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=files[0].parent, check=True)
    assert files[0].read_text() == "# What is new in 0.2.0\n\n- A new lab.\n"
    assert git(repository, "status", "--porcelain") == ""
    assert "Version 0.2.0" in git(repository, "log", "-1", "--format=%s")
    assert git(repository, "tag", "--list", "--format=%(contents:body)", "v0.2.0") == "- A new lab."


def test_builds_that_differ_change_nothing_and_the_file_is_named(repository: Path, built: list[str]) -> None:
    built[1] = "other"
    with pytest.raises(
        UserError, match=r"could build it again: course-0\.2\.0\.zip: page\.html, line 1: '.+' or 'other'"
    ):
        MODULE["make_edition"](repository, "0.2.0", DAY)
    assert git(repository, "status", "--porcelain") == ""
    assert not (repository / "dist").exists()
    assert git(repository, "tag") == ""


def test_an_edition_without_a_public_address_is_refused_before_anything_is_built(repository: Path) -> None:
    (repository / "_config.yml").write_text((ROOT / "_config.yml").read_text(encoding="utf-8"))
    with pytest.raises(UserError, match=r"repository\.url in .* is still the placeholder"):
        plan(repository)


def test_labs_are_released_before_the_book_whose_pages_lead_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def run(command: list[str], **_: object) -> SimpleNamespace:
        said.append(" ".join(command[:2]))
        if "publish" in command:
            Path(command[-1]).mkdir()
        return SimpleNamespace(returncode=0)

    monkeypatch.setitem(MODULE["build"].__globals__, "subprocess", SimpleNamespace(run=run))
    MODULE["build"](tmp_path, tmp_path / "dist", MODULE["Edition"]("0.2.0", DAY, ""))
    assert said[:3] == ["mlsys release", "jupyter-book build", "mlsys publish"]


def test_a_step_that_fails_says_its_last_words_without_colors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = SimpleNamespace(returncode=1, stdout="", stderr="\x1b[31mERROR: no page\x1b[39;49;00m\n")
    monkeypatch.setitem(MODULE["build"].__globals__, "subprocess", SimpleNamespace(run=lambda *_, **__: failed))
    with pytest.raises(UserError, match="^mlsys release failed:\nERROR: no page$"):
        MODULE["build"](tmp_path, tmp_path / "dist", MODULE["Edition"]("0.2.0", DAY, ""))
