"""Where things lie in a sandbox, whom it runs as, and the error of one that cannot be built."""

from mlsys.errors import UserError

SITE = "/site"


SCRATCH = "/scratch"


# Started by root, slot i runs as user FIRST_SLOT_UID + i: a range that neither Debian nor systemd gives away, and that
# containers with 65536 users have.
FIRST_SLOT_UID = 60720


class SandboxError(UserError):
    """The sandbox cannot be built on this machine."""
