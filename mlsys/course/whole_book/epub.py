"""The whole book as an EPUB 3: a page per chapter, formulas as MathML, a table of contents that readers know.

The file is packed by hand, because its form is short and fixed: https://www.w3.org/TR/epub-33/.
"""

import html as text_of_html
import mimetypes
import posixpath
import uuid
import zipfile
from pathlib import Path

from lxml import etree

from mlsys.course.whole_book.formulas import set_formulas
from mlsys.course.whole_book.pages import Book, Page

HERE = Path(__file__).parent

_CONTAINER = """<?xml version="1.0" encoding="utf-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book/package.opf" media-type="application/oebps-package+xml"/></rootfiles></container>
"""

_PACKAGE = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">{identifier}</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language>
<dc:creator>{author}</dc:creator><meta property="dcterms:modified">{modified}</meta>
</metadata>
<manifest>
{manifest}
</manifest>
<spine>
{spine}
</spine>
</package>
"""

_PAGE = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE html>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"
  xml:lang="{language}" lang="{language}">
<head><title>{title}</title><link rel="stylesheet" type="text/css" href="book.css"/></head>
<body>{body}</body></html>
"""

_NOT_IN_XHTML = ("loading", "align", "valign", "width", "height", "role")
_XHTML_TYPE = "application/xhtml+xml"


def write_epub(book: Book, target: Path) -> Path:
    """Pack the book into the file `target`, which ends in .epub, and return its path.

    The same site gives the same bytes but for the date, which can be given as the environment's SOURCE_DATE_EPOCH.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, Path] = {}

    def picture(address: str) -> str:
        name = f"pictures/{posixpath.basename(address)}"
        pictures[name] = book.site / address
        return name

    book.bind(lambda page, name, identifier: _address(name, identifier), picture)
    set_formulas((page.body for page in book.pages), book.site, target.parent)
    style = (HERE / "book.css").read_text(encoding="utf-8") + (book.site / "_static" / "pygments.css").read_text(
        encoding="utf-8"
    )
    said = f"<h1>{text_of_html.escape(book.title)}</h1><p>{text_of_html.escape(book.author)}</p>"
    license_line = f"<p>Version {book.version}. Text: CC BY 4.0. Code: Apache-2.0.</p>"
    title = f'<div class="title-page">{said}{license_line}</div>'
    files: dict[str, str | bytes] = {
        "title.xhtml": _PAGE.format(language="en", title=text_of_html.escape(book.title), body=title),
        "nav.xhtml": _PAGE.format(language="en", title="Contents", body=_navigation(book)),
        "book.css": style,
    }
    files |= {f"{page.name}.xhtml": _xhtml(page) for page in book.pages}
    files |= {name: path.read_bytes() for name, path in sorted(pictures.items())}
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        # Readers look at the first bytes of the file, so the first entry is not compressed.
        packed.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip", zipfile.ZIP_STORED)
        inside = {"META-INF/container.xml": _CONTAINER, "book/package.opf": _package(book, files)}
        for name, data in (inside | {f"book/{name}": data for name, data in files.items()}).items():
            packed.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 9)
    return target


def _address(name: str, identifier: str) -> str:
    return f"{name}.xhtml#{identifier}" if identifier else f"{name}.xhtml"


def _package(book: Book, files: dict[str, str | bytes]) -> str:
    manifest, spine = [], []
    for place, name in enumerate(files):
        kind = _XHTML_TYPE if name.endswith(".xhtml") else mimetypes.guess_type(name)[0]
        properties = ["nav"] if name == "nav.xhtml" else []
        text = files[name]
        if kind == _XHTML_TYPE and isinstance(text, str):
            properties += ["mathml"] * ("<math" in text)
            spine.append(f'<itemref idref="f{place}"/>')
        said = f' properties="{" ".join(properties)}"' if properties else ""
        manifest.append(f'<item id="f{place}" href="{name}" media-type="{kind}"{said}/>')
    return _PACKAGE.format(
        identifier=f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{book.title}/{book.edition}')}",
        title=text_of_html.escape(book.title),
        author=text_of_html.escape(book.author),
        modified=book.dated.strftime("%Y-%m-%dT%H:%M:%SZ"),
        manifest="\n".join(manifest),
        spine="\n".join(spine),
    )


def _navigation(book: Book) -> str:
    parts: dict[str, list[str]] = {}
    for page in book.pages:
        entry = f'<li><a href="{page.name}.xhtml">{text_of_html.escape(page.title)}</a></li>'
        parts.setdefault(page.part, []).append(entry)
    lines = [
        f"<li><span>{part}</span><ol>{''.join(entries)}</ol></li>" if part else "".join(entries)
        for part, entries in parts.items()
    ]
    return f'<nav epub:type="toc" id="toc" class="contents"><h1>Contents</h1><ol>{"".join(lines)}</ol></nav>'


def _xhtml(page: Page) -> str:
    for element in page.body.iter(etree.Element):
        for name in _NOT_IN_XHTML:
            element.attrib.pop(name, None)
    # A reader needs no style to see which way code, formulas and pictures run.
    for element in page.body.iter("pre", "code"):
        element.set("dir", "ltr")
    body = etree.tostring(page.body, encoding="unicode", with_tail=False)
    return _PAGE.format(language=page.language, title=text_of_html.escape(page.title), body=body)
