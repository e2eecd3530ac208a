"""Pictures in written answers: what is one is kept, in whatever way an editor writes it; what is none is left out."""

import base64
import json
import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
import pytest
from PIL import Image

from mlsys.classroom.intake import pictures
from mlsys.classroom.intake.reader import read_submission


def encoded(kind: str = "PNG", size: tuple[int, int] = (3, 2)) -> str:
    buffer = BytesIO()
    Image.new("RGB", size, "red").save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def read(tmp_path: Path, source: object, attachments: object = None, **more: object) -> Any:
    cell = {"cell_type": "markdown", "metadata": {}, "source": source, "attachments": attachments, **more}
    path = tmp_path / "lab.ipynb"
    path.write_text(json.dumps({"cells": [cell], "metadata": {}}))
    notebook = read_submission(path)
    nbformat.validate(notebook)
    return notebook


def shown(notebook: Any) -> list[tuple[str, bytes]]:
    """Kind and content of each picture that the text names and the cell has."""
    [cell] = notebook.cells
    return [
        (kind, base64.b64decode(data, validate=True))
        for name, bundle in cell.get("attachments", {}).items()
        if f"attachment:{name}" in cell.source
        for kind, data in bundle.items()
    ]


@pytest.mark.parametrize(("kind", "mime"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("GIF", "image/gif")])
@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("why\n\n![image.png](attachment:image.png)", "image.png"),
        ("![my plot](attachment:my%20plot.png)", "my plot.png"),
        ("![my plot](<attachment:my plot.png>)", "my plot.png"),
        ('<img src="attachment:0f-1.png" width="300">', "0f-1.png"),
        (["two lines\n", "![x](attachment:x)"], "x"),
    ],
)
def test_a_pasted_picture_is_kept(tmp_path: Path, kind: str, mime: str, source: object, name: str) -> None:
    data = encoded(kind)
    # The content decides, whatever kind the file says.
    for bundle in ({"image/png": data}, {"image/jpeg": [data[:20] + "\n", data[20:] + "\n"]}):
        notebook = read(tmp_path, source, {name: bundle, "unused.png": bundle})
        assert shown(notebook) == [(mime, base64.b64decode(data))]
        assert "left_out" not in notebook.metadata["mlsys"]


@pytest.mark.parametrize(
    "text", ["![image.png](data:image/png;base64,{})", '<img alt="x" src="data:image/png;base64,{}">']
)
def test_a_picture_that_stands_in_the_text_counts_as_a_picture_and_not_as_text(tmp_path: Path, text: str) -> None:
    noise = BytesIO()
    Image.effect_noise((900, 900), 80).save(noise, "PNG")
    data = base64.b64encode(noise.getvalue()).decode()
    assert len(data) > 600_000  # more than all cells together may have in characters
    notebook = read(tmp_path, f"Look:\n\n{text.format(data)}\n\nSo it is.")
    assert shown(notebook) == [("image/png", noise.getvalue())]
    assert len(notebook.cells[0].source) < 200


def png(width: int, height: int) -> bytes:
    """A PNG that claims to be as large as that."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("bundle", "reason"),
    [
        ({"image/svg+xml": base64.b64encode(b"<svg onload=alert(1)>").decode()}, "not a PNG, JPEG or GIF"),
        ({"image/png": base64.b64encode(b"<script>alert(1)</script>").decode()}, "not a PNG, JPEG or GIF"),
        ({"image/png": "not base64!"}, "not a PNG, JPEG or GIF"),
        ({"image/png": encoded()[:-8] + '"><script>'}, "not a PNG, JPEG or GIF"),
        ({"image/png": base64.b64encode(png(60_000, 60_000)).decode()}, "not a PNG, JPEG or GIF"),
        ({"image/png": base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"x" * 6_000_000).decode()}, "6.0 MB"),
        ({"image/png": {"a": 1}}, "not a PNG, JPEG or GIF"),
        ("text", "not a PNG, JPEG or GIF"),
        ([], "not a PNG, JPEG or GIF"),
        (None, "not a PNG, JPEG or GIF"),
    ],
)
def test_what_is_no_picture_is_left_out_with_its_reason(tmp_path: Path, bundle: object, reason: str) -> None:
    notebook = read(tmp_path, "![image.png](attachment:image.png)", {"image.png": bundle})
    assert "attachments" not in notebook.cells[0]
    [sentence] = notebook.metadata["mlsys"]["left_out"]
    assert reason in sentence


@pytest.mark.parametrize("attachments", [None, [], "x", 3, {"": {}}, {"image.png": 3}])
def test_attachments_of_any_shape_are_read(tmp_path: Path, attachments: object) -> None:
    notebook = read(tmp_path, "text", attachments)
    assert (notebook.cells[0].source, "attachments" in notebook.cells[0]) == ("text", False)


def test_pictures_are_limited_in_number_and_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attachments = {f"{number}.png": {"image/png": encoded()} for number in range(100)}
    source = "\n\n".join(f"![](attachment:{name})" for name in attachments)
    notebook = read(tmp_path, source, attachments)
    assert len(shown(notebook)) == pictures.MAX_PICTURES
    assert notebook.metadata["mlsys"]["left_out"] == [
        "Picture 21 in your written answers was left out: a notebook may hold 20 pictures."
    ]
    monkeypatch.setattr(pictures, "MAX_ALL_BYTES", 3 * len(base64.b64decode(encoded())))
    assert len(shown(read(tmp_path, source, attachments))) == 3


def test_code_and_raw_cells_have_no_pictures(tmp_path: Path) -> None:
    for kind in ("code", "raw", 7):
        notebook = read(tmp_path, "attachment:a", {"a": {"image/png": encoded()}}, cell_type=kind)
        assert "attachments" not in notebook.cells[0]
