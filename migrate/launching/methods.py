"""Functions, classes and methods that need the accelerator, and the code that calls them.

    class Net(nn.Module):
        def act(self, state):                      model.act(state)             # calls it, whatever `model` is
            return self(state.to(accelerator.device))

    class Stopper:
        def __call__(self, loss): ...              stopper = Stopper()
            accelerator.print(loss)                stopper(loss)

A class is one of the names that need it where making an object does, or where Python itself calls the method.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.launching.names import bound, globals_of, mentioned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_CALLED = frozenset({"__call__", "forward"})  # by `object(x)`; the second also by models around it


@dataclass(slots=True)
class Needing:
    """What needs some names of a module: names, methods by their name alone, and objects that are called."""

    names: set[str]
    methods: set[str] = field(default_factory=set)
    callables: set[str] = field(default_factory=set)  # names of objects that are called
    models: set[str] = field(default_factory=set)  # classes whose `forward` does

    def is_asked(self, node: ast.AST) -> bool:
        """Whether code mentions one of the names, or calls one of the methods or objects."""
        return bool(mentioned([node]) & self.names) or self.calls(node)

    def calls(self, node: ast.AST) -> bool:
        """Whether code calls one of the methods, or one of the objects."""
        return any(
            (isinstance(inner, ast.Attribute) and inner.attr in self.methods)
            or (isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id in self.callables)
            for inner in ast.walk(node)
        )


def needing(
    tree: ast.Module, definitions: Mapping[str, ast.stmt], uses: Mapping[str, set[str]], names: Iterable[str]
) -> Needing:
    """All that needs some names, directly or by what it calls; `uses`: the names of the module that each uses."""
    classes = {name: node for name, node in definitions.items() if isinstance(node, ast.ClassDef)}
    methods = {name: {each.name: each for each in _methods(node)} for name, node in classes.items()}
    inside = {name: globals_of(of_class) for name, of_class in methods.items()}
    found, before = Needing({*names} - {""}), -1
    while before != (before := len(found.names) + len(found.methods) + len(found.callables)):
        for name, node in definitions.items():
            if name not in classes:
                if uses[name] & found.names or found.calls(node):
                    found.names.add(name)
                continue
            mine = {m for m, each in methods[name].items() if inside[name][m] & found.names or found.calls(each)}
            found.methods |= {method for method in mine if not _is_special(method)}
            if any(map(_is_special, mine - _CALLED)) or any(map(found.is_asked, _rest(classes[name]))):
                found.names.add(name)
            if mine & _CALLED:
                found.callables |= {"self", *_objects(tree, _with_derived(classes, name))}
            if "forward" in mine:
                found.models.add(name)
    return found


def _methods(cls: ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    yield from (each for each in cls.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _rest(cls: ast.ClassDef) -> Iterator[ast.AST]:
    """What runs where a class is defined."""
    yield from (*cls.bases, *cls.keywords, *cls.decorator_list)
    for each in cls.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from (*each.decorator_list, each.args)
        else:
            yield each


def _is_special(method: str) -> bool:
    """Whether Python calls a method where no name says so: `__init__`, `__len__`, `__getitem__`."""
    return method.startswith("__") and method.endswith("__")


def _with_derived(classes: Mapping[str, ast.ClassDef], name: str) -> set[str]:
    """A class and those that have it as a base, by their names."""
    found = {name}
    while new := {other for other, node in classes.items() if mentioned(node.bases) & found} - found:
        found |= new
    return found


def _objects(tree: ast.Module, classes: set[str]) -> set[str]:
    """The names that are given an object of some classes, anywhere in a module."""
    given = (node for node in ast.walk(tree) if isinstance(node, ast.Assign))
    made = ((node.targets, node.value) for node in given if isinstance(node.value, ast.Call))
    return {name for targets, call in made if mentioned([call.func]) & classes for name in bound(targets)}
