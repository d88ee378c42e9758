"""Folders that a step of the program fills, and that what comes below looks into.

`cv2.imwrite(os.path.join(root, name), image)` for each image, and then `ImageFolder(root)`: the main process alone
writes, so all others wait for it where they come to look.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role
from migrate.analysis.state import ANY
from migrate.analysis.units import Function
from migrate.programs.output.handed_paths import handed_paths
from migrate.programs.reach.callees import reached
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

    Write = tuple[ast.Call, Unit]

#: A path in its parts; what is not known of one stands in braces.
Parts = tuple[str, ...]

_DEEPEST = 6
_BY_METHOD = frozenset({"save", "savefig", "to_csv", "to_pickle"})
_LOOKS_BY_METHOD = frozenset({"iterdir", "glob", "rglob"})
_JOINS = frozenset({"os.path.join", "pathlib.Path"})
_KEEPS = frozenset({"builtins.str", "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath"})


def filling(conversion: Conversion) -> list[tuple[Parts, Write]]:
    """The calls that write a file into a folder, or take one away, with its path."""
    facts = conversion.facts
    outputs = facts.once(Outputs)
    return [
        (parts, (use.node, use.unit))
        for use in facts.calls
        for path in _written(facts, use.node)
        if outputs.writes(use.node) and len(parts := parts_of(facts, path)) > 1
    ]


def looked_into(facts: Facts, call: ast.Call) -> Iterator[Parts]:
    """The folders into which a call looks, by their paths: what it lists, and where an image lies that it reads."""
    names = facts.called(call)
    if names & output.IMAGE_READERS:
        yield from (parts_of(facts, path)[:-1] for path in call.args[:1])
    elif names & output.LOOKS:
        yield from (parts_of(facts, path) for path in call.args[:1])
    elif isinstance(call.func, ast.Attribute) and call.func.attr in _LOOKS_BY_METHOD and not names:
        yield parts_of(facts, call.func.value)
    elif targets := facts.targets(call):
        if _reads_files(facts, targets):
            yield from (parts_of(facts, given) for given in (*call.args, *(word.value for word in call.keywords)))
    elif not names & (output.WRITES | output.READERS):
        yield from (parts_of(facts, path) for path in handed_paths(facts, call) if _is_path(facts, path))


def _reads_files(facts: Facts, targets: Iterable[Unit]) -> bool:
    """Whether functions of the project read files: `compute_miou(truth_dir, predicted_dir, names)`."""
    reads = output.IMAGE_READERS | output.LOOKS
    return any(
        isinstance(node, ast.Call) and facts.called(node) & reads
        for unit in reached(facts, targets)
        for node in facts.own(unit)
    )


def holds(folder: Parts, written: Parts) -> bool:
    """Whether a file may lie in a folder, or in one below it."""
    folder = folder[: next((at for at, part in enumerate(folder) if "*" in part), len(folder))]
    if not folder or len(folder) >= len(written):
        return False
    may_be_one = (one == other or "{" in other for one, other in zip(folder, written, strict=False))
    return folder[0] == written[0] and all(may_be_one)


def parts_of(facts: Facts, path: ast.expr) -> Parts:
    """A path in its parts, names followed to what they were given."""
    return tuple(part for part in _text(facts, path, _DEEPEST).split("/") if part not in ("", "."))


def _written(facts: Facts, call: ast.Call) -> list[ast.expr]:
    names = facts.called(call)
    if names & output.REMOVES:
        return call.args[:2]
    if names & output.PATH_SECOND:
        return call.args[1:2]
    if isinstance(call.func, ast.Attribute) and facts.once(Outputs).moves(call):
        return [call.func.value, *call.args]
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _BY_METHOD and not names
    return call.args[:1] if names & output.PATH_FIRST or is_method else []


def _is_path(facts: Facts, node: ast.expr) -> bool:
    """Whether an argument of a library that is not known is a path: by its text, or by how it is put together."""
    if isinstance(node, ast.Call):
        return bool(facts.called(node) & _JOINS)
    values = facts.values(node)
    return bool(values) and all(value.role is Role.TEXT for value in values)


def _text(facts: Facts, node: ast.expr, depth: int) -> str:
    """A path as far as it is written out; in braces what is not known, by its place where its name is a local one."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(facts, each, depth) for each in node.values)
    if isinstance(node, ast.FormattedValue):
        return _text(facts, node.value, depth)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Div)):
        between = "/" if isinstance(node.op, ast.Div) else ""
        return between.join(_text(facts, each, depth) for each in (node.left, node.right))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return re.sub(r"%[-+#0 .\d]*[a-z]", "{}", _text(facts, node.left, depth))
    if isinstance(node, ast.Call):
        return _called(facts, node, depth)
    return _named(facts, node, depth)


def _called(facts: Facts, node: ast.Call, depth: int) -> str:
    names = facts.called(node)
    if names & (_JOINS | _KEEPS):
        return "/".join(_text(facts, each, depth) for each in node.args)
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format" and not names:
        return re.sub(r"\{[^{}]*\}", "{}", _text(facts, node.func.value, depth))
    return _unknown(facts, node)


def _named(facts: Facts, node: ast.expr, depth: int) -> str:
    if depth and isinstance(node, (ast.Name, ast.Attribute)):
        given = facts.once(Sources).given(node).only
        if given is not None:
            return _text(facts, given, depth - 1)
    texts = {value.name if value.role is Role.TEXT else ANY for value in facts.values(node)}
    if len(texts) == 1 and ANY not in (text := texts.pop()):
        return text
    return _unknown(facts, node)


def _unknown(facts: Facts, node: ast.expr) -> str:
    unit = facts.unit(node)
    where = id(unit) if isinstance(node, ast.Name) and isinstance(unit, Function) else ""
    return f"{{{where}{ast.unparse(node)}}}".replace("/", "|")
