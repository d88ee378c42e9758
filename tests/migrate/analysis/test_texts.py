"""How expressions read."""

import ast

import pytest

from migrate.analysis.texts import text_of


@pytest.mark.parametrize(
    "source",
    ["x", "x.y", "x.y.z", "x[0].y", "f(x).y", "(a + b).c", "(1).real", "x.y[1:2]", "'a'.join", "a if b else c", "-x"],
)
def test_it_reads_as_python_writes_it(source):
    node = ast.parse(source, mode="eval").body
    assert text_of(node) == ast.unparse(node)
