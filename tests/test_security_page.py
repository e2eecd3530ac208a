"""SECURITY.md names a test for each guarantee; the tests must be there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([\w/]+\.py)::(\w+)`", TEXT)


def test_every_guarantee_names_a_test():
    table = TEXT.partition("| guarantee | test |")[2].partition("##")[0]
    rows = [row for row in table.splitlines()[2:] if row.startswith("|")]
    assert len(rows) > 20
    assert [row for row in rows if not re.search(r"`[\w/]+\.py::\w+`", row)] == []


def test_every_test_that_it_names_is_there():
    missing = [(path, name) for path, name in NAMED if f"def {name}(" not in (ROOT / "tests" / path).read_text()]
    assert missing == []
