"""Where a program is at home: where its objects have names, and what makes those that the home is given."""

import pytest

HEAD = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader
"""
FIT = """
def fit(net, lr):
    loader = DataLoader(data)
    opt = optim.SGD(net.parameters(), lr=lr)
    for x, y in loader:
        net(x).sum().backward()
        opt.step()

"""
RETRY = """
try:
    fit(net, 0.1)
except RuntimeError:
    fit(net, 0.1)
"""
HOLDER = """
class Data:
    def __init__(self):
        self.train = DataLoader(data)

"""
RUN = """
net = nn.Linear(1, 1)
held = Data()
opt = optim.SGD(net.parameters(), lr=0.1)
for x, y in held.train:
    net(x).sum().backward()
    opt.step()
"""
CLASS = """
class Trainer:
    def __init__(self):
        self.net = nn.Linear(1, 1)

    def run(self):
        loader = DataLoader(data)
        opt = optim.SGD(self.net.parameters(), lr=0.1)
        for x, y in loader:
            self.net(x).sum().backward()
            opt.step()

"""
LAYERS = """
class Layer(nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.opt = optim.Adam(self.parameters())

    def fit(self, x):
        for i in range(3):
            self(x).sum().backward()
            self.opt.step()
        return self(x).detach()


class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layers = []
        for i in range(2):
            self.layers = self.layers + [Layer(n)]

    def fit(self, x):
        for layer in self.layers:
            x = layer.fit(x)


torch.manual_seed(0)
Net(3).fit(torch.ones(2, 3))
"""
TWINS = """
torch.manual_seed(0)
one, two = Layer(3), Layer(3)
for step in range(3):
    two.fit(one.fit(torch.rand(2, 3)))
"""
MADE = FIT.replace("fit(net, lr)", "fit(lr=0.1)").replace("    loader =", "    net = nn.Linear(1, 1)\n    loader =")
MADE = MADE.rstrip() + "\n    return net\n\n"


def _called(unit):
    return getattr(unit, "name", "module")


@pytest.mark.parametrize(
    ("source", "home", "start", "targets"),
    [
        (FIT + "fit(nn.Linear(1, 1), 0.1)\n", "fit", "module", ["loader", "net", "opt"]),
        (FIT + "for fold in range(3):\n    net = nn.Linear(1, 1)\n    fit(net, 0.1)\n", "fit", "module", None),
        (FIT + "one = nn.Linear(1, 1)\ntwo = nn.Linear(1, 1)\nfit(one, 0.1)\n", "fit", "module", None),
        (FIT + "def main():\n    net = nn.Linear(1, 1)\n    fit(net, 0.1)\n\nmain()\n", "fit", "main", None),
        (FIT + "net = nn.Linear(1, 1)\n" + RETRY, "fit", "module", None),
        (HOLDER + RUN, "module", "module", ["held.train", "net", "opt"]),
        (
            HOLDER + RUN.replace("for x, y in held.train", "for i, (x, y) in enumerate(held.train)"),
            "module",
            "module",
            None,
        ),
        (CLASS + "Trainer().run()\n", "run", "__init__", ["loader", "self.net", "opt"]),
        (LAYERS, "__init__", "module", ["self.opt"]),
        (
            LAYERS.replace("self.layers + [Layer(n)]", "[Layer(n) for _ in range(2)]"),
            "__init__",
            "module",
            ["self.opt"],
        ),
        (LAYERS.replace("Net(3)", "def main():\n    Net(3)") + "\nmain()\n", "__init__", "main", ["self.opt"]),
        (LAYERS.split("class Net", maxsplit=1)[0] + TWINS, "__init__", "module", ["self.opt"]),
        (MADE + "def main():\n    fit()\n\nmain()\n", "fit", "fit", ["loader", "net", "opt"]),
        (MADE + "def main():\n    fit()\n    print('done')\n\nmain()\n", "fit", "main", None),
        (MADE + "def main():\n    net = fit()\n    net.eval()\n\nmain()\n", "fit", "main", None),
        (MADE + "def main():\n    fit()\n\nmain()\nprint('done')\n", "fit", "module", None),
        (MADE + "def run():\n    fit()\n\ndef main():\n    run()\n    print(1)\n\nmain()\n", "fit", "main", None),
        (MADE + "def one():\n    fit()\n\nfit()\none()\nprint(1)\n", "fit", "fit", None),
    ],
)
def test_homes(decide, source, home, start, targets):
    program, conversion = decide(HEAD + source)

    assert not program.refusals
    assert (_called(program.home), _called(program.start)) == (home, start)
    assert targets is None or [named.target for named in conversion.placement.stages.first.objects] == targets


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            LAYERS.replace(
                "Net(3).fit(torch.ones(2, 3))", "loader = DataLoader(data)\nfor x, y in loader:\n    Net(3).fit(x)"
            ),
            "each Layer makes an optimizer for itself, in one place for several of them",
        ),
    ],
)
def test_no_home(decide, source, says):
    program, conversion = decide(HEAD + source)

    assert conversion is None
    assert [refusal.code for refusal in program.refusals] == ["MIG901"]
    assert says in program.refusals[0].why


TRAINED_AT_TIMES = """
import sys

class Denoiser:
    def __init__(self, trained):
        self.build(trained)

    def build(self, trained):
        self.net = nn.Linear(1, 1)
        if trained:
            self.opt = optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self, loader):
        for x, y in loader:
            self.net(x).sum().backward()
            {step}

loader = DataLoader(data)
denoiser = Denoiser(len(sys.argv) > 1)
{fit}
"""


@pytest.mark.parametrize(
    ("step", "fit", "is_there"),
    [
        ("self.opt.step()", "denoiser.fit(loader)", True),
        ("self.opt.step()", "if len(sys.argv) > 1:\n    denoiser.fit(loader)", False),
        ("if len(sys.argv) > 1:\n                self.opt.step()", "denoiser.fit(loader)", False),
    ],
)
def test_an_optimizer_that_is_only_made_at_times_is_there_where_the_training_cannot_do_without(
    decide, step, fit, is_there
):
    program, conversion = decide(HEAD + TRAINED_AT_TIMES.format(step=step, fit=fit))

    assert (conversion is not None) == is_there
    assert [refusal.code for refusal in program.refusals] == ([] if is_there else ["MIG901"])


def test_what_is_given_must_be_what_is_trained(decide):
    program, conversion = decide(
        HEAD + FIT.replace("net(x)", "other(x)") + "net = other = nn.Linear(1, 1)\nfit(net, 0.1)\n"
    )

    assert conversion is None
    assert "as it was before prepare" in program.refusals[0].why


HANDED_ITS_LOADER = """
def fit(loader, net):
    opt = optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        net(x).sum().backward()
        opt.step()
    {inside}

def score(loader, net):
    net.eval()
    with torch.no_grad():
        return sum(net(x).sum().item() for x, y in loader)

train, held = DataLoader(data, shuffle=True), DataLoader(data)
net = nn.Linear(1, 1)
{above}
fit(train, net)
net = nn.Linear(1, 1)
print(score(held, net))
"""


@pytest.mark.parametrize("above", ["", "print(score(held, net))", "print(len(held))"])
def test_a_loader_of_the_module_that_the_training_does_not_know_stays_raw(decide, above):
    program, _ = decide(HEAD + HANDED_ITS_LOADER.format(inside="pass", above=above))

    assert not program.refusals
    assert [named.target for named in program.loaders] == ["loader"]


def test_one_that_the_training_reads_must_not_be_read_elsewhere(decide):
    source = HANDED_ITS_LOADER.format(inside="print(score(held, net))", above="").replace(
        "fit(train, net)", "fit(train)"
    )
    program, conversion = decide(HEAD + source.replace("fit(loader, net):", "fit(loader):\n    net = nn.Linear(1, 1)"))

    assert conversion is None
    assert program.refusals[0].why == "held is read here as it was before prepare"


METHODS = """
class Trainer:
    def __init__(self{given}):
        self.net = {net}
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self, batches):
        for x, y in batches:
            self.net(x).sum().backward()
            self.opt.step()
"""
MADE_INSIDE = METHODS.format(given="", net="nn.Linear(1, 1)").replace("(self, batches):", "(self):")
BY_METHOD = """
    def batches(self, part):
        return DataLoader(part)
"""


@pytest.mark.parametrize(
    ("body", "home", "expected"),
    [
        (
            MADE_INSIDE.replace("for x, y in batches", "batches = DataLoader(data)\n        for x, y in batches")
            + "trainer = Trainer()\nfor epoch in range(2):\n    trainer.fit()\n",
            "__init__",
            [("fit", "batches")],
        ),
        (
            MADE_INSIDE.replace("in batches", "in self.batches(data)") + BY_METHOD + "Trainer().fit()\n",
            "__init__",
            [("batches", "DataLoader")],
        ),
        (
            METHODS.format(given=", net", net="net")
            + "trainer = Trainer(nn.Linear(1, 1))\nloader = DataLoader(data)\ntrainer.fit(loader)\n",
            "module",
            [],
        ),
        (
            METHODS.format(given=", net", net="net")
            + "net = nn.Linear(1, 1)\nloader = DataLoader(data)\ntrainer = Trainer(net)\ntrainer.fit(loader)\n",
            "__init__",
            [("module", "loader")],
        ),
    ],
)
def test_a_loader_is_prepared_where_it_is_made(decide, body, home, expected):
    program, conversion = decide(HEAD + body)

    assert not program.refusals
    assert _called(program.home) == home
    stages = conversion.placement.stages.elsewhere
    assert [(_called(stage.unit), named.target) for stage in stages for named in stage.objects] == expected


PARTS = """
class Trainer:
    def __init__(self):
        {init}

    def build_data(self):
        self.loader = DataLoader(data)

    def build_model(self):
        self.net = nn.Linear(1, 1)

    def {other}(self):
        {optimizer}

    def fit(self):
        {fit}for x, y in self.loader:
            self.net(x).sum().backward()
            self.opt.step()

{made}
"""
OPTIMIZER = "self.opt = optim.SGD(self.net.parameters(), lr=0.1)"
ONCE = "trainer = Trainer()\ntrainer.fit()"
ALL = ["self.loader", "self.net", "self.opt"]


def parts(init, fit="", made=ONCE):
    """The program whose `__init__` calls some methods; the optimizer is made below them where none of them makes it."""
    calls = [f"self.{each}" for each in init]
    is_apart = "build_optimizer()" in [*init, *fit.split("self.")]
    return PARTS.format(
        init="\n        ".join(calls if is_apart else [*calls, OPTIMIZER]),
        other="build_optimizer" if is_apart else "show",
        optimizer=OPTIMIZER if is_apart else "print(self)",
        fit=f"self.{fit}\n        " if fit else "",
        made=made,
    )


@pytest.mark.parametrize(
    ("init", "fit", "made", "home", "start", "targets"),
    [
        (["build_data()", "build_model()"], "", ONCE, "__init__", "__init__", ALL),
        (["build_data()", "build_model()", "build_optimizer()"], "", ONCE, "__init__", "__init__", ALL),
        (["build_model()", "build_optimizer()", "build_data()"], "", ONCE, "__init__", "__init__", ALL),
        (["build_model()", "build_optimizer()", "build_data()"], "", "Trainer().fit()", "__init__", "__init__", ALL),
        (["build_data()", "build_model()"], "build_optimizer()", ONCE, "fit", "__init__", ALL),
        (["build_model()"], "build_data()\n        self.build_optimizer()", ONCE, "fit", "__init__", ALL),
    ],
    ids=["two by methods", "all by methods", "data last", "without a name", "the optimizer late", "data late"],
)
def test_what_methods_set_is_there_below_their_calls(decide, init, fit, made, home, start, targets):
    program, conversion = decide(HEAD + parts(init, fit, made))

    assert not program.refusals
    assert (_called(program.home), _called(program.start)) == (home, start)
    assert [named.target for named in conversion.placement.stages.first.objects] == targets


HELD_BESIDE = """
class Scorer:
    def __init__(self, net):
        self.{key} = net
        self.held = DataLoader(data)

    def score(self):
        self.{key}.eval()
        with torch.no_grad():
            return sum(self.{key}(x).sum().item() for x, y in self.held)


class Trainer:
    def __init__(self, lr):
        self.load()
        self.build(lr)
        self.scorer = Scorer(self.net)

    def load(self):
        self.loader = DataLoader(data)

    def build(self, lr):
        self.net = nn.Linear(1, 1)
        {between}self.opt = optim.SGD(self.net.parameters(), lr=lr)

    def fit(self):
        for x, y in self.loader:
            self.net(x).sum().backward()
            self.opt.step()
        print(self.scorer.score())


Scorer(nn.Linear(1, 1)).score()
Trainer(0.1).fit()
"""


def held_beside(key, between=""):
    return HEAD + HELD_BESIDE.format(key=key, between=between)


@pytest.mark.parametrize("key", ["net", "model", "opt", "loader"])
def test_what_another_class_calls_its_own_is_no_matter_where_a_method_sets_up_the_object(decide, key):
    program, conversion = decide(held_beside(key))

    assert not program.refusals
    assert _called(program.home) == "build"
    assert [named.target for named in conversion.placement.stages.first.objects] == [
        "self.loader",
        "self.net",
        "self.opt",
    ]


@pytest.mark.parametrize("change", ["self.load()", "self.loader = DataLoader(data)"])
def test_an_object_that_gets_another_loader_later_is_not_set_up(decide, change):
    text = held_beside("model").replace("print(self.scorer", f"{change}\n        print(self.scorer")
    _, conversion = decide(text)

    assert conversion is None


@pytest.mark.parametrize("key", ["net", "model"])
def test_a_method_sets_up_the_object_also_by_methods_that_it_alone_calls(decide, key):
    apart = "self.step(lr)\n\n    def step(self, lr):\n        "
    program, _ = decide(held_beside(key, apart))

    assert not program.refusals
    assert _called(program.home) == "build"


@pytest.mark.parametrize("key", ["net", "model"])
def test_a_model_is_not_prepared_for_one_of_two_objects_that_hold_it(decide, key):
    apart = "self.step(lr)\n\n    def step(self, lr):\n        "
    text = held_beside(key, apart).replace("        self.build(lr)\n", "        if lr:\n            self.build(lr)\n")
    program, conversion = decide(text)

    assert conversion is None
    assert program.refusals[0].code == "MIG104"


def test_a_method_that_an_init_enters_early_prepares_nothing_that_is_set_later(decide):
    early = parts(["build_data()"]).replace("build_data()\n", "build_data()\n        self.net = nn.Linear(1, 1)\n", 1)
    program, conversion = decide(
        HEAD + early.replace("    def build_model(self):\n        self.net = nn.Linear(1, 1)\n", "")
    )

    assert not program.refusals
    assert _called(program.home) == "__init__"
    assert [named.target for named in conversion.placement.stages.first.objects] == ALL


DERIVED = """
class Base:
    def __init__(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def fit(self):
        for x, y in self.loader:
            self.net(x.to(self.device)).sum().backward()
            self.opt.step()


class Mine(Base):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(1, 1).to(self.device)
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = DataLoader(data)


class Sample:
    def __init__(self):
        {sample}.__init__(self)


Sample()
trainer = Mine()
trainer.fit()
"""


@pytest.mark.parametrize(("sample", "start"), [("object", "Base"), ("Base", "Mine")], ids=["alone", "another beside"])
def test_the_base_of_a_trainer_makes_the_accelerator_where_all_objects_are_the_trainers(decide, sample, start):
    text = DERIVED.format(sample=sample).replace("class Sample:", f"class Sample({sample}):")
    program, conversion = decide(HEAD + text)

    assert not program.refusals
    assert (program.home.owner.name, program.start.owner.name) == ("Mine", start)
    assert [named.target for named in conversion.placement.stages.first.objects] == ALL


HANDED_ON = """
def run(net, loader, opt):
    for x, y in loader:
        opt.zero_grad()
        net(x).sum().backward()
        opt.step()

def main():
    net = nn.Linear(1, 1)
    loader = DataLoader(data)
    run(net, loader, optim.SGD(net.parameters(), lr=0.1))

main()
"""


def test_an_optimizer_that_is_handed_on_at_once_is_told_to_get_a_name(decide):
    call = "run(net, loader, optim.SGD(net.parameters(), lr=0.1))"
    assert not decide(HEAD + HANDED_ON)[0].refusals  # it is prepared there

    program, conversion = decide(HEAD + HANDED_ON.replace(call, f"for _ in range(2):\n        {call}"))
    (refusal,) = program.refusals
    assert conversion is None
    assert "has no name where it is made: it is handed on at once" in refusal.why
    assert refusal.way_out.startswith("give it a name there")

    named = HANDED_ON.replace("    run(net, loader, optim.SGD(net.parameters(), lr=0.1))", "    opt = MADE\n    RUN")
    named = named.replace("MADE", "optim.SGD(net.parameters(), lr=0.1)").replace("RUN", "run(net, loader, opt)")
    assert not decide(HEAD + named)[0].refusals


LAZY = """
class Estimator:
    def __init__(self):
        self.net = None

    def build(self):
        self.net = nn.Linear(1, 1)
        self.opt = optim.SGD(self.net.parameters(), lr=0.1)
        self.loader = DataLoader(data)

    def fit(self):
        if self.net is None:
            self.build()
        for x, y in self.loader:
            self.net(x).sum().backward()
            self.opt.step()

Estimator().fit()
"""


@pytest.mark.parametrize("asks", ["if self.net is None:", "if True:"])
def test_what_a_method_sets_up_is_prepared_there_where_a_method_that_calls_it_trains(decide, asks):
    program, conversion = decide(HEAD + LAZY.replace("if self.net is None:", asks))

    assert not program.refusals
    assert (_called(program.home), _called(program.start)) == ("build", "__init__")
    assert [named.target for named in conversion.placement.stages.first.objects] == ALL


def test_without_an_init_nothing_makes_the_accelerator_for_a_method_that_sets_up_and_one_that_trains(decide):
    bare = LAZY.replace("    def __init__(self):\n        self.net = None\n", "    net = None\n")
    program, _ = decide(HEAD + bare)
    assert program.start is program.home


def test_the_init_makes_none_where_a_loader_is_prepared_elsewhere(decide):
    above = LAZY.replace("        self.loader = DataLoader(data)\n", "").replace(
        "class", "loader = DataLoader(data)\n\nclass"
    )
    _, conversion = decide(HEAD + above.replace("in self.loader", "in loader"))
    assert conversion is None


FITTED_AT_ONCE = """
class Fitting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1)

    def fit(self, loader):
        opt = optim.SGD(self.parameters(), lr=0.1)
        for x in loader:
            self.layer(x).sum().backward()
            opt.step()

loader = DataLoader(data)
Fitting().fit(loader)
"""


def test_a_model_that_is_fitted_at_once_is_told_to_get_a_name(decide):
    (refusal,) = decide(HEAD + FITTED_AT_ONCE)[0].refusals
    assert "has no name where it is made: its method is called at once" in refusal.why

    named = FITTED_AT_ONCE.replace("Fitting().fit", "model = Fitting()\nmodel.fit")
    assert not decide(HEAD + named)[0].refusals
