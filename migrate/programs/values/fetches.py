"""Constructors that may download: `MNIST(root, download=True)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import data
from migrate.analysis.roles import Role
from migrate.analysis.units import Class

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def is_download(facts: Facts, call: ast.AST) -> bool:
    """`MNIST(root, download=True)`, also of a class of the project."""
    if not isinstance(call, ast.Call):
        return False
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "download"), None)
    if given is None or (isinstance(given, ast.Constant) and not given.value):
        return False
    return any(name.startswith(data.DOWNLOADING) for name in facts.called(call)) or bool(own_class(facts, call))


def own_class(facts: Facts, call: ast.Call) -> list[Class]:
    """The project's classes that a call makes objects of."""
    return [v.unit for v in facts.values(call.func) if v.role is Role.CLASS and isinstance(v.unit, Class)]
