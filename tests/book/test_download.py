"""What the download buttons give runs on a machine without the course: its first cell installs the package."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: mlsys[book] brings it")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: mlsys[book] brings it")
pytestmark = pytest.mark.proof

ROOT = Path(__file__).parents[2]
WANT = re.compile(r"(?:ModuleNotFound|Import|FileNotFound|CalledProcess)Error")
WHEEL_ADDRESS = re.compile(r"https://\S+?/wheels/(mlsys-[\w.+-]+\.whl)")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has everything that Colab brings, and not the package."""
    folder = tmp_path_factory.mktemp("machine")
    venv.create(folder / "venv", with_pip=True)
    [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
    # A path in a .pth file is not searched for .pth files itself: an editable install of the package stays out.
    (packages / "colab.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kernel = folder / "share" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [str(folder / "venv" / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "fresh", "language": "python"}))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(folder / "wheels"), str(ROOT)], check=True)
    return folder


@pytest.mark.parametrize("notebook_path", ["chapters/tiling.ipynb", "labs/tiling/tiling.ipynb"])
def test_a_downloaded_notebook_runs_where_the_package_is_missing(
    notebook_path: str, fresh: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [wheel] = (fresh / "wheels").glob("mlsys-*.whl")
    text = (site / notebook_path).read_text(encoding="utf-8")
    assert WHEEL_ADDRESS.search(text)[1] == wheel.name, "the address names the wheel that is published"
    notebook = nbformat.reads(WHEEL_ADDRESS.sub(str(wheel), text), as_version=4)
    monkeypatch.setenv("JUPYTER_PATH", str(fresh / "share"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("PATH", f"{fresh / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    python = str(fresh / "venv" / "bin" / "python")
    uninstall = [python, "-m", "pip", "uninstall", "--quiet", "--yes", "mlsys"]
    subprocess.run(uninstall, check=True, capture_output=True)
    missing = subprocess.run([python, "-c", "import mlsys"], capture_output=True, check=False, cwd=tmp_path)
    assert missing.returncode != 0, "the machine is not fresh"
    client = nbclient.NotebookClient(
        notebook, timeout=240, allow_errors=True, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    errors = {
        place: f"{output.ename}: {output.evalue}"
        for place, cell in enumerate(code)
        for output in cell.outputs
        if output.output_type == "error"
    }
    if notebook_path.startswith("chapters/"):
        assert errors == {}
    else:  # a lab stops where the student must write, and for no other want
        assert 0 not in errors, errors
        assert any("NotImplementedError" in said for said in errors.values())
        assert [said for said in errors.values() if WANT.match(said)] == []
