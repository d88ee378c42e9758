"""Code that names the first GPU itself: of most processes, `torch.zeros(1, device="cuda:0")` is on another one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.values.sources import default
from migrate.rules.handed_devices import reads_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def follow_in_models(conversion: Conversion, draft: Draft) -> None:
    """In the methods of models, which have no accelerator, "cuda:0" becomes "cuda": the GPU of the process."""
    facts = conversion.facts
    met = set(conversion.modules).union(*map(facts.imported, conversion.modules))
    for use in facts.calls:
        if use.unit in conversion.units or use.unit.module not in met or not facts.is_editable(use.unit):
            continue
        named, is_numbered = [*_named(facts, use.node)], _is_numbered(use.node)
        if not named and not is_numbered:  # as most calls
            continue
        if is_inside_model(facts, use.unit) and not any(map(_is_compared, facts.own(use.unit))):
            for given in named:
                draft.rewrite(given, draft.quoted(given, "'cuda'"))
            if is_numbered:
                draft.wrap_receiver(use.node, "{it}.cuda()")


def follow_in_defaults(conversion: Conversion, draft: Draft) -> None:
    """`def train(net, device="cuda:0")`, of the program or a model: it is the process's if no caller says another."""
    facts = conversion.facts
    met = set(conversion.modules).union(*map(facts.imported, conversion.modules))
    for unit in facts.functions:
        is_met = unit in conversion.units or (unit.module in met and is_inside_model(facts, unit))
        if not is_met or unit is conversion.program.start or not facts.is_editable(unit):
            continue
        if any(map(_is_compared, facts.own(unit))):
            continue
        for parameter in (*unit.positional, *unit.node.args.kwonlyargs):
            given = default(unit, parameter.arg)
            if given is None or not facts.is_device(facts.values(given)):
                continue
            if any(reads_of(conversion, unit, parameter.arg)):
                for node in filter(is_first_gpu, ast.walk(given)):
                    assert isinstance(node, ast.Constant)
                    draft.rewrite(node, draft.quoted(node, "'cuda'"))


def is_first_gpu(node: ast.AST) -> bool:
    """Whether a text names the first GPU."""
    return isinstance(node, ast.Constant) and node.value == "cuda:0"


def _named(facts: Facts, call: ast.Call) -> Iterator[ast.Constant]:
    """The first GPU, where a call is told a device."""
    is_told = "torch.device" in facts.called(call) or (isinstance(call.func, ast.Attribute) and call.func.attr == "to")
    given = [*(call.args[:1] if is_told else ()), *(k.value for k in call.keywords if k.arg == "device")]
    for each in given:
        parts = (each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,)
        yield from (part for part in parts if isinstance(part, ast.Constant) and is_first_gpu(part))


def _is_numbered(call: ast.Call) -> bool:
    """`x.cuda(0)`."""
    first = call.args[0] if len(call.args) == 1 and not call.keywords else None
    is_cuda = isinstance(call.func, ast.Attribute) and call.func.attr == "cuda"
    return is_cuda and isinstance(first, ast.Constant) and first.value == 0 and first.value is not False


def _is_compared(node: ast.AST) -> bool:
    return isinstance(node, ast.Compare) and any(is_first_gpu(each) for each in (node.left, *node.comparators))
