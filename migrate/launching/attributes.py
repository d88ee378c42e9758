"""What a model's forward keeps in its object, beside its weights, and later cells look at.

def forward(self, queries):                    show(net.attention_weights)
    self.attention_weights = ...
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def kept(definitions: Mapping[str, ast.stmt], later: Iterable[ast.stmt], name: str) -> list[str]:
    """The attributes of an object that later statements read, and that a `forward` of the notebook sets."""
    classes = (node for node in definitions.values() if isinstance(node, ast.ClassDef))
    methods = (each for cls in classes for each in cls.body if isinstance(each, ast.FunctionDef))
    there = {attribute for method in methods if method.name == "forward" for attribute in _set(method)}
    nodes = (node for statement in later for node in ast.walk(statement) if isinstance(node, ast.Attribute))
    return sorted(there & {node.attr for node in nodes if _is_read(node, name)})


def _set(method: ast.FunctionDef) -> Iterator[str]:
    """What a method sets in its object, or adds to."""
    itself = next((each.arg for each in (*method.args.posonlyargs, *method.args.args)), "")
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield from [node.attr] if _is_of(node, itself) else []
        elif isinstance(node, ast.Attribute) and node.attr in ("append", "extend", "update"):
            if isinstance(node.value, ast.Attribute) and _is_of(node.value, itself):
                yield node.value.attr


def _is_of(node: ast.Attribute, name: str) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == name


def _is_read(node: ast.Attribute, name: str) -> bool:
    """`net.attention_weights`, `accelerator.unwrap_model(net).attention_weights`"""
    whole = node.value
    if isinstance(whole, ast.Call) and isinstance(whole.func, ast.Attribute) and whole.func.attr == "unwrap_model":
        whole = whole.args[0]
    return isinstance(node.ctx, ast.Load) and isinstance(whole, ast.Name) and whole.id == name
