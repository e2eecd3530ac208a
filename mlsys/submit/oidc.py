"""Login through an institution's OpenID provider: the authorization code flow with PKCE (OpenID Connect Core 1.0).

Authlib speaks with the provider, joserfc checks its token: signature, issuer, audience, times and nonce. Who the token
names is then looked up in the roster; whoever is not in it is not let in.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import requests
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from mlsys.classroom.students.identity import Person, find
from mlsys.classroom.students.roster import Roster, Student
from mlsys.errors import UserError
from mlsys.receipt import CLOCK_TOLERANCE
from mlsys.submit.settings import Oidc
from mlsys.submit.tokens import NotLoggedIn

MAX_LOGIN = timedelta(minutes=10)
"""How long somebody may take at the institution's login."""
MAX_BEGUN = 10_000
"""Most logins that are under way; the oldest are forgotten."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA")
"""Signatures that a token may have: none with a shared secret, and never "none"."""
TIMEOUT_S = 10


@dataclass(frozen=True)
class _Begun:
    nonce: str
    verifier: str
    at: datetime


@dataclass
class Provider:
    """An institution's provider.

    Args:
        settings: where it is, and what this service is called there.
        secret: the client's.
        redirect: address to which it sends people back.
    """

    settings: Oidc
    secret: str
    redirect: str
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _begun: dict[str, _Begun] = field(default_factory=dict)
    _about: dict[str, Any] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The host of the login, for people to read."""
        return urlsplit(self.settings.issuer).netloc

    def begin(self) -> tuple[str, str]:
        """Return the address to which a browser goes to log in, and the state that comes back with it.

        Raises:
            UserError: the provider does not answer.
        """
        now = self.clock()
        for state in [state for state, one in self._begun.items() if one.at < now - MAX_LOGIN]:
            del self._begun[state]
        while len(self._begun) >= MAX_BEGUN:
            del self._begun[next(iter(self._begun))]
        begun = _Begun(secrets.token_urlsafe(24), secrets.token_urlsafe(48), now)
        about = self._configuration()
        with self._client() as client:
            address, state = client.create_authorization_url(
                about["authorization_endpoint"], nonce=begun.nonce, code_verifier=begun.verifier
            )
        self._begun[state] = begun
        return str(address), str(state)

    def end(self, state: str, code: str, roster: Roster) -> Student:
        """Return the student whom the provider names.

        Args:
            state: what `begin` returned, as it came back from the same browser.
            code: what the provider gave the browser.
            roster: who may be let in.

        Raises:
            NotLoggedIn: the login was not begun here, took too long, or names nobody of the roster.
            UserError: the provider does not answer.
        """
        begun = self._begun.pop(state, None)
        if begun is None or begun.at < self.clock() - MAX_LOGIN:
            raise NotLoggedIn("this login was not begun here, or took too long: begin again")
        about = self._configuration()
        try:
            with self._client() as client:
                token = client.fetch_token(
                    about["token_endpoint"],
                    grant_type="authorization_code",
                    code=code,
                    redirect_uri=self.redirect,
                    code_verifier=begun.verifier,
                )
                keys = (client.request("GET", about["jwks_uri"], withhold_token=True)).json()
            claims = self._checked(str(token.get("id_token", "")), KeySet.import_key_set(keys), begun.nonce)
        except (AuthlibBaseError, JoseError, ValueError, KeyError) as error:
            raise NotLoggedIn(f"the login at {self.host} did not confirm who you are ({error}): begin again") from error
        except requests.RequestException as error:
            raise self._unreachable(error) from error
        return self._student(claims, roster)

    def _checked(self, token: str, keys: KeySet, nonce: str) -> dict[str, Any]:
        """Return what a token says, after all that makes it worth believing."""
        claims = jwt.decode(token, keys, algorithms=list(ALGORITHMS)).claims
        registry = jwt.JWTClaimsRegistry(
            now=int(self.clock().timestamp()),
            leeway=int(CLOCK_TOLERANCE.total_seconds()),
            iss={"essential": True, "value": self.settings.issuer},
            aud={"essential": True, "value": self.settings.client_id},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        registry.validate(claims)
        if claims["iat"] > self.clock().timestamp() + CLOCK_TOLERANCE.total_seconds():
            raise ValueError("its token is of the future: its clock or this machine's is wrong")
        audience = claims["aud"]
        if isinstance(audience, list) and len(audience) > 1 and claims.get("azp") != self.settings.client_id:
            raise ValueError("its token is for another service")
        return dict(claims)

    def _student(self, claims: dict[str, Any], roster: Roster) -> Student:
        said = claims.get(self.settings.claim)
        if not isinstance(said, str) or not said:
            raise NotLoggedIn(
                f"the login at {self.host} does not say your {self.settings.claim}: tell your instructor, or use your "
                "token"
            )
        if self.settings.claim == "email" and claims.get("email_verified") is False:
            raise NotLoggedIn(f"the login at {self.host} has not verified your address {said}: use your token")
        match = find(Person(sis_login_id=said, student=said), roster.students.values())
        if match.student is None:
            raise NotLoggedIn(f"nobody in the roster of this course is {said}: tell your instructor, or use your token")
        return match.student

    def _configuration(self) -> dict[str, Any]:
        if not self._about:
            address = self.settings.issuer.rstrip("/") + "/.well-known/openid-configuration"
            try:
                reply = requests.get(address, timeout=TIMEOUT_S)
                reply.raise_for_status()
                found = reply.json()
                if found["issuer"] != self.settings.issuer:
                    raise UserError(f"{address} names the issuer {found['issuer']}: enter that one in settings.toml")
                self._about = {name: found[name] for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")}
            except (requests.RequestException, ValueError, KeyError, TypeError) as error:
                raise self._unreachable(error) from error
        return self._about

    def _client(self) -> OAuth2Session:
        return OAuth2Session(
            self.settings.client_id,
            self.secret,
            scope=self.settings.scope,
            redirect_uri=self.redirect,
            code_challenge_method="S256",
            default_timeout=TIMEOUT_S,
        )

    def _unreachable(self, error: Exception) -> UserError:
        return UserError(
            f"the login at {self.host} does not answer as an OpenID provider ({error}): use your token for now"
        )
