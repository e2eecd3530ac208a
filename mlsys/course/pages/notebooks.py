"""Chapters as notebooks: the pages of the book, made into `.ipynb` files that run from their first cell.

A page is a MyST notebook. In its notebook, the numbers of the prose stand as text, directives become plain Markdown,
and folded cells come first: one that installs `mlsys` when it is missing, and one for each file that the chapter reads,
its figure functions and the records of measurements.
"""

import json
import re
from ast import literal_eval
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from mlsys.course.pages.contents import book_pages
from mlsys.course.pages.languages import ENGLISH, FOLDER, language_of, read_language
from mlsys.course.pages.plain_markdown import PlainMarkdown
from mlsys.course.pages.translation import original_of, page_text
from mlsys.course.settings import read_settings
from mlsys.errors import UserError
from mlsys.measure.records import RESULTS_FOLDER

NUMBERS_TAG = "numbers"
"""Marks the cells of a page that only hand numbers to its prose; a notebook has no use for them."""

NO_CHAPTER = ("class-size", "errata")
"""Pages that compute as chapters do, and are no chapters."""

NO_NOTEBOOK = ("class-size",)
"""Pages for instructors that compute with files which students do not get."""

_INSTALL = """# Run this cell first: it installs the course's package where it is missing, as in Colab.
import importlib.util
from pathlib import Path

if importlib.util.find_spec("mlsys") is None:
    %pip install --quiet {wheel_url}
for folder in {folders}:
    Path(folder).mkdir(parents=True, exist_ok=True)"""
_FIGURES = re.compile(r"^from _figures import (\w+)", re.M)
_STARTS = re.compile(r"^chapter = start_chapter\(", re.M)
_HEADING_OR_FENCE = re.compile(r"^(?:## |```)", re.M)
_IMPORTED = re.compile(r"^from _figures(?:\.(?P<module>\w+))? import (?P<name>\w+)", re.M)
_SECTION = re.compile(r"^\((?P<label>[\w-]+)\)=\s*\n#+ (?P<title>.+)$", re.M)
_RECORD = re.compile(r"""records\.load\(["']([\w/-]+)["']\)""")


def is_chapter(page: Path) -> bool:
    """Whether a page of the book is a notebook for students: its front matter names a kernel."""
    if page.stem in NO_NOTEBOOK:
        return False
    front_matter = (original_of(page) or page).read_text(encoding="utf-8").split("\n---", 1)[0]
    return front_matter.startswith("---") and "\nkernelspec:" in front_matter


def numbers_sections(page: Path) -> bool:
    """Whether the sections of a page are numbered: it is a chapter, and so it calls `start_chapter`."""
    return page.stem not in NO_CHAPTER and bool(_STARTS.search((original_of(page) or page).read_text("utf-8")))


def with_numbered_sections(text: str) -> str:
    r"""Return the text of a page with a number before each of its second-level headings.

    >>> with_numbered_sections("# Title\n\n## One\n\n### Below\n\n```\n## a comment\n```\n\n## Two\n")
    '# Title\n\n## 1. One\n\n### Below\n\n```\n## a comment\n```\n\n## 2. Two\n'
    """
    place, inside = 0, False

    def numbered(found: re.Match[str]) -> str:
        nonlocal place, inside
        if found[0] == "```":
            inside = not inside
        if found[0] == "```" or inside:
            return found[0]
        place += 1
        return f"## {place}. "

    return _HEADING_OR_FENCE.sub(numbered, text)


def build_chapters(root: Path) -> list[Path]:
    """Write the notebook of every chapter to `_build/chapters/` and return their paths.

    Args:
        root: the repository; its book must have been built, because the numbers in the prose come from there.

    Raises:
        UserError: the book has not been built, a chapter uses markup that a notebook cannot show or names a record that
            does not exist, or two pages have the same name.
    """
    folder = root / "_build" / "chapters"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in book_pages(root).values():
        if page.is_file() and is_chapter(page):
            path = folder / f"{page.stem}.ipynb"
            text = nbformat.writes(chapter_notebook(root, page)) + "\n"
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            written.append(path)
    return written


def chapter_notebook(root: Path, page: Path) -> NotebookNode:
    """The notebook of one page, without outputs, with the same cell ids at every run."""
    text = page_text(page)
    if numbers_sections(page):
        text = with_numbered_sections(text)
    page_cells = jupytext.reads(text, fmt="md:myst").cells
    language = read_language(language_of(page), root)
    plain = PlainMarkdown(
        page.name,
        _numbers(root, page, text),
        root / "book" / "references.bib",
        _figure_names(page_cells),
        sections={found["label"]: found["title"] for found in _SECTION.finditer(text)},
        language=language,
    )
    files = _files_read(root, page, text)
    folders = tuple(sorted({"_figures", RESULTS_FOLDER.as_posix(), *(name.rpartition("/")[0] for _, name in files)}))
    cells = [new_code_cell(_INSTALL.format(wheel_url=read_settings(root).wheel_url, folders=folders))]
    for path, name in files:
        source = f"%%writefile {name}\n{path.read_text(encoding='utf-8').rstrip()}"
        cells.append(new_code_cell(source, metadata=_folded()))
    for cell in page_cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type == "markdown":
            cells.append(new_markdown_cell(plain.convert(cell.source)))
        elif NUMBERS_TAG not in tags:
            hidden = bool({"hide-input", "hide-cell", "remove-input", "remove-cell"} & set(tags))
            cells.append(new_code_cell(cell.source, metadata=_folded() if hidden else {}))
            figure = cell.metadata.get("mystnb", {}).get("figure", {})
            if "caption" in figure:
                number = plain.figures.index(figure["name"]) + 1
                said = language["notebook"]["figure"].format(number=number)
                cells.append(new_markdown_cell(f"*{said}.* {plain.convert(figure['caption']).strip()}"))
    for place, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{place}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook: NotebookNode = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    return notebook


def _folded() -> dict[str, object]:
    """Cell metadata that folds the code away, in Colab and in JupyterLab."""
    return {"cellView": "form", "jupyter": {"source_hidden": True}}


def _files_read(root: Path, page: Path, text: str) -> list[tuple[Path, str]]:
    """Files that the page's cells read, each with the place where its notebook puts it."""
    found = []
    for module in _with_imported(root / "book" / "_figures", list(dict.fromkeys(_FIGURES.findall(text)))):
        name = f"_figures/{module}.py"
        found.append((root / "book" / name, name))
    if language_of(page) != ENGLISH:
        name = f"{Path(FOLDER).name}/{language_of(page)}.toml"
        found.append((root / "book" / name, name))
    for record in dict.fromkeys(_RECORD.findall(text)):
        name = f"{RESULTS_FOLDER}/{record}.json"
        if not (root / name).is_file():
            raise UserError(
                f"{page.name}: its notebook would need {name}, which does not exist; mend the name in its cells"
            )
        found.append((root / name, name))
    return found


def _with_imported(folder: Path, modules: list[str]) -> list[str]:
    """Return modules of figures with those that they import, which come first."""
    found: list[str] = []
    for module in modules:
        text = (folder / f"{module}.py").read_text(encoding="utf-8")
        needed = [one["module"] or one["name"] for one in _IMPORTED.finditer(text)]
        found += [one for one in (*_with_imported(folder, needed), module) if one not in found]
    return found


def _figure_names(cells: list[NotebookNode]) -> list[str]:
    figures = [cell.metadata.get("mystnb", {}).get("figure", {}) for cell in cells]
    return [figure["name"] for figure in figures if "name" in figure]


def _numbers(root: Path, page: Path, text: str) -> dict[str, str]:
    """Numbers that the page's cells gave to its prose in the last build of the book."""
    path = root / "_build" / "jupyter_execute" / page.relative_to(root).with_suffix(".glue.json")
    if not path.is_file():
        if "{glue:text}" in text:
            raise UserError(f"{page.name}: its numbers are not computed yet ({path} is missing): run `make book` first")
        return {}
    glued = json.loads(path.read_text(encoding="utf-8"))
    return {name: str(literal_eval(output["data"]["text/plain"])) for name, output in glued.items()}
