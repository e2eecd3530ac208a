"""A second language: its words, the way to it and back, what is not translated, and what has changed since."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers import small_book
from helpers.pages import ROOT, sources

from mlsys.course.pages.languages import FOLDER, LanguageError, codes, language_of, read_language
from mlsys.course.pages.translation import (
    TranslationError,
    changes,
    note_state,
    original_of,
    page_text,
    read_cells,
    sections,
)
from mlsys.errors import UserError

sys.path.insert(0, str(ROOT / "book"))
from _figures import words

FRONT = """---
jupytext: {text_representation: {extension: .md, format_name: myst}}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
CELL = "```{code-cell} ipython3\n"
FIGURE = f"""{CELL}---
tags: [remove-input]
mystnb:
  image: {{alt: "A bar."}}
  figure:
    name: fig-cube-bar
    caption: |
      One bar.
---
draw()
```
"""
CUBE = f"""{FRONT}
# The cube

{CELL}:tags: [remove-cell]

side = 3
```

It has eight corners. See also [the sphere](sphere.md) and [the plane](plane.md).

## Its sides

There are six of them.

{CELL}print(side ** 3)
```

## Its edges

There are twelve of them.

{FIGURE}
{CELL}:tags: [remove-cell]

side = 4
```
"""
CUBO = """# El cubo

Tiene ocho vértices. Vea también [la esfera](../solids/sphere.md) y [el plano](../solids/plane.md).

## Sus caras

Hay seis.

:::{table} Caras
| cara |
|---|
| seis |
:::

```{original} print(side
```

## Sus aristas

Hay doce.

```{original} fig-cube-bar
alt: Una barra.
caption: |
  Una barra sola.
```
"""
PAGES = {
    "index": "# Solids\n",
    "solids/cube": CUBE,
    "solids/sphere": f"{FRONT}\n# The sphere\n\nIt is round.\n",
    "solids/plane": f"{FRONT}\n# The plane\n\nIt is flat.\n",
    "es/chapters-es": "# Capítulos\n\n```{language-chapters}\n```\n",
    "es/cube-es": CUBO,
    "es/sphere-es": "# La esfera\n\nEs redonda.\n",
}


def spanish(root: Path, **changed: str) -> Path:
    """Write a made-up Spanish, whose every word is the English one in brackets, and return its file."""
    folder = root / FOLDER
    shutil.copytree(ROOT / FOLDER, folder, dirs_exist_ok=True)
    lines = []
    for line in (folder / "en.toml").read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r'(.+?) = "(.*)"(?: #.*)?', line)
        key = found[1].strip('"') if found else ""
        if found and key in changed:
            lines += [f'{found[1]} = "{changed[key]}"'] if changed[key] else []
        elif found and key not in ("name", "direction"):
            lines.append(f'{found[1]} = "[{found[2]}]"')
        else:
            lines.append(line.replace('"English"', '"Español"'))
    path = folder / "es.toml"
    path.write_text("\n".join([*lines, "", "[figures]", '"bar" = "barra"', ""]), encoding="utf-8")
    return path


def write(root: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        path = root / "book" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


# Words


@pytest.mark.parametrize("code", codes())
def test_a_language_of_the_book_has_all_words(code: str) -> None:
    assert read_language(code).name


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"score": ""}, 'book/_languages/es.toml: [quiz] lacks "score": English says "On this page: {answered} of'),
        ({"next page": ""}, 'book/_languages/es.toml: [frame] lacks "next page"'),
        ({"answer": "Es."}, '[predict] "answer" must have {letter}, as in English'),
    ],
)
def test_a_missing_word_is_named_with_file_and_key(tmp_path: Path, changed: dict[str, str], complaint: str) -> None:
    spanish(tmp_path, **changed)
    with pytest.raises(LanguageError, match=re.escape(complaint)):
        read_language("es", tmp_path)


def test_a_word_that_nothing_uses_is_named(tmp_path: Path) -> None:
    path = spanish(tmp_path)
    path.write_text(path.read_text("utf-8").replace("[quiz]", '[quiz]\npoints = "x"'), encoding="utf-8")
    with pytest.raises(LanguageError, match=r'\[quiz\] has "points", which English lacks'):
        read_language("es", tmp_path)


def test_a_figure_without_a_word_is_refused_and_never_drawn_in_english() -> None:
    try:
        words.use("he")
        assert words.said("copy in") == "פנימה"
        with pytest.raises(UserError, match=r'book/_languages/he.toml: \[figures\] lacks "two\\nlines"'):
            words.said("two\nlines")
    finally:
        words.use("en")
    assert words.said("two\nlines") == "two\nlines"


# The cells


@pytest.mark.parametrize("page", [page for page in sources() if original_of(page)], ids=lambda page: page.stem)
def test_a_translation_runs_the_code_of_its_page(page: Path) -> None:
    original = original_of(page)
    assert original
    ours = [cell.code.strip() for cell in read_cells(page_text(page))]
    use = f'from _figures import words\n\nwords.use("{language_of(page)}")'.replace('"', "'")
    assert ours.count(use) == 1
    assert [code for code in ours if code != use] == [
        cell.code.strip() for cell in read_cells(original.read_text(encoding="utf-8"))
    ]
    assert "{code-cell}" not in page.read_text(encoding="utf-8"), "no code is written twice"


def test_hidden_cells_of_the_original_run_where_they_did_and_show_nothing(tmp_path: Path) -> None:
    spanish(tmp_path)
    write(tmp_path, PAGES)
    cells = read_cells(page_text(tmp_path / "book/es/cube-es.md"))
    assert [cell.shown for cell in cells] == [False, False, True, True, False]
    assert cells[3].figure == {"name": "fig-cube-es-bar", "caption": "Una barra sola.\n"}
    hidden = read_cells(_cubo(tmp_path, CUBO.replace("```{original} print(side\n```\n", "")))
    assert [cell.shown for cell in hidden] == [False, False, False, True, False], "what is not placed is not shown"


def _cubo(root: Path, text: str) -> str:
    page = root / "book/es/cube-es.md"
    page.write_text(text, encoding="utf-8")
    return page_text(page)


def test_a_cell_that_is_gone_or_in_another_place_is_named(tmp_path: Path) -> None:
    spanish(tmp_path)
    write(tmp_path, PAGES)
    with pytest.raises(TranslationError, match=r"cube-es\.md: the cell 'volume' is not in cube\.md"):
        _cubo(tmp_path, CUBO.replace("print(side", "volume"))
    place = "```{original} print(side\n```\n"
    with pytest.raises(TranslationError, match=r"the cell 'print\(side' comes earlier in cube\.md: move it up"):
        _cubo(tmp_path, CUBO.replace(place, "") + place)
    with pytest.raises(TranslationError, match="figure 'fig-cube-bar' in 'es' has no alt"):
        _cubo(tmp_path, CUBO.replace("alt: Una barra.\n", ""))


# What has changed


def test_a_changed_section_is_named_and_new_line_breaks_and_numbers_are_no_change(tmp_path: Path) -> None:
    spanish(tmp_path)
    write(tmp_path, PAGES)
    page, original = tmp_path / "book/es/cube-es.md", tmp_path / "book/solids/cube.md"
    with pytest.raises(TranslationError, match="run `make translated NAME=cube-es`"):
        changes(page)
    note_state(page)
    assert changes(page) == []
    original.write_text(CUBE.replace("of them", "of\nthem").replace("side = 3", "side = 5"), encoding="utf-8")
    assert changes(page) == []
    text = CUBE.replace("twelve", "a dozen").replace("## Its sides\n", "## Its faces\n").replace("One bar", "A bar")
    original.write_text(text, encoding="utf-8")
    assert [(change.section, change.how) for change in changes(page)] == [
        ("Its faces", "new"),
        ("Its edges", "changed"),
        ("Its sides", "gone"),
    ]


def test_headings_in_code_begin_no_section() -> None:
    assert list(sections(CUBE.replace("print(side", "# a comment\n## another\nprint(side"))) == [
        "The cube",
        "Its sides",
        "Its edges",
    ]


# In the book


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built book with a language that nobody has made by hand, and one chapter that is not translated."""
    root = tmp_path_factory.mktemp("languages")
    spanish(root)
    write(root, PAGES)
    for name in ("cube-es", "sphere-es"):
        note_state(root / f"book/es/{name}.md")
    done = built(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def built(root: Path, **changed: str) -> "subprocess.CompletedProcess[str]":
    return small_book.build(root, PAGES | changed, ["course_languages"])


def html(root: Path, name: str) -> str:
    return (root / f"_build/html/book/{name}.html").read_text(encoding="utf-8")


def test_the_switch_leads_to_the_translation_and_back(tree: Path) -> None:
    there, back = html(tree, "solids/cube"), html(tree, "es/cube-es")
    assert '<a href="../es/cube-es.html" rel="alternate" hreflang="es" lang="es" dir="ltr">Español</a>' in there
    assert '<a href="../solids/cube.html" rel="alternate" hreflang="en" lang="en" dir="ltr">English</a>' in back
    for text in (there, back):
        found = dict(re.findall(r'<link rel="alternate" hreflang="(\w+)" href="([^"]+)"', text))
        assert {code: Path(address).name for code, address in found.items()} == {
            "en": "cube.html",
            "es": "cube-es.html",
        }
    assert 'class="course-languages"' not in html(tree, "solids/plane")


def test_a_page_says_in_which_language_it_is(tree: Path) -> None:
    page = html(tree, "es/cube-es")
    assert re.search(r'<html lang="es"', page)
    assert '<article class="bd-article" lang="es" dir="ltr">' in page
    assert re.search(r'href="[^"]*cube-es\.html" hreflang="es" lang="es"', html(tree, "solids/plane")), "in the menu"


def test_links_lead_to_translations_and_say_what_is_in_english(tree: Path) -> None:
    article = html(tree, "es/cube-es").split("<article")[1]
    assert re.search(r'href="sphere-es\.html">', article)
    link = re.search(r"<a [^>]*plane\.html[^>]*>.*?</a><span [^>]*>([^<]*)</span>", article)
    assert link
    assert link[1] == " ([in English])"
    assert 'hreflang="en"' in link[0]


def test_the_list_of_chapters_marks_those_that_are_not_translated(tree: Path) -> None:
    article = html(tree, "es/chapters-es").split("<article")[1]
    items = [re.sub(r"<[^>]*>", "", item).strip() for item in re.findall(r"<li.*?</li>", article, re.S)]
    assert items == ["El cubo", "La esfera", "The plane ([in English])"]


def test_what_the_theme_says_is_in_the_language(tree: Path) -> None:
    page = html(tree, "es/cube-es")
    assert 'title="[next page]"' in page
    assert 'placeholder="[Search the course]"' in page
    assert '<span class="caption-number">[Table] 1' in page
    assert 'title="[Link to this heading]"' in page
    english = tomllib.loads((ROOT / FOLDER / "en.toml").read_text(encoding="utf-8"))["frame"]
    beside = re.sub(r"<head>.*?</head>|<script.*?</script>|<article.*?</article>", "", page, flags=re.S)
    left = [word for word in english if re.search(rf'(?:>\s*|="){re.escape(word)}\s*["<]', beside)]
    assert left == []


def test_a_word_of_the_theme_that_no_file_has_stops_the_build(tmp_path: Path) -> None:
    spanish(tmp_path)
    write(tmp_path, PAGES)
    for page in ("cube-es", "sphere-es"):
        note_state(tmp_path / f"book/es/{page}.md")
    (tmp_path / "book/_ext").mkdir(exist_ok=True)
    (tmp_path / "book/_ext/says.py").write_text(
        "def say(app, page, template, context, doctree):\n"
        "    context['header_buttons'].append({'type': 'link', 'url': '#', 'text': 'A new word', 'tooltip': 'Next',"
        " 'icon': '', 'label': 'new'})\n\n\n"
        "def setup(app):\n    app.connect('html-page-context', say, priority=900)\n",
        encoding="utf-8",
    )
    done = small_book.build(tmp_path, PAGES, ["course_languages", "says"])
    assert done.returncode != 0
    said = " ".join((done.stdout + done.stderr).split())
    assert 'book/es/cube-es: book/_languages/es.toml: [frame] lacks "Next", "A new word"' in said


def test_a_stale_section_is_named_to_reader_and_builder_and_is_no_error(tree: Path) -> None:
    done = built(tree, **{"solids/cube": CUBE.replace("twelve", "a dozen")})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "book/es/cube-es is behind its English page: 'Its edges' is changed" in done.stderr
    page = html(tree, "es/cube-es")
    note = page[page.index("course-stale") : page.index("</div>", page.index("course-stale"))]
    assert "[The English page has changed since it was translated, in:]" in note
    assert re.findall(r"<bdi[^>]*>(.*?)</bdi>", note) == ["Its edges"]
    assert "course-stale" not in html(tree, "es/sphere-es")
    note_state(tree / "book/es/cube-es.md")
    done = built(tree, **{"solids/cube": CUBE.replace("twelve", "a dozen")})
    assert "course-stale" not in html(tree, "es/cube-es")
    assert "is behind" not in done.stderr


# Beginning a translation


def command(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    script = [sys.executable, str(ROOT / "scripts/translation.py"), *arguments]
    return subprocess.run(script, cwd=root, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)


def test_a_translation_begins_with_text_and_places_under_ids_of_its_own(tmp_path: Path) -> None:
    spanish(tmp_path)
    edges = "(cube-edges)=\n## Its edges\n\nSee {numref}`fig-cube-bar`.\n"
    write(tmp_path, {"index": "# Solids\n", "solids/cube": CUBE.replace("## Its edges\n", edges)})
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: book/solids/cube\n")
    done = command(tmp_path, "begin", "cube", "es")
    assert done.returncode == 0, done.stderr
    assert "- file: book/es/cube-es" in done.stdout
    page = tmp_path / "book/es/cube-es.md"
    text = page.read_text(encoding="utf-8")
    assert "(cube-es-edges)=" in text
    assert "{numref}`fig-cube-es-bar`" in text
    assert "[the sphere](../solids/sphere.md)" in text
    assert re.findall(r"^```\{original\} (.*)$", text, re.M) == ["print(side ** 3)", "fig-cube-bar"]
    assert "side = " not in text
    assert changes(page) == []
    assert len(read_cells(page_text(page))) == len(read_cells(CUBE)) + 1
    again = command(tmp_path, "begin", "cube", "es")
    assert (again.returncode, again.stderr) == (
        2,
        "book/es/cube-es.md exists already: take it away first, or go on with it\n",
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("begin", "cube", "fr"), "unknown language 'fr'"),
        (("begin", "cub", "es"), "unknown page 'cub': did you mean 'cube'?"),
        (("done", "cube"), "unknown translation 'cube'"),
        (("begin",), "say what: make translation NAME=limits LANGUAGE=he"),
    ],
)
def test_a_wrong_name_is_one_message(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    spanish(tmp_path)
    write(tmp_path, {"index": "# Solids\n", "solids/cube": CUBE})
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: book/solids/cube\n")
    done = command(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(complaint)


# A page that has moved


def test_the_place_that_a_page_had_leads_to_the_page(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: mlsys[book] brings it")
    (tmp_path / "book").mkdir()
    moved = tmp_path / "book" / "moved.toml"
    moved.write_text('"book/old/place" = "book/new/place"\n')
    pages = {"index": "# Index\n", "new/place": "# Place\n"}
    assert small_book.build(tmp_path, pages, ["course_pages"]).returncode == 0
    text = html(tmp_path, "old/place")
    assert 'content="1; url=../new/place.html"' in text
    assert 'location.replace("../new/place.html" + location.hash)' in text
    moved.write_text('"book/old/place" = "book/new/plaice"\n')
    done = small_book.build(tmp_path, pages, ["course_pages"])
    assert done.returncode != 0
    assert "book/moved.toml: book/old/place leads to a page that the book does not have" in done.stdout + done.stderr
