"""Processes without bubblewrap, as `mlsys grade --unsafe-no-sandbox` runs them: what still holds, and what does not."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from helpers.alive import alive
from helpers.sending import STUDENT, make_site, run

from mlsys.judge.sandbox.host import Limits, ProcessEnded, Sandbox, SandboxError

DAEMON = """if os.fork() == 0:
  os.setsid()
  if os.fork(): os._exit(0)"""
LIMITS = Limits(sandboxed=False, cpu_s=2, wall_s=40, memory_bytes=200 * 2**20, buffer_bytes=2**20, kill_s=60)


@pytest.fixture(scope="module")
def unsandboxed():
    os.environ["MLSYS_TEST_SECRET"] = "1"
    # Below pytest's own folder the sandbox's user could not read it.
    site = Path(tempfile.mkdtemp(prefix="mlsys-test-site-"))
    try:
        with Sandbox(make_site(site), LIMITS, preload=(), index=5) as sandbox:
            yield sandbox
    finally:
        shutil.rmtree(site)
        del os.environ["MLSYS_TEST_SECRET"]


def test_files_of_the_machine_can_be_seen_and_nothing_is_root(unsandboxed):
    with unsandboxed.open(STUDENT) as question:
        assert run(question, "result = os.path.exists('/etc/passwd')")
        assert run(question, "result = os.getuid()") != 0 or os.geteuid() != 0
        status = run(question, "result = open('/proc/self/status').read()")
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives the sandbox a user of its own")
def test_a_folder_that_the_sandboxs_user_cannot_read_is_no_reason_to_use_the_installed_package(tmp_path):
    site = make_site(tmp_path)
    tmp_path.chmod(0o700)
    sandbox = Sandbox(site, LIMITS, preload=(), index=5)
    try:
        with pytest.raises(SandboxError, match="cannot be read by the user of the sandbox"):
            sandbox.start()
    finally:
        sandbox.close()


def test_the_environment_is_not_that_of_the_judge(unsandboxed):
    with unsandboxed.open(STUDENT) as question:
        assert "MLSYS_TEST_SECRET" not in run(question, "result = list(os.environ)")
        assert run(question, "result = os.environ['HOME']") == run(question, "result = os.getcwd()")


def test_what_one_question_writes_is_gone_in_the_next(unsandboxed):
    with unsandboxed.open(STUDENT) as question:
        run(question, "Path('deep').mkdir(); Path('deep', 'left').write_text('x'); Path('left').write_text('x')")
    with unsandboxed.open(STUDENT) as question:
        assert run(question, "result = os.listdir('.')") == []


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("while True: pass", "timed out"),
        ("os._exit(3)", "exited"),
        (
            f"for _ in range(9):\n {DAEMON}\n  end = time.process_time() + 0.5\n"
            "  while time.process_time() < end: pass\n"
            "  os._exit(0)\ntime.sleep(100)",
            "timed out",
        ),
        (f"{DAEMON}\n  held = [b'x' * 2**20 for _ in range(300)]; time.sleep(30)\ntime.sleep(30)", "out of memory"),
        ("held = [b'x' * 2**20 for _ in range(300)]; time.sleep(30)", "out of memory"),
    ],
)
def test_limits_still_hold(unsandboxed, source, kind):
    with unsandboxed.open(STUDENT) as question:
        with pytest.raises(ProcessEnded) as over:
            question.request({"source": source})
        assert over.value.ending.kind == kind
        assert over.value.ending.wall_s < LIMITS.wall_s
    with unsandboxed.open(STUDENT) as question:
        assert run(question, "result = 1 + 1") == 2


def test_a_daemon_of_another_session_dies_with_its_question(unsandboxed):
    source = f"""
{DAEMON}
  Path("daemon").write_text(str(os.getpid()))
  time.sleep(100)
while not Path("daemon").exists() or not Path("daemon").read_text(): time.sleep(0.01)
result = int(Path("daemon").read_text())
"""
    with unsandboxed.open(STUDENT) as question:
        daemon = run(question, source)
        assert alive(daemon)
    assert not alive(daemon)


@pytest.mark.parametrize(
    "left",
    [
        "for _ in range(3000):\n os.mkdir('d'); os.chdir('d')",
        "os.mkdir('closed'); os.mkdir('closed/in'); os.chmod('closed', 0)",
        "os.chmod('.', 0o500)",
        "try: os.rename(os.getcwd(), os.getcwd() + '-away')\nexcept OSError: pass",
    ],
    ids=["deep", "closed", "read-only", "renamed"],
)
def test_files_left_behind_do_not_end_the_sandbox(unsandboxed, left):
    if "rename" in left and os.geteuid() != 0:
        pytest.skip("without root, the folder's owner is the judge's own user")
    with unsandboxed.open(STUDENT) as question:
        run(question, left)
    starts = unsandboxed.starts
    with unsandboxed.open(STUDENT) as question:
        assert run(question, "result = 1 + 1") == 2
    assert unsandboxed.starts == starts


def test_a_process_left_behind_dies_with_its_question(unsandboxed):
    source = """
left = os.fork()
if left == 0:
    time.sleep(100)
result = [left, os.getpid()]
"""
    with unsandboxed.open(STUDENT) as question:
        processes = run(question, source)
        assert all(alive(process) for process in processes)
    assert not any(alive(process) for process in processes)
