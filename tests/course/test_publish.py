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
import yaml

from mlsys.core.cells import plain_python
from mlsys.course.lab import Lab, find_labs
from mlsys.course.publish import CANARY_WORKFLOW, WORKFLOW, publish, write_edition
from mlsys.course.release import release
from mlsys.course.settings import read_settings
from mlsys.course.starter import starter, without_hidden_tests
from mlsys.course.student_site import site_state, stamp_site
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
    write_edition(REPOSITORY, tree, folder)
    return folder


@pytest.mark.parametrize("name", find_labs(REPOSITORY))
def test_no_solution_and_no_hidden_test_is_in_the_student_tree(published: Path, name: str) -> None:
    secrets = secrets_of(Lab.load(REPOSITORY / "labs" / name / "lab.py"))
    assert len(secrets) > 20
    assert leaks(published, secrets) == []


@pytest.mark.proof
@pytest.mark.parametrize("name", find_labs(REPOSITORY))
def test_no_solution_and_no_hidden_test_is_on_the_built_site(published: Path, name: str) -> None:
    if not (published / "index.html").is_file():
        pytest.skip("the book is not built: run `make book`")
    assert leaks(published, secrets_of(Lab.load(REPOSITORY / "labs" / name / "lab.py"))) == []


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


def test_the_rules_for_ai_helpers_are_where_helpers_look(published: Path) -> None:
    rules = (REPOSITORY / "mlsys" / "course" / "for_ai_helpers.md").read_text(encoding="utf-8")
    assert (published / "AGENTS.md").read_text(encoding="utf-8") == rules
    listed = (published / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# AI hardware acceleration\n\n> ")  # the form of llmstxt.org: a title, a quotation
    assert listed.endswith(rules)


FOR_INSTRUCTORS = (
    "mlsys.bench.suite",
    "mlsys.classroom",
    "mlsys.course",
    "mlsys.judge",
    "mlsys.cli.grade",
    "mlsys.fleet",
    "mlsys.submit",
)


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


@pytest.mark.parametrize(
    "command",
    ["grade", "release", "export", "feedback", "gpu-pass", "publish", "kit", "bench", "mark", "class", "undo"],
)
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


def built(root: Path, pages: dict[str, str]) -> Path:
    """A site of these pages, as the build leaves it."""
    site = root / "_build" / "html"
    for name, text in pages.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    stamp_site(site, site_state(root, read_settings(root)))
    return site


def test_publishing_again_takes_away_only_what_it_brought(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    root, tree = small
    site = built(root, {"index.html": "page", "old.html": "page"})
    publish(root, tree, tmp_path / "out")
    (tmp_path / "out" / "CNAME").write_text("course.example")
    (site / "old.html").unlink()
    before = (tmp_path / "out" / "index.html").stat().st_mtime_ns
    publish(root, tree, tmp_path / "out")
    assert not (tmp_path / "out" / "old.html").exists()
    assert (tmp_path / "out" / "CNAME").exists()
    assert (tmp_path / "out" / "index.html").stat().st_mtime_ns == before


def test_a_published_site_does_not_go_because_none_is_built(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    root, tree = small
    site = built(root, {"index.html": "page"})
    publish(root, tree, tmp_path / "out")
    shutil.rmtree(site)
    with pytest.raises(UserError, match="out has a site, which would go.*run `make book` and publish again"):
        publish(root, tree, tmp_path / "out")
    assert (tmp_path / "out" / "index.html").read_text() == "page"


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
    with pytest.raises(UserError, match="run `mlsys release`"):
        publish(root, tree, tmp_path / "out")


def test_folder_that_cannot_be_written_is_named(small: tuple[Path, CourseTree]) -> None:
    with pytest.raises(UserError, match="/proc/nowhere cannot be written"):
        publish(*small, Path("/proc/nowhere"))


def set_address(root: Path, address: str) -> None:
    (root / "_config.yml").write_text(f"repository:\n  url: {address}\n  branch: main\n")


def test_a_site_built_for_another_address_or_from_another_book_is_refused(
    small: tuple[Path, CourseTree], tmp_path: Path
) -> None:
    root, tree = small
    page = root / "book" / "page.md"
    page.parent.mkdir()
    page.write_text("as built")
    built(root, {"index.html": "page"})
    publish(root, tree, tmp_path / "out")
    page.write_text("edited since")
    with pytest.raises(UserError, match="is older than the book.*run `make book`, then publish again"):
        publish(root, tree, tmp_path / "out")
    page.write_text("as built")
    set_address(root, "https://github.com/someone/elsewhere")
    release(root, tree)
    with pytest.raises(UserError, match="the address in _config.yml, or its build failed: run `make book`"):
        publish(root, tree, tmp_path / "out")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("https://github.com/YOUR_ORGANISATION/course", "still the placeholder.*enter the address"),
        ("https://github.com/o/r.git", "address to clone from: write https://github.com/o/r$"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(
    small: tuple[Path, CourseTree], tmp_path: Path, address: str, message: str
) -> None:
    set_address(small[0], address)
    with pytest.raises(UserError, match=message):
        publish(*small, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_wheels_of_earlier_versions_stay(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    root, tree = small
    publish(root, tree, tmp_path / "out")
    (old,) = (tmp_path / "out" / "wheels").iterdir()
    project = root / "pyproject.toml"
    version = re.search(r'^version = "(.*)"', project.read_text(), re.M)
    assert version
    project.write_text(project.read_text().replace(version[0], 'version = "99.1"'))
    release(root, tree)
    for _ in range(2):  # it also stays in the edition after the next
        publish(root, tree, tmp_path / "out")
        assert sorted(path.name for path in (tmp_path / "out" / "wheels").iterdir()) == sorted(
            [old.name, "mlsys-99.1-py3-none-any.whl"]
        )


@pytest.fixture
def two_labs(small: tuple[Path, CourseTree]) -> tuple[Path, CourseTree]:
    """The course with a second lab, `later`, which is not released."""
    root, tree = small
    shutil.copytree(root / "labs" / "adding", root / "labs" / "later")
    text = (root / "labs" / "later" / "lab.py").read_text()
    (root / "labs" / "later" / "lab.py").write_text(text.replace("lab: adding", "lab: later"))
    return root, tree


def test_labs_come_out_one_by_one_and_stay_out(two_labs: tuple[Path, CourseTree], tmp_path: Path) -> None:
    root, tree = two_labs
    out = tmp_path / "out"
    links = '<h1>Lab</h1><p class="course-notebook"><a href="https://colab/labs/later/later.ipynb">Colab</a></p>'
    built(root, {"index.html": "page", "book/lab-later.html": links, "labs/later/later.ipynb": "{}"})
    edition = publish(root, tree, out)
    assert (edition.labs, edition.held_back) == (("adding",), ("later",))
    assert not (out / "labs" / "later").exists()
    assert "This lab is not out yet" in (out / "book" / "lab-later.html").read_text()
    release(root, tree)
    assert publish(root, tree, out).held_back == ("later",)
    assert publish(root, tree, out, ["later"]).labs == ("adding", "later")
    assert publish(root, tree, out).labs == ("adding", "later")
    assert (out / "labs" / "later" / "later.ipynb").is_file()
    assert (out / "book" / "lab-later.html").read_text() == links
    with pytest.raises(UserError, match="did you mean 'later'"):
        publish(root, tree, out, ["latter"])


def test_a_fresh_clone_with_a_readme_is_published_into(small: tuple[Path, CourseTree], tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    for name in (".git/config", "README.md", "LICENSE", ".gitignore", "CNAME"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        (clone / name).write_text("GitHub's")
    publish(*small, clone)
    assert "the course for students" in (clone / "README.md").read_text()
    assert (clone / "CNAME").read_text() == (clone / ".gitignore").read_text() == "GitHub's"
    assert "actions/deploy-pages" in (clone / WORKFLOW).read_text()
    canary = yaml.safe_load((clone / CANARY_WORKFLOW).read_text())
    sets = canary["jobs"]["notebooks"]["strategy"]["matrix"]["set"]
    assert sorted(sets) == sorted([*(path.stem for path in (clone / "canary" / "colab").glob("*.txt")), "unpinned"])
    assert len(sets) == 4
    steps = [step.get("run") for step in canary["jobs"]["notebooks"]["steps"]]
    assert steps[-1] == "python canary/colab_canary.py --set ${{ matrix.set }}"
    (tmp_path / "other" / ".git").mkdir(parents=True)
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(UserError, match="or a fresh clone"):
        publish(*small, tmp_path / "other")


def test_students_get_no_page_for_instructors_and_no_link_to_one(
    small: tuple[Path, CourseTree], tmp_path: Path
) -> None:
    root, tree = small
    beside = (
        '<link rel="prev" title="For instructors" href="instructor.html" />\n<ul>\n<li class="toctree-l1">'
        '<a class="reference internal" href="instructor.html">For instructors</a></li>\n<li class="toctree-l1">'
        '<a class="reference internal" href="cite.html">How to cite</a></li>\n</ul>\n<p>See <a class="reference '
        'internal" href="instructor.html#a-term"><span class="std">the plan</span></a> and <a href="cite.html">this'
        '</a>.</p>\n<a class="left-prev"\n       href="instructor.html"\n title="previous page"><p>For instructors</p>'
        '\n</a>\n<a class="right-next"\n       href="cite.html"><p>How to cite</p></a>'
    )
    index = {
        "docnames": ["book/about/cite", "book/about/instructor"],
        "terms": {"roster": 1, "both": [0, 1]},
        "titleterms": {"instructor": 1, "cite": 0},
        "alltitles": {"A term": [[1, "a-term"]], "How to cite": [[0, None]]},
        "indexentries": {},
    }
    built(
        root,
        {
            "index.html": "page",
            "book/about/instructor.html": "secret plans",
            "_sources/book/about/instructor.md": "secret plans",
            "book/about/architecture.html": beside,
            "searchindex.js": f"Search.setIndex({json.dumps(index)})",
        },
    )
    publish(root, tree, tmp_path / "out")
    page = (tmp_path / "out" / "book" / "about" / "architecture.html").read_text()
    assert "instructor" not in page
    assert 'See <span class="std">the plan</span> and' in page
    assert page.count("cite.html") == 3
    found = json.loads((tmp_path / "out" / "searchindex.js").read_text()[len("Search.setIndex(") : -1])
    assert (found["terms"], found["titleterms"]) == ({"both": 0}, {"cite": 0})
    assert list(found["alltitles"]) == ["How to cite"]
    assert not list((tmp_path / "out").rglob("instructor.*"))
