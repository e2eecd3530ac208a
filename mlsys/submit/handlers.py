"""What answers at each address: for students, for whoever logs in, and for those who teach.

Several people may mark at once. Of several marks of one answer the newest holds, as in the gradebook, and every mark is
kept with its marker, so that nobody's work is lost and everybody sees where two people differ.
"""

import json
import secrets
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from urllib.parse import unquote

from tornado.ioloop import IOLoop
from tornado.web import HTTPError

from mlsys.classroom.gradebook.record_results import disk_faults
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.reader import MAX_BYTES
from mlsys.classroom.marking.answers import Marking, find
from mlsys.classroom.marking.pages import SHOWN
from mlsys.classroom.marking.server import Form, Reply, Site
from mlsys.classroom.store.configured import store_of
from mlsys.course.term import present_term
from mlsys.errors import UnknownName
from mlsys.submit import pages
from mlsys.submit.board import Race, pseudonyms, races
from mlsys.submit.desk import Answer, Refused
from mlsys.submit.queue import OPEN, Given, HandIn, Login
from mlsys.submit.tokens import INSTRUCTOR, SESSION_LIFE, STUDENT, NotLoggedIn, end_session, new_session
from mlsys.submit.web import COOKIE, STATE_COOKIE, Page, sentence, status_of

NEWEST = 50
"""Most hand-ins that the page lists."""


class Labs(Page):
    """A page about labs, as a student sees them."""

    def view(self, name: str) -> pages.LabView:
        """Return what the student sees of a lab."""
        student, settings = self.who.person, self.service.desk.settings
        hand_ins = self.service.desk.queue.hand_ins(name, student)[::-1]
        feedback = name in settings.feedback and self.service.tree.feedback(name, student).is_file()
        title, due = self.service.lab(name).title, self.service.due(student, name)
        return pages.LabView(name, title, due, hand_ins, feedback, name in settings.race_boards)


class Home(Labs):
    """The labs of a student; people who teach go on to their page."""

    async def get(self) -> None:
        """Show them."""
        await self.answer(self._get)

    async def _get(self) -> None:
        if self.who.role != STUDENT:
            self.redirect("/staff")
            return
        views = [await self.reading(self.view, name) for name in self.service.labs]
        self.page(pages.home_page(self.visitor, views))


class LabPage(Labs):
    """One lab: the form for handing in, and what was handed in."""

    max_bytes = MAX_BYTES + 100_000  # what a form adds

    async def get(self, name: str) -> None:
        """Show it."""
        await self.answer(partial(self._show, name))

    async def post(self, name: str) -> None:
        """Take a file in."""
        await self.answer(partial(self._take, name))

    async def _show(self, name: str, fault: str = "") -> None:
        view = await self.reading(self.view, self.service.lab(name).name)
        hidden = self.service.desk.settings.hidden_tests_per_day
        self.page(pages.lab_page(self.visitor, view, most_bytes=MAX_BYTES, hidden_a_day=hidden, fault=fault))

    async def _take(self, name: str) -> None:
        try:
            data, hidden = self.upload()
            answer = await self.hand_in(name, data, hidden=hidden)
        except Refused as error:
            self.set_status(status_of(error))
            await self._show(name, sentence(error))
            return
        if answer.notes:
            self.set_cookie("mlsys_notes", json.dumps(answer.notes).encode().hex(), path="/hand-in", httponly=True)
        self.redirect(f"/hand-in/{answer.receipt.number}", status=HTTPStatus.SEE_OTHER)

    async def hand_in(self, name: str, data: bytes, *, hidden: bool) -> Answer:
        """Take a student's file in.

        Raises:
            UserError: whoever asks is no student, or the file is refused.
        """
        lab = self.service.lab(name).name
        if self.who.role != STUDENT:
            raise Refused("only students hand in: log in with a student's token")
        term = present_term(self.service.tree)
        return await self.writing(self.service.desk.hand_in, self.who.person, lab, data, hidden=hidden, term=term)


class ApiHandIn(LabPage):
    """Handing in from a notebook: the body is the file."""

    max_bytes = MAX_BYTES

    async def _take(self, name: str) -> None:
        hidden = self.get_query_argument("hidden", "") == "yes"
        answer = await self.hand_in(name, bytes(self._body), hidden=hidden)
        receipt = answer.receipt
        self.set_status(HTTPStatus.CREATED)
        self.finish(
            {
                "receipt": json.loads(receipt.to_json()),
                "notes": answer.notes,
                "key": self.service.desk.signer.public_key,
                "page": f"{self.service.address}/hand-in/{receipt.number}",
                "now": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )

    async def get(self, _: str) -> None:
        """Refuse: there is nothing to show."""
        raise HTTPError(HTTPStatus.NOT_FOUND)


class OneHandIn(Page):
    """A hand-in that somebody may see: the student whose it is, and the instructor."""

    async def one(self, number: str) -> HandIn:
        """Return it.

        Raises:
            UnknownName: there is none, or it is somebody else's, which is not told apart.
        """
        found = await self.reading(self.service.desk.queue.hand_in, int(number))
        if self.who.role != INSTRUCTOR and (self.who.role, self.who.person) != (STUDENT, found.student):
            raise UnknownName(f"there is no hand-in {number}")
        return found


class HandInPage(OneHandIn):
    """One hand-in: its receipt and its verdicts."""

    async def get(self, number: str) -> None:
        """Show it."""
        await self.answer(partial(self._show, number))

    async def _show(self, number: str) -> None:
        one = await self.one(number)
        place = await self.reading(self.service.desk.queue.place, one.number) if one.state in OPEN else 0
        notes: Sequence[str] = ()
        if kept := self.get_cookie("mlsys_notes"):
            self.clear_cookie("mlsys_notes", path="/hand-in")
            notes = _notes(kept)
        page = partial(pages.hand_in_page, late=self.service.late(one), key=self.service.desk.signer.public_key)
        lab = await self.reading(released_lab, self.service.tree, one.lab)
        self.page(page(self.visitor, one, lab, place=place, notes=notes))


class ReceiptFile(OneHandIn):
    """The file of a receipt."""

    async def get(self, number: str) -> None:
        """Send it."""
        await self.answer(partial(self._send, number))

    async def _send(self, number: str) -> None:
        one = await self.one(number)
        self.set_header("Content-Type", "application/json")
        self.set_header("Content-Disposition", f'attachment; filename="receipt-{one.lab}-{one.number}.json"')
        self.finish(one.receipt)


class ApiState(OneHandIn):
    """The state of a hand-in, and its verdicts once there are any."""

    async def get(self, number: str) -> None:
        """Send it."""
        await self.answer(partial(self._send, number))

    async def _send(self, number: str) -> None:
        one = await self.one(number)
        place = await self.reading(self.service.desk.queue.place, one.number) if one.state in OPEN else 0
        words = pages.STATES[one.state] + (f", at place {place}" if place else "")
        verdicts = {each.question: each.verdict for each in one.found.questions} if one.found else {}
        refused = one.found.refused if one.found else ""
        self.finish({"state": one.state, "place": place, "words": words, "verdicts": verdicts, "refused": refused})


class Feedback(Page):
    """A student's own feedback page, once the instructor lets it be seen."""

    async def get(self, lab: str) -> None:
        """Show it."""
        await self.answer(partial(self._show, lab))

    async def _show(self, lab: str) -> None:
        path = self.service.tree.feedback(self.service.lab(lab).name, self.who.person)
        if lab not in self.service.desk.settings.feedback or self.who.role != STUDENT or not path.is_file():
            raise UnknownName(f"there is no feedback on {lab} yet")
        self.page(await self.reading(path.read_text, encoding="utf-8", errors="replace"))


class Board(Page):
    """The race board of a lab, where the instructor has switched it on."""

    async def get(self, lab: str) -> None:
        """Show it."""
        await self.answer(partial(self._show, lab))

    async def _show(self, lab: str) -> None:
        if lab not in self.service.desk.settings.race_boards:
            raise UnknownName(f"there is no race board of {lab}")
        title = self.service.lab(lab).title
        names = pseudonyms(self.service.tree.secret(), lab, list(self.service.roster.students))
        found = await self.reading(self._races, lab, names)
        self.page(pages.board_page(self.visitor, title, lab, found, names.get(self.who.person, "")))

    def _races(self, lab: str, names: dict[str, str]) -> list[Race]:
        graded = store_of(self.service.tree).records(lab)
        found = [(student, record.questions) for student, record in graded.items() if record]
        found += [(one.student, one.found.questions) for one in self.service.desk.queue.hand_ins(lab) if one.found]
        return races(found, names)


class LogIn(Page):
    """Login by token."""

    open_to_all = True

    async def get(self) -> None:
        """Show the form."""
        await self.answer(self._show)

    async def post(self) -> None:
        """Log somebody in."""
        await self.answer(self._log_in)

    async def _show(self) -> None:
        self.page(pages.login_page(self.service.provider.host if self.service.provider else ""))

    async def _log_in(self) -> None:
        await self.let_in(await self.by_token(self.form().get("token", [""])[0]))

    async def let_in(self, login: Login) -> None:
        """Begin a session, and go on to the labs."""
        secret = await self.writing(new_session, self.service.desk.queue, login)
        self.keep(COOKIE, secret, SESSION_LIFE.total_seconds())
        self.redirect("/", status=HTTPStatus.SEE_OTHER)

    def keep(self, name: str, value: str, seconds: float) -> None:
        """Set a cookie that no script reads and no other site sends along."""
        secure = self.service.address.startswith("https:")
        self.set_cookie(name, value, httponly=True, samesite="Lax", secure=secure, max_age=int(seconds))


class LogOut(Page):
    """The end of a session."""

    async def post(self) -> None:
        """End it."""
        await self.answer(self._log_out)

    async def _log_out(self) -> None:
        await self.writing(end_session, self.service.desk.queue, self.get_cookie(COOKIE, "") or "")
        self.clear_cookie(COOKIE)
        self.redirect("/login", status=HTTPStatus.SEE_OTHER)


class BeginOidc(LogIn):
    """The way to the institution's login."""

    async def get(self) -> None:
        """Send the browser there."""
        await self.answer(self._send)

    async def _send(self) -> None:
        if self.service.provider is None:
            raise UnknownName("this course has no login through an institution: use your token")
        address, state = await self.reading(self.service.provider.begin)
        self.keep(STATE_COOKIE, state, 600)
        self.redirect(address)


class EndOidc(LogIn):
    """The way back from the institution's login."""

    async def get(self) -> None:
        """Let in whom it names."""
        await self.answer(self._end)

    async def _end(self) -> None:
        provider, state = self.service.provider, self.get_query_argument("state", "")
        if provider is None:
            raise UnknownName("this course has no login through an institution: use your token")
        # Else somebody could be logged in as somebody else, by an address from a mail.
        if not secrets.compare_digest((self.get_cookie(STATE_COOKIE, "") or "").encode(), state.encode()):
            raise NotLoggedIn("this login was begun in another browser: begin again in this one")
        self.clear_cookie(STATE_COOKIE)
        if fault := self.get_query_argument("error", ""):
            raise NotLoggedIn(
                f"the login at {provider.host} did not let you in ({fault[:80]}): begin again, or use your token"
            )
        student = await self.reading(provider.end, state, self.get_query_argument("code", ""), self.service.roster)
        await self.let_in(Login(student.id, STUDENT, datetime.now(UTC) + SESSION_LIFE))


class Key(Page):
    """The public key, for everybody."""

    open_to_all = True

    async def get(self) -> None:
        """Send it."""
        await self.answer(self._send)

    async def _send(self) -> None:
        self.set_header("Content-Type", "text/plain")
        self.finish(self.service.desk.signer.public_key + "\n")


class Static(Page):
    """The style sheet and the script."""

    open_to_all = True

    async def get(self, name: str) -> None:
        """Send one."""
        await self.answer(partial(self._send, name))

    async def _send(self, name: str) -> None:
        kind, text = {"queue.css": ("text/css", pages.style), "queue.js": ("text/javascript", pages.script)}[name]
        self.set_header("Content-Type", f"{kind}; charset=utf-8")
        self.finish(text())


class Staff(Page):
    """A page of those who teach; for students there is no such page."""

    def check_role(self) -> None:
        """Keep students out.

        Raises:
            UnknownName: a student asks.
        """
        if self.who.role == STUDENT:
            raise UnknownName("this address has no page")


class StaffPage(Staff):
    """The state of the queue."""

    async def get(self) -> None:
        """Show it."""
        await self.answer(self._show)

    async def _show(self) -> None:
        self.check_role()
        counts: defaultdict[str, dict[str, int]] = defaultdict(dict, {lab: {} for lab in self.service.labs})
        queue = self.service.desk.queue
        for (lab, state), count in (await self.reading(queue.counts)).items():
            counts[lab][state] = count
        newest = (await self.reading(queue.hand_ins))[: -NEWEST - 1 : -1] if self.who.role == INSTRUCTOR else []
        several = {lab: len(pages.marked_by_several(await self.reading(queue.marks, lab))) for lab in counts}
        self.page(pages.staff_page(self.visitor, counts, newest, several))


class MarksPage(Staff):
    """The answers to which several people gave marks."""

    async def get(self, lab: str) -> None:
        """Show them."""
        await self.answer(partial(self._show, lab))

    async def _show(self, lab: str) -> None:
        self.check_role()
        given = await self.reading(self.service.desk.queue.marks, self.service.lab(lab).name)
        self.page(pages.marks_page(self.visitor, lab, pages.marked_by_several(given)))


class MarkingPages(Staff):
    """The marking pages of `mlsys mark`, for everybody who may mark."""

    async def get(self, lab: str, rest: str) -> None:
        """Show one."""
        await self.answer(partial(self._do, lab, rest, None))

    async def post(self, lab: str, rest: str) -> None:
        """Save a mark or a rubric."""
        await self.answer(partial(self._do, lab, rest, self.form()))

    async def _do(self, lab: str, rest: str, form: Form | None) -> None:
        self.check_role()
        name = self.service.lab(lab).name
        show = self.get_query_argument("show", "open")
        parts = [unquote(part) for part in rest.split("/")]
        work = partial(self._reply, name, parts, show if show in SHOWN else "open", form)
        reply = await IOLoop.current().run_in_executor(self.service.marking, work)
        self.set_status(reply.status)
        self.set_header("Content-Type", reply.kind)
        if reply.location:
            self.set_header("Location", reply.location)
        self.finish(reply.body)

    def _reply(self, lab: str, parts: list[str], show: str, form: Form | None) -> Reply:
        marking = Marking(self.service.tree, store_of(self.service.tree), lab)
        site = Site(marking, self.service.root, token=f"mark/{lab}")
        with disk_faults(self.service.tree):
            if form is None:
                return site.get(parts, show)
            reply = site.post(parts, show, form)
            match parts:
                case ["q", question, key] if key != "rubric" and reply.status == HTTPStatus.SEE_OTHER:
                    now = find(marking.answers(question), key)
                    given = Given(question, key, self.who.person, now.points, now.comment, datetime.now(UTC))
                    self.service.desk.queue.save_mark(lab, given)
            return reply


def _notes(kept: str) -> list[str]:
    try:
        return [str(note)[:500] for note in json.loads(bytes.fromhex(kept))][:5]
    except ValueError:
        return []
