"""What there is to mark: the answers of a class, question by question, without names."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import cached_property

from mlsys.classroom.gradebook.feedback import QuestionResult, shown_answers
from mlsys.classroom.gradebook.marks import answers_to, entered, give_mark, lost_marks, marks_of, read_class
from mlsys.classroom.gradebook.quote_answers import written
from mlsys.classroom.intake.canonical import released_lab
from mlsys.classroom.intake.normalize import grade_id, is_answer
from mlsys.classroom.intake.reader import Refused
from mlsys.classroom.intake.reading import LabReader
from mlsys.classroom.store.backup import back_up
from mlsys.classroom.store.marks import Marks
from mlsys.classroom.store.record import QuestionRecord, Record
from mlsys.classroom.store.store import Store
from mlsys.course.digest import digest
from mlsys.course.lab import Lab
from mlsys.course.nbgrader import open_gradebook
from mlsys.course.notebook import read_notebook
from mlsys.course.tree import CourseTree
from mlsys.errors import InvalidValue, UnknownName, UserError

TO_LOOK_AT = ("needs review", "suspicious")
"""Verdicts that wait for a person."""
WAITING, CHANGED, MARKED, TESTED = "waiting", "changed", "marked", "tested"
"""States of an answer: not marked; not marked, and its former text was; marked; graded by tests alone."""
OPEN = (WAITING, CHANGED)
MAX_WAIT_S = 3.0
"""Seconds to wait for whoever else is writing."""
_KEY_LENGTH = 8


class Outdated(UserError):
    """A mark that does not fit any more: someone else marked meanwhile, or the answer is another one."""


@dataclass(frozen=True)
class Answer:
    """One student's answer to a question.

    Attributes:
        key: names it in addresses and lists, so that nobody sees whose it is.
        student: whose it is.
        question: how the question came out, before a person's mark.
        state: one of the states above.
        points: what a person gave; None if nobody did.
        comment: what a person wrote.
        submission: digest of the file that counts.
    """

    key: str
    student: str
    question: QuestionRecord
    state: str
    points: float | None
    comment: str
    submission: str

    @property
    def seen(self) -> str:
        """Digest of all that a person sees before marking: another one means that something has changed."""
        return digest(str(self.points), self.comment, self.submission, self.question.verdict)


@dataclass(frozen=True)
class Former:
    """An answer that was marked before it changed: the points then, and how its text differs now."""

    points: float
    difference: str


@dataclass(frozen=True)
class Marking:
    """The marking of one lab. Everything is read anew for each page, because others may mark at the same time."""

    tree: CourseTree
    store: Store
    lab: str
    _backed_up: set[str] = field(default_factory=set, repr=False, compare=False)

    @cached_property
    def _secret(self) -> str:
        return self.store.secret()

    @cached_property
    def released(self) -> Lab:
        """The lab as it is released now."""
        return released_lab(self.tree, self.lab)

    def check(self) -> None:
        """Make sure that there is something to mark.

        Raises:
            UserError: nothing was graded yet, or the gradebook has no place for marks of what was graded.
        """
        lacking = {record.student for record in self._records()} - entered(self.tree, self.lab)
        if lacking:
            raise UserError(
                f"{self.tree.gradebook} lacks {len(lacking)} graded submissions to {self.lab}, such as that of "
                f"{min(lacking)}: run `mlsys grade {self.lab}`, which enters them again"
            )

    def cells(self, question: str) -> tuple[str, ...]:
        """Return the grade_ids of the cells in which students answer a question; the first takes the comment."""
        return tuple(cell.id for cell in self.released.question(question).answers)

    def questions(self) -> dict[str, list[Answer]]:
        """Return the answers to each question, in an order that says nothing about names.

        Raises:
            UserError: nothing was graded yet.
        """
        marks = marks_of(self.tree, self.lab)
        found: dict[str, list[Answer]] = {}
        for record in self._records():
            for question in record.questions:
                found.setdefault(question.question, []).append(self._answer(record, question, marks))
        return {name: sorted(answers, key=lambda one: one.key) for name, answers in found.items()}

    def answers(self, question: str) -> list[Answer]:
        """Return the answers to one question.

        Raises:
            UnknownName: the lab has no such question.
        """
        found = self.questions()
        if question not in found:
            raise UnknownName.of("question", question, found)
        return found[question]

    def result(self, answer: Answer) -> QuestionResult:
        """Return an answer as it is shown: HTML that is safe, the visible tests, the picture of errors."""
        record = self.store.record(self.lab, answer.student)
        path = self.tree.autograded(self.lab, answer.student)
        if record is None or not path.is_file():
            raise UserError(f"the graded notebook of {answer.key} is missing: run `mlsys grade {self.lab}` again")
        page = shown_answers(read_notebook(path), record)
        return next(one for one in page.questions if one.record.question == answer.question.question)

    def former(self, answer: Answer) -> Former | None:
        """Return what was marked before the answer changed, as far as it is kept."""
        score = self.store.scores(self.lab, answer.student).last_marked(answer.question.question)
        if answer.state != CHANGED or score is None:
            return None
        notebook = read_notebook(self.tree.autograded(self.lab, answer.student))
        names = self.cells(answer.question.question)
        now = [written(cell) for cell in notebook.cells if is_answer(cell) and grade_id(cell) in names]
        try:
            content = self.store.content(self.lab, answer.student, score.submission)
            before = answers_to(LabReader(self.tree, self.lab).canonical(content), answer.question.question)
        except (Refused, FileNotFoundError, IsADirectoryError):
            return Former(score.points, "")
        return Former(score.points, _difference(before, now))

    def name(self, student: str) -> str:
        """Return the name of a student in the gradebook, or the id."""
        with open_gradebook(self.tree) as gradebook:
            found = gradebook.find_student(student)
            name = " ".join(filter(None, (found.first_name, found.last_name)))
        return f"{name} ({student})" if name else student

    def save(self, question: str, key: str, seen: str, points: float | None, comment: str) -> None:
        """Enter a mark, unless something has changed since the page was shown.

        Args:
            question: the question.
            key: which answer.
            seen: what `Answer.seen` was when the page was shown.
            points: the points, or None to take the mark back.
            comment: the comment for the student.

        Raises:
            Outdated: another mark or another answer is there now.
            InvalidValue: more points than the question has, or less than none.
            UserError: a grading run or another marker is writing, or the gradebook lacks marks.
        """
        with self._lock():
            if lost := lost_marks(self.store, self.lab, marks_of(self.tree, self.lab)):
                raise UserError(
                    f"the gradebook lacks {len(lost)} of the marks that people gave, as an older copy of it does, so "
                    f"nothing was saved: `mlsys grade {self.lab}` lists them and says what to do"
                )
            answer = find(self.answers(question), key)
            if answer.seen != seen:
                raise Outdated(
                    "this answer was marked by someone else, or has changed, while you were marking it. Nothing was "
                    "saved. What is there now is shown here; save again if your mark is to replace it"
                )
            most = answer.question.max_points
            if points is not None and not 0 <= points <= most:
                raise InvalidValue(f"{points:g} points are not between 0 and the {most:g} of this question")
            cells = self.cells(question)
            if comment and not cells:
                raise InvalidValue(f"question {question} has no cell of the student's, so it takes no comment")
            self._back_up()
            give_mark(self.tree, self.lab, answer.student, (answer.question.grade_id, *cells[:1]), points, comment)
            read_class(self.tree, self.store, self.lab)

    def _back_up(self) -> None:
        """Back up the class before the first mark, and before the first one after each grading run.

        So `mlsys undo` takes back what was marked since, and no more. Marks come one by one: a backup before each would
        soon push out those of the runs.
        """
        run = self.store.run(self.lab)
        since = run.secret if run else ""
        if since not in self._backed_up:
            back_up(self.tree, self.lab)
            self._backed_up.add(since)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Keep grading runs and other markers out; another marker needs a moment only, so wait for that long."""
        until_s = time.monotonic() + MAX_WAIT_S
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(self.store.lock())
                    break
                except UserError:
                    if time.monotonic() > until_s:
                        raise
                    time.sleep(0.05)
            yield

    def _records(self) -> list[Record]:
        records = [one for one in self.store.records(self.lab).values() if one and one.questions and not one.refused]
        if not records:
            raise UserError(f"{self.tree.root} has no results of {self.lab}: run `mlsys grade {self.lab}` first")
        # What a group handed in is marked once, and all members get the mark.
        return list({_work(record): record for record in reversed(records)}.values())[::-1]

    def _answer(self, record: Record, question: QuestionRecord, marks: Mapping[str, Marks]) -> Answer:
        given = marks.get(record.student, Marks())
        points = given.points.get(question.grade_id)
        comment = given.comments.get((*self.cells(question.question), "")[0], "")
        key = digest(self._secret, self.lab, record.student)[:_KEY_LENGTH]
        if points is not None:
            state = MARKED
        elif question.verdict not in TO_LOOK_AT:
            state = TESTED
        else:
            before = self.store.scores(self.lab, record.student).last_marked(question.question)
            state = CHANGED if before and before.submission != record.submission else WAITING
        return Answer(key, record.student, question, state, points, comment, record.submission)


def find(answers: Sequence[Answer], key: str) -> Answer:
    """Return the answer with this key.

    Raises:
        UnknownName: there is none.
    """
    found = {one.key: one for one in answers}
    if key not in found:
        raise UnknownName.of("answer", key, found)
    return found[key]


def _work(record: Record) -> tuple[str, str]:
    group = record.handed_in.group
    return (group, record.submission) if group else ("", record.student)


def _difference(before: Sequence[str], now: Sequence[str]) -> str:
    was, is_now = ("\n\n".join(texts).splitlines() for texts in (before, now))
    return "\n".join(list(unified_diff(was, is_now, "before", "now", n=2, lineterm=""))[2:])
