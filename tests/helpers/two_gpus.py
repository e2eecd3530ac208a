"""What two GPUs of one host do, one process each: collectives, copies, and steps of a small stack of blocks.

`measure()` starts this file twice, once for each GPU; the process of GPU 0 writes what was found. A time is the median
over laps, each that of the slower GPU. The same code runs on two CPU processes at small sizes, for its arithmetic.
"""

import argparse
import contextlib
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

HEAD = 128
"""Elements of a head."""
LAYERS = 2
"""Blocks of the stack."""
LAPS = 9
MIB = 2**20
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "all-to-all")
PLANS: dict[str, dict[str, Any]] = {
    "cuda": {
        "sizes": [2**power for power in (16, 18, 20, 22, 24, 26, 28, 30)],
        "tokens": 1024,
        "steps": [(2048, 4), (4096, 1), (4096, 2), (4096, 4), (4096, 8), (4096, 16), (8192, 2), (8192, 4)],
    },
    "cpu": {"sizes": [2**12], "tokens": 16, "steps": [(256, 2)]},
}
"""Bytes of the buffers, tokens of a sequence, and of each step the width of its blocks and its sequences."""
SETTINGS = {
    "NCCL_NVLS_ENABLE": "0",  # a sum inside the switch would not be the ring that is predicted
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "OMP_NUM_THREADS": "1",
}


def measure(device: str = "cuda", timeout_s: float = 480) -> dict[str, Any]:
    """Run the two processes, and return what they found.

    Raises:
        RuntimeError: if one of them failed or took too long; the message ends with what it printed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out, store = Path(folder, "found.json"), Path(folder, "store")
        command = [sys.executable, __file__, "--store", str(store), "--out", str(out), "--device", device, "--rank"]
        environment = os.environ | SETTINGS | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        logs = [Path(folder, f"log{rank}") for rank in range(2)]
        processes = []
        for rank, log in enumerate(logs):
            with log.open("w") as file:
                started = subprocess.Popen(
                    [*command, str(rank)], stdout=file, stderr=subprocess.STDOUT, env=environment
                )
            processes.append(started)
        deadline = time.monotonic() + timeout_s
        try:
            while any(process.poll() is None for process in processes) and time.monotonic() < deadline:
                if any(process.poll() not in (None, 0) for process in processes):
                    break  # the other one would wait for it
                time.sleep(0.1)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if not out.exists() or any(process.returncode for process in processes):
            texts = (
                f"process {rank} ended with {processes[rank].returncode}: {log.read_text()[-3000:]}"
                for rank, log in enumerate(logs)
            )
            raise RuntimeError("\n".join(texts))
        return json.loads(out.read_text())


class Bench:
    """One of the two processes."""

    def __init__(self, rank: int, device: str, store: Path) -> None:
        self.rank, self.kind, self.plan = rank, device, PLANS[device]
        self.cuda = device == "cuda"
        self.device = torch.device(f"cuda:{rank}" if self.cuda else "cpu")
        if self.cuda:
            torch.cuda.set_device(rank)
        options = {"device_id": self.device} if self.cuda else {}
        self.store = dist.FileStore(str(store), 2)
        dist.init_process_group("nccl" if self.cuda else "gloo", store=self.store, rank=rank, world_size=2, **options)

    def run(self) -> dict[str, Any]:
        """Everything, in order."""
        found: dict[str, Any] = {"calibration": self.calibration()} if self.cuda else {}
        found["links"] = [*self.collectives(), *self.sends(), *(self.copies() if self.cuda else ())]
        found["steps"] = self.steps()
        if self.cuda:
            found["peer_access"] = torch.cuda.can_device_access_peer(0, 1)
            found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        return found

    def synchronize(self) -> None:
        dist.barrier()
        if self.cuda:
            torch.cuda.synchronize()

    def seconds(self, call: Callable[[], Any], calls: int) -> float:
        """Median time of one call on the slower GPU; a lap is so many calls, which both GPUs start together."""
        laps = torch.tensor(self.laps(call, calls, self.synchronize), device=self.device)
        dist.all_reduce(laps, op=dist.ReduceOp.MAX)
        return median(laps.tolist())

    def laps(self, call: Callable[[], Any], calls: int, ready: Callable[[], None]) -> list[float]:
        """Seconds of one call in each lap on this GPU; each lap waits until it is `ready`."""
        call()
        call()
        laps = []
        for _ in range(LAPS if self.cuda else 1):
            ready()
            if self.cuda:
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                for _ in range(calls):
                    call()
                end.record()
                torch.cuda.synchronize()
                laps.append(start.elapsed_time(end) / 1e3 / calls)
            else:
                began = time.perf_counter()
                for _ in range(calls):
                    call()
                laps.append((time.perf_counter() - began) / calls)
        return laps

    def calls(self, size: int) -> int:
        return 20 if size <= 64 * MIB else 5

    def calibration(self) -> dict[str, float]:
        """Rates of a large product and of a large copy, bytes read and written."""
        a, b = (torch.randn(4096, 4096, device=self.device, dtype=torch.bfloat16) for _ in range(2))
        product_s = self.seconds(lambda: a @ b, 40)
        source, target = (torch.empty(2**30, device=self.device, dtype=torch.uint8) for _ in range(2))
        copy_s = self.seconds(lambda: target.copy_(source), 10)
        return {"matrix_flops": 2 * 4096**3 / product_s, "memory_bandwidth": 2 * 2**30 / copy_s}

    def collectives(self) -> list[dict[str, Any]]:
        """Times of each collective; the size is that of the whole buffer of one GPU. Zeros stay zeros when summed."""
        rows = []
        for size in self.plan["sizes"]:
            whole, other = (torch.zeros(size // 2, dtype=torch.bfloat16, device=self.device) for _ in range(2))
            half = torch.zeros(size // 4, dtype=torch.bfloat16, device=self.device)
            calls: dict[str, Callable[[], Any]] = {
                "all-reduce": lambda whole=whole: dist.all_reduce(whole),
                "reduce-scatter": lambda whole=whole, half=half: dist.reduce_scatter_tensor(half, whole),
                "all-gather": lambda whole=whole, half=half: dist.all_gather_into_tensor(whole, half),
                "all-to-all": lambda whole=whole, other=other: dist.all_to_all_single(other, whole),
            }
            for name in COLLECTIVES if self.cuda else COLLECTIVES[:1]:
                taken = self.seconds(calls[name], self.calls(size))
                rows.append({"what": name, "bytes": size, "measured_s": taken})
        return rows

    def sends(self) -> list[dict[str, Any]]:
        """Times of a send from GPU 0 to GPU 1 through the library of collectives."""
        rows = []
        for size in self.plan["sizes"]:
            buffer = torch.zeros(size, dtype=torch.uint8, device=self.device)
            send = (lambda b=buffer: dist.send(b, 1)) if self.rank == 0 else (lambda b=buffer: dist.recv(b, 0))
            rows.append({"what": "send", "bytes": size, "measured_s": self.seconds(send, self.calls(size))})
        return rows

    def copies(self) -> list[dict[str, Any]]:
        """Times of plain copies from GPU 0 to GPU 1, and of copies both ways at once.

        GPU 0's process issues them all. The other one waits on the host: a barrier of its own would hold GPU 1, which
        two processes use in turns.
        """
        self.synchronize()
        if self.rank == 1:
            self.store.wait(["copied"], datetime.timedelta(minutes=5))
            return []
        rows = []
        # torch has a copy wait for the current streams of both GPUs, so each way has one of its own on either
        streams = [[torch.cuda.Stream(gpu) for gpu in range(2)] for _ in range(2)]
        for size in self.plan["sizes"]:
            ends = [
                [torch.zeros(size, dtype=torch.uint8, device=f"cuda:{gpu}") for gpu in way] for way in ((0, 1), (1, 0))
            ]

            def copy(ways: int, ends: list[list[Tensor]] = ends) -> None:
                main = torch.cuda.current_stream()
                used = [stream for way in streams[:ways] for stream in way]
                for stream in used:
                    stream.wait_stream(main)
                for (first, second), (source, target) in zip(streams[:ways], ends[:ways], strict=True):
                    with torch.cuda.stream(first), torch.cuda.stream(second):
                        target.copy_(source, non_blocking=True)
                for stream in used:
                    main.wait_stream(stream)

            for ways, name in ((1, "copy"), (2, "copy both ways")):
                laps = self.laps(lambda ways=ways, copy=copy: copy(ways), self.calls(size), torch.cuda.synchronize)
                rows.append({"what": name, "bytes": size, "measured_s": median(laps)})
        self.store.set("copied", "yes")
        return rows

    def steps(self) -> list[dict[str, Any]]:
        """Times of a step, forward and backward, by each way to share it.

        - one_s: all sequences on each GPU, nothing exchanged; half_s: half of the sequences.
        - data_s: half of the sequences on each GPU, the gradients summed after the backward pass; data_overlapped_s:
          while it runs. They share the work of one_s.
        - tensor_s: all sequences, half of each block.
        - errors: distance of the gradients from those of one GPU, over their norm.
        """
        rows = []
        for width, sequences in self.plan["steps"]:
            torch.manual_seed(0)
            shape = (sequences, self.plan["tokens"], width)
            x = torch.randn(shape).to(self.device, torch.bfloat16 if self.cuda else torch.float64)
            row: dict[str, Any] = {"width": width, "sequences": sequences, "tokens": self.plan["tokens"]}
            model = stack(width, self.device, x.dtype)
            row["one_s"] = self.seconds(lambda model=model, x=x: step(model, x), 3)
            step(model, x)
            reference = [weight.grad.clone() for weight in model.parameters()]
            if sequences > 1:
                self.data_parallel(row, model, x.chunk(2)[self.rank].contiguous(), reference)
            parts = stack(width, self.device, x.dtype, self.rank)
            row["tensor_s"] = self.seconds(lambda parts=parts, x=x: step(parts, x), 3)
            step(parts, x)
            mine = [
                part(weight, self.rank, name)
                for weight, (name, _) in zip(reference, model.named_parameters(), strict=True)
            ]
            row["tensor_error"] = distance([weight.grad for weight in parts.parameters()], mine)
            rows.append(row)
            del model, parts, reference, mine
            if self.cuda:
                torch.cuda.empty_cache()
        return rows

    def data_parallel(self, row: dict[str, Any], model: nn.Module, x: Tensor, reference: list[Tensor]) -> None:
        """Fill `row` with the times of data parallelism on this GPU's sequences."""
        row["half_s"] = self.seconds(lambda: step(model, x), 3)

        def reduced_after() -> None:
            step(model, x)
            for weight in model.parameters():
                dist.all_reduce(weight.grad)

        row["data_s"] = self.seconds(reduced_after, 3)
        reduced_after()
        row["data_error"] = distance([weight.grad for weight in model.parameters()], reference)
        with reducing(model) as works:

            def reduced_meanwhile() -> None:
                step(model, x)
                for work in works:
                    work.wait()
                works.clear()

            row["data_overlapped_s"] = self.seconds(reduced_meanwhile, 3)
            reduced_meanwhile()
            row["data_overlapped_error"] = distance([weight.grad for weight in model.parameters()], reference)


@contextlib.contextmanager
def reducing(model: nn.Module) -> Iterator[list[Any]]:
    """Let each gradient be summed over the GPUs as soon as it is there; yields the list of what is under way."""
    works: list[Any] = []
    hooks = [
        weight.register_post_accumulate_grad_hook(lambda w: works.append(dist.all_reduce(w.grad, async_op=True)))
        for weight in model.parameters()
    ]
    yield works
    for hook in hooks:
        hook.remove()


def step(model: nn.Module, x: Tensor) -> None:
    """One forward and one backward pass."""
    for weight in model.parameters():
        weight.grad = None
    y = model(x)
    y.backward(torch.ones_like(y))


class Summed(torch.autograd.Function):
    """The sum over the GPUs in the forward pass, and the gradient as it is in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        dist.all_reduce(x)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class Shared(torch.autograd.Function):
    """The input as it is in the forward pass, and the sum of its gradients over the GPUs in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        gradient = gradient.contiguous()
        dist.all_reduce(gradient)
        return gradient


class ParallelBlock(nn.Module):
    """A block without dropout of which each of `chips` GPUs has its heads and its part of the MLP."""

    def __init__(self, width: int, chips: int, **new: Any) -> None:
        super().__init__()
        self.chips, self.width = chips, width
        self.qkv = nn.Linear(width, 3 * width // chips, bias=False, **new)
        self.projection = nn.Linear(width // chips, width, bias=False, **new)
        self.up = nn.Linear(width, 4 * width // chips, bias=False, **new)
        self.down = nn.Linear(4 * width // chips, width, bias=False, **new)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.enter(x)).chunk(3, -1)
        q, k, v = (one.unflatten(-1, (-1, HEAD)).transpose(1, 2) for one in qkv)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.leave(self.projection(mixed.transpose(1, 2).flatten(2)))
        return x + self.leave(self.down(nn.functional.gelu(self.up(self.enter(x)))))

    def enter(self, x: Tensor) -> Tensor:
        y = nn.functional.layer_norm(x, (self.width,))
        return Shared.apply(y) if self.chips > 1 else y

    def leave(self, x: Tensor) -> Tensor:
        return Summed.apply(x) if self.chips > 1 else x


def stack(width: int, device: torch.device, dtype: torch.dtype, rank: int | None = None) -> nn.Sequential:
    """Return the whole stack of blocks, or the part of it that GPU `rank` of two has."""
    torch.manual_seed(1)
    new = {"device": device, "dtype": dtype}
    whole = nn.Sequential(*(ParallelBlock(width, 1, **new) for _ in range(LAYERS)))
    if rank is None:
        return whole
    parts = nn.Sequential(*(ParallelBlock(width, 2, **new) for _ in range(LAYERS)))
    with torch.no_grad():
        for (name, weight), mine in zip(whole.named_parameters(), parts.parameters(), strict=True):
            mine.copy_(part(weight, rank, name))
    return parts


def part(weight: Tensor, rank: int, name: str) -> Tensor:
    """Return the half of a weight, or of its gradient, that GPU `rank` has: rows of qkv and up, columns of the rest."""
    if "qkv" in name:
        return weight.unflatten(0, (3, 2, -1))[:, rank].flatten(0, 1)
    return weight.chunk(2, 0 if "up" in name else 1)[rank]


def distance(found: list[Tensor], wanted: list[Tensor]) -> float:
    """Largest distance of a tensor from the wanted one, over the norm of that one."""
    return max(float((a.float() - b.float()).norm() / b.float().norm()) for a, b in zip(found, wanted, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, kind in (("rank", int), ("store", Path), ("out", Path), ("device", str)):
        parser.add_argument(f"--{name}", type=kind, required=True)
    given = parser.parse_args()
    found = Bench(given.rank, given.device, given.store).run()
    dist.destroy_process_group()
    if given.rank == 0:
        given.out.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
