import ast
import gzip
import html
import json
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest

from mlsys.core.cells import plain_python
from mlsys.course.lab import Lab, find_labs
from mlsys.course.publish import publish
from mlsys.course.release import release
from mlsys.course.starter import starter, without_hidden_tests
from mlsys.course.tree import CourseTree
from mlsys.errors import UserError

REPOSITORY = Path(__file__).parents[2]
SHORTEST = 12


def plain(text: str) -> str:
    """Text without markup and with single spaces, so that a line is found however it is set."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).split())


def secrets_of(lab: Lab) -> set[str]:
    """Solution statements and hidden test lines that no visible cell of any lab contains; imports give nothing away."""
    shown = "\n".join(map(visible_text, find_labs(REPOSITORY)))
    lines = {line for line in hidden_lines(lab) | solution_lines(lab) if line not in shown}
    return {line for line in lines if len(line) >= SHORTEST and not line.startswith(("#", "import ", "from "))}


def hidden_lines(lab: Lab) -> set[str]:
    """Lines of the hidden tests."""
    return {plain(line) for line in marked_lines(lab, "HIDDEN TESTS")}


def solution_lines(lab: Lab) -> set[str]:
    """Statements of the solutions, without the starters that stand beside them."""
    return {plain(line) for line in marked_lines(lab, "SOLUTION") if not line.strip().startswith("#:")}


def marked_lines(lab: Lab, what: str) -> Iterator[str]:
    """The lines between `### BEGIN` and `### END`."""
    for cell in lab.cells:
        inside = ""
        for line in cell.source.splitlines():
            if mark := re.search(r"### (BEGIN|END) (SOLUTION|HIDDEN TESTS)", line):
                inside = mark[2] if mark[1] == "BEGIN" else ""
            elif inside == what:
                yield line


@cache
def visible_text(name: str) -> str:
    """What students see of a lab."""
    cells = Lab.load(REPOSITORY / "labs" / name / "lab.py").cells
    return "\n".join(plain(without_hidden_tests(starter(cell.source))) for cell in cells)


def texts_in(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    """Every text in a file: cells of notebooks, members of archives, compressed parts."""
    if name.endswith((".whl", ".zip")):
        with zipfile.ZipFile(name) as archive:
            for member in archive.namelist():
                yield from texts_in(f"{name}!{member}", archive.read(member))
        return
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    for start in re.finditer(rb"x[\x01\x5e\x9c\xda]", data):
        try:
            yield (
                f"{name}@{start.start()}",
                zlib.decompressobj().decompress(data[start.start() :]).decode("utf-8", "replace"),
            )
        except zlib.error:
            continue
    text = data.decode("utf-8", "replace")
    if name.endswith(".ipynb"):
        for cell in json.loads(text)["cells"]:
            yield name, "".join(cell["source"])
    yield name, text


def leaks(folder: Path, secrets: set[str]) -> list[tuple[str, str]]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix not in (".woff", ".woff2", ".ttf", ".png"):
            for name, text in texts_in(str(path), path.read_bytes()):
                body = plain(text)
                found += [(name, secret) for secret in secrets if secret in body]
    return found


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = CourseTree(tmp_path_factory.mktemp("course"))
    release(REPOSITORY, tree)
    folder = tmp_path_factory.mktemp("published")
    publish(REPOSITORY, tree, folder)
    return folder


@pytest.mark.parametrize("name", find_labs(REPOSITORY))
def test_no_solution_and_no_hidden_test_is_in_the_student_tree(published: Path, name: str) -> None:
    secrets = secrets_of(Lab.load(REPOSITORY / "labs" / name / "lab.py"))
    assert len(secrets) > 20
    assert leaks(published, secrets) == []


@pytest.mark.parametrize("name", find_labs(REPOSITORY))
def test_no_hidden_line_stands_in_what_students_see_of_the_lab(name: str) -> None:
    """Not even by chance: who compares the two must find nothing."""
    shown = visible_text(name)
    hidden = hidden_lines(Lab.load(REPOSITORY / "labs" / name / "lab.py"))
    assert len(hidden) > 20
    assert [line for line in hidden if len(line) >= SHORTEST and line in shown] == []


def test_the_search_finds_a_leak_in_each_kind_of_file(published: Path, tmp_path: Path) -> None:
    lab = Lab.load(REPOSITORY / "labs" / "tiling" / "lab.py")
    secret = max(secrets_of(lab), key=len)
    (tmp_path / "page.html").write_text("<pre>" + " ".join(f"<b>{html.escape(part)}</b>" for part in secret.split()))
    (tmp_path / "objects.inv").write_bytes(b"# header\n" + zlib.compress(secret.encode()))
    (tmp_path / "data.gz").write_bytes(gzip.compress(secret.encode()))
    cell = nbformat.v4.new_code_cell(secret)
    (tmp_path / "lab.ipynb").write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[cell])))
    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mlsys/solution.py", secret)
    assert {Path(name.split("@")[0].split("!")[0]).name for name, _ in leaks(tmp_path, {secret})} == {
        "page.html",
        "objects.inv",
        "data.gz",
        "lab.ipynb",
        "a.whl",
    }


def test_tree_holds_notebooks_wheel_and_no_lab_source(published: Path) -> None:
    names = {str(path.relative_to(published)) for path in published.rglob("*") if path.is_file()}
    assert "labs/tiling/tiling.ipynb" in names
    assert "README.md" in names
    assert len([name for name in names if name.endswith(".whl")]) == 1
    assert not [name for name in names if name.endswith("lab.py") or "/class/" in name]


FOR_INSTRUCTORS = ("mlsys.bench.suite", "mlsys.classroom", "mlsys.course", "mlsys.judge", "mlsys.cli.grade")


@pytest.fixture(scope="module")
def unpacked(published: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    (wheel,) = published.rglob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def in_the_wheel(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run code by a Python that imports `mlsys` from the unpacked wheel."""
    boot = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    return subprocess.run(
        [sys.executable, "-I", "-B", "-c", boot + code], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_students_wheel_has_no_judge_and_what_it_has_can_be_imported(unpacked: Path) -> None:
    modules = [path.relative_to(unpacked).with_suffix("") for path in sorted((unpacked / "mlsys").rglob("*.py"))]
    names = [".".join(path.parts).removesuffix(".__init__") for path in modules]
    assert {"mlsys.cli.doctor", "mlsys.cli.main", "mlsys.cli.roofline", "mlsys.grading", "mlsys.measure"} < set(names)
    assert not [name for name in names if name.startswith(FOR_INSTRUCTORS)]
    code = f"""
from importlib import import_module
for name in {names}:
    file = import_module(name).__file__
    assert file.startswith({str(unpacked)!r}), file
print(len({names}))
"""
    done = in_the_wheel(unpacked, code)
    assert (done.stdout.strip(), done.stderr) == (str(len(names)), "")
    assert len(names) > 80


def test_all_that_the_labs_and_the_chapters_import_is_in_the_students_wheel(unpacked: Path, published: Path) -> None:
    notebooks = [nbformat.read(path, 4) for path in published.rglob("*.ipynb")]
    cells = [cell.source for notebook in notebooks for cell in notebook.cells if cell.cell_type == "code"]
    imports = {
        ast.unparse(node)
        for source in cells
        for node in ast.walk(ast.parse(plain_python(source)))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    lines = [line for line in imports if re.match(r"(from|import) mlsys\b", line)]
    assert len(lines) >= len(find_labs(REPOSITORY))
    done = in_the_wheel(unpacked, "\n".join(sorted(lines)))
    assert done.stderr == ""


def test_the_students_doctor_says_that_there_is_no_judge(unpacked: Path) -> None:
    done = in_the_wheel(unpacked, "from mlsys.cli.main import main; sys.exit(main(['doctor']))")
    assert (done.returncode, done.stderr) == (0, "")
    assert "student's package (no judge)" in done.stdout
    assert "sandbox" not in done.stdout


@pytest.mark.parametrize("command", ["grade", "release", "export", "publish", "bench"])
def test_a_command_for_instructors_ends_in_one_sentence_and_status_2(unpacked: Path, command: str) -> None:
    done = in_the_wheel(unpacked, f"from mlsys.cli.main import main; sys.exit(main([{command!r}, 'tiling']))")
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(f"mlsys: this is the student's package, .* `mlsys {command}` .*\n", done.stderr)


@pytest.fixture
def small(adding: tuple[Path, CourseTree, Path], tmp_path: Path) -> tuple[Path, CourseTree]:
    """The course `adding`, with a wheel that needs no building."""
    root = tmp_path / "repository"
    shutil.copytree(adding[0], root)
    for name in ("mlsys", "README.md", "LICENSE"):
        (root / name).symlink_to(REPOSITORY / name)
    return root, CourseTree(root / "_build" / "course")


def test_publishing_again_takes_away_only_what_it_brought(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    root, tree = small
    site = root / "_build" / "html"
    site.mkdir()
    for name in ("index.html", "old.html"):
        (site / name).write_text("page")
    publish(root, tree, tmp_path / "out")
    (tmp_path / "out" / "CNAME").write_text("course.example")
    (site / "old.html").unlink()
    before = (tmp_path / "out" / "index.html").stat().st_mtime_ns
    publish(root, tree, tmp_path / "out")
    assert not (tmp_path / "out" / "old.html").exists()
    assert (tmp_path / "out" / "CNAME").exists()
    assert (tmp_path / "out" / "index.html").stat().st_mtime_ns == before


def test_foreign_folder_is_refused_and_left_alone(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="did not write"):
        publish(*small, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    with pytest.raises(UserError, match="is not a folder"):
        publish(*small, tmp_path / "thesis.tex")


def test_unreleased_or_changed_lab_is_refused(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    root, tree = small
    with (root / "labs" / "adding" / "lab.py").open("a") as file:
        file.write("\n# %% [markdown]\n# more\n")
    with pytest.raises(UserError, match="run `mlsys release` first"):
        publish(root, tree, tmp_path / "out")


def test_folder_that_cannot_be_written_is_named(small: tuple[Path, CourseTree]) -> None:
    with pytest.raises(UserError, match="/proc/nowhere cannot be written"):
        publish(*small, Path("/proc/nowhere"))
