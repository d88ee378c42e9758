"""Notebooks of programs at module level, cut into cells by chance: what a person trains in a notebook."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import idioms
import pairs
import tasks
from idioms import PROGRAM, Made

if TYPE_CHECKING:
    import random
    from types import ModuleType

KINDS: tuple[ModuleType, ...] = (idioms, pairs, tasks)
NAME = "train.ipynb"
#: What is asked of the processes, which a function in a cell is not: to go on from a file, and to end after batches.
ELSEWHERE = frozenset({"class", "spread", "resumes", "by steps"})
#: How often a cell ends between two statements: where a definition or a loop is one of them, and elsewhere.
AROUND_BLOCK, BETWEEN = 0.6, 0.25
_BLOCK = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While)
_IMPORT = (ast.Import, ast.ImportFrom)
_OF_FILES = re.compile(r"\bdef main\(|\b__file__\b")
_STARTED = re.compile(r"notebook_launcher\((\w+)\)")


@dataclass(frozen=True)
class Notebook:
    """What is in the cells of one, and the program that they are of."""

    cells: list[str]
    program: Made

    @property
    def ways(self) -> dict[str, int]:
        return self.program.ways

    @property
    def content(self) -> bytes:
        return json.dumps(_document(self.cells), indent=1).encode()


def made(chance: random.Random) -> Notebook:
    """A notebook of a program that trains at module level, in one file."""
    while True:
        program = chance.choice(KINDS).made(chance)
        body = program.files[PROGRAM]
        if ELSEWHERE.isdisjoint(program.tags) and "common.py" not in program.files and not _OF_FILES.search(body):
            return Notebook(cut(body, chance), program)


def cut(text: str, chance: random.Random) -> list[str]:
    """The statements of a program, shared out to cells by chance."""
    lines = text.splitlines()
    ended = [
        _first(after) for before, after in pairwise(ast.parse(text).body) if chance.random() < _rate(before, after)
    ]
    cells = ("\n".join(lines[begin:end]).strip("\n") for begin, end in pairwise([0, *ended, len(lines)]))
    return [cell for cell in cells if cell.strip()]


def _rate(before: ast.stmt, after: ast.stmt) -> float:
    if isinstance(before, _IMPORT) and isinstance(after, _IMPORT):
        return 0.0
    return AROUND_BLOCK if isinstance(before, _BLOCK) or isinstance(after, _BLOCK) else BETWEEN


def _first(statement: ast.stmt) -> int:
    """The line of a statement, or of what decorates it, from 0."""
    return min(each.lineno for each in (statement, *getattr(statement, "decorator_list", ()))) - 1


def _document(cells: list[str]) -> dict[str, object]:
    code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": [
            {**code, "id": f"cell-{number}", "source": cell.splitlines(keepends=True)}
            for number, cell in enumerate(cells)
        ],
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def on_two(content: bytes) -> bytes:
    """A converted notebook that starts two processes, which share each batch out."""
    text = _STARTED.sub(r"notebook_launcher(\1, num_processes=2)", content.decode())
    return text.replace("= Accelerator(", "= Accelerator(split_batches=True, ").encode()
