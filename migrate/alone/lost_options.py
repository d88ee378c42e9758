"""Options of the command line that go with what asked for them: `--local_rank`, `--dist-url`, `--launcher`.

A command that still passes one would end in an error of argparse's, so it is said which these are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.command_line import option, options
from migrate.report.model import Finding, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.alone.world import World

_WAY_OUT = "leave them out: `runtime launch` says how many processes there are"


def lost_options(world: World, contents: Mapping[str, bytes]) -> Iterator[Finding]:
    """A note for each file that has lost options, at the first of them; who parses what is known takes any."""
    if any(use.unit.module in world.modules for use in world.facts.method_calls("parse_known_args")):
        return
    for module in world.modules:
        calls = [node for node in world.facts.tree_of(module).nodes.of(ast.Call) if option(node) is not None]
        content = contents.get(module.file.path)
        if not calls or content is None:
            continue
        left = options(ast.walk(ast.parse(content)))
        lost = [node for node in calls if option(node) not in left]
        if lost:
            line, column, end = module.file.place(lost[0])
            flags = dict.fromkeys(_flag(node) for node in lost)
            what = f"command lines that pass {_listed([*flags])} end in an error: nothing reads that any more"
            yield Finding("MIG113", module.file.path, line, column, end, what, _WAY_OUT, Kind.NOTE)


def _flag(call: ast.Call) -> str:
    """How an option is written, by its longest name."""
    names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return max(names, key=len, default="")


def _listed(flags: list[str]) -> str:
    *first, last = flags
    return f"{', '.join(first)} or {last}" if first else last
