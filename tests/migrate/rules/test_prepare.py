import pytest

from migrate.report.model import Kind

UNCHANGED = {
    "a loader that nothing trains on, given away": {
        "imports": "import collections",
        "made": "other = DataLoader(data)\nqueue = collections.deque(other)",
    },
    "a model that is not trained": {"made": "other = nn.Linear(2, 1)"},
    "a data set": {"made": "other = TensorDataset(torch.ones(8, 2))"},
    "an optimizer that does not step": {"made": "spare = optim.SGD(model.parameters(), lr=1.0)"},
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_unchanged(unchanged, name):
    unchanged(**UNCHANGED[name])


EVALUATE = "model.eval()\nwith torch.no_grad():\n    for x, y in held:\n        out = model(x)\n"
CHANGED = {
    "a second model and optimizer": {
        "made": "critic = nn.Linear(2, 1)\nother = optim.SGD(critic.parameters(), lr=0.1)",
        "step": "critic(x).sum()\nother.step()",
        "prepare": "loader, model, critic, other, optimizer = accelerator.prepare(\n"
        "    loader, model, critic, other, optimizer\n)",
    },
    "a loader for evaluation that can be shared out": {
        "made": "held = DataLoader(data)",
        "end": (
            f"{EVALUATE}        best = out.max()",
            f"{EVALUATE}        out = accelerator.gather_for_metrics(out)\n        best = out.max()",
        ),
        "prepare": "loader, held, model, optimizer = accelerator.prepare(loader, held, model, optimizer)",
    },
    "a loader for evaluation that cannot": {
        "made": "held = DataLoader(data)",
        "end": "for x, y in held:\n    best = model(x).max() if best else 0",
        "accelerator": "accelerator = Accelerator(cpu=True)",  # nothing moves what `held` gives
    },
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed(changed, name):
    changed(**CHANGED[name])


def test_everything_is_made_in_another_order(becomes):
    becomes(
        """
        import torch
        from torch import nn, optim
        from torch.utils.data import DataLoader

        model = nn.Linear(2, 1)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(data)

        for x, y in loader:
            model(x).sum().backward()
            optimizer.step()
        """,
        """
        import torch
        from runtime import Accelerator
        from torch import nn, optim
        from torch.utils.data import DataLoader

        accelerator = Accelerator()

        model = nn.Linear(2, 1)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        loader = DataLoader(data)

        loader, model, optimizer = accelerator.prepare(loader, model, optimizer)

        for x, y in loader:
            accelerator.backward(model(x).sum())
            optimizer.step()
        """,
    )


def test_long_calls_are_broken(changed):
    changed(
        made="critic_with_a_long_name = nn.Linear(2, 1)\n"
        "critic_optimizer = optim.SGD(critic_with_a_long_name.parameters(), lr=0.1)",
        step="critic_with_a_long_name(x).sum()\ncritic_optimizer.step()",
        prepare="loader, model, critic_with_a_long_name, critic_optimizer, optimizer = accelerator.prepare(\n"
        "    loader, model, critic_with_a_long_name, critic_optimizer, optimizer\n)",
    )


def test_in_a_trainer(becomes):
    becomes(
        """
        from torch import nn, optim
        from torch.utils.data import DataLoader


        class Trainer:
            def __init__(self, data):
                self.model = nn.Linear(2, 1)
                self.loader = DataLoader(data)
                self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

            def fit(self):
                for x, y in self.loader:
                    self.model(x).sum().backward()
                    self.optimizer.step()


        Trainer(data).fit()
        """,
        """
        from runtime import Accelerator
        from torch import nn, optim
        from torch.utils.data import DataLoader


        class Trainer:
            def __init__(self, data):
                self.accelerator = Accelerator()
                self.model = nn.Linear(2, 1)
                self.loader = DataLoader(data)
                self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

                self.loader, self.model, self.optimizer = self.accelerator.prepare(
                    self.loader, self.model, self.optimizer
                )

            def fit(self):
                for x, y in self.loader:
                    self.accelerator.backward(self.model(x).sum())
                    self.optimizer.step()


        Trainer(data).fit()
        """,
    )


def test_an_experiment_before_another_has_a_prepare_of_its_own(convert_text):
    _, result = convert_text(EXPERIMENTS.lstrip())

    assert "\nloader, model, first = accelerator.prepare(loader, model, first)\n" in result
    assert "\noptimizer = accelerator.prepare(optimizer)\n" in result


EXPERIMENTS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
model = nn.Linear(2, 1)
first = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    model(x).mean().backward()
    first.step()
optimizer = optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    loss = (model(x) - y).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


FOLDS = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
loader = DataLoader(data, batch_size=4)
for fold in range(3):
    loader = DataLoader(data, batch_size=2)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
"""


def test_a_name_that_a_loop_with_the_training_makes_again(convert_text):
    _, result = convert_text(FOLDS.lstrip())

    assert "\n    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n" in result


def test_an_optimizer_that_is_made_again_between_epochs(changed):
    again = "if epoch == 0:\n    optimizer = optim.Adam(model.parameters())"
    changed(epoch=(again, f"{again}\n\n    optimizer = accelerator.prepare(optimizer)"))


TRAINER = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, model, optimizer, loader, held):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
        self.held = held

    def fit(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = (self.model(x) - y).pow(2).mean()
            loss.backward()
            self.optimizer.step()

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        wrong = 0
        for x, y in self.held:
            wrong += (self.model(x) - y).abs().sum().item()
        return wrong

def main():
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    MAKE
    trainer = Trainer(model, optimizer, DataLoader(data, batch_size=4), held)
    trainer.fit()
    print(trainer.evaluate())

main()
"""


@pytest.mark.parametrize(("make", "is_prepared"), [("", True), ("other.look(held)", False)])
def test_gathered_is_what_is_prepared(convert_text, make, is_prepared):
    made = "held = DataLoader(data, batch_size=4)"
    source = TRAINER.replace("MAKE", f"{made}\n    {make}" if make else made)
    _, result = convert_text(f"import other\n{source.lstrip()}")

    assert ("gather_for_metrics" in result) is is_prepared
    assert ("self.loader, self.held, " in result) is is_prepared


def test_a_name_that_takes_the_model_back_is_no_second_model(changed):
    changed(start="model = model.train()", epoch="model = model.eval()")
    changed(epoch="model = model.apply(lambda layer: None)")  # the wrapper again, not the model in it


RESUMED = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

def main(trains):
    model = nn.Linear(2, 1)
    if trains:
        loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        optimizer.load_state_dict(torch.load("optimizer.pt", map_location="cpu"))
    for epoch in range(2):
        if trains:
            for x, y in loader:
                optimizer.zero_grad()
                loss = (model(x) - y).pow(2).mean()
                loss.backward()
                optimizer.step()

main(len(sys.argv) < 2)
"""


LOADS = 'optimizer.load_state_dict(torch.load("optimizer.pt", map_location="cpu"))'


@pytest.mark.parametrize("load", [LOADS, "optimizer = restored(optimizer)"])
def test_an_optimizer_of_a_branch_is_prepared_below_its_model(convert_text, load):
    restored = f"def restored(optimizer):\n    {LOADS}\n    return optimizer\n\ndef main"
    _, result = convert_text(RESUMED.replace(LOADS, load).replace("def main", restored))
    model = "    model = accelerator.prepare(model)\n"
    rest = "    if trains:\n        loader, optimizer = accelerator.prepare(loader, optimizer)\n"
    assert f"{model}\n{rest}" in result


def test_a_loader_that_some_runs_only_cut_is_prepared_with_the_others(convert_text):
    source = RESUMED.replace("    if trains:\n        loader", "    if True:\n        loader")
    cut = "    if trains:\n        loader = shortened(loader)\n    for epoch"
    shortened = "def shortened(loader):\n    return loader\n\ndef main"
    _, result = convert_text(source.replace("    for epoch", cut).replace("def main", shortened))
    assert "\n    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)\n" in result


AT_TIMES = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

class Trainer:
    def __init__(self, args):
        self.args = args
        self.net = nn.Linear(2, 1)
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)
        if args.kind == "soft":
            if args.tunes is True:
                self.weight = torch.zeros(1, requires_grad=True)
                self.second = optim.Adam([self.weight], lr=0.1)
            self.kind = "soft"
        else:
            self.kind = "hard"

    def fit(self, x):
        for _ in range(4):
            loss = self.net(x).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if GUARD:
                again = (self.weight * loss.item()).sum()
                self.second.zero_grad()
                again.backward()
                self.second.step()

torch.manual_seed(0)
Trainer(args).fit(torch.ones(4, 2))
"""


@pytest.mark.parametrize("guard", ["self.args.tunes", "hasattr(self, 'second')"])
def test_an_optimizer_that_some_runs_are_without_is_prepared_where_it_is_made(convert_text, guard):
    _, result = convert_text(AT_TIMES.replace("GUARD", guard))
    assert "lr=0.1)\n                self.second = self.accelerator.prepare(self.second)\n" in result
    assert "self.net, self.optimizer = self.accelerator.prepare(self.net, self.optimizer)" in result


def test_an_optimizer_that_is_none_in_some_runs_is_prepared_with_the_others(convert_text):
    source = AT_TIMES.replace("GUARD", "self.second is not None").replace(
        "        if args.kind", "        self.second = None\n        if args.kind"
    )
    _, result = convert_text(source)
    assert "self.net, self.optimizer, self.second = self.accelerator.prepare(" in result


COUNTED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

gpus = torch.cuda.device_count()
device = torch.device("cuda" if gpus else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2)), batch_size=4)
model = nn.Linear(2, 1).to(device)
if gpus > 1:
    model = nn.DataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in loader:
    loss = model(x.to(device)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


BY_GPUS = {
    "a batch": ("batch_size=4", "batch_size=4 * max(1, gpus)", "loader =", "the batch goes by"),
    "workers": ("batch_size=4", "4, num_workers=4 * max(1, gpus)", "loader =", "starts as many workers"),
    "workers by their place": (
        "batch_size=4",
        "4, False, None, None, 4 * max(1, gpus)",
        "loader =",
        "starts as many workers",
    ),
    "a rate": ("lr=0.1", "lr=0.1 * max(1, gpus)", "optimizer =", "the learning rate goes by"),
    "a rate by its place": ("lr=0.1", "0.1 * max(1, gpus)", "optimizer =", "the learning rate goes by"),
    "a rate that is chosen": ("lr=0.1", "lr=0.2 if gpus > 1 else 0.1", "optimizer =", "the learning rate goes by"),
    "a rate of a group": (
        "model.parameters(), lr=0.1",
        "[{'params': model.parameters(), 'lr': 0.1 * gpus}], lr=0.1",
        "optimizer =",
        "the learning rate goes by",
    ),
}


@pytest.mark.parametrize("name", BY_GPUS)
def test_a_number_that_goes_by_the_gpus_of_a_machine_is_told(convert_text, remark, name):
    plain, counted, at, mention = BY_GPUS[name]
    source = COUNTED.lstrip().replace(plain, counted)
    report, _ = convert_text(source)

    assert counted in source
    remark(report, source, "MIG104", at, [mention, "torch.cuda.device_count()"], Kind.NOTE)


def test_a_batch_that_goes_by_the_gpus_unless_something_is_asked_for_is_told(convert_text, remark):
    source = COUNTED.lstrip().replace("gpus = torch", "gpus = 0 if input() else torch")
    source = source.replace("batch_size=4", "batch_size=4 * max(1, gpus)")
    report, _ = convert_text(source)

    remark(report, source, "MIG104", "loader =", ["the batch goes by torch.cuda.device_count()"], Kind.NOTE)


def test_a_batch_that_is_made_larger_where_it_stands_is_told(convert_text, remark):
    source = COUNTED.lstrip().replace("loader = ", "size = 4\nsize *= gpus\nloader = ")
    source = source.replace("batch_size=4", "batch_size=size")
    report, _ = convert_text(source)

    remark(report, source, "MIG104", "loader =", ["the batch goes by torch.cuda.device_count()"], Kind.NOTE)


@pytest.mark.parametrize(
    "counted", ["4", "4, num_workers=2 if gpus > 0 else 0", "4, num_workers=2, drop_last=gpus > 1"]
)
def test_a_number_that_does_not_go_by_them_is_not(convert_text, counted):
    report, _ = convert_text(COUNTED.lstrip().replace("batch_size=4", counted))

    assert not [finding for finding in report.of(Kind.NOTE) if finding.code == "MIG104"]


FOR_SOME_RUNS = """
import argparse
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def forever(loader):
    while True:
        yield from loader


def main(args):
    model = nn.Linear(2, 1)
    if args.train:
        loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
        batches = forever(loader)
        optimizer = optim.SGD(model.parameters(), lr=0.1)
    if args.train:
        for step in range(9):
            x, y = next(batches)
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
            if step == 4:
                optimizer = optim.SGD(model.parameters(), lr=0.01)
    print(model(torch.ones(1, 2)))


parser = argparse.ArgumentParser()
parser.add_argument("--train", action="store_true")
main(parser.parse_args())
"""


def test_an_optimizer_that_is_made_anew_later_is_prepared_where_there_is_one(convert_text):
    _, result = convert_text(FOR_SOME_RUNS)

    assert "    if args.train:\n        optimizer = accelerator.prepare(optimizer)\n" in result
    assert "lr=0.01)\n\n                optimizer = accelerator.prepare(optimizer)\n" in result


def test_a_loader_that_only_some_runs_make_is_prepared_there_above_what_keeps_it(convert_text):
    _, result = convert_text(FOR_SOME_RUNS)

    prepared = "        loader = accelerator.prepare(loader)\n\n        batches = forever(loader)"
    assert prepared in result
    assert "    model = accelerator.prepare(model)\n" in result


BRANCHES = """
import sys
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))


def score(net, loader):
    net.eval()
    with torch.no_grad():
        return sum((net(x) - y).abs().sum().item() for x, y in loader)


def main():
    if "look" in sys.argv:
        print(score(nn.Linear(2, 1), DataLoader(data)))
        {end}
    elif "wide" in sys.argv:
        net = nn.Sequential(nn.Linear(2, 9), nn.Linear(9, 1))
        loader = DataLoader(data, batch_size=4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    else:
        net = nn.Linear(2, 1)
        loader = DataLoader(data, batch_size=4)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
"""


def test_below_all_branches_of_which_those_before_leave(convert_text):
    _, result = convert_text(BRANCHES.format(end="return"))

    prepare = "\n    loader, net, optimizer = accelerator.prepare(loader, net, optimizer)\n\n    for x, y in loader:"
    assert prepare in result
    assert '    elif "wide" in sys.argv:\n' in result


ONE_OF_TWO = """
import argparse
import torch
from torch import nn, optim


def step(net, optimizer):
    loss = net(torch.ones(1, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train():
    if args.kind == "pair":
        pair()
    else:
        alone()


def pair():
    for _ in range(9):
        step(first, first_optimizer)
        step(second, second_optimizer)


def alone():
    for _ in range(9):
        step(net, optimizer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", default="one")
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.kind == "pair":
        first, second = nn.Linear(2, 1), nn.Linear(2, 1)
        first_optimizer = optim.SGD(first.parameters(), lr=0.1)
        second_optimizer = optim.SGD(second.parameters(), lr=0.1)
    else:
        net = nn.Linear(2, 1)
        optimizer = optim.SGD(net.parameters(), lr=0.1)
    print(args.kind)
    if args.kind == "pair":
        train()
    else:
        train()
"""


def test_objects_of_one_branch_that_functions_below_the_same_test_use_are_prepared_there(convert_text):
    _, result = convert_text(ONE_OF_TWO)

    assert "first_optimizer, second_optimizer = accelerator.prepare(" in result
    assert "optimizer = accelerator.prepare(net, optimizer)" in result
    assert "second_optimizer, optimizer" not in result


LOADERS_OF_BRANCHES = """
import sys
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
trains = "test" not in sys.argv
if trains:
    loader = DataLoader(data, batch_size=4)
    {other}
else:
    test = DataLoader(data, batch_size=4)
net = nn.Linear(2, 1)
optimizer = optim.SGD(net.parameters(), lr=0.1)
if trains:
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
if not trains:
    net.eval()
    with torch.no_grad():
        for x, y in test:
            print(nn.functional.mse_loss(net(x), y).item())
"""


def test_loaders_of_one_branch_each_are_prepared_there_where_runs_are_without_them(convert_text):
    """By one call below, `test` had no value in a training, on one process, too."""
    _, result = convert_text(LOADERS_OF_BRANCHES.format(other="print(len(loader))"))

    assert "    test = accelerator.prepare(test)\n" in result
    assert "\nnet, optimizer = accelerator.prepare(net, optimizer)\n" in result


@pytest.mark.parametrize("end", ["sys.exit('no training here')", "raise NotImplementedError"])
def test_a_loader_of_the_branch_that_goes_on_is_prepared_with_the_others(convert_text, end):
    source = LOADERS_OF_BRANCHES.format(other="").replace(
        "if trains:\n    loader =", f"if trains:\n    {end}\n    loader ="
    )
    source = source.replace("    loader = DataLoader(data, batch_size=4)\n    \n", "").replace("in loader:", "in test:")
    source = source.replace("\nif trains:\n    for", "\nif data:\n    for")
    _, result = convert_text(source)

    assert "\ntest, net, optimizer = accelerator.prepare(test, net, optimizer)\n" in result
