"""What runs beside the clock: a student's checked kernel, launched by the lab's own code, and nothing else of theirs.

Entry point of a slot's question. It gets the lab's setup, kernels as text that `mlsys.grading.kernel_source` has
checked, and inputs. It allocates, poisons and guards every buffer itself.
"""

from contextlib import suppress
from dataclasses import asdict
from functools import cache
from types import ModuleType
from typing import Any

from mlsys.grading.kernel_check import launch_guarded
from mlsys.grading.program import describe_failure, run_cell
from mlsys.grading.slot.arena import Tensor
from mlsys.grading.slot.channel import Channel
from mlsys.grading.speed import speed
from mlsys.grading.wire import decode, encode

KERNEL = "your kernel"


def serve(channel: Channel) -> None:
    """Answer requests until the judge closes the question."""
    setup: dict[str, Any] = {}
    with suppress(EOFError):
        while True:
            header, arrays = channel.receive()
            results: list[Tensor] = []
            try:
                if "setup" in header:
                    setup, reply = trusted_names(header["setup"]), {}
                elif "race" in header:
                    reply = race(setup, header, arrays)
                    release_gpu_memory()
                else:
                    reply = {"value": encode(launch(setup, header, arrays), results)}
            except Exception as error:
                verdict, lines = describe_failure(error, {KERNEL})
                reply = {"error": {"verdict": verdict.name, "message": verdict.message, "lines": lines}}
                results = []
            channel.reply(reply, results)


def trusted_names(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """The names that the lab's own setup cells define."""
    module = ModuleType("setup")
    for cell in cells:
        run_cell(cell["source"], cell["label"], module.__dict__)
    return module.__dict__


@cache
def kernel_of(text: str, name: str) -> Any:
    """A kernel from its checked text; the same for the same text, so that it is compiled once."""
    module = ModuleType("kernel")
    run_cell(text, KERNEL, module.__dict__)
    return module.__dict__[name]


def launch(setup: dict[str, Any], header: dict[str, Any], arrays: list[Tensor]) -> Any:
    """Launch the kernel once on guarded buffers, and return the output."""
    import torch

    inputs = decode(header["inputs"], arrays, header["device"])
    kernel = kernel_of(header["kernel"], header["name"])
    dtype = getattr(torch, header["dtype"])
    return launch_guarded(kernel, header["constants"], inputs, tuple(header["shape"]), dtype, setup[header["launch"]])


def release_gpu_memory() -> None:
    """Give back what torch keeps for later: this process may wait for its turn while another looks who uses the GPU."""
    import torch

    torch.cuda.empty_cache()


def race(setup: dict[str, Any], header: dict[str, Any], arrays: list[Tensor]) -> dict[str, Any]:
    """Race on one shape: "prepare" compiles both kernels beside other questions, "run" checks and times them alone."""
    import torch

    shape = tuple(header["shape"])
    inputs = decode(header["inputs"], arrays, header["device"])
    reference = None
    if header["reference"]:
        other, constants = header["reference"]
        reference = (kernel_of(other["kernel"], other["name"]), lambda shape, dtype: constants)
    result = speed(
        kernel_of(header["kernel"], header["name"]),
        lambda shape, dtype: header["constants"],
        shapes=[shape],
        inputs=lambda draws, shape, dtype: inputs,
        launch=setup[header["launch"]],
        expected=setup.get(header["expected"]) or getattr(torch, header["expected"]),
        dtype=header["dtype"],
        reference=reference,
        capability=tuple(header["capability"]),
        timed=header["race"] == "run",
        waiting=header.get("waiting", 0),
    )
    if not result.pairs:
        return {}
    return {"device": result.device, "reference": result.reference, "pair": asdict(result.pairs[shape])}
