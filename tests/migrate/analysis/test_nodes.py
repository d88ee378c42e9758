"""The nodes of a kind, which are kept."""

import ast
import copy

import pytest

from migrate.analysis.nodes import LEAVES, Nodes, children
from migrate.analysis.syntax import own_nodes, walk

SOURCE = """
def fit(model, rates=(0.1, 0.2)):
    for rate in rates:
        print(f"{rate:.2f}", model.name, -rate, end="")
    def inner():
        return lambda x: x + 1
    match rates:
        case [first, *_]:
            return first
"""


def test_nodes_of_a_kind_are_found_in_their_order():
    tree = ast.parse(SOURCE)
    nodes = walk(tree)
    assert nodes.of(ast.Name) == tuple(node for node in nodes if isinstance(node, ast.Name))
    assert nodes.of(ast.stmt) == tuple(node for node in nodes if isinstance(node, ast.stmt))
    assert nodes.of(ast.Name) is nodes.of(ast.Name)
    assert walk(tree) is nodes


def test_a_node_without_children_is_known_by_its_kind():
    with_children = {type(node) for node in ast.walk(ast.parse(SOURCE)) if any(children(node))}
    assert with_children
    assert not with_children & LEAVES
    assert {ast.Name, ast.Constant, ast.Pass} <= LEAVES


def test_own_nodes_are_kept_with_the_function_and_without_what_is_in_inner_ones():
    function = ast.parse(SOURCE).body[0]
    nodes = own_nodes(function)
    assert own_nodes(function) is nodes
    assert any(isinstance(node, ast.FunctionDef) for node in nodes)
    assert not any(isinstance(node, ast.BinOp) for node in nodes)


@pytest.mark.parametrize("below", [walk, own_nodes])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_what_a_copy_becomes_is_not_what_was_kept(below, copied):
    function = ast.parse(SOURCE).body[0]
    assert below(function).of(ast.For)
    other = copied(function)
    other.body = [ast.Pass()]
    assert not below(other).of(ast.For)
    assert below(function).of(ast.For)


def test_a_list_of_nodes_finds_none_of_another_kind():
    assert Nodes().of(ast.Call) == ()
