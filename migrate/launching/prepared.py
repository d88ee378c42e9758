"""What is prepared, and by what name of the module it is reached: `model`, `loaders["train"]` by way of `loaders`.

An item of a dictionary is prepared in the dictionary that each process has. That of the notebook's own process keeps
the one that was not prepared, as a plain name does.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.launching.aliases import changed_by_part, changed_in_place
from migrate.launching.names import given

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a statement prepares: as it is written there, and the name of the module that leads to it."""

    text: str
    name: str

    @property
    def is_item(self) -> bool:
        """Whether the name is that of a container."""
        return self.text != self.name


def parts(node: ast.stmt) -> list[Part] | None:
    """What a statement prepares; None: something has no name, and is no item of what has one under a plain key."""
    assert isinstance(node, ast.Assign)
    target = node.targets[0]
    found = []
    for each in target.elts if isinstance(target, ast.Tuple) else [target]:
        whole = each.value if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Constant) else each
        if not isinstance(whole, ast.Name):
            return None
        found.append(Part(ast.unparse(each), whole.id))
    return found


def containers(nodes: Iterable[ast.stmt]) -> set[str]:
    """The names of the containers of which statements prepare items."""
    return {part.name for node in nodes for part in parts(node) or () if part.is_item}


def is_changed(name: str, nodes: Sequence[ast.AST], definitions: Mapping[str, ast.stmt]) -> bool:
    """Whether code may put something else into a container: under its name, or as what a function is handed."""
    if name in given(nodes) | changed_by_part(nodes) | changed_in_place(nodes):
        return True
    for call in (inner for node in nodes for inner in ast.walk(node) if isinstance(inner, ast.Call)):
        passed = [*enumerate(call.args), *((keyword.arg, keyword.value) for keyword in call.keywords)]
        places = [place for place, value in passed if isinstance(value, ast.Name) and value.id == name]
        if places and _changes(call.func, places, definitions):
            return True
    return False


def _changes(called: ast.expr, places: Sequence[int | str | None], definitions: Mapping[str, ast.stmt]) -> bool:
    """Whether a function of the notebook puts something into what it is handed; of another, whether it may."""
    function = definitions.get(called.id) if isinstance(called, ast.Name) else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return not (isinstance(called, ast.Name) and called.id in _LOOKING)
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    own = {names[place] if isinstance(place, int) and place < len(names) else place for place in places}
    if not all(isinstance(each, str) and each in _parameters(function) for each in own):
        return True
    others = {name: each for name, each in definitions.items() if each is not function}  # it may call itself
    return any(isinstance(each, str) and is_changed(each, function.body, others) for each in own)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return {each.arg for each in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}


_LOOKING = frozenset("print len enumerate zip sorted list iter next isinstance type".split())
