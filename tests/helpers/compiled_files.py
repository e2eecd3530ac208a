"""Files of the book that a script of the repository writes with the pinned Triton."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINNED = re.findall(r"^triton==([\d.]+)", (ROOT / "requirements.txt").read_text(encoding="utf-8"), re.M)


def assert_version_is_pinned(versions: Mapping[str, str], script: str) -> None:
    """Hold the version of Triton that wrote a file to the pinned one."""
    assert [versions["Triton"]] == PINNED, _cure(script)


def assert_script_makes(script: str, name: str) -> None:
    """Compile once more, and compare with the committed file `book/_figures/<name>.py`."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}  # as in a process that has used the interpreter
    command = [sys.executable, str(ROOT / "scripts" / script), "--print"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    kept = (ROOT / "book" / "_figures" / f"{name}.py").read_text(encoding="utf-8")
    assert done.stdout == kept, _cure(script)


def _cure(script: str) -> str:
    return f"run `python scripts/{script}`, and read the chapter again"
