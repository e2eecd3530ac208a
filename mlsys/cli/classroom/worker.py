"""`mlsys worker ADDRESS`: judge submissions for a class that is graded on another machine."""

import argparse

from rich.console import Console

from mlsys.cli import whole_number
from mlsys.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mlsys worker`."""
    parser.add_argument("address", help="address of the cluster's scheduler, such as tcp://head:8786")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="what it offers: a GPU where there is one (%(default)s), no GPU, or a GPU that must be there",
    )
    parser.add_argument(
        "--gpu",
        type=whole_number(0),
        metavar="N",
        help="judge on the GPU with this number, from 0 (default: the first of those that the fewest workers of this "
        "machine have)",
    )


def run(args: argparse.Namespace) -> int:
    """Check the sandbox of this machine, then judge until Ctrl-C, or until the scheduler is gone."""
    if args.device == "cpu" and args.gpu is not None:
        raise UserError("--device cpu offers no GPU: leave out --gpu, or --device")
    from mlsys.fleet.worker import serve

    console = Console(markup=False, highlight=False, soft_wrap=True)
    device = args.device if args.gpu is None else "gpu"
    serve(args.address, device, console.print, gpu=args.gpu)
    return 0
