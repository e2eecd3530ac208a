"""Pictures that a student pasted into a written answer, taken out of whatever an editor makes of them.

Jupyter keeps a pasted picture as an attachment of its cell, `![](attachment:image.png)`; other editors write all of it
into the text, `![](data:image/png;base64,...)`. Here both become attachments with names of ours, and only what really
is a PNG, JPEG or GIF of an ordinary size is kept. SVG is not: it is a document, with scripts and links.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from urllib.parse import quote

MAX_BYTES = 5_000_000
"""Most bytes of one picture; a photograph of a phone has about 4 MB."""
MAX_ALL_BYTES = 10_000_000
"""Most bytes of all pictures of a notebook; they are in the feedback page too."""
MAX_PICTURES = 20
MAX_PIXELS = 50_000_000
"""Most pixels of one picture: a small file can hold a picture that no browser has the memory for."""

_KINDS = {"PNG": ("png", "image/png"), "JPEG": ("jpg", "image/jpeg"), "GIF": ("gif", "image/gif")}
_KINDS["MPO"] = _KINDS["JPEG"]  # what some phones take: a JPEG with more pictures behind the first
_IN_TEXT = re.compile(r"data:image/[\w.+-]{1,20}(?:;[\w=-]{1,30}){0,3};base64,([A-Z0-9+/]{16,}={0,2})", re.IGNORECASE)


@dataclass
class Pictures:
    """The pictures of one notebook, taken cell by cell.

    `left_out` says for each picture that was not kept why, as sentences for the student.
    """

    left_out: list[str] = field(default_factory=list)
    _count: int = 0
    _bytes: int = 0

    def take(self, source: str, attachments: Mapping[str, Any]) -> tuple[str, dict[str, dict[str, str]]]:
        """Take the pictures of one Markdown cell.

        Args:
            source: its text.
            attachments: as they are in the file: anything that JSON can hold.

        Returns:
            The text, which names each picture as `attachment:picture-N.png`, and the attachments of these names.
        """
        kept: dict[str, dict[str, str]] = {}
        names: dict[str, str] = {}
        for name, bundle in attachments.items():
            # A cell keeps attachments that its text no longer shows.
            if f"attachment:{name}" in source or f"attachment:{quote(name)}" in source:
                texts = bundle.values() if isinstance(bundle, dict) else ()
                names[name] = names[quote(name)] = self._keep(_decoded(texts), kept)
        if names:
            # The longest first: one name may begin like another.
            known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
            source = re.sub(f"attachment:({known})", lambda found: f"attachment:{names[found[1]]}", source)
        source = _IN_TEXT.sub(lambda found: f"attachment:{self._keep(_decoded([found[1]]), kept)}", source)
        return source, kept

    def _keep(self, data: bytes, kept: dict[str, dict[str, str]]) -> str:
        """Return the name under which a picture is kept now, or a name that no picture has."""
        self._count += 1
        ending, kind = _kind(data)
        name = f"picture-{self._count}.{ending}"
        reason = self._reason(data, kind)
        if reason:
            if self._count <= MAX_PICTURES + 1:
                self.left_out.append(f"Picture {self._count} in your written answers was left out: {reason}.")
            return f"left-out-{self._count}"
        self._bytes += len(data)
        kept[name] = {kind: base64.b64encode(data).decode()}
        return name

    def _reason(self, data: bytes, kind: str) -> str:
        if self._count > MAX_PICTURES:
            return f"a notebook may hold {MAX_PICTURES} pictures"
        if len(data) > MAX_BYTES:
            return f"it has {len(data) / 1e6:.1f} MB, and the limit is {MAX_BYTES / 1e6:.0f} MB"
        if self._bytes + len(data) > MAX_ALL_BYTES:
            return f"all pictures together have more than {MAX_ALL_BYTES / 1e6:.0f} MB"
        if not kind:
            return f"it is not a PNG, JPEG or GIF of at most {MAX_PIXELS // 1_000_000} million pixels"
        return ""


def _decoded(texts: Iterable[object]) -> bytes:
    """Return the first of some texts that is Base64, decoded; nothing if none is."""
    for text in texts:
        joined = "".join(map(str, text)) if isinstance(text, list) else text
        if isinstance(joined, str):
            try:
                return base64.b64decode("".join(joined.split()), validate=True)
            except (binascii.Error, ValueError):
                continue
    return b""


def _kind(data: bytes) -> tuple[str, str]:
    """Return the ending and MIME type of a picture by its content; empty for what is none."""
    from PIL import Image  # only a few submissions hold a picture

    if len(data) > MAX_BYTES:
        return "", ""
    try:
        with Image.open(BytesIO(data), formats=("PNG", "JPEG", "GIF")) as picture:
            width, height = picture.size
            return _KINDS[picture.format or ""] if 0 < width * height <= MAX_PIXELS else ("", "")
    except Exception:  # readers of pictures raise all kinds of errors on what is none
        return "", ""
