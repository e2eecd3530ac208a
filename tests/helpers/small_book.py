"""A book of a few pages, built with extensions of this repository, for tests of what a page shows or is refused for."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONFIG = """
title: AI Hardware Acceleration
author: the course authors
copyright: "2026"
html: {{use_issues_button: false, use_repository_button: false}}
execute: {{execute_notebooks: "off"}}
only_build_toc_files: true
parse: {{myst_enable_extensions: [colon_fence, dollarmath]}}
sphinx:
  local_extensions: {{{local}}}
  config:
    extensions: [myst_nb, jupyter_book, sphinx_comments, sphinx_design, sphinx_external_toc, sphinx_book_theme, {names}]
    html_static_path: [book/_static]
    html_css_files: [course.css]
    language: en
    html_context: {{default_mode: auto}}
    html_theme_options: {{use_download_button: false, use_fullscreen_button: false, search_bar_text: Search the course}}
"""


def build(root: Path, pages: dict[str, str], extensions: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Build a book of the given texts by their page's name, the first as its root, with warnings as errors."""
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in ("_ext", "_figures", "_interactive", "_languages", "_static"):
        shutil.copytree(ROOT / "book" / folder, root / "book" / folder, ignore=ignore, dirs_exist_ok=True)
    local = ", ".join(f"{name}: book/_ext" for name in extensions)
    (root / "_config.yml").write_text(CONFIG.format(local=local, names=", ".join(extensions)))
    first, *others = pages
    contents = f"format: jb-book\nroot: book/{first}\n" + ("chapters:\n" if others else "")
    (root / "_toc.yml").write_text(contents + "".join(f"  - file: book/{name}\n" for name in others))
    for name, text in pages.items():
        page = root / "book" / f"{name}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8")
    tools = Path(sys.executable).parent
    environment = {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "HOME": str(root)}
    command = [str(tools / "jupyter-book"), "build", ".", "--warningiserror", "--nitpick", "--keep-going"]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
