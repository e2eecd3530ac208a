"""What runs beside the clock: a student's checked kernel, launched by the lab's own code, and nothing else of theirs.

Entry point of a slot's question. It gets the lab's setup, kernels as text that `mlsys.grading.kernel_source` has
checked, and inputs. It allocates, poisons and guards every buffer itself.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from types import ModuleType
from typing import Any

from mlsys.grading.kernel_check import launch_guarded
from mlsys.grading.program import describe_failure, run_cell
from mlsys.grading.race import Race, Result
from mlsys.grading.slot.arena import Tensor
from mlsys.grading.slot.channel import Channel
from mlsys.grading.speed import check_gpu, check_unused
from mlsys.grading.wire import decode, encode
from mlsys.measure.device import gpu_device

KERNEL = "your kernel"


def serve(channel: Channel) -> None:
    """Answer requests until the judge closes the question."""
    setup: dict[str, Any] = {}
    racing = Racing(setup)
    with suppress(EOFError):
        while True:
            header, arrays = channel.receive()
            reply: dict[str, Any]
            results: list[Tensor] = []
            try:
                if "setup" in header:
                    setup.update(trusted_names(header["setup"]))
                    reply = {}
                elif "race" in header:
                    try:
                        reply = racing.answer(header, arrays)
                    finally:
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


@dataclass
class Racing:
    """A race on one shape, in three requests, so that nothing but the timing keeps others from the GPU.

    "prepare" compiles both kernels and checks the student's beside other questions, "time" runs alone, and "confirm"
    checks what the timed calls have made.
    """

    setup: dict[str, Any]
    result: Result | None = None

    def answer(self, header: dict[str, Any], arrays: list[Tensor]) -> dict[str, Any]:
        """Answer one of the requests."""
        if header["race"] == "confirm":
            assert self.result is not None
            self.result.check()
            return {}
        if header["race"] == "prepare":
            check_gpu(tuple(header["capability"]), header["dtype"])
            self._race(header, arrays).check()
            return {}
        check_unused(header["waiting"])
        race = self._race(header, arrays)
        pair = race.time(on_gpu=True)
        self.result = race.last_result()
        return {"device": gpu_device().name, "pair": asdict(pair)}

    def _race(self, header: dict[str, Any], arrays: list[Tensor]) -> Race:
        import torch

        inputs = decode(header["inputs"], arrays, header["device"])
        candidate = kernel_of(header["kernel"], header["name"]), header["constants"]
        reference = None
        if header["reference"]:
            other, constants = header["reference"]
            reference = kernel_of(other["kernel"], other["name"]), constants
        expected = self.setup.get(header["expected"]) or getattr(torch, header["expected"])
        return Race(candidate, reference, tuple(header["shape"]), inputs, self.setup[header["launch"]], expected)
