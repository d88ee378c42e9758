"""A container that is only gone through holds nothing back: `for net in [self.G, self.D]:` in another method."""

import pytest

PROGRAM = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.build()
        KEPT

    def build(self):
        self.G = nn.Linear(4, 4)
        self.D = nn.Linear(4, 1)

    def train(self):
        torch.manual_seed(0)
        opt_g = torch.optim.Adam(self.G.parameters())
        opt_d = torch.optim.Adam(self.D.parameters())
        FIRST
        for epoch in range(3):
            BEGUN
            for (x,) in self.loader:
                opt_d.zero_grad()
                self.D(x).mean().backward()
                opt_d.step()
                opt_g.zero_grad()
                self.D(self.G(x)).mean().backward()
                opt_g.step()
        self.show(x)

    def show(self, x):
        SHOWN
        print(x.sum().item())


if __name__ == "__main__":
    Trainer(DataLoader(TensorDataset(torch.ones(64, 4)), batch_size=8)).train()
"""
HOLES = dict.fromkeys(("KEPT", "FIRST", "BEGUN", "SHOWN"), "pass")


def program(**parts):
    text = PROGRAM
    for hole, part in (HOLES | {name.upper(): value for name, value in parts.items()}).items():
        text = text.replace(hole, part)
    return text.lstrip()


RUN = "for net in {}:\n            x = net(x)"


@pytest.mark.parametrize(
    "parts",
    [
        {"shown": RUN.format("[self.G, self.D]")},
        {"shown": f"nets = (self.G, self.D)\n        {RUN.format('nets')}"},
        {"shown": f"nets = [self.G] * 2\n        {RUN.format('nets')}"},
        {"shown": f"nets = {{'g': self.G, 'd': self.D}}\n        {RUN.format('nets.values()')}"},
        {"shown": "for i, net in enumerate([self.G, self.D]):\n            x = net(x) + i"},
        {"shown": "print([net(x).shape for net in (self.G,)])"},
        {"begun": "for net in [self.G, self.D]:\n                net.train()"},
        {"first": "for net in [self.G, self.D]:\n            net.train()"},
    ],
)
def test_what_goes_through_models_holds_nothing_back(convert_text, parts):
    result = convert_text(program(**parts))[1]
    assert "self.loader, self.G, self.D, opt_g, opt_d = self.accelerator.prepare(" in result


@pytest.mark.parametrize(
    "parts",
    [
        {"kept": "self.first(self.loader)", "shown": "pass\n\n    def first(self, x):\n        self.nets = [self.G]"},
        {"shown": "for net in self.nets():\n            x = net(x)\n\n    def nets(self):\n        return [self.G]"},
    ],
)
def test_what_may_keep_them_does(refused_text, parts):
    refused_text(program(**parts), "MIG901", "for (x,) in self.loader:", ["optimizer"])


@pytest.mark.parametrize(
    "parts",
    [
        {"kept": "self.nets = [self.G, self.D]", "shown": RUN.format("self.nets")},
        {"first": "nets = [self.G, self.D]", "begun": "nets[0].train()"},
        {"first": "for net in [self.G, self.D]:\n            net.train()", "begun": "net.train()"},
    ],
)
def test_what_keeps_them_keeps_those_that_are_prepared_above(convert_text, parts):
    result = convert_text(program(**parts))[1]
    above = result[: result.index("def train(self)")]
    assert "self.loader, self.G, self.D = self.accelerator.prepare(" in above
    assert "        opt_g, opt_d = self.accelerator.prepare(opt_g, opt_d)\n" in result


LOADING = """
    import torch
    from torch import nn

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"on {device}")


    def load(path, model, scheduler, optimizer):
        try:
            checkpoint = torch.load(path, map_location=device)
            loaded_model, loaded_scheduler, loaded_optimizer = model, scheduler, optimizer
            loaded_model.load_state_dict(checkpoint["model"])
            if scheduler is not None:
                loaded_scheduler.load_state_dict(checkpoint["scheduler"])
            if optimizer is not None:
                loaded_optimizer.load_state_dict(checkpoint["optimizer"])
            return checkpoint["epoch"], loaded_model, loaded_scheduler, loaded_optimizer
        except FileNotFoundError:
            return 0, model, scheduler, optimizer


    def train():
        model = nn.Linear(4, 4).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        rows = torch.ones(5, 8, 4)
        first, model, scheduler, optimizer = load("model.pth", model, scheduler, optimizer)
        for epoch in range(first, 2):
            for i in range(5):
                optimizer.zero_grad()
                loss = model(rows[i].to(device)).mean()
                loss.backward()
                optimizer.step()
            scheduler.step(loss.item())


    def generate():
        model = nn.Linear(4, 4).to(device)
        _, model, *_ = load("model.pth", model, None, None)
        print(model(torch.ones(1, 4).to(device)))


    torch.manual_seed(0)
    train()
"""


def test_a_function_that_is_handed_all_objects_to_load_them_prepares_none(convert_text):
    _, text = convert_text(LOADING)
    assert "    model, optimizer = accelerator.prepare(model, optimizer)\n\n    for epoch in" in text


PHASES = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.ones(16, 4), torch.ones(16, 1))
    loaders = {"train": DataLoader(data, batch_size=4, shuffle=True), "val": DataLoader(data, batch_size=4)}
    SIZES


    def train(net, optimizer):
        for epoch in range(3):
            for phase in ("train", "val"):
                net.train(phase == "train")
                total = 0.0
                for x, y in loaders[phase]:
                    with torch.set_grad_enabled(phase == "train"):
                        loss = nn.functional.mse_loss(net(x), y)
                        if phase == "train":
                            optimizer.zero_grad()
                            loss.backward()
                            optimizer.step()
                    total += loss.item() * len(x)
                print(phase, total / sizes[phase])


    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    train(net, optimizer)
"""


@pytest.mark.parametrize(
    "sizes",
    [
        "sizes = {name: len(loader.dataset) for name, loader in loaders.items()}",
        "sizes = {}\n    for name, loader in loaders.items():\n        sizes[name] = len(loader.dataset)",
    ],
)
def test_a_script_may_go_through_a_dictionary_of_loaders(convert_text, sizes):
    _, text = convert_text(PHASES.replace("SIZES", sizes))
    assert 'loaders["train"], net, optimizer = accelerator.prepare(' in text


BY_TURNS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

first = DataLoader(TensorDataset(torch.ones(64, 4)), batch_size=8)
second = DataLoader(TensorDataset(torch.ones(32, 4)), batch_size=8)
LOADERS
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for phase in ["train", "val"]:
    for (x,) in loaders[phase]:
        optimizer.zero_grad()
        with torch.set_grad_enabled(phase == "train"):
            loss = model(x).mean()
            if phase == "train":
                loss.backward()
                optimizer.step()
"""
ZIPPED = (
    'loaders = dict(zip(("train", "val"), (first, second)))',
    'loaders = {name: DataLoader(each.dataset) for name, each in zip(("train", "val"), (first, second))}',
)


@pytest.mark.parametrize("loaders", ZIPPED)
def test_so_does_one_that_is_zipped_with_names_to_a_dictionary(convert_text, loaders):
    _, result = convert_text(BY_TURNS.replace("LOADERS", loaders))

    assert 'loaders["train"], model, optimizer = accelerator.prepare(' in result
