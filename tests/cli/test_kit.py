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
        (
            ["syllabus", "6", "--first-day", "2027-02-01", "--free", "2028-03-29"],
            "the free day 2028-03-29 is after the last day of the term, which is from 2027-02-01 to 2027-03-14",
        ),
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


SYLLABUS = ["syllabus", "6", "--first-day", "2027-02-01"]


@pytest.mark.parametrize("inside", ["", "deeper"])
def test_a_folder_that_cannot_be_written_is_named_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], inside: str
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "file").touch()
    folder, why = tmp_path / "file" / inside, "Not a directory" if inside else "File exists"
    assert main(["kit", *SYLLABUS, "--to", str(folder)]) == 2
    assert capsys.readouterr().err == (f"mlsys: {folder} cannot be written ({why}): name another folder with --to\n")


@pytest.mark.parametrize("words", [["questions"], ["slides"], ["epub", "--edition", "students"], ["pdf"]])
def test_every_kind_names_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    write_site(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert main(["kit", *words, "--to", "file"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("mlsys: file cannot be written (")
    assert said.endswith("): name another folder with --to\n")


def test_a_page_that_cannot_be_read_is_no_fault_of_the_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)

    def without_its_page(*_: object) -> str:
        return (ROOT / "book" / "gone.md").read_text(encoding="utf-8")

    monkeypatch.setattr("mlsys.course.kit.syllabus.dated_page", without_its_page)
    with pytest.raises(FileNotFoundError, match=r"gone\.md"):
        main(["kit", *SYLLABUS, "--to", str(ROOT)])


def test_without_a_site_the_command_says_how_to_build_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(write_site(tmp_path))
    monkeypatch.chdir(tmp_path)
    for kind in ("pdf", "epub", "questions", "slides"):
        assert main(["kit", kind]) == 2
        assert "run `make book`" in capsys.readouterr().err
