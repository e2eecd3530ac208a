"""Sandboxed slots in which student code runs, one process per question, and the transport to and from it.

`Slot(site)` starts a slot and `slot.open("module:function")` a question in it; then come `question.request(header,
tensors)` for each call and `question.close()`, which says how it ended.
"""

from mlsys.grading.slot.arena import Tampered
from mlsys.grading.slot.ending import Ending, QuestionOver
from mlsys.grading.slot.limits import Limits
from mlsys.grading.slot.question import Question
from mlsys.grading.slot.sandbox import SandboxError
from mlsys.grading.slot.slot import Slot
from mlsys.grading.slot.transport import Message

__all__ = ["Ending", "Limits", "Message", "Question", "QuestionOver", "SandboxError", "Slot", "Tampered"]
