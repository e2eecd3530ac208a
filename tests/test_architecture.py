"""The architecture page and the folders that it describes say the same."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
DRAWING = runpy.run_path(str(ROOT / "scripts" / "architecture.py"))
FOLDERS = [folder.parent for folder in (ROOT / "mlsys").rglob("__init__.py")]
HOPS = re.findall(r"`((?:mlsys|book)/[\w/.]+\.py):([\w.]+)`", PAGE)


@pytest.mark.parametrize(("name", "draw"), [("layers", "draw_layers"), ("trust", "draw_trust")])
def test_the_figures_are_those_that_the_script_draws(name, draw):
    assert (ROOT / "docs" / f"{name}.svg").read_text(encoding="utf-8") == DRAWING[draw](), "run scripts/architecture.py"


def test_every_room_stands_on_a_floor_and_has_its_words():
    found = (ROOT / "mlsys").iterdir()
    rooms = {path.stem for path in found if path.suffix == ".py" or (path / "__init__.py").is_file()}
    on_floors = [room for floor in DRAWING["layers"]() for room in floor]
    assert sorted(on_floors) == sorted(rooms - {"__init__"})
    assert set(DRAWING["ROOMS"]) == set(on_floors)
    planned = {room for kind in ("PLANNED", "PLANNED_FLOORS") for rooms in DRAWING[kind].values() for room in rooms}
    assert not planned & rooms


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_folder_has_more_than_twelve_modules(folder):
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    if folder.name != "mlsys":  # the root holds single modules, which other rooms have as folders
        assert len(modules) <= 12


def defined_in(path: Path) -> set[str]:
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


@pytest.mark.parametrize(("file", "function"), HOPS)
def test_every_hop_of_a_journey_is_there(file, function):
    assert function in defined_in(ROOT / file)


def test_each_journey_has_about_seven_hops():
    journeys = PAGE.partition("## Three journeys")[2].partition("\n## ")[0].split("\n### ")[1:]
    assert [6 <= len(re.findall(r"^\d+\. ", journey, re.MULTILINE)) <= 8 for journey in journeys] == [True] * 3


def test_every_place_that_the_page_names_is_there():
    places = re.findall(r"`((?:mlsys|labs|book)/[\w/.-]*)`", PAGE)
    assert len(places) > 15
    assert [place for place in places if not (ROOT / place).exists()] == []
    rows = PAGE.partition("## I want to change")[2].splitlines()
    assert len([row for row in rows if row.startswith("| ") and "`" in row]) >= 15
