"""`mlsys receipt verify FILE`: verify a receipt of the submit queue, without a network."""

import argparse
from pathlib import Path

from mlsys.errors import UserError
from mlsys.receipt import KEY_PREFIX, PUBLIC_KEY_FILE, read_receipt, verify

COURSE = "_build/course"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys receipt`."""
    parser.add_argument("what", choices=("verify",), help="what to do")
    parser.add_argument("file", type=Path, help="the receipt, as it came back for a hand-in")
    parser.add_argument("--notebook", type=Path, metavar="FILE", help="compare the file that was handed in, too")
    parser.add_argument(
        "--key", default="", metavar="KEY|FILE", help=f"the course's public key ({KEY_PREFIX}...), or a file with it"
    )
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Say whether a receipt is genuine; what is wrong with it ends with exit status 2."""
    receipt = read_receipt(args.file)
    content = _read(args.notebook) if args.notebook else None
    verify(receipt, _key(args), content)
    print(f"Genuine: number {receipt.number}, {receipt.student}, {receipt.lab}, {receipt.when:%Y-%m-%d %H:%M:%S} UTC.")
    print(f"SHA-256 of the file: {receipt.sha256}" + ("; it is this file's." if content is not None else "."))
    return 0


def _key(args: argparse.Namespace) -> str:
    if args.key.startswith(KEY_PREFIX):
        return str(args.key)
    path = Path(args.key) if args.key else args.course / "queue" / PUBLIC_KEY_FILE
    if not args.key and not path.is_file():
        raise UserError(f"no key: add --key {KEY_PREFIX}..., which your course gives out, also at /key of its queue")
    return _read(path).decode(errors="replace").strip()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror})") from error
