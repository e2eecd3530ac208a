"""The server: its addresses, its port, and the process beside it that judges."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from mlsys.errors import UserError
from mlsys.submit import handlers, web

MAX_DRAINED_BYTES = 2_000_000_000
"""Largest body that is read to its end only to say that it is too large, in bytes."""
BODY_TIMEOUT_S = 600
"""Longest time in which a body comes in; the largest notebook takes 160 s at 1 Mbit/s."""
IDLE_TIMEOUT_S = 60
"""Seconds until a connection is closed on which nobody asks."""
BACK_OFF_S = 10.0
"""Shortest time between two starts of the process that judges."""

ROUTES = (
    (r"/", handlers.Home),
    (r"/login", handlers.LogIn),
    (r"/logout", handlers.LogOut),
    (r"/oidc/login", handlers.BeginOidc),
    (r"/oidc/callback", handlers.EndOidc),
    (r"/lab/([^/]+)", handlers.LabPage),
    (r"/hand-in/(\d{1,15})", handlers.HandInPage),
    (r"/hand-in/(\d{1,15})/receipt\.json", handlers.ReceiptFile),
    (r"/api/labs/([^/]+)", handlers.ApiHandIn),
    (r"/api/hand-ins/(\d{1,15})", handlers.ApiState),
    (r"/feedback/([^/]+)", handlers.Feedback),
    (r"/board/([^/]+)", handlers.Board),
    (r"/key", handlers.Key),
    (r"/static/(queue\.(?:css|js))", handlers.Static),
    (r"/staff", handlers.StaffPage),
    (r"/staff/marks/([^/]+)", handlers.MarksPage),
    (r"/mark/([^/]+)/(.*)", handlers.MarkingPages),
)
"""Every address, and what answers there."""


SERVED_BY = "MLSYS_SERVED_BY"
"""Environment variable with the number of the process that serves: when that has ended, judging ends too."""


@dataclass
class JudgingProcess:
    """The process that judges; it is started again when it ends, and the queue keeps what it had begun.

    Args:
        command: its command line.
    """

    command: Sequence[str]
    _process: "subprocess.Popen[bytes] | None" = None
    _started_s: float = field(default=-BACK_OFF_S)

    def keep_alive(self) -> None:
        """Start it if it does not run, unless it has just been started."""
        gone = self._process is None or self._process.poll() is not None
        if gone and time.monotonic() - self._started_s >= BACK_OFF_S:
            self._started_s = time.monotonic()
            # Ctrl-C is for this process, which then ends that one.
            environment = {**os.environ, SERVED_BY: str(os.getpid())}
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, start_new_session=True, env=environment
            )

    def end(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def application(service: web.Service, port: int) -> Application:
    """Return the service as Tornado takes it."""
    shared = {"service": service}
    return Application(
        [(path, handler, shared) for path, handler in ROUTES],
        default_handler_class=web.Missing,
        default_handler_args=shared,
        port=port,
        log_function=lambda _: None,  # who asked for what is nobody's business
    )


async def serve(
    service: web.Service,
    host: str,
    port: int,
    *,
    behind_proxy: bool = False,
    judging: JudgingProcess | None = None,
    ready: Callable[[int], None] = lambda _: None,
) -> None:
    """Serve until the process is asked to end.

    Args:
        service: what is served.
        host: address of this machine on which it listens.
        port: its port; 0 for a free one.
        behind_proxy: whether a proxy says from whom a request comes.
        judging: the process beside it, if there is one.
        ready: called with the port, once requests are answered.

    Raises:
        UserError: the port cannot be used.
    """
    try:
        sockets = bind_sockets(port, host)
    except (OSError, OverflowError) as error:
        raise UserError(f"port {port} of {host} cannot be used ({error}): name another one with --port") from error
    port = sockets[0].getsockname()[1]
    service.address = service.address or f"http://{host}:{port}"
    server = HTTPServer(
        application(service, port),
        max_body_size=MAX_DRAINED_BYTES,
        body_timeout=BODY_TIMEOUT_S,
        idle_connection_timeout=IDLE_TIMEOUT_S,
        xheaders=behind_proxy,
    )
    server.add_sockets(sockets)
    asked_to_end = asyncio.Event()
    with suppress(NotImplementedError, RuntimeError, ValueError):  # in a thread, as tests run it
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_end.set)
    ready(port)
    try:
        while not asked_to_end.is_set():
            if judging:
                judging.keep_alive()
            with suppress(TimeoutError):
                await asyncio.wait_for(asked_to_end.wait(), 1)
    finally:
        server.stop()
        await server.close_all_connections()
        if judging:
            judging.end()
