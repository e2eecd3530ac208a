"""Pages made from data and docstrings hold what the data and the package hold, counted from their files."""

import ast
import html
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from helpers import pages

import mlsys
from mlsys.core.package import ROOMS_OF_INSTRUCTORS

ROOT = Path(__file__).parents[2]
DATA = ROOT / "mlsys" / "data"
CHIPS = sorted(path.stem for path in (DATA / "chips").glob("*.toml"))
ROOMS = re.compile(r"^```\{api-rooms\} ([^`]+)```$", re.M)
API_PAGES = {
    path.stem: rooms[1].split() for path in pages.sources() if (rooms := ROOMS.search(path.read_text(encoding="utf-8")))
}
"""By page of the package: the rooms and modules that it describes."""
INSTRUCTORS = ("bench", "cli", *(room.removeprefix("mlsys.") for room in ROOMS_OF_INSTRUCTORS))


def text_of(site: Path, page: str) -> str:
    """The page's text, without markup."""
    found = pages.built(site, page).read_text(encoding="utf-8")
    return html.unescape(re.sub(r"<[^>]+>", "", found))


def section(site: Path, identifier: str) -> str:
    """The text between a section's beginning and the next."""
    found = pages.built(site, "hardware-reference").read_text(encoding="utf-8")
    start = found.index(f'id="{identifier}"')
    rest = found[start:]
    words = html.unescape(re.sub(r"<[^>]+>", " ", rest[: rest.index("</section>")])).split()
    return " ".join(words).replace("’", "'")  # the page has typographic apostrophes


@pytest.mark.parametrize("chip", CHIPS)
def test_every_number_of_a_chip_stands_there_with_its_source(chip: str, site: Path) -> None:
    data = tomllib.loads((DATA / "chips" / f"{chip}.toml").read_text(encoding="utf-8"))
    shown = section(site, f"chip-{chip}")
    entries = [*data.get("peak", []), *(entry for entry in data.values() if isinstance(entry, dict))]
    assert entries
    for entry in entries:
        value = str(entry["value"]) if entry.get("condition") == "year" else f"{entry['value']:,}"
        assert value.removesuffix(".0") in shown, entry
        assert " ".join(entry["where"].split()) in shown, entry
        assert " ".join(entry.get("condition", "").split()) in shown, entry


def test_every_link_is_listed_with_one_direction(site: Path) -> None:
    page = text_of(site, "hardware-reference")
    links = tomllib.loads((DATA / "links.toml").read_text(encoding="utf-8"))
    assert links
    assert [link["name"] for link in links.values() if link["name"] not in page] == []


def test_every_basis_of_energy_is_listed(site: Path) -> None:
    page = text_of(site, "hardware-reference")
    bases = tomllib.loads((DATA / "energies.toml").read_text(encoding="utf-8"))
    assert [basis["title"] for basis in bases.values() if basis["title"] not in page] == []


def test_every_published_size_is_listed_with_its_year(site: Path) -> None:
    page = text_of(site, "hardware-reference")
    sizes = tomllib.loads((DATA / "model_sizes.toml").read_text(encoding="utf-8"))
    assert sizes
    for size in sizes.values():
        assert f"{size['name']}, {size['announced']['value']}" in page
        assert f"{size['params']['value']:,.0f}" in page


def test_every_training_run_is_listed_with_its_year(site: Path) -> None:
    page = text_of(site, "hardware-reference")
    runs = tomllib.loads((DATA / "history.toml").read_text(encoding="utf-8"))["training_runs"]
    assert runs
    assert [run["name"] for run in runs.values() if f"{run['name']}, {run['announced']['value']}" not in page] == []


def test_every_public_room_has_one_page() -> None:
    listed = [room for rooms in API_PAGES.values() for room in rooms]
    public = {f"mlsys.{name}" for name in mlsys.__all__ if inspect.ismodule(getattr(mlsys, name))}
    assert len(public) > 15
    assert public - set(listed) == set(), (
        "add it to the {api-rooms} of the page where it belongs, or give it a page and list that in _toc.yml"
    )
    assert sorted(set(listed)) == sorted(listed), "a room stands on one page"


def test_pages_of_the_package_are_in_the_table_of_contents_and_in_the_overview(site: Path) -> None:
    toc = re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))
    in_order = [file.rpartition("/")[2] for file in toc if file.rpartition("/")[2] in API_PAGES]
    assert sorted(in_order) == sorted(API_PAGES)
    article = pages.built(site, "api").read_text(encoding="utf-8").split("<article", 1)[1].split("</article>")[0]
    rows = re.findall(r'<a class="reference internal" href="([\w-]+)\.html">', article[article.index("<tbody>") :])
    assert rows[: len(in_order)] == in_order


def test_rooms_of_instructors_are_not_on_the_site(site: Path) -> None:
    listed = {room.split(".")[1] for rooms in API_PAGES.values() for room in rooms}
    assert listed.isdisjoint(INSTRUCTORS)
    described = {name for page in API_PAGES for name in described_on(site, page)}
    assert [name for name in sorted(described) if name.split(".")[1] in INSTRUCTORS] == []


@pytest.mark.parametrize("page", API_PAGES)
def test_public_functions_and_classes_of_a_module_are_described(page: str, site: Path) -> None:
    described = described_on(site, page)
    for room in API_PAGES[page]:
        path = file_of(room)
        missing = [
            name
            for name in defined(path)
            if room != "mlsys.constants"
            and not any(full.startswith(f"{room}.") and full.endswith(f".{name}") for full in described)
        ]
        assert missing == [], room
        built = pages.built(site, page).read_text(encoding="utf-8")
        assert f'id="module-{room}"' in built


@pytest.mark.parametrize("page", API_PAGES)
def test_modules_that_a_rooms_docstring_names_are_described(page: str, site: Path) -> None:
    described = described_on(site, page)
    for room in API_PAGES[page]:
        docstring = ast.get_docstring(ast.parse(file_of(room).read_text(encoding="utf-8"))) or ""
        for named in re.findall(rf"`({re.escape(room)}\.[\w.]+)`", docstring):
            path = file_of(named)
            wanted = [f"{named}.{name}" for name in defined(path)] if path.is_file() else [named]
            assert [name for name in wanted if name not in described] == []


def test_every_module_that_chapters_and_labs_import_is_on_a_page(site: Path) -> None:
    built = "".join(pages.built(site, page).read_text(encoding="utf-8") for page in API_PAGES)
    sources = [*pages.sources(), *(ROOT / "labs").glob("*/lab.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    text = re.sub(r'^# %% mlsys=.*"role": "variants".*\n(?:(?!# %%).*\n)*', "", text, flags=re.M)  # not for students
    imported = set(re.findall(r"^from (mlsys\.[\w.]+) import ", text, re.M))
    assert len(imported) > 10
    assert [module for module in sorted(imported) if f'id="module-{module}"' not in built] == []


def described_on(site: Path, page: str) -> set[str]:
    """Full names of the objects that a built page describes."""
    built = pages.built(site, page).read_text(encoding="utf-8")
    return set(re.findall(r'id="(mlsys[\w.]+)"', built))


def file_of(module: str) -> Path:
    """The file of a module, read from its name; it need not exist."""
    folder = ROOT / module.replace(".", "/")
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def defined(path: Path) -> list[str]:
    """What a module offers, read from its file: its `__all__`, or its own public functions and classes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return list(ast.literal_eval(node.value))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


@pytest.mark.parametrize("page", API_PAGES)
def test_nothing_shows_that_only_python_writes(page: str, site: Path) -> None:
    text = text_of(site, page)
    assert re.findall(r"<factory>|~mlsys|~[a-z]+\.[a-z]+|<[\w.]+ object|object at 0x", text) == []


def test_every_object_is_described_once(site: Path) -> None:
    found: dict[tuple[str, str], list[str]] = {}
    for page in API_PAGES:
        built = pages.built(site, page).read_text(encoding="utf-8")
        for full in re.findall(r'<dt class="sig[^"]*" id="(mlsys[\w.]+)"', built):
            module, _, name = full.rpartition(".")
            if not module.rpartition(".")[2][0].isupper():  # no member of a class
                defined_in = getattr(getattr(importlib.import_module(module), name), "__module__", module)
                found.setdefault((defined_in, name), []).append(full)
    assert len(found) > 100
    assert [names for names in found.values() if len(names) > 1] == []


def test_quantities_have_names_of_the_field_not_keys(site: Path) -> None:
    page = pages.built(site, "hardware-reference").read_text(encoding="utf-8")
    names = re.findall(r"<tr class=\"row-(?:odd|even)\"><td><p>(.*?)</p></td>", page)
    assert len(names) > 300
    assert [name for name in names if re.search(r"_|^(tdp|hbm|sram|dram|l[123]|mac|(fp|bf|tf|int)\d)\b", name)] == []
    assert "design power (TDP)" in names


def test_examples_are_shown(site: Path) -> None:
    page = text_of(site, "api-hardware")
    assert '>>> h100 = Hardware.get("h100-sxm")' in page
    assert "989.4" in page


def test_the_pages_of_the_package_need_no_torch(site: Path) -> None:
    built = "".join(pages.built(site, page).read_text(encoding="utf-8") for page in API_PAGES)
    modules = sorted(set(re.findall(r'id="module-(mlsys[\w.]+)"', built)))
    modules = [name for name in modules if not name.startswith("mlsys.compiler")]  # it reads torch's modules
    assert len(modules) > 30
    code = f"import sys; import {', '.join(modules)}; sys.exit('torch' in sys.modules or 'triton' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.browser
@pytest.mark.parametrize(
    ("message", "heading"),
    [
        ("ValueError: arange's range must be a power of 2", "arange's range must be a power of 2"),
        (
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 294912, Hardware limit: "
            "232448. Reducing block sizes or `num_stages` may help.",
            "out of resource: shared memory",
        ),
        ("RuntimeError: 0 active drivers ([]). There should only be one.", "0 active drivers"),
    ],
)
def test_a_pasted_message_finds_its_entry(message: str, heading: str, browser: Any, address: str, site: Path) -> None:
    page = browser.new_page()
    page.goto(f"{address}/{pages.address_of(site, 'stuck')}", wait_until="load")
    page.get_by_label("Your message").fill(message)
    headings = page.locator("main h3:visible").all_inner_texts()
    assert any(heading in found for found in headings)
    assert len(headings) <= 4
    page.get_by_label("Your message").fill("qwertyuiop asdfghjkl")
    assert page.locator("main h3:visible").count() == 0
    assert "No entry fits" in page.locator("#stuck-search [role=status]").inner_text()
    page.close()
