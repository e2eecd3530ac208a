"""Check that the sandbox that grading needs holds on this machine, by running a process in it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from mlsys.core.package import PACKAGE


def check_sandbox(site: Path | None = None, private: Sequence[Path] = ()) -> str:
    """Start a sandbox without torch, and look around from a process inside.

    Args:
        site: folder to import `mlsys` from inside; the one that it is in when None.
        private: files and folders that students must not read.

    Returns:
        "" if it holds, else what is wrong and what to do.
    """
    if sys.platform != "linux":
        return "grading needs Linux; on Windows use WSL2"
    from mlsys.judge.sandbox.host import ProcessEnded, Sandbox, SandboxError, Tampered
    from mlsys.judge.sandbox.host.shown_files import exposed

    site = site or PACKAGE.parent
    names = {str(name) for path in private for name in (path.absolute(), path.resolve())}
    try:
        with Sandbox(site, preload=()) as sandbox, sandbox.open("mlsys.judge.sandbox.inside.probe:serve") as process:
            answer = process.request({"private": sorted(names)}).header
        known = exposed(private)
    except ProcessEnded as error:
        return f"{error}\n{error.ending.output}"
    except (SandboxError, Tampered, ValueError) as error:
        return str(error)
    if answer["found"]:
        return "; ".join(answer["found"])
    return known or "; ".join(f"students' code can see {path}: move it elsewhere" for path in answer["seen"])
