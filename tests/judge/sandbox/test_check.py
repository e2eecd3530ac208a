import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mlsys.judge.sandbox.check import check_sandbox
from mlsys.judge.sandbox.host import bubblewrap
from mlsys.judge.sandbox.host.shown_files import exposed
from mlsys.judge.sandbox.inside.probe import can_be_seen, look_around


def test_the_sandbox_holds_here():
    assert check_sandbox() == ""


def test_the_probe_sees_that_this_process_is_in_no_sandbox(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = look_around()
    assert "/etc/passwd can be seen" in found
    assert any("processes can be seen" in sentence for sentence in found)


def test_missing_bubblewrap_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(bubblewrap.shutil, "which", lambda name, path=None: None)
    assert "apt-get install bubblewrap" in check_sandbox()


def test_apparmors_ban_comes_with_the_rule_that_lifts_it(monkeypatch, tmp_path):
    switch = tmp_path / "switch"
    switch.write_text("1\n")
    monkeypatch.setattr(bubblewrap, "_APPARMOR_SWITCH", switch)
    advice = bubblewrap.explain("bwrap: setting up uid map: Permission denied")
    assert "setting up uid map" in advice
    assert "userns," in advice
    assert "apparmor_parser -r /etc/apparmor.d/bwrap" in advice


def test_a_home_full_of_other_things_is_not_shown_as_python(monkeypatch, tmp_path):
    monkeypatch.setattr(bubblewrap.sys, "prefix", str(bubblewrap.Path.home()))
    with pytest.raises(bubblewrap.SandboxError, match="virtual environment"):
        bubblewrap.python_folders()


def test_the_check_needs_no_torch():
    code = "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
    code += "from mlsys.judge.sandbox.check import check_sandbox\n"
    done = subprocess.run([sys.executable, "-c", code + "print(check_sandbox())"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes to /usr")
@pytest.mark.parametrize("name", ["itself", "a link to it", "a file in it"])
def test_a_course_in_a_folder_that_the_sandbox_shows_is_named(tmp_path, name):
    with tempfile.TemporaryDirectory(dir="/usr/local/src") as folder:
        Path(folder, "gradebook.db").write_text("marks")
        link = tmp_path / "link"
        link.symlink_to(folder)
        private = {"itself": Path(folder), "a link to it": link, "a file in it": link / "gradebook.db"}[name]
        found = check_sandbox(private=[tmp_path, private])
    assert f"{private} is in /usr" in found
    assert f"move {private} out of /usr" in found


def test_a_course_in_the_virtual_environment_is_named_and_one_around_it_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(bubblewrap.sys, "prefix", str(tmp_path / "repository" / ".venv"))
    inside = tmp_path / "repository" / ".venv" / "course"
    inside.mkdir(parents=True)
    assert exposed([tmp_path / "repository", tmp_path / "repository" / "labs"]) == ""
    assert f"{inside} is in {tmp_path}/repository/.venv" in exposed([tmp_path / "repository", inside])
    assert "move" in exposed([tmp_path / "repository" / ".venv"])


def test_the_repository_around_this_virtual_environment_is_not_seen():
    assert check_sandbox(private=[Path(sys.prefix).parent, Path(__file__).parents[3]]) == ""


MOUNTED = """
import subprocess, sys
from pathlib import Path
from mlsys.judge.sandbox.host.shown_files import exposed
course, folder = map(Path, sys.argv[1:])
subprocess.run(["mount", "--bind", course, folder], check=True)
print(exposed([course / "submitted"]))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_course_that_is_mounted_in_a_shown_folder_too_is_named(tmp_path):
    (tmp_path / "submitted").mkdir()
    with tempfile.TemporaryDirectory(dir="/usr/local/src") as folder:
        command = ["unshare", "--mount", sys.executable, "-c", MOUNTED, str(tmp_path), folder]
        done = subprocess.run(command, capture_output=True, text=True)
    if "Operation not permitted" in done.stderr:
        pytest.skip("nothing can be mounted here")
    assert f"{tmp_path}/submitted is in /usr" in done.stdout, done.stderr


def test_the_probe_sees_files_by_name(tmp_path):
    (tmp_path / "gradebook.db").write_text("marks")
    assert can_be_seen(tmp_path)
    assert can_be_seen(tmp_path / "gradebook.db")
    assert not can_be_seen(tmp_path / "none")
    assert can_be_seen(Path(sys.prefix))
