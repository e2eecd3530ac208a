"""How a course's queue is set up: which labs, how often, what students see; a file that the instructor edits."""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mlsys.core.files import write_atomically
from mlsys.errors import UnknownName, UserError

FILE = "settings.toml"
"""Name of the file, in the folder of the queue."""

FIRST = """\
# How the submit queue works. `mlsys serve` reads this file when it starts.

# Labs that are taken in; every lab that is released when the list is empty.
labs = []

# How often one student may hand in one lab within an hour.
hand_ins_per_hour = 12

# How often one student may ask for hidden tests too, within a day and a lab; 0: visible tests only.
hidden_tests_per_day = 0

# Labs whose feedback pages students see, as `mlsys grade` and `mlsys mark` wrote them.
feedback = []

# Labs with a race board: each student's ratio to the reference, under a pseudonym.
race_boards = []

# Database of the queue; empty for SQLite in this folder.
database = ""

# Login through the institution. The client's secret is in oidc-secret.txt in this folder.
# [oidc]
# issuer = "https://login.example.edu"
# client_id = "mlsys"
# claim = "email"   # what says who somebody is; it is looked up in the roster
"""


@dataclass(frozen=True)
class Oidc:
    """The OpenID provider of an institution.

    Attributes:
        issuer: its address, which its tokens name.
        client_id: what it calls this service.
        claim: what in its token is looked up in the roster: "email", "preferred_username" or "sub".
        scope: what is asked for.
    """

    issuer: str
    client_id: str
    claim: str = "email"
    scope: str = "openid email profile"


@dataclass(frozen=True)
class Settings:
    """See the comments in `FIRST`."""

    labs: tuple[str, ...] = ()
    hand_ins_per_hour: int = 12
    hidden_tests_per_day: int = 0
    feedback: tuple[str, ...] = ()
    race_boards: tuple[str, ...] = ()
    database: str = ""
    oidc: Oidc | None = None
    oidc_secret: str = field(default="", repr=False)

    def check_labs(self, known: Collection[str], folder: Path) -> None:
        """Make sure that every lab in the settings of the queue in `folder` is one of the course.

        Raises:
            UserError: one is not; what is set for it would hold for nothing.
        """
        for setting in ("labs", "feedback", "race_boards"):
            for lab in getattr(self, setting):
                if lab not in known:
                    raise UserError(f"{folder / FILE}: {setting}: {UnknownName.of('lab', lab, known)}")


def read_queue_settings(folder: Path) -> Settings:
    """Return the settings in the folder of a queue; a file with the first ones is written where there is none.

    Raises:
        UserError: the file cannot be read, or something in it is wrong.
    """
    path = folder / FILE
    if not path.is_file():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(path, FIRST.encode())
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        known = {name for name in Settings.__dataclass_fields__ if name != "oidc_secret"}
        if unknown := sorted(content.keys() - known):
            raise UserError(f"{path}: unknown setting {unknown[0]!r}: known are {', '.join(sorted(known))}")
        secret_file = folder / "oidc-secret.txt"
        secret = secret_file.read_text(encoding="utf-8").strip() if secret_file.is_file() else ""
        found = msgspec.convert(content | {"oidc_secret": secret}, Settings)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise UserError(f"{path} cannot be used ({error}): correct it, or delete it for a new one") from error
    if found.hand_ins_per_hour < 1 or found.hidden_tests_per_day < 0:
        raise UserError(f"{path}: hand_ins_per_hour is at least 1, hidden_tests_per_day at least 0")
    return found
