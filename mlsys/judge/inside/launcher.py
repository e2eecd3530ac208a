"""Sandboxed process that launches and times checked kernels by the lab's own code, and runs nothing else.

Entry point of a sandbox's process. It gets the lab's setup, kernels as text that `mlsys.grading.kernels.source` has
checked, and inputs. It allocates, poisons and guards every buffer itself. In a race the student's kernel has one such
process and what it is timed beside another: see `mlsys.grading.kernels.race`.
"""

from contextlib import suppress
from dataclasses import asdict
from types import ModuleType
from typing import Any

from mlsys.core.cells import run_cell
from mlsys.grading.kernels.guard import launch_guarded
from mlsys.grading.kernels.race import check_gpu, check_unused
from mlsys.grading.kernels.source import KernelSource
from mlsys.grading.kernels.track import Reference, Track, launching
from mlsys.judge.inside.addresses import confined
from mlsys.judge.inside.checked_kernel import define
from mlsys.judge.sandbox.protocol.channel import Channel
from mlsys.judge.sandbox.protocol.shared_buffer import Tensor
from mlsys.judge.shared.run_cells import describe_failure
from mlsys.judge.shared.values import decode, encode
from mlsys.measure.device import gpu_device

KERNEL = "your kernel"
REFERENCE_KERNEL = "the reference kernel"


def serve(channel: Channel) -> None:
    """Answer requests until the judge closes the question."""
    launcher = Launcher()
    with suppress(EOFError):
        while True:
            header, arrays = channel.receive()
            results: list[Tensor] = []
            try:
                reply = launcher.answer(header, arrays, results)
            except Exception as error:
                verdict, lines = describe_failure(error, {KERNEL})
                reply = {"error": {"verdict": verdict.name, "message": verdict.message, "lines": lines}}
                results = []
            channel.reply(reply, results)


class Launcher:
    """State of a launcher: the names of the lab's setup, and the track of a race."""

    def __init__(self) -> None:
        self.setup: dict[str, Any] = {}
        self.track: Track | None = None

    def answer(self, header: dict[str, Any], arrays: list[Tensor], results: list[Tensor]) -> dict[str, Any]:
        """Carry out one request; tensors of the reply go into `results`."""
        if "setup" in header:
            self.setup.update(trusted_names(header["setup"]))
            return {}
        if "race" in header:
            return self._race(header, arrays, results)
        return {"value": encode(launch(self.setup, header, arrays), results)}

    def _race(self, header: dict[str, Any], arrays: list[Tensor], results: list[Tensor]) -> dict[str, Any]:
        if header["race"] == "prepare":
            check_gpu(tuple(header["capability"]), header["dtype"])
            self.track = None  # gives its memory back before the next one takes its own
            self.track = made = self._track_of(header, arrays)
            call_s = made.prepare()
            shape, dtype = made.like
            about: dict[str, Any] = {"out_shape": list(shape), "out_dtype": str(dtype).removeprefix("torch.")}
            about |= {"elements": made.elements, "bytes_moved": made.bytes_moved}
            return {"call_s": call_s, "device": gpu_device().name, **about}
        track = self.track
        assert track is not None
        match header["race"]:
            case "load":
                if "waiting" in header:
                    check_unused(header["waiting"])
                track.load(header["calls"])
                return {}
            case "lap":
                return {"call_s": track.lap(header["seed"])}
            case "output":
                return {"value": encode(track.output(header["call"], header["start"], header["stop"]), results)}
            case "rest":
                track.rest()
                return {}
        assert isinstance(track, Reference)
        if header["race"] == "agrees":
            found = decode(header["found"], arrays)
            return {"agrees": track.agrees(header["seed"], header["call"], header["start"], found)}
        return asdict(track.rates())

    def _track_of(self, header: dict[str, Any], arrays: list[Tensor]) -> Track:
        import torch

        base = decode(header["inputs"], arrays)
        launch_kernel, constants = self.setup[header["launch"]], header.get("constants")
        kernel = kernel_of(header, KERNEL if header["what"] is None else REFERENCE_KERNEL) if header["kernel"] else None
        work = launching(launch_kernel, kernel, constants)

        if header["what"] is None:
            like = tuple(header["out_shape"]), getattr(torch, header["out_dtype"])
            return Track(work, base, like, "cuda")
        expected = self.setup.get(header["expected"]) or getattr(torch, header["expected"])
        return Reference(
            work if kernel else None, base, "cuda", expected=expected, what=header["what"], dtype=header["dtype"]
        )


def trusted_names(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """Run the lab's own setup cells and return the names that they define."""
    module = ModuleType("setup")
    for cell in cells:
        run_cell(cell["source"], cell["label"], module.__dict__)
    return module.__dict__


def kernel_of(header: dict[str, Any], label: str) -> Any:
    """Return the kernel of a request."""
    return define(KernelSource(header["name"], header["kernel"]), label)


def launch(setup: dict[str, Any], header: dict[str, Any], arrays: list[Tensor]) -> Any:
    """Launch the kernel once on guarded buffers, and return the output."""
    import torch

    inputs = decode(header["inputs"], arrays, header["device"])
    dtype = getattr(torch, header["dtype"])
    kernel = confined(kernel_of(header, KERNEL))
    return launch_guarded(kernel, header["constants"], inputs, tuple(header["shape"]), dtype, setup[header["launch"]])
