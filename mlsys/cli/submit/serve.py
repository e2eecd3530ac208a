"""`mlsys serve`: the submit queue as a web service, and the process that judges what waits in it."""

import argparse
import asyncio
import os
import sys
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from mlsys.classroom.processes import workers
from mlsys.cli import port_number, whole_number
from mlsys.course.tree import COURSE, CourseTree
from mlsys.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys serve`."""
    parser.add_argument(
        "--roster", type=Path, required=True, metavar="FILE", help="CSV file of students, as `mlsys grade` takes it"
    )
    parser.add_argument(
        "--port", type=port_number, default=8000, metavar="N", help="port (%(default)s); 0 for a free one"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address of this machine to listen on (%(default)s)"
    )
    parser.add_argument(
        "--address", default="", metavar="URL", help="address that people open, such as https://queue.example.edu"
    )
    parser.add_argument(
        "--behind-proxy", action="store_true", help="a proxy of yours says in X-Real-IP from whom a request comes"
    )
    parser.add_argument(
        "--workers", type=whole_number(1), default=os.cpu_count() or 1, metavar="N", help="judge N hand-ins at a time"
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--without-verdicts", action="store_true", help="take work in, and judge nothing")
    which.add_argument("--only-verdicts", action="store_true", help="judge what waits, and serve no pages")
    parser.add_argument("--course", type=Path, default=Path(COURSE), help="folder of the nbgrader tree (%(default)s)")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    return _judge(args) if args.only_verdicts else _serve(args)


def _serve(args: argparse.Namespace) -> int:
    from mlsys.classroom.gradebook.record_results import disk_faults
    from mlsys.classroom.processes.limited import helper_ends
    from mlsys.classroom.students.roster import read_roster
    from mlsys.core.files import write_atomically
    from mlsys.course.lab import find_labs
    from mlsys.receipt import PUBLIC_KEY_FILE, Signer
    from mlsys.submit.desk import Desk
    from mlsys.submit.oidc import Provider
    from mlsys.submit.queue import Queue
    from mlsys.submit.server import JudgingProcess, serve
    from mlsys.submit.settings import read_queue_settings
    from mlsys.submit.web import Service

    root, tree, console = Path.cwd(), CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    address = _checked_address(args.address, args.host)
    known = find_labs(root)
    read_roster(args.roster).check_labs(known)
    with disk_faults(tree), helper_ends():
        tree.create()
        settings = read_queue_settings(tree.queue)
        settings.check_labs(known, tree.queue)
        queue = Queue(tree.queue, settings.database)
        signer = Signer.of_course(tree.queue, may_be_new=queue.newest_time() is None)
        write_atomically(tree.queue / PUBLIC_KEY_FILE, f"{signer.public_key}\n".encode())
        desk = Desk(queue, signer, settings)
        desk.check_clock()
        service = Service(root, tree, desk, args.roster, address)
        if settings.oidc:
            if not address:
                raise UserError("login through an institution needs --address: the provider sends people back there")
            service.provider = Provider(settings.oidc, settings.oidc_secret, f"{address}/oidc/callback")
        judging = None if args.without_verdicts else JudgingProcess(_judging_command(args))

        def ready(port: int) -> None:
            console.print(f"Open {service.address}/")
            console.print(f"Labs: {', '.join(service.labs) or 'none is released'}")
            console.print(f"Receipts are verified with the key {signer.public_key}")
            console.print("End with Ctrl-C; what was handed in is kept.")
            sys.stdout.flush()

        asyncio.run(serve(service, args.host, args.port, behind_proxy=args.behind_proxy, judging=judging, ready=ready))
    return 0


def _judging_command(args: argparse.Namespace) -> list[str]:
    return [
        *(sys.executable, "-m", "mlsys.cli.main", "serve", "--only-verdicts"),
        *("--roster", str(args.roster), "--course", str(args.course), "--workers", str(args.workers)),
    ]


def _judge(args: argparse.Namespace) -> int:
    workers.warm_up()
    from mlsys.classroom.batch.pool import Pool
    from mlsys.classroom.gradebook.nbgrader import configured_device
    from mlsys.classroom.processes.limited import helper_ends
    from mlsys.submit.queue import Queue
    from mlsys.submit.server import SERVED_BY
    from mlsys.submit.settings import read_queue_settings
    from mlsys.submit.verdicts import QueueJudging, check_that_sandbox_holds, judge_forever

    root, tree, console = Path.cwd(), CourseTree(args.course), Console(markup=False, highlight=False, soft_wrap=True)
    # Not the parent of now: the one that serves may have been killed while this process was starting.
    parent = int(os.environ.get(SERVED_BY, os.getppid()))
    check_that_sandbox_holds(tree, (root,))
    queue = Queue(tree.queue, read_queue_settings(tree.queue).database)
    with helper_ends(), Pool(tree.root.resolve(), args.workers) as pool:
        kind = pool.machine(configured_device(tree))["device"]
        console.print(f"Judging what waits, on the {kind.upper()}, {args.workers} at a time.")
        judging = QueueJudging(tree, queue, pool, kind, at_once=4 * args.workers)
        judge_forever(judging, console, lambda: os.getppid() != parent)
    return 0


def _checked_address(address: str, host: str) -> str:
    """Return the public address without a slash at its end; tokens cross the network encrypted or not at all.

    Raises:
        UserError: it is no address, or tokens could be read on their way.
    """
    parts = urlsplit(address)
    if address and (parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/")):
        raise UserError(f"--address {address!r} is no address: write one such as https://queue.example.edu")
    if parts.scheme != "https" and not (_is_here(host) and (not address or _is_here(parts.hostname or ""))):
        raise UserError(
            f"on {host} others could read tokens on their way: keep --host 127.0.0.1, put a proxy with TLS before it, "
            "and name its address with --address https://..."
        )
    return address.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def interrupted(_: argparse.Namespace) -> str:
    """Say what Ctrl-C left behind."""
    return "Ended: every hand-in with a receipt is kept. Start again with the same command."
