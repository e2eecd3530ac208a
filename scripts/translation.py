"""Begin a translation, or note that it is up to date: `make translation NAME=limits LANGUAGE=he`, `make translated`.

`translation.py begin limits he` writes book/he/limits-he.md with the English text, to be translated. `translation.py
done limits-he` notes that it says what the English page says now. `translation.py stale` lists what has changed since.
"""

import sys
from pathlib import Path

from mlsys.course.pages.contents import book_pages
from mlsys.course.pages.languages import ENGLISH, codes, language_of, read_language
from mlsys.course.pages.translation import changes, note_state, original_of, skeleton
from mlsys.errors import InvalidValue, UnknownName, UserError

NEXT = """{page} is there, with the English text.
1. List the page in _toc.yml:          - file: {docname}
2. Translate. Keep what is in {{braces}} and in `code`. A place such as ```{{original}} fig-...``` shows the cell of the
   English page; translate its alt text and caption.
3. `make book` names what is missing: in the page, or in {words}."""


def begin(root: Path, name: str, code: str) -> str:
    """Write the page of a new translation, and return what to do next."""
    language = read_language(code, root)
    pages = {page: path for page, path in book_pages(root).items() if language_of(path) == ENGLISH}
    if code == ENGLISH:
        raise InvalidValue(f"the book is in {ENGLISH!r}: name one of {', '.join(codes(root))}")
    if name not in pages:
        raise UnknownName.of("page", name, pages)
    page = root / "book" / code / f"{name}-{code}.md"
    if page.exists():
        raise InvalidValue(f"{page.relative_to(root)} exists already: take it away first, or go on with it")
    page.parent.mkdir(exist_ok=True)
    page.write_text(skeleton(pages[name], language), encoding="utf-8")
    note_state(page)
    docname = page.relative_to(root).with_suffix("").as_posix()
    return NEXT.format(page=page.relative_to(root), docname=docname, words=language.file)


def done(root: Path, name: str) -> str:
    """Note that a translation says what its English page says now."""
    pages = {page: path for page, path in book_pages(root).items() if original_of(path)}
    if name not in pages:
        raise UnknownName.of("translation", name, pages)
    return f"{note_state(pages[name]).relative_to(root)}: {name} is up to date"


def stale(root: Path) -> str:
    """Return the sections that have changed since they were translated, by the page of the translation."""
    lines = [
        f"{page.relative_to(root)}: {change.section!r} is {change.how} on the English page"
        for page in book_pages(root).values()
        for change in (changes(page) if original_of(page) else [])
    ]
    return "\n".join(lines) or "All translations are up to date."


COMMANDS = {"begin": (begin, 2), "done": (done, 1), "stale": (stale, 0)}


def main(arguments: list[str]) -> int:
    """Run a command; a name that cannot be is one message and exit status 2."""
    name, *rest = arguments or [""]
    command, count = COMMANDS.get(name, (None, 0))
    if command is None or len(rest) != count or not all(rest):
        print("say what: make translation NAME=limits LANGUAGE=he, or make translated NAME=limits-he", file=sys.stderr)
        return 2
    try:
        print(command(Path.cwd(), *rest))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
