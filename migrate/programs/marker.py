"""The name that stands for the accelerator in code that was made ready for it, before it has one of its own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

ACCELERATOR = "__accelerator__"
#: A name that is given what `Accelerator(mixed_precision=...)` is to be given.
PRECISION = "__mixed_precision__"
#: What says which process it is.
NUMBERS = ("process_index", "local_process_index")
#: What says that a process is the one that speaks on its machine, and anywhere.
LOCAL_MAIN = "is_local_main_process"
_MAIN = ("is_main_process", LOCAL_MAIN)


def marks(node: ast.AST) -> Iterator[ast.Name]:
    """Where the name is read in some code."""
    return (n for n in walk(node).of(ast.Name) if n.id == ACCELERATOR)


def is_marked(node: ast.AST) -> bool:
    """Whether the name is read in some code."""
    return next(marks(node), None) is not None


#: `"cpu"`, `"cuda"`.
_KIND = f"{ACCELERATOR}.device.type"


def parts(test: ast.AST) -> bool:
    """Whether a test may say one thing to one process and another to the next: their number is that of all.

    So is the kind of their devices.
    """
    asked = {n for n in walk(test).of(ast.Attribute) if n.attr == "num_processes" or ast.unparse(n) == _KIND}
    alike = {inner for node in asked for inner in marks(node)}
    return any(mark not in alike for mark in marks(test))


def is_main(test: ast.expr) -> bool:
    """Whether a test holds on the main process only: it asks for that, perhaps among other things."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(map(is_main, test.values))
    return (
        isinstance(test, ast.Attribute)
        and test.attr in _MAIN
        and isinstance(test.value, ast.Name)
        and test.value.id == ACCELERATOR
    )


def asks_accelerator(node: ast.AST) -> bool:
    """Whether an expression is what the accelerator answers."""
    asked = node.func if isinstance(node, ast.Call) else node
    return isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name) and asked.value.id == ACCELERATOR


#: What the main process has, on all: functions of the library, which need no accelerator in hand.
TOLD = ("broadcast", "broadcast_object_list")


def is_of_all(node: ast.AST) -> bool:
    """Whether an answer is the same on all processes: how many there are, what they have summed up."""
    asked = node.func if isinstance(node, ast.Call) else node
    return isinstance(asked, ast.Attribute) and asked.attr in ("num_processes", "reduce", *TOLD)


def is_barrier(statement: ast.stmt) -> bool:
    """Whether a statement waits for the other processes."""
    return isinstance(statement, ast.Expr) and ast.unparse(statement.value) == f"{ACCELERATOR}.wait_for_everyone()"
