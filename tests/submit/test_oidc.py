"""Login through an institution, against a real OpenID provider that knows nothing of our checks."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import oidc_provider_mock
import pytest
from joserfc import jwk, jwt

from mlsys.errors import UserError
from mlsys.submit.oidc import Provider
from mlsys.submit.settings import Oidc
from mlsys.submit.tokens import NotLoggedIn

from .conftest import Client, Course, Served, serving


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """A provider that lets anybody log in as anybody."""
    with oidc_provider_mock.run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


def know(issuer: str, person: str, **claims: Any) -> None:
    body = json.dumps(claims).encode()
    address = f"{issuer}/users/{urllib.parse.quote(person)}"
    urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": "application/json"}, method="PUT"))


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def log_in_there(address: str, person: str) -> str:
    """Log in at the provider as a person does, and return the address to which it sends the browser back."""
    form = urllib.parse.urlencode({"sub": person}).encode()
    try:
        urllib.request.build_opener(_Stay).open(address, form)
    except urllib.error.HTTPError as error:
        return str(error.headers["Location"])
    raise AssertionError("the provider did not send back")


@pytest.fixture
def institution(course: Course, issuer: str) -> Iterator[Served]:
    with serving(course) as running:
        redirect = f"http://127.0.0.1:{running.port}/oidc/callback"
        running.service.provider = Provider(Oidc(issuer, "mlsys"), "secret", redirect)
        yield running


def began(served: Served) -> tuple[Client, str]:
    browser = Client(served.port)
    status, _, headers = browser.send("GET", "/oidc/login")
    assert status == 302
    return browser, headers["Location"]


def back(browser: Client, address: str) -> tuple[int, str]:
    parts = urllib.parse.urlsplit(address)
    return browser.get(f"{parts.path}?{parts.query}")


def test_who_the_institution_names_is_let_in_as_the_student_of_the_roster(institution: Served, issuer: str) -> None:
    know(issuer, "u1", email="ANN@example.edu", email_verified=True)
    browser, there = began(institution)
    status, _ = back(browser, log_in_there(there, "u1"))
    assert status == 303
    assert "Ann Baker" in browser.get("/")[1]
    assert "log in through localhost" in Client(institution.port).get("/login")[1]


def test_who_is_not_in_the_roster_stays_outside(institution: Served, issuer: str) -> None:
    know(issuer, "u2", email="eve@example.edu")
    browser, there = began(institution)
    status, text = back(browser, log_in_there(there, "u2"))
    assert (status, "roster of this course is eve@example.edu" in text) == (401, True)
    know(issuer, "u3", email="ann@example.edu", email_verified=False)
    browser, there = began(institution)
    status, text = back(browser, log_in_there(there, "u3"))
    assert (status, "has not verified your address" in text) == (401, True)
    know(issuer, "u4", name="Ann Baker")
    browser, there = began(institution)
    assert "does not say your email" in back(browser, log_in_there(there, "u4"))[1]


def test_a_login_is_good_once_in_its_own_browser_and_for_a_while(institution: Served, issuer: str) -> None:
    know(issuer, "u1", email="ann@example.edu")
    browser, there = began(institution)
    answer = log_in_there(there, "u1")
    status, text = back(Client(institution.port), answer)  # the victim of a link in a mail
    assert (status, "another browser" in text) == (401, True)
    kept = dict(browser.cookies)
    assert back(browser, answer)[0] == 303
    status, text = back(Client(institution.port, cookies=kept), answer)
    assert (status, "not begun here" in text) == (401, True)
    browser, there = began(institution)
    provider = institution.service.provider
    assert provider is not None
    provider.clock = lambda: datetime.now(UTC) + timedelta(minutes=11)
    assert "took too long" in back(browser, log_in_there(there, "u1"))[1]


def test_a_forged_code_and_a_refusal_are_sentences(institution: Served) -> None:
    browser, there = began(institution)
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(there).query)["state"][0]
    status, text = browser.get(f"/oidc/callback?state={state}&code=forged")
    assert (status, "did not confirm who you are" in text) == (401, True)
    browser, there = began(institution)
    state = urllib.parse.parse_qs(urllib.parse.urlsplit(there).query)["state"][0]
    status, text = browser.get(f"/oidc/callback?state={state}&error=access_denied")
    assert (status, "did not let you in (access_denied)" in text) == (401, True)


def test_a_provider_that_is_down_or_another_is_a_sentence(course: Course, issuer: str) -> None:
    with pytest.raises(UserError, match="does not answer as an OpenID provider"):
        Provider(Oidc("http://localhost:1", "mlsys"), "", "http://127.0.0.1/oidc/callback").begin()
    with pytest.raises(UserError, match="names the issuer"):
        Provider(Oidc(issuer + "/", "mlsys"), "", "http://127.0.0.1/oidc/callback").begin()


KEY, OTHER = jwk.RSAKey.generate_key(2048, {"kid": "1"}), jwk.RSAKey.generate_key(2048, {"kid": "1"})
NOW = int(time.time())
GOOD = {"iss": "https://login.example.edu", "aud": "mlsys", "sub": "u1", "exp": NOW + 60, "iat": NOW, "nonce": "n"}


@pytest.mark.parametrize(
    ("changes", "key", "head"),
    [
        ({"exp": NOW - 400}, KEY, {"alg": "RS256"}),
        ({"iat": NOW + 400}, KEY, {"alg": "RS256"}),
        ({"iss": "https://evil.example"}, KEY, {"alg": "RS256"}),
        ({"aud": "another"}, KEY, {"alg": "RS256"}),
        ({"aud": ["mlsys", "another"]}, KEY, {"alg": "RS256"}),
        ({"nonce": "other"}, KEY, {"alg": "RS256"}),
        ({"nonce": None}, KEY, {"alg": "RS256"}),
        ({}, OTHER, {"alg": "RS256"}),
        ({}, jwk.OctKey.import_key("secret" * 8), {"alg": "HS256"}),
    ],
)
def test_a_token_that_is_forged_old_or_for_another_is_not_believed(changes: Any, key: Any, head: Any) -> None:
    at = datetime.fromtimestamp(NOW, UTC)
    provider = Provider(Oidc("https://login.example.edu", "mlsys"), "secret", "", clock=lambda: at)
    keys = jwk.KeySet([jwk.RSAKey.import_key(KEY.as_dict(private=False))])
    signed = jwt.encode({"alg": "RS256", "kid": "1"}, GOOD, KEY)
    assert provider._checked(signed, keys, "n")["sub"] == "u1"
    claims = {name: value for name, value in (GOOD | changes).items() if value is not None}
    forged = jwt.encode(head | {"kid": "1"}, claims, key, algorithms=["RS256", "HS256"])
    with pytest.raises(Exception) as caught:  # noqa: PT011  joserfc's errors, or ours
        provider._checked(forged, keys, "n")
    assert not isinstance(caught.value, (TypeError, AttributeError, NotLoggedIn)), caught.value


def test_a_clock_that_is_a_little_off_keeps_nobody_out() -> None:
    settings = Oidc("https://login.example.edu", "mlsys")
    keys = jwk.KeySet([KEY])
    for minutes in (-4, 4):
        at = datetime.fromtimestamp(NOW, UTC) + timedelta(minutes=minutes)
        provider = replace(Provider(settings, "", ""), clock=lambda at=at: at)
        assert provider._checked(jwt.encode({"alg": "RS256", "kid": "1"}, GOOD, KEY), keys, "n")["sub"] == "u1"
