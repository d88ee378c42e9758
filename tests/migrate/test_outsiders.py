"""Functions that a program shares with others: what is edited for the one must not break the others."""

import ast
import textwrap

import pytest
from typer.testing import CliRunner

from migrate.cli import app

COMMON = """
    import torch
    from torch import nn


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(8, 2)

        def forward(self, x):
            return self.layer(x)


    def get_network(gpu):
        net = Net()
        if gpu:
            net = net.cuda()
        return net


    def evaluate(model, loader, device):
        model.eval()
        right = 0
        with torch.no_grad():
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                right += (model(x).argmax(1) == y).sum().item()
        print("right", right)
        return right
"""
TRAIN = """
    import argparse

    import torch
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset

    from common import evaluate, get_network


    def save(model, path):
        print("saving", path)
        torch.save(model.state_dict(), path)


    if __name__ == "__main__":
        parser = argparse.ArgumentParser()
        parser.add_argument("--gpu", action="store_true")
        args = parser.parse_args()
        device = torch.device("cuda" if args.gpu else "cpu")
        data = TensorDataset(torch.ones(64, 8), torch.randint(0, 2, (64,)))
        loader = DataLoader(data, batch_size=8, shuffle=True)
        test_loader = DataLoader(data, batch_size=8)
        net = get_network(args.gpu)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        evaluate(net, test_loader, device)
        save(net, "net.pt")
"""
OTHER = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    {imports}

    net = {common}get_network(False)
    loader = DataLoader(TensorDataset(torch.ones(64, 8), torch.randint(0, 2, (64,))), batch_size=8)
    {common}evaluate(net, loader, torch.device("cpu"))
    {save}(net, "copy.pt")
"""
BY_NAME = OTHER.format(
    imports="from common import evaluate, get_network\n    from train import save", common="", save="save"
)
BY_MODULE = OTHER.format(imports="import common\n    import train as t", common="common.", save="t.save")


@pytest.fixture
def convert(tmp_path, monkeypatch):
    """Write the files, convert those that are named, and give back the output and what is in the files then."""

    def run(named, **files):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pyproject.toml").touch()
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(text).lstrip())
        result = CliRunner().invoke(app, ["--write", *named])
        return result.output, {name: (tmp_path / f"{name}.py").read_text() for name in files}

    return run


@pytest.mark.parametrize("other", [BY_NAME, BY_MODULE], ids=["by name", "by module"])
@pytest.mark.parametrize("named", [["."], ["train.py", "common.py"]], ids=["all named", "the other not read"])
def test_what_another_program_uses_stays_as_it_is(convert, named, other):
    output, after = convert(named, train=TRAIN, common=COMMON, test=other)
    assert "accelerator" not in after["common"].lower()  # only its prints ask who is the first process
    assert after["test"] == textwrap.dedent(other).lstrip()
    assert "accelerator.backward(loss)" in after["train"]
    assert "evaluate(net, test_loader, device)" in after["train"]
    assert "by another program" in output  # every process evaluates in full, and the report says why


def test_a_function_of_another_program_is_given_the_model_itself_by_keyword_too(convert):
    train = TRAIN.replace('save(net, "net.pt")', 'save(path="net.pt", model=net)')
    _, after = convert(["."], train=train, common=COMMON, test=BY_NAME)
    assert 'save(path="net.pt", model=accelerator.unwrap_model(net))' in after["train"]


def test_a_function_of_another_program_that_hands_the_model_on_is_given_the_model_itself(convert):
    asked = "torch.save(model.state_dict(), path)"
    write = "def write(net, path):\n        torch.save(net.state_dict(), path)\n\n    def save("
    train = TRAIN.replace(asked, "write(model, path)").replace("def save(", write)
    _, after = convert(["."], train=train, common=COMMON, test=BY_NAME)
    assert 'save(accelerator.unwrap_model(net), "net.pt")' in after["train"]


def test_a_function_that_others_import_does_not_read_a_global_that_only_the_script_makes(convert):
    _, after = convert(["."], train=TRAIN, common=COMMON, test=BY_NAME)
    save = next(n for n in ast.parse(after["train"]).body if isinstance(n, ast.FunctionDef))
    assert "accelerator" not in ast.unparse(save)
    assert "save(accelerator.unwrap_model(net)" in after["train"]


def test_without_another_program_the_functions_follow(convert):
    _, after = convert(["."], train=TRAIN, common=COMMON)
    assert ".cuda()" not in after["common"]
    assert "gather_for_metrics" in after["common"]
    assert "evaluate(net, test_loader, accelerator)" in after["train"]


HOLDS = """
    class Names:
        def get(self, index):
            if index > 1:
                print("no such name")
            return ("no", "yes")[index % 2]


    class Labels:
        def __init__(self):
            self.names = Names()
"""
NAMES = """
    from labels import Labels

    print(Labels().{}(1))
"""


@pytest.mark.parametrize(("asked", "stays"), [("names.get", True), ("names.count", False)])
def test_what_an_object_of_others_holds_is_theirs_too(convert, asked, stays):
    text = TRAIN.replace("import torch\n", "import torch\n    from labels import Labels\n", 1)
    train = text.replace('save(net, "net.pt")', "print(Labels().names.get(1))")
    _, after = convert(["train.py", "labels.py"], train=train, common=COMMON, labels=HOLDS, test=NAMES.format(asked))

    assert ("def get(self, index):" in after["labels"]) is stays
    assert ("names.get(1)" in after["train"]) is stays


LEARNER = """
    from torch import nn


    class Learner:
        def update(self, net, optimizer, x, y):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()

        def predict(self, net, x):
            return net(x)
"""
AGAIN = """
        def again(self, net, optimizer, x):
            self.update(net, optimizer, x, self.predict(net, x).argmax(1))
"""
LEARNING = """
    import torch
    from learner import Learner

    torch.manual_seed(1)
    net = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    learner = Learner()
    for _ in range(4):
        learner.update(net, optimizer, torch.ones(8, 8), torch.zeros(8).long())
"""
ASKED = {
    "it": ("learner.update(1, 2, 3, 4)", False),
    "what calls it": ("learner.again(1, 2, 3)", False),
    "it by a text": ("getattr(learner, 'update')(1, 2, 3, 4)", False),
    "another one": ("learner.predict(1, 2)", True),
}


@pytest.mark.parametrize("name", ASKED)
def test_a_method_is_that_of_others_where_they_say_its_name(convert, name):
    asked, converts = ASKED[name]
    learner = LEARNER + AGAIN if "again" in asked else LEARNER
    other = f"from learner import Learner\n\nlearner = Learner()\nprint({asked})\n"
    _, after = convert(["train.py", "learner.py"], train=LEARNING, learner=learner, test=other)

    assert ("accelerator.backward(" in after["learner"]) is converts


def test_training_in_a_function_of_others_is_refused_with_the_place(convert):
    common = (
        COMMON
        + """

    def step(model, optimizer, x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
"""
    )
    lines = TRAIN.replace("import evaluate, get_network", "import evaluate, get_network, step").splitlines()
    start = next(i for i, line in enumerate(lines) if "optimizer.zero_grad()" in line)
    train = "\n".join([*lines[:start], "            step(net, optimizer, x, y)", *lines[start + 4 :], ""])
    other = "from common import step\n\n\ndef again(*given):\n    step(*given)\n"
    output, after = convert(["."], train=train, common=common, other=other)
    assert "accelerator" not in after["train"] + after["common"]
    assert "step() needs the accelerator, and other.py:5" in " ".join(output.split())


def test_a_wrapper_that_stays_where_others_need_it_refuses_the_program(convert):
    common = COMMON.replace("net = net.cuda()", "net = nn.DataParallel(net).cuda()")
    output, after = convert(["."], train=TRAIN, common=common, test=BY_NAME)
    assert "accelerator" not in after["train"] + after["common"]
    said = " ".join(output.split())
    assert "wrapped in DataParallel in common.py:17, which stays: its function is also used in test.py:" in said


def test_a_wrapper_in_a_file_that_was_not_named_stays(convert):
    common = COMMON.replace("net = net.cuda()", "net = nn.DataParallel(net).cuda()")
    output, _ = convert(["train.py"], train=TRAIN, common=common)
    assert "wrapped in DataParallel in common.py:17, which stays: that file was not named" in " ".join(output.split())


WRAPPED = """

    if __name__ == "__main__":
        net = nn.DataParallel(get_network(False))
        net.load_state_dict(torch.load("net.pt"))
        evaluate(net, [(torch.ones(4, 8), torch.zeros(4))], "cpu")
"""


def test_a_wrapper_that_only_another_script_puts_on_when_it_is_run_stays(convert):
    _, after = convert(["."], train=TRAIN, common=COMMON + WRAPPED)
    assert "accelerator.backward(loss)" in after["train"]
    assert "net = nn.DataParallel(get_network(False))" in after["common"]


def test_a_function_whose_callees_alone_speak_is_left(convert):
    common = (
        COMMON
        + """

    def download(folder="data"):
        print("downloading")
        return folder


    def get_data(size):
        return download(), size
"""
    )
    train = TRAIN.replace("get_network\n", "get_data, get_network\n").replace(
        "        net = get_network", "        get_data(3)\n        net = get_network"
    )
    _, after = convert(["."], train=train, common=common)
    assert "def get_data(size):" in after["common"]
    assert "get_data(3)" in after["train"]


TRAINER = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset


    class Trainer:
        def __init__(self):
            self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            self.loader = DataLoader(TensorDataset(torch.ones(64, 8), torch.ones(64, 2)), batch_size=8, shuffle=True)
            self.model = nn.Linear(8, 2).to(self.device)

        def train(self):
            optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
            for x, y in self.loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(x.to(self.device)), y.to(self.device))
                loss.backward()
                optimizer.step()
            torch.save(self.model.state_dict(), "net.pt")
"""
STARTING = """
    from trainer import Trainer


    def main():
        trainer = Trainer()
        trainer.train()


    if __name__ == "__main__":
        main()
"""
DEMO = """
    import torch

    from trainer import Trainer


    def main():
        trainer = Trainer()
        trainer.model.load_state_dict(torch.load("net.pt"))
        trainer.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in trainer.loader:
                total += (trainer.model(x.to(trainer.device)) - y.to(trainer.device)).sum().item()
        print(total)


    if __name__ == "__main__":
        main()
"""


def test_an_object_that_another_script_makes_is_none_of_a_run_of_the_training(convert):
    output, after = convert(["."], trainer=TRAINER, train=STARTING, demo=DEMO)
    assert "self.accelerator.backward(loss)" in after["trainer"]
    assert "self.model = nn.Linear(8, 2).to(self.device)" in after["trainer"]  # the demo runs it as it is made
    assert "x, y = trainer.accelerator.gather_for_metrics((x, y))" in after["demo"]
    assert "also runs where the model is not prepared" in " ".join(output.split())


def test_an_object_that_a_script_makes_beside_the_training_is_another_one(convert):
    demo = DEMO.replace("import Trainer", "import Trainer\n    from train import main as train", 1)
    demo = demo.replace("trainer = Trainer()", "train()\n        trainer = Trainer()")
    output, after = convert(["."], trainer=TRAINER, train=STARTING, demo=demo)
    assert "accelerator" not in "".join(after.values())
    assert "several objects are made here" in " ".join(output.split())


MOVING = """
    import torch


    def moved(thing, is_model=False):
        if is_model and torch.cuda.is_available():
            thing = thing.cuda()
        elif torch.cuda.is_available():
            thing = thing.cuda(non_blocking=True)
        return thing
"""
LEAVING_MOVES = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    from common import moved


    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def parse(self, batch):
            return [moved(part) for part in batch]

        def forward(self, x):
            return self.layer(x * moved(torch.arange(0, 4)))


    if __name__ == "__main__":
        net = Net()
        moved(net, True)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64, 1)), batch_size=8)
        for batch in loader:
            x, y = net.parse(batch)
            optimizer.zero_grad()
            loss = (net(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
"""
MOVED_TOO = """
    import torch

    from common import moved


    def infer(net):
        return net(moved(torch.ones(1, 4)))
"""


@pytest.mark.parametrize("named", [["."], ["train.py"]])
def test_a_program_that_leaves_its_moves_to_what_others_use_is_written_for_a_device(convert, named):
    _, after = convert(named, train=LEAVING_MOVES, common=MOVING, test=MOVED_TOO)
    assert "    accelerator = Accelerator(" in after["train"]
    assert "cpu=True" not in after["train"]
    assert after["common"] == textwrap.dedent(MOVING).lstrip()


TESTED = """
    import unittest

    import torch

    from common import Net
    from train import save


    {tests}
"""
BY_PYTEST = "def test_saving(tmp_path):\n        save(Net(), tmp_path / 'net.pt')"
BY_UNITTEST = "class Saving(unittest.TestCase):\n        def runTest(self):\n            save(Net(), 'net.pt')"


@pytest.mark.parametrize(
    ("file", "tests"), [("test_train", BY_PYTEST), ("saving", BY_UNITTEST)], ids=["pytest", "unittest"]
)
def test_what_a_test_calls_stays_as_it_is_and_is_given_the_model_itself(convert, file, tests):
    test = TESTED.format(tests=tests)
    _, after = convert(["."], train=TRAIN, common=COMMON, **{file: test})
    assert 'save(accelerator.unwrap_model(net), "net.pt")' in after["train"]
    assert after[file] == textwrap.dedent(test).lstrip()


def test_what_a_function_calls_that_nothing_runs_follows(convert):
    helper = BY_PYTEST.replace("test_saving", "saving")
    _, after = convert(["."], train=TRAIN, common=COMMON, saving=TESTED.format(tests=helper))
    assert 'save(net, "net.pt")' in after["train"]
