"""Cells of which no part may run when their kernel is read and launched: hand it to `python kernel_texts.py` to see.

Each holds the word CANARY where Python of the student's own would run. Whether a cell is refused is not the question:
what runs counts, and which names of its surroundings the text reaches, as Python's compiler has it.
"""

import ast
import builtins
import dis
import json
import resource
import signal
import time
from types import CodeType

CANARY = "setattr(__import__('builtins'), 'CANARY', 1)"
HEAD = "@triton.jit\ndef kernel(x_ptr, out_ptr, size, TILE: tl.constexpr):\n"
BODY = """    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < size), mask=i < size)
"""
LONGEST_S = 30
NEXT = "\n# the next cell\n"
SECOND = "def kernel(x_ptr, out_ptr, size, TILE):"


def kernel(*lines: str) -> str:
    """A right kernel with other lines at its beginning."""
    return HEAD + "".join(f"    {line}\n" for line in lines) + BODY


def _in_text(quote: str, close: str, prefix: str = "", before: str = "", after: str = "") -> str:
    """A kernel that holds a second definition in a text, and a text behind it that ends what the first leaves open."""
    text = f"{prefix}{quote}\n{SECOND}\n    {CANARY}\n    {close}\n    {quote}"
    return HEAD + f"    {before}{text}{after}\n" + f'    tl.static_assert(True, "{close} #")\n'


NAMES = "exec eval getattr setattr open compile globals vars input breakpoint __import__ __build_class__".split()
NAMES += "np inspect triton_interpreter InterpretedFunction os sys interpreter_semantic _patch_lang".split()
SCOPES = {
    "annotation": "({name}): tl.constexpr",
    "annotation-of-a-part": "{name}.x: tl.constexpr = 1",
    "annotation-of-an-item": "{name}[0]: tl.constexpr",
    "later-assignment": "if size < 0:\n        {name} = 1",
    "never-assignment": "while False:\n        {name} = 1",
    "loop": "for {name} in range(0):\n        pass",
    "walrus": "(size < 0) and ({name} := 1)",
    "global": "global {name}",
    "nonlocal": "nonlocal {name}",
    "del": "del {name}",
    "import": "if size < 0:\n        import math as {name}",
    "except": "try:\n        pass\n    except Exception as {name}:\n        pass",
    "with": "if size < 0:\n        with tl.range(1) as {name}:\n            pass",
    "match": "match 0:\n        case 1 as {name}:\n            pass",
    "comprehension": "[0 for {name} in range(0)]",
    "class": "class Inner:\n        {name} = 1",
    "function": "def inner():\n        {name} = 1",
    "lambda": "lambda {name}: 0",
    "starred": "if size < 0:\n        *{name}, last = (1, 2)",
    "augmented": "if size < 0:\n        {name} += 1",
    "argument-default": "tl.static_assert(True, ({name} := 'x'))",
}
EXPRESSIONS = {
    "constant": "C = tl.constexpr({run})\n" + kernel("C"),
    "plain-constant": "C = {run}\n" + kernel("i = C"),
    "tuple-of-constants": "A, B = 1, {run}\n" + kernel("i = A + B"),
    "constant-with-a-hint": "C: {run} = 1\n" + kernel("i = C"),
    "constant-in-a-float": "C = float({run})\n" + kernel("i = C"),
    "constant-of-a-lookup": "C = [{run}][0]\n" + kernel("i = C"),
    "constant-of-a-condition": "C = 1 if {run} else 2\n" + kernel("i = C"),
    "constant-of-a-text": 'C = f"""{{{run}}}"""\n' + kernel("i = C"),
    "constant-of-another-module": "import os as math\nC = math.sqrt({run})\n" + kernel("i = C"),
    "constant-of-another-root": "def sqrt(x): {run}\nC = tl.constexpr(sqrt(4))\n" + kernel("i = C"),
    "constant-of-a-class": "class math:\n    sqrt = lambda x: {run}\nC = math.sqrt(4.0)\n" + kernel("i = C"),
    "default": "@triton.jit\ndef kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, d={run}):\n" + BODY,
    "default-in-a-constexpr": "@triton.jit\ndef kernel(x_ptr, out_ptr, size, TILE, d=tl.constexpr({run})):\n" + BODY,
    "default-by-name-only": "@triton.jit\ndef kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, *, d={run}):\n" + BODY,
    "default-of-a-lambda": "@triton.jit\ndef kernel(x_ptr, out_ptr, size, TILE: tl.constexpr, d=(lambda: {run})()):\n"
    + BODY,
    "hint": "@triton.jit\ndef kernel(x_ptr: {run}, out_ptr, size, TILE: tl.constexpr):\n" + BODY,
    "hint-as-text": '@triton.jit\ndef kernel(x_ptr: "{run}", out_ptr, size, TILE: tl.constexpr):\n' + BODY,
    "hint-of-a-local": kernel("i: {run} = 1"),
    "hint-of-the-result": "@triton.jit\ndef kernel(x_ptr, out_ptr, size, TILE: tl.constexpr) -> {run}:\n" + BODY,
    "decorator": "@{run}\n" + HEAD + BODY,
    "decorator-that-chooses": "@(triton.jit if {run} else triton.jit)\n" + HEAD.split("\n", 1)[1] + BODY,
    "decorator-with-options": "@triton.jit(debug={run})\n" + HEAD.split("\n", 1)[1] + BODY,
    "decorator-with-many-options": "@triton.jit(**{run})\n" + HEAD.split("\n", 1)[1] + BODY,
    "decorator-without-specializing": "@triton.jit(do_not_specialize=[{run}])\n" + HEAD.split("\n", 1)[1] + BODY,
    "decorator-of-another": "class triton:\n    jit = lambda f: {run}\n" + HEAD + BODY,
    "decorator-imported": "from evil import jit\n@jit\n" + HEAD.split("\n", 1)[1] + BODY,
    "a-function-of-constants": "@triton.constexpr_function\ndef two():\n    return {run}\n\n\n" + kernel("i = two()"),
    "a-default-of-a-helper": "@triton.jit\ndef two(x={run}):\n    return 2\n\n\n" + kernel("i = two()"),
    "a-helper-without-a-decorator": "def two():\n    return {run}\n\n\n" + kernel("i = two()"),
    "a-helper-in-a-class": "class C:\n    @triton.jit\n    def two(x={run}):\n        return 2\n\n\n"
    + kernel("i = C.two(1)"),
    "a-class": "class C({run}):\n    two = 2\n\n\n" + kernel("i = C.two"),
    "a-call-of-a-jit": "def kernel(x_ptr={run}, *rest):\n    pass\n\n\nkernel = triton.jit(kernel)\n",
    "a-branch": "if {run}:\n" + "".join(f"    {line}\n" for line in (HEAD + BODY).splitlines()),
    "a-text-in-a-call": kernel('tl.static_print(f"{{{run}}}")'),
    "a-text-with-a-format": kernel('tl.static_assert(True, f"{{1:{{{run}}}}}")'),
    "an-assertion": kernel("assert True, {run}"),
    "a-print": kernel("print({run})"),
    "a-static-print": kernel("tl.static_print({run})"),
    "an-index": kernel("i = (1, 2)[{run}]"),
    "a-name-of-the-language": "tl = type('tl', (), dict(load={run}))\n" + HEAD + BODY,
    "a-module-of-the-same-name": "import os as tl\n" + kernel("tl.system({run!r})"),
    "a-keyword": kernel("tl.arange(0, 16, **{run})"),
    "a-star": kernel("tl.arange(*{run})"),
    "inline-assembly": kernel("tl.inline_asm_elementwise({run!r}, '', [], tl.int32, True, 1)"),
    "through-a-block": kernel("tl.zeros((1,), tl.float32).__class__.__init__.__globals__['__builtins__'][{run!r}]"),
    "through-a-type": kernel("tl.float32.__class__.__mro__[1].__subclasses__()", "{run}"),
    "through-a-handle": kernel("x_ptr.handle.data.dtype.type.mro()", "{run}"),
    "through-a-format": kernel("'{{0.__class__.__init__.__globals__}}'.format(x_ptr)", "{run}"),
}
TEXTS = {
    "docstring": _in_text('"""', "'''"),
    "docstring-in-single-quotes": _in_text("'''", '\\"\\"\\"'),
    "raw-docstring": _in_text('"""', "'''", prefix="r"),
    "bare-text": _in_text('"""', "'''", before="size += 0; "),
    "text-in-an-expression": _in_text('"""', "'''", before="tl.static_assert(True, ", after=")"),
    "text-in-an-assignment": _in_text('"""', "'''", before="words = "),
    "f-string": _in_text('"""', "'''", prefix="f", before="tl.static_print(", after=")"),
    "bytes": _in_text('"""', "'''", prefix="b", before="tl.static_print(", after=")"),
    "joined-texts": _in_text('"""', "'''", before="tl.static_print('' ", after=")"),
    "text-over-lines": HEAD + f'    tl.static_print("\\\n{SECOND}\\\n    {CANARY}")\n' + BODY,
    "escaped-line-ends": HEAD + f'    "\\n{SECOND}\\n    {CANARY}\\n"\n' + BODY,
    "form-feeds": HEAD
    + f'    "\\x0c{SECOND}\\x0c    {CANARY}\\x0c"\n    "\\x0b{SECOND}\\x85    {CANARY}\\u2028"\n'
    + BODY,
    "carriage-returns": HEAD + f'    """\\r{SECOND}\\r    {CANARY}\\r"""\n' + BODY,
    "text-of-an-annotation": HEAD + f'    words: "\\n{SECOND}\\n    {CANARY}" = 1\n' + BODY,
    "default-of-many-lines": HEAD.replace("):", f', word="""\n{SECOND}\n    {CANARY}\n"""):') + BODY,
    "constant-of-many-lines": f'WORD = """\n{SECOND}\n    {CANARY}\n"""\n' + kernel("tl.static_assert(True, WORD)"),
    "docstring-of-a-helper": f'@triton.jit\ndef two(x):\n    """\ndef two(x):\n    {CANARY}\n    \'\'\'\n    """\n'
    + "    tl.static_assert(True, \"''' #\")\n    return x\n\n\n"
    + kernel("two(1)"),
    "name-in-other-letters": HEAD.replace("kernel", "𝗄ernel") + f"    𝖾xec({CANARY!r})\n" + BODY,
    "comment": HEAD + f"    # {SECOND} {CANARY}\n    size = size  # noqa\n" + BODY,
    "lambda-line": HEAD + "    word = '''\n    def '''\n" + BODY,
}
SLOW = {
    "attributes": kernel("x_ptr" + ".T" * 9000),
    "rows-of-attributes": kernel(*["x_ptr" + ".T" * 240] * 38),
    "helpers-of-attributes": NEXT.join(
        f"@triton.jit\ndef part{n}(x):\n" + ("    x" + ".T" * 240 + "\n") * 38 for n in range(5)
    )
    + NEXT
    + kernel(*(f"part{n}(x_ptr)" for n in range(5))),
    "helpers": "\n".join(
        f"@triton.jit\ndef f{n}(x):\n    f{n + 1}(x) if x is None else f{n + 1}(x)" for n in range(300)
    )
    + "\n@triton.jit\ndef f300(x):\n    return x\n"
    + kernel("f0(1)"),
    "aliases": "\n".join(f"f{n} = f{n + 1}" for n in range(1500)) + "\nf1500 = 1\n" + kernel("f0"),
    "constants-of-constants": "C0 = 1\n"
    + "\n".join(f"C{n + 1} = C{n} + C{n}" for n in range(900))
    + "\n"
    + kernel("C900"),
    "power": "C = 2 ** 10 ** 9\n" + kernel("i = C"),
    "towers": "C = 9 ** 9 ** 9 ** 9\n" + kernel("i = C"),
    "shift": "C = 1 << 10 ** 11\n" + kernel("i = C"),
    "long-text": "C = 'x' * 10 ** 11\n" + kernel("i = C"),
    "long-tuple": "C = (0,) * 10 ** 11\n" + kernel("i = C"),
    "long-digits": "C = float('1' * 10 ** 10)\n" + kernel("i = C"),
    "nested": kernel("i = " + "(" * 150 + "1" + ")" * 150),
    "sums": kernel("i = " + "+".join(["1"] * 9000)),
    "signs": kernel("i = " + "-" * 9000 + "1"),
    "long-name": kernel("x" * 19000 + " = 1"),
}


def all_cells() -> dict[str, str]:
    """Every cell by its name."""
    cells = {f"text: {name}": cell for name, cell in TEXTS.items()}
    for name, cell in EXPRESSIONS.items():
        cells[f"expression: {name}"] = (
            cell.replace("{run!r}", repr(CANARY)).replace("{run}", CANARY).replace("{{", "{").replace("}}", "}")
        )
    for name, line in SCOPES.items():
        for word in NAMES:
            bind, use = line.replace("{name}", word), _use(word)
            cells[f"scope: {name} of {word}"] = kernel(bind, use)
            cells[f"scope: {name} of {word}, used first"] = kernel(use, bind)
    return cells | {f"slow: {name}": cell for name, cell in SLOW.items()}


def _use(word: str) -> str:
    ways = {"exec": f"exec({CANARY!r})", "eval": f"eval({CANARY!r})", "__import__": CANARY}
    return ways.get(word, f"{word}({CANARY!r})" if word in dir(builtins) else f"{word}.CANARY")


def run(cell: str) -> tuple[str, list[str]]:
    """Read the kernel of a cell and launch it, if it is accepted: what came of it, and the names that it reaches."""
    import torch

    from mlsys.core.cells import run_cell
    from mlsys.grading.kernels.source import kernel_source
    from mlsys.grading.verdicts import NotAKernel
    from mlsys.judge.inside.launcher import KERNEL

    try:
        source = kernel_source(["import torch, triton, triton.language as tl", *cell.split(NEXT)], "kernel")
    except NotAKernel as error:
        said = str(error)
        return ("refused" if "\n" not in said and len(said) < 1000 else f"a long refusal: {said[:200]!r}"), []
    x = torch.linspace(-1, 2, 20)
    out = torch.full_like(x, float("nan"))
    names = {"__name__": "kernel"}
    outcome = "accepted"
    try:
        run_cell(source.text, KERNEL, names)
        names[source.name][(2,)](x, out, 20, TILE=16)
    except Exception as error:
        outcome = f"failed: {type(error).__name__}"
    return outcome, sorted(_reached(source.text))


def _reached(text: str) -> set[str]:
    """The global names that the functions of a text read and that it does not define itself."""
    code = compile(text, "text", "exec")
    inside = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    used = {name for one in inside for name in _globals(one)}
    body = ast.parse(text).body
    own = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    return (
        used - own - {ast.unparse(target) for node in body if isinstance(node, ast.Assign) for target in node.targets}
    )


def _globals(code: CodeType) -> set[str]:
    found = {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found.union(*(_globals(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _stop(*_: object) -> None:
    raise TimeoutError(f"longer than {LONGEST_S} s")


def main() -> None:
    """Try all cells, one line of JSON each: name, outcome, names reached, whether Python ran, seconds of computing."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    signal.signal(signal.SIGALRM, _stop)
    run(kernel())  # imports
    for name, cell in all_cells().items():
        vars(builtins).pop("CANARY", None)
        started = time.process_time()
        signal.alarm(LONGEST_S)
        try:
            outcome, reached = run(cell)
        except BaseException as error:
            outcome, reached = f"broke: {type(error).__name__}: {error}"[:200], []
        row = [name, outcome, reached, hasattr(builtins, "CANARY"), time.process_time() - started]
        print("\n" + json.dumps(row), flush=True)  # after what a kernel has printed


if __name__ == "__main__":
    main()
