"""A real PostgreSQL server for tests: the binaries of the `pgserver` wheel, in a folder of its own, without root."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

_NOBODY = 65534
"""User that serves where root runs the tests: PostgreSQL refuses to serve as root."""


class Server:
    """A server on a free port of this machine, which can be stopped, killed and started again.

    Args:
        folder: where its data are; it must not be below a folder that is closed to other users.
    """

    def __init__(self, folder: Path) -> None:
        pgserver = pytest.importorskip("pgserver", reason="pgserver is not installed: mlsys[dev] has it")
        self._binaries = Path(pgserver.__file__).parent / "pginstall" / "bin"
        self._folder = folder
        self._user = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self._numbers = count()
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._user:
            shutil.chown(folder, _NOBODY, _NOBODY)
        self._call(
            "initdb", "--no-sync", "--auth=trust", "--username=mlsys", "--encoding=UTF8", "--locale=C", str(folder)
        )
        self.start()

    def url(self, database: str) -> str:
        """The address of a database, as SQLAlchemy writes it."""
        return f"postgresql+psycopg://mlsys@127.0.0.1:{self.port}/{database}"

    def create(self, database: str = "") -> str:
        """Make a database, and return its address."""
        database = database or f"course_{next(self._numbers)}"
        self._call("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "mlsys", database)
        return self.url(database)

    def start(self) -> None:
        """Start to serve, and return when it does; after a kill it first recovers."""
        (self._folder / "postmaster.pid").unlink(missing_ok=True)
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self._folder.parent / f"{self._folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binaries / "postgres", "-D", str(self._folder), *words],
                stdout=log,
                stderr=log,
                cwd="/",
                **self._user,
            )
        for _ in range(600):
            ready = [self._binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            if subprocess.run(ready).returncode == 0:
                return
            time.sleep(0.05)
        raise AssertionError("PostgreSQL does not start")

    def stop(self, how: int = signal.SIGINT) -> None:
        """Stop: SIGINT ends all connections first; SIGKILL leaves the data as they are at that moment."""
        if self._process is not None:
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
            self._process.send_signal(how)
            self._process.wait()
            self._process = None
            if how == signal.SIGKILL:  # what serves a connection notices its server's end, but not at once
                for child in children:
                    _kill(int(child))
                time.sleep(0.1)

    def backends(self) -> list[int]:
        """Processes that serve a connection now."""
        import psycopg

        with psycopg.connect(self.url("postgres").replace("+psycopg", "")) as connection:
            rows = connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            ).fetchall()
        return [row[0] for row in rows]

    def cut_connections(self) -> None:
        """End all processes that serve a connection; one that its client has left may be gone already."""
        for process in self.backends():
            _kill(process, signal.SIGTERM)

    def _call(self, program: str, *words: str) -> None:
        done = subprocess.run([self._binaries / program, *words], capture_output=True, text=True, cwd="/", **self._user)
        assert done.returncode == 0, done.stderr


def _kill(process: int, how: int = signal.SIGKILL) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, how)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for the tests of this process."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="mlsys-postgres-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder) / "data")
        yield server
        server.stop()
