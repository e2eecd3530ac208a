import asyncio
import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from helpers.adding_course import adding, copy_without_submissions, course_repository
from helpers.judging import judging_sandbox, session, verdict

from mlsys.course.tree import CourseTree
from mlsys.receipt import Signer
from mlsys.submit.desk import Desk
from mlsys.submit.queue import Queue
from mlsys.submit.server import serve
from mlsys.submit.settings import Settings
from mlsys.submit.tokens import STUDENT, new_token
from mlsys.submit.web import Service

__all__ = ["adding", "course_repository", "judging_sandbox", "session", "verdict"]

ROSTER = (
    "id,name,sis login id,time zone,late days,due adding\n*,,,Europe/Berlin,1,2100-01-01 12:00\n"
    "ann,Ann Baker,ann@example.edu,,,\nbob,Bob <b>Carter</b>,bob@example.edu,,,\ncy,Cy Dent,,,,\n"
)


@dataclass
class Clock:
    """A clock that a test sets."""

    now: datetime = field(default_factory=lambda: datetime(2026, 11, 20, 12, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now

    def on(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class Course:
    """A course with the lab `adding` released, its queue, and notebooks to hand in."""

    root: Path
    tree: CourseTree
    sample: Path
    queue: Queue
    signer: Signer

    @property
    def roster(self) -> Path:
        return self.root / "roster.csv"

    @property
    def right(self) -> bytes:
        return (self.sample / "right.ipynb").read_bytes()

    def another(self, number: int) -> bytes:
        """The right notebook in a file that differs from all others."""
        notebook = json.loads(self.right)
        notebook["metadata"]["copy"] = number
        return json.dumps(notebook).encode()

    def desk(self, clock: Any = None, **settings: Any) -> Desk:
        return Desk(self.queue, self.signer, Settings(**settings), *([clock] if clock else []))

    def token(self, person: str, role: str = STUDENT, days: float = 1) -> str:
        return new_token(self.queue, person, role, datetime.now(UTC) + timedelta(days=days))


@pytest.fixture
def course(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> Iterator[Course]:
    """A course of its own."""
    root = tmp_path / "repository"
    tree = copy_without_submissions(adding[0], root)
    (root / "roster.csv").write_text(ROSTER)
    queue = Queue(tree.queue)
    yield Course(root, tree, adding[2], queue, Signer.of_course(tree.queue, may_be_new=True))
    queue.close()


@dataclass
class Client:
    """Somebody who asks a service: with a token, or with the cookies of a session."""

    port: int
    token: str = ""
    cookies: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            if self.token:
                sent["Authorization"] = f"Bearer {self.token}"
            if self.cookies:
                sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            connection.request(method, path, body, sent)
            reply = connection.getresponse()
            for name, value in reply.getheaders():
                if name == "Set-Cookie":
                    key, _, rest = value.partition("=")
                    self.cookies[key] = rest.partition(";")[0]
            return reply.status, reply.read().decode(), dict(reply.getheaders())
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        status, text, _ = self.send("GET", path)
        return status, text

    def post(self, path: str, **form: object) -> tuple[int, str]:
        kind = "application/x-www-form-urlencoded"
        origin = f"http://127.0.0.1:{self.port}"
        status, text, _ = self.send("POST", path, urlencode(form, doseq=True), Content_Type=kind, Origin=origin)
        return status, text

    def hand_in(self, data: bytes, lab: str = "adding", query: str = "") -> tuple[int, dict[str, Any]]:
        status, text, _ = self.send("POST", f"/api/labs/{lab}{query}", data)
        return status, json.loads(text)

    def logged_in(self) -> "Client":
        """The same person in a browser."""
        browser = Client(self.port)
        assert browser.post("/login", token=self.token)[0] == 303
        return browser


@dataclass
class Served:
    """A service that runs."""

    course: Course
    service: Service
    port: int

    def client(self, person: str = "", role: str = STUDENT) -> Client:
        return Client(self.port, self.course.token(person, role) if person else "")


@contextmanager
def serving(course: Course, **changes: Any) -> Iterator[Served]:
    """Serve a course in a thread; what `changes` names is other settings."""
    service = Service(course.root, course.tree, course.desk(**changes), course.roster, "")
    ready, ports = threading.Event(), []
    loop = asyncio.new_event_loop()

    def is_ready(port: int) -> None:
        ports.append(port)
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(serve(service, "127.0.0.1", 0, ready=is_ready))
        tasks.append(task)
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    tasks: list[asyncio.Task[None]] = []
    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(30)
    try:
        yield Served(course, service, ports[0])
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(30)
        loop.close()


@pytest.fixture
def served(course: Course) -> Iterator[Served]:
    """A service of a course with the first settings."""
    with serving(course) as running:
        yield running


def with_mathjax(course: Course) -> None:
    """Give a course the formulas of the book."""
    source = Path(__file__).parents[2] / "book" / "_static" / "mathjax"
    shutil.copytree(source, course.root / "book" / "_static" / "mathjax")
