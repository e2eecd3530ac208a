"""Backends: where a student's functions and kernels run when a test calls, launches or times them.

In a notebook they run in the notebook's process. A judge uses another backend, which runs them in a sandbox.
Which backend a test uses never depends on the object that it tests.
"""

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from mlsys.grading.hazards.finding import LINES
from mlsys.grading.hazards.inspection import in_kernels_words
from mlsys.grading.kernels.compiler_report import most_needed
from mlsys.grading.kernels.guard import call_guarded, launch_guarded
from mlsys.grading.kernels.notebook import check_source
from mlsys.grading.kernels.race import Launch, RaceResult, RaceSetup, check_gpu, check_unused, run_race, size
from mlsys.grading.kernels.source import KernelSource
from mlsys.grading.kernels.track import Reference, Track, launching
from mlsys.grading.subjects import Outcome, Subject, try_here
from mlsys.grading.verdicts import NeedsGpu
from mlsys.measure.device import gpu_device
from mlsys.measure.timing import Pair

if TYPE_CHECKING:
    import torch


class Backend(Protocol):
    """A place where a student's functions and kernels run."""

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call a function with guard bands around its tensors, and return its result.

        Raises:
            OutOfBounds: the call wrote into a guard or changed an argument.
        """

    def launch(
        self,
        kernel: Any,
        constants: Mapping[str, int],
        inputs: "Sequence[torch.Tensor]",
        like: "torch.Tensor",
        launch: Launch,
    ) -> "torch.Tensor":
        """Launch a kernel once with guard bands, into a fresh output of the shape and dtype of `like`, and return that.

        Raises:
            NotAKernel: the kernel uses more than Triton's language.
            OutOfBounds: the kernel wrote something other than the output.
        """

    def race(self, kernel: Any, setups: Sequence[RaceSetup]) -> RaceResult:
        """Time a kernel against a reference for each setup, and check the result of every lap.

        Raises:
            NotAKernel: the kernel uses more than Triton's language.
            NeedsGpu: there is no GPU that suits the race, or another job uses it.
            UserError: there is none, and the kernel does not compile, which only a notebook tries then.
            WrongAnswer: a result is wrong.
            OutOfBounds: a kernel wrote something other than an output.
            Suspicious: the time is shorter than the work needs.
        """

    def try_tests(self, tests: Any, subject: Subject, right: Subject) -> Outcome:
        """Run a student's tests on a function, and say whether they refuse it.

        Args:
            tests: the student's function of one argument, the function under test.
            subject: what is behind the function under test.
            right: what is behind the right function, with which each call is compared.

        Raises:
            NotImplementedError: the tests are not written yet.
        """


class LocalBackend:
    """The backend of a notebook: everything runs in this process."""

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """See `Backend`."""
        try:
            return call_guarded(function, args, kwargs)
        except Exception as error:
            if clearer := in_kernels_words(error):
                raise clearer from error
            raise

    def launch(
        self,
        kernel: Any,
        constants: Mapping[str, int],
        inputs: "Sequence[torch.Tensor]",
        like: "torch.Tensor",
        launch: Launch,
    ) -> "torch.Tensor":
        """See `Backend`."""
        if isinstance(kernel, KernelSource):
            kernel = _kernel_of(kernel)
        else:
            check_source(kernel)
        return launch_guarded(kernel, constants, inputs, tuple(like.shape), like.dtype, launch)

    def race(self, kernel: Any, setups: Sequence[RaceSetup]) -> RaceResult:
        """See `Backend`."""
        check_source(kernel)
        try:
            for setup in setups:
                check_gpu(setup.capability, setup.dtype)
        except NeedsGpu as waits:
            raise NeedsGpu(f"{waits}\n{_needs_of(kernel, setups)}") from None
        pairs = tuple(_raced_here(kernel, setup) for setup in setups)
        return RaceResult(gpu_device().name, pairs)

    def try_tests(self, tests: Any, subject: Subject, right: Subject) -> Outcome:
        """See `Backend`."""
        return try_here(tests, subject, right, _kernel_of)


def _needs_of(kernel: Any, setups: Sequence[RaceSetup]) -> str:
    """Say what a kernel needs on a GPU with each setup: what a machine without one can tell of it."""
    launches = []
    for setup in setups:
        inputs = setup.outlines()
        launches.append((setup.constants, setup.expected(*inputs), inputs))
    major, minor = setups[0].capability
    reports = most_needed(kernel, launches, launch=setups[0].launch, capability=10 * major + minor)
    lines = [f"{size(setup.shape)}: {one.needs}" for setup, one in zip(setups, reports, strict=True)]
    return "\n".join([f"{kernel.__name__} compiles for compute capability {major}.{minor}:", *lines])


def _raced_here(kernel: Any, setup: RaceSetup) -> Pair:
    check_unused()
    inputs = setup.inputs()
    work = None if setup.reference is None else launching(setup.launch, *setup.reference)
    theirs = Reference(work, inputs, "cuda", expected=setup.expected, what=setup.label, dtype=setup.dtype)
    mine = Track(launching(setup.launch, kernel, setup.constants), inputs, theirs.like, "cuda")
    return run_race(mine, theirs, elements=theirs.elements, bytes_moved=theirs.bytes_moved, flops=setup.flops)


@cache
def _kernel_of(source: KernelSource) -> Any:
    """Return the kernel of a source that is checked; Triton finds its lines in the cache of lines."""
    label = f"kernel under test {len(linecache.cache)}"
    LINES[label] = source.lines
    linecache.cache[label] = (len(source.text), None, source.text.splitlines(keepends=True), label)
    names: dict[str, Any] = {"__name__": "kernel"}
    exec(compile(source.text, label, "exec"), names)
    return names[source.name]


_LOCAL = LocalBackend()
_current: ContextVar[Backend] = ContextVar("backend", default=_LOCAL)


def current_backend() -> Backend:
    """Return the backend that tests use now: a notebook's, unless a judge has set another."""
    return _current.get()


@contextmanager
def use_backend(backend: Backend) -> Iterator[None]:
    """Let tests use `backend` within this context."""
    token = _current.set(backend)
    try:
        yield
    finally:
        _current.reset(token)
