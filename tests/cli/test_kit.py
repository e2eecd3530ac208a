import shutil
import zipfile
from pathlib import Path

import pytest
from helpers.site_of_one_chapter import write_site

from mlsys.cli.main import main

ROOT = Path(__file__).parents[2]


def test_a_syllabus_becomes_a_page_and_a_calendar_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    term = ["--first-day", "2027-02-01", "--free", "2027-03-02"]
    assert main(["kit", "syllabus", "6", *term, "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / f"syllabus-6-weeks.{ending}") for ending in ("md", "ics")]
    assert "| 6 | 2027-03-15 | " in (tmp_path / "syllabus-6-weeks.md").read_text(encoding="utf-8")
    assert (tmp_path / "syllabus-6-weeks.ics").read_bytes().count(b"BEGIN:VEVENT") == 6 + 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["syllabus", "7", "--first-day", "2027-02-01"], "'7'"),
        (["syllabus", "6", "--first-day", "1.2.2027"], "'1.2.2027' is no date: write it as 2027-02-01"),
        (["slides", "tilling"], "tilling"),
    ],
)
def test_what_cannot_be_made_is_named(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["kit", *arguments, "--to", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_questions_of_a_site_become_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_site(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["kit", "questions"]) == 0
    assert capsys.readouterr().out.startswith("1 questions of 1 chapters\n")
    with zipfile.ZipFile("_build/kit/questions-canvas.zip") as packed:
        assert "imsmanifest.xml" in packed.namelist()
    assert "It fits." in Path("_build/kit/questions-moodle.xml").read_text(encoding="utf-8")


def test_without_a_site_the_command_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(write_site(tmp_path))
    monkeypatch.chdir(tmp_path)
    for kind in ("pdf", "epub", "questions", "slides"):
        assert main(["kit", kind]) == 2
        assert "run `make book`" in capsys.readouterr().err
