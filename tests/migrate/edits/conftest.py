from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from migrate.edits import Plan, PlannedFile
from migrate.edits.apply import apply
from migrate.edits.join import dumped
from migrate.source.address import Index


class Editor:
    """A source, a plan for it, and short ways to name its nodes."""

    def __init__(self, source, path="train.py"):
        content = dedent(source).encode() if isinstance(source, str) else source
        tree = ast.parse(content)
        self.file = PlannedFile(path, tree, Index(tree), content)
        self.plan = Plan([self.file])

    def stmt(self, text):
        """The first statement that begins so, in its normalised source."""
        return next(s for s in self.file.index.statements if ast.unparse(s).startswith(text))

    def expr(self, text, nth=0):
        """The n-th expression that reads so."""
        wanted = dumped(ast.parse(text, mode="eval").body)
        nodes = [n for s in self.file.tree.body for n in ast.walk(s) if isinstance(n, ast.expr)]
        return [n for n in nodes if dumped(n) == wanted][nth]

    def do(self, name, *args, **kwargs):
        kwargs.setdefault("rule", "MIG000")
        getattr(self.plan, name)(*args, **kwargs)
        return self

    def applied(self):
        return apply(self.file, self.plan)

    def bytes(self):
        content = self.applied().content
        ast.parse(content)
        return content

    def text(self):
        return self.bytes().decode()


@pytest.fixture
def edit():
    return Editor
