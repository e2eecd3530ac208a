"""Receipts: signed by the course alone, verified offline, and worth nothing once anything in them is changed."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from mlsys.cli.main import main
from mlsys.errors import UserError
from mlsys.receipt import BadReceipt, Receipt, Signer, key_bytes, parse_receipt, read_receipt, sha256, verify

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def receipt(**changes: object) -> Receipt:
    fields = {
        "number": 7,
        "student": "ann",
        "lab": "tiling",
        "sha256": sha256(b"file"),
        "size": 4,
        "place": 3,
        "key": "",
    }
    return Receipt(**(fields | {"time": NOW.isoformat(timespec="milliseconds")} | changes))


@pytest.fixture
def signer(tmp_path: Path) -> Signer:
    return Signer.of_course(tmp_path / "queue", may_be_new=True)


def test_a_signed_receipt_is_verified_and_the_key_stays_the_same(signer: Signer, tmp_path: Path) -> None:
    signed = parse_receipt(signer.signed(receipt()).to_json())
    verify(signed, signer.public_key, b"file", NOW)
    again = Signer.of_course(tmp_path / "queue", may_be_new=False)
    verify(signed, again.public_key, now=NOW)
    assert (tmp_path / "queue" / "receipt-key.txt").stat().st_mode & 0o777 == 0o600


def test_openssl_verifies_it_too(signer: Signer, tmp_path: Path) -> None:
    # An implementation that shares nothing with ours but the text that is signed.
    import base64

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signed = signer.signed(receipt())
    public = Ed25519PublicKey.from_public_bytes(key_bytes(signer.public_key))
    (tmp_path / "key.pem").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    fields = {name: value for name, value in json.loads(signed.to_json()).items() if name != "signature"}
    text = "mlsys receipt 1\n" + json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    (tmp_path / "text").write_text(text)
    (tmp_path / "signature").write_bytes(base64.b64decode(signed.signature))
    words = "openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in text -sigfile signature".split()
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    if "unknown option" in done.stderr.lower():
        pytest.skip("this openssl does not verify Ed25519")
    assert done.returncode == 0, done.stderr + done.stdout


CHANGED = {
    "number": 8,
    "student": "bob",
    "lab": "roofline",
    "sha256": sha256(b"other"),
    "size": 5,
    "time": "2026-11-19T12:00:00.000+00:00",
    "place": 1,
    "signature": "AAAA",
}


@pytest.mark.parametrize("name", CHANGED)
def test_whatever_is_changed_makes_it_worthless(signer: Signer, name: str) -> None:
    forged = msgspec.structs.replace(signer.signed(receipt()), **{name: CHANGED[name]})
    with pytest.raises(BadReceipt, match="signature does not fit"):
        verify(forged, signer.public_key, now=NOW)


def test_a_receipt_of_another_course_and_one_for_another_file_are_told_apart(signer: Signer, tmp_path: Path) -> None:
    other = Signer.of_course(tmp_path / "other", may_be_new=True)
    with pytest.raises(BadReceipt, match="of another course, or forged"):
        verify(other.signed(receipt()), signer.public_key, now=NOW)
    with pytest.raises(BadReceipt, match="genuine, but for another file"):
        verify(signer.signed(receipt()), signer.public_key, b"another file", NOW)


def test_a_time_in_the_future_is_a_clock_that_is_wrong(signer: Signer) -> None:
    later = signer.signed(receipt(time=(NOW + timedelta(minutes=6)).isoformat()))
    with pytest.raises(BadReceipt, match="in the future on this machine's clock"):
        verify(later, signer.public_key, now=NOW)
    verify(later, signer.public_key, now=NOW + timedelta(minutes=2))


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
def test_bytes_that_are_no_receipt_end_in_a_sentence(data: bytes) -> None:
    with pytest.raises(BadReceipt, match="it is no receipt"):
        parse_receipt(data)


def test_a_lost_key_is_never_replaced_in_silence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="restore it from a backup"):
        Signer.of_course(tmp_path, may_be_new=False)


def test_the_command_verifies_without_a_network(signer: Signer, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path, notebook = tmp_path / "receipt.json", tmp_path / "tiling.ipynb"
    path.write_bytes(signer.signed(receipt()).to_json())
    notebook.write_bytes(b"file")
    words = ["receipt", "verify", str(path), "--key", signer.public_key]
    assert main([*words, "--notebook", str(notebook)]) == 0
    assert "Genuine: number 7, ann, tiling, 2026-11-20 12:00:00 UTC" in capsys.readouterr().out
    notebook.write_bytes(b"other")
    assert main([*words, "--notebook", str(notebook)]) == 2
    assert main(["receipt", "verify", str(path), "--course", str(tmp_path / "none")]) == 2
    assert main(["receipt", "verify", str(notebook), "--key", signer.public_key]) == 2
    assert main(["receipt", "verify", str(path), "--key", "ed25519:short"]) == 2
    said = capsys.readouterr().err
    assert [said.count(words) for words in ("another file", "no key", "no receipt", "no public key")] == [1] * 4
    assert read_receipt(path).student == "ann"


def test_reading_a_receipt_loads_neither_the_web_nor_the_classroom() -> None:
    asked = (
        "import sys, mlsys.cli.submit.receipt; print(any(m in sys.modules for m in ('tornado', 'torch', 'nbgrader')))"
    )
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "False\n"
