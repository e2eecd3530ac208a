"""CHANGELOG.md names what there is: every command, every part of the book, every lab."""

from pathlib import Path

import pytest
import yaml

from mlsys.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
TEXT = " ".join((ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split())
BESIDE = ("Start here", "Labs", "Reference", "The package", "About", "עברית")
"""Parts of the book that hold no chapters, or translations of them."""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_named(command: str) -> None:
    assert f"`mlsys {command}" in TEXT


def test_every_part_with_chapters_is_named() -> None:
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    captions = [part["caption"] for part in parts]
    assert [name for name in captions if name not in BESIDE and f"*{name}*:" not in TEXT] == []
