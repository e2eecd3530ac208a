"""Pages of the package from its docstrings: settings for autodoc, a table of contents, and the table of constants."""

import dataclasses
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

from course_reference import shown
from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import stringify_annotation

from mlsys.core.arguments import Amount
from mlsys.units import Quantity

CODE = re.compile(r"(?<![`:])`([^`\n]+)`(?!`)")
STYLE = Config(napoleon_use_rtype=False, napoleon_use_ivar=True, napoleon_attr_annotations=False)
ALIASES = {
    name: stringify_annotation(alias, "smart") for name, alias in {"ArrayLike": ArrayLike, "Amount": Amount}.items()
}
ARRAY = re.compile(r"~?numpy\.ndarray\[~?tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[[\w.~]+\]\]")
MODULE_HEADING = re.compile(r"<h2>mlsys\.[\w.]+")
BORROWED_UNITS = "mlsys.units"
"""The constants also offer units under their own names; those stand on the page of the units."""


def read_docstring(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText: its sections, and code between single backticks.

    Sphinx's own reader of this style takes "Share: ..." at the beginning of a property for a type; this does not.
    """
    lines[:] = [CODE.sub(r"``\1``\ ", line) for line in lines]
    part = "method" if what in ("property", "attribute", "data") else what
    lines[:] = GoogleDocstring(lines, STYLE, app, part, name, obj, options).lines()


def shorten_types(
    app: Sphinx, what: str, name: str, obj: object, options: Any, signature: str, returns: str
) -> tuple[str, str]:
    """Write aliases of types by their names, arrays without their inner types, and the defaults that a field makes."""
    if getattr(obj, "_is_protocol", False):
        return "", ""  # nobody calls it
    if what == "class" and dataclasses.is_dataclass(obj):
        for field in dataclasses.fields(obj):
            if field.default_factory is not dataclasses.MISSING:
                signature = signature.replace("<factory>", repr(field.default_factory()), 1)

    def short(text: str) -> str:
        for alias, written_out in ALIASES.items():
            text = text.replace(written_out, alias)
        return ARRAY.sub("ndarray", text)

    return short(signature or ""), short(returns or "")


class ApiContents(SphinxDirective):
    """The public names of the modules that are its arguments, each under the one that defines it if that is listed."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Build one definition list."""
        listing = nodes.definition_list(classes=["course-api-contents"])
        listed = self.arguments[0].split()
        for name in listed:
            module = importlib.import_module(name)
            names = nodes.paragraph()
            elsewhere = {other for other in listed if other != name}
            members = [one for one in public_names(module) if getattr(module, one).__module__ not in elsewhere]
            for place, member in enumerate(members):
                names += nodes.Text(", " if place else "")
                names += self.link(f"{name}.{member}", member)
            listing += nodes.definition_list_item(
                "",
                nodes.term("", "", nodes.literal("", name)),
                nodes.definition("", nodes.paragraph("", "", *self.first_sentence(module)), names),
            )
        return [listing]

    def first_sentence(self, module: ModuleType) -> list[nodes.Node]:
        """The first line of a docstring, with its code set as code."""
        line = (inspect.getdoc(module) or "").split("\n", 1)[0]
        return [nodes.literal("", part) if odd % 2 else nodes.Text(part) for odd, part in enumerate(line.split("`"))]

    def link(self, target: str, text: str) -> nodes.Node:
        """A reference to where the object is described."""
        reference = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=self.env.docname, refwarn=True
        )
        reference += nodes.literal("", text, classes=["xref"])
        return reference


def public_names(module: ModuleType) -> list[str]:
    """Functions, cached ones included, and classes that a module offers, in its own order."""
    if module.__name__.endswith(".constants"):
        return []
    if hasattr(module, "__all__"):
        names = list(module.__all__)
    else:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return [
        name for name, value in found.items() if inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value))
    ]


class Constants(SphinxDirective):
    """A table of the names of `mlsys.constants` with their values."""

    def run(self) -> list[nodes.Node]:
        """Build the table from the module as it is now."""
        module = importlib.import_module("mlsys.constants")
        units = vars(importlib.import_module(BORROWED_UNITS))
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in range(2)), cols=2)
        group += nodes.thead("", _row(nodes.Text("name"), nodes.Text("value")))
        body = nodes.tbody()
        for name in module.__all__:
            if name not in units:
                body += _row(nodes.literal("", name), nodes.Text(_shown(getattr(module, name))))
        group += body
        return [nodes.table("", group)]


def _shown(value: Any) -> str:
    return shown(value) if isinstance(value, Quantity) else f"{value:,}"


def _row(*cells: nodes.Node) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def break_names(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let headings with long names of modules break after a dot, on a phone."""
    if "body" in context:
        context["body"] = MODULE_HEADING.sub(lambda found: found[0].replace(".", ".<wbr>"), context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", shorten_types)
    app.connect("html-page-context", break_names)
    app.add_directive("api-contents", ApiContents)
    app.add_directive("constants", Constants)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
