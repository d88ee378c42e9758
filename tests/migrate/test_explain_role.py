"""`--explain-role FILE:LINE:NAME`: what a name is, the chain back to where it was made, and the ways out."""

import ast
import re
import textwrap
from pathlib import Path

import pytest
from typer.testing import CliRunner

from migrate import cli
from migrate.analysis import analyse
from migrate.analysis.evidence import Evidence
from migrate.analysis.roles import Role
from migrate.errors import UsageError
from migrate.options import Question, question
from migrate.source.project import Project, SourceFile

HEAD = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
"""

#: What is asked, the program below HEAD, and the chain as (line, what); the first line is the one that is asked about.
CHAINS = {
    "a name": (
        "model",
        """
        model = nn.Linear(2, 2)
        print(model)
        """,
        [(5, "read here"), (4, "assigned to `model`"), (4, "made here by nn.Linear()")],
    ),
    "a parameter, over two calls": (
        "net",
        """
        def inner(net):
            return net.train()
        def outer(model):
            inner(model)
        outer(nn.Linear(1, 1))
        net = 0
        inner(net=net)
        print(inner(0) or net)
        """,
        [(11, "read here"), (9, "assigned to `net`"), (9, "written here: 0")],
    ),
    "through a function, and a wrapper": (
        "model",
        """
        def build(kind):
            net = nn.Linear(1, 1)
            return net
        model = nn.DataParallel(build(1)).to("cuda")
        print(model)
        """,
        [
            (8, "read here"),
            (7, "assigned to `model`"),
            (7, "handed on by .to()"),
            (7, "handed on by nn.DataParallel()"),
            (6, "returned by build()"),
            (5, "assigned to `net`"),
            (5, "made here by nn.Linear()"),
        ],
    ),
    "an attribute that the constructor sets": (
        "self.model",
        """
        class Trainer:
            def __init__(self, model):
                self.model = model
            def run(self):
                self.step()
            def step(self):
                print(self.model)
        Trainer(nn.Linear(1, 1)).run() if __name__ else None
        """,
        [
            (10, "read here"),
            (6, "stored in `self.model`"),
            (11, "passed to Trainer() as `model`"),
            (11, "made here by nn.Linear()"),
        ],
    ),
    "an item of a dictionary": (
        'loaders["train"]',
        """
        def make():
            train = DataLoader(data)
            return {"train": train}
        loaders = make()
        print(loaders["train"])
        """,
        [
            (8, "read here"),
            (8, "taken out of `loaders`"),
            (6, "put into a dictionary"),
            (5, "assigned to `train`"),
            (5, "made here by DataLoader()"),
        ],
    ),
    "a batch": (
        "x",
        """
        loader = DataLoader(data)
        for i, (x, y) in enumerate(loader):
            print(x)
        """,
        [
            (6, "read here"),
            (5, "`x` is what iterating over `enumerate(loader)` gives"),
            (5, "given to enumerate()"),
            (4, "assigned to `loader`"),
            (4, "made here by DataLoader()"),
        ],
    ),
    "a list that grows": (
        "net",
        """
        nets = []
        nets.append(nn.Linear(1, 1))
        for net in nets:
            print(net)
        """,
        [
            (7, "read here"),
            (6, "`net` is what iterating over `nets` gives"),
            (5, "put in by `nets.append(nn.Linear(1, 1))`"),
            (5, "made here by nn.Linear()"),
        ],
    ),
    "a generator": (
        "batch",
        """
        def batches(loader):
            for each in loader:
                yield each.to("cuda")
        for batch in batches(DataLoader(data)):
            print(batch)
        """,
        [
            (8, "read here"),
            (7, "`batch` is what iterating over `batches(DataLoader(data))` gives"),
            (6, "yielded by batches()"),
            (6, "handed on by .to()"),
            (5, "`each` is what iterating over `loader` gives"),
            (7, "passed to batches() as `loader`"),
            (7, "made here by DataLoader()"),
        ],
    ),
    "a tuple that is unpacked": (
        "b",
        """
        def make():
            return DataLoader(one), DataLoader(two)
        a, b = make()
        print(b)
        """,
        [
            (7, "read here"),
            (6, "unpacked into `b` from `make()`"),
            (5, "put into a tuple"),
            (5, "made here by DataLoader()"),
        ],
    ),
    "a global": (
        "model",
        """
        def build():
            global model
            model = nn.Linear(1, 1)
        build()
        print(model)
        """,
        [(8, "read here"), (6, "assigned to `model`"), (6, "made here by nn.Linear()")],
    ),
    "a total that is divided in place": (
        "total",
        """
        for x in DataLoader(data):
            total = x.sum()
            total /= steps
        """,
        [
            (6, "bound here"),
            (5, "assigned to `total`"),
            (5, "given by x.sum()"),
            (4, "`x` is what iterating over `DataLoader(data)` gives"),
            (4, "made here by DataLoader()"),
        ],
    ),
    "a default": (
        "device",
        """
        def run(device=torch.device("cuda")):
            print(device)
        run()
        """,
        [(5, "read here"), (4, "default of `device` of run()"), (4, "made here by torch.device()")],
    ),
    "what an optimizer is given": (
        "weights",
        """
        model = nn.Linear(1, 1)
        weights = model.parameters()
        opt = optim.SGD(weights)
        """,
        [
            (6, "read here"),
            (5, "assigned to `weights`"),
            (5, "given by model.parameters()"),
            (4, "assigned to `model`"),
            (4, "made here by nn.Linear()"),
        ],
    ),
    "what `with` binds": (
        "net",
        """
        with nn.Linear(1, 1) as net:
            print(net)
        """,
        [(5, "read here"), (4, "bound to `net` by `with`"), (4, "made here by nn.Linear()")],
    ),
    "whether there is a GPU": (
        "has_gpu",
        """
        has_gpu = torch.cuda.is_available()
        print(has_gpu)
        """,
        [(5, "read here"), (4, "assigned to `has_gpu`"), (4, "made here by torch.cuda.is_available()")],
    ),
    "a builtin": (
        "show",
        """
        show = print
        show(1)
        """,
        [(5, "read here"), (4, "assigned to `show`"), (4, "a builtin of Python")],
    ),
    "a comprehension": (
        "each",
        """
        made = nn.Linear(1, 1)
        nets = [net for net in [made]]
        for each in nets:
            print(each)
        """,
        [
            (7, "read here"),
            (6, "`each` is what iterating over `nets` gives"),
            (5, "put into a list"),
            (5, "`net` is what iterating over `[made]` gives"),
            (5, "put into a list"),
            (4, "assigned to `made`"),
            (4, "made here by nn.Linear()"),
        ],
    ),
    "a property": (
        "self.net",
        """
        class Trainer:
            def __init__(self):
                self._net = nn.Linear(1, 1)
            @property
            def net(self):
                return self._net
            def run(self):
                print(self.net)
        Trainer().run()
        """,
        [
            (11, "read here"),
            (9, "returned by Trainer.net()"),
            (6, "stored in `self._net`"),
            (6, "made here by nn.Linear()"),
        ],
    ),
    "a keyword of any name": (
        'named["head"]',
        """
        def count(*nets, **named):
            for net in nets:
                print(net)
            print(named["head"])
        count(nn.Linear(1, 1), head=nn.Conv2d(1, 1, 1))
        """,
        [
            (7, "read here"),
            (7, "taken out of `named`"),
            (8, "passed to count() as `named`"),
            (8, "made here by nn.Conv2d()"),
        ],
    ),
    "one of any number of arguments": (
        "net",
        """
        def count(*nets, **named):
            for net in nets:
                print(net)
            print(named["head"])
        count(nn.Linear(1, 1), head=nn.Conv2d(1, 1, 1))
        """,
        [
            (6, "read here"),
            (5, "`net` is what iterating over `nets` gives"),
            (8, "passed to count() as `nets`"),
            (8, "made here by nn.Linear()"),
        ],
    ),
    "a lambda": (
        "net",
        """
        build = lambda: nn.Linear(1, 1)
        net = build()
        print(net)
        """,
        [(6, "read here"), (5, "assigned to `net`"), (4, "returned by <lambda>()"), (4, "made here by nn.Linear()")],
    ),
    "a generator of another's items": (
        "x",
        """
        def inner(loader):
            yield from loader
        for x in inner(DataLoader(data)):
            print(x)
        """,
        [
            (7, "read here"),
            (6, "`x` is what iterating over `inner(DataLoader(data))` gives"),
            (5, "yielded by inner()"),
            (6, "passed to inner() as `loader`"),
            (6, "made here by DataLoader()"),
        ],
    ),
    "the generator itself": (
        "stream",
        """
        def batches(loader):
            for each in loader:
                yield each
        stream = batches(DataLoader(data))
        print(stream)
        """,
        [(8, "read here"), (7, "assigned to `stream`"), (7, "made here by batches()")],
    ),
    "an item that is set": (
        'nets["a"]',
        """
        nets = {}
        nets["a"] = nn.Linear(1, 1)
        print(nets["a"])
        """,
        [(6, "read here"), (6, "taken out of `nets`"), (5, "stored in `nets['a']`"), (5, "made here by nn.Linear()")],
    ),
    "a name of a library": (
        "functional.relu",
        """
        functional = nn.functional
        print(functional.relu)
        """,
        [(5, "read here"), (4, "assigned to `functional`"), (2, "imported from a library")],
    ),
    "what a model's result is folded to": (
        "z",
        """
        class Net(nn.Module):
            def forward(self, x):
                return x
        model = Net()
        for x in DataLoader(data):
            y = model(x)
            z = y.sum()
            print(y, z)
        """,
        [
            (11, "read here"),
            (10, "assigned to `z`"),
            (10, "given by y.sum()"),
            (9, "assigned to `y`"),
            (9, "given by model()"),
            (8, "`x` is what iterating over `DataLoader(data)` gives"),
            (8, "made here by DataLoader()"),
        ],
    ),
    "an attribute of a base class": (
        "self.net",
        """
        class A:
            net = nn.Linear(1, 1)
        class B(A): pass
        class C(A): pass
        class D(B, C):
            def show(self):
                print(self.net)
        D().show()
        """,
        [(10, "read here"), (5, "assigned to `net`"), (5, "made here by nn.Linear()")],
    ),
    "a method that is kept": (
        "weights",
        """
        model = nn.Linear(1, 1)
        get = model.parameters
        weights = get()
        print(weights)
        """,
        [
            (7, "read here"),
            (6, "assigned to `weights`"),
            (4, "made here by nn.Linear() (the way from there is not recorded)"),
        ],
    ),
    "parameters that are collected": (
        "weights",
        """
        model = nn.Linear(1, 1)
        weights = [w for w in model.parameters()]
        print(weights)
        """,
        [
            (6, "read here"),
            (5, "assigned to `weights`"),
            (5, "a list, made here"),
            (6, "read here"),
            (5, "assigned to `weights`"),
            (5, "collected here"),
            (5, "given by model.parameters()"),
            (4, "assigned to `model`"),
            (4, "made here by nn.Linear()"),
        ],
    ),
    "a generator that waits": (
        "net",
        """
        def nets():
            yield
            yield nn.Linear(1, 1)
        for net in nets():
            print(net)
        """,
        [
            (8, "read here"),
            (7, "`net` is what iterating over `nets()` gives"),
            (6, "yielded by nets()"),
            (6, "made here by nn.Linear()"),
        ],
    ),
    "a text that is put together": (
        "name",
        """
        name = f"cuda:{0}"
        print(name)
        """,
        [(5, "read here"), (4, "assigned to `name`")],
    ),
    "a parameter that must be named": (
        "net",
        """
        def fit(*, net):
            print(net)
        fit(net=nn.Linear(1, 1))
        """,
        [(5, "read here"), (6, "passed to fit() as `net`"), (6, "made here by nn.Linear()")],
    ),
    "a closure": (
        "net",
        """
        def outer():
            net = nn.Linear(1, 1)
            def inner():
                print(net)
            inner()
        outer()
        """,
        [(7, "read here"), (5, "assigned to `net`"), (5, "made here by nn.Linear()")],
    ),
    "super in a nested function": (
        "net",
        """
        class Base:
            def build(self):
                return self
        class Net(Base, nn.Module):
            def make(self):
                def inner():
                    return super(Net, self).build()
                net = inner()
                print(net)
        Net().make()
        """,
        [
            (12, "read here"),
            (11, "assigned to `net`"),
            (10, "returned by inner()"),
            (6, "returned by Base.build()"),
            (5, "the object that Base.build() runs on"),
            (13, "made here by Net()"),
        ],
    ),
    "a parameter that takes all arguments": (
        "nets",
        """
        def count(*nets):
            for net in nets:
                print(net)
        count(nn.Linear(1, 1))
        """,
        [(5, "read here"), (4, "a collection of arguments, made here")],
    ),
    "what a star took": (
        "rest[0]",
        """
        a, *rest = [nn.Linear(1, 1), nn.Linear(2, 2)]
        print(a, rest[0])
        """,
        [
            (5, "read here"),
            (5, "taken out of `rest`"),
            (4, "made here by nn.Linear() (the way from there is not recorded)"),
        ],
    ),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def explain(place, *paths):
    return CliRunner().invoke(cli.app, ["--explain-role", place, *paths], prog_name="migrate")


def write(name, source):
    Path(name).write_text(HEAD + textwrap.dedent(source).lstrip("\n"))


def links(output):
    """The links of one chain as (line, what), without the sources."""
    told = [line.strip() for line in output.splitlines()[1:] if line.startswith("    t.py:")]
    return [(int(line.split(":")[1]), line.split(": ", 1)[1]) for line in told]


@pytest.mark.parametrize("case", CHAINS)
def test_the_chain_leads_back_to_where_it_was_made(case):
    name, source, expected = CHAINS[case]
    write("t.py", source)

    result = explain(f"t.py:{expected[0][0]}:{name}")

    assert (result.exit_code, result.stderr) == (0, "")
    assert links(result.stdout) == expected


def test_every_link_shows_its_line_of_source():
    write("t.py", CHAINS["through a function, and a wrapper"][1])

    assert explain("t.py:8:model").stdout == (
        "t.py:8: `model` is a model (torch.nn.Linear), made at t.py:5 (certain)\n"
        "    t.py:8: read here\n"
        "        print(model)\n"
        "    t.py:7: assigned to `model`\n"
        '        model = nn.DataParallel(build(1)).to("cuda")\n'
        "    t.py:7: handed on by .to()\n"
        "    t.py:7: handed on by nn.DataParallel()\n"
        "    t.py:6: returned by build()\n"
        "        return net\n"
        "    t.py:5: assigned to `net`\n"
        "        net = nn.Linear(1, 1)\n"
        "    t.py:5: made here by nn.Linear()\n"
    )


def test_several_values_are_all_told_with_how_they_differ():
    write("t.py", "if torch:\n    net = nn.Linear(1, 1)\nelse:\n    net = nn.Conv2d(1, 1, 1)\nprint(net)\n")

    told = explain("t.py:8:net").stdout

    assert told.startswith("t.py:8: `net` may be any of 2, which differ in what made them and where they were made\n")
    assert "\n1. a model (torch.nn.Linear), made at t.py:5 (certain)\n" in told
    assert "\n2. a model (torch.nn.Conv2d), made at t.py:7 (certain)\n" in told


def test_other_files_are_read_as_well():
    Path("pyproject.toml").touch()
    write("engine.py", "def fit(model):\n    print(model)\n")
    write("t.py", "from engine import fit\nfit(nn.Linear(1, 1))\n")

    assert "`model` is a model (torch.nn.Linear), made at t.py:5" in explain("engine.py:5:model", "t.py").stdout
    assert "`fit` is the function fit, defined at engine.py:4" in explain("t.py:5:fit").stdout


def test_the_rows_of_the_project_count():
    Path("pyproject.toml").write_text('[tool.migrate.known.makes]\n"somelib.build" = "model"\n')
    write("t.py", "import somelib\nmodel = somelib.build()\n")

    assert "`model` is a model (somelib.build), made at t.py:5 (certain)" in explain("t.py:5:model").stdout


def test_the_settings_are_those_of_the_command_line():
    write("t.py", "from acme import tower\nnet = tower()\nnet.train()\n")
    Path("ci.toml").write_text('[tool.migrate.known.makes]\n"acme.tower" = "model"\n')
    assert "`net` is a model" in explain("t.py:6:net", "--config", "ci.toml").output
    Path("ci.toml").rename("pyproject.toml")
    assert "`net` is a model" in explain("t.py:6:net").output
    assert "`net` is a model" not in explain("t.py:6:net", "--isolated").output
    assert explain("t.py:6:net", "--config", "missing.toml").exit_code == 2


def test_an_import_of_the_project_is_followed():
    Path("pyproject.toml").touch()
    write("nets.py", "model = nn.Linear(1, 1)\n")
    write("t.py", "from nets import *\nprint(model)\n")

    assert explain("t.py:5:model").stdout.splitlines()[3:] == [
        "    t.py:4: `model` imported from nets.py",
        "        from nets import *",
        "    nets.py:4: assigned to `model`",
        "        model = nn.Linear(1, 1)",
        "    nets.py:4: made here by nn.Linear()",
    ]


IMPORTED = {  # what is asked in the last line, the lines below HEAD, and the links
    "a module": ("nets", "import nets\nprint(nets)\n", ["t.py:5: read here", "t.py:4: imported: nets.py"]),
    "an attribute of a module": (
        "nets.model",
        "import nets\nprint(nets.model)\n",
        ["t.py:5: read here", "nets.py:4: assigned to `model`", "nets.py:4: made here by nn.Linear()"],
    ),
    "a star behind a star": (
        "model",
        "from outer import *\nprint(model)\n",
        [
            "t.py:5: read here",
            "outer.py:1: `model` imported from nets.py",
            "nets.py:4: assigned to `model`",
            "nets.py:4: made here by nn.Linear()",
        ],
    ),
    "a file that is not there": (
        "thing",
        "from .missing import thing\nprint(thing)\n",
        ["t.py:5: read here", "t.py:4: imported from a file that was not read"],
    ),
}


@pytest.mark.parametrize("case", IMPORTED)
def test_the_chain_goes_through_files(case):
    name, source, expected = IMPORTED[case]
    Path("pyproject.toml").touch()
    write("nets.py", "model = nn.Linear(1, 1)\n")
    Path("outer.py").write_text("from nets import *\n")
    write("t.py", source)

    told = explain(f"t.py:5:{name}").stdout.splitlines()

    assert [line.strip() for line in told if re.match(r"    \w+\.py:", line)] == expected


def test_what_a_library_passes_is_told_with_the_library():
    write(
        "t.py",
        """
        import torch.multiprocessing as mp
        def work(rank, net):
            print(rank, net)
        mp.spawn(work, args=(nn.Linear(1, 1),))
        """,
    )

    assert links(explain("t.py:6:net").stdout) == [
        (6, "read here"),
        (7, "passed to work() as `net` by torch.multiprocessing.spawn()"),
        (7, "made here by nn.Linear()"),
    ]
    assert links(explain("t.py:6:rank").stdout)[1:] == [
        (7, "passed to work() as `rank` by torch.multiprocessing.spawn()"),
        (7, "made here by mp.spawn()"),
    ]


def test_what_a_library_has_of_its_own_is_not_asked_of_the_program():
    write("t.py", "import optuna\ndef f(trial):\n    print(trial)\noptuna.create_study().optimize(f)\n")
    told = explain("t.py:6:trial").stdout

    assert (
        "the parameter `trial` of f(), which optuna.create_study().optimize() calls with something of its own" in told
    )
    assert "MORE_FILES" not in told


def test_likely_and_guessed_are_told_apart():
    write("t.py", "def fit(model: nn.Module, optimizer, x):\n    model.cuda()\n    print(optimizer, x)\n")

    likely = explain("t.py:5:model").stdout
    assert "`model` is a model (torch.nn.Module), made at t.py:4 (likely: no call that makes it was seen)" in likely
    assert "t.py:4: by its annotation, nn.Module; no call that fills it was seen" in likely
    told = explain("t.py:6:optimizer").stdout
    assert "`optimizer` is not known" in told
    assert "By its name it may be a optimizer" not in told
    assert "By its name it may be an optimizer (a guess, on which nothing is edited); nothing proves it." in told
    assert "By its name" not in explain("t.py:6:x").stdout


KINDS = {  # what is asked, and the words of the answer
    "the method": ("5:model.train", "`.train` of a model (torch.nn.Linear), made at t.py:4 (certain)"),
    "library": ("4:nn", "is the library name torch.nn\n"),
    "statistic": ("7:loss", "is computed from a batch, its rows folded away, of the dataloader made at t.py:6"),
    "text": ("8:name", "is the text 'cuda'\n"),
    "class": ("9:Net", "is the class Net, defined at t.py:9\n"),
    "unseen": ("12:self", "(Net), made at t.py:9 (likely: no call that makes it was seen)"),
}


@pytest.mark.parametrize("case", KINDS)
def test_a_value_in_words(case):
    write(
        "t.py",
        """
        model = nn.Linear(1, 1)
        model.train()
        for x in DataLoader(data):
            loss = model(x).mean()
        name = "cuda"
        class Net(nn.Module):
            unused = 1
            def forward(self, x):
                loss = self.layer(x); loss.backward()
        """,
    )
    place, words = KINDS[case]

    assert words in explain(f"t.py:{place}").stdout


UNKNOWN = {  # what is asked, what was seen, and the way out
    "a library without a row": (
        "5:model",
        "t.py:4: what somelib.build() gives is not known: it is a library",
        '"somelib.build" = "model"',
    ),
    "a parameter": ("7:net", "t.py:6: it is the parameter `net` of train(), and no call of it was seen", "MORE_FILES"),
    "an attribute": ("11:self.extra", "nothing in the files that were read sets `self.extra`", "MORE_FILES"),
    "no name": ("12:missing", "t.py:12: nothing in the files that were read gives `missing` a value", "MORE_FILES"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_not_known_says_what_was_seen_and_the_way_out(case):
    write(
        "t.py",
        """
        model = somelib.build()
        model.train()
        def train(net):
            net.loss.backward()
        class Trainer:
            def run(self):
                loss = self.run()
                self.extra.backward()
        missing.backward()
        """.replace("model = somelib", "import somelib; model = somelib"),
    )
    place, seen, way_out = UNKNOWN[case]

    result = explain(f"t.py:{place}")

    assert result.exit_code == 0
    assert "not known" in result.stdout.splitlines()[0]
    assert seen in result.stdout
    assert way_out in result.stdout.splitlines()[-1]


GAPS = {  # what is asked, the program below HEAD, and all that was seen to be in the way
    "the default of a parameter": (
        "6:net",
        """
        import somelib
        def fit(net=somelib.make()):
            net.train()
            loss.backward()
        fit()
        """,
        ["t.py:5: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "one of what is unpacked": (
        "6:b",
        """
        import somelib
        a, b = nn.Linear(1, 1), somelib.make()
        print(b)
        """,
        ["t.py:5: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "a part of what is unpacked": (
        "6:c",
        """
        import somelib
        (a, c), b = somelib.pair(), 2
        print(c)
        """,
        ["t.py:5: what somelib.pair() gives is not known: it is a library function without a row in the tables"],
    ),
    "another file": (
        "5:net",
        """
        from nets import net
        print(net)
        """,
        ["nets.py:5: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "a setting": (
        "6:args.arch",
        """
        import argparse
        args = argparse.ArgumentParser().parse_args()
        print(args.arch)
        """,
        ["t.py:6: `args.arch` is set by the command line or a configuration, and its value is not followed"],
    ),
    "a function without a result": (
        "7:out",
        """
        def build():
            nn.Linear(1, 1)
        out = build()
        print(out)
        """,
        ["t.py:6: build() returns nothing"],
    ),
    "a function's result": (
        "8:out",
        """
        import somelib
        def build():
            return somelib.make()
        out = build()
        print(out)
        """,
        ["t.py:6: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "what hands on": (
        "6:out",
        """
        import somelib
        out = nn.DataParallel(somelib.make())
        print(out)
        """,
        ["t.py:5: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "Python's own": (
        "6:out",
        """
        import os
        out = os.getcwd()
        print(out)
        """,
        ["t.py:5: os.getcwd() of Python gives nothing that migrate looks for"],
    ),
    "a library function of another use": (
        "5:out",
        """
        out = torch.manual_seed(1)
        print(out)
        """,
        ["t.py:4: what torch.manual_seed() gives is of no role that migrate looks for"],
    ),
    "what a model gives": (
        "6:each",
        """
        model = nn.Linear(1, 1)
        for each in model:
            print(each)
        """,
        ["t.py:5: `model` is known, and what `each` gets of it is not"],
    ),
    "more names than items": (
        "6:b",
        """
        import somelib
        a, b = [somelib.one()]
        print(b)
        """,
        ["t.py:5: `[somelib.one()]` is known, and what `b` gets of it is not"],
    ),
    "an attribute of what is not known": (
        "4:missing.net",
        """
        print(missing.net)
        """,
        ["t.py:4: nothing in the files that were read gives `missing` a value"],
    ),
    "an attribute that is set": (
        "9:self.net",
        """
        import somelib
        class T:
            def __init__(self):
                self.net = somelib.make()
            def run(self):
                print(self.net)
                loss.backward()
        T().run()
        """,
        ["t.py:7: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "an unknown function": (
        "5:out",
        """
        out = missing()
        print(out)
        """,
        ["t.py:4: nothing in the files that were read gives `missing` a value"],
    ),
    "a method of a loader": (
        "6:out",
        """
        loader = DataLoader(data)
        out = loader.shuffle()
        print(out)
        """,
        ["t.py:5: what `.shuffle()` of a dataloader gives is not known"],
    ),
    "None": (
        "5:net",
        """
        net = None
        print(net)
        """,
        ["t.py:4: it is None"],
    ),
    "either of several": (
        "6:out",
        """
        import somelib
        out = somelib.a() or (somelib.b() if x else somelib.c())
        print(out)
        """,
        [
            "t.py:5: what somelib.a() gives is not known: it is a library function without a row in the tables",
            "t.py:5: what somelib.b() gives is not known: it is a library function without a row in the tables",
            "t.py:5: what somelib.c() gives is not known: it is a library function without a row in the tables",
        ],
    ),
    "a lambda": (
        "7:out",
        """
        import somelib
        f = lambda x: somelib.make(x)
        out = f(1)
        print(out)
        """,
        ["t.py:5: what somelib.make() gives is not known: it is a library function without a row in the tables"],
    ),
    "a function that is handed over": (
        "8:out",
        """
        import somelib
        def make(build):
            out = build()
            loss.backward()
            print(out)
        make(somelib.build)
        """,
        ["t.py:6: what somelib.build() gives is not known: it is a library function without a row in the tables"],
    ),
}


@pytest.mark.parametrize("case", GAPS)
def test_the_way_back_is_told_as_far_as_it_goes(case):
    place, source, expected = GAPS[case]
    Path("pyproject.toml").touch()
    write("nets.py", "import somelib\nnet = somelib.make()\n")
    write("t.py", source)

    lines = explain(f"t.py:{place}").stdout.splitlines()

    seen = lines[len(lines) - lines[::-1].index("    What was seen:") :]  # of several values it is the same
    assert [line.strip() for line in seen if re.match(r"    \w+\.py:", line)] == expected


WRONG = {  # what is asked, and the one line that is answered
    "no place in a notebook": (
        "train.ipynb:cell",
        "'train.ipynb:cell' is not FILE:LINE:NAME. For example: migrate --explain-role 'train.ipynb:cell 3:12:model'",
    ),
    "no place": ("model", "'model' is not FILE:LINE:NAME. For example: migrate --explain-role train.py:31:model"),
    "no file": ("nothing.py:3:x", "nothing.py: cannot be read: no such file or directory. Check the spelling"),
    "a folder": (".:3:x", ". is not a file. Name one file"),
    "no line": ("t.py:99:model", "t.py has 7 lines, and line 99 is asked for. Name one of its lines."),
    "line zero": ("t.py:0:model", "t.py has 7 lines, and line 0 is asked for."),
    "another line": ("t.py:5:opt", "On that line: `model.train`, `model`. `opt` is at line 6."),
    "no such name": (
        "t.py:5:nope",
        "t.py:5 does not hold `nope`. On that line: `model.train`, `model`. No line of the",
    ),
    "an empty line": ("t.py:7:opt", "There is no name on that line. `opt` is at line 6."),
    "no expression": ("t.py:5:a b", "`a b` is not a Python expression. Give a name"),
    "no Python": ("broken.py:1:x", "broken.py:1: syntax error"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_question_is_one_line_with_the_way_out(case):
    write("t.py", "model = nn.Linear(1, 1)\nmodel.train()\nopt = optim.SGD(model.parameters())\n")
    Path("broken.py").write_text("def (\n")
    place, says = WRONG[case]

    result = explain(place)

    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("migrate: ")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_form_of_a_question():
    assert question("a.py:3:x") == Question("a.py", 3, "x")
    assert question('C:\\a.py:3:d["k:1"]') == Question("C:\\a.py", 3, 'd["k:1"]')
    with pytest.raises(UsageError):
        question("a.py:x:3")


def test_a_chain_ends_where_the_object_was_made_for_every_name_of_a_program():
    """Nothing is said to be unrecorded in an ordinary program."""
    path = Path(__file__).parents[2] / "fixtures" / "classifier" / "before.py"
    file = SourceFile("train.py", path.read_bytes())
    facts = analyse(Project([file]))
    evidence = Evidence(facts)
    wanted = {Role.MODEL, Role.OPTIMIZER, Role.LOADER, Role.SCHEDULER, Role.BATCH, Role.SAMPLES, Role.STATISTIC}
    chains = [
        (node, value, evidence.chain(node, value))
        for node in ast.walk(file.tree)
        for value in facts.values(node)
        if value.role in wanted
    ]

    assert len(chains) > 50
    for node, value, chain in chains:
        assert chain[-1].node is facts.source(value.origin), ast.unparse(node)
        assert "not recorded" not in chain[-1].what, ast.unparse(node)
