"""Find which files of this machine a sandbox shows, whatever names they have there."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mlsys.judge.sandbox.host.bubblewrap import shown_folders

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class _Mount:
    """A mounted part of a file system: its device, the folder of it that is mounted, and where."""

    device: str
    root: PurePosixPath
    point: PurePosixPath

    @classmethod
    def of(cls, line: str) -> "_Mount":
        _, _, device, root, point, *_ = (_ESCAPED.sub(lambda code: chr(int(code[1], 8)), word) for word in line.split())
        return cls(device, PurePosixPath(root), PurePosixPath(point))


def exposed(private: Iterable[Path]) -> str:
    """Say which of these files and folders student code could read, and what to do; "" if none.

    A path is below a shown folder also by a link or as part of another mount. A shown folder inside a private one,
    such as a virtual environment in the repository, is no harm.
    """
    mounts = [_Mount.of(line) for line in _MOUNTS.read_text().splitlines()]
    for path in private:
        device, place = _place(mounts, path)
        for folder in shown_folders():
            if any(device == of and place.is_relative_to(part) for of, part in _parts(mounts, folder)):
                return (
                    f"{path} is in {folder}, which the sandbox shows to students' code because it needs what is "
                    f"installed there: move {path} out of {folder}"
                )
    return ""


def _place(mounts: list[_Mount], path: Path) -> tuple[str, PurePosixPath]:
    """Return the device that a path is on, and its place in that file system: the same under all names of a file."""
    resolved = PurePosixPath(path.resolve())
    # Of two mounts at the same place the later one hides the other.
    mount = max(
        (mount for mount in enumerate(mounts) if resolved.is_relative_to(mount[1].point)),
        key=lambda mount: (len(mount[1].point.parts), mount[0]),
    )[1]
    return mount.device, mount.root / resolved.relative_to(mount.point)


def _parts(mounts: list[_Mount], folder: Path) -> list[tuple[str, PurePosixPath]]:
    """Return the places of what a folder shows: the folder itself, and everything mounted below it."""
    resolved = PurePosixPath(folder.resolve())
    below = [(mount.device, mount.root) for mount in mounts if mount.point.is_relative_to(resolved)]
    return [_place(mounts, folder), *below]
