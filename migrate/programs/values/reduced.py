"""How a loss function is told to reduce: `F.mse_loss(x, y, reduction="none")`, `nn.MSELoss(reduction="none")(x, y)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.programs.values.sources import given_by_class

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def made_as(facts: Facts, loss: ast.expr) -> list[ast.Call]:
    """The calls that make a loss function: by its values, or as its class gives it: `self.mse = nn.MSELoss()`."""
    made = origins(facts.values(loss), Role.CRITERION)
    if not made and isinstance(loss, ast.Attribute):
        statements = (binding.statement for binding in given_by_class(facts, facts.unit(loss), loss.attr))
        made = {each.value for each in statements if isinstance(each, ast.Assign)}
    return [each for each in made if isinstance(each, ast.Call)]


def told(facts: Facts, call: ast.Call) -> list[ast.keyword]:
    """What a loss function is called with, and made with, by keywords."""
    return [keyword for each in (call, *made_as(facts, call.func)) for keyword in each.keywords]
