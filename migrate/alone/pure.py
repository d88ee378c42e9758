"""What does nothing: expressions that can be left out, statements that change nothing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_docstring

if TYPE_CHECKING:
    from collections.abc import Sequence

_PURE = (
    ast.Name, ast.Attribute, ast.Constant, ast.Subscript, ast.Tuple, ast.List, ast.Dict, ast.Compare, ast.BoolOp,
    ast.BinOp, ast.UnaryOp, ast.IfExp, ast.JoinedStr, ast.FormattedValue, ast.expr_context, ast.operator, ast.unaryop,
    ast.boolop, ast.cmpop, ast.keyword,
)  # fmt: skip
_HARMLESS = frozenset(
    """int str float bool len min max getattr os.environ.get os.getenv torch.cuda.device_count
    torch.accelerator.device_count torch.device torch.cuda.is_available dist.get_rank dist.get_world_size
    torch.distributed.get_rank torch.distributed.get_world_size dist.is_available dist.is_initialized
    torch.distributed.is_available torch.distributed.is_initialized""".split()
)
#: Contexts that do nothing around nothing, by their last name.
_GRADIENTS = frozenset({"no_grad", "inference_mode", "enable_grad"})


def is_pure(node: ast.AST) -> bool:
    """Whether leaving an expression out changes nothing else."""
    if isinstance(node, ast.Call):
        if ast.unparse(node.func) not in _HARMLESS:
            return False
        return all(is_pure(part) for part in (*node.args, *node.keywords))
    return isinstance(node, _PURE) and all(is_pure(child) for child in ast.iter_child_nodes(node))


def stripped(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A body without what does nothing."""
    return [
        s
        for s in body
        if not is_docstring(s)
        and not isinstance(s, (ast.Pass, ast.Global, ast.Nonlocal))
        and not (isinstance(s, ast.Return) and (s.value is None or ast.unparse(s.value) == "None"))
        and not (isinstance(s, ast.With) and all(map(_is_quiet, s.items)) and not stripped(s.body))
    ]


def _is_quiet(item: ast.withitem) -> bool:
    """`torch.no_grad()`, around nothing."""
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in _GRADIENTS
