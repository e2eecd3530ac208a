"""Notebooks beside the pages: Colab and download buttons, and the "report an error" link.

A chapter's notebook is made from its page, a lab's notebook is the released one; both lie in the site under the path
that they have in the student tree, which is what Colab opens. A page with `lab: NAME` in its front matter is a lab's.
"""

import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from course_languages import page_language
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from mlsys.course.pages.notebooks import build_chapters, is_chapter
from mlsys.course.settings import PLACEHOLDER, read_settings
from mlsys.course.student_site import STAMP, site_state, stamp_site
from mlsys.errors import UserError

logger = logging.getLogger(__name__)


def released_lab(root: Path, lab: str) -> Path:
    """The released notebook of a lab."""
    return root / "_build" / "course" / "release" / lab / f"{lab}.ipynb"


def notebook_of(app: Sphinx, docname: str) -> str:
    """Path, in the site and in the student tree, of the notebook that belongs to a page; empty if it has none."""
    lab = app.env.metadata.get(docname, {}).get("lab", "")
    if lab:
        return f"labs/{lab}/{lab}.ipynb"
    if docname in app.env.found_docs and is_chapter(Path(app.env.doc2path(docname))):
        return f"chapters/{docname.rsplit('/', 1)[-1]}.ipynb"
    return ""


def add_buttons(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Put the links into the page's header and, for a notebook, a line with the same links under its title."""
    settings = read_settings(Path(app.srcdir))
    report = {"title": f"Error on page {pagename}", "body": "What the page says, and what it should say:"}
    context["header_buttons"].append(
        {
            "type": "link",
            "url": f"{settings.repository}/issues/new?{urlencode(report)}",
            "text": "Report an error",
            "tooltip": "Report an error on this page",
            "icon": "fas fa-flag",
            "label": "report-error",
        }
    )
    notebook = notebook_of(app, pagename)
    if notebook:
        words = page_language(app.env, pagename)["page"]
        links = (
            f'<a href="{settings.colab_url(notebook)}">{words["colab"]}</a> '
            f'<a href="{context["pathto"](notebook, 1)}" download>{words["download"]}</a>'
        )
        context["body"] = context["body"].replace("</h1>", f'</h1>\n<p class="course-notebook">{links}</p>', 1)


def remember_state(app: Sphinx) -> None:
    """Keep what the book is before it is read: what changes during the build is not in the site."""
    root = Path(app.srcdir)
    app.config.course_site_state = site_state(root, read_settings(root))


def copy_notebooks(app: Sphinx, exception: Exception | None) -> None:
    """Write the notebooks that the buttons offer into the site; what is missing is an error of the build."""
    if exception or app.builder.name != "html":
        return
    root, site = Path(app.srcdir), Path(app.outdir)
    copies = []
    try:
        copies += [(path, site / "chapters" / path.name) for path in build_chapters(root)]
    except UserError as error:
        logger.error("%s", error)
    for page, lab in sorted((page, data["lab"]) for page, data in app.env.metadata.items() if "lab" in data):
        if released_lab(root, lab).is_file():
            copies.append((released_lab(root, lab), site / "labs" / lab / f"{lab}.ipynb"))
        else:
            logger.error(
                "%s: lab %r is not released, so its buttons lead nowhere: run `make labs` (or `mlsys release`) and "
                "build the book again",
                page,
                lab,
            )
    for source, target in copies:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    if app.keep_going and app._warncount:  # the build fails, so `mlsys publish` must not take what it leaves
        (site / STAMP).unlink(missing_ok=True)
    else:
        stamp_site(site, app.config.course_site_state)
    if PLACEHOLDER in read_settings(root).repository:
        logger.info("repository.url in _config.yml is still the placeholder: Colab links lead nowhere yet")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_config_value("course_site_state", "", "")
    app.connect("builder-inited", remember_state)
    app.connect("html-page-context", add_buttons, priority=900)  # after the theme has made its list of buttons
    app.connect("build-finished", copy_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
