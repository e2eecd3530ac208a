"""Formulas of the book as MathML, which e-books and browsers typeset themselves.

MathJax, the site's own copy, makes it from the TeX; each formula keeps its TeX as a text to be read aloud.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from lxml import etree
from lxml.html import HtmlElement

from mlsys.course.whole_book.browser import chromium
from mlsys.course.whole_book.pages import tex_of
from mlsys.errors import UserError

MATHML = "http://www.w3.org/1998/Math/MathML"

_PAGE = """<!DOCTYPE html>
<script>window.MathJax = {{startup: {{typeset: false}}, options: {{enableMenu: false}}}};</script>
<script src="{mathjax}"></script>"""

_CONVERT = "(all) => MathJax.startup.promise.then(() => all.map(([tex, display]) => MathJax.tex2mml(tex, {display})))"


def set_formulas(bodies: Iterable[HtmlElement], site: Path, folder: Path) -> int:
    """Replace every formula in the bodies by MathML and return how many there were.

    Args:
        bodies: contents of pages of the site.
        site: the built site, which has MathJax.
        folder: where the page is written that Chromium opens.

    Raises:
        UserError: MathJax does not understand a formula.
    """
    formulas = [formula for body in bodies for formula in list(body.find_class("math"))]
    wanted = sorted({(tex_of(formula), formula.tag == "div") for formula in formulas})
    made = dict(zip(wanted, _mathml(wanted, site, folder), strict=True))
    for formula in formulas:
        source = tex_of(formula)
        if "<merror" in made[source, formula.tag == "div"]:
            raise UserError(f"MathJax does not understand the formula {source!r}")
        element = etree.fromstring(made[source, formula.tag == "div"])
        for inner in element.iter(etree.Element):
            for name in [name for name in inner.attrib if name.startswith("data-") or name == "class"]:
                del inner.attrib[name]
        element.set("alttext", source)
        formula.text = None
        formula.insert(0, element)
    return len(formulas)


def _mathml(wanted: list[tuple[str, bool]], site: Path, folder: Path) -> list[str]:
    if not wanted:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "mathml.html"
    mathjax = (site / "_static" / "mathjax" / "tex-mml-chtml.js").resolve().as_uri()
    page.write_text(_PAGE.format(mathjax=mathjax), encoding="utf-8")
    with chromium() as browser:
        opened = browser.new_page()
        opened.goto(page.resolve().as_uri())
        made = opened.evaluate(_CONVERT, [list(one) for one in wanted])
    page.unlink()
    return cast(list[str], made)
