"""Sandboxes in which student code runs, each process in namespaces of its own, and the transport to and from it.

`Sandbox(site)` starts a sandbox and `sandbox.open("module:function")` a process in it; then come
`process.request(header, tensors)` for each call and `process.close()`, which returns how it ended.
"""

from mlsys.judge.sandbox.host.process import SandboxProcess
from mlsys.judge.sandbox.host.sandbox import Sandbox
from mlsys.judge.sandbox.protocol.ending import Ending, ProcessEnded
from mlsys.judge.sandbox.protocol.limits import Limits
from mlsys.judge.sandbox.protocol.places import SandboxError
from mlsys.judge.sandbox.protocol.shared_buffer import Tampered
from mlsys.judge.sandbox.protocol.transport import Received

__all__ = ["Ending", "Limits", "ProcessEnded", "Received", "Sandbox", "SandboxError", "SandboxProcess", "Tampered"]
