"""The concept map: which chapter needs which, drawn from `book/concepts.toml` by `{concept-map}`."""

import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from mlsys import viz
from mlsys.course.pages.contents import CONTENTS, book_pages
from mlsys.course.pages.notebooks import NO_CHAPTER, is_chapter

logger = logging.getLogger(__name__)

DATA = "book/concepts.toml"

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
        draw(concepts, titles(root, list(concepts)), picture)
        image = nodes.image(uri=f"/{picture.relative_to(root)}", alt=described(concepts, titles(root, list(concepts))))
        caption = nodes.caption(
            "",
            "An arrow leads from a chapter to one that builds on it. A chapter needs every chapter on the way "
            "to it, from the top. Chapters at the same height do not need each other: take them in any order.",
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
                about += [nodes.Text(" and " if place else ""), self.link(need)]
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
        if page.is_file() and is_chapter(page) and name not in NO_CHAPTER and not name.endswith("-he")
    ]


def titles(root: Path, names: list[str]) -> dict[str, str]:
    """The first heading of each page."""
    found = {}
    pages = book_pages(root)
    for name in names:
        lines = pages[name].read_text(encoding="utf-8").splitlines()
        found[name] = next(line.removeprefix("# ") for line in lines if line.startswith("# "))
    return found


def depths(concepts: Concepts) -> dict[str, int]:
    """How many chapters stand one upon the other below each."""
    found: dict[str, int] = {}
    for name, entry in concepts.items():
        found[name] = 1 + max((found[need] for need in entry["needs"]), default=-1)
    return found


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
    return f"Boxes for the chapters, joined by arrows. {'; '.join(parts)}."


def draw(concepts: Concepts, names: dict[str, str], target: Path) -> None:
    """Boxes in rows by depth, and an arrow from each chapter to those that need it."""
    level = depths(concepts)
    rows = [[name for name in concepts if level[name] == depth] for depth in range(max(level.values()) + 1)]
    fig, ax, colors, plt = viz.setup_plot(figsize=(4.0, 0.4 + 1.15 * len(rows)))
    places = {
        name: ((place + 0.5) / len(row), -depth) for depth, row in enumerate(rows) for place, name in enumerate(row)
    }
    box = {"boxstyle": "round,pad=0.5", "facecolor": colors["BlueL"], "edgecolor": colors["BlueLine"]}
    drawn = {
        name: ax.text(*place, names[name], ha="center", va="center", bbox=box, zorder=3)
        for name, place in places.items()
    }
    ax.set(xlim=(0, 1), ylim=(0.5 - len(rows), 0.5))
    ax.axis("off")
    for name, needs in arrows(concepts).items():
        for need in needs:
            bend = 0.0 if level[name] == level[need] + 1 else 0.35
            ax.annotate(
                "",
                xy=places[name],
                xytext=places[need],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": colors["primary"],
                    "patchA": drawn[need].get_bbox_patch(),
                    "patchB": drawn[name].get_bbox_patch(),
                    "connectionstyle": f"arc3,rad={bend}",
                    "shrinkA": 2,
                    "shrinkB": 2,
                },
            )
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
