"""What a page of the package describes: a room, and the modules and objects that its docstring names."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from mlsys.errors import InvalidValue

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))
course_api = pytest.importorskip("course_api", reason="sphinx is not installed: mlsys[book] brings it")


def parts_with(docstring: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...]]]:
    import mlsys.traffic

    monkeypatch.setattr(mlsys.traffic, "__doc__", docstring)
    return [(part.module, part.names) for part in course_api.parts_of("mlsys.traffic")]


def test_a_room_is_followed_by_the_modules_that_its_docstring_names(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "See `mlsys.traffic.overlap` and `mlsys.traffic.coalescing`, and elsewhere `mlsys.hardware.links`."
    assert parts_with(text, monkeypatch) == [
        ("mlsys.traffic", ()),
        ("mlsys.traffic.overlap", ()),
        ("mlsys.traffic.coalescing", ()),
    ]


def test_named_objects_stand_under_their_module_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "`mlsys.traffic.overlap.Event` and `mlsys.traffic.overlap.pipeline`"
    assert parts_with(text, monkeypatch)[1:] == [("mlsys.traffic.overlap", ("Event", "pipeline"))]


def test_an_object_of_the_room_itself_leaves_the_room_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts_with("`mlsys.traffic.best_schedule` and others", monkeypatch) == [("mlsys.traffic", ())]


@pytest.mark.parametrize("name", ["mlsys.traffic.overlop", "mlsys.traffic.overlap.pipes", "mlsys.traffic.a.b"])
def test_a_name_that_is_not_there_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match=f"mlsys.traffic names {name}, which is not there"):
        parts_with(f"See `{name}`.", monkeypatch)


def test_a_modules_own_names_are_its_functions_and_classes() -> None:
    module = ModuleType("made_up")
    exec("import math\nfrom pathlib import Path\nA = 1\ndef f(): ...\nclass C: ...\ndef _g(): ...", module.__dict__)
    assert course_api.public_names(module) == ["f", "C"]
