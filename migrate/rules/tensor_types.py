"""hidden-device: types of tensors that hide a device give way to where things are.

    Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor   ->   Tensor = torch.FloatTensor
    noise = Tensor(4, 2)                                             ->   noise = Tensor(4, 2).to(accelerator.device)
    x = x.type(Tensor)                                               ->   x = x.float()
    y = y.type(torch.LongTensor)                                     ->   y = y.long()

In a model, under `if torch.cuda.is_available():`, a type stays: the current GPU is the process's own.
A type that nothing is made of any more goes away with its name. The last of these is changed where it is a cast of a
batch: it would bring the batch back to the CPU.
A default such as `torch.set_default_tensor_type("torch.cuda.FloatTensor")` stays, too: the accelerator is made before
anything else is, and is kept on the CPU where the program does not set it.
Refused: types that are used in other ways, lambdas that move, and tensors that are made by such a default before the
accelerator can be: nothing says on which GPU. What to do: make tensors with device=..., and write the moves out.
Safe: what is made is made by the same constructor and moved before anything is drawn into it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.device.tensor_types import (
    cast,
    definition,
    is_making,
    is_passed,
    on_cpu,
    only_defines,
    reads,
    stays,
)
from migrate.programs.processes.replicas import ON_CPU
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG120")
def tensor_types(conversion: Conversion, draft: Draft) -> None:
    """Make tensors on the CPU and move them; cast where they are."""
    facts = conversion.facts
    kept: set[str] = set()  # names of types that something is still made of
    definitions: dict[ast.Assign, None] = {}
    for node in reads(facts, conversion.program):
        if stays(facts, node, conversion.units):
            continue
        if (statement := definition(facts, node)) is not None:
            definitions[statement] = None
        elif is_making(facts, node) or is_passed(facts, node):
            kept.add(ast.unparse(node))
            if is_making(facts, node):
                call = facts.tree(node).parents[node]
                assert isinstance(call, ast.Call)
                draft.wrap(call, f"{{it}}.to({conversion.access.name(node)}.device)")
            if isinstance(node, ast.Attribute) and node.attr.endswith("Tensor") and facts.names(node.value):
                draft.rewrite(node, on_cpu(node))
    _define(conversion, draft, list(definitions), kept)
    for call in conversion.where.casts if conversion.placement.cpu != ON_CPU else ():
        draft.wrap_receiver(call, f"{{it}}.{cast(facts, call.args[0])}()")


def _define(conversion: Conversion, draft: Draft, definitions: list[ast.Assign], kept: set[str]) -> None:
    for statement in definitions:
        name = ast.unparse(statement.targets[0])
        above = conversion.facts.tree(statement).parents[statement]
        if not any(each == name or each.rpartition(".")[2] == name.rpartition(".")[2] for each in kept):
            draft.remove(statement)
        elif isinstance(above, ast.If) and only_defines(above, definitions):
            if statement is above.body[0]:
                draft.replace(above, "\n".join(ast.unparse(other) for other in above.orelse))
        else:
            draft.rewrite(statement.value, on_cpu(statement.value))
