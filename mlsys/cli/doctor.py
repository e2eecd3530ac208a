"""`mlsys doctor`: print versions, the device, what runs here, and common traps."""

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from mlsys.measure.device import Device, detect_device, interpreter_fault
from mlsys.measure.gpu_jobs import other_jobs

PACKAGES = ("mlsys", "numpy", "pint", "matplotlib", "torch", "triton", "jupyter-book", "nbgrader")
EXTRAS = {"torch": "labs", "triton": "labs", "jupyter-book": "book", "nbgrader": "grading"}


@dataclass(frozen=True)
class Finding:
    """One line of the report: `mark` is "yes", "no" or "note"."""

    mark: str
    text: str

    def __str__(self) -> str:
        """Return the line as printed."""
        return f"  {self.mark:<5}{self.text}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: `doctor` takes no options."""


def run(args: argparse.Namespace) -> int:
    """Print the report; the exit status is 0, because something missing is a finding, not a failure."""
    device = detect_device()
    print("Versions")
    for line in versions():
        print(f"  {line}")
    print("\nDevice")
    print(f"  {describe(device)}")
    print("\nWhat runs here")
    for finding in (*abilities(device), grading_ability()):
        print(finding)
    print("\nTraps to know")
    for text in traps(device):
        print(Finding("note", text))
    return 0


def versions() -> Iterator[str]:
    """Yield one line per package: its version, or how to install it; students need no book and no gradebook."""
    yield f"{'python':<14}{platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in [name for name in PACKAGES if has_judge() or EXTRAS.get(name) not in ("book", "grading")]:
        try:
            yield f"{package:<14}{version(package)}{f', {edition()}' if package == 'mlsys' else ''}"
        except PackageNotFoundError:
            yield f"{package:<14}not installed; {_how_to_install(package)}"


def _how_to_install(*packages: str) -> str:
    """Say how packages of one extra are installed: by the extra where the package was installed from the repository."""
    names = f"'mlsys[{EXTRAS.get(packages[0], 'dev')}]'" if has_judge() else " ".join(packages)
    return f"pip install {names}"


def describe(device: Device) -> str:
    """Describe the device in one line."""
    memory = f"{device.memory_bytes / 2**30:.0f} GiB"
    if device.kind == "cpu":
        return f"no CUDA GPU; CPU {device.name}, {memory}"
    major, minor = device.capability or (0, 0)
    return f"{device.name}, compute capability {major}.{minor}, {memory}, driver {device.driver or 'unknown'}"


def abilities(device: Device) -> Iterator[Finding]:
    """Yield which parts of the course this machine can run."""
    yield Finding("yes", "mlsys calculations and the chapters")
    if find_spec("torch") is None or find_spec("triton") is None:
        missing = [name for name in ("torch", "triton") if find_spec(name) is None]
        there = sys.platform == "linux"
        cure = _how_to_install(*missing) if there else "use Linux, WSL2 or Colab: no Triton wheels here"
        yield Finding("no", f"labs: {' and '.join(missing)} not installed; {cure}")
        return
    if device.kind == "cpu":
        fault = interpreter_fault()
        yield Finding(
            "no" if fault else "yes", f"labs for correctness, in Triton's interpreter on the CPU; {fault}".rstrip("; ")
        )
        yield Finding("no", "speed questions: they wait for a GPU (Colab has one; some need a newer one)")
        return
    others = other_jobs()
    if others:
        yield Finding("no", f"timing: this GPU is in use by {others}; wait, or use another GPU")
    yield Finding("yes", "labs, compiled for this GPU, and speed questions in fp32")
    if fault := interpreter_fault():
        yield Finding("no", f"questions whose kernels are inspected or tested, in Triton's interpreter; {fault}")
    yield Finding("yes" if device.has_bf16 else "no", "bf16 in kernels")
    yield (
        Finding("yes", "int8 products and speed questions for tensor cores")
        if device.has_triton_tensor_cores
        else Finding("no", "int8 products and speed questions for tensor cores: they wait for compute capability 8.0")
    )


def traps(device: Device) -> Iterator[str]:
    """Yield what surprises people on this kind of machine."""
    if device.kind == "cpu":
        yield "the interpreter is slow: keep matrices up to 128 a side"
        yield "TRITON_INTERPRET=1 must be set before triton is imported; the labs' first cell does that"
        yield "bf16 is silently wrong in the interpreter: test in fp32 or fp16"
        yield "the interpreter accepts code that the compiler refuses, and hides races and missing masks"
        return
    if not device.has_triton_tensor_cores:
        yield "since Triton 3.3, tl.dot uses no tensor cores below compute capability 8.0 (a T4 is 7.5); it runs as FMA"
        yield "large fp16 tiles spill registers here; cast operands to fp32 before tl.dot"
    if os.environ.get("TRITON_INTERPRET") == "1":
        yield "TRITON_INTERPRET=1 is set: kernels run in the interpreter although there is a GPU; unset it"
    yield "timing needs a warm-up and synchronization; mlsys.measure does both"


def edition() -> str:
    """Name the edition of the package that is installed: the full one, or the one that students get."""
    return "full package" if has_judge() else "student's package (no judge)"


def has_judge() -> bool:
    """Return whether the judge is installed, which a student's package leaves out."""
    return find_spec("mlsys.judge") is not None


def grading_ability() -> Finding:
    """Find whether submissions can be graded here: whether there is a judge, and its sandbox holds."""
    return check_sandbox_finding() if has_judge() else Finding("no", f"grading: this is the {edition()}")


def check_sandbox_finding() -> Finding:
    """Find whether the sandbox of the judge works on this machine, and hides the course in the current folder."""
    from mlsys.course.tree import COURSE
    from mlsys.judge.sandbox.check import check_sandbox
    from mlsys.judge.sandbox.host.cgroup import MemoryCgroup

    here, tree = Path.cwd(), Path(COURSE)
    private = [path for path in (here, tree) if path.exists()] if tree.exists() or (here / "labs").is_dir() else []
    problem = check_sandbox(private=private)
    if problem:
        return Finding("no", f"sandbox for grading: {problem}")
    cgroup = MemoryCgroup.create(0, 2**30)
    if cgroup:
        cgroup.remove(0)
    memory = (
        "the kernel (a cgroup) and a watchdog" if cgroup else "a watchdog (this user cannot create a memory cgroup)"
    )
    return Finding("yes", f"sandbox for grading (bubblewrap); memory is limited by {memory}")
