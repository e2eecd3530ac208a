"""The canary: what it lets pass and what it reports. The sets themselves are run by `make canary`."""

import re
import sys
from pathlib import Path

import nbformat
import pytest

from mlsys.course.canary import colab_canary
from mlsys.course.canary.colab_canary import UNANSWERED, install_wheel, main, notebooks_of, python_for, run, set_names


def written(path: Path, *cells: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), path)
    return path


def test_an_error_that_no_missing_answer_explains_is_reported_with_its_cell(tmp_path: Path) -> None:
    notebook = written(tmp_path / "lab.ipynb", "raise NotImplementedError", "import nothing_of_this_name", "print(1)")
    seconds, wrong = run(Path(sys.executable), notebook, UNANSWERED)
    assert seconds > 0
    assert len(wrong) == 1
    assert "ModuleNotFoundError: No module named 'nothing_of_this_name'" in wrong[0]
    assert len(run(Path(sys.executable), notebook, {"NeedsGpu"})[1]) == 2


def test_a_notebook_has_the_cores_and_the_memory_of_colab_and_no_settings_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLSYS_ANSWERS", str(tmp_path))
    cells = (
        "import os, resource\nassert len(os.sched_getaffinity(0)) <= 2",
        "assert resource.getrlimit(resource.RLIMIT_DATA)[0] == 12 * 2**30",
        "assert 'MLSYS_ANSWERS' not in os.environ",
    )
    assert run(Path(sys.executable), written(tmp_path / "a.ipynb", *cells), set())[1] == ()


def test_a_kernel_that_ends_and_one_that_hangs_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    [stopped] = run(Path(sys.executable), written(tmp_path / "a.ipynb", "import os\nos._exit(1)"), UNANSWERED)[1]
    assert "kernel died" in stopped.lower()
    monkeypatch.setattr(colab_canary, "NOTEBOOK_S", 3)
    [stopped] = run(Path(sys.executable), written(tmp_path / "b.ipynb", "while True: pass"), UNANSWERED)[1]
    assert stopped == "did not end within 3 s"


def test_a_wheel_that_changes_what_colab_has_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wheels").mkdir()
    with pytest.raises(SystemExit, match="has no wheel"):
        install_wheel(Path(sys.executable), tmp_path)
    (tmp_path / "wheels" / "mlsys-1.0-py3-none-any.whl").touch()
    states = iter([{"numpy": "2.0.2", "torch": "2.11.0"}, {"numpy": "2.4.6", "torch": "2.11.0", "mlsys": "1.0"}])
    monkeypatch.setattr(colab_canary, "_installed", lambda _: next(states))
    monkeypatch.setattr(colab_canary, "_pip", lambda *_: None)
    assert install_wheel(Path(sys.executable), tmp_path) == ("numpy 2.0.2 became 2.4.6",)


def test_a_tree_without_the_book_and_an_unknown_notebook_are_refused(tmp_path: Path) -> None:
    written(tmp_path / "labs" / "tiling" / "tiling.ipynb", "1")
    with pytest.raises(SystemExit, match=r"first-kernels.ipynb is missing: name a tree"):
        notebooks_of(tmp_path, None)
    for name in colab_canary.CHAPTERS:
        written(tmp_path / "chapters" / f"{name}.ipynb", "1")
    assert [path.stem for path in notebooks_of(tmp_path, None)] == ["tiling", *colab_canary.CHAPTERS]
    with pytest.raises(SystemExit, match="no notebook is called tilling"):
        main([str(tmp_path), "--only", "tilling"])
    with pytest.raises(SystemExit):
        main([str(tmp_path), "--set", "2019-01-01"])


def test_each_set_names_its_source_its_python_and_exact_versions() -> None:
    names = set_names()
    assert names[-1] == "unpinned"
    assert len(names) == 4
    for name in names[:-1]:
        text = (colab_canary.HERE / "colab" / f"{name}.txt").read_text(encoding="utf-8")
        assert re.search(r"backend-info at [0-9a-f]{12}", text)
        assert python_for(name)[1].startswith("Python 3.")
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)
        assert {"torch", "triton", "numpy", "ipython", "ipykernel"} <= {line.split("==")[0] for line in lines}
