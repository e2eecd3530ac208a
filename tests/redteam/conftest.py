"""Everything in this folder is a part of an exhaustive list, but for what it takes no time to check."""

from pathlib import Path

import pytest

# Submissions, not modules:
collect_ignore = ["access", "attacks", "accidents", "gpu", "machine", "mutants", "schedules"]

QUICK = ("test_redteam_record.py", "test_redteam_kernel_texts.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, which `make proof` runs."""
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name not in QUICK:
            item.add_marker(pytest.mark.proof)
