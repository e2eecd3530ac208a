"""What a machine with a GPU brings back, made without one."""

import io
import json
import zipfile
from dataclasses import replace

from mlsys.classroom.store.codec import decode, encode
from mlsys.classroom.store.record import Record


def graded_elsewhere(data: bytes, points: float = 3.5, **changes: object) -> bytes:
    """What a machine with a GPU brings back: the question that waited is slow, and all others say nonsense."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        about = json.loads(old.read("gpu-pass.json"))
        new.writestr("gpu-pass.json", json.dumps(about | {"graded": True} | changes))
        for name in old.namelist():
            if "/records/" in name:
                record = decode(old.read(name), Record)
                questions = [
                    replace(one, verdict="slow", points=points)
                    if one.waiting and one.verdict == "needs gpu"
                    else replace(one, verdict="error", points=0)
                    for one in record.questions
                ]
                new.writestr(name, encode(replace(record, questions=tuple(questions), device="gpu")))
    return out.getvalue()
