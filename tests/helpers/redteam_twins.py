"""The same attack in other words: renamed, rearranged, with other sizes, drawn anew from a seed.

A rule that knows a case by its names, its layout or its numbers lets the twin through.
"""

import ast
import builtins
import random
import string
from collections.abc import Iterable

LARGE = 1000
"""Numbers from here on are sizes of a bomb, a loop or a flood, and may change."""


def twin(source: str, contract: Iterable[str], seed: str) -> tuple[str, str]:
    """The source of an added cell and of the answer, which together do what `source` does.

    Args:
        source: an answer.
        contract: names that the question asks for; they stay.
        seed: what the twin is drawn from.
    """
    chance = random.Random(seed)
    tree = ast.parse(source)
    contract = set(contract)
    names = _bound(tree) - contract - set(dir(builtins))
    tree = _Renamed({name: _word(chance) for name in sorted(names)}, chance).visit(tree)
    added: list[ast.stmt] = []
    if chance.random() < 0.5:
        movable = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
        added, tree.body = movable, [node for node in tree.body if node not in movable]
    wrap = chance.choice([_in_a_class, _behind_a_function, _with_company])
    body: list[ast.stmt] = []
    for node in tree.body:
        plain = isinstance(node, ast.FunctionDef) and node.name in contract and not node.decorator_list
        body += wrap(node, chance) if plain else [node]
    return _text(added), _text(body)


def _text(body: list[ast.stmt]) -> str:
    return ast.unparse(ast.fix_missing_locations(ast.Module(body, []))) if body else ""


def _word(chance: random.Random) -> str:
    return "".join(chance.choices(string.ascii_lowercase, k=9))


def _in_a_class(function: ast.FunctionDef, chance: random.Random) -> list[ast.stmt]:
    """The function as a static method, and a name for it."""
    owner, method = _word(chance).title(), _word(chance)
    name, function.name = function.name, method
    function.decorator_list = [ast.Name("staticmethod", ast.Load())]
    bound = ast.parse(f"{name} = {owner}.{method}").body
    return [ast.ClassDef(owner, [], [], [function], []), *bound]


def _behind_a_function(function: ast.FunctionDef, chance: random.Random) -> list[ast.stmt]:
    """The function under another name, and one that only calls it."""
    name, function.name = function.name, _word(chance)
    return [function, *ast.parse(f"def {name}(*given, **named):\n    return {function.name}(*given, **named)").body]


def _with_company(function: ast.FunctionDef, chance: random.Random) -> list[ast.stmt]:
    """The function between others that nobody calls."""
    return [*ast.parse(f"def {_word(chance)}(x):\n    return x + {chance.randint(1, 99)}").body, function]


def _bound(tree: ast.Module) -> set[str]:
    """Names that the source binds: variables, parameters, functions, classes and imports under another name."""
    fields = {id(node) for owner in ast.walk(tree) if isinstance(owner, ast.ClassDef) for node in _of_class(owner)}
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in fields:
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.alias) and "." not in node.name:
            found.add(node.asname or node.name)
    # Names in capitals are the words of the kernel's contract.
    return {name for name in found if not name.isupper() and not name.startswith("_") and name != "torch"}


def _of_class(owner: ast.ClassDef) -> list[ast.AST]:
    targets = [target for node in owner.body if isinstance(node, ast.Assign) for target in node.targets]
    inner = [node for target in targets for node in ast.walk(target)]
    return [*(node for node in owner.body if isinstance(node, ast.FunctionDef)), *inner]


class _Renamed(ast.NodeTransformer):
    """Names from a table, and other large numbers."""

    def __init__(self, names: dict[str, str], chance: random.Random) -> None:
        self.names = names
        self.chance = chance
        self.classes: set[int] = set()

    def new(self, name: str) -> str:
        return self.names.get(name, name)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.new(node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.new(node.arg)
        return self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        kept = {id(part) for part in _of_class(node)}
        self.classes |= kept
        node.name = self.new(node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if id(node) not in self.classes:
            node.name = self.new(node.name)
        return self.generic_visit(node)

    def visit_alias(self, node: ast.alias) -> ast.AST:
        if (node.asname or node.name) in self.names:
            node.asname = self.names[node.asname or node.name]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if type(node.value) is int and LARGE <= node.value < 1 << 40 and node.value & (node.value - 1):
            node.value += self.chance.randint(1, node.value // 4)
        return node
