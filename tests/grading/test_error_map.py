import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import pytest
import torch

from mlsys.errors import InvalidValue
from mlsys.grading.checks.assertions import assert_close, hidden_values
from mlsys.grading.error_map import MAX_HIDDEN_BLOCKS, ErrorMap
from mlsys.grading.verdicts import Verdict, WrongAnswer


def wrong_at(shape, *places):
    wrong = torch.zeros(shape, dtype=torch.bool)
    for place in places:
        wrong[place] = True
    return wrong


def painted(picture):
    """The blocks that the paths of the picture cover, by class."""
    found = {}
    for path in ElementTree.fromstring(picture.svg()).iter("path"):
        if path.get("class") != "tiles":
            runs = re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", path.get("d"))
            assert "".join(f"M{x} {y}h{n}v1h-{n}z" for x, y, n in runs) == path.get("d")
            found[path.get("class")] = {(int(y), int(x) + i) for x, y, n in runs for i in range(int(n))}
    return found


def test_a_small_matrix_shows_every_wrong_element():
    wrong = torch.rand(37, 21, generator=torch.Generator().manual_seed(1)) < 0.3
    picture = ErrorMap.of(wrong, (16, 16), hidden=False)
    assert painted(picture) == {"wrong": {tuple(place) for place in torch.nonzero(wrong).tolist()}}


@pytest.mark.parametrize("shape", [(16, 2048), (1000, 700), (49, 1), (1, 1)])
def test_a_block_is_some_or_all_wrong_as_its_elements_are(shape):
    wrong = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.5
    wrong[: shape[0] // 2] = True
    picture = ErrorMap.of(wrong, None, hidden=False)
    down, across = picture.block
    assert max(len(picture.rows), len(picture.rows[0])) <= 48
    for y, row in enumerate(picture.rows):
        for x, mark in enumerate(row):
            part = wrong[y * down : (y + 1) * down, x * across : (x + 1) * across]
            assert mark == ("2" if part.all() else "1" if part.any() else "0")
    assert len(picture.svg()) < 20_000


def test_the_last_column_of_tiles_is_named_in_words():
    picture = ErrorMap.of(wrong_at((37, 53), (slice(None), slice(48, None))), (16, 16), hidden=False)
    assert picture.in_words() == (
        "In a result of 37 x 53 in tiles of 16 x 16, the errors are in tile rows 0 to 2 and tile column 3."
    )


def test_words_without_tiles_give_rows_and_columns():
    picture = ErrorMap.of(wrong_at((5, 5), (0, 1), (4, 3)), None, hidden=False)
    assert picture.in_words() == "In a result of 5 x 5, the errors are in rows 0 and 4 and columns 1 and 3."


def test_a_vector_is_one_row():
    picture = ErrorMap.of(wrong_at((100,), slice(64, None)), (16, 16), hidden=False)
    assert (picture.shape, picture.tile, len(picture.rows)) == ((1, 100), None, 1)
    assert "columns 64 to 99" in picture.in_words()


@pytest.mark.parametrize("shape", [(2, 2, 2), (), (0, 4)])
def test_other_shapes_have_no_picture(shape):
    assert ErrorMap.of(torch.ones(shape, dtype=torch.bool), None, hidden=False) is None


@pytest.mark.parametrize(
    ("shape", "tile"), [((70, 70), None), ((70, 70), (16, 32)), ((3000, 8), (16, 16)), ((9,), None)]
)
def test_a_hidden_test_tells_few_bits(shape, tile):
    wrong = torch.rand(shape, generator=torch.Generator().manual_seed(3)) < 0.5
    picture = ErrorMap.of(wrong, tile, hidden=True)
    assert sum(map(len, picture.rows)) <= MAX_HIDDEN_BLOCKS**2
    assert tile is None or all(size % step == 0 for size, step in zip(picture.block, tile, strict=True))


def test_values_do_not_matter():
    right = torch.randn(20, 20)
    pictures = []
    for error in (1.0, 12345.678, float("nan")):
        wrong = right.clone()
        wrong[3:5, 7] += error
        with pytest.raises(WrongAnswer) as found, hidden_values():
            assert_close(wrong, right, tile=(16, 16))
        pictures.append(found.value.picture)
    assert pictures[0] == pictures[1] == pictures[2]
    assert Verdict.of(found.value).picture == pictures[0]


def test_it_comes_back_from_a_record_unchanged():
    picture = ErrorMap.of(wrong_at((37, 53), (36, 52)), (16, 16), hidden=False)
    assert ErrorMap.read(picture.plain()) == picture


@pytest.mark.parametrize(
    "change",
    [
        {"rows": ["0<script>"]},
        {"rows": []},
        {"shape": ["9", 9]},
        {"shape": [9]},
        {"shape": [0, 9]},
        {"block": [1, 1e300]},
        {"tile": ["<b>", 1]},
        {"tile": [2]},
        {"rows": None},
        {"shape": [10**6, 10**6]},
    ],
)
def test_what_is_no_picture_is_refused(change):
    content = ErrorMap.of(wrong_at((9, 9), (1, 1)), (4, 4), hidden=False).plain()
    with pytest.raises(InvalidValue):
        ErrorMap.read(content | change)


def test_the_picture_is_plain_shapes_with_words():
    picture = ErrorMap.of(wrong_at((37, 53), (36, 52)), (16, 16), hidden=False)
    root = ElementTree.fromstring(picture.svg())
    assert {element.tag for element in root.iter()} == {"svg", "rect", "path"}
    assert (root.get("role"), root.get("aria-label")) == ("img", picture.in_words())
    assert dataclasses.replace(picture, tile=None).svg().count("tiles") == 0
