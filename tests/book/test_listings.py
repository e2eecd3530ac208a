"""Listings outside of notebooks run, too; those of the inspection have a test of their own, `test_page.py`."""

import re

import pytest
from helpers.pages import sources

LISTINGS = [
    pytest.param(body, id=f"{page.stem}-{place}")
    for page in sources()
    if page.stem != "api-grading"
    for place, body in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S), 1)
]


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_runs_and_gives_what_its_comment_says(listing: str) -> None:
    names: dict[str, object] = {}
    lines = listing.splitlines()
    exec("\n".join(lines), names)
    for line in lines:
        shown = re.fullmatch(r"(\S.*?)  # (.+)", line)
        if shown:
            assert repr(eval(shown[1], names)) == shown[2]
