"""What a reader has read and answered, kept in the browser: scripts, and the line that shows and erases it.

Nothing leaves the browser, and without JavaScript nothing of it is shown.
"""

from html import escape
from typing import Any

from course_languages import page_language
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

LINE = """<div class="course-progress" hidden>
<p role="status"></p>
<button type="button">{erase}</button>
</div>"""


class Progress(SphinxDirective):
    """A line with the reader's progress and the button that erases it; `progress.js` shows it."""

    def run(self) -> list[nodes.Node]:
        """Build the line."""
        words = page_language(self.env, self.env.docname)["progress"]
        return [nodes.raw("", LINE.format(erase=escape(words["erase"])), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx; the store comes before the scripts that use it."""
    app.setup_extension("course_languages")  # it gives the scripts their words
    app.add_directive("progress", Progress)
    app.add_css_file("progress.css")
    app.add_js_file("store.js", priority=400, loading_method="defer")
    app.add_js_file("progress.js", priority=600, loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
