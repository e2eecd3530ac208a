"""Pages of the package from its docstrings: `{api-rooms} mlsys.ops mlsys.models` is a page, `{api-pages}` their table.

The pages describe what students use; autodoc reads it, with the settings below.
"""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from course_reference import shown
from course_tables import table
from docutils import nodes
from numpy.typing import ArrayLike
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import stringify_annotation

from mlsys.core.arguments import Amount
from mlsys.core.package import modules
from mlsys.course.pages.contents import CONTENTS, book_pages
from mlsys.errors import InvalidValue
from mlsys.units import Quantity

CODE = re.compile(r"(?<![`:])`([^`\n]+)`(?!`)")
STYLE = Config(napoleon_use_rtype=False, napoleon_use_ivar=True, napoleon_attr_annotations=False)
ALIASES = {
    name: stringify_annotation(alias, "smart") for name, alias in {"ArrayLike": ArrayLike, "Amount": Amount}.items()
}
ARRAY = re.compile(r"~?numpy\.ndarray\[~?tuple\[~?(?:typing\.)?Any, \.\.\.\], ~?numpy\.dtype\[[\w.~]+\]\]")
MODULE_HEADING = re.compile(r"<h2>mlsys\.[\w.]+")
ROOMS = re.compile(r"^```\{api-rooms\} ([^`]+)```", re.M)
NAMED = re.compile(r"`(mlsys(?:\.\w+)+)`")
LONGEST_VALUE = 70
"""Longest text of a constant that stands beside its name, in characters: one line."""
CONSTANTS = "mlsys.constants"
BORROWED_UNITS = "mlsys.units"
"""The constants also offer units under their own names; those stand on the page of the units."""


def read_docstring(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText: its sections, and code between single backticks.

    Sphinx's own reader of this style takes "Share: ..." at the beginning of a property for a type; this does not.
    """
    lines[:] = [CODE.sub(r"``\1``\ ", line).removesuffix("\\ ") for line in lines]
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


@dataclass(frozen=True)
class Part:
    """A module that a page describes, whole or only the named objects."""

    module: str
    names: tuple[str, ...] = ()


class ApiRooms(SphinxDirective):
    """The rooms or modules that are its arguments: a table of contents, then a section for each module.

    Of a room the page describes what its `__init__` offers, and the modules and objects that its docstring names.
    """

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Build the contents and the sections."""
        try:
            parts = [part for name in self.arguments[0].split() for part in parts_of(name)]
        except (ImportError, InvalidValue) as error:
            raise self.error(f"{{api-rooms}}: {error}") from error
        whole = {part.module for part in parts if not part.names}
        return [self.contents(parts, whole), *(self.section(part, whole) for part in parts)]

    def contents(self, parts: list[Part], whole: set[str]) -> nodes.definition_list:
        """Build one entry per module: the first sentence of its docstring, and links to what it offers."""
        listing = nodes.definition_list(classes=["course-api-contents"])
        for part in parts:
            module = importlib.import_module(part.module)
            names = nodes.paragraph()
            for place, name in enumerate(part.names or offered(module, whole)):
                names += nodes.Text(", " if place else "")
                names += self.link(f"{defining(module, name)}.{name}", name)
            listing += nodes.definition_list_item(
                "",
                nodes.term("", "", nodes.literal("", part.module)),
                nodes.definition("", nodes.paragraph("", "", *first_sentence(module)), names),
            )
        return listing

    def section(self, part: Part, whole: set[str]) -> nodes.section:
        """Describe a module and what it offers, except what another section describes where it is defined."""
        module = importlib.import_module(part.module)
        if part.module == CONSTANTS:
            content = [*self.restructured(f".. automodule:: {part.module}\n   :no-members:\n"), constants(module)]
        else:
            elsewhere = sorted(set(public_names(module)) - set(offered(module, whole)))
            text = f".. automodule:: {part.module}\n   :members: {', '.join(part.names)}\n"
            text += f"   :exclude-members: {', '.join(elsewhere)}\n" if elsewhere else ""
            content = self.restructured(text + "".join(borrowed_data(module)))
        identifier = nodes.make_id(part.module)
        return nodes.section("", nodes.title("", part.module), *content, ids=[identifier], names=[identifier])

    def restructured(self, text: str) -> list[nodes.Node]:
        """Parse reStructuredText, which autodoc needs, inside of a Markdown page."""
        return self.parse_text_to_nodes(f"```{{eval-rst}}\n{text}```\n")

    def link(self, target: str, text: str) -> nodes.Node:
        """Build a reference to where an object is described."""
        reference = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refdoc=self.env.docname, refwarn=True
        )
        reference += nodes.literal("", text, classes=["xref"])
        return reference


class ApiPages(SphinxDirective):
    """A table of the pages that have `{api-rooms}`, in the order of the table of contents."""

    def run(self) -> list[nodes.Node]:
        """Build one row per page, with its rooms."""
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / CONTENTS))
        body: list[list[nodes.Node]] = []
        for page, rooms in api_pages(root).items():
            self.env.note_dependency(str(page))
            link = addnodes.pending_xref(
                "",
                nodes.inline(),
                refdomain="std",
                reftype="doc",
                reftarget=f"/{page.relative_to(root).with_suffix('')}",
                refexplicit=False,
                refwarn=True,
            )
            named = nodes.inline()
            for place, room in enumerate(rooms):
                named += [nodes.Text(", " if place else ""), nodes.literal("", room.removeprefix("mlsys."))]
            body.append([link, named])
        return [table(("page", "modules of mlsys"), body)]


def api_pages(root: Path) -> dict[Path, list[str]]:
    """Return the rooms or modules of each page that has `{api-rooms}`, in the order of the table of contents."""
    found = {page: ROOMS.search(page.read_text(encoding="utf-8")) for page in book_pages(root).values()}
    return {page: rooms[1].split() for page, rooms in found.items() if rooms}


def parts_of(name: str) -> list[Part]:
    """Return the parts of a page for one room or module: first itself, then what its docstring names inside it.

    Raises:
        InvalidValue: the docstring names what is not there.
    """
    parts = {name: Part(name)}
    for inner in NAMED.findall(inspect.getdoc(importlib.import_module(name)) or ""):
        if not inner.startswith(f"{name}."):
            continue
        if inner in modules():
            parts[inner] = Part(inner)
            continue
        module, _, member = inner.rpartition(".")
        if module not in modules() or not hasattr(importlib.import_module(module), member):
            raise InvalidValue(f"the docstring of {name} names {inner}, which is not there: correct the name")
        if module not in parts or parts[module].names:
            parts[module] = Part(module, (*parts.get(module, Part(module)).names, member))
    return list(parts.values())


def offered(module: ModuleType, whole: set[str]) -> list[str]:
    """Return the public names of a module, without those whose own module the page describes as a whole."""
    elsewhere = whole - {module.__name__}
    return [name for name in public_names(module) if getattr(getattr(module, name), "__module__", "") not in elsewhere]


def public_names(module: ModuleType) -> list[str]:
    """Return what a module offers, in its own order: its `__all__`, or the functions and classes that it defines."""
    if module.__name__ == CONSTANTS:
        return []  # the page has a table of them
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "") == module.__name__
        and (inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)))
    ]


def defining(module: ModuleType, name: str) -> str:
    """Return the module whose file describes a name: a constant is read there, all else where it is offered."""
    value = getattr(module, name)
    if inspect.isclass(value) or callable(value):
        return module.__name__
    inner = [other for other in modules() if other == module.__name__ or other.startswith(f"{module.__name__}.")]
    return next((one for one in inner if ("", name) in ModuleAnalyzer.for_module(one).find_attr_docs()), inner[0])


def borrowed_data(module: ModuleType) -> Iterator[str]:
    """Yield a directive for each constant that a room offers from one of its modules; autodoc leaves those out."""
    for name in public_names(module):
        home = defining(module, name)
        if home != module.__name__:
            value = "" if len(repr(getattr(module, name))) <= LONGEST_VALUE else "   :no-value:\n"
            yield f"\n.. autodata:: {home}.{name}\n{value}"


def first_sentence(module: ModuleType) -> list[nodes.Node]:
    """Return the first line of a docstring, with its code set as code."""
    line = (inspect.getdoc(module) or "").split("\n", 1)[0]
    return [nodes.literal("", part) if odd % 2 else nodes.Text(part) for odd, part in enumerate(line.split("`"))]


def constants(module: ModuleType) -> nodes.table:
    """Build a table of the names of `mlsys.constants` with their values."""
    units = vars(importlib.import_module(BORROWED_UNITS))
    values = {name: getattr(module, name) for name in module.__all__ if name not in units}
    return table(
        ("name", "value"),
        [
            (nodes.literal("", name), shown(value) if isinstance(value, Quantity) else f"{value:,}")
            for name, value in values.items()
        ],
    )


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
    app.add_directive("api-rooms", ApiRooms)
    app.add_directive("api-pages", ApiPages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
