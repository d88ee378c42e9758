"""loading: checkpoints of the original still load.

    model.load_state_dict(torch.load(path))   ->   model.load_state_dict(torch.load(path, map_location="cpu"))
    (after prepare)                           ->   accelerator.unwrap_model(model).load_state_dict(...)
    (a file written before)                   ->   accelerator.wait_for_everyone() first
    (a lambda onto the gpu)                   ->   torch.load(path, map_location=accelerator.device)

Keys stay plain; where the original loaded into a wrapped model, a `module.` prefix is taken off first. Without
map_location every process would load onto the GPU that the file was written from.
Safe: load_state_dict copies into the parameters where they are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.programs.device.lambdas import is_location
from migrate.programs.output.guards import has_accelerator
from migrate.programs.output.rereads import rereads
from migrate.rules.placing import wrappers
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG116", "loading", optional=True)
def loading(conversion: Conversion, draft: Draft) -> None:
    """Load what goes into load_state_dict onto the CPU first."""
    facts = conversion.facts
    loaded = {
        value.origin
        for use in facts.method_calls("load_state_dict")
        if use.unit in conversion.units
        for argument in use.node.args
        for value in facts.values(argument)
        if value.role is Role.CHECKPOINT
    }
    for use in conversion.uses:
        if use.node not in loaded or "torch.load" not in facts.called(use.node):
            continue
        if len(use.node.args) > 1 or any(keyword.arg in ("map_location", None) for keyword in use.node.keywords):
            continue
        if Role.CHECKPOINT in roles(facts.values(use.node)):
            draft.add_keyword(use.node, "map_location", draft.quoted(use.node, "'cpu'"))
    _onto_the_device(conversion, draft)
    _strip_prefixes(conversion, draft)
    _wait_for_the_file(conversion, draft)


def _onto_the_device(conversion: Conversion, draft: Draft) -> None:
    """`lambda storage, loc: storage.cuda(gpu)` names the device that is the accelerator's now."""
    for use in conversion.uses:
        for given in (*use.node.args, *(keyword.value for keyword in use.node.keywords)):
            if not isinstance(given, ast.Lambda) or not is_location(conversion.facts, given):
                continue
            goes = given.body.func if isinstance(given.body, ast.Call) else None
            if isinstance(goes, ast.Attribute) and goes.attr == "cuda" and has_accelerator(conversion, use.node):
                draft.rewrite(given, f"{conversion.access.name(use.node)}.device")


def _wait_for_the_file(conversion: Conversion, draft: Draft) -> None:
    """A file that the program has written itself is there when the main process is done."""
    for statement in rereads(conversion):
        draft.before(statement, f"{conversion.access.name(statement)}.wait_for_everyone()")


def _strip_prefixes(conversion: Conversion, draft: Draft) -> None:
    """Where the original loaded into a DataParallel model, its files may have keys with `module.`; now they must go."""
    facts = conversion.facts
    wrapped = {origin for call in wrappers(conversion) for origin in origins(facts.values(call.args[0]), Role.MODEL)}
    for use in facts.method_calls("load_state_dict"):
        mine = origins(facts.receiver(use.node), Role.MODEL) & wrapped
        if not mine or use.unit not in conversion.units or not use.node.args:
            continue
        state = use.node.args[0]
        if isinstance(state, (ast.Name, ast.Subscript, ast.Attribute)) and "torch" in use.unit.module.names:
            function = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present"
            draft.before(
                facts.tree(use.node).statement(use.node),
                draft.quoted(use.node, f"{function}({ast.unparse(state)}, 'module.')"),
            )
        else:
            draft.note(
                use.node,
                "files that the original wrote on GPUs have keys that begin with `module.`",
                "strip them: {key.removeprefix('module.'): value for key, value in state.items()}",
            )
