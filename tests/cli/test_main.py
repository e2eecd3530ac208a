import os
import re
import tempfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlsys.cli import doctor
from mlsys.cli import main as cli


def test_doctor_reports_versions_and_device(capsys):
    assert cli.main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "numpy" in printed
    assert ", full package" in printed
    assert "What runs here" in printed
    assert "sandbox for grading" in printed


def test_doctor_tells_students_to_install_what_they_need_and_no_more(monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", missing)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)  # also no `mlsys.judge`: the student's package
    monkeypatch.setattr(doctor.sys, "platform", "linux")
    printed = "\n".join([*doctor.versions(), *map(str, doctor.abilities(doctor.detect_device()))])
    assert "torch and triton not installed; pip install torch triton" in printed
    assert re.search(r"^triton +not installed; pip install triton$", printed, re.M)
    assert "mlsys[" not in printed
    assert "nbgrader" not in printed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes to /usr")
def test_doctor_says_that_student_code_could_read_the_course_here(monkeypatch, capsys):
    with tempfile.TemporaryDirectory(dir="/usr/local/src") as folder:
        Path(folder, "labs").mkdir()
        monkeypatch.chdir(folder)
        assert cli.main(["doctor"]) == 0
        assert f"{folder} is in /usr" in capsys.readouterr().out
        monkeypatch.chdir("/")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["roofline", "--out", "picture.xyz"], "the ending is '.xyz'; use one of .png"),
        (["roofline", "--out", "/proc/here/roofline.png"], "cannot write /proc/here/roofline.png"),
    ],
)
def test_a_mistake_ends_in_one_message_and_status_2(arguments, message, capsys):
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("command", [["serve", "--roster", "roster.csv"], ["mark", "tiling"]])
def test_a_port_is_a_number_of_16_bits(command, capsys):
    for port in (0, 2**16 - 1):
        assert cli.build_parser(command[0]).parse_args([*command, "--port", str(port)]).port == port
    for port in ("-1", str(2**16), "99999", "8000.0", "http"):
        with pytest.raises(SystemExit) as stop:
            cli.main([*command, "--port", port])
        assert stop.value.code == 2
        assert f"argument --port: {port!r} is not a whole number from 0 to 65535" in capsys.readouterr().err


def test_an_unknown_command_ends_with_status_2_and_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["rofline"])
    assert stop.value.code == 2
    assert "roofline" in capsys.readouterr().err


def test_a_missing_extra_is_named(monkeypatch, capsys):
    def without_nbgrader(name):
        raise ModuleNotFoundError("No module named 'nbgrader'", name="nbgrader.apps")

    monkeypatch.setattr(cli, "import_module", without_nbgrader)
    assert cli.main(["grade", "tiling"]) == 2
    assert "pip install 'mlsys[grading]'" in capsys.readouterr().err


def test_ctrl_c_ends_in_one_message_and_status_130(monkeypatch, capsys):
    def stop(args):
        raise KeyboardInterrupt

    module = SimpleNamespace(add_arguments=lambda parser: None, run=stop)
    monkeypatch.setattr(cli, "import_module", lambda name: module)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "mlsys: Interrupted.\n"
    module.interrupted = lambda args: f"Interrupted: go on with {args.command}"
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "mlsys: Interrupted: go on with doctor\n"
