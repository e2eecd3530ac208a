"""Messages of students' processes: readable in any script, and harmless to the page and the terminal that show them."""

import unicodedata

import pytest

from mlsys.judge.shared.messages import Cell
from mlsys.judge.shared.untrusted_text import own_lines, printable


@pytest.mark.parametrize(
    "text",
    [
        "Größe falsch: naïve Zoë",
        unicodedata.normalize("NFD", "Größe, tiếng Việt"),
        "размер плитки",
        "μέγεθος",
        "שָׁלוֹם",
        "مرحبًا",
        "हिन्दी में क्षेत्र",
        "ภาษาที่นี่",
        "タイルの大きさ",
        "크기 오류 😀",
    ],
)
def test_writing_of_any_script_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u200b", "\u3164", "\u034f", "\u202e", "\ue000", "\x85"])
def test_what_breaks_lines_or_cannot_be_seen_is_written_out(character):
    shown = printable(f"a{character}b")
    assert shown.isprintable()
    assert len(shown.splitlines()) == 1
    assert shown == f"a{character.encode('unicode_escape').decode()}b"


@pytest.mark.parametrize("space", ["\xa0", "\u3000", "\u2007"])
def test_every_space_is_a_plain_one(space):
    assert printable(f"a{space}b") == "a b"


def test_a_pile_of_marks_is_cut_down():
    shown = printable("a" + "\u0301\u0489\u0f71" * 200 + "b")
    assert sum(unicodedata.combining(one) > 0 or unicodedata.category(one)[0] == "M" for one in shown) <= 4
    assert shown.startswith("a")


def test_lines_are_the_judges_and_few():
    cells = [Cell("answer", "your answer q", "\n".join(f"line_{n}" for n in range(1, 100)))]
    said = [f"your answer q, line {n}: LEAK" for n in (3, 14, 15, 92, 92, 65)] + ["your answer q, line 9 failed: LEAK"]
    said += ["your answer q, line 100: x", "your answer q, line 0: x", "your answer z, line 1: x", "LEAK"]
    assert own_lines(said, cells) == [
        "your answer q, line 92: line_92",
        "your answer q, line 65: line_65",
        "your answer q, line 9 failed line_9",
    ]
