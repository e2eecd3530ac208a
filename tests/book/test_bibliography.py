"""The bibliography is in one alphabet, with and without braces around names."""

import sys
from pathlib import Path

import pytest

pybtex = pytest.importorskip("pybtex.database", reason="pybtex is not installed: mlsys[book] brings it")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_bibliography = pytest.importorskip(
    "course_bibliography", reason="sphinx is not installed: mlsys[book] brings it"
)


def test_names_in_braces_are_sorted_like_others() -> None:
    names = ["{PyTorch contributors}", "Zhu, Feng", "{NVIDIA}", "NVIDIA", "{{Google}}", "Harris, Mark"]
    entries = [pybtex.Entry("misc", {"title": name}, {"author": [pybtex.Person(name)]}) for name in names]
    ordered = [entry.fields["title"] for entry in course_bibliography.ByVisibleName().sort(entries)]
    assert ordered == ["{{Google}}", "Harris, Mark", "NVIDIA", "{NVIDIA}", "{PyTorch contributors}", "Zhu, Feng"]


def test_no_entry_shows_commands_of_tex() -> None:
    text = (ROOT / "book" / "references.bib").read_text()
    assert "\\texttt" not in text
    assert "\\$" not in text
