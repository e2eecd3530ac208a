"""Drawn kernels: what is accepted uses nothing but the language, by a walk of the code that Python compiles from it.

The walk knows nothing of syntax trees: it reads bytecode, before and after Triton's interpreter has rewritten it, and
its list of names is what Triton's own modules offer.
"""

import builtins
import dis
import itertools
import os
import random
from types import CodeType, ModuleType

import pytest
import triton
import triton.language as tl

from mlsys.grading.kernels.source import kernel_source
from mlsys.grading.verdicts import NotAKernel
from mlsys.judge.inside.checked_kernel import define

DRAWN = int(os.environ.get("MLSYS_FUZZ", "3000"))
"""How many kernels are drawn; a long run says MLSYS_FUZZ=300000."""

OWNERS = tl, tl.math, tl.tensor, tl.dtype, tl.pointer_type, tl.constexpr, tl.tensor_descriptor, tl.PropagateNan
OFFERED = {
    name
    for owner in (
        tl,
        tl.math,
        tl.tensor,
        tl.dtype,
        tl.pointer_type,
        tl.constexpr,
        tl.tensor_descriptor,
        tl.PropagateNan,
    )
    for name in dir(owner)
    if not name.startswith("_") and not isinstance(getattr(owner, name), ModuleType)
} | {"math", "element_ty", "value", "dtype", "type", "shape", "jit", "cdiv", "next_power_of_2", "block_shape"}
REACHES_OUT = {"inline_asm_elementwise", "map_elementwise", "handle", "core", "semantic", "standard", "extra", "format"}
GLOBALS = {"tl", "triton", "abs", "bool", "float", "int", "len", "max", "min", "print", "range"}
FORBIDDEN = (
    "FAST_AND_CLEAR",  # a comprehension, which is no function of its own from Python 3.12 on
    "IMPORT",
    "BUILD_CLASS",
    "STORE_GLOBAL",
    "DELETE",
    "SETUP",
    "BEFORE",
    "YIELD",
    "AWAIT",
    "MAKE_CELL",
    "STORE_ATTR",
)

NAMES = (
    "exec eval open getattr globals compile x y acc tl triton helper np inspect ast math builtins __import__"
    " __builtins__ interpreter_semantic float print TILE N SCALE torch os sys _semantic self Helpers"
).split()
EXPRESSIONS = (
    "{n}", "{n}({e})", "{n}.{a}", "{n}.{a}({e})", "({e} + {e})", "({e} if {e} else {e})", "{n}[{e}]", "({n} := {e})",
    "[{n} for {n} in {e}]", "(lambda {n}: {e})({e})", "f'{{{e}}}'", "f'{{{n}.{a}}}\\ndef kernel(x_ptr): {n}({e})'",
    "'''\n    def kernel(x_ptr, out_ptr):\n        {n}({e})'''", "'x' % {e}", "'x'.{a}({e})", "({e}, *{e})",
    "{{{e}: {e}}}", "tl.load(x_ptr, {n}={e})", "tl.{a}({e})", "tl.math.{a}({e})", "triton.{a}({e})", "math.{a}({e})",
    "-{e}", "not {e}", "1", "2.5", "None", "x_ptr", "tl.float32", "float('inf')", "x_ptr.dtype.element_ty",
    "1 < {e} < 2", "await {n}", "{n} in {e}", "...", "b'x'", "1j", "__debug__", "{n}.{a}.{a}.{a}",
)  # fmt: skip
ATTRIBUTES = (
    "load sum core to T value handle __class__ __globals__ __init__ extra semantic format join dtype jit runtime "
    "inline_asm_elementwise sqrt pi fn src _fields cdiv next_power_of_2 element_ty scalar language tensor"
).split()
STATEMENTS = (
    "{n} = {e}", "{n} = {n} = {e}", "{n}: tl.constexpr = {e}", "({n}): tl.constexpr", "({n}): {e} = {e}", "{n}: {n}",
    "{n}.{a}: tl.constexpr", "{n}.{a} = {e}", "{n} += {e}", "{e}", "'''{n}\ndef kernel(x_ptr):\n    {n}({e})\n'''",
    "del {n}", "global {n}", "nonlocal {n}", "import {n}", "from {n} import {n}", "for {n} in {e}:\n        {s}",
    "while {e}:\n        {s}", "if {e}:\n        {s}\n    else:\n        {s}", "with {e} as {n}:\n        {s}",
    "try:\n        {s}\n    except {n} as {n}:\n        {s}", "def {n}({n}={e}):\n        {s}",
    "class {n}:\n        {s}", "match {e}:\n        case {n}:\n            {s}", "assert {e}, {e}", "return {e}",
    "raise {e}", "pass", "break", "continue", "tl.store(out_ptr, {e})", "tl.static_print({e})", "print({e})",
    "{n}, {n} = {e}", "[{n}, *{n}] = {e}", "{n}[{e}] = {e}", "@{n}\n    def {n}(): pass", "type {n} = {e}",
    "async def {n}(): {s}", "yield {e}",
)  # fmt: skip
OUTSIDE = (
    "{n} = {e}", "SCALE = 2", "SCALE = tl.constexpr({e})", "{n}, {n} = {e}, {e}", "import {n}", "import math",
    "import triton.language as {n}", "from {n} import {n}", "from triton.language import {n}", "import {n} as {n}",
    "@triton.jit\ndef helper(x, y={e}):\n    {s}\n    return {e}", "helper = triton.jit({n})", "helper = {n}",
    "class Helpers:\n    @staticmethod\n    @triton.jit\n    def f(x):\n        return {e}", "{n}.{a} = {e}",
    "if {e}:\n    @triton.jit\n    def helper(x):\n        return {e}", "def {n}(x): return {e}",
    "for {n} in {e}: pass", "@triton.constexpr_function\ndef helper(x):\n    {s}\n    return {e}", "global {n}",
    "tl = {n}", "triton = {n}",
)  # fmt: skip
HEADS = (
    "@triton.jit\ndef kernel(x_ptr, out_ptr, N, TILE: tl.constexpr):",
    "@triton.jit()\ndef kernel(x_ptr, out_ptr, N: int = {e}, TILE: tl.constexpr = {e}):",
    "@triton.jit(do_not_specialize={e})\ndef kernel(x_ptr, out_ptr, N: '{n}', TILE: {e} = 1) -> {e}:",
    "@{n}\n@triton.jit\ndef kernel(x_ptr, out_ptr, N, TILE: {n}.{a}):",
    "@triton.jit\ndef kernel(x_ptr, out_ptr, *{n}, {n}={e}, **{n}):",
    "@triton.jit\ndef kernel(x_ptr, out_ptr, {n}, {n}=({e}), /):",
)


class Drawn:
    def __init__(self, seed):
        self.chance = random.Random(seed)

    def text(self, form, depth):
        """A form with its holes filled; `n` is a name, `a` an attribute, `e` an expression, `s` a statement."""
        parts = {"n": lambda: self.chance.choice(NAMES), "a": lambda: self.chance.choice(ATTRIBUTES)}
        parts |= {
            "e": lambda: self.expression(depth - 1),
            "s": lambda: self.statement(depth - 1).replace("\n", "\n    "),
        }
        result, rest = "", form
        while rest:
            at = rest.find("{")
            if at < 0:
                return result + rest
            result += rest[:at]
            if rest[at + 1] == "{":
                result, rest = result + "{", rest[at + 2 :]
            else:
                result, rest = result + parts[rest[at + 1]](), rest[at + 3 :]
        return result

    def expression(self, depth):
        simple = [form for form in EXPRESSIONS if "{e}" not in form]
        return self.text(self.chance.choice(EXPRESSIONS if depth > 0 else simple), depth).replace("}}", "}")

    def statement(self, depth):
        simple = [form for form in STATEMENTS if "{s}" not in form]
        return self.text(self.chance.choice(STATEMENTS if depth > 0 else simple), depth)

    def cell(self):
        """Mostly honest, or nothing would be accepted: one or two drawn parts among plain ones."""
        chance = self.chance
        outside = [self.text(chance.choice(OUTSIDE), 2) for _ in range(chance.randint(0, 2))]
        head = HEADS[0] if chance.random() < 0.6 else self.text(chance.choice(HEADS), 1)
        body = ["i = tl.arange(0, 16)", "x = tl.load(x_ptr + i)"]
        body += [self.statement(chance.randint(0, 2)) for _ in range(chance.randint(0, 3))]
        body += ["tl.store(out_ptr + i, x)"]
        chance.shuffle(body) if chance.random() < 0.2 else None
        return "\n".join([*outside, head, *("    " + line for line in body)])


def faults(code: CodeType, functions: set[str], top: bool = False) -> list[str]:
    """What code does that is no part of the language."""
    found = []
    for one in dis.get_instructions(code):
        if not top and any(word in one.opname for word in FORBIDDEN):
            found.append(one.opname)
        if (
            one.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF")
            and one.argval not in GLOBALS | functions
        ):
            found.append(f"name {one.argval}")
        if one.opname in ("LOAD_ATTR", "LOAD_METHOD") and (one.argval not in OFFERED or one.argval in REACHES_OUT):
            found.append(f"attribute {one.argval}")
        if one.opname == "MAKE_FUNCTION" and not top:
            found.append("a function inside")
    if not top:
        own = code.co_varnames[code.co_argcount + code.co_kwonlyargcount :]
        found += [f"variable {name}" for name in own if hasattr(builtins, name)]
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    if inner and not top:
        found.append("code inside")
    for constant in inner:
        found += faults(constant, functions)
    return found


def accepted_and_faults(seed):
    """None where the kernel is refused, else what it does that it should not."""
    cell = Drawn(seed).cell()
    try:
        source = kernel_source([cell], "kernel")
    except NotAKernel:
        return None
    body = source.text.split("\n", 2)[2]  # after the two imports
    code = compile(body, "kernel", "exec")
    functions = {constant.co_name for constant in code.co_consts if isinstance(constant, CodeType)}
    found = faults(code, functions, top=True)
    try:
        kernel = define(source, f"drawn {seed}")
        rewritten = kernel.rewrite() if hasattr(kernel, "rewriter") else None
    except (ValueError, TypeError, AttributeError):
        return found  # Triton refuses it by itself, such as two targets of one assignment
    if rewritten is not None:
        # The interpreter turns every value that is assigned into a block.
        found += faults(rewritten.__code__, functions | {"interpreter_semantic"})
    return [fault for fault in found if fault != "attribute to_tensor"]


def test_what_is_accepted_uses_nothing_but_the_language():
    accepted = 0
    for seed in range(DRAWN):
        found = accepted_and_faults(seed)
        assert not found, (seed, found, Drawn(seed).cell())
        accepted += found is not None
    assert accepted > DRAWN // 20  # else nothing is tried
    print(f"{DRAWN} drawn, {accepted} accepted")


@pytest.mark.parametrize("nasty", ["exec('1')", "x_ptr.__class__", "tl.core", "[y for y in x]", "(lambda: 0)()"])
def test_the_walk_finds_what_is_no_part_of_the_language(nasty):
    code = compile(f"def kernel(x_ptr, x):\n    return {nasty}", "kernel", "exec")
    assert faults(code, {"kernel"}, top=True)


def test_every_form_is_drawn():
    cells = "\n".join(Drawn(seed).cell() for seed in range(2000))
    assert all(
        name in cells for name in itertools.chain(NAMES, ATTRIBUTES, ("nonlocal", ":=", "lambda", "class ", "'''"))
    )
    assert triton.__version__
