"""The concept map: which chapter needs which, drawn from `book/concepts.toml` by `{concept-map}`."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from mlsys import viz
from mlsys.course.pages.contents import CONTENTS, book_pages
from mlsys.course.pages.languages import ENGLISH, language_of
from mlsys.course.pages.notebooks import NO_CHAPTER, is_chapter

logger = logging.getLogger(__name__)

DATA = "book/concepts.toml"
TONES = ("BlueLine", "OrangeLine", "GreenLine", "VioletLine", "RedLine", "BrownLine")
"""Colors of the parts, in turn."""

Concepts = dict[str, dict[str, Any]]


class ConceptMap(SphinxDirective):
    """The picture and, below it, the same as a list of links."""

    def run(self) -> list[nodes.Node]:
        """Draw the map of the chapters that the table of contents has."""
        root = Path(self.env.srcdir)
        self.env.note_dependency(str(root / DATA))
        self.env.note_dependency(str(root / CONTENTS))
        try:
            concepts = read_concepts(root)
        except ValueError as error:
            logger.error("%s", error, location=(self.env.docname, self.lineno))
            return []
        picture = root / "_build" / "pictures" / "concept-map.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        draw(concepts, titles(root, list(concepts)), parts(root), picture)
        image = nodes.image(uri=f"/{picture.relative_to(root)}", alt=described(concepts, titles(root, list(concepts))))
        caption = nodes.caption(
            "",
            "An arc leads from a chapter down to one that builds on it, in the color of the part where it begins (the "
            "last two parts repeat the colors of the first two). A chapter needs every chapter from which arcs lead to "
            "it, and what those need. What no arcs join can be read in any order.",
        )
        return [
            nodes.figure("", image, caption, ids=["fig-concept-map"], classes=["course-drawn"]),
            self.listing(concepts),
        ]

    def listing(self, concepts: Concepts) -> nodes.bullet_list:
        """The same as text: each chapter with what it gives and what it needs."""
        found = nodes.bullet_list(classes=["course-map"])
        for name, entry in concepts.items():
            about = nodes.paragraph("", "", self.link(name), nodes.Text(f": {entry['gives']}. "))
            about += nodes.Text("Needs " if entry["needs"] else "Needs none of the others")
            for place, need in enumerate(entry["needs"]):
                if place:
                    about += nodes.Text(" and " if need == entry["needs"][-1] else ", ")
                about += self.link(need)
            about += nodes.Text(".")
            found += nodes.list_item("", about)
        return found

    def link(self, name: str) -> addnodes.pending_xref:
        """A link to a chapter that shows its title."""
        page = book_pages(Path(self.env.srcdir))[name]
        return addnodes.pending_xref(
            "",
            nodes.inline(),
            refdomain="std",
            reftype="doc",
            reftarget=f"/{page.relative_to(self.env.srcdir).with_suffix('')}",
            refexplicit=False,
            refwarn=True,
        )


def read_concepts(root: Path) -> Concepts:
    """The chapters of the book in their order, with what each needs.

    Raises:
        ValueError: a chapter without an entry, an entry without a chapter, or a need that comes later.
    """
    concepts: Concepts = tomllib.loads((root / DATA).read_text(encoding="utf-8"))
    pages = chapters(root)
    found: Concepts = {}
    for page in pages:
        if page not in concepts:
            raise ValueError(f"{DATA} does not say what chapter {page!r} needs: add [{page}] with needs and gives")
        late = [need for need in concepts[page]["needs"] if need not in found]
        if late:
            raise ValueError(
                f"{DATA}: chapter {page!r} needs {', '.join(late)}, which does not come before it in _toc.yml: correct "
                "the name, or change the order"
            )
        found[page] = concepts[page]
    gone = [name for name in concepts if name not in found]
    if gone:
        raise ValueError(
            f"{DATA} has {', '.join(gone)}, which _toc.yml does not list: add the page there, or take it out"
        )
    return found


def chapters(root: Path) -> list[str]:
    """Names of the chapters in the order of the table of contents; translations are not counted again."""
    return [
        name
        for name, page in book_pages(root).items()
        if page.is_file() and is_chapter(page) and name not in NO_CHAPTER and language_of(page) == ENGLISH
    ]


def titles(root: Path, names: list[str]) -> dict[str, str]:
    """The first heading of each page."""
    found = {}
    pages = book_pages(root)
    for name in names:
        lines = pages[name].read_text(encoding="utf-8").splitlines()
        found[name] = next(line.removeprefix("# ") for line in lines if line.startswith("# "))
    return found


def parts(root: Path) -> dict[str, str]:
    """For each page, the caption of its part of the table of contents; empty where a part has none."""
    contents = yaml.safe_load((root / CONTENTS).read_text(encoding="utf-8"))
    return {
        entry["file"].rpartition("/")[2]: part.get("caption", "")
        for part in contents["parts"]
        for entry in part["chapters"]
    }


def arrows(concepts: Concepts) -> dict[str, list[str]]:
    """For each chapter the needs that do not follow from its other needs: the arrows of the picture."""
    above: dict[str, set[str]] = {}
    for name, entry in concepts.items():
        above[name] = {*entry["needs"]}.union(*(above[need] for need in entry["needs"]))
    return {
        name: [need for need in entry["needs"] if not any(need in above[other] for other in entry["needs"])]
        for name, entry in concepts.items()
    }


def described(concepts: Concepts, names: dict[str, str]) -> str:
    """The map in words."""
    parts = [
        f"{names[name]} builds on {' and '.join(names[need] for need in needs)}"
        if needs
        else f"{names[name]} stands at the top and needs no other"
        for name, needs in arrows(concepts).items()
    ]
    return f"The chapters one below the other, joined by arcs. {'; '.join(parts)}."


def draw(concepts: Concepts, names: dict[str, str], part_of: dict[str, str], target: Path) -> None:
    """Draw the chapters one below the other by part, with an arc from each chapter down to those that build on it."""
    rows: list[tuple[str, str]] = []  # a part's caption and an empty name, or a part's caption and a chapter's name
    for name in concepts:
        if not rows or rows[-1][0] != part_of[name]:
            rows.append((part_of[name], ""))
        rows.append((part_of[name], name))
    order = list(dict.fromkeys(part for part, _ in rows))
    fig, ax, colors, plt = viz.setup_plot(figsize=(4.6, 0.235 * len(rows)))
    tones = {part: colors[TONES[place % len(TONES)]] for place, part in enumerate(order)}
    places = {}
    for place, (part, name) in enumerate(rows):
        if name:
            places[name] = place
            ax.plot(0, place, "o", color=tones[part], markersize=5, zorder=3)
            ax.text(0.12, place, names[name], va="center", fontsize=9)
        else:
            ax.text(0, place + 0.1, part, va="center", fontsize=9, weight="bold", color=tones[part])
    for name, needs in arrows(concepts).items():
        for need in needs:
            low, high = places[need], places[name]
            arc = np.linspace(0, np.pi, 60)
            width = 0.2 + 1.75 * ((high - low) / len(rows)) ** 0.6
            across, down = -width * np.sin(arc), (low + high) / 2 - (high - low) / 2 * np.cos(arc)
            ax.plot(across, down, color=tones[part_of[need]], linewidth=1.1, alpha=0.8, zorder=1)
            head = {"arrowstyle": "-|>", "color": tones[part_of[need]], "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", xy=(-0.04, high), xytext=(across[-4], down[-4]), arrowprops=head)
    ax.set(xlim=(-1.75, 2.75), ylim=(len(rows) - 0.4, -0.6))
    ax.axis("off")
    with plt.rc_context({"svg.hashsalt": "concept-map"}):  # the same file at every build
        fig.savefig(target, metadata={"Date": None})
    plt.close(fig)


def read_again(app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """The map shows the titles of other pages, so it is read again when one of them changes."""
    pages = {name for name in env.found_docs if name.endswith("concept-map")}
    return sorted(pages) if added | changed | removed else []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("concept-map", ConceptMap)
    app.connect("env-get-outdated", read_again)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
