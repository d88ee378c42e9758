"""What is asked for again and again is found once, and is what looking through all of it would find."""

import ast
import textwrap

import pytest

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Module
from migrate.programs.home.certain import is_name_there
from migrate.programs.home.naming import bound
from migrate.programs.processes import parting
from migrate.programs.processes.sameness import Sameness
from migrate.programs.program import programs
from migrate.programs.values.fillings import Sharing, shares
from migrate.programs.values.imported import Imported
from migrate.source.project import Project, SourceFile

IMPORTS = """
import os
import os.path
import numpy as np
import torch.nn.functional as F
from random import random
from random import random as draw
from . import near

def later():
    import os as system
    from time import time as random
"""


def test_the_names_that_imports_give(analysed):
    facts, _ = analysed(IMPORTS)
    (tree,) = (facts.tree_of(module) for module in facts.modules)
    assert facts.once(Imported)[tree] == {
        "os": {"os"},
        "np": {"numpy"},
        "F": {"torch.nn.functional"},
        "random": {"random.random", "time.time"},
        "draw": {"random.random"},
        "near": {"None.near"},
        "system": {"os"},
    }


SHARED = """
import torch

step, loss, best = 0, 0, 0

def outer():
    global step
    best = 0
    def inner():
        nonlocal best
        global loss
        best = loss = 1
        def innermost():
            global step
            step = 2
        innermost()
    inner()
    step = 1

def other():
    step = 3

outer()
other()
"""


def test_the_functions_that_share_a_name(analysed):
    facts, _ = analysed(SHARED)
    for unit in facts.units:
        for name in ("step", "loss", "best", "other"):
            inner = [u for u in facts.functions if unit in (u.module, u.parent) and shares(u, name)]
            assert facts.once(Sharing).get((unit, name), []) == inner, (unit, name)
    (module,) = facts.modules
    assert [unit.name for unit in facts.once(Sharing)[module, "step"]] == ["outer", "innermost"]


NAMED = """
import torch
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader([1])
{test}    shown = DataLoader([2])
net = nn.Linear(1, 1)
again = net
net = net.eval()

def make():
    inside = nn.Linear(2, 2)
    for each in [inside]:
        print(each)
    return inside

made = make()
"""


@pytest.mark.parametrize(("test", "is_there"), [("if True:\n", True), ("if made_up:\n", False)])
def test_whether_a_module_always_names_an_object(analysed, test, is_there):
    branch = "else:\n    shown = DataLoader([3])\n" if is_there else ""
    facts, _ = analysed(NAMED.format(test=test).replace("net = nn", f"{branch}net = nn", 1))
    made = {b.target: origins(b.values, Role.LOADER) for b in facts.bindings if isinstance(b.unit, Module)}
    assert is_name_there(facts, "loader", Role.LOADER, made["loader"])
    of_both = set().union(*(origins(b.values, Role.LOADER) for b in facts.bindings if b.target == "shown"))
    assert is_name_there(facts, "shown", Role.LOADER, of_both) == is_there
    assert not is_name_there(facts, "loader", Role.MODEL, made["loader"])


def test_the_names_that_a_unit_binds(analysed):
    facts, _ = analysed(NAMED.format(test="if True:\n"))
    (module,), (make,) = facts.modules, facts.functions
    assert [named.target for named in bound(facts, module, Role.MODEL, None)] == ["net", "made"]
    assert [named.target for named in bound(facts, module, Role.LOADER, None)] == ["loader", "shown"]
    assert [named.target for named in bound(facts, make, Role.MODEL, None)] == ["inside"]
    (inside,) = bound(facts, make, Role.MODEL, None)
    assert [named.target for named in bound(facts, module, Role.MODEL, set(inside.origins))] == ["made"]
    assert not bound(facts, make, Role.LOADER, None)


LEFT = """
import os, random
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

def fit(net, loader):
    opt = optim.SGD(net.parameters(), lr=0.1)
    {first}
    for x, y in loader:
        net(x).sum().backward()
        opt.step()
    {last}
    print("done")
    return lambda: random.random()

fit(nn.Linear(1, 1), DataLoader([1]))
"""
RETURN = "if random.random() > 0.5:\n        return"


@pytest.mark.parametrize(("first", "last", "parts"), [(RETURN, "", True), ("", RETURN, False), ("", "", False)])
def test_a_return_above_a_place_decides_whether_it_runs(analysed, first, last, parts):
    facts, loops = analysed(LEFT.format(first=first, last=last))
    (program,) = programs(facts, loops)
    sameness = Sameness(facts, program, trusting=False)
    (step,) = (use.node for use in facts.calls if ast.unparse(use.node) == "opt.step()")
    found = list(parting.parting(facts, sameness, step))
    assert any(isinstance(node, ast.If) for node in found) == parts
    returns = [node for unit in facts.functions for node in facts.own(unit) if isinstance(node, ast.Return)]
    assert len(returns) == 1 + bool(first or last)


def test_a_word_is_looked_for_once_in_a_file_beside_a_project(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "main.py").write_text("import torch\n", encoding="utf-8")
    other = tmp_path / "other.py"
    other.write_text(textwrap.dedent("from common import evaluate\n"), encoding="utf-8")
    main = SourceFile("main.py", b"import torch\n", real=(tmp_path / "main.py").resolve())
    project = Project([main])
    read = []
    content = project.disk.content
    monkeypatch.setattr(project.disk, "content", lambda path: read.append(path) or content(path))
    path = str(other)
    assert not project.says(path, {b"model"})
    assert project.says(path, {b"model", b"common"})
    assert not project.hiding(frozenset()).says(path, {b"model"})  # another choice of the same files
    assert project.says(path, {b"common", b"data"})
    assert not project.says(path, {b"data"})
    assert read == [path] * 3
    assert not project.says(str(tmp_path / "missing.py"), {b"common"})
