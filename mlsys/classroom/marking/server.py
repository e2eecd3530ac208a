"""The local server of the pages on which people mark.

It listens on 127.0.0.1 only, and answers only addresses that begin with a random token and requests that name it as
their host, so that no page of another site and no other user of the machine reaches it. Its pages run one script, our
own: what students wrote is cleaned before, and the content security policy would stop what was missed.
"""

import hmac
import secrets
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.marking.answers import Answer, Marking, Outdated, find
from mlsys.classroom.marking.pages import (
    SHOWN,
    AnswerPage,
    Typed,
    answer_page,
    answers_page,
    chosen,
    fault_page,
    questions_page,
    rubric_page,
    script,
    style,
)
from mlsys.classroom.marking.rubric import Item, joined, number, rubric_of, save_rubric, total
from mlsys.course.digest import digest
from mlsys.errors import UnknownName, UserError

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Content security policy of every page; MathJax writes styles into the page, and no script runs but ours."""
MAX_BODY_BYTES = 200_000
"""Largest form that is read."""
NEW_LINES = 3
"""Empty lines at the end of a rubric that is edited."""

_TYPES = {".js": "text/javascript", ".css": "text/css", ".woff": "font/woff"}
_HTML = "text/html; charset=utf-8"

Form = Mapping[str, list[str]]


@dataclass(frozen=True)
class Reply:
    """What goes back: a status, a body, and where to go next, if anywhere."""

    body: bytes
    kind: str = _HTML
    status: HTTPStatus = HTTPStatus.OK
    location: str = ""

    @classmethod
    def page(cls, text: str, status: HTTPStatus = HTTPStatus.OK) -> "Reply":
        """Return a page."""
        return cls(text.encode(errors="replace"), status=status)

    @classmethod
    def to(cls, location: str) -> "Reply":
        """Send the browser to another page."""
        return cls(b"", status=HTTPStatus.SEE_OTHER, location=location)


@dataclass(frozen=True)
class Site:
    """The pages for marking one lab, by the part of the address after the token.

    Attributes:
        marking: the answers.
        root: the course repository, for the lab's own rubric and for MathJax.
        names: whether names are shown.
        token: the random part of the address.
    """

    marking: Marking
    root: Path
    names: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def base(self) -> str:
        """The beginning of every address."""
        return f"/{self.token}"

    def get(self, parts: Sequence[str], show: str) -> Reply:
        """Return the page with this address.

        Raises:
            UnknownName: no such question, answer or page.
            UserError: something cannot be read.
        """
        match parts:
            case ["static", *path]:
                return self._static(path)
            case [""]:
                title = self.marking.released.title
                return Reply.page(questions_page(self.base, title, self.marking.questions(), self.names))
            case ["q", question]:
                answers = self.marking.answers(question)
                names = {one.student: self.marking.name(one.student) for one in answers} if self.names else {}
                return Reply.page(answers_page(self.base, question, answers, show, names))
            case ["q", question, "rubric"]:
                self.marking.answers(question)
                return self._rubric(question, self._items(question))
            case ["q", question, key]:
                return self._answer(self.marking.answers(question), key, show)
        raise UnknownName(f"there is no page {'/'.join(parts)!r}: begin with the list of all questions")

    def post(self, parts: Sequence[str], show: str, form: Form) -> Reply:
        """Do what a form asks for, and return the page that follows.

        Raises:
            UnknownName: no such question, answer or page.
            UserError: something cannot be read.
        """
        match parts:
            case ["q", question, "rubric"]:
                return self._save_rubric(question, form)
            case ["q", question, key]:
                return self._save_mark(question, key, show, form)
        raise UnknownName(f"there is no form {'/'.join(parts)!r}: begin with the list of all questions")

    def _items(self, question: str) -> tuple[Item, ...]:
        return rubric_of(self.marking.tree, self.root, self.marking.lab, question)

    def _answer(
        self, answers: Sequence[Answer], key: str, show: str, typed: Typed | None = None, fault: str = ""
    ) -> Reply:
        answer, listed = find(answers, key), chosen(answers, show)
        question = answer.question.question
        rubric = self._items(question)
        keys = [one.key for one in listed]
        place = keys.index(answer.key) if answer.key in keys else -1
        page = AnswerPage(
            answer,
            self.marking.result(answer),
            rubric,
            typed or Typed.given(answer, rubric),
            show,
            place + 1,
            len(listed),
            next((one for one in reversed(listed) if one.key < answer.key), None),
            _next(listed, answer.key),
            self.marking.former(answer),
            self.marking.name(answer.student) if self.names else "",
            fault,
            bool(self.marking.cells(question)),
        )
        text = answer_page(self.base, question, page)
        return Reply.page(text, HTTPStatus.CONFLICT if fault else HTTPStatus.OK)

    def _save_mark(self, question: str, key: str, show: str, form: Form) -> Reply:
        rubric, answers = self._items(question), self.marking.answers(question)
        answer, following = find(answers, key), _next(chosen(answers, show), key)
        typed = Typed(_one(form, "points"), _one(form, "comment"), tuple(form.get("item", ())))
        takes_back = _one(form, "do") == "back"
        items = [item for item in rubric if item.text in typed.items]
        try:
            if len(items) < len(set(typed.items)):
                raise Outdated("the rubric has changed while you were marking: choose again. Nothing was saved")
            if takes_back:
                points, comment = None, ""
            else:
                comment = joined(items, typed.comment.replace("\r\n", "\n"))
                points = self._points(typed, rubric, answer)
            with disk_faults(self.marking.tree):
                self.marking.save(question, key, _one(form, "seen"), points, comment)
        except UserError as error:
            # What was typed stays in the form, beside what is there now.
            return self._answer(self.marking.answers(question), key, show, typed, _sentence(error))
        here = f"{self.base}/q/{quote(question, safe='')}"
        return Reply.to(f"{here}/{following.key}?show={show}" if following else f"{here}?show={show}")

    def _points(self, typed: Typed, rubric: Sequence[Item], answer: Answer) -> float:
        if typed.points.strip():
            return number(typed.points)
        if not rubric or not (typed.items or all(item.points < 0 for item in rubric)):
            raise UserError("there are no points: enter some, 0 included, or choose from the rubric")
        return total(rubric, typed.items, answer.question.max_points)

    def _rubric(self, question: str, items: Sequence[Item], fault: str = "", seen: str = "") -> Reply:
        lines = (*items, *[Item(0.0, "")] * NEW_LINES)
        text = rubric_page(self.base, question, question, lines, seen or _seen(items), fault)
        return Reply.page(text, HTTPStatus.CONFLICT if fault else HTTPStatus.OK)

    def _save_rubric(self, question: str, form: Form) -> Reply:
        kept = self._items(question)
        self.marking.answers(question)
        lines = list(zip(form.get("points", ()), form.get("text", ()), strict=False))
        try:
            items = [Item.read(points, text) for points, text in lines if text.strip()]
        except UserError as error:
            typed = [Item(_points_or_0(points), text) for points, text in lines if text.strip()]
            return self._rubric(question, typed, _sentence(error), _one(form, "seen"))
        if _seen(kept) != _one(form, "seen"):
            fault = (
                "The rubric was changed by someone else meanwhile, to: "
                + "; ".join(f"{item.points:+g} {item.text}" for item in kept)
                + ". Nothing was saved; save again if yours is to replace it."
            )
            return self._rubric(question, items, fault, _seen(kept))
        save_rubric(self.marking.tree, self.marking.lab, question, items)
        return Reply.to(f"{self.base}/q/{quote(question, safe='')}")

    def _static(self, names: Sequence[str]) -> Reply:
        if names == ["marking.js"]:
            return Reply(script().encode(), _TYPES[".js"])
        if names == ["marking.css"]:
            return Reply(style().encode(), _TYPES[".css"])
        folder = (self.root / "book" / "_static" / "mathjax").resolve()
        path = folder.joinpath(*names[1:]).resolve()
        if names[:1] == ["mathjax"] and path.is_relative_to(folder) and path.is_file() and path.suffix in _TYPES:
            return Reply(path.read_bytes(), _TYPES[path.suffix])
        raise UnknownName(f"there is no file {'/'.join(names)!r}: formulas need book/_static/mathjax")


class _Handler(BaseHTTPRequestHandler):
    server: "MarkingServer"
    timeout = 30
    server_version, sys_version = "mlsys", ""

    def do_GET(self) -> None:
        self._answer(None)

    def do_POST(self) -> None:
        origin = self.headers.get("Origin")
        size = self.headers.get("Content-Length", "")
        if origin is not None and urlsplit(origin).netloc not in self.server.hosts:
            self._send(Reply(b"not from this page", "text/plain", HTTPStatus.FORBIDDEN))
        elif not size.isdecimal() or int(size) > MAX_BODY_BYTES:
            self._send(Reply(b"the form is too large", "text/plain", HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
        else:
            body = self.rfile.read(int(size)).decode(errors="replace")
            self._answer(parse_qs(body, keep_blank_values=True, max_num_fields=1000))

    def _answer(self, form: Form | None) -> None:
        address = urlsplit(self.path)
        _, token, *parts = (unquote(part) for part in address.path.split("/"))
        site = self.server.site
        known = self.headers.get("Host") in self.server.hosts
        if not (known and hmac.compare_digest(token.encode(), site.token.encode())):
            self._send(Reply(b"not found", "text/plain", HTTPStatus.NOT_FOUND))
            return
        show = parse_qs(address.query).get("show", ["open"])[0]
        show = show if show in SHOWN else "open"
        with self.server.one_at_a_time:
            try:
                with disk_faults(site.marking.tree):
                    reply = site.get(parts, show) if form is None else site.post(parts, show, form)
            except UnknownName as error:
                reply = Reply.page(fault_page(site.base, _sentence(error)), HTTPStatus.NOT_FOUND)
            except UserError as error:
                reply = Reply.page(fault_page(site.base, _sentence(error)), HTTPStatus.INTERNAL_SERVER_ERROR)
            except Exception:
                said = "This should not happen; the terminal in which mlsys mark runs shows what did."
                self._send(Reply.page(fault_page(site.base, said), HTTPStatus.INTERNAL_SERVER_ERROR))
                raise
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        headers = {
            "Content-Type": reply.kind,
            "Content-Length": str(len(reply.body)),
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }
        if reply.location:
            headers["Location"] = reply.location
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: Any) -> None:
        """Say nothing: the addresses hold the token."""


class MarkingServer(ThreadingHTTPServer):
    """The server; a request is answered while the others wait, so that marks come in one after the other."""

    daemon_threads = True

    def __init__(self, site: Site, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.site = site
        self.one_at_a_time = threading.Lock()
        self.hosts = (f"127.0.0.1:{self.server_port}", f"localhost:{self.server_port}")

    @property
    def address(self) -> str:
        """The address of the first page."""
        return f"http://{self.hosts[0]}{self.site.base}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that went away; anything else is shown as usual."""
        if not isinstance(sys.exception(), (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


def _one(form: Form, name: str) -> str:
    return form.get(name, [""])[0]


def _next(listed: Sequence[Answer], key: str) -> Answer | None:
    return next((one for one in listed if one.key > key), None)


def _seen(items: Sequence[Item]) -> str:
    return digest(*(part for item in items for part in (str(item.points), item.text)))


def _points_or_0(text: str) -> float:
    try:
        return number(text)
    except UserError:
        return 0.0


def _sentence(error: UserError) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
