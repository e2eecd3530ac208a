"""A sandbox's life: many questions, a lost fork server, a lost judge, another user."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from helpers.alive import wait_for_end
from helpers.sending import STUDENT, fail, run, work_honestly

from mlsys.judge.sandbox.host import Limits, ProcessEnded, Sandbox, SandboxError, bubblewrap
from mlsys.judge.sandbox.inside.usage import descendants

FORKS = """
held = []
try:
    while True:
        held.append(os.fork())
        if held[-1] == 0: time.sleep(100)
except BlockingIOError: result = len(held)
"""
QUICK = Limits(kill_s=0.5, close_s=0.5, buffer_bytes=2**20)


@pytest.fixture
def light_sandbox(site):
    """A sandbox without torch, to be killed."""
    with Sandbox(site, QUICK, preload=(), index=3) as sandbox:
        yield sandbox


def count(folder):
    return len(list(Path(folder).iterdir()))


def fork_server(sandbox):
    """The first process below bubblewrap's that runs Python."""
    for process in descendants(sandbox._process.pid):
        if Path(f"/proc/{process}/exe").readlink().name.startswith("python"):
            return process
    raise AssertionError("no fork server")


def wait_until(condition, within_s=10.0):
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_two_hundred_questions_leave_no_descriptor_and_no_process(light_sandbox):
    work_honestly(light_sandbox)
    before, processes = count("/proc/self/fd"), len(descendants(light_sandbox._process.pid))
    for number in range(200):
        with light_sandbox.open(STUDENT) as question:
            if number % 2:
                with pytest.raises(ProcessEnded):
                    question.request({"source": "os._exit(1)"})
    assert count("/proc/self/fd") == before
    wait_until(lambda: len(descendants(light_sandbox._process.pid)) == processes)
    assert light_sandbox.starts == 1


def test_the_fork_server_keeps_no_descriptor_of_a_question(light_sandbox):
    work_honestly(light_sandbox)
    parent = fork_server(light_sandbox)
    before = count(f"/proc/{parent}/fd")
    for _ in range(5):
        work_honestly(light_sandbox)
    assert count(f"/proc/{parent}/fd") == before


def test_a_killed_fork_server_costs_one_question(light_sandbox):
    question = light_sandbox.open(STUDENT)
    os.kill(fork_server(light_sandbox), signal.SIGKILL)
    with pytest.raises(ProcessEnded) as error:
        run(question, "time.sleep(10)")
    assert error.value.ending.kind == "lost"
    work_honestly(light_sandbox)
    assert light_sandbox.starts == 2


def test_a_fork_server_killed_between_questions_costs_none(light_sandbox):
    os.kill(fork_server(light_sandbox), signal.SIGKILL)
    work_honestly(light_sandbox)
    assert light_sandbox.starts == 2


def test_a_fork_server_that_does_not_answer_is_replaced(light_sandbox):
    question = light_sandbox.open(STUDENT)
    os.kill(fork_server(light_sandbox), signal.SIGSTOP)
    old = descendants(light_sandbox._process.pid)
    with pytest.raises(ProcessEnded) as error:
        run(question, "while True: pass", timeout_s=0.1)
    assert error.value.ending.kind == "timed out"
    wait_for_end(old, within_s=10)
    work_honestly(light_sandbox)
    assert light_sandbox.starts == 2


def test_a_killed_judge_leaves_no_process(site, tmp_path):
    script = f"""
        import sys, time
        from pathlib import Path
        from mlsys.judge.sandbox.host import Sandbox
        sandbox = Sandbox(Path({str(site)!r}), preload=(), index=4)
        sandbox.start()
        question = sandbox.open({STUDENT!r})
        print(sandbox._process.pid, flush=True)
        question.request({{"source": "while True: pass"}})
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True) as judge:
        processes = descendants(int(judge.stdout.readline()))
        assert len(processes) >= 3
        judge.kill()
    wait_for_end(processes, within_s=10)


def test_two_questions_run_side_by_side_and_see_nothing_of_each_other(light_sandbox):
    look = "result = [sorted(os.listdir('/proc'))[:3], os.listdir('/scratch')]"
    with light_sandbox.open(STUDENT) as one, light_sandbox.open(STUDENT) as other:
        run(one, "open('/scratch/mine', 'w').write('x')")
        alone = run(one, look)
        assert alone[1] == ["mine"]
        processes, files = run(other, look)
        assert (processes, files) == (alone[0], [])
        assert fail(other, "os.kill(3, 9)") == "ProcessLookupError"
        with light_sandbox.open(STUDENT), pytest.raises(ValueError, match="close one first"):
            light_sandbox.open(STUDENT)
    assert {one.close().kind, other.close().kind} == {"exited"}
    work_honestly(light_sandbox)


@pytest.mark.parametrize(
    ("source", "kind"),
    [("os._exit(3)", "exited"), ("os.abort()", "crashed"), ("while True: pass", "timed out")],
    ids=["leaves", "crashes", "does not answer"],
)
def test_the_end_of_one_question_is_not_that_of_the_other(light_sandbox, source, kind):
    with light_sandbox.open(STUDENT) as first, light_sandbox.open(STUDENT) as second:
        for question in (first, second):
            run(question, "here = 7")
        with pytest.raises(ProcessEnded) as error:
            first.request({"source": source}, timeout_s=0.3)
        assert error.value.ending.kind == kind
        assert run(second, "result = here") == 7
    assert light_sandbox.starts == 1


def test_both_ends_are_told_in_whatever_order_they_are_asked_for(light_sandbox):
    first, second = light_sandbox.open(STUDENT), light_sandbox.open(STUDENT)
    for question, status in ((first, 5), (second, 6)):
        question.request({"source": f"import threading; threading.Timer(0.1, os._exit, [{status}]).start()"})
    time.sleep(0.3)
    assert (second.close().exit_status, first.close().exit_status) == (6, 5)


def test_two_questions_are_lost_with_their_sandbox_and_a_later_one_is_not(light_sandbox):
    first, second = light_sandbox.open(STUDENT), light_sandbox.open(STUDENT)
    os.kill(fork_server(light_sandbox), signal.SIGKILL)
    with pytest.raises(ProcessEnded) as error:
        run(first, "time.sleep(10)")
    assert error.value.ending.kind == "lost"
    third = light_sandbox.open(STUDENT)
    assert second.close().kind == "lost"
    assert run(third, "result = 1") == 1
    assert third.close().kind == "exited"
    assert light_sandbox.starts == 2


def test_an_entry_that_cannot_be_imported_is_named(light_sandbox):
    before = count("/proc/self/fd")
    with pytest.raises(ValueError, match="No module named 'nowhere'"):
        light_sandbox.open("nowhere:serve")
    assert count("/proc/self/fd") == before
    work_honestly(light_sandbox)


def test_an_entry_without_its_function_ends_with_a_traceback(light_sandbox):
    question = light_sandbox.open("student:nothing")
    with pytest.raises(ProcessEnded) as error:
        question.request({})
    assert error.value.ending.exit_status == 1
    assert "AttributeError" in error.value.ending.output


def test_a_question_whose_folders_cannot_be_mounted_says_so(site):
    with Sandbox(site, Limits(scratch_files=-1), preload=(), index=5) as sandbox, sandbox.open(STUDENT) as question:
        with pytest.raises(ProcessEnded) as error:
            question.request({"source": ""})
        assert error.value.ending.kind == "lost"
        assert "mount /scratch: Invalid argument" in error.value.ending.output


def test_an_entry_that_starts_threads_is_refused_by_name(site, light_sandbox):
    (site / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\n"
    )
    with pytest.raises(SandboxError, match="2 threads"):
        light_sandbox.open("threaded:serve")
    work_honestly(light_sandbox)


def test_an_ending_tells_time_and_memory(sandbox):
    with sandbox.open(STUDENT) as question:
        run(question, "end = time.process_time() + 0.2\nwhile time.process_time() < end: pass")
        run(question, "x = bytes([1]) * 150_000_000; time.sleep(0.1)")
    ending = question.close()
    assert 0.2 < ending.cpu_s < 2
    assert 0.3 < ending.wall_s < 10
    assert 300e6 < ending.peak_rss_bytes < 600e6


def test_a_site_that_others_cannot_read_is_refused_by_name(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("an ordinary user reads its own folder")
    tmp_path.chmod(0o700)
    with pytest.raises(SandboxError, match="chmod"):
        Sandbox(tmp_path)


def test_a_sandbox_that_cannot_start_says_why(tmp_path):
    tmp_path.chmod(0o755)
    sandbox = Sandbox(tmp_path, preload=())
    with pytest.raises(SandboxError, match="No module named 'mlsys'"):
        sandbox.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user then")
def test_an_ordinary_user_needs_no_root(site, tmp_path):
    script = f"""
        import os
        from pathlib import Path
        assert os.getresuid() == (65533,) * 3
        from mlsys.judge.sandbox.host import Sandbox
        with Sandbox(Path("/site"), preload=()) as sandbox, sandbox.open({STUDENT!r}) as question:
            print(question.request({{"source": "result = [os.getuid(), os.path.exists('/own')]"}}).header)
            status = question.request({{"source": "result = open('/proc/self/status').read()"}}).header["result"]
            assert "Seccomp:\\t2" in status and "CapEff:\\t0000000000000000" in status
            bomb = question.request({{"source": {FORKS!r}}}).header
            assert 40 < bomb["result"] < 64, bomb
    """
    # Root's own home may hold Python, closed to everyone else: show its folders as a sandbox of root does.
    folders = {folder: folder for folder in bubblewrap.python_folders()} | {site: Path("/site")}
    view = [
        shutil.which("bwrap"),
        *bubblewrap._file_flags(folders),
        "--dev-bind",
        "/proc",
        "/proc",
        "--dev-bind",
        "/dev",
        "/dev",
    ]
    view += [
        "--dir",
        "/tmp",
        "--perms",
        "1777",
        "--tmpfs",
        "/own",
        "setpriv",
        "--reuid",
        "65533",
        "--regid",
        "65533",
        "--clear-groups",
    ]
    environment = {"PATH": "/usr/bin", "PYTHONPATH": "/site", "HOME": "/own", "TMPDIR": "/own"}
    done = subprocess.run(
        [*view, sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{'result': [65533, False]}"
