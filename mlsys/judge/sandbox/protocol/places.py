"""Paths in a sandbox, the users that sandboxes run as, and the error of one that cannot be built."""

from mlsys.errors import UserError

SITE = "/site"
"""Folder of the sandbox that holds the copy of the package."""

SCRATCH = "/scratch"
"""The only folder of the sandbox that can be written."""

FIRST_SANDBOX_UID = 60720
"""User of sandbox 0; started by root, sandbox i runs as this user + i.

Neither Debian nor systemd gives this range away, and containers with 65536 users have it.
"""


class SandboxError(UserError):
    """The sandbox cannot be built on this machine."""
