"""Limits hold for all processes of a question together, however they hide; a neighbor's load is nobody's fault."""

import contextlib
import os
import subprocess
import sys

import pytest
from helpers.sending import STUDENT, fail, run

from mlsys.judge.sandbox.host import Limits, ProcessEnded, Sandbox
from mlsys.judge.sandbox.host.cgroup import MemoryCgroup

pytestmark = [pytest.mark.alone, pytest.mark.proof]

MIB = 2**20

BURN = """
import signal
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
"""
SPLITS = {
    "one child after the other": """
while True:
    child = os.fork()
    if child == 0:
        burn(0.2); os._exit(0)
    os.waitpid(child, 0)
""",
    "very short ones": """
while True:
    child = os.fork()
    if child == 0:
        burn(0.005); os._exit(0)
    os.waitpid(child, 0)
""",
    "ignored signal of their end": """
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(50):
    if os.fork() == 0:
        burn(0.04); os._exit(0)
    time.sleep(0.04)
time.sleep(100)
""",
    "no zombies wanted": """
import ctypes, struct
flags_no_child_wait = 2
action = struct.pack("QQQQ", 0, flags_no_child_wait, 0, 0)
ctypes.CDLL(None).syscall(13 if os.uname().machine == "x86_64" else 134, 17, action, None, 8)
for _ in range(50):
    if os.fork() == 0:
        burn(0.04); os._exit(0)
    time.sleep(0.04)
time.sleep(100)
""",
    "no signal of their end": """
import ctypes
clone = 56 if os.uname().machine == "x86_64" else 220
while True:
    try: child = ctypes.PyDLL(None).syscall(clone, 0, None, None, None, None)
    except OSError: child = -1
    if child == 0:
        burn(0.1); os._exit(0)
    time.sleep(0.11)
    if child < 0: break
time.sleep(100)
""",
    "daemons": """
while True:
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0: burn(0.1)
        os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.11)
""",
    "a chain": """
while True:
    burn(0.1)
    if os.fork(): os._exit(0) if os.getpid() > 3 else time.sleep(100)
""",
    "many side by side": """
for _ in range(40):
    if os.fork() == 0:
        os.setsid()
        while True: pass
time.sleep(100)
""",
}


def over(question, source, timeout_s=15.0):
    with pytest.raises(ProcessEnded) as error:
        question.request({"source": source}, timeout_s=timeout_s)
    return error.value.ending


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_cpu_time_is_the_sum_over_all_processes(sandbox, question, split):
    ending = over(question, BURN + split)
    assert ending.kind == "timed out"
    assert sandbox.limits.cpu_s <= ending.cpu_s < 2.5 * sandbox.limits.cpu_s


def test_honest_children_count_with_what_they_use(sandbox):
    with sandbox.open(STUDENT) as question:
        source = (
            "import subprocess, sys\nfor _ in range(10): subprocess.run(['/bin/sh', '-c', 'ls / | wc'])\nresult = 1"
        )
        assert run(question, source) == 1
    ending = question.close()
    assert (ending.kind, ending.exit_status) == ("exited", 0)
    assert ending.cpu_s < sandbox.limits.cpu_s


HOLD = "held = [bytearray(os.urandom(1)) * 10_000_000 for _ in range(15)]"


def test_memory_counts_when_the_first_thread_has_ended(question):
    source = f"""
import ctypes, threading
def hold():
    {HOLD}
    time.sleep(100)
for _ in range(6):
    if os.fork() == 0:
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)
time.sleep(3)
"""
    assert over(question, source).kind == "out of memory"


@pytest.mark.parametrize("command", ["vmsplice, 1, None, 0, 0", "splice, 0, None, 1, None, 1, 0", "tee, 0, 1, 1, 0"])
def test_pages_cannot_be_left_in_a_pipe(question, command):
    source = "import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\ndef call(f, *a):\n  f(*a)\n"
    source += f"  return errno.errorcode[ctypes.get_errno()]\nresult = call(libc.{command})"
    assert run(question, source) == "EPERM"


@pytest.mark.parametrize(
    "attempt",
    [
        "os.sched_setaffinity(0, {0})",
        "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
        "os.nice(5)",
        "import fcntl; fcntl.fcntl(1, 1031, 1 << 20)",
        "import fcntl; fcntl.lockf(open('/scratch/x', 'w'), fcntl.LOCK_EX)",
    ],
)
def test_a_question_cannot_take_more_than_its_share(question, attempt):
    assert fail(question, attempt) in {"PermissionError", "OSError"}


def test_files_can_still_be_copied(question):
    source = """
import shutil, subprocess
Path("/scratch/a").write_text("x" * 100_000)
shutil.copy2("/scratch/a", "/scratch/b")
subprocess.run(["/bin/cp", "/scratch/b", "/scratch/c"], check=True)
subprocess.run("cat /scratch/c | tee /scratch/d > /dev/null", shell=True, check=True)
os.sendfile(os.open("/scratch/e", os.O_CREAT | os.O_WRONLY), os.open("/scratch/d", os.O_RDONLY), 0, 100_000)
result = [os.path.getsize(f"/scratch/{name}") for name in "bcde"]
"""
    assert run(question, source) == [100_000] * 4


MANY_AREAS = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
areas = 60_000
start = libc.mmap(None, ctypes.c_size_t(areas * 4096), 0, 0x4022, -1, 0)
for number in range(0, areas, 2):
    libc.mprotect(ctypes.c_void_p(start + number * 4096), ctypes.c_size_t(4096), 1)
for _ in range(50):
    if os.fork() == 0: time.sleep(100)
time.sleep(1)
result = "alive"
"""
"""Takes some 500 MB in the kernel, which are in no resident size, nor in page tables."""


@pytest.mark.parametrize(("short", "ends"), [(True, "lost"), (False, "alive")])
def test_memory_out_of_sight_ends_a_question_only_where_the_machine_has_none_left(site, short, ends):
    limits = Limits(memory_bytes=150 * MIB, machine_bytes=2**60 if short else 0, buffer_bytes=MIB, kill_s=60)
    with Sandbox(site, limits, preload=(), index=8) as sandbox, sandbox.open(STUDENT) as question:
        try:
            found = run(question, MANY_AREAS)
        except ProcessEnded as error:
            found = error.ending.kind
    assert found == ends


def oom_kills(folder):
    """How many processes the kernel has ended in a cgroup because of its limit."""
    name = "memory.events" if (folder / "memory.events").exists() else "memory.oom_control"
    return int(dict(line.split() for line in (folder / name).read_text().splitlines())["oom_kill"])


def test_a_cgroup_limits_memory_out_of_sight_and_goes_with_its_sandbox(site):
    limits = Limits(
        memory_bytes=150 * MIB,
        fork_server_bytes=60 * MIB,
        machine_bytes=0,
        buffer_bytes=MIB,
        scratch_bytes=MIB,
        kill_s=60,
    )
    with Sandbox(site, limits, preload=(), index=8) as sandbox:
        if sandbox._cgroup is None:
            pytest.skip("this user cannot make a cgroup here")
        folder = sandbox._cgroup.folder
        with sandbox.open(STUDENT) as question:
            run(question, "result = 1")
            assert oom_kills(folder) == 0
            with contextlib.suppress(ProcessEnded):
                run(question, MANY_AREAS, timeout_s=20)
        assert oom_kills(folder) > 0
        with sandbox.open(STUDENT) as question:
            assert run(question, "result = 1") == 1
        assert sandbox.starts == 1
    assert not folder.exists()


def test_the_cgroup_of_a_killed_judge_is_removed_by_the_next(monkeypatch):
    left = MemoryCgroup.create(8, 100 * MIB)
    if left is None:
        pytest.skip("this user cannot make a cgroup here")
    gone = left.folder.with_name("mlsys-sandbox-999999999-0-0")
    left.folder.rmdir()
    gone.mkdir()
    another = MemoryCgroup.create(8, 100 * MIB)
    assert not gone.exists()
    another.remove(0)
    assert not another.folder.exists()


def test_a_short_machine_is_no_reason_to_end_a_question_that_took_nothing(site):
    with Sandbox(site, Limits(machine_bytes=2**60), preload=(), index=8) as sandbox, sandbox.open(STUDENT) as question:
        assert run(question, "time.sleep(0.3); result = 1") == 1


@contextlib.contextmanager
def busy_core(core):
    """A core with many others on it, each in a session of its own, as the scheduler shares time among sessions."""
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", code], start_new_session=True) for _ in range(12)]
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
        for other in others:
            other.kill()
            other.wait()


def test_who_gets_no_cpu_is_starved_and_who_sleeps_is_timed_out(site):
    limits = Limits(cpu_s=3, wall_s=5.0, kill_s=60, start_s=120, open_s=60, close_s=10)
    kinds = []
    with busy_core(min(os.sched_getaffinity(0))), Sandbox(site, limits, preload=(), index=8) as sandbox:
        for source in ("while True: pass", "time.sleep(100)"):
            with sandbox.open(STUDENT) as question:
                kinds.append(over(question, source).kind)
    assert kinds == ["starved", "timed out"]
