"""What code sees and may touch inside a sandbox."""

import os
import subprocess

import pytest
from helpers.sending import STUDENT, fail, run

from mlsys.judge.sandbox.host import Sandbox, bubblewrap

ALLOWED_ENVIRONMENT = {
    "PATH", "LANG", "LC_CTYPE", "USER", "HOME", "TMPDIR", "PWD", "TRITON_CACHE_DIR", "TRITON_INTERPRET",
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS",
}  # fmt: skip

CALL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *arguments):
    returned = function(*arguments)
    return "allowed" if returned >= 0 else errno.errorcode[ctypes.get_errno()]
"""


def test_two_processes_are_seen_the_first_and_its_own(question):
    assert sorted(run(question, "result = [name for name in os.listdir('/proc') if name.isdecimal()]")) == ["1", "2"]
    assert run(question, "result = os.getpid()") == 2


def test_only_the_loopback_of_an_empty_network_is_seen(question):
    lines = run(question, "result = open('/proc/net/dev').read()").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in lines] == ["lo"]


def test_no_socket_can_be_made(question):
    assert fail(question, "socket.socket()") == "PermissionError"
    assert fail(question, "socket.socket(socket.AF_UNIX)") == "PermissionError"
    assert fail(question, "socket.socketpair()") == "PermissionError"


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/hostname", "/home", "/tmp", "/var", "/sys", "/run", "/boot"])
def test_the_machine_is_hidden(question, path):
    """Folders on the way to Python may show, and in them nothing else."""
    code = "from pathlib import Path; from mlsys.judge.sandbox.inside.probe import strangers; "
    assert run(question, f"{code}result = [str(found) for found in strangers(Path({path!r}))]") == []


def test_files_of_the_course_are_hidden(question, tmp_path):
    secret = tmp_path / "gradebook.db"
    secret.write_text("marks")
    assert fail(question, f"open({str(secret)!r})") == "FileNotFoundError"
    assert fail(question, f"open({__file__!r})") == "FileNotFoundError"


def test_nothing_outside_the_shown_folders_is_in_the_tree(question):
    source = """
shown = ("/usr", "/proc", "/dev", "/site", sys.prefix, sys.base_prefix)
result = []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if os.path.join(folder, name) not in shown]
    result += [os.path.join(folder, name) for name in files]
"""
    assert run(question, source) == []


def test_the_environment_holds_nothing_of_the_judge(site, monkeypatch):
    monkeypatch.setenv("COURSE_SECRET", "hunter2")
    with Sandbox(site, preload=(), index=1) as sandbox, sandbox.open(STUDENT) as question:
        assert set(run(question, "result = sorted(os.environ)")) <= ALLOWED_ENVIRONMENT
        assert "hunter2" not in run(question, "result = open('/proc/self/environ').read()")
        assert fail(question, "open('/proc/1/environ').read()") == "PermissionError"


@pytest.mark.parametrize(
    "folder", ["/", "/usr", "/usr/lib", "/site", "/site/mlsys", "/dev", "/dev/shm", "/proc", "/root"]
)
def test_only_the_scratch_folder_can_be_written(question, folder):
    assert fail(question, f"open('{folder}/planted', 'w')") in {"OSError", "PermissionError", "FileNotFoundError"}


def test_python_itself_cannot_be_written(question):
    assert fail(question, "open(sys.prefix + '/planted', 'w')") == "OSError"
    assert fail(question, "open(os.__file__, 'a')") in {"OSError", "PermissionError"}


def test_temporary_files_work_in_the_scratch_folder(question):
    assert run(question, "import tempfile; f = tempfile.NamedTemporaryFile(); result = f.name").startswith("/scratch/")


def test_no_capability_is_left_and_none_comes_back(question):
    status = run(question, "result = open('/proc/self/status').read()")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapPrm"], 16) == int(fields["CapEff"], 16) == int(fields["CapInh"], 16) == 0
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == "2"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user has no other user to become")
def test_each_sandbox_of_root_has_a_user_of_its_own(site):
    users = []
    for index in (1, 2):
        with Sandbox(site, preload=(), index=index) as sandbox, sandbox.open(STUDENT) as question:
            users.append(run(question, "result = os.getresuid() + os.getresgid()"))
            assert run(question, "result = os.getgroups()") == []
    assert len({*users[0]}) == len({*users[1]}) == 1
    assert 0 not in users[0]
    assert users[0] != users[1]


@pytest.mark.parametrize(
    "attempt",
    [
        "libc.mount, b'tmpfs', b'/scratch', b'tmpfs', 0, None",
        "libc.umount2, b'/proc', 2",
        "libc.unshare, 0x10000000",
        "libc.unshare, 0x00020000",
        "libc.setns, 0, 0",
        "libc.chroot, b'/scratch'",
        "libc.ptrace, 16, 1, None, None",
        "libc.ptrace, 0, 0, None, None",
        "libc.process_vm_readv, 1, None, 0, None, 0, 0",
        "libc.memfd_create, b'hidden', 0",
        "libc.shmget, 0, 1 << 20, 0o1600",
        "libc.personality, 0x0040000",
        "libc.prlimit, 1, 0, b'0' * 16, None",
        "libc.syscall, 56, 0x10000000 | 17, None, None, None, None",
        "libc.syscall, 250, 0, 0, 0",
        "libc.syscall, 321, 0, None, 0",
        "libc.syscall, 425, 1, None",
        "libc.ioctl, 0, 0x5412, b'x'",
    ],
)
def test_system_calls_that_open_a_way_out_are_refused(question, attempt):
    assert run(question, f"{CALL}\nresult = call({attempt})") == "EPERM"


def test_threads_still_start_without_clone3(question):
    source = """
import threading
done = []
threads = [threading.Thread(target=done.append, args=[i]) for i in range(4)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
result = sorted(done)
"""
    assert run(question, source) == [0, 1, 2, 3]


def test_other_programs_run_under_the_same_filter(question):
    source = """
import subprocess
done = subprocess.run(["/usr/bin/unshare", "-U", "true"], capture_output=True, text=True)
result = [done.returncode != 0, subprocess.run(["/bin/echo", "hello"], capture_output=True, text=True).stdout]
"""
    assert run(question, source) == [True, "hello\n"]


def test_the_first_process_cannot_be_touched(question):
    assert fail(question, "open('/proc/1/mem', 'r+b')") == "PermissionError"
    assert fail(question, "os.listdir('/proc/1/fd')") == "PermissionError"
    assert (
        fail(question, "os.sched_setaffinity(1, {0}); os.kill(1, 0); open('/proc/1/oom_score_adj', 'w').write('1000')")
        == "PermissionError"
    )


def test_an_installed_package_shows_no_more_than_the_site(tmp_path, monkeypatch):
    """Installed as a wheel, the package lies in a folder that the sandbox shows; the copy takes its place."""
    site, installed = tmp_path / "site" / "mlsys", tmp_path / "python" / "mlsys"
    for folder, text in ((site, "left out"), (installed, "the answer")):
        folder.mkdir(parents=True)
        (folder / "traffic.py").write_text(text)
    for folder in (tmp_path, *tmp_path.rglob("*")):
        folder.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "installed_package", lambda: installed)
    monkeypatch.setattr(bubblewrap, "python_folders", lambda: [tmp_path / "python"])
    command = bubblewrap.sandbox_command(
        site.parent, index=9, gpu=False, scratch_bytes=1 << 20, command=["/bin/cat", str(installed / "traffic.py")]
    )
    assert subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout == "left out"
