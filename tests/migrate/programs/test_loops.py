"""Which loops train, and what changes the parameters in them."""

import ast
import textwrap

import pytest

from migrate.analysis import analyse
from migrate.programs.loops import Loops
from migrate.programs.training.updates import How
from migrate.source.files import load
from migrate.source.project import Project

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
loader = DataLoader(data)
net = nn.Linear(1, 1)
"""

STEPS = {
    "an optimizer": (
        """
        opt = optim.SGD(net.parameters(), lr=0.1)
        for x in loader:
            net(x).sum().backward()
            opt.step()
        """,
        [How.OPTIMIZER],
    ),
    "by a name that is looked up": (
        """
        opt = getattr(optim, name)(net.parameters())
        for x in loader:
            net(x).sum().backward()
            opt.step()
        """,
        [How.OPTIMIZER],
    ),
    "a scaler": (
        """
        opt = optim.SGD(net.parameters())
        scaler = torch.amp.GradScaler()
        for x in loader:
            scaler.scale(net(x).sum()).backward()
            scaler.step(opt)
        """,
        [How.OPTIMIZER],
    ),
    "a method of a class that holds an optimizer": (
        """
        class Noam:
            def __init__(self, inner):
                self.inner = inner
            def step_and_update_lr(self):
                self.inner.step()
        opt = Noam(optim.SGD(net.parameters()))
        for x in loader:
            net(x).sum().backward()
            opt.step_and_update_lr()
        """,
        [How.OPTIMIZER],
    ),
    "a step in two halves": (
        """
        class SAM(optim.Optimizer):
            def __init__(self, params, base):
                self.base = base(params)
            def second_step(self):
                self.base.step()
        opt = SAM(net.parameters(), optim.SGD)
        for x in loader:
            net(x).sum().backward()
            opt.second_step()
        """,
        [How.OPTIMIZER],
    ),
    "a closure": (
        """
        opt = optim.LBFGS(net.parameters())
        for x in loader:
            def closure():
                loss = net(x).sum()
                loss.backward()
                return loss
            opt.step(closure)
        """,
        [How.OPTIMIZER],
    ),
    "one of a dictionary": (
        """
        opts = {'a': optim.SGD(net.parameters())}
        for x in loader:
            net(x).sum().backward()
            opts['a'].step()
        """,
        [How.OPTIMIZER],
    ),
    "a step after several batches": (
        """
        opt = optim.SGD(net.parameters())
        for epoch in range(2):
            for x in loader:
                net(x).sum().backward()
            opt.step()
        """,
        [How.OPTIMIZER],
    ),
    "by hand": (
        """
        for x in loader:
            net(x).sum().backward()
            for p in net.parameters():
                p.data.add_(p.grad, alpha=-1)
        """,
        [How.BY_HAND],
    ),
    "by hand, with an operator": (
        """
        for x in loader:
            net(x).sum().backward()
            for p in net.parameters():
                p.data -= 0.1 * p.grad
        """,
        [How.BY_HAND],
    ),
    "clipped gradients are no update": (
        """
        for x in loader:
            net(x).sum().backward()
            for p in net.parameters():
                p.grad.data.clamp_(-1, p.grad)
        """,
        [],
    ),
    "an optimizer of a library without a row": (
        """
        import other
        opt = other.optim.Fancy(net.parameters())
        for x in loader:
            opt.zero_grad()
            net(x).sum().backward()
            opt.step()
        """,
        [How.LIBRARY],
    ),
    "an environment's step is no update": (
        """
        env = gym.make('x')
        for x in loader:
            net.zero_grad()
            net(x).sum().backward()
            env.step(3)
        """,
        [],
    ),
    "on another process": (
        """
        import torch.distributed.rpc as rpc
        for x in loader:
            net(x).sum().backward()
            rpc.rpc_sync('ps', update, args=[p.grad for p in net.parameters()])
        """,
        [How.REMOTE],
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_changes_the_parameters(analysed, name):
    source, expected = STEPS[name]
    _, loops = analysed(HEAD + textwrap.dedent(source))
    (loop,) = loops.training

    assert [update.how for update in loops.stepped(loop)] == expected


def test_the_optimizer_of_a_step_in_a_forward(analysed):
    source = """
        class Meta(nn.Module):
            def __init__(self):
                self.net = nn.Linear(1, 1)
                self.opt = optim.Adam(self.net.parameters())
            def forward(self, x):
                self.net(x).sum().backward()
                self.opt.step()
        meta = Meta()
        for x in loader:
            meta(x)
    """
    _, loops = analysed(HEAD + textwrap.dedent(source))
    (loop,) = loops.training

    assert isinstance(loop.node, ast.For)
    assert [ast.unparse(origin.func) for origin in loops.trained_by(loop)] == ["optim.Adam"]
    assert loops.evaluation == (), "the loop reaches a backward through the call of an object"


BACKWARDS = {
    "a loss": ("net(x).sum().backward()", 1),
    "autograd's": ("torch.autograd.backward(net(x).sum())", 1),
    "distributed autograd's": ("torch.distributed.autograd.backward(context, [net(x).sum()])", 1),
    "that of another object of a library": (
        "engine, _, _, _ = deepspeed.initialize(model=net)\nengine.backward(net(x).sum())",
        0,
    ),
    "a scaler that also steps": ("timm.utils.NativeScaler()(net(x).sum(), opt)", 1),
}


@pytest.mark.parametrize("name", BACKWARDS)
def test_what_is_a_backward(analysed, name):
    statement, expected = BACKWARDS[name]
    body = "\n    ".join(statement.split("\n"))
    _, loops = analysed(f"{HEAD}import timm.utils\nimport deepspeed\nfor x in loader:\n    {body}")

    assert len(loops.backwards) == expected


FOREIGN = """
import torch
from tinygrad.tensor import Tensor
def outputs(x):
    return Tensor(x) * 2
for x in range(3):
    loss = ({made}).mean()
    loss.backward()
"""


@pytest.mark.parametrize(("made", "expected"), [("outputs(x)", 0), ("torch.tensor(x)", 1), ("other(x)", 1)])
def test_a_backward_of_another_framework_is_not_ours(analysed, made, expected):
    _, loops = analysed(FOREIGN.format(made=made))

    assert len(loops.training) == expected


def test_batches_that_are_fetched_by_hand(analysed):
    source = "batches = iter(loader)\nfor step in range(9):\n    x = next(batches)\n    net(x).sum().backward()\n"
    _, loops = analysed(HEAD + source)
    (loop,) = loops.training

    assert loop.loaders == loops.fetched(loop.node)
    assert len(loop.loaders) == 1


SHARED = """
def step(loss, optimizer):
    loss.backward()
    inner(optimizer)
def inner(opt):
    opt.step()
"""

PROGRAM = """
import torch
from shared import step
net = torch.nn.Linear(1, 1)
opt = torch.optim.{made}(net.parameters())
for x in torch.utils.data.DataLoader(data):
    step(net(x).sum(), opt)
"""


def test_batches_that_a_function_evaluates_on_are_not_trained_on(analysed):
    _, loops = analysed(
        HEAD
        + """
def score():
    others = iter(DataLoader(more))
    total = 0.0
    for i in range(3):
        x = next(others)
        total += net(x).sum().item()
    print(total)

opt = optim.SGD(net.parameters(), lr=0.1)
batches = iter(loader)
while True:
    net(next(batches)).sum().backward()
    opt.step()
    score()
"""
    )
    (loop,) = loops.training
    lines = [node.lineno for node in loop.loaders]
    assert lines == [5]


def test_each_program_has_its_own_optimizer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sources = {"shared": SHARED, "one": PROGRAM.format(made="SGD"), "two": PROGRAM.format(made="Adam")}
    for name, text in sources.items():
        (tmp_path / f"{name}.py").write_text(text)
    facts = analyse(Project(load(["."]).files))
    loops = Loops(facts)

    assert [[ast.unparse(o.func) for o in loops.trained_by(loop)] for loop in loops.training] == [
        ["torch.optim.SGD"],
        ["torch.optim.Adam"],
    ]


@pytest.mark.parametrize(
    ("body", "evaluates"),
    [("yield batch", False), ("yield i, batch", False), ("yield 1", True), ("net(batch)", True)],
)
def test_a_generator_that_passes_batches_on_evaluates_nothing(analysed, body, evaluates):
    source = f"""
        def logged(batches):
            for i, batch in enumerate(batches):
                {body}
        for x in logged(loader):
            net(x)
    """
    _, loops = analysed(HEAD + textwrap.dedent(source))

    assert ("enumerate(batches)" in {ast.unparse(loop.node.iter) for loop in loops.evaluation}) is evaluates
