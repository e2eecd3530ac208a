import subprocess
import sys

import pytest

from mlsys.grading.slot import sandbox
from mlsys.grading.slot.probe import look_around
from mlsys.sandbox_check import check_sandbox


def test_the_sandbox_holds_here():
    assert check_sandbox() == ""


def test_the_probe_sees_that_this_process_is_in_no_sandbox(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    found = look_around()
    assert "/etc/passwd can be seen" in found
    assert any("processes can be seen" in sentence for sentence in found)


def test_missing_bubblewrap_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name, path=None: None)
    assert "apt-get install bubblewrap" in check_sandbox()


def test_apparmors_ban_comes_with_the_rule_that_lifts_it(monkeypatch, tmp_path):
    switch = tmp_path / "switch"
    switch.write_text("1\n")
    monkeypatch.setattr(sandbox, "_APPARMOR_SWITCH", switch)
    advice = sandbox.explain("bwrap: setting up uid map: Permission denied")
    assert "setting up uid map" in advice
    assert "userns," in advice
    assert "apparmor_parser -r /etc/apparmor.d/bwrap" in advice


def test_a_home_full_of_other_things_is_not_shown_as_python(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox.sys, "prefix", str(sandbox.Path.home()))
    with pytest.raises(sandbox.SandboxError, match="virtual environment"):
        sandbox.python_folders()


def test_the_check_needs_no_torch():
    code = "import sys; sys.modules['torch'] = sys.modules['triton'] = None\n"
    code += "from mlsys.sandbox_check import check_sandbox\n"
    done = subprocess.run([sys.executable, "-c", code + "print(check_sandbox())"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr
