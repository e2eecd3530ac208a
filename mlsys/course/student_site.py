"""The built site as students get it: up to date with the book, without the instructors' pages and labs to come.

The build leaves a stamp of what it read. A site with another stamp would lead to another address, or say what the book
said before.
"""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from mlsys.course.digest import digest, package_digest
from mlsys.course.settings import PLACEHOLDER, Settings
from mlsys.errors import UserError

STAMP = ".built"
"""Name of the file in the site that says what it was built from."""
FOR_INSTRUCTORS = ("book/about/instructor", "book/about/class-size")
"""Pages that students do not get."""

_INDEX = re.compile(r"(Search\.setIndex\()(.*)(\)\s*)", re.S)
_NOTEBOOK_LINKS = '<p class="course-notebook">(?:(?!</p>).)*labs/{lab}/{lab}\\.ipynb(?:(?!</p>).)*</p>'
_NOT_OUT = '<p class="course-notebook">This lab is not out yet.</p>'


def site_state(root: Path, settings: Settings) -> str:
    """Return the digest of what the site of the repository at `root` is built from: address, book, labs, package."""
    files = [
        root / "_config.yml",
        root / "_toc.yml",
        *(root / "book").rglob("*"),
        *(root / "labs" / "results").rglob("*"),
        *(root / "tests" / "labs" / "results").rglob("*"),
    ]
    files += [*root.glob("labs/*/lab.py"), *root.glob("labs/*/class/expected.csv")]
    found = sorted(path for path in files if path.is_file() and "__pycache__" not in path.parts)
    parts = (part for path in found for part in (str(path.relative_to(root)), path.read_bytes()))
    return digest(settings.wheel_url, package_digest(), *parts)


def stamp_site(site: Path, state: str) -> None:
    """Leave in a site that was just built what it was built from: the `site_state` when the build began."""
    (site / STAMP).write_text(state, encoding="utf-8")


def check_address(root: Path, settings: Settings) -> None:
    """Make sure that the public address was entered.

    Raises:
        UserError: it is still the placeholder.
    """
    if PLACEHOLDER in settings.repository:
        raise UserError(
            f"repository.url in {root / '_config.yml'} is still the placeholder, so that Colab buttons and the first "
            "cell of every lab would lead nowhere: enter the address of the public repository, then run `make course`"
        )


def check_site(root: Path, settings: Settings) -> None:
    """Make sure that the site, if there is one, is what the book says now.

    Raises:
        UserError: the address is still the placeholder, or the site was built from something else.
    """
    check_address(root, settings)
    site = root / "_build" / "html"
    if not (site / "index.html").is_file():
        return
    stamp = site / STAMP
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != site_state(root, settings):
        raise UserError(
            f"the site in {site} is older than the book, the labs, the package or the address in _config.yml, or its "
            "build failed: run `make book`, then publish again"
        )


def site_files(site: Path, held_back: Collection[str]) -> dict[str, Path | str]:
    """Return the files of a built site that students get, by their places.

    Args:
        site: the folder of the site.
        held_back: labs that are not out yet: their pages stay, without their notebooks.
    """
    pages = [path.relative_to(site) for path in sorted(site.rglob("*")) if path.is_file()]
    left_out = {f"{page}.html" for page in FOR_INSTRUCTORS} | {f"_sources/{page}.md" for page in FOR_INSTRUCTORS}
    left_out |= {f"labs/{lab}/{lab}.ipynb" for lab in held_back}
    files: dict[str, Path | str] = {}
    for path in pages:
        hidden = path.parts[0] == "reports" or any(part.startswith(".") for part in path.parts)
        if hidden or str(path) in left_out:
            continue
        if path.suffix == ".html":
            files[str(path)] = _for_students((site / path).read_text(encoding="utf-8"), held_back)
        elif str(path) == "searchindex.js":
            files[str(path)] = _without_pages((site / path).read_text(encoding="utf-8"))
        else:
            files[str(path)] = site / path
    return files


def _for_students(html: str, held_back: Collection[str]) -> str:
    for page in FOR_INSTRUCTORS:
        link = rf'href="[^"]*\b{page.rpartition("/")[2]}\.html(?:#[^"]*)?"'
        html = re.sub(rf'\s*<link rel="(?:next|prev)"[^>]*{link}[^>]*/?>', "", html)
        html = re.sub(rf'<li class="toctree-l\d"><a [^>]*{link}[^>]*>[^<]*</a></li>\n?', "", html)
        html = re.sub(rf'\s*<a class="(?:left-prev|right-next)"\s+{link}.*?</a>', "", html, flags=re.S)
        html = re.sub(rf"<a [^>]*{link}[^>]*>(.*?)</a>", r"\1", html, flags=re.S)
    for lab in held_back:
        html = re.sub(_NOTEBOOK_LINKS.format(lab=re.escape(lab)), _NOT_OUT, html, flags=re.S)
    return html


def _without_pages(text: str) -> str:
    """Return Sphinx's search index in which nothing leads to the instructors' pages."""
    match = _INDEX.fullmatch(text)
    if match is None:
        raise UserError("searchindex.js is not as this version of Sphinx writes it: build the site again")
    index = json.loads(match[2])
    gone = {number for number, name in enumerate(index["docnames"]) if name in FOR_INSTRUCTORS}
    for part in ("terms", "titleterms"):
        index[part] = _without(index[part], gone)
    for part in ("alltitles", "indexentries"):
        kept = {key: [place for place in places if place[0] not in gone] for key, places in index[part].items()}
        index[part] = {key: places for key, places in kept.items() if places}
    return f"{match[1]}{json.dumps(index)}{match[3]}"


def _without(terms: Mapping[str, int | list[int]], gone: Collection[int]) -> dict[str, int | list[int]]:
    """Return the terms without the pages in `gone`: Sphinx writes one page as a number, several as a list."""
    result: dict[str, int | list[int]] = {}
    for term, pages in terms.items():
        kept = [page for page in ([pages] if isinstance(pages, int) else pages) if page not in gone]
        if kept:
            result[term] = kept if len(kept) > 1 else kept[0]
    return result
