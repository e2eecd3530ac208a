"""Stands in for the sandbox's own entry points in a benchmark: the same, with a stopwatch round student functions."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mlsys.judge.inside import launcher, student
from mlsys.judge.sandbox.protocol.channel import Channel
from mlsys.judge.shared.messages import CallFunction, Message


@dataclass
class Stopwatch:
    """Seconds inside the functions that it wraps, outermost calls only."""

    total_s: float = 0.0
    _running: bool = field(default=False, repr=False)

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, timed."""

        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                return function(*args, **kwargs)
            self._running, started = True, time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.total_s += time.perf_counter() - started
                self._running = False

        return timed


watch = Stopwatch()


def serve_student(channel: Channel) -> None:
    """What `student.serve` does, with the seconds inside student functions in every reply."""
    plain_answer, plain_reply = student.StudentCode.answer, channel.reply

    def answer(self: student.StudentCode, request: Message, *rest: Any) -> Message:
        if not isinstance(request, CallFunction):
            return plain_answer(self, request, *rest)
        kept = self.module.__dict__[request.name]
        self.module.__dict__[request.name] = watch.wrap(kept)
        try:
            return plain_answer(self, request, *rest)
        finally:
            self.module.__dict__[request.name] = kept

    student.StudentCode.answer = answer
    channel.reply = lambda header, tensors=(): plain_reply(header | {"seconds": watch.total_s}, tensors)
    student.serve(channel)


def serve_launcher(channel: Channel) -> None:
    """The same for the launcher, which runs kernels by themselves."""
    plain_launch, plain_reply = launcher.launch_guarded, channel.reply
    launcher.launch_guarded = timed_launch(plain_launch)
    channel.reply = lambda header, tensors=(): plain_reply(header | {"seconds": watch.total_s}, tensors)
    launcher.serve(channel)


def timed_launch(launch_guarded: Callable[..., Any]) -> Callable[..., Any]:
    """`launch_guarded` with its launches timed."""

    def timed(kernel: Any, constants: Any, inputs: Any, shape: Any, dtype: Any, launch: Callable[..., Any]) -> Any:
        return launch_guarded(kernel, constants, inputs, shape, dtype, watch.wrap(launch))

    return timed
