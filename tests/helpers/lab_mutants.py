"""Mutants of the labs' kernels: which of them are wrong, and what finds them.

    python tests/helpers/lab_mutants.py        writes docs/mutants.md

Each lab is run with its solutions, as a notebook is, and a few launches of each kernel are kept. For each mutant,
`grading.inspect` and the comparison of `check_kernel` get these launches.

Whether a mutant is wrong is found out without either of them, in Triton's own interpreter: with the same and with other
values, with NaN around every tensor and in every lane that a load leaves undefined. A mutant whose results are right
even so is wrong only if it reaches outside a tensor or races, which no result in the interpreter shows.
"""

import contextlib
import inspect as python_inspect
import io
import linecache
import os
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

os.environ.setdefault("TRITON_INTERPRET", "1")
os.environ.setdefault("MPLBACKEND", "agg")

import numpy as np
import torch
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, InterpreterBuilder, TensorHandle

from mlsys.course.lab import Lab, find_labs
from mlsys.grading.checks.tolerances import is_close
from mlsys.grading.hazards import inspection
from mlsys.grading.hazards.inspection import inspect
from mlsys.grading.hazards.memory import WRITE
from mlsys.grading.kernels import backend, guard
from mlsys.grading.mutants import mutants
from mlsys.grading.verdicts import NeedsGpu
from mlsys.judge.sandbox.inside.quick_interpreter import skip_unread_work

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "mutants.md"
LAUNCHES = 3
"""Most launches of a kernel that are kept."""
GUARD_BYTES = 2**16


@dataclass(frozen=True)
class Launch:
    """A launch of a kernel, with its tensors as they were before it."""

    grid: object
    args: tuple
    kwargs: dict

    @property
    def shapes(self):
        return tuple((tuple(a.shape), a.stride()) for a in (*self.args, *self.kwargs.values()) if torch.is_tensor(a))

    @property
    def size(self):
        return sum(a.numel() for a in (*self.args, *self.kwargs.values()) if torch.is_tensor(a))

    def fresh(self, place=lambda tensor: tensor.clone()):
        """The arguments with tensors of their own."""
        each = {id(a): place(a) for a in (*self.args, *self.kwargs.values()) if torch.is_tensor(a)}
        return [each.get(id(a), a) for a in self.args], {name: each.get(id(a), a) for name, a in self.kwargs.items()}


@dataclass
class Outcome:
    """What becomes of the mutants of one kernel."""

    made: int = 0
    equivalent: int = 0
    differing: int = 0  # their results differ from the right kernel's
    by_inspect: int = 0  # of these
    by_comparison: int = 0  # of these, by the comparison alone
    lucky: int = 0  # of these, right in Triton's interpreter on the kept launches
    hidden: Counter = field(default_factory=Counter)  # results are right; what inspect finds
    missed: list = field(default_factory=list)


WRONG_ON_PURPOSE = {"lossy_total_kernel", "count_kernel"}
"""Kernels that a lab shows because they lose updates."""

WRITTEN = {"fused_kernel"}
"""Kernels whose text an answer writes, another one for each graph; so does `mlsys.compiler`."""

WHOLE_TOKEN = {"token_kernel", "persistent_kernel"}
"""Kernels that call those of the other questions in turn: these have mutants of their own, and a mutant of the one with
a barrier may wait for ever."""


def kernels_of_labs(names=None):
    """Kernels of the labs by lab and name, each with a few of its launches."""
    found = {}
    for name in names or find_labs(ROOT):
        launches = {}

        def keep(kernel, grid, args, kwargs, launches=launches):
            launches.setdefault(kernel.__name__, (kernel, []))[1].append(Launch(grid, *_copies(args, kwargs)))

        for _ in run_lab(Lab.load(ROOT / "labs" / name / "lab.py"), keep):
            pass
        for kernel, kept in launches.values():
            if kernel.__name__ in WRONG_ON_PURPOSE | WRITTEN | WHOLE_TOKEN:
                continue
            if kernel.fn.__code__.co_filename.startswith("<mlsys.compiler"):
                continue
            different = {launch.shapes: launch for launch in kept}
            ordered = sorted(different.values(), key=lambda one: one.size)
            step = max(1, -(-len(ordered) // LAUNCHES))
            for launch in ordered[::step]:
                _poison_outputs(kernel, launch)
            found[name, kernel.__name__] = kernel, ordered[::step]
    return found


def _poison_outputs(kernel, launch):
    """Fill with NaN what the kernel stores and never loads, as `check_kernel` does."""
    _, run = inspection._inspect(kernel, launch.grid, launch.args, launch.kwargs, frozenset())
    for name, view in run.views.items():
        if view.tensor.is_floating_point() and set(view.region.last) == {WRITE}:
            run.tensors[name].fill_(float("nan"))


def run_lab(lab, keep):
    """Run the code of a lab as a notebook does, and call `keep(kernel, grid, args, kwargs)` before each launch.

    Yields each cell after it ran, the lab's names, and the `NeedsGpu` that ended the cell, or None. Launches on device
    "meta" are kept and not run.
    """
    run = InterpretedFunction.run

    def kept(kernel, *args, grid, warmup, **kwargs):
        keep(kernel, grid, args, kwargs)
        if not any(torch.is_tensor(one) and one.is_meta for one in args):
            run(kernel, *args, grid=grid, warmup=warmup, **kwargs)

    module = ModuleType("__main__")
    check_source, backend.check_source = backend.check_source, lambda kernel: None  # it reads one cell's file
    InterpretedFunction.run, guard.inspected = kept, lambda kernel: kernel
    try:
        for cell in lab.cells:
            label = f"{lab.name}-{cell.id}.py"
            linecache.cache[label] = (len(cell.source), None, cell.source.splitlines(True), label)
            if cell.kind == "code":
                yield cell, module.__dict__, run_cell(cell.source, label, module.__dict__)
    finally:
        InterpretedFunction.run, guard.inspected = run, inspection.inspected
        backend.check_source = check_source


def run_cell(source, label, names):
    """Run one cell in silence, and return the `NeedsGpu` that ended it, or None."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(source, label, "exec"), names)
        except NeedsGpu as waits:
            return waits
    return None


def _copies(args, kwargs):
    def copied(value):
        if not torch.is_tensor(value):
            return value
        return value.new_empty(0).set_(
            value.untyped_storage().clone(), value.storage_offset(), value.shape, value.stride()
        )

    return tuple(map(copied, args)), {name: copied(value) for name, value in kwargs.items()}


def mutant_kernel(kernel, mutant):
    """Make a kernel of a mutant's text, with the names of the right kernel's module."""
    label = f"mutant of {kernel.__name__}: {mutant.mistake}, {mutant}"
    linecache.cache[label] = (len(mutant.text), None, mutant.text.splitlines(True), label)
    names = dict(kernel.fn.__globals__)
    exec(compile(mutant.text, label, "exec"), names)
    return names[kernel.__name__]


def outcome(kernel, launches):
    """Try all mutants of a kernel."""
    result = Outcome()
    rights = [(_easy(kernel, launch), _hard(kernel, launch)) for launch in launches]
    for mutant in mutants(python_inspect.getsource(kernel.fn)):
        result.made += 1
        changed = mutant_kernel(kernel, mutant)
        kinds, differs, compared = [], False, False
        for launch, (easy, hard) in zip(launches, rights, strict=True):
            if not kinds:
                with contextlib.suppress(Exception):  # such as shapes that do not fit, which the launch shows below
                    kinds = [one.kind for one in inspect(changed, launch.grid, *launch.args, **launch.kwargs)]
            if not compared:
                compared = _differ(_easy, changed, launch, easy)
            if not differs:
                differs = _differ(_hard, changed, launch, hard)
        if not differs and not kinds:
            result.equivalent += 1
        elif not differs:
            result.hidden[kinds[0]] += 1
        else:
            result.differing += 1
            result.by_inspect += bool(kinds)
            result.by_comparison += not kinds and compared
            result.lucky += not compared
            if not kinds and not compared:
                result.missed.append(mutant)
    return result


def _differ(launched, kernel, launch, right):
    try:
        return not _same(launched(kernel, launch), right)
    except Exception:
        return True


def _easy(kernel, launch):
    """The tensors after a launch in Triton's interpreter, as `check_kernel` compares them."""
    args, kwargs = launch.fresh(lambda tensor: _placed(tensor, shuffled=False))
    _launched(kernel, launch.grid, args, kwargs)
    return [one for one in (*args, *kwargs.values()) if torch.is_tensor(one)]


def _hard(kernel, launch):
    """The tensors after a launch where whatever is undefined is NaN, with what is around them."""
    args, kwargs = launch.fresh(lambda tensor: _placed(tensor, shuffled=True))
    load = InterpreterBuilder.create_masked_load

    def undefined(builder, ptrs, mask, other, *rest):
        if other is None:
            dtype = ptrs.get_element_ty()
            filled = np.full(ptrs.data.shape, np.nan if dtype.is_floating() else 77, interpreter._get_np_dtype(dtype))
            other = TensorHandle(filled, dtype)
        return load(builder, ptrs, mask, other, *rest)

    InterpreterBuilder.create_masked_load = undefined
    try:
        _launched(kernel, launch.grid, args, kwargs)
    finally:
        InterpreterBuilder.create_masked_load = load
    tensors = [one for one in (*args, *kwargs.values()) if torch.is_tensor(one)]
    return tensors + [_around(one) for one in tensors]


def _around(tensor):
    """The bytes of a tensor's buffer outside its elements."""
    buffer = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).clone()
    size = tensor.element_size()
    inner = buffer.view(tensor.dtype).as_strided(tensor.shape, tensor.stride(), GUARD_BYTES // size)
    inner.fill_(0)
    return buffer


def _launched(kernel, grid, args, kwargs):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel[grid](*args, **kwargs)


def _placed(tensor, *, shuffled):
    """A copy with NaN before and behind it, its values in another order if asked for."""
    guard = GUARD_BYTES // tensor.element_size()
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    around = float("nan") if tensor.is_floating_point() else 77
    buffer = torch.full((extent + 2 * guard,), around, dtype=tensor.dtype)
    view = buffer.as_strided(tensor.shape, tensor.stride(), guard)
    values = tensor
    if shuffled and tensor.is_floating_point():
        order = torch.randperm(tensor.numel(), generator=torch.Generator().manual_seed(1))
        values = tensor.reshape(-1)[order].reshape(tensor.shape)
    view.copy_(values)
    return view


def _same(ones, others):
    def close(one, other):
        finite = one.isfinite() & other.isfinite()
        same = (one == other) | (one.isnan() & other.isnan())
        if not bool((same | finite).all()):
            return False
        return is_close(torch.where(finite, one, 0), torch.where(finite, other, 0))

    return all(
        torch.equal(one, other) or (one.is_floating_point() and close(one, other))
        for one, other in zip(ones, others, strict=True)
    )


def page(found):
    """The page with the table, in Markdown."""
    rows = [
        f"| {lab} | `{name}` | {one.made} | {one.equivalent} | {one.differing} | {one.by_inspect} | "
        f"{one.by_comparison} | {len(one.missed)} | {one.lucky} | {sum(one.hidden.values())} |"
        for (lab, name), one in found.items()
    ]
    every = list(found.values())
    sums = [
        sum(map(count, every))
        for count in (
            lambda one: one.made, lambda one: one.equivalent, lambda one: one.differing, lambda one: one.by_inspect,
            lambda one: one.by_comparison, lambda one: len(one.missed), lambda one: one.lucky,
            lambda one: sum(one.hidden.values()),
        )
    ]  # fmt: skip
    kinds = sum((one.hidden for one in every), Counter())
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return "\n".join([HEAD, *rows, f"| | all | {' | '.join(map(str, sums))} |", "", TAIL.format(kinds=listed), ""])


HEAD = """\
# Mutants of the labs' kernels

A mutant is a kernel with one mistake of the sorts that people make, such as a mask that is missing or a stride that is
another one's (`mlsys/grading/mutants.py` lists them). The table says what finds the mutants of the kernels that the
labs launch on a CPU. `python tests/helpers/lab_mutants.py` writes this page.

- **equivalent**: its results are the right kernel's in every run, and `grading.inspect` finds nothing. An example is a
  mask that no launch of the lab needs. These are not counted further.
- **wrong**: its results differ from the right kernel's, or it does not run, in at least one run. The runs use Triton's
  own interpreter, with NaN around every tensor and in every lane that a load leaves undefined.
- **by inspect**, **by comparison**, **missed**: of the wrong ones, those that `grading.inspect` finds on a few of the
  lab's own launches, those that only the comparison of their results finds there, and those that neither finds.
- **right by luck**: of the wrong ones, those whose results are right on these launches in the interpreter as it is.
- **hazard only**: further mutants, whose results are right in every run and in which `grading.inspect` finds something.

| lab | kernel | mutants | equivalent | wrong | by inspect | by comparison | missed | right by luck | hazard only |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"""
TAIL = """The mutants with a hazard only, by the kind of the first finding: {kinds}. The interpreter runs one program
after another and reads memory outside a tensor without complaint, so it does not show such mistakes."""


if __name__ == "__main__":
    skip_unread_work()
    found = {}
    for name, (kernel, launches) in kernels_of_labs(sys.argv[1:]).items():
        found[name] = outcome(kernel, launches)
        print(*name, found[name], flush=True)
    if not sys.argv[1:]:
        PAGE.write_text(page(found))
