"""The compiled forms in the chapter on first kernels come from the pinned compiler, and layouts are read rightly."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.compiled_files import PINNED, assert_script_makes, assert_version_is_pinned

triton = pytest.importorskip("triton", reason="triton is not installed: mlsys[labs] brings it on Linux")

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _figures import compiled  # noqa: E402
from _figures.first_kernels import Layout, made_from  # noqa: E402
from _interactive import stages  # noqa: E402

PAGE = (ROOT / "book" / "foundations" / "first-kernels.md").read_text(encoding="utf-8")


def test_the_file_is_of_the_pinned_version() -> None:
    assert_version_is_pinned(compiled.VERSIONS, "compile_stages.py")


@pytest.mark.skipif([triton.__version__] != PINNED, reason=f"another Triton than the pinned {PINNED[0]} is installed")
def test_the_file_is_what_the_compiler_makes() -> None:
    assert_script_makes("compile_stages.py", "compiled")


@pytest.mark.parametrize("kernel", [compiled.KERNEL, compiled.TILED], ids=["line by line", "tile"])
def test_the_page_prints_the_kernels_that_were_compiled(kernel: str) -> None:
    assert f"```{{code-cell}} ipython3\n{kernel}" in PAGE


KERNELS = re.findall(r"^@triton\.jit\ndef .*\n(?:[ )].*\n)+", PAGE, re.M)
COMPILE = """
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import kernels
ints, floats = ("group_ptr", "total_ptr"), ("gain", "scale", "shift")
for name, kernel in vars(kernels).items():
    if isinstance(kernel, triton.JITFunction):
        constants = {one: 64 for one in kernel.arg_names if one.isupper() and one not in ("N", "GROUPS")}
        kinds = {one: "constexpr" if one in constants else "*i32" if one in ints else "*fp32" if one.endswith("_ptr")
                 else "fp32" if one in floats else "i32" for one in kernel.arg_names}
        triton.compile(ASTSource(kernel, kinds, constants), target=GPUTarget("cuda", 90, 32))
        print(name)
"""


def test_every_kernel_of_the_page_compiles_for_a_gpu(tmp_path: Path) -> None:
    """The page runs them in the interpreter, which accepts more than the compiler."""
    head = "import triton\nimport triton.language as tl\n"
    (tmp_path / "kernels.py").write_text("\n\n".join([head, *KERNELS]))
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    names = [re.findall(r"def (\w+)", kernel)[0] for kernel in KERNELS]
    assert sorted(done.stdout.split()) == sorted(names)
    assert len(names) == PAGE.count("@triton.jit") > 6


def _start_of_load(ptx: list[str], thread: int) -> int:
    """Run the integer instructions of PTX for one thread of program 0, and return the first byte that it loads."""
    registers: dict[str, int] = {"%tid.x": thread, "%ctaid.x": 0, "%ctaid.y": 0}
    value = {
        "mov": lambda a: a,
        "shl": lambda a, b: a << b,
        "shr": lambda a, b: a >> b,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "add": lambda a, b: a + b,
        "mul": lambda a, b: a * b,
        "mad": lambda a, b, c: a * b + c,
        "bfe": lambda a, start, length: a >> start & (1 << length) - 1,
    }
    for line in ptx:
        load = re.search(r"ld\.global\.\S+ .*\[ (%rd\d+) \+ 0 \]", line)
        if load:
            return registers[load[1]]
        found = re.match(r"([a-z]+)\.\S+ (%\w+), (.*);$", line)
        if found and found[1] in value:
            names = found[3].split(", ")
            known = [registers.get(name, 0) if name.startswith("%") else int(name) for name in names]
            registers[found[2]] = value[found[1]](*known)  # what is a parameter counts as 0
    raise AssertionError("no load")


def test_the_compilers_own_addresses_agree_with_the_layout() -> None:
    """The address that a thread computes in PTX is that of the first element that the layout gives it."""
    layout = Layout.read(compiled.STAGES["TTGIR"][0][1])
    ptx = [" ".join(text.split()) for _, text in compiled.STAGES["PTX"]]
    for thread in range(128):
        element = _start_of_load(ptx, thread) // 4
        assert layout.holder(element) == (thread // 32, thread % 32, 0)
        assert [layout.holder(element + place)[2] for place in range(4)] == [0, 1, 2, 3]


def test_every_element_of_a_tile_has_one_place() -> None:
    layout = Layout.read(compiled.VARIANTS["tile"]["layouts"][0])
    rows, columns = layout.covered
    places = {layout.holder(row, column) for row in range(rows) for column in range(columns)}
    assert len(places) == rows * columns == 4 * 32 * 4
    assert {(warp, lane) for warp, lane, _ in places} == {(warp, lane) for warp in range(4) for lane in range(32)}


def test_a_line_keeps_its_meaning_through_all_stages() -> None:
    signs = {
        3: ("get_program_id", "get_program_id", "%ctaid.x", "SR_CTAID.X"),
        4: ("arith.cmpi slt", "arith.cmpi slt", "setp.lt.s32", "ISETP"),
        5: ("tt.load", "tt.load", "ld.global", "LDG"),
        6: ("arith.mulf", "arith.mulf", "fma.rn.f32", "FFMA"),
        7: ("tt.store", "tt.store", "st.global", "STG"),
    }
    for line, words in signs.items():
        for (name, lines), word in zip(compiled.STAGES.items(), words, strict=True):
            assert any(word in text for text in made_from(lines, line)), (name, line, word)


def test_the_viewer_has_all_lines_of_all_stages() -> None:
    numbers = stages.content().numbers
    shown = {stage["name"]: [text for _, text in stage["lines"]] for stage in numbers["stages"]}
    assert shown.pop("Python") == compiled.KERNEL.splitlines()
    assert shown == {name: [text for _, text in lines] for name, lines in compiled.STAGES.items()}
    assert numbers["elements"] == 512
