"""The command `mlsys`: one short subcommand per job.

A mistake of the person at the keyboard ends in one message (the value, what is wrong, what to do) and exit status 2;
a run that would lower, blank or replace a score ends, without --yes, in exit status 3;
Ctrl-C ends in one message and exit status 130, as in a shell.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from mlsys import __version__
from mlsys.errors import NeedsYes, UserError

# Each module has add_arguments(parser) and run(args) -> int; it is imported only for its own command. It may have
# interrupted(args) -> str, what Ctrl-C left behind and how to go on.
COMMANDS = {
    "doctor": ("mlsys.cli.doctor", "describe this machine, and say which parts of the course it can run"),
    "roofline": ("mlsys.cli.roofline", "measure this machine and draw its roofline"),
    "bench": ("mlsys.cli.bench", "measure this GPU and the labs' kernels, and write labs/results/"),
    "release": ("mlsys.cli.release", "build the labs that students get"),
    "grade": ("mlsys.cli.grade", "grade a class of submissions"),
    "gpu-pass": ("mlsys.cli.gpu_pass", "grade what waits for a GPU on another machine, and merge what was found"),
    "serve": ("mlsys.cli.submit.serve", "serve the submit queue: students hand in, get receipts, see verdicts"),
    "tokens": ("mlsys.cli.submit.tokens", "make the tokens by which people log in to the submit queue"),
    "receipt": ("mlsys.cli.submit.receipt", "verify a receipt of the submit queue, without a network"),
    "mark": ("mlsys.cli.classroom.mark", "mark written answers in a browser, question by question"),
    "class": ("mlsys.cli.classroom.class_page", "write the page about a class: attempts, scores, late days, kernels"),
    "late": ("mlsys.cli.classroom.late", "show who was late, what it cost, and how many late days are left"),
    "similar": ("mlsys.cli.classroom.similar", "list similar kernels of a class, for a person to read"),
    "worker": ("mlsys.cli.classroom.worker", "judge submissions here for a class that is graded with --cluster"),
    "store": ("mlsys.cli.classroom.store", "say where a class is kept, or move it into a PostgreSQL database and back"),
    "undo": ("mlsys.cli.undo", "bring back the class as it was before the last grading or marking"),
    "export": ("mlsys.cli.export", "write a lab's scores for Canvas, for Moodle, or as a plain table"),
    "feedback": ("mlsys.cli.feedback", "bundle the feedback pages for Canvas, for Moodle, or for mail"),
    "kit": ("mlsys.cli.course.kit", "make the whole book as a file, syllabi, slides or a question bank from the site"),
    "publish": ("mlsys.cli.publish", "write the public tree: site, labs without solutions, wheel"),
}

NOT_FOR_STUDENTS = (
    "this is the student's package, which leaves out what `mlsys {}` needs: install the full package from the "
    "course's repository, with `pip install -e .` in it"
)

EXTRA_OF = {
    "distributed": "fleet",
    "psycopg": "fleet",
    "icalendar": "kit",
    "authlib": "serve",
    "cryptography": "serve",
    "joserfc": "serve",
    "requests": "serve",
    "tornado": "serve",
    "jupytext": "grading",
    "lxml": "kit",
    "nbformat": "grading",
    "nbgrader": "grading",
    "pikepdf": "kit",
    "playwright": "kit",
    "rich": "grading",
    "torch": "labs",
    "triton": "labs",
}
"""Optional packages that commands import, and the extra of `mlsys` that brings each."""


def build_parser(command: str | None) -> argparse.ArgumentParser:
    """Build the parser with the arguments of `command`; the other commands appear by name only."""
    parser = argparse.ArgumentParser(
        prog="mlsys", description="Tools of the course on AI acceleration and GPU kernels."
    )
    parser.add_argument("--version", action="version", version=f"mlsys {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, summary) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == command:
            import_module(module).add_arguments(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in argv if not word.startswith("-")), None)
    args = None
    try:
        args = build_parser(command).parse_args(argv)
        return int(import_module(COMMANDS[args.command][0]).run(args))
    except UserError as error:
        print(f"mlsys: {error}", file=sys.stderr)
        return 3 if isinstance(error, NeedsYes) else 2
    except KeyboardInterrupt:
        print(f"mlsys: {_interrupted(args)}", file=sys.stderr)
        return 130
    except ModuleNotFoundError as error:
        if command in COMMANDS and f"{COMMANDS[command][0]}.".startswith(f"{error.name}."):
            print(f"mlsys: {NOT_FOR_STUDENTS.format(command)}", file=sys.stderr)
            return 2
        extra = EXTRA_OF.get((error.name or "").split(".")[0])
        if extra is None:
            raise
        print(f"mlsys: {error.name} is not installed; run: pip install 'mlsys[{extra}]'", file=sys.stderr)
        return 2


def _interrupted(args: argparse.Namespace | None) -> str:
    if args is None:
        return "Interrupted."
    module = import_module(COMMANDS[args.command][0])
    return str(module.interrupted(args)) if hasattr(module, "interrupted") else "Interrupted."


if __name__ == "__main__":
    sys.exit(main())
