"""Scores for Gradescope: an autograder that gives each submission the results that were found here.

Gradescope documents no upload of scores for a programming assignment: they come from its autograder, which can be run
again on all submissions. So the scores go there as one. Its zip holds a `results.json` for each student, an index by
the digests of what was handed in, and `mlsys.classroom.lms.run_autograder`, which looks them up.
Source of the form: https://gradescope-autograders.readthedocs.io/en/latest/specs/.
"""

import io
import json
import zipfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from inspect import getsource
from typing import Any

from mlsys.classroom.lms import run_autograder
from mlsys.classroom.lms.fill import Score
from mlsys.classroom.store.record import QuestionRecord, Record

SETUP = "#!/usr/bin/env bash\napt-get update && apt-get install -y python3\n"


@dataclass(frozen=True)
class Graded:
    """What one student gets.

    Attributes:
        record: of the submission that counts.
        score: of that record.
        digests: of everything that the student handed in; each gets the results of what counts.
        addresses: by which Gradescope may know the student.
    """

    record: Record
    score: Score
    digests: Collection[str]
    addresses: Collection[str]


def results_of(graded: Graded, without: Collection[str] = ()) -> dict[str, Any]:
    """Return the content of a student's `results.json`.

    The score is that of every other export, so it may be less than the sum of the tests: by what lateness takes off.

    Args:
        graded: a student with a score.
        without: questions that do not count.
    """
    record, score = graded.record, graded.score
    assert score.points is not None
    said = [f"{score.points:g} of {score.most:g} points."]
    if record.penalty:
        said.append(f"Handed in late: {record.handed_in.cost}.")
    if score.reason:
        said.append(f"Not final: {score.reason}.")
    tests = [_test(question) for question in record.questions if question.question not in without]
    return {"score": round(score.points, 4), "output": "\n".join(said), "tests": tests}


def autograder(graded: Iterable[Graded], without: Collection[str] = ()) -> bytes:
    """Return the zip of an autograder that looks up the results of these students.

    Args:
        graded: students with a score.
        without: questions that do not count.
    """
    files: dict[str, Any] = {}
    digests: dict[str, list[str]] = {}
    addresses: dict[str, str] = {}
    for one in graded:
        name = f"results/{one.record.student}.json"
        files[name] = results_of(one, without)
        for digest in sorted({*one.digests, one.record.submission} - {""}):
            digests.setdefault(digest, []).append(name)
        addresses |= {address.casefold(): name for address in one.addresses}
    files["index.json"] = {"digests": digests, "addresses": addresses}
    programs = {"setup.sh": SETUP, "run_autograder": f"#!/usr/bin/env python3\n{getsource(run_autograder)}"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in programs.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
        for name, content in files.items():
            archive.writestr(name, json.dumps(content, indent=1))
    return buffer.getvalue()


def _test(question: QuestionRecord) -> dict[str, Any]:
    said = [f"{question.verdict}: {question.message}" if question.message else question.verdict]
    return {
        "name": f"{question.question}. {question.title}" if question.title else question.question,
        "score": round(question.points, 4),
        "max_score": question.max_points,
        "output": "\n".join(filter(None, (*said, question.detail, question.taught))),
        "visibility": "visible",
    }
