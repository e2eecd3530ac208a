"""Sandboxed slots in which student code runs, one process per question, and the transport to and from it.

`Slot(site)` starts a slot and `slot.open("module:function")` a question in it; then come `question.request(header,
tensors)` for each call and `question.close()`, which says how it ended.
"""

from mlsys.judge.sandbox.host.process import Question
from mlsys.judge.sandbox.host.sandbox import Slot
from mlsys.judge.sandbox.protocol.ending import Ending, QuestionOver
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.places import SandboxError
from mlsys.judge.sandbox.protocol.shared_buffer import Tampered
from mlsys.judge.sandbox.protocol.transport import Message

__all__ = ["Ending", "Limits", "Message", "Question", "QuestionOver", "SandboxError", "Slot", "Tampered"]
