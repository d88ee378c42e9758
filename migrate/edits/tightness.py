"""How tightly expressions hold together, and how tight they have to be where they stand: which need parentheses."""

from __future__ import annotations

import libcst as cst

LOOSEST = 2  # what takes any expression but a tuple, `yield` or `:=`
ATOM = 20
BINARY: dict[type[cst.BaseBinaryOp], int] = {
    cst.BitOr: 8,
    cst.BitXor: 9,
    cst.BitAnd: 10,
    cst.LeftShift: 11,
    cst.RightShift: 11,
    cst.Add: 12,
    cst.Subtract: 12,
    cst.Power: 15,
}
TIGHTNESS: dict[type[cst.BaseExpression], int] = {
    cst.Tuple: 0,
    cst.Yield: 0,
    cst.NamedExpr: 1,
    cst.Lambda: 2,
    cst.IfExp: 3,
    cst.Comparison: 7,
    cst.Await: 16,
}
# Where any expression fits that is neither a tuple nor `yield` nor `:=`.
LOOSE: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Arg: ("value",),
    cst.Assign: ("value",),
    cst.AnnAssign: ("value",),
    cst.AugAssign: ("value",),
    cst.Expr: ("value",),
    cst.Return: ("value",),
    cst.Index: ("value",),
    cst.Element: ("value",),
    cst.DictElement: ("key", "value"),
    cst.If: ("test",),
    cst.While: ("test",),
    cst.Assert: ("test", "msg"),
    cst.For: ("iter",),
    cst.Param: ("default",),
    cst.WithItem: ("item",),
}


def tightness(node: cst.BaseExpression) -> int:
    """How tightly an expression without parentheses holds together; larger is tighter."""
    if node.lpar:
        return ATOM
    if isinstance(node, cst.BinaryOperation):
        return tightness_of(node)
    if isinstance(node, cst.BooleanOperation):
        return 4 if isinstance(node.operator, cst.Or) else 5
    if isinstance(node, cst.UnaryOperation):
        return 6 if isinstance(node.operator, cst.Not) else 14
    return TIGHTNESS.get(type(node), ATOM)


def rooms(node: cst.CSTNode) -> dict[int, int]:
    """How tight each part of a node has to be, by its id, where less will do than what stands there."""
    if type(node) is cst.Comparison:
        return dict.fromkeys(map(id, (node.left, *(each.comparator for each in node.comparisons))), 8)
    if type(node) is cst.BinaryOperation and not isinstance(node.operator, cst.Power):
        return {id(node.left): tightness_of(node), id(node.right): tightness_of(node) + 1}
    if type(node) is cst.Attribute:
        return {id(node.value): ATOM}
    return {id(getattr(node, name)): LOOSEST for name in LOOSE.get(type(node), ())}


def tightness_of(node: cst.BinaryOperation) -> int:
    """How tightly an operator holds its operands together."""
    return BINARY.get(type(node.operator), 13)
