"""Receipts for work that was handed in: what, by whom and when, signed by the course, verified without a network.

A receipt names the SHA-256 digest of the file and the time on the course's clock. The course signs it with Ed25519
(RFC 8032), so anybody who has the course's public key can verify it, and only the course can make one.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from mlsys.core.files import write_secret
from mlsys.errors import InvalidValue, UserError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_PREFIX = "ed25519:"
"""Begins the text of a public key."""
CLOCK_TOLERANCE = timedelta(minutes=5)
"""How far two machines' clocks may disagree before a time counts as lying in the future."""
MAX_NOTEBOOK_BYTES = 20_000_000
"""Largest notebook that is taken in, in bytes, wherever it is handed in."""
MAX_BYTES = 10_000
"""Largest file of a receipt, in bytes; one has about 500."""

PUBLIC_KEY_FILE = "receipt-key.pub"
"""Name of the file with the public key, in the folder of the queue."""

_KEY_FILE = "receipt-key.txt"
_SIGNED = b"mlsys receipt 1\n"  # so that a signature under something else is never one under a receipt


class BadReceipt(InvalidValue):
    """A receipt that proves nothing; the message says why."""


class Receipt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the course says about one hand-in.

    Attributes:
        number: of the hand-in, which grows.
        student: who handed in.
        lab: the lab.
        sha256: SHA-256 digest of the file, as `sha256sum` prints it.
        size: of the file, in bytes.
        time: when it came in, on the course's clock, in UTC.
        place: place in the queue at that time; 1 is the next.
        key: short name of the key that signed.
        signature: under all that, in Base64.
    """

    number: int
    student: str
    lab: str
    sha256: str
    size: int
    time: str
    place: int
    key: str
    signature: str = ""

    def __repr__(self) -> str:
        # What a notebook shows below the cell that handed in; the file has the rest.
        return f"Receipt {self.number}: lab {self.lab} of {self.student}, {self.time}"

    @property
    def signed_text(self) -> bytes:
        """The bytes that are signed: everything but the signature, as JSON with sorted keys."""
        fields = msgspec.structs.asdict(self)
        del fields["signature"]
        return _SIGNED + msgspec.json.encode(fields, order="sorted")

    @property
    def when(self) -> datetime:
        """The time as an instant.

        Raises:
            BadReceipt: it is no time with a distance from UTC.
        """
        try:
            time = datetime.fromisoformat(self.time)
        except ValueError as error:
            raise BadReceipt(f"the receipt's time {self.time!r} is no time: it was changed") from error
        if time.utcoffset() is None:
            raise BadReceipt(f"the receipt's time {self.time!r} has no distance from UTC: it was changed")
        return time.astimezone(UTC)

    def to_json(self) -> bytes:
        """Return the receipt as the text of a file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n"


@dataclass(frozen=True)
class Signer:
    """Whoever has this can give receipts in the course's name."""

    _key: "Ed25519PrivateKey"

    @classmethod
    def of_course(cls, folder: Path, *, may_be_new: bool) -> "Signer":
        """Return the signer of a course; its key is made when there is none.

        Args:
            folder: folder of the queue.
            may_be_new: whether a key may be made; not where receipts were given that an earlier key signed.

        Raises:
            UserError: the key is missing or damaged, or cannot be written.
        """
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        path = folder / _KEY_FILE
        try:
            if not path.exists():
                if not may_be_new:
                    raise UserError(
                        f"{path} is missing, and receipts were given that it signed: restore it from a backup, or "
                        "these receipts can no longer be verified"
                    )
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_secret(path, base64.b64encode(Ed25519PrivateKey.generate().private_bytes_raw()).decode() + "\n")
            return cls(Ed25519PrivateKey.from_private_bytes(base64.b64decode(path.read_text().strip(), validate=True)))
        except OSError as error:
            raise UserError(f"{path} cannot be used ({error.strerror}): correct its permissions") from error
        except ValueError as error:
            raise UserError(f"{path} is damaged ({error}): restore it from a backup") from error

    @property
    def public_key(self) -> str:
        """The key by which receipts are verified, for everybody to know."""
        return KEY_PREFIX + base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def signed(self, receipt: Receipt) -> Receipt:
        """Return the receipt with the name of the key and the signature."""
        named = msgspec.structs.replace(receipt, key=key_name(self.public_key), signature="")
        signature = base64.b64encode(self._key.sign(named.signed_text)).decode()
        return msgspec.structs.replace(named, signature=signature)


def parse_receipt(data: bytes) -> Receipt:
    """Return the receipt in the text of a file; nothing is verified yet.

    Raises:
        BadReceipt: it is no receipt.
    """
    if len(data) > MAX_BYTES:
        raise BadReceipt(f"it has {len(data):,} bytes and a receipt has at most {MAX_BYTES:,}: name the receipt's file")
    try:
        return msgspec.json.decode(data, type=Receipt)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReceipt(f"it is no receipt ({error}): name the JSON file that came back for a hand-in") from error


def read_receipt(path: Path) -> Receipt:
    """Return the receipt in a file; nothing is verified yet.

    Raises:
        UserError: it cannot be read, or is no receipt.
    """
    try:
        with path.open("rb") as file:
            return parse_receipt(file.read(MAX_BYTES + 1))
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name the receipt's file") from error
    except BadReceipt as error:
        raise BadReceipt(f"{path}: {error}") from error


def verify(receipt: Receipt, public_key: str, content: bytes | None = None, now: datetime | None = None) -> None:
    """Make sure that the course gave this receipt, and gave it for this file.

    Args:
        receipt: the receipt.
        public_key: the course's, as `mlsys serve` prints it: "ed25519:..."; it must come from the course, not from
            whoever shows the receipt.
        content: the file that was handed in, if it is to be compared.
        now: the present, with time zone.

    Raises:
        BadReceipt: it is forged, changed, of another course or from the future, or the file is another one.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = key_bytes(public_key)
    if receipt.key != key_name(public_key):
        raise BadReceipt(
            f"the receipt names the key {receipt.key[:40]!r}, and yours is {key_name(public_key)}: it is of another "
            "course, or forged"
        )
    try:
        signature = base64.b64decode(receipt.signature, validate=True)
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, receipt.signed_text)
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise BadReceipt("the signature does not fit: the receipt is forged, or was changed after it was given") from (
            error
        )
    if receipt.when > (now or datetime.now(UTC)) + CLOCK_TOLERANCE:
        raise BadReceipt(
            f"the receipt is of {receipt.when:%Y-%m-%d %H:%M} UTC, which is in the future on this machine's clock: set "
            "that right, then verify again"
        )
    if content is not None and sha256(content) != receipt.sha256:
        raise BadReceipt(
            f"the receipt is genuine, but for another file: it names the digest {receipt.sha256[:16]}..., and this "
            f"file has {sha256(content)[:16]}..."
        )


def sha256(content: bytes) -> str:
    """Return the digest of a file as receipts have it.

    >>> sha256(b"")[:16]
    'e3b0c44298fc1c14'
    """
    return hashlib.sha256(content).hexdigest()


def key_bytes(public_key: str) -> bytes:
    """Return the 32 bytes of a public key.

    Raises:
        BadReceipt: it is none.
    """
    text = public_key.strip()
    try:
        raw = base64.b64decode(text.removeprefix(KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not text.startswith(KEY_PREFIX) or len(raw) != 32:
        raise BadReceipt(f"{text[:60]!r} is no public key: copy the course's, which begins with {KEY_PREFIX}")
    return raw


def key_name(public_key: str) -> str:
    """Return the short name of a public key: the first 16 digits of its SHA-256 digest.

    Raises:
        BadReceipt: it is no public key.
    """
    return hashlib.sha256(key_bytes(public_key)).hexdigest()[:16]
