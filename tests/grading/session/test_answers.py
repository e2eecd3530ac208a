"""Saved answers: what is kept when a kernel is killed, and how it comes back in a fresh copy of the lab."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from mlsys.errors import UserError
from mlsys.grading.scorecard import Scorecard
from mlsys.grading.session import answers, notebook
from mlsys.grading.session.answers import Answers, answers_file, begin_saving, defined_names, restore

POINTS = {"a": 5, "b": 3}
TEST = 'scorecard.passed("a")'
SETUP = f"from mlsys import grading\nscorecard = grading.Scorecard({POINTS})"


def cell(source: str, kind: str = "code", label: str = "") -> nbformat.NotebookNode:
    made = nbformat.v4.new_code_cell(source) if kind == "code" else nbformat.v4.new_markdown_cell(source)
    if label:
        made.metadata["nbgrader"] = {"solution": True, "grade_id": label, "grade": False, "schema_version": 3}
    return made


def lab(path: Path) -> Path:
    """Write a small lab as it is released: a first cell, two answers in code, one in words, a test, a demonstration."""
    cells = [
        cell(SETUP),
        cell("def area(w, h):\n    raise NotImplementedError", label="area"),
        cell("total = None\ncount = None", label="total"),
        cell("Your answer", "markdown", label="words"),
        cell(f"assert area(2, 3) == 6\n{TEST}"),
        cell("w, h = 2, 3\narea(w, h)"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


class Shell:
    """What a notebook's shell does for the saving: it calls back before each cell."""

    def __init__(self, path: Path | None = None) -> None:
        self.user_ns = {"__vsc_ipynb_file__": str(path)} if path else {}
        self.called: list = []
        self.events = SimpleNamespace(
            register=lambda _, call: self.called.append(call), unregister=lambda _, call: self.called.remove(call)
        )

    def run(self, *sources: str) -> None:
        for source in sources:
            for call in self.called:
                call(SimpleNamespace(raw_cell=source))


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A notebook whose answers go to a folder of the test."""
    monkeypatch.setenv(answers.FOLDER_VARIABLE, str(tmp_path / "kept"))
    monkeypatch.setattr(answers, "_keeper", None)
    opened = Shell(lab(tmp_path / "lab.ipynb"))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: opened))
    begin_saving(POINTS)
    return opened


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("a, (b, c) = 1, (2, 3)", ("a", "b", "c")),
        ("class Thing:\n    x = 1", ("Thing",)),
        ("%%time\ndef work():\n    pass", ("work",)),
        ("!pip list\nx: int = 3\nif x == 4: pass", ("x",)),
        ("import numpy as np\nprint(3)", ()),
        ("def half(:\n    pass", ("half",)),
        ("x = '\0'", ("x",)),
    ],
)
def test_a_cell_is_told_by_the_names_that_it_defines(source: str, names: tuple[str, ...]) -> None:
    assert defined_names(source) == names


def test_answers_come_back_in_their_cells(shell: Shell, tmp_path: Path) -> None:
    right = "def area(w, h):\n    return side(w) * h"
    shell.run("def area(w, h):\n    return w + h", "total, count = 7, 2", "def side(w):\n    return w", right, TEST)
    # The machine is taken away, and the student opens a fresh copy and runs it from the top.
    fresh = json.loads((tmp_path / "lab.ipynb").read_text())
    shell.run(*("".join(one["source"]) for one in fresh["cells"] if one["cell_type"] == "code"))
    done = restore()
    assert (done.answers, done.missing, done.own_cells) == (("area", "total"), ("words",), 1)
    whole = nbformat.read(done.path, as_version=4)
    nbformat.validate(whole)
    assert [one.source for one in whole.cells] == [
        SETUP, "def side(w):\n    return w", right, "total, count = 7, 2", "Your answer",
        f"assert area(2, 3) == 6\n{TEST}", "w, h = 2, 3\narea(w, h)",
    ]  # fmt: skip
    assert whole.cells[2].metadata["nbgrader"]["grade_id"] == "area"
    assert "area, total" in str(done)
    assert "words" in str(done)


def test_written_answers_are_kept_from_what_the_front_end_shows(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "lab.ipynb"
    opened = nbformat.read(path, as_version=4)
    opened.cells[3].source = "Because the tiles are reused."
    nbformat.write(opened, path)
    shell.run(TEST)
    lab(path)
    begin_saving(POINTS)
    shell.run(TEST)  # the fresh copy has the starter's words, which replace nothing
    done = restore()
    assert done.answers == ("words",)
    assert nbformat.read(done.path, as_version=4).cells[3].source == "Because the tiles are reused."


def test_an_older_version_is_one_of_thirty_and_the_same_text_counts_once() -> None:
    kept = Answers()
    for number in range(100):
        kept.add(f"x = {number}", f"{number:03}")
        kept.add("y = 1", f"{number:03}")
    assert [saved.source for saved in kept.code if saved.names == ("x",)] == [f"x = {n}" for n in range(70, 100)]
    assert len([saved for saved in kept.code if saved.names == ("y",)]) == 1
    assert not kept.add("x = '" + "a" * answers.MAX_CELL_CHARS + "'", "1")


def test_a_file_that_cannot_be_read_is_set_aside_and_said(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    place = answers_file(POINTS)
    assert place is not None
    shell.run("x = 1")
    place.write_text('{"code": [')
    begin_saving(POINTS)
    assert "cannot be read" in capsys.readouterr().out
    assert [one.read_text() for one in place.parent.glob("*.unreadable-*")] == ['{"code": [']
    shell.run("x = 2")
    assert json.loads(place.read_text())["code"][0]["source"] == "x = 2"


def test_a_full_or_locked_folder_is_said_once_and_stops_no_cell(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    shell.run("x = 1", "x = 2", "x = 3")
    assert capsys.readouterr().out.count("No space left on device): save the notebook yourself") == 1
    monkeypatch.undo()
    monkeypatch.setenv(answers.FOLDER_VARIABLE, "unused")
    shell.run("x = 4")
    kept = json.loads(next(Path(shell.user_ns["__vsc_ipynb_file__"]).parent.glob("kept/*.json")).read_text())
    assert [saved["source"] for saved in kept["code"]] == ["x = 1", "x = 2", "x = 3", "x = 4"]


def test_what_cannot_be_restored_is_refused_with_the_cure(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="holds no answers"):
        restore()
    shell.run("def area(w, h):\n    return w * h")
    (tmp_path / "lab.ipynb").write_text("{")
    with pytest.raises(UserError, match=r"name the lab's notebook"):
        restore()
    with pytest.raises(UserError, match=r"nobody.ipynb cannot be read"):
        restore("nobody.ipynb")
    monkeypatch.setattr(answers, "_keeper", None)
    with pytest.raises(UserError, match="run the lab's first cell first"):
        restore()


def test_colab_uses_a_mounted_drive_and_says_what_its_own_disk_is_worth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drive = tmp_path / "drive" / "MyDrive"
    monkeypatch.setattr(answers, "DRIVE", drive)
    monkeypatch.setattr(answers, "MACHINE", tmp_path)
    monkeypatch.setattr(answers, "_keeper", None)
    monkeypatch.delenv(answers.FOLDER_VARIABLE, raising=False)
    opened = Shell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: opened))
    assert answers_file(POINTS) is None  # an own Jupyter saves its notebooks itself
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace())
    begin_saving(POINTS)
    assert "ends with this machine" in capsys.readouterr().out
    drive.mkdir(parents=True)
    begin_saving(POINTS)
    assert capsys.readouterr().out == ""
    opened.run("x = 1")
    assert len(list((drive / "mlsys-answers").glob("*.json"))) == 1
    begin_saving(POINTS)
    assert "grading.restore()" in capsys.readouterr().out
    monkeypatch.setenv("MLSYS_IN_JUDGE", "1")
    assert notebook.find_shell() is None


def test_every_lab_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(answers.FOLDER_VARIABLE, str(tmp_path))
    found = []
    for source in sorted(Path(__file__).parents[3].glob("labs/*/lab.py")):
        text = source.read_text(encoding="utf-8")
        call = text[text.index("grading.Scorecard(") :]
        points = eval(call[call.index("{") : call.index("}") + 1])
        found.append(answers_file(Scorecard(points).points))
    assert len(set(found)) == len(found) >= 7


KILLS = int(os.environ.get("MLSYS_KILLS", "5"))
"""How often the kernel is killed; 50 take about three minutes."""


@pytest.mark.proof
def test_no_cell_is_lost_when_the_kernel_of_a_jupyter_server_is_killed(tmp_path: Path) -> None:
    """Cells run one after another in a kernel of a Jupyter server, which is killed at any time, also within a cell."""
    pytest.importorskip("jupyter_server", reason="jupyter_server is not installed: mlsys[grading] brings it")
    draw = random.Random(1)
    with Server(tmp_path) as jupyter:
        lost, ran = [], 0
        for kill in range(KILLS):
            kernel = jupyter.start()
            pid = int(kernel.run(f"import os\n{SETUP}\nprint(os.getpid())"))
            place = next((tmp_path / "kept").glob("*.json"), None)
            after = draw.randrange(1, 12)
            for step in range(after):
                kernel.run(f"answer_{step} = {kill}")
                ran += 1
            # The next cell is at work when the end comes: what began has been saved before.
            kernel.send(f"answer_{after} = {kill}\nimport time; print('began', flush=True); time.sleep(60)")
            if draw.random() < 0.5:
                kernel.wait_for("began")
                ran, after = ran + 1, after + 1
            else:
                time.sleep(draw.random() * 0.02)
            os.kill(pid, signal.SIGKILL)
            place = next((tmp_path / "kept").glob("*.json"))
            newest = {saved["names"][0]: saved["source"] for saved in json.loads(place.read_bytes())["code"]}
            lost += [
                step for step in range(after) if not newest[f"answer_{step}"].startswith(f"answer_{step} = {kill}")
            ]
            jupyter.end(kernel)
    assert (lost, ran > 3 * KILLS) == ([], True)


class Server:
    """A Jupyter server of its own, and kernels started through it as a page does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> "Server":
        import socket
        import subprocess
        import urllib.request

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**os.environ, answers.FOLDER_VARIABLE: str(self.folder / "kept")}
        command = [
            sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port}", "--IdentityProvider.token=t", "--ServerApp.disable_check_xsrf=True",
            f"--ServerApp.root_dir={self.folder}",
        ]  # fmt: skip
        self.log = (self.folder / "server.log").open("wb")
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log)
        self.url, ends = f"http://127.0.0.1:{port}/", time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}api?token=t", timeout=5).read()
                return self
            except OSError:
                assert time.monotonic() < ends, (self.folder / "server.log").read_text()
                time.sleep(0.1)

    def ask(self, method: str, path: str) -> bytes:
        import urllib.request

        request = urllib.request.Request(f"{self.url}api/{path}?token=t", method=method, data=b"{}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def start(self) -> "Kernel":
        made = json.loads(self.ask("POST", "kernels"))["id"]
        return Kernel(f"{self.url.replace('http', 'ws', 1)}api/kernels/{made}/channels?token=t", made)

    def end(self, kernel: "Kernel") -> None:
        kernel.socket.close()
        self.ask("DELETE", f"kernels/{kernel.id}")

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()


class Kernel:
    """A kernel of the server, spoken to through its websocket."""

    def __init__(self, url: str, made: str) -> None:
        import websocket

        self.id = made
        self.socket = websocket.create_connection(url, timeout=60)

    def send(self, source: str) -> str:
        from uuid import uuid4

        header = {
            "msg_id": uuid4().hex,
            "msg_type": "execute_request",
            "username": "",
            "session": self.id,
            "version": "5.3",
        }
        content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self.socket.send(json.dumps(message))
        return header["msg_id"]

    def run(self, source: str) -> str:
        """Run a cell to its end and return what it printed."""
        sent, printed = self.send(source), ""
        while True:
            message = json.loads(self.socket.recv())
            if message["parent_header"].get("msg_id") != sent:
                continue
            if message["msg_type"] == "stream":
                printed += message["content"]["text"]
            if message["msg_type"] == "error":
                raise AssertionError(message["content"])
            if message["msg_type"] == "execute_reply":
                return printed.splitlines()[-1] if printed else ""

    def wait_for(self, text: str) -> None:
        while True:
            message = json.loads(self.socket.recv())
            if message["msg_type"] == "stream" and text in message["content"]["text"]:
                return
