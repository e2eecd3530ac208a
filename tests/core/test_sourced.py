import copy
import tomllib
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware
from mlsys.core import sourced as module
from mlsys.core.sourced import (
    BrokenData,
    Catalog,
    Entry,
    Number,
    Sourced,
    UnsourcedNumber,
    data_folder,
    decode,
    load_toml,
    sources,
)
from mlsys.errors import UnknownName
from mlsys.units import ureg

COMPLETE = {"value": 65, "unit": "TFLOP/s", "source": "nvidia-t4-page", "where": "table of specifications"}
DATA_FILES = (
    "fabrics.toml",
    "links.toml",
    "memory_levels.toml",
    "energies.toml",
    "growth.toml",
    "history.toml",
    "model_sizes.toml",
    "models.toml",
    "prices.toml",
    "carbon.toml",
)
CHIP_FILES = tuple(sorted(f"chips/{file.name}" for file in data_folder().joinpath("chips").iterdir()))


def sourced(entry, place):
    """The number of a table; other keys, such as a peak's precision, are left out."""
    return decode({key: entry[key] for key in Number.__struct_fields__ if key in entry}, Number, place).sourced


def entries(node, path=""):
    """Every table of a data file that holds a number, with its place."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from entries(item, f"{path}[{index}]")
    elif isinstance(node, dict):
        if "value" in node:
            yield path, node
        for key, item in node.items():
            yield from entries(item, f"{path}.{key}")


@given(st.sets(st.sampled_from(sorted(COMPLETE)), min_size=1))
def test_a_number_that_lacks_value_unit_source_or_place_is_refused(missing):
    entry = {key: value for key, value in COMPLETE.items() if key not in missing}
    with pytest.raises(UnsourcedNumber) as error:
        sourced(entry, "chips/t4.toml peak")
    assert "chips/t4.toml peak" in str(error.value)
    assert all(f"no {key}" in str(error.value) for key in missing)


def test_an_empty_source_is_no_source():
    with pytest.raises(UnsourcedNumber, match="no source"):
        sourced({**COMPLETE, "source": ""}, "somewhere")


def test_zero_is_a_number():
    assert sourced({**COMPLETE, "value": 0}, "somewhere").value == ureg("0 TFLOP/s")


def test_a_source_that_is_not_listed_is_refused():
    with pytest.raises(UnknownName, match="did you mean 'nvidia-t4-page'"):
        sourced({**COMPLETE, "source": "nvidia-t4-pag"}, "somewhere")


@pytest.mark.parametrize("file", [*DATA_FILES, *CHIP_FILES])
def test_every_number_of_a_data_file_has_a_source(file):
    found = list(entries(load_toml(file)))
    assert found
    for place, entry in found:
        assert isinstance(sourced(entry, f"{file} {place}"), Sourced)


@pytest.mark.parametrize("file", CHIP_FILES)
def test_every_field_of_a_chip_is_a_sourced_table_or_a_name(file):
    text = {key for key, value in load_toml(file).items() if not isinstance(value, dict | list)}
    assert text <= {"name", "vendor", "same_chip_as"}


@pytest.mark.parametrize("file", CHIP_FILES)
def test_peaks_name_an_engine_and_no_peak_is_given_twice(file):
    peaks = load_toml(file).get("peak", [])
    keys = [(peak["precision"], peak["engine"], peak.get("sparse", False)) for peak in peaks]
    assert len(set(keys)) == len(keys)
    assert {engine for _, engine, _ in keys} <= {"tensor", "vector"}


def test_every_source_says_who_what_and_when():
    for source in sources().values():
        assert source.title
        assert source.publisher
        assert source.date


def test_citation_names_document_and_place_and_the_copy_that_was_read():
    citation = Hardware.get("l4").field("tdp").citation
    assert citation.startswith(
        "NVIDIA, NVIDIA L4 Tensor Core GPU Product Brief, PB-11316-001_v01 (2023-03), p. 2, Table 1"
    )
    assert "read in" in citation
    assert "read in" not in Hardware.get("v100-sxm2").field("tdp").citation


TABLES = ("operating_points.toml", "phones.toml", "clocked_kernels.toml", "mapping_tools.toml", "socs.toml")
"""Files whose rows share one source, and the one of assumptions; tests/soc and tests/dataflow read them."""


def test_data_files_are_valid_toml_in_ascii():
    for file in (*DATA_FILES, *TABLES, *CHIP_FILES, "sources.toml"):
        tomllib.loads(data_folder().joinpath(file).read_text(encoding="ascii"))


class Socket(Number, frozen=True, kw_only=True):
    kind: Literal["round", "flat"]


class Board(Entry, frozen=True, kw_only=True):
    name: str
    sockets: tuple[Socket, ...] = ()
    spare: Number | None = None
    rates: dict[str, Number]
    sizes: tuple[tuple[int, int], ...] = ()


BOARD = {
    "name": "A",
    "sockets": [{**COMPLETE, "kind": "round"}, {**COMPLETE, "kind": "flat"}],
    "spare": dict(COMPLETE),
    "rates": {"slow": dict(COMPLETE), "fast": dict(COMPLETE)},
    "sizes": [[1, 2], [3, 4]],
}


@pytest.mark.parametrize(
    ("path", "value", "error", "message"),
    [
        (("name",), 5, BrokenData, "boards.toml a name is 5: write text in quotes"),
        (("name",), None, BrokenData, "boards.toml a: no name; add it"),
        (("nme",), "A", BrokenData, "boards.toml a: unknown field 'nme': did you mean 'name'?"),
        (("rates", "fast", "value"), "65", BrokenData, "a rates fast value is '65': write a whole number or a number"),
        (("rates", "fast", "value"), True, BrokenData, "a rates fast value is True: write a whole number or a number"),
        (("rates", "fast"), 65, BrokenData, "boards.toml a rates fast is 65: write a table"),
        (("rates", "fast", "where"), None, UnsourcedNumber, "boards.toml a rates fast: no where; every number states"),
        (
            ("rates", "fast", "sources"),
            "x",
            BrokenData,
            "a rates fast: unknown field 'sources': did you mean 'source'",
        ),
        (("spare", "unit"), "TFLOPs/fortnite", BrokenData, "a spare: unit 'TFLOPs/fortnite' is unknown"),
        (("spare", "source"), "nvidia-t4-pag", UnknownName, "a spare: unknown source .* did you mean 'nvidia-t4-page'"),
        (("spare", "condition"), 3, BrokenData, "a spare condition is 3: write text in quotes"),
        (("sockets", 1, "kind"), "flta", BrokenData, "a sockets 1 kind is 'flta': write 'round' or 'flat'"),
        (("sockets", 1, "unit"), None, UnsourcedNumber, "a sockets 1: no unit; every number states"),
        (("sizes", 1), [3], BrokenData, r"a sizes 1 is \[3\]: write a list of length 2"),
        (("sizes", 1, 0), 3.5, BrokenData, "a sizes 1 0 is 3.5: write a whole number"),
    ],
)
def test_a_broken_entry_is_named_with_file_field_value_and_remedy(path, value, error, message):
    data = {"a": copy.deepcopy(BOARD), "b": copy.deepcopy(BOARD)}
    *parents, last = path
    table = data["a"]
    for key in parents:
        table = table[key]
    if value is None:
        del table[last]
    else:
        table[last] = value
    with pytest.raises(error, match=message):
        decode(data, dict[str, Board], "boards.toml")


def test_a_file_that_is_no_toml_is_named_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "links.toml").write_text('[a]\nname = "A"\nname = \n')
    monkeypatch.setattr(module, "data_folder", lambda: tmp_path)
    with pytest.raises(BrokenData, match="links.toml is no valid TOML: .*line 3.*; mend that line"):
        load_toml("links.toml")


def test_decoding_leaves_the_data_as_it_was_and_integers_integers():
    data = copy.deepcopy(BOARD)
    board = decode(data, Board, "boards.toml a")
    assert data == BOARD
    assert type(board.rates["slow"].value) is int
    assert board.sockets[1].sourced == sourced(COMPLETE, "somewhere")


def test_a_catalog_reads_when_asked_once_and_in_the_order_of_the_file():
    read, made = [], []

    def entries():
        read.append("file")
        return {"pear": 2, "fig": 3}

    def make(name, count):
        made.append(name)
        return name * count

    catalog = Catalog("fruit", entries, make)
    assert not read
    assert catalog.get("fig") is catalog.get("fig") == "figfigfig"
    assert (read, made) == (["file"], ["fig"])
    assert catalog.names() == ("pear", "fig")
    assert catalog.all() == ("pearpear", "figfigfig")
    assert catalog.by_name() == {"pear": "pearpear", "fig": "figfigfig"}
    assert (read, made) == (["file"], ["fig", "pear"])
    with pytest.raises(UnknownName, match="unknown fruit 'peer': did you mean 'pear'. Known: fig, pear"):
        catalog.get("peer")


def test_every_table_of_a_chip_reaches_the_reader():
    for file in CHIP_FILES:
        chip = Hardware.get(file.removeprefix("chips/").removesuffix(".toml"))
        for name, entry in load_toml(file).items():
            if isinstance(entry, dict):
                assert chip.field(name).value == ureg.Quantity(entry["value"], entry["unit"]), (file, name)
