import contextlib
import sys
import textwrap
import time

import pytest

from mlsys.grading.kernels.source import kernel_source
from mlsys.grading.verdicts import NotAKernel

HONEST = """
import torch
SCALE: tl.constexpr = 3
unused = torch.zeros(3)

@triton.jit
def scaled(x, factor: tl.constexpr):
    return x * factor

@triton.jit
def kernel(x_ptr, y_ptr, N, TILE: tl.constexpr):
    '''Doubles x.'''
    index = tl.program_id(0) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + index, mask=index < N, other=0.0)
    y = scaled(x.to(tl.float32), SCALE)
    for _ in range(2):
        y += tl.math.exp(x) if TILE > 16 else x
    tl.store(y_ptr + index, y.to(y_ptr.dtype.element_ty), mask=index < N)

renamed = kernel
"""


def test_the_text_holds_the_kernel_its_helpers_and_constants_and_nothing_else():
    source = kernel_source([HONEST], "renamed")
    names = {}
    exec(compile(source.text.replace("@triton.jit", ""), "kernel", "exec"), names)
    assert source.name == "kernel"
    assert {"kernel", "scaled"} <= set(names)
    assert "scaled(x.to(tl.float32), 3)" in source.text
    assert "torch" not in source.text
    assert "unused" not in source.text


def test_each_line_of_the_text_knows_its_line_in_the_cell():
    source = kernel_source([HONEST], "renamed")
    in_cell, in_text = HONEST.split("\n"), source.text.split("\n")
    known = {in_text[number]: in_cell[line - 1] for number, line in enumerate(source.lines) if line}
    assert len(source.lines) == len(in_text) - 1  # the text ends with a line break
    for line in ("    return x * factor", "        y += tl.math.exp(x) if TILE > 16 else x"):
        assert known[line] == line
    assert all(text.strip()[:4] == cell.strip()[:4] for text, cell in known.items())


def test_the_last_definition_counts():
    later = "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, 1)"
    assert "program_id" not in kernel_source([HONEST, later], "kernel").text


def kernel_with(body, head="def kernel(x_ptr, N, TILE: tl.constexpr):"):
    return f"@triton.jit\n{head}\n{textwrap.indent(textwrap.dedent(body), '    ')}"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("import os", "uses Import"),
        ("torch.matmul(x_ptr, x_ptr)", "uses torch.matmul"),
        ("tl.store(x_ptr, helper(x_ptr))", "helper is not defined"),
        ("x_ptr.handle.data[:] = 0", "uses x_ptr.handle"),
        ("tl.core.os.system('ls')", "uses tl.core"),
        ("(lambda: 0)()", "uses Lambda"),
        ("[x for x in range(N)]", "uses ListComp"),
        ("x_ptr.__class__", "uses x_ptr.__class__"),
        ("__import__('os')", "uses the name __import__"),
        ("getattr(tl, 'core')", "uses getattr"),
        ("x = tl", "uses tl by itself"),
        ("open('/etc/passwd')", "uses open"),
        ("tl.inline_asm_elementwise('', '', [], tl.int32, True, 1)", "uses tl.inline_asm_elementwise"),
        ("tl.extra.cuda.globaltimer()", "uses tl.extra"),
        ("global N", "uses Global"),
        ("with open('x') as f:\n    pass", "uses With"),
        ("try:\n    pass\nexcept:\n    pass", "uses Try"),
        ("x = f'{x_ptr.handle}'", "uses x_ptr.handle"),
        ("(exec): tl.constexpr\nexec('1')", "uses exec"),
        ("tl.load(x_ptr, _semantic=1)", "calls with _semantic"),
        ("tl.load(**x_ptr)", r"calls with \\*\\*"),
        ("x_ptr.dtype = 1", "sets x_ptr.dtype"),
        ("x = " + "x_ptr" + ".T" * 30, "30 attributes in a row"),
        ("x = (y := N)", "uses NamedExpr"),
        ("x = N in (1, 2)", "uses In"),
        ("tl = x_ptr\ntl.store(x_ptr, 1)", "uses the name tl"),
        ("x = 1j", "uses the constant 1j"),
    ],
)
def test_what_is_not_the_kernel_language_is_refused_with_its_line(body, said):
    with pytest.raises(NotAKernel, match=said.replace("(", r"\(")):
        kernel_source([kernel_with(body)], "kernel")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("def kernel(x_ptr):\n    pass", "has no decorator"),
        ("@fast\n@triton.jit\ndef kernel(x_ptr):\n    pass", "has @fast and @triton.jit"),
        ("@triton.jit(fast=[0])\ndef kernel(x_ptr):\n    pass", "has @triton.jit"),
        ("@triton.autotune([], [])\n@triton.jit\ndef kernel(x_ptr):\n    pass", "has @triton.autotune, but"),
        ("class kernel:\n    pass", "not a function defined with @triton.jit"),
        ("kernel = torch.matmul", "not a function defined with @triton.jit"),
        ("from elsewhere import kernel", "not a function defined with @triton.jit"),
        ("kernel = other\nother = kernel", "defined in terms of itself"),
        ("x = 1", "not a function defined with @triton.jit"),
        (kernel_with("pass", "def kernel(*args):"), "has \\*args"),
        (kernel_with("pass", "def kernel(x_ptr=print('now')):"), "has the default"),
        (kernel_with("𝗅ambda = x_ptr + 1"), "changes when Python writes it out"),
        (kernel_with("x = 0x1" + "0" * 5000), "changes when Python writes it out"),
    ],
)
def test_what_is_not_a_plain_jit_function_is_refused(cell, said):
    with pytest.raises(NotAKernel, match=said):
        kernel_source([cell], "kernel")


@pytest.mark.parametrize(
    "binding",
    [
        "getattr = 1",
        "if TILE < 0:\n    getattr = 1",
        "for getattr in tl.static_range(0):\n    pass",
        "getattr: tl.constexpr = 1",
        "getattr, y = 1, 2",
    ],
)
def test_a_name_of_pythons_is_not_found_before_it_is_assigned(binding):
    """Triton's compiler would take Python's own; the compiler's scopes are not Python's."""
    text = kernel_source([kernel_with(f"y = getattr(x_ptr, '__class__')\n{binding}")], "kernel").text
    assert "getattr_(x_ptr" in text
    assert "getattr(" not in text


def test_variables_may_be_called_like_pythons_functions():
    body = "sum = tl.sum(tl.load(x_ptr + tl.arange(0, 16)))\nmax = sum + 1\nsum += max\ntl.store(x_ptr, sum)"
    text = kernel_source([kernel_with(body)], "kernel").text
    assert "sum_ = tl.sum(" in text
    assert "tl.store(x_ptr, sum_)" in text


LONG = [
    "\n".join(f"C{i} = ({', '.join(['1'] * 200)})" for i in range(2))
    + "\n"
    + kernel_with("y = " + "C0 + " * 900 + "C1"),
    "\n".join(f"n{i} = n{i + 1}" for i in range(1500)) + "\nn1500 = 2\n" + kernel_with("y = n0\n" * 1000),
    "\n\n".join(
        f"@triton.jit\ndef h{i}(x):\n    y = {' + '.join(['C'] * 90)}\n    return h{i + 1}(y)" for i in range(60)
    )
    + f"\nC = ({', '.join(['1'] * 200)})\n@triton.jit\ndef h60(x):\n    return x\n"
    + kernel_with("y = h0(N)"),
]


@pytest.mark.parametrize("cell", LONG)
def test_a_kernel_that_is_long_once_its_constants_stand_in_it_is_refused_soon(cell):
    started_s = time.process_time()
    with contextlib.suppress(NotAKernel):
        kernel_source([cell], "kernel")
    assert time.process_time() - started_s < 5


@pytest.mark.parametrize("head", ["def kernel(x_ptr: print('now')):", "def kernel(x_ptr) -> print('now'):"])
def test_what_a_hint_says_runs_nowhere(head):
    assert "now" not in kernel_source([kernel_with("pass", head)], "kernel").text


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters came with Python 3.12")
def test_type_parameters_are_refused():
    with pytest.raises(NotAKernel, match="has type parameters"):
        kernel_source([kernel_with("pass", "def kernel[T: print('now')](x_ptr):")], "kernel")
