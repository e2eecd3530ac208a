"""The web service: who asks, what may be seen, and how what is wrong is said. It never runs what students wrote.

Every answer that is not a page of one's own is a sentence. Bodies are read piece by piece, so that a file of any size
meets its limit before it fills the memory, and is answered all the same.
"""

import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import parse_qs, urlsplit

import tornado
from tornado.httputil import HTTPFile, parse_body_arguments
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, RequestHandler, stream_request_body

from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.marking.server import POLICY
from mlsys.classroom.students.deadlines import Lateness, lateness
from mlsys.classroom.students.roster import Roster, Student, read_roster
from mlsys.course.lab import Lab
from mlsys.course.tree import CourseTree
from mlsys.errors import UnknownName, UserError
from mlsys.submit import pages
from mlsys.submit.desk import Desk, Refused, TooOften, check_size
from mlsys.submit.oidc import Provider
from mlsys.submit.queue import HandIn, Login
from mlsys.submit.tokens import (
    STUDENT,
    NotLoggedIn,
    check_session,
    check_token,
)

COOKIE = "mlsys_session"
STATE_COOKIE = "mlsys_login"
MAX_FORM_BYTES = 200_000
"""Largest form without a file, in bytes."""
MAX_HELD_BYTES = 1_000_000_000
"""Most bytes of files that are held in memory at a time; whoever comes then is asked to come again."""
MAX_FAILED_LOGINS, MAX_REQUESTS, WINDOW_S = 10, 300, 60.0
"""Most failed logins from an address, and most requests of a person, within so many seconds."""

_T = TypeVar("_T")
_P = ParamSpec("_P")


class Limit:
    """Counts events by key, and says when there are too many within a window of time."""

    def __init__(self, most: int, window_s: float = WINDOW_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._window_s, self._clock = most, window_s, clock
        self._events: defaultdict[str, deque[float]] = defaultdict(deque)

    def is_reached(self, key: str) -> bool:
        """Return whether a key has had its events for now."""
        return len(self._recent(key)) >= self._most

    def count(self, key: str) -> None:
        """Count an event."""
        self._recent(key).append(self._clock())

    def _recent(self, key: str) -> deque[float]:
        if len(self._events) > 100_000:  # an attack from many addresses must not fill the memory
            self._events.clear()
        events, since = self._events[key], self._clock() - self._window_s
        while events and events[0] < since:
            events.popleft()
        return events


@dataclass
class Service:
    """What the handlers share.

    Attributes:
        root: the course repository.
        tree: the course.
        desk: where work is handed in.
        roster_path: the roster's file; a change of it holds at once.
        address: the address that people open, such as https://queue.example.edu
        provider: the institution's login, if there is one.
    """

    root: Path
    tree: CourseTree
    desk: Desk
    roster_path: Path
    address: str
    provider: Provider | None = None
    held_bytes: int = 0
    failed: Limit = field(default_factory=lambda: Limit(MAX_FAILED_LOGINS))
    requests: Limit = field(default_factory=lambda: Limit(MAX_REQUESTS))
    # One thread writes, so that writers never wait for each other's lock. Marking has its own: it reads a whole class.
    writer: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    readers: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4))
    marking: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _roster: tuple[float, Roster] | None = None
    _labs: dict[str, tuple[float, Lab]] = field(default_factory=dict)

    @property
    def roster(self) -> Roster:
        """The roster, read again when its file has changed; one that is damaged meanwhile changes nothing."""
        try:
            changed = self.roster_path.stat().st_mtime
            if self._roster is None or self._roster[0] != changed:
                self._roster = changed, read_roster(self.roster_path)
        except (OSError, UserError):
            if self._roster is None:
                raise
        return self._roster[1]

    @property
    def labs(self) -> list[str]:
        """The labs that are taken in: those of the settings, or all that are released."""
        released = sorted(path.parent.name for path in self.tree.root.glob("source/*/*.ipynb"))
        return [lab for lab in self.desk.settings.labs or released if lab in released]

    def lab(self, name: str) -> Lab:
        """Return a lab as it is released.

        Raises:
            UnknownName: it is none that is taken in.
        """
        if name not in self.labs:
            raise UnknownName.of("lab", name, self.labs)
        changed = self.tree.source(name).stat().st_mtime
        if name not in self._labs or self._labs[name][0] != changed:
            self._labs[name] = changed, released_lab(self.tree, name)
        return self._labs[name][1]

    def due(self, student: str, lab: str) -> datetime | None:
        """Return when a lab is due for a student, if the roster says so."""
        return self.roster.students[student].due.get(lab) if student in self.roster.students else None

    def late(self, hand_in: HandIn) -> Lateness | None:
        """Return how late a hand-in is by its receipt; None without a due time."""
        due = self.due(hand_in.student, hand_in.lab)
        if due is None:
            return None
        grace = timedelta(minutes=self.roster.students[hand_in.student].grace_minutes)
        return lateness(hand_in.time, due, grace)

    def check_login(self, login: Login) -> Login:
        """Return the login of somebody who is in the course now.

        Raises:
            NotLoggedIn: it is a student who is not in the roster any more.
        """
        if login.role == STUDENT and login.person not in self.roster.students:
            raise NotLoggedIn("you are not in the roster of this course: tell your instructor")
        return login


@stream_request_body
class Page(RequestHandler):
    """What all handlers have in common: who asks, limits, headers, and faults as sentences."""

    service: Service
    open_to_all = False
    """Whether people who are not logged in see the page."""
    max_bytes = MAX_FORM_BYTES
    """Largest body."""
    login: Login | None = None
    _size = _held = 0

    def initialize(self, service: Service) -> None:
        """Take over what the handlers share."""
        self.service = service
        self._body = bytearray()
        self._fault: tuple[HTTPStatus, str] | None = None

    def set_default_headers(self) -> None:
        """Let pages load nothing from elsewhere, and let no other site show or read them."""
        self.clear_header("Server")
        for name, value in {
            "Content-Security-Policy": POLICY.replace("img-src data:", "img-src data:; connect-src 'self'"),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }.items():
            self.set_header(name, value)

    async def prepare(self) -> None:
        """Find out who asks, before the body is read; a fault is answered once it has been."""
        try:
            if self.request.host not in self.hosts:
                self._fault = HTTPStatus.NOT_FOUND, "this address is not the one of the course's queue"
                return
            self.login = await self._who()
            key = self.login.person if self.login else str(self.request.remote_ip)
            self.service.requests.count(key)
            origin = self.request.headers.get("Origin")
            if self.service.requests.is_reached(key):
                self._fault = HTTPStatus.TOO_MANY_REQUESTS, "too many requests: wait a minute, then go on"
            elif self.login is None and not self.open_to_all:
                raise NotLoggedIn("log in first: your session has ended, or this needs your token")
            elif self.request.method == "POST" and origin is not None and urlsplit(origin).netloc not in self.hosts:
                self._fault = HTTPStatus.FORBIDDEN, "this form came from another site, so nothing was done"
        except NotLoggedIn as error:
            self._fault = HTTPStatus.UNAUTHORIZED, sentence(error)
        length = self.request.headers.get("Content-Length", "")
        expected = min(int(length) if length.isdecimal() else 0, self.max_bytes)
        if expected > MAX_FORM_BYTES and self.service.held_bytes + expected > MAX_HELD_BYTES:
            busy = "many people are handing in at this moment, so nothing was taken: try again in a few seconds"
            self._fault = self._fault or (HTTPStatus.SERVICE_UNAVAILABLE, busy)

    def data_received(self, chunk: bytes) -> None:
        """Keep a piece of the body, or drop it where the whole is refused anyway."""
        self._size += len(chunk)
        if self._fault or self._size > self.max_bytes:
            self._let_go()
            return
        self._body += chunk
        self._held += len(chunk)
        self.service.held_bytes += len(chunk)

    def _let_go(self) -> None:
        self.service.held_bytes -= self._held
        self._held = 0
        self._body = bytearray()

    def on_finish(self) -> None:
        """Give back the memory of the body."""
        self._let_go()

    def on_connection_close(self) -> None:
        """Give back the memory of a body whose sender went away."""
        self._let_go()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts by which this service may be asked: its address, or a port of this machine."""
        public = urlsplit(self.service.address)
        port = self.application.settings["port"]
        return public.netloc, f"127.0.0.1:{port}", f"localhost:{port}"

    async def _who(self) -> Login | None:
        kind, _, token = self.request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return await self.by_token(token)
        secret = self.get_cookie(COOKIE, "") or ""
        login = await self.reading(check_session, self.service.desk.queue, secret) if secret else None
        return self.service.check_login(login) if login else None

    async def by_token(self, token: str) -> Login:
        """Return whose token it is.

        Raises:
            NotLoggedIn: nobody's, an expired one, or too many were tried.
        """
        address = str(self.request.remote_ip)
        if self.service.failed.is_reached(address):
            raise NotLoggedIn("too many tokens were tried from your address: wait a minute, then try again")
        try:
            return self.service.check_login(await self.reading(check_token, self.service.desk.queue, token))
        except NotLoggedIn:
            self.service.failed.count(address)
            raise

    async def reading(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what `work` returns, from a thread that reads."""
        return await IOLoop.current().run_in_executor(self.service.readers, partial(work, *args, **kwargs))

    async def writing(self, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what `work` returns, from the thread that writes."""
        return await IOLoop.current().run_in_executor(self.service.writer, partial(work, *args, **kwargs))

    @property
    def who(self) -> Login:
        """Who asks; `prepare` has let nobody else come this far."""
        assert self.login is not None
        return self.login

    @property
    def visitor(self) -> pages.Visitor:
        """Who looks at the page, as the page says it."""
        if self.login is None:
            return pages.Visitor()
        known = self.service.roster.students.get(self.login.person, Student(self.login.person))
        return pages.Visitor(known.name or known.id, self.login.role, self.service.roster.zone)

    def form(self) -> dict[str, list[str]]:
        """Return the fields of a form without a file."""
        return parse_qs(self._body.decode(errors="replace"), keep_blank_values=True, max_num_fields=1000)

    def upload(self) -> tuple[bytes, bool]:
        """Return the file of a form, and whether hidden tests are asked for.

        Raises:
            Refused: the form holds no file.
        """
        fields: dict[str, list[bytes]] = {}
        files: dict[str, list[HTTPFile]] = {}
        try:
            parse_body_arguments(self.request.headers.get("Content-Type", ""), bytes(self._body), fields, files)
        except tornado.httputil.HTTPInputError as error:
            raise Refused("the form came in damaged, and nothing was handed in: try again") from error
        if not files.get("notebook"):
            raise Refused("no file was chosen, so nothing was handed in: choose your notebook")
        return files["notebook"][0].body, b"yes" in fields.get("hidden", [])

    async def answer(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work of a request, or say in a sentence why it cannot be done."""
        if self._fault:
            self._say()
            return
        try:
            if self._size > self.max_bytes:
                check_size(self._size)
                raise Refused("the form is too large")
            await work()
        except UserError as error:
            self._fault = status_of(error), sentence(error)
            self._say()

    def _say(self) -> None:
        assert self._fault is not None
        status, text = self._fault
        self.set_status(status)
        if self.is_api:
            self.finish({"fault": text})
        elif status == HTTPStatus.UNAUTHORIZED:
            host = self.service.provider.host if self.service.provider else ""
            self.page(pages.login_page(host, "" if self.request.path == "/" else text))
        else:
            self.page(pages.fault_page(self.visitor, text))

    @property
    def is_api(self) -> bool:
        """Whether a program asks, which gets JSON."""
        return self.request.path.startswith("/api/")

    def page(self, text: str) -> None:
        """Answer with a page."""
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(text.encode(errors="replace"))

    def write_error(self, status_code: int, **_: Any) -> None:
        """Say that something failed that should not; the terminal shows what."""
        text = (
            "This address has no page." if status_code == HTTPStatus.NOT_FOUND else "This should not happen. Try again."
        )
        self._fault = HTTPStatus(status_code), text
        self._say()


class Missing(Page):
    """Any other address."""

    open_to_all = True

    async def prepare(self) -> None:
        """Say that there is nothing."""
        raise HTTPError(HTTPStatus.NOT_FOUND)


def status_of(error: UserError) -> HTTPStatus:
    """Return the status with which a fault is answered."""
    if isinstance(error, NotLoggedIn):
        return HTTPStatus.UNAUTHORIZED
    if isinstance(error, UnknownName):
        return HTTPStatus.NOT_FOUND
    if isinstance(error, TooOften):
        return HTTPStatus.TOO_MANY_REQUESTS
    return HTTPStatus.BAD_REQUEST if isinstance(error, Refused) else HTTPStatus.INTERNAL_SERVER_ERROR


def sentence(error: UserError) -> str:
    """Return a fault as a sentence of its own."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
