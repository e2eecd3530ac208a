from pathlib import Path

import pytest
from helpers.site_of_one_chapter import write_site
from lxml import html

from mlsys.course.whole_book.pages import ANSWERS, INSTRUCTORS, STUDENTS, Book, read_book
from mlsys.errors import UserError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_site(tmp_path)
    return tmp_path


def text_of(book: Book, name: str) -> str:
    return html.tostring(next(page.body for page in book.pages if page.name == name), encoding="unicode")


def test_the_pages_are_those_of_the_contents_and_the_answers_come_last(root: Path) -> None:
    students, instructors = (read_book(root, edition) for edition in (STUDENTS, INSTRUCTORS))
    assert [page.name for page in students.pages] == ["index", "cache", "bibliography", ANSWERS]
    assert [page.name for page in instructors.pages] == ["index", "cache", "bibliography", "instructor", ANSWERS]
    assert [page.title for page in students.pages] == ["A book", "Caches", "Bibliography", "Answers to the self-checks"]


def test_only_the_instructors_edition_has_the_solutions(root: Path) -> None:
    assert "The secret is" not in text_of(read_book(root, STUDENTS), "cache")
    assert "The secret is" in text_of(read_book(root, INSTRUCTORS), "cache")


def test_nothing_of_a_browser_is_left(root: Path) -> None:
    text = text_of(read_book(root, INSTRUCTORS), "cache")
    for gone in ("<input", "<button", "<script", "<details", "<summary", "<fieldset", "headerlink", "hidden", "Colab"):
        assert gone not in text
    assert "Numbers behind the picture" in text
    address = "https://a.github.io/b/book/memory/cache.html#interactive-bytes"
    assert f'<a href="{address}">On the site you can operate this figure</a>.' in text


def test_without_a_public_address_there_is_no_link_to_it(root: Path) -> None:
    config = root / "_config.yml"
    config.write_text(config.read_text(encoding="utf-8").replace("/a/b", "/YOUR_ORGANISATION/b"), encoding="utf-8")
    assert "On the site you can operate this figure." in text_of(read_book(root, STUDENTS), "cache")


def test_a_self_check_has_letters_and_its_answer_is_at_the_end(root: Path) -> None:
    book = read_book(root, STUDENTS)
    assert "(a) 16 &amp; more" in text_of(book, "cache")
    assert "It fits." not in text_of(book, "cache")
    answers = " ".join(html.fromstring(text_of(book, ANSWERS)).text_content().split())
    assert answers == "Answers to the self-checksCaches1 (a) Not this one. It is small.(b) Right. It fits."


def test_links_lead_into_the_book_and_what_is_not_in_it_becomes_text(root: Path) -> None:
    book = read_book(root, STUDENTS)
    lost = book.bind(lambda page, name, identifier: f"{name}!{identifier}", lambda picture: f"pictures/{picture}")
    assert lost == ["cache: ../about/instructor.html"]
    text = text_of(book, "cache")
    for link in ("cache!fig-bytes", "bibliography!id7", "answers!answer-quiz-cache-side", "https://example.org/x"):
        assert f'href="{link}"' in text
    assert 'src="pictures/_images/bytes.svg"' in text
    assert 'href="cache!"' in text_of(book, "index")


def test_a_site_that_is_not_built_is_refused(tmp_path: Path) -> None:
    write_site(tmp_path)
    (tmp_path / "_build" / "html" / "book" / "memory" / "cache.html").unlink()
    with pytest.raises(UserError, match=r"cache\.html is missing: run `make book`"):
        read_book(tmp_path, STUDENTS)
