"""The runs of a lab in the store, and the terms under which each submission is judged."""

from collections.abc import Mapping
from dataclasses import replace

from mlsys.classroom.store.run import Run, Terms, seed
from mlsys.classroom.store.store import Store


def begin_run(store: Store, lab: str, *, sandboxed: bool, arguments: Mapping[str, str], package: str = "") -> Run:
    """Begin a run, or go on with the interrupted one, with its secret."""
    last = store.run(lab)
    if last is None or last.finished:
        last = Run.new()
    run = replace(last, sandboxed=sandboxed, arguments=dict(arguments), finished=False, package=package)
    store.save_run(lab, run)
    return run


def finish_run(store: Store, lab: str, run: Run) -> None:
    """Note that nothing of a run is open any more."""
    store.save_run(lab, replace(run, finished=True))


def terms(store: Store, lab: str, student: str, submission: str) -> Terms:
    """Return the terms for a submission: those of its record if it was graded before, else those of the latest run.

    Args:
        store: the store of the class.
        lab: the lab.
        student: whose submission it is.
        submission: digest of the file.
    """
    latest = store.run(lab) or _run_of_plain_nbgrader(store, lab)
    known = (store.record(lab, student), store.attempt_record(lab, student, submission))
    before = [record.run for record in known if record and record.run and record.submission == submission]
    secret = before[0] if before else latest.secret
    return Terms(secret, seed(store.secret(), lab, secret), latest.sandboxed, term_of(store, lab, student, submission))


def term_of(store: Store, lab: str, student: str, submission: str) -> str:
    """Return the name of the term in which a submission came in; that of the newest one if it is not listed."""
    attempts = store.history(lab, student).attempts
    terms = [attempt.term for attempt in attempts if attempt.digest == submission] or [one.term for one in attempts]
    return terms[-1] if terms else store.present_term()


def _run_of_plain_nbgrader(store: Store, lab: str) -> Run:
    run = Run.new(finished=True)
    store.save_run(lab, run)
    return run
