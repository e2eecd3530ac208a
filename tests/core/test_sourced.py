import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlsys import Hardware
from mlsys.core.sourced import Sourced, UnsourcedNumber, data_folder, load_toml, sourced, sources
from mlsys.errors import UnknownName
from mlsys.units import ureg

COMPLETE = {"value": 65, "unit": "TFLOP/s", "source": "nvidia-t4-page", "where": "table of specifications"}
DATA_FILES = ("links.toml", "memory_levels.toml", "energies.toml", "model_sizes.toml", "prices.toml", "carbon.toml")
CHIP_FILES = tuple(sorted(f"chips/{file.name}" for file in data_folder().joinpath("chips").iterdir()))


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


def test_data_files_are_valid_toml_in_ascii():
    for file in (*DATA_FILES, *CHIP_FILES, "sources.toml"):
        tomllib.loads(data_folder().joinpath(file).read_text(encoding="ascii"))
