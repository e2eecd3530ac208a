"""Translations of chapters: their cells are those of the English page, and they name the state of it that they follow.

`book/he/limits-he.md` translates the chapter `limits`. It holds text only. Where the English page shows a cell, it has
`{original}` with the name of the figure, or the beginning of the cell's first line. All other cells of the English page
run in their order and are not shown, so every number comes from the code of the English page.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from mlsys.course.pages.languages import ENGLISH, Language, language_of, read_language
from mlsys.errors import UserError

STATE = "translated.toml"
"""In the folder of a language: digests of the sections of the English pages as they were translated."""
HIDDEN = {"remove-cell", "hide-cell"}
_FRONT_MATTER = re.compile(r"\A---\n(?P<inside>.*?)^---\n", re.M | re.S)
_CELL = re.compile(r"^```\{code-cell\} ipython3\n(?P<body>.*?)^```[ ]*\n?", re.M | re.S)
_PLACE = re.compile(r"^```\{original\}[ ]+(?P<name>[^\n]+)\n(?P<body>.*?)^```[ ]*\n?", re.M | re.S)
_HEADER = re.compile(r"\A---\n(?P<block>.*?)^---\n|\A(?P<lines>(?::[\w-]+:[^\n]*\n)+)\n?", re.M | re.S)
_HEADING = re.compile(r"^##? (?P<title>.+?)[ ]*$", re.M)
_FENCE = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.M | re.S)
_NOT_READ = re.compile(r"^(?:%.*|\([\w-]+\)=[ ]*)$", re.M)
_OWN_CELL = (
    "```{{code-cell}} ipython3\n:tags: [remove-cell]\n\nfrom _figures import words\n\nwords.use({code!r})\n```\n\n"
)


class TranslationError(UserError):
    """A translation that does not fit its English page any more: it shows a cell that is gone."""


@dataclass(frozen=True)
class Cell:
    """A code cell of a page: its options, its code, and how the page writes it."""

    options: Mapping[str, Any]
    code: str
    raw: str

    @property
    def figure(self) -> dict[str, str]:
        """Name and caption of the figure that it draws, if it draws one."""
        figure: dict[str, str] = self.options.get("mystnb", {}).get("figure", {})
        return figure

    @property
    def name(self) -> str:
        """The name of its figure, or the first line of its code."""
        return self.figure.get("name") or self.code.strip().partition("\n")[0]

    @property
    def shown(self) -> bool:
        """Whether a reader sees anything of it."""
        return not HIDDEN & set(self.options.get("tags", ()))

    def hidden(self) -> str:
        """Return the cell as one that runs and shows nothing."""
        return self.raw if not self.shown else f"```{{code-cell}} ipython3\n:tags: [remove-cell]\n\n{self.code}```\n"


def read_cells(text: str) -> list[Cell]:
    """Return the code cells of a page in their order."""
    cells = []
    for found in _CELL.finditer(text):
        header = _HEADER.match(found["body"])
        options: dict[str, Any] = {}
        if header and header["block"]:
            options = yaml.safe_load(header["block"])
        elif header:
            options = {
                key: yaml.safe_load(value) for key, value in re.findall(r"^:([\w-]+):[ ]*(.*)$", header["lines"], re.M)
            }
        cells.append(Cell(options, found["body"][header.end() if header else 0 :], found[0]))
    return cells


def original_of(page: Path) -> Path | None:
    """Return the English page that a page translates, by its name: `limits-he` translates `limits`."""
    code = language_of(page)
    if code == ENGLISH or not page.stem.endswith(f"-{code}"):
        return None
    book = page.parents[1]
    found = [path for path in book.rglob(f"{page.stem.removesuffix(f'-{code}')}.md") if not _is_aside(path, book)]
    return found[0] if found else None


def _is_aside(path: Path, book: Path) -> bool:
    return any(part.startswith("_") for part in path.relative_to(book).parts)


def own_id(identifier: str, name: str, code: str) -> str:
    """Return the id that a translation gives to what has this id on the English page of this name.

    >>> own_id("fig-limits-map", "limits", "he"), own_id("settled", "limits", "he")
    ('fig-limits-he-map', 'settled-he')
    """
    if name in identifier:
        return identifier.replace(name, f"{name}-{code}", 1)
    return f"{identifier}-{code}"


def page_text(page: Path) -> str:
    """Return the text of a page; that of a translation with the front matter and the cells of its English page.

    Raises:
        TranslationError: the translation shows a cell that the English page does not have, or not in this order.
    """
    return expanded(page, page.read_text(encoding="utf-8"))


def expanded(page: Path, text: str) -> str:
    """Return a text of a page as `page_text` returns that of its file."""
    code = language_of(page)
    if code == ENGLISH:
        return text
    original = original_of(page)
    source = original.read_text(encoding="utf-8") if original else ""
    words = f"lang: {code}\ndir: {read_language(code, page.parents[2]).direction}\n"
    own, theirs = _FRONT_MATTER.match(text), _FRONT_MATTER.match(source)
    head = own["inside"] if own else theirs["inside"] if theirs else ""
    body = text[own.end() :] if own else text
    if original and read_cells(source):
        body = _with_cells(body, source, page, original.stem, code)
    return f"---\n{words}{head}---\n{body}"


def _with_cells(body: str, source: str, page: Path, name: str, code: str) -> str:
    cells = read_cells(source)
    waiting = list(enumerate(cells))
    parts, done = [], 0
    language_is_set = False

    def taken(count: int) -> Iterator[str]:
        nonlocal language_is_set
        for _ in range(count):
            yield waiting.pop(0)[1].hidden() + "\n"
            if not language_is_set:  # after the first cell, which makes the chapter's imports
                language_is_set = True
                yield _OWN_CELL.format(code=code)

    for place in _PLACE.finditer(body):
        number = next((k for k, (_, cell) in enumerate(waiting) if cell.name.startswith(place["name"].strip())), None)
        if number is None:
            known = any(cell.name.startswith(place["name"].strip()) for cell in cells)
            fault = "comes earlier in" if known else "is not in"
            cure = "move it up" if known else "the English page has changed there: take it out, or name its new cell"
            raise TranslationError(f"{page.name}: the cell {place['name'].strip()!r} {fault} {name}.md: {cure}")
        parts += [body[done : place.start()], *taken(number), _placed(waiting.pop(0)[1], place, name, code)]
        done = place.end()
    return "".join([*parts, body[done:].rstrip("\n"), "\n\n", *taken(len(waiting))])


def _placed(cell: Cell, place: re.Match[str], name: str, code: str) -> str:
    """A cell where the translation shows it, with the translation's caption and alt text if it draws a figure."""
    if not cell.figure:
        return cell.raw
    said = yaml.safe_load(place["body"]) or {}
    lacking = [key for key in ("alt", "caption") if not str(said.get(key, "")).strip()]
    if lacking:
        raise TranslationError(
            f"figure {cell.name!r} in {code!r} has no {lacking[0]}: write `{lacking[0]}: ...` below it"
        )
    image = {**cell.options["mystnb"].get("image", {}), "alt": said["alt"]}
    figure = {**cell.figure, "name": own_id(cell.figure["name"], name, code), "caption": said["caption"]}
    options = {**cell.options, "mystnb": {**cell.options["mystnb"], "image": image, "figure": figure}}
    header = yaml.safe_dump(options, allow_unicode=True, sort_keys=False, width=10_000)
    return f"```{{code-cell}} ipython3\n---\n{header}---\n{cell.code}```\n"


def sections(text: str) -> dict[str, str]:
    """Return the text of each section of a page by its heading, as far as a reader sees it; the first is the opening.

    What hidden cells compute is left out, as are comments, labels and the places where lines end: a translation has
    the numbers of its English page without being translated again.
    """
    text = _FRONT_MATTER.sub("", text)
    text = _CELL.sub(lambda found: _seen(read_cells(found[0])[0]), text)
    fences = [found.span() for found in _FENCE.finditer(text)]
    heads = [head for head in _HEADING.finditer(text) if not any(start < head.start() < end for start, end in fences)]
    found = {}
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        body = _NOT_READ.sub("", text[head.end() : after.start() if after else len(text)])
        found[head["title"]] = " ".join(body.split())
    return found


def _seen(cell: Cell) -> str:
    if not cell.shown:
        return ""
    alt = cell.options.get("mystnb", {}).get("image", {}).get("alt", "")
    return f"\ncell {cell.name}\n{alt}\n{cell.figure.get('caption', '')}\n"


def digests(page: Path) -> dict[str, str]:
    """Return a digest of each section of a page."""
    found = sections(page.read_text(encoding="utf-8"))
    return {title: hashlib.sha256(text.encode()).hexdigest()[:12] for title, text in found.items()}


@dataclass(frozen=True)
class Change:
    """A section of an English page that is not as it was translated; `how` is "changed", "new" or "gone"."""

    section: str
    how: str


def _state(page: Path) -> dict[str, dict[str, str]]:
    """Return the digests of all pages in the folder of a translation, by page and section."""
    file = page.parent / STATE
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def changes(page: Path) -> list[Change]:
    """Return what has changed in the English page since this translation of it, in the order of the page.

    Raises:
        TranslationError: nothing says from which state the page was translated.
    """
    original = original_of(page)
    if original is None:
        return []
    state = _state(page)
    if page.stem not in state:
        raise TranslationError(
            f"{STATE} of {page.parent.name} does not say from which state {page.stem} was translated: run "
            f"`make translated NAME={page.stem}` when it says what {original.stem} says"
        )
    then, now = state[page.stem], digests(original)
    changed = [
        Change(title, "changed" if title in then else "new")
        for title, digest in now.items()
        if then.get(title) != digest
    ]
    return changed + [Change(title, "gone") for title in then if title not in now]


def note_state(page: Path) -> Path:
    """Write down that a translation says what its English page says now, and return the file."""
    original = original_of(page)
    if original is None:
        raise TranslationError(f"{page.name} translates no page: its name is that of a chapter, then -LANGUAGE")
    state = _state(page) | {page.stem: digests(original)}
    lines = ["# Sections of the English pages as they were translated; `make translated NAME=...` writes this file.\n"]
    for name in sorted(state):
        lines.append(f"\n[{name}]\n")
        # TOML writes a text as JSON does
        lines += [f'{json.dumps(title, ensure_ascii=False)} = "{digest}"\n' for title, digest in state[name].items()]
    file = page.parent / STATE
    file.write_text("".join(lines), encoding="utf-8")
    return file


def skeleton(original: Path, language: Language) -> str:
    """Return the page that a translator begins with: the English text, with the places of the cells that it shows."""
    code, name = language.code, original.stem
    text = _FRONT_MATTER.sub("", original.read_text(encoding="utf-8"))
    text = _CELL.sub(lambda found: _place_of(read_cells(found[0])[0]), text)
    for english, title in language["headings"].items():
        text = re.sub(rf"^## {re.escape(english)}[ ]*$", f"## {title}", text, flags=re.M)
    text = re.sub(r"\]\((?!https?:|#|/|\.\./)([\w-]+\.md)", rf"](../{original.parent.name}/\1", text)
    ids = {
        *re.findall(r"^\(([\w-]+)\)=", text, re.M),
        *re.findall(r"^:{3,}\{(?:predict|settled)\} ([\w-]+)", text, re.M),
        *re.findall(r"^```\{quiz\} ([\w-]+)", text, re.M),
    }
    figures = {cell.name for cell in read_cells(original.read_text(encoding="utf-8")) if cell.figure}
    for identifier in sorted(ids, key=len, reverse=True):
        text = re.sub(
            rf"^(\(|:{{3,}}\{{(?:predict|settled)\}} |```\{{quiz\}} |:settled: ){re.escape(identifier)}(?=\)=|\s)",
            rf"\g<1>{own_id(identifier, name, code)}",
            text,
            flags=re.M,
        )
    for figure in figures:
        text = text.replace(f"{{numref}}`{figure}`", f"{{numref}}`{own_id(figure, name, code)}`")
    return re.sub(r"\n{3,}", "\n\n", text).lstrip("\n")


def _place_of(cell: Cell) -> str:
    if not cell.shown:
        return ""
    if not cell.figure:
        return f"```{{original}} {cell.name}\n```\n"
    image = cell.options["mystnb"]["image"]
    caption = "".join(f"  {line}\n" for line in cell.figure["caption"].strip().splitlines())
    return f"```{{original}} {cell.name}\nalt: >-\n  {image['alt']}\ncaption: |\n{caption}```\n"
