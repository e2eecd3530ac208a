"""Sends source to `student.py` in a sandbox."""

import shutil
from pathlib import Path

import numpy as np

import mlsys

STUDENT = "student:serve"


def run(question, source, *tensors, timeout_s=10.0):
    """Run source inside; return what it leaves in `result`."""
    reply = question.request({"source": source}, tensors, timeout_s=timeout_s).header
    assert "error" not in reply, reply
    return reply["result"]


def fail(question, source):
    """Run source inside that must raise; return the name of the error."""
    return question.request({"source": source}, timeout_s=10).header["error"]


def work_honestly(sandbox):
    """A Triton kernel's worth of honest work in a new question."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with sandbox.open(STUDENT) as question:
        reply = question.request({"source": "results = [tensors[0] @ tensors[0].T]"}, [x])
        np.testing.assert_array_equal(reply.tensors[0], np.einsum("ik,jk->ij", x, x))
        assert sorted(run(question, "result = os.listdir('/proc')"))[:2] == ["1", "2"]
        assert run(question, "result = os.listdir('/scratch')") == []
    assert question.close().exit_status == 0


def make_site(folder):
    """What a worker may import: the package without its surroundings, and the tests' own way to run source."""
    shutil.copytree(Path(mlsys.__file__).parent, folder / "mlsys", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(__file__).with_name("student.py"), folder)
    folder.chmod(0o755)
    return folder
