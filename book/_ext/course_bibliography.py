"""The order of the bibliography: by names as a reader sees them, whether or not BibTeX has braces around them."""

from typing import Any

from pybtex.database import Person
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.sorting.author_year_title import SortingStyle
from sphinx.application import Sphinx


class ByVisibleName(SortingStyle):  # type: ignore[misc]
    """Sorts by author, year and title; braces around a name do not count."""

    def person_key(self, person: Person) -> str:
        """Return the name that an author is sorted by."""
        return str(super().person_key(person)).replace("{", "").replace("}", "")


class CourseStyle(Style):  # type: ignore[misc]
    """BibTeX's style `plain` in that order."""

    default_sorting_style = "course"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with pybtex; `bibtex_default_style` names the style."""
    register_plugin("pybtex.style.sorting", "course", ByVisibleName, force=True)
    register_plugin("pybtex.style.formatting", "course", CourseStyle, force=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
