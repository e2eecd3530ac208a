"""The language in which a kernel may be written, and the check that a function uses nothing else.

The check reads a syntax tree, and that tree is what runs: see `mlsys.grading.kernels.source` and
`mlsys.judge.inside.checked_kernel`. It must be safe against hostile authors. So it lists what is allowed and refuses
everything else, takes the scopes of names from Python's own symbol tables, and does not rely on earlier steps.
"""

import ast
import builtins
import symtable
from collections.abc import Collection, Iterator
from typing import NoReturn

from mlsys.grading.verdicts import NotAKernel

NUMBER_TYPES = frozenset(
    """
    bfloat16 float16 float32 float64 float8e4nv float8e5 int1 int8 int16 int32 int64 uint8 uint16 uint32 uint64
    """.split()
)
"""The dtypes of `triton.language`."""

LANGUAGE = NUMBER_TYPES | frozenset(
    """
    PropagateNan abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas
    atomic_max atomic_min atomic_or atomic_xchg atomic_xor broadcast broadcast_to cast cat cdiv ceil clamp constexpr
    cos cumprod cumsum debug_barrier device_assert device_print div_rn dot dot_scaled erf exp exp2 expand_dims fdiv
    flip floor fma full gather histogram interleave join load load_tensor_descriptor log log2 make_block_ptr
    make_tensor_descriptor max max_constancy max_contiguous maximum min minimum mul multiple_of num_programs permute
    pointer_type program_id rand rand4x randint randint4x randn randn4x range ravel reduce reshape rsqrt sigmoid sin
    softmax sort split sqrt sqrt_rn squeeze static_assert static_print static_range store store_tensor_descriptor
    sub sum swizzle2d topk trans umulhi unsqueeze view where xor_sum zeros zeros_like
    """.split()
)
"""Names of `triton.language`, without inline assembly and libraries, which reach beyond the language."""

MATH = frozenset("abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi".split())
"""Names of `triton.language.math`."""

TRITON = frozenset(("cdiv", "next_power_of_2"))
"""Names of `triton` that a kernel may call."""

MEMBERS = (LANGUAGE - {"PropagateNan", "pointer_type"}) | frozenset(
    """
    ALL NONE T block_shape dtype element_ty is_bf16 is_block is_bool is_floating is_fp16 is_fp32 is_fp64 is_int
    is_int_signed is_int_unsigned is_ptr item numel primitive_bitwidth scalar scatter shape to type value
    """.split()
)
"""Attributes and methods of a block, a dtype, a descriptor or an enumeration."""

_OF_SHELLS = frozenset(("_", "copyright", "credits", "display", "exit", "get_ipython", "help", "license", "quit"))
"""Names that interactive shells add to Python's builtins; a judge and a notebook must refuse the same kernels."""

PYTHON_NAMES = frozenset(dir(builtins)) - _OF_SHELLS
"""Names of Python's builtins, which no variable of a kernel may have."""

BUILTINS = frozenset(("abs", "bool", "float", "int", "len", "max", "min", "print", "range"))
"""Python's built-in functions that a kernel may call."""

MAX_NODES = 20_000
"""Largest syntax tree of one function, in nodes; a long kernel of the course has about 1,500."""

MAX_CHAIN = 20
"""Most attributes in a row, as in `x.dtype.element_ty`, which has two."""

_NODES = (
    ast.Add, ast.And, ast.AnnAssign, ast.Assert, ast.Assign, ast.Attribute, ast.AugAssign, ast.BinOp, ast.BitAnd,
    ast.BitOr, ast.BitXor, ast.BoolOp, ast.Call, ast.Compare, ast.Constant, ast.Div, ast.Eq,
    ast.Expr, ast.FloorDiv, ast.For, ast.FormattedValue, ast.Gt, ast.GtE, ast.If, ast.IfExp, ast.Invert, ast.Is,
    ast.IsNot, ast.JoinedStr, ast.LShift, ast.List, ast.Load, ast.Lt, ast.LtE, ast.MatMult, ast.Mod, ast.Mult, ast.Name,
    ast.Not, ast.NotEq, ast.Or, ast.Pass, ast.Pow, ast.RShift, ast.Return, ast.Slice, ast.Starred, ast.Store, ast.Sub,
    ast.Subscript, ast.Tuple, ast.UAdd, ast.USub, ast.UnaryOp, ast.While, ast.keyword,
)  # fmt: skip

_INSTEAD = {
    "NamedExpr": "assign on a line of its own; Triton's compiler does not support `:=`",
    "Break": "put the condition into a `while`; Triton's compiler does not support `break`",
    "Continue": "put the rest into an `if`; Triton's compiler does not support `continue`",
    "Lambda": "write a function with @triton.jit",
    "In": "compare with == and join with `or`; Triton's compiler does not support `in`",
    "NotIn": "compare with != and join with `and`; Triton's compiler does not support `not in`",
    "Delete": "leave it out; variables end with the kernel",
    "ListComp": "write the loop out",
    "FunctionDef": "define it outside, with @triton.jit",
    "Import": "import in a cell of its own",
    "ImportFrom": "import in a cell of its own",
    "Global": "pass the value as an argument, or as a constant: NAME = tl.constexpr(2)",
}


def check_function(function: ast.FunctionDef, others: Collection[str], first_line: int) -> None:
    """Make sure that a function uses Triton's language and nothing else.

    Args:
        function: its definition, as it will run.
        others: names of the functions that it may call; each is checked separately.
        first_line: the line that messages count as the function's first.

    Raises:
        NotAKernel: the function uses something else; the message says in which line, and what to write instead.
    """
    _Check(function, frozenset(others), first_line).run()


class _Check:
    def __init__(self, function: ast.FunctionDef, others: frozenset[str], first_line: int) -> None:
        self.function = function
        self.others = others
        self.first_line = first_line
        self.arguments = {one.arg for one in arguments_of(function.args)}

    def run(self) -> None:
        if self.function.name.startswith("__") or self.function.name in {"tl", "triton", *BUILTINS}:
            self.refuse(self.function, f"is called {self.function.name}", "choose another name")
        self._head()
        nodes = list(_nodes_of(self.function.body))
        if len(nodes) > MAX_NODES:
            self.refuse(self.function, f"has {len(nodes):,} parts", f"write it in at most {MAX_NODES:,}")
        for node in nodes:
            if not isinstance(node, _NODES):
                kind = type(node).__name__
                self.refuse(node, f"uses {kind}", _INSTEAD.get(kind, "write it with Triton's own operations"))
        local = self._local_names()
        for variable in sorted(local - self.arguments):
            # Python and Triton's compiler disagree about a name before its first assignment: there Python's own
            # functions would be found.
            if variable in PYTHON_NAMES:
                self.refuse(self.function, f"assigns to {variable}, a built-in name of Python", "choose another name")
        chained = {id(node.value): node for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            match node:
                case ast.Constant():
                    self._constant(node)
                case ast.Attribute():
                    self._attribute(node, local)
                case ast.Name():
                    self._name(node, local, chained.get(id(node)))
                case ast.keyword(arg=name) if name is None or name.startswith("_"):
                    self.refuse(
                        node, f"calls with {'**' if name is None else name}", "pass Triton's own arguments by name"
                    )
                case ast.AnnAssign():
                    self._annotated(node)

    def _head(self) -> None:
        function, arguments = self.function, self.function.args
        if len(function.decorator_list) != 1 or not _is_jit(function.decorator_list[0]):
            self.refuse(function, "has other decorators", "use @triton.jit and nothing else")
        if arguments.vararg or arguments.kwarg:
            self.refuse(function, "has *args or **kwargs", "name every argument")
        for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d)):
            if not _is_plain(default):
                self.refuse(default, "has a default that is not a constant", "use a number")
        for argument in arguments_of(arguments):
            if argument.annotation is not None and not _is_hint(argument.annotation):
                self.refuse(argument, f"annotates {argument.arg}", "annotate with tl.constexpr or not at all")
            if argument.arg.startswith("__") or argument.arg in ("tl", "triton"):
                self.refuse(argument, f"has an argument called {argument.arg}", "choose another name")
        if function.returns is not None:
            self.refuse(function.returns, "annotates its result", "leave it out, because a kernel returns nothing")
        if getattr(function, "type_params", None):  # from Python 3.12 on
            self.refuse(function, "has type parameters", "leave them out")

    def _local_names(self) -> frozenset[str]:
        """Return the function's local names, as Python's compiler sees them."""
        try:
            table = symtable.symtable(ast.unparse(self.function), "kernel", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise NotAKernel(
                f"{self.function.name} changes when Python writes it out again; use plain names and shorter numbers"
            ) from None
        scopes = [scope for scope in table.get_children() if scope.get_type() == "function"]
        if len(scopes) != 1 or len(table.get_children()) != 1 or scopes[0].get_children():
            self.refuse(self.function, "contains a nested scope", "write it without nested functions")
        return frozenset(symbol.get_name() for symbol in scopes[0].get_symbols() if symbol.is_local())

    def _constant(self, node: ast.Constant) -> None:
        if not isinstance(node.value, (bool, int, float, str, type(None))):
            self.refuse(node, f"uses the constant {str(node.value)[:40]}", "use numbers")
        if isinstance(node.value, str) and not node.value.isprintable():
            self.refuse(node, "contains a string with a line break or a control character", "leave that out")

    def _attribute(self, node: ast.Attribute, local: frozenset[str]) -> None:
        base = node.value
        match base:
            case ast.Name(id="tl") if "tl" not in local:
                allowed = LANGUAGE | {"math"}
            case ast.Name(id="triton") if "triton" not in local:
                allowed = TRITON
            case ast.Attribute(value=ast.Name(id="tl"), attr="math") if "tl" not in local:
                allowed = MATH
            case _:
                allowed = MEMBERS
        if node.attr not in allowed:
            self.refuse(node, f"uses {_written(node)}", "write it with Triton's own operations")
        if not isinstance(node.ctx, ast.Load):
            self.refuse(node, f"sets {_written(node)}", "use variables")

    def _name(self, node: ast.Name, local: frozenset[str], chain: ast.Attribute | None) -> None:
        name = node.id
        if name.startswith("__") or (name in ("tl", "triton") and name in local):
            self.refuse(node, f"uses the name {name}", "choose another name")
        if name in ("tl", "triton"):
            if chain is None:  # an object to pass around; only tl.NAME is a word of the language
                self.refuse(node, f"uses {name} by itself", f"use {name}.NAME")
        elif name not in local and name not in BUILTINS and name not in self.others:
            self.refuse(node, f"uses {name}", "use Triton's own operations and functions with @triton.jit")

    def _annotated(self, node: ast.AnnAssign) -> None:
        if not (node.simple and isinstance(node.target, ast.Name) and node.value and _is_hint(node.annotation)):
            self.refuse(node, "annotates a variable", "write NAME: tl.constexpr = VALUE, or no annotation")

    def refuse(self, node: ast.AST, what: str, instead: str) -> NoReturn:
        line = getattr(node, "lineno", self.first_line) - self.first_line + 1
        raise NotAKernel(f"line {line} of {self.function.name} {what}; {instead}")


def arguments_of(arguments: ast.arguments) -> list[ast.arg]:
    """Return the arguments that a function names, however they may be given."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def _nodes_of(body: list[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)


def _is_plain(node: ast.expr) -> bool:
    """Return whether an expression is a number (also infinite or NaN), a text, None, a dtype, or a tuple of these."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return True
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=inner):
            return _is_plain(inner)
        case ast.Tuple(elts=parts):
            return all(map(_is_plain, parts))
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str())], keywords=[]):
            return True
    return _is_number_type(node)


def _is_number_type(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="tl"), attr=name):
            return name in NUMBER_TYPES
    return False


def _is_jit(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="triton"), attr="jit" | "constexpr_function"):
            return True
    return False


def _is_hint(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(value=ast.Name(id="tl"), attr="constexpr"):
            return True
    return _is_number_type(node)


def _written(node: ast.Attribute) -> str:
    """Return the last parts of a chain of attributes as text; a long chain would take long to write in full."""
    parts = [node.attr]
    base = node.value
    while isinstance(base, ast.Attribute) and len(parts) < MAX_CHAIN:
        parts.append(base.attr)
        base = base.value
    parts.append(base.id if isinstance(base, ast.Name) else "...")
    return ".".join(reversed(parts))
