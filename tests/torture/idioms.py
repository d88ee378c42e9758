"""Training programs put together from the ways in which people write each part of one: those of idioms.toml.

All of them train the same small problem, print a line for each number that matters, and run on a CPU: what they print
and write can be compared, converted and not, on one process and on two.
"""

from __future__ import annotations

import ast
import re
import sys
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import random

HEADS = ("head.py",)
PROGRAM = "program.py"
#: How many programs have a module beside them.
APART = 0.4
#: What every program has, in this order; the rest is in the ways.
WHOLE = {
    "objects": "<device>\n<data>\n<loaders>\n<model>\n<criterion>\n<optimizer>\n<scheduler>\n<precision>\n<average>",
    "start": "<resume>\n<kept>\n<kept history>",
    "train": "<rate of an epoch>\n@model.train()\n<begin>\n<begin of norms>\n<before an epoch>\n<batches>\n<show>",
    "batches": "<loop>\n    <step of a batch>",
    "step of a batch": "<fetch>\n<open>\n<move>\n<before>\n<compute>\n<update>\n<behind an update>\n<add>",
    "behind an update": "<after an update>\n<after a batch>",
    "end of epoch": "<tell>\n<rates>\n<after an epoch>\n<keep average>\n<save>",
    "rates": 'print("lr", epoch, ["%.6f" % group["lr"] for group in @optimizer.param_groups])',
}
_WORD = re.compile(r"\w+")
_OWN = re.compile(r"(?<!\\)@")
_HOLE = re.compile(r"^( *)<([a-z ]+)>\n", re.MULTILINE)


@dataclass(frozen=True)
class Made:
    """One program, which way of each part it takes, and what cannot be compared."""

    files: dict[str, str]
    ways: dict[str, int]
    tags: frozenset[str]


@cache
def parts_of(name: str) -> dict[str, list[dict]]:
    """The ways of each part that a file has."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


def parts() -> dict[str, list[dict]]:
    """The ways of each part of a program of one model."""
    return parts_of("idioms.toml")


def made(chance: random.Random) -> Made:
    """A program of ways that chance takes."""
    return of(chance, parts(), WHOLE)


def of(
    chance: random.Random,
    parts: dict[str, list[dict]],
    whole_of: dict[str, str],
    heads: tuple[str, ...] = HEADS,
) -> Made:
    """A program of such parts, in the order in which what is the same in all has them, and of what heads have."""
    ways = {name: chance.randrange(len(each)) for name, each in parts.items()}
    taken = [parts[name][number] for name, number in ways.items()]
    tags = frozenset(tag for way in taken for tag in way.get("tags", ()))
    holes = whole_of | {hole: text for way in taken for hole, text in way.items() if hole != "tags"}
    body = f"{holes['program'].strip()}\n"
    while _HOLE.search(body):
        body = _HOLE.sub(lambda found: _indented(holes.get(found[2], ""), found[1]), body)
    for name, text in holes.items():
        body = body.replace(f"%{name}%", text)
    body = _OWN.sub("self." if "class" in tags else "", body).replace(r"\@", "@")
    return Made(whole(body, heads, apart=chance.random() < APART), ways, tags)


def whole(body: str, heads: tuple[str, ...] = HEADS, *, apart: bool = False) -> dict[str, str]:
    """The files of a program: `program.py`, with what it uses of the heads, which may be in a module beside it."""
    imports, defined = _head(heads)
    used = _used(body, defined)
    if not apart:
        return {PROGRAM: _joined(imports, *used.values(), body)}
    met = ", ".join(name for name in used if name in _WORD.findall(body))
    return {
        PROGRAM: _joined(f"{imports}\nfrom common import {met}", body),
        "common.py": _joined(imports, *used.values()),
    }


@cache
def _head(names: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The imports of some heads, and their classes and functions by their names."""
    imports: dict[str, None] = {}
    defined: dict[str, str] = {}
    for name in names:
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports[text_of(node, text.splitlines())] = None
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                defined[node.name] = text_of(node, text.splitlines())
    return "\n".join(imports), defined


def text_of(node: ast.stmt, lines: list[str]) -> str:
    """The lines of a statement, with those that decorate it."""
    first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
    return "\n".join(lines[first - 1 : node.end_lineno])


def _used(body: str, defined: dict[str, str]) -> dict[str, str]:
    """Those of some definitions that are used, by the program or by each other."""
    used: set[str] = set()
    unseen = [body]
    while unseen:
        words = set(_WORD.findall(unseen.pop()))
        found = words & defined.keys() - used
        used |= found
        unseen += [defined[name] for name in found]
    return {name: text for name, text in defined.items() if name in used}


def _joined(*parts: str) -> str:
    return "\n\n\n".join(part.strip() for part in parts) + "\n"


def _indented(text: str, depth: str) -> str:
    return textwrap.indent(f"{text.strip()}\n", depth) if text else ""
