"""What expressions are found to be. The test body is the program; `#: role` says what a line's value is."""

import ast
import re
import textwrap

import pytest

from migrate.analysis import analyse, solve
from migrate.analysis.roles import Role
from migrate.source.project import Project, SourceFile

PROGRAMS = {
    "constructors": """
        import torch
        from torch import nn, optim
        from torch.utils.data import DataLoader
        net = nn.Linear(2, 2)  #: model
        opt = optim.SGD(net.parameters(), lr=0.1)  #: optimizer
        loader = DataLoader(data)  #: dataloader
        crit = nn.CrossEntropyLoss()  #: loss function
        sched = torch.optim.lr_scheduler.StepLR(opt, 1)  #: scheduler
        dev = torch.device("cuda")  #: device
    """,
    "a class of the project is what its library base is": """
        import torch.nn as nn
        class Base(nn.Module):
            pass
        class Net(Base):
            pass
        net = Net()  #: model
    """,
    "fluent methods hand the model on": """
        import torch
        net = torch.nn.Linear(1, 1).to("cuda").eval()  #: model
        net = torch.nn.DataParallel(net)  #: model
        net = torch.compile(net)  #: model
    """,
    "a loop over a loader yields batches": """
        from torch.utils.data import DataLoader
        loader = DataLoader(data)
        for x, y in loader:
            a = x  #: batch
            b = y.to("cuda")  #: batch
            c = x.view(-1, 2)  #: samples
            d = x.sum()  #: statistic
            e = x.size(0)  #: statistic
    """,
    "enumerate, tqdm and zip around a loader": """
        from torch.utils.data import DataLoader
        from tqdm import tqdm
        loader, other = DataLoader(a), DataLoader(b)
        for i, (x, y) in enumerate(tqdm(loader)):
            p = x  #: batch
            n = i  #: number
        for (x, y), z in zip(loader, other):
            q = z  #: batch
    """,
    "dictionary batches": """
        from torch.utils.data import DataLoader
        for batch in DataLoader(data):
            batch = {k: v.to("cuda") for k, v in batch.items()}  #: batch
            y = batch["labels"]  #: batch
    """,
    "results of a model have rows, losses have none": """
        import torch.nn.functional as F
        from torch import nn
        from torch.utils.data import DataLoader
        net = nn.Linear(1, 1)
        crit = nn.MSELoss()
        for x, y in DataLoader(data):
            out = net(x)  #: samples
            pred = out.argmax(1)  #: samples
            hits = pred == y  #: samples
            right = hits.sum()  #: statistic
            loss = crit(out, y)  #: statistic
            other = F.cross_entropy(out, y)  #: statistic
    """,
    "through parameters and returns": """
        from torch import nn
        def make():
            return nn.Linear(1, 1)
        def use(model):
            m = model  #: model
        use(make())
    """,
    "a parameter without a known value hides a global of the same name": """
        from torch import nn
        model = nn.Linear(1, 1)
        def use(model=True):
            m = model  #:
        use()
    """,
    "attributes of self": """
        from torch import nn, optim
        class Trainer:
            def __init__(self):
                self.net = nn.Linear(1, 1)
                self.opt = optim.Adam(self.net.parameters())
            def fit(self):
                m = self.net  #: model
                o = self.opt  #: optimizer
        Trainer().fit()
    """,
    "attributes of parsed arguments": """
        import argparse, torch
        args = argparse.ArgumentParser().parse_args()
        args.device = torch.device("cuda")
        d = args.device  #: device
    """,
    "globals read in functions": """
        from torch import nn
        net = nn.Linear(1, 1)
        def train():
            m = net  #: model
        train()
    """,
    "global statement": """
        from torch import nn
        def setup():
            global net
            net = nn.Linear(1, 1)
        def train():
            m = net  #: model
        setup()
        train()
    """,
    "closures": """
        from torch import nn
        def main():
            net = nn.Linear(1, 1)
            def step():
                m = net  #: model
            step()
        main()
    """,
    "both branches": """
        from torch import nn
        if flag:
            net = nn.Linear(1, 1)
        else:
            net = nn.Bilinear(1, 1, 1)
        m = net  #: model
    """,
    "a generator of batches": """
        from torch.utils.data import DataLoader
        def wrap(loader):
            for batch in loader:
                yield batch
        for b in wrap(DataLoader(data)):
            x = b  #: batch
    """,
    "iter and next": """
        from torch.utils.data import DataLoader
        it = iter(DataLoader(data))  #: iterator
        x = next(it)  #: batch
    """,
    "getattr on a module": """
        import torch.optim as optim
        opt = getattr(optim, name)(params)  #: optimizer
    """,
    "the dictionary of a module": """
        import torchvision.models as models
        net = models.__dict__[arch]()  #: model
    """,
    "a factory that returns a pair": """
        from torch import nn, optim
        def build():
            net = nn.Linear(1, 1)
            return net, optim.SGD(net.parameters(), lr=1)
        a, b = build()
        m = a  #: model
        o = b  #: optimizer
    """,
    "super finds what the base class made": """
        from torch import nn
        class Base:
            def __init__(self):
                self.net = nn.Linear(1, 1)
        class Trainer(Base):
            def __init__(self):
                super().__init__()
                m = self.net  #: model
        Trainer()
    """,
    "an accelerator hands on what it prepares": """
        from accelerate import Accelerator
        from torch import nn, optim
        accelerator = Accelerator()  #: accelerator
        net = nn.Linear(1, 1)
        net, opt = accelerator.prepare(net, optim.SGD(net.parameters()))
        m = net  #: model
        o = opt  #: optimizer
    """,
    "unknown stays unknown": """
        thing = make()  #: unknown object
        other = thing.part  #:
    """,
    "availability flags": """
        import torch
        flag = torch.cuda.is_available()  #: accelerator flag
        use = not args.no_cuda and torch.cuda.is_available()  #: accelerator flag
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_last_name_of_a_line_holds(name):
    source = textwrap.dedent(PROGRAMS[name])
    file = SourceFile("program.py", source.encode())
    facts = analyse(Project([file]))
    for number, line in enumerate(source.splitlines(), 1):
        if (expected := re.search(r"#:\s*(.*)$", line)) is None:
            continue
        found = _roles(facts, file.tree, number)

        assert ({expected[1]} if expected[1] else set()) <= found or not expected[1], (line, found)
        assert expected[1] or not found & {Role.MODEL.value, Role.LOADER.value, Role.OPTIMIZER.value}, (line, found)


def _roles(facts, tree, number):
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno == number:
            return {value.role.value for value in facts.values(node.value)}
    raise AssertionError(f"line {number} assigns nothing")


def test_files_of_the_project_are_followed(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "__init__.py").write_text("from .small import *\n")
    (tmp_path / "nets" / "small.py").write_text("from torch import nn\nclass Small(nn.Module):\n    pass\n")
    main = tmp_path / "main.py"
    main.write_text("from nets import Small\nimport torch\nnet = Small()\n")
    file = SourceFile("main.py", main.read_bytes(), real=main)

    facts = analyse(Project([file]))

    assert {value.role for value in facts.values(file.tree.body[2].value)} == {Role.MODEL}


def test_values_that_hold_themselves_come_to_rest():
    source = "import torch\ndef f(x):\n    return f((x, x))\nf(f)\n"
    facts = analyse(Project([SourceFile("program.py", source.encode())]))

    assert not facts.cut_short


def test_reaching_the_bound_is_said():
    source = b"import torch\ndef same(x):\n    return x\nsame(torch.nn.Linear(1, 1))\nsame('text')\n"
    project = Project([SourceFile("program.py", source)])

    assert solve(project, runs=1).agenda.cut_short
    assert not solve(project).agenda.cut_short
