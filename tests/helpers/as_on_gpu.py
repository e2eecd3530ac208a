"""Labs run in Triton's interpreter as if on a GPU of some compute capability: which kernels they launch, what waits."""

import inspect
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

from helpers.known_lab import KnownLab
from helpers.lab_mutants import run_cell, run_lab
from mlsys import measure
from mlsys.compiler import pipeline
from mlsys.compiler.ir.graph import TORCH
from mlsys.compiler.run import load_source
from mlsys.grading import compiler_report as reports
from mlsys.grading.draws import Draws
from mlsys.grading.kernels import compiler_report as jobs
from mlsys.grading.kernels import guard
from mlsys.grading.kernels import race as races
from mlsys.grading.kernels.backend import LocalBackend, use_backend
from mlsys.grading.kernels.compiler_report import CompilerReport
from mlsys.grading.kernels.source import kernel_source
from mlsys.grading.replays import fusion_plan
from mlsys.measure import clock, timing
from mlsys.measure.device import Device
from mlsys.measure.timing import Pair

CELL_OF_A_GPU = 'DEVICE == "cuda"'
NO_TIME = SimpleNamespace(median_s=1.0, p20_s=1.0, p80_s=1.0, ratio=1.0)


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, with tensors that have no numbers."""

    question: str
    kernel: object
    args: tuple
    kwargs: dict

    @property
    def text(self):
        return inspect.getsource(self.kernel.fn)

    @property
    def key(self):
        """What the compiler makes another kernel of."""
        ones = tuple(value == 1 if type(value) is int else str(getattr(value, "dtype", value)) for value in self.args)
        return self.question, self.kernel.__name__, self.text, ones, tuple(sorted(self.kwargs.items()))


def shared_bytes(launches, capability):
    """The bytes of shared memory that each launch takes on a GPU of this compute capability, or why it cannot be made.

    They are compiled in one process; if one of them ends it, each is compiled in a process of its own.
    """
    asked = []
    for one in launches:
        name = one.kernel.__name__
        text = kernel_source(jobs._sources(one.kernel, {}), name).text
        asked.append((text, name, jobs._job(one.kernel, (one.args, one.kwargs), 10 * capability[0] + capability[1])))
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, Path(__file__).with_name("compile_launches.py")]
    text = json.dumps(asked)
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    if len(asked) == 1:
        return [f"the compiler ends with status {done.returncode}: {done.stderr[-300:]}"]
    return [found for one in launches for found in shared_bytes([one], capability)]


@dataclass
class LabOnGpu:
    """A lab as a GPU of this compute capability runs it: its launches, and why questions wait."""

    name: str
    capability: tuple[int, int]
    launches: dict = field(default_factory=dict)
    waiting: dict = field(default_factory=dict)
    _ran: list = field(default_factory=list)

    def __post_init__(self):
        with ExitStack() as as_there:
            as_there.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)  # tensors are small: threads would only wait for each other
            for change in self._changes():
                as_there.enter_context(change)
            for cell, names, waits in run_lab(KnownLab(self.name).lab, self.keep):
                if cell.question and waits:
                    self.waiting[cell.question] = str(waits)
                if not cell.role and CELL_OF_A_GPU in cell.source:
                    self._run_without_numbers(cell, names)
                for launch in self._ran:
                    made = Launch(cell.question, *launch)
                    self.launches.setdefault(made.key, made)
                self._ran.clear()

    def _changes(self):
        device = Device("gpu", "a GPU", self.capability)
        return (
            patch.object(torch.cuda, "get_device_capability", lambda *_: self.capability),
            patch.object(torch.cuda, "get_device_name", lambda *_: device.name),
            patch.object(torch.Tensor, "is_cuda", True),
            patch.object(guard, "wait_for_kernels", lambda: None),
            patch.object(races, "torch_sees_gpu", lambda: True),
            patch.object(races, "gpu_device", lambda: device),
            patch.object(measure, "detect_device", lambda: device),
            patch.object(reports, "compiler_report", self._report),
            patch.object(fusion_plan, "compile_groups", self._compile_groups),
            patch.object(clock, "clock_of", _clock_of),
            patch.object(measure, "measure_ceilings", _ceilings),
            use_backend(_Timing(self)),
        )

    def keep(self, kernel, grid, args, kwargs):
        """Keep a launch without the numbers of its tensors."""
        if not kernel.fn.__code__.co_filename.startswith("<mlsys.compiler"):  # those have tiles for the interpreter
            self._add(kernel, args, kwargs)

    def _add(self, kernel, args, kwargs):
        given = tuple(one.to("meta") if torch.is_tensor(one) else one for one in args)
        self._ran.append((kernel, given, dict(kwargs)))

    def asked(self, kernel):
        """A stand-in for a kernel in a lab's launch function."""
        return _Asked(lambda *args, **kwargs: self._add(kernel, args, kwargs), kernel.fn)

    def _run_without_numbers(self, cell, names):
        """Run a cell as if on "cuda", with tensors on "meta", and leave the lab's names as they were."""
        before = dict(names)
        names["DEVICE"] = "cuda"
        with (
            _OnMeta(),
            patch.object(measure, "time_kernel", _once),
            patch.object(measure, "time_pair", _once),
            patch.object(timing, "time_pair", _once),
            patch.object(torch.sparse, "to_sparse_semi_structured", lambda weight: weight),  # it looks at numbers
        ):
            run_cell(cell.source, f"{self.name}-{cell.id}.py", names)
        names.clear()
        names.update(before)

    def _report(self, kernel, configs, out, *inputs, launch, capabilities):
        """Keep the launches that a lab compiles for this GPU; the numbers of the report are not looked at."""
        if 10 * self.capability[0] + self.capability[1] in capabilities:
            for constants in configs:
                launch(self.asked(kernel), constants, out, *inputs)
        return [CompilerReport(one, dict(constants), 32, 0, 0) for constants in configs for one in capabilities]

    def _compile_groups(self, graph, groups, device, plan_memory=None, real=fusion_plan.compile_groups):
        """Compile for the CPU as asked, and keep what the same program launches on a GPU."""
        programs = []
        with patch.object(pipeline, "Loaded", lambda program, _: programs.append(program)):
            real(graph, groups, "cuda", plan_memory)
        (program,) = programs

        def launch(kernel, grid, *names, **kwargs):
            tensors = [program.tensors[name] for name in names]
            given = [torch.empty(one.shape, dtype=TORCH[one.dtype], device="meta") for one in tensors]
            self._add(kernel, given, kwargs)

        load_source(program.text)["run"](launch, *program.arguments)
        return real(graph, groups, device, plan_memory)


@cache
def _ceilings(real=measure.measure_ceilings):
    found = real()
    return replace(found, fma=found.matmul)


def _once(call, *_, **__):
    call()
    return NO_TIME


def _clock_of(on_gpu, real=clock.clock_of):
    return SimpleNamespace(laps=lambda call, each, count: [_once(call).median_s] * count) if on_gpu else real(on_gpu)


@dataclass(frozen=True)
class _Asked:
    launch: object
    fn: object

    def __getitem__(self, grid):
        return self.launch


class _Timing(LocalBackend):
    """Keeps what a race launches, if this GPU may run it."""

    def __init__(self, lab):
        self.lab = lab

    def race(self, kernel, setups):
        for setup in setups:
            races.check_gpu(setup.capability, setup.dtype)
            draw = setup.inputs.func
            inputs = draw(_Shapes("speed", "meta"), *setup.inputs.args[1:])
            out = setup.expected(*inputs)
            for one, constants in ((kernel, setup.constants), *filter(None, [setup.reference])):
                setup.launch(self.lab.asked(one), constants, out, *inputs)
        return races.RaceResult("a GPU", (Pair(1.0, 1.0, 1.0, 1.0, 1.0),) * len(setups))


class _Shapes(Draws):
    """Draws without numbers."""

    def _values(self, rows, cols, values):
        return torch.empty(rows, cols, device="meta")


class _OnMeta(TorchFunctionMode):
    """Puts on "meta" what asks for "cuda"; a number that is read there is 0."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        def place(value):
            return "meta" if isinstance(value, str) and value == "cuda" else value

        if function is torch.Tensor.item:
            return 0
        return function(*map(place, args), **{name: place(value) for name, value in (kwargs or {}).items()})
