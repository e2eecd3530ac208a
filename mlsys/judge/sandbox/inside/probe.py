"""Look around in a sandbox, and say what should not be there."""

import os
import sys
from pathlib import Path

from mlsys.judge.sandbox.protocol.channel import Channel

_HIDDEN = ("/home", "/etc/passwd", "/var", "/sys", "/run")
_READ_ONLY = ("/", "/usr", "/site", "/dev", "/dev/shm")
_STATUS = {"CapPrm": "0000000000000000", "CapEff": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"}


def serve(channel: Channel) -> None:
    """Answer every request with what is wrong: sentences, none if the sandbox holds; `private` should not be seen."""
    while True:
        header, _ = channel.receive()
        seen = [str(path) for path in header["private"] if can_be_seen(Path(path))]
        channel.reply({"found": look_around(), "seen": seen})


def look_around() -> list[str]:
    """Return what is wrong with the place that this process runs in."""
    found = [f"{path} can be seen" for folder in _HIDDEN for path in strangers(Path(folder))]
    found += [f"{folder} can be written" for folder in _READ_ONLY if _can_write(Path(folder))]
    if not _can_write(Path(os.environ["TMPDIR"])):
        found.append("the scratch folder cannot be written")
    processes = sum(path.name.isdecimal() for path in Path("/proc").iterdir())
    if processes != 2:
        found.append(f"{processes} processes can be seen, not 2")
    interfaces = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    found += [f"the network interface {name} can be seen" for name in interfaces if name != "lo"]
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    found += [
        f"{key} is {status[key].strip()}, not {due}" for key, due in _STATUS.items() if status[key].strip() != due
    ]
    if os.getuid() == 0:
        found.append("it runs as root")
    return found


def can_be_seen(path: Path) -> bool:
    """Return whether anything of a path can be seen, besides the way to Python's own folders."""
    try:
        return path in _python_folders() or bool(strangers(path))
    except PermissionError:
        return False


def _python_folders() -> set[Path]:
    return {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}


def strangers(path: Path) -> list[Path]:
    """Return what can be seen of a path that should be hidden, besides the way to Python's own folders."""
    python = _python_folders()
    if path in python or not path.exists():
        return []
    if not any(path in folder.parents for folder in python):
        return [path]
    return [stranger for inner in sorted(path.iterdir()) for stranger in strangers(inner)]


def _can_write(folder: Path) -> bool:
    path = folder / "probe"
    try:
        path.write_bytes(b"")
    except OSError:
        return False
    path.unlink()
    return True
