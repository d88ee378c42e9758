"""Code that names the first GPU itself: of most processes, `torch.zeros(1, device="cuda:0")` is on another one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.programs.device.before import put_on
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.values.sources import default
from migrate.rules.handed_devices import gone, reads_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.conversion import Conversion
    from migrate.programs.device.choices import Choice
    from migrate.rules.draft import Draft

FIRST = "cuda:0"


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


def follow_kept(conversion: Conversion, draft: Draft, named: Collection[Choice]) -> None:
    """What keeps the first GPU for others, `config = {"device": "cuda:0"}`: it is the process's where it is still read.

    Not what is `named` already, for tensors before there is an accelerator, and not where its name is compared.
    """
    facts = conversion.facts
    values = {value for node in _still_read(conversion) for value in facts.values(node)}
    made = {id(inner) for value in values if isinstance(value.origin, ast.expr) for inner in ast.walk(value.origin)}
    is_text = any(value.role is Role.TEXT and value.name == FIRST for value in values)
    done = {id(node) for choice in named for node in choice.nodes()}
    for module in conversion.modules if made or is_text else ():
        if not facts.is_editable(module) or is_asked_by_name(conversion, module):
            continue
        for node in filter(is_first_gpu, facts.tree_of(module).nodes.of(ast.Constant)):
            if (id(node) in made or (is_text and _is_kept(facts, node))) and id(node) not in done:
                draft.rewrite(node, draft.quoted(node, "'cuda'"))


def is_asked_by_name(conversion: Conversion, chooses: Module) -> bool:
    """Whether a program compares a device with the name of the first GPU, in one of its files or where it is chosen."""
    written = (module for module in {*conversion.modules, chooses} if FIRST.encode() in module.file.content)
    return any(_is_compared(n) for module in written for n in conversion.facts.tree_of(module).nodes.of(ast.Compare))


def _still_read(conversion: Conversion) -> Iterator[ast.expr]:
    """The devices that calls of the program are told, of those that stay."""
    left_out = gone(conversion)
    for use in conversion.uses:
        loaded = (keyword.value for keyword in use.node.keywords if keyword.arg == "map_location")
        for each in (*put_on(use.node), *loaded):
            if isinstance(each, (ast.Name, ast.Attribute, ast.Subscript)) and id(each) not in left_out:
                yield each


def _is_kept(facts: Facts, node: ast.expr) -> bool:
    """Whether a text is put into a dictionary, or into an object that is made or set, by a choice or alone."""
    tree = facts.tree(node)
    above = tree.parents[node]
    while isinstance(above, (ast.IfExp, ast.keyword)):
        above = tree.parents[above]
    if isinstance(above, ast.Call):
        makes = any(value.role is Role.INSTANCE for value in facts.values(above))
        return makes or bool(facts.called(above) & _SETTING)
    return isinstance(above, (ast.Dict, ast.Assign))


#: What gives something to an object or makes a dictionary.
_SETTING = frozenset({"builtins.setattr", "builtins.dict", "types.SimpleNamespace", "argparse.Namespace"})


def is_first_gpu(node: ast.AST) -> bool:
    """Whether a text names the first GPU."""
    return isinstance(node, ast.Constant) and node.value == FIRST


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
