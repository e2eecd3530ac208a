"""Who somebody is: tokens that the instructor hands out, and the sessions that follow from them.

A token is 192 random bits. The database holds its SHA-256 digest, so whoever reads that cannot log in, and a token that
was made up fits none.
"""

import hashlib
import secrets
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

from mlsys.errors import UserError
from mlsys.submit.queue import Login, Queue

STUDENT, ASSISTANT, INSTRUCTOR = "student", "assistant", "instructor"
"""What a person may do: hand in; mark; mark and see the whole queue."""
ROLES = (STUDENT, ASSISTANT, INSTRUCTOR)
TOKEN, SESSION = "token", "session"
SESSION_LIFE = timedelta(days=7)
"""How long a browser stays logged in; never longer than the token by which it did."""
MAX_LENGTH = 200
"""Longest text that is looked up as a token, in characters."""


class NotLoggedIn(UserError):
    """A token or a session that lets nobody in; the message says why."""


def new_token(queue: Queue, person: str, role: str, expires: datetime) -> str:
    """Return a new token of a person; it is nowhere else, so it cannot be shown again."""
    token = secrets.token_urlsafe(24)
    queue.save_login(_digest(token), TOKEN, Login(person, role, expires))
    return token


def without_token(queue: Queue, people: Collection[str], now: datetime) -> list[str]:
    """Return those of `people` who have no token that is valid."""
    have = {login.person for login in queue.logins(TOKEN) if login.expires > now}
    return [person for person in people if person not in have]


def check_token(queue: Queue, token: str, now: datetime | None = None) -> Login:
    """Return whose token it is.

    Raises:
        NotLoggedIn: it is nobody's, or it has expired.
    """
    now = now or datetime.now(UTC)
    text = token.strip()
    login = queue.login(_digest(text), TOKEN) if 0 < len(text) <= MAX_LENGTH else None
    if login is None:
        raise NotLoggedIn("this token is not one of this course: copy it whole, or ask your instructor for a new one")
    if login.expires <= now:
        raise NotLoggedIn(
            f"this token expired on {login.expires:%Y-%m-%d %H:%M} UTC: ask your instructor for a new one"
        )
    return login


def new_session(queue: Queue, login: Login, now: datetime | None = None) -> str:
    """Return the secret of a new session, for a browser's cookie."""
    secret = secrets.token_urlsafe(24)
    expires = min(login.expires, (now or datetime.now(UTC)) + SESSION_LIFE)
    queue.save_login(_digest(secret), SESSION, Login(login.person, login.role, expires))
    return secret


def check_session(queue: Queue, secret: str, now: datetime | None = None) -> Login | None:
    """Return whose session it is, or None if it is nobody's or has expired."""
    login = queue.login(_digest(secret), SESSION) if 0 < len(secret) <= MAX_LENGTH else None
    return login if login and login.expires > (now or datetime.now(UTC)) else None


def end_session(queue: Queue, secret: str) -> None:
    """Forget a session."""
    queue.forget(secret=_digest(secret))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()
