"""Limits of a process of a question, and of one message."""

from dataclasses import dataclass

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True)
class Limits:
    """Limits of each process of a question, with all that it starts; times in seconds, sizes in bytes.

    Attributes:
        wall_s: the whole question, kept by the judge: twice the CPU time, as sandboxes share cores.
        cpu_s: all processes together, the ended ones too; the watchdog kills above it, and the kernel keeps it for each
            process. An honest question takes a few seconds in Triton's interpreter.
        data_bytes: private memory of each process; above it Python raises MemoryError. Torch takes 0.2 GB of it, and
            its build with CUDA 0.8 GB.
        memory_bytes: memory of all processes together; the watchdog kills above it.
        fork_server_bytes: the fork server, with what the files that it reads take in the kernel.
        machine_bytes: memory that the machine must still have for programs; below it, a process ends beside which it
            has lost more than `memory_bytes` that nobody accounts for.
        processes: threads count too; three are the sandbox's own.
        open_files: a Python that has loaded torch keeps fewer than 10 open.
        locked_bytes: memory that cannot be swapped out; CUDA's pinned memory is not counted here.
        signals: signals that wait, and timers, each of which takes kernel memory.
        scratch_bytes: the only writable folder; Triton's cache of one question takes under 1 MB.
        scratch_files: files and folders in it.
        output_bytes: stdout and stderr together; what follows is dropped. It is the size of a pipe: a power of two from
            4 KiB to 1 MiB.
        buffer_bytes: all tensors of one request, and of one reply.
        tensors: how many tensors one message may hold.
        header_bytes: one message without its tensors; a Unix socket takes about 200 KiB as Linux comes.
        header_depth: lists and dicts inside one another; Python's own reader fails near 1000.
        start_s: the start of a sandbox, which imports torch and triton.
        open_s: the start of one process.
        close_s: from closing a process to its own exit; after it the process is killed.
        kill_s: from a kill to the report of its end; after it the whole sandbox is killed.
        sandboxed: False gives up bubblewrap, namespaces and the file system of their own, as `mlsys grade
            --unsafe-no-sandbox` asks; the other limits and the system-call filter stay.
        watch_s: from one look of the watchdog to the next; in it two cores fill about 0.1 GB.
    """

    wall_s: float = 120.0
    cpu_s: int = 60
    data_bytes: int = 2 * GIB
    memory_bytes: int = 3 * GIB
    fork_server_bytes: int = GIB
    machine_bytes: int = GIB // 2
    processes: int = 64
    open_files: int = 64
    locked_bytes: int = 64 * KIB
    signals: int = 1024
    scratch_bytes: int = 64 * MIB
    scratch_files: int = 4096
    output_bytes: int = 64 * KIB
    buffer_bytes: int = 256 * MIB
    tensors: int = 64
    header_bytes: int = 128 * KIB
    header_depth: int = 32
    start_s: float = 60.0
    open_s: float = 10.0
    close_s: float = 1.0
    kill_s: float = 3.0
    watch_s: float = 0.05
    sandboxed: bool = True
