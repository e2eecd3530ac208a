"""Templates of pages: every page of a class escapes what it is given, and fails on a name that it does not know."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import jinja2


def page_templates(package: str, **filters: Callable[..., Any]) -> jinja2.Environment:
    """Return the templates in the folder `templates` of a package.

    Args:
        package: dotted name of the package.
        filters: filters of the templates, by name.
    """
    folder = files(package).joinpath("templates")
    sources = {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.name.endswith(".j2")}
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(sources),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= filters
    return environment


def page_file(package: str, name: str) -> str:
    """Return a style sheet or a script from the folder `templates` of a package."""
    return files(package).joinpath("templates", name).read_text(encoding="utf-8")
