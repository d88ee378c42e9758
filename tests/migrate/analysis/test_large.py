"""Large packages: what is learnt of many models of one kind is bounded, and so is the work."""

from collections import Counter

from migrate.analysis import agenda, analyse, statements
from migrate.analysis.roles import Role
from migrate.analysis.widening import WIDEST
from migrate.source.files import load
from migrate.source.project import Project, SourceFile

REGISTRY = """
_makers = {}

def register(make):
    _makers[make.__name__] = make
    return make

def create(name, **kwargs):
    return _makers[name](**kwargs)
"""
LAYERS = """
from functools import partial
from torch import nn

def norm(norm_layer, **kwargs):
    return partial(norm_layer, **kwargs)

class Block(nn.Module):
    def __init__(self, width, norm_layer=nn.LayerNorm):
        super().__init__()
        self.norm = norm_layer(width)
"""
MODEL = """
from torch import nn
from .layers import Block, norm
from .registry import register

class Net{n}(nn.Module):
    def __init__(self, width=2, norm_layer=nn.LayerNorm):
        super().__init__()
        self.block = Block(width, norm(norm(norm_layer, eps={n})))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.block.norm(x))

@register
def net{n}(**kwargs):
    return Net{n}(norm_layer=norm(nn.LayerNorm, eps=1e-{n}), **kwargs)
"""
TRAIN = """
import sys
import torch
from zoo import create

model = create(sys.argv[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 2)), batch_size=4)
for (x,) in loader:
    optimizer.zero_grad()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
"""


def zoo(folder, size):
    package = folder / "zoo"
    package.mkdir()
    names = "".join(f"from .net{n} import *\n" for n in range(size))
    (package / "__init__.py").write_text(f"from .registry import create\n{names}")
    (package / "registry.py").write_text(REGISTRY)
    (package / "layers.py").write_text(LAYERS)
    for n in range(size):
        (package / f"net{n}.py").write_text(MODEL.format(n=n))
    (folder / "train.py").write_text(TRAIN)
    return Project(load([str(folder)]).files)


def runs(monkeypatch, project):
    """How often each unit is run while a project is analysed, and its facts."""
    counted = Counter()
    start = agenda.Agenda._start

    def counting(self, unit):
        counted[unit] += 1
        start(self, unit)

    monkeypatch.setattr(agenda.Agenda, "_start", counting)
    return counted, analyse(project)


def test_the_modules_of_a_package_are_not_run_for_each_other(tmp_path, monkeypatch):
    counted, facts = runs(monkeypatch, zoo(tmp_path, 80))

    assert not facts.cut_short
    assert sum(counted.values()) < 5 * len(counted)
    modules = [count for unit, count in counted.items() if unit.module is unit]
    assert max(modules) <= 6


def test_one_of_very_many_models_is_a_model(tmp_path):
    facts = analyse(zoo(tmp_path, 2 * WIDEST))

    (made,) = [use for use in facts.calls if use.unit.module.file.path.endswith("train.py") and _is_create(use.node)]
    values = facts.values(made.node)
    assert sum(value.role is Role.MODEL for value in values) > WIDEST // 2
    assert len(values) <= WIDEST + 1


def _is_create(node):
    return getattr(node.func, "id", "") == "create"


def test_what_is_nested_in_finally_is_not_run_over_and_over(monkeypatch):
    deep = 12
    text = "from torch import nn\n"
    for level in range(deep):
        indent = "    " * level
        text += f"{indent}try:\n{indent}    net = nn.Linear({level}, 1)\n{indent}finally:\n"
    blocks = Counter()
    run = statements.run

    def counted(state, body, frame):
        blocks[deep] += 1
        run(state, body, frame)

    monkeypatch.setattr(statements, "run", counted)
    analyse(Project([SourceFile("program.py", f"{text}{'    ' * deep}print(net)\n".encode())]))
    assert blocks[deep] < deep**3


def test_each_of_many_calls_of_a_factory_has_a_model_of_its_own():
    names = [f"net_{number}" for number in range(60)]
    calls = "".join(f"{name} = make()\n" for name in names)
    text = f"from torch import nn\n\ndef make():\n    return nn.Linear(1, 1)\n\n{calls}"
    facts = analyse(Project([SourceFile("program.py", text.encode())]))

    made = [facts.modules[0].names[name] for name in names]
    assert {value.role for values in made for value in values} == {Role.MODEL}
    assert len(frozenset().union(*made)) == len(made)


def test_what_others_pass_to_a_function_does_not_run_its_callers_again(monkeypatch):
    """What comes out of it for one call stays the same, though it gives more with each caller that is met."""
    size = 120  # more than calls inside calls are run at once
    makers = "".join(f"def make{n}():\n    make{n + 1}()\n    return kept(nn.Linear({n}, 1))\n\n" for n in range(size))
    kept = f"def kept(net):\n    return net\n\ndef make{size}():\n    pass\n\n"
    text = f"from torch import nn\n\n{kept}{makers}net = make0()\n"
    counted, facts = runs(monkeypatch, Project([SourceFile("program.py", text.encode())]))

    assert len(facts.modules[0].names["net"]) == 1
    assert sum(count for unit, count in counted.items() if getattr(unit, "name", "").startswith("make")) < 2.5 * size


def test_a_parameter_keeps_every_loader_and_few_of_what_nothing_is_known_of():
    size = 2 * WIDEST
    shown = "".join(f"show(a.b{n}.get({n}))\nshow(DataLoader(data{n}))\n" for n in range(size))
    text = f"import a\nfrom torch.utils.data import DataLoader\n\ndef show(what):\n    print(what)\n\n{shown}"
    facts = analyse(Project([SourceFile("program.py", text.encode())]))

    (show,) = [unit for unit in facts.functions if unit.name == "show"]
    kinds = Counter(value.role for value in show.parameters["what"])
    assert kinds == {Role.LOADER: size, Role.UNKNOWN: WIDEST + 1}
