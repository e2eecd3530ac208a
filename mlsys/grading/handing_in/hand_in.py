"""Hand in from the notebook: send it to the course's queue, and keep the receipt beside it."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from getpass import getpass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from mlsys.grading.handing_in.notebook_file import NotHandedIn, notebook_file
from mlsys.receipt import CLOCK_TOLERANCE, MAX_NOTEBOOK_BYTES, Receipt, sha256

ADDRESS, TOKEN = "MLSYS_QUEUE", "MLSYS_TOKEN"
"""Variables of the environment that say where the queue is, and by what token."""
TIMEOUT_S = 60
"""Seconds until the queue must have answered."""


def hand_in(
    address: str = "", token: str = "", *, lab: str = "", notebook: str = "", hidden_tests: bool = False
) -> Receipt:
    """Hand this notebook in, and return the receipt, which is also kept in a file beside the notebook.

    Save the notebook first. Handing in the same file again, for example after a lost connection, gives the same
    receipt.

    Args:
        address: of the course's queue, such as https://queue.example.edu; `MLSYS_QUEUE` of the environment when empty.
        token: yours; `MLSYS_TOKEN` of the environment when empty, or asked for.
        lab: name of the lab; the notebook says it when empty.
        notebook: the notebook's file, where the editor does not tell it.
        hidden_tests: ask for hidden tests too, as often as the course allows.

    Raises:
        UserError: nothing was handed in; the message says why.
    """
    address = (address or os.environ.get(ADDRESS, "")).rstrip("/")
    _check_address(address)
    name, data = notebook_file(notebook)
    if len(data) > MAX_NOTEBOOK_BYTES:
        raise NotHandedIn(
            f"{name} has {len(data) / 1e6:.0f} MB, and the limit is {MAX_NOTEBOOK_BYTES / 1e6:.0f} MB: clear "
            "its outputs, save it, and hand it in again"
        )
    lab = lab or _lab_of(name, data)
    token = token or os.environ.get(TOKEN, "") or getpass("Your token for this course: ")
    reply = _send(f"{address}/api/labs/{quote(lab, safe='')}{'?hidden=yes' if hidden_tests else ''}", token, data)
    try:
        receipt = msgspec.convert(reply["receipt"], Receipt)
        page, now = str(reply["page"]), datetime.fromisoformat(str(reply["now"]))
    except (KeyError, ValueError, TypeError, msgspec.ValidationError) as error:
        raise NotHandedIn(f"{address} answered without a receipt ({error}): hand in on its page") from error
    if receipt.sha256 != sha256(data):
        raise NotHandedIn(f"{address} gave a receipt for another file: hand in again, or on its page")
    path = Path(notebook or ".").parent / f"receipt-{receipt.lab}-{receipt.number}.json"
    path.write_bytes(receipt.to_json())
    when = f"{receipt.when:%Y-%m-%d %H:%M:%S} UTC"
    print(f"Handed in: number {receipt.number}, {when}, place {receipt.place} in the queue.")
    print(f"Receipt: {path}. Verdicts: {page}")
    for note in reply.get("notes", ()):
        print(note)
    skew = _now() - now
    if abs(skew) > CLOCK_TOLERANCE:
        minutes = round(abs(skew).total_seconds() / 60)
        print(f"Your clock is {minutes} minutes {'ahead' if skew > -skew else 'behind'}; the receipt's time counts.")
    return receipt


def _now() -> datetime:
    return datetime.now(UTC)


def _check_address(address: str) -> None:
    """Refuse an address to which a token must not be sent.

    Raises:
        UserError: there is none, or others could read the token on its way.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise NotHandedIn(f"{address!r} is no address: write hand_in('https://...') with that of your course's queue")
    if parts.scheme == "http" and parts.hostname not in ("127.0.0.1", "localhost"):
        raise NotHandedIn(f"others could read your token on its way to {address}: write the address with https://")


def _lab_of(name: str, data: bytes) -> str:
    try:
        return str(json.loads(data)["metadata"]["mlsys"]["lab"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise NotHandedIn(f"{name} does not say of which lab it is: add lab='...'") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # A token goes to the address that was given, and to no other.
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _send(address: str, token: str, data: bytes) -> Mapping[str, Any]:
    host = urlsplit(address).netloc
    headers = {"Authorization": f"Bearer {token.strip()}", "Content-Type": "application/x-ipynb+json"}
    try:
        request = urllib.request.Request(address, data, headers, method="POST")
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S) as reply:
            return dict(json.loads(reply.read()))
    except urllib.error.HTTPError as error:
        try:
            fault = str(json.loads(error.read())["fault"])
        except (ValueError, KeyError, TypeError):
            fault = f"{host} answered with {error.code}"
        raise NotHandedIn(f"nothing was handed in: {fault}") from error
    except (OSError, ValueError) as error:  # also a token that cannot stand in a header
        raise NotHandedIn(
            f"{host} could not be reached ({error}), so nothing was handed in, as far as this notebook knows: try "
            "again; if it had come in, you get the same receipt"
        ) from error
