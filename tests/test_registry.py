import random

import numpy as np
import pytest

from mlsys.registry import start_chapter


def test_the_same_seed_gives_the_same_numbers():
    draws = []
    for _ in range(2):
        start_chapter("tiling", seed=7)
        draws.append((random.random(), np.random.rand()))
    assert draws[0] == draws[1]


def test_versions_are_recorded_as_installed():
    chapter = start_chapter("tiling")
    assert dict(chapter.versions)["numpy"] == np.__version__
    assert f"numpy {np.__version__}" in str(chapter)


@pytest.mark.parametrize(("chapter_id", "seed"), [("", 0), ("tiling", -1), ("tiling", 2**32)])
def test_bad_id_or_seed_is_refused(chapter_id, seed):
    with pytest.raises(ValueError, match="empty|seed"):
        start_chapter(chapter_id, seed)
