"""Functions that share helpers, layer upon layer: the ways through them double with each; none is followed alone."""

import signal
import textwrap

import pytest

from migrate.options import Mode, Options
from migrate.pipeline import run_text
from migrate.report.model import Kind

LAYERS = 40  # 2**40 ways: followed one by one, they come to no end

PROGRAM = """
    import os

    import torch
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset


    class Diverged(Exception):
        pass

    {layers}

    def main():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        data = TensorDataset(torch.ones(40, 2), torch.randint(2, (40,)))
        loader = DataLoader(data, batch_size=10, shuffle=True)
        held = DataLoader(data, batch_size=10)
        net = torch.nn.Linear(2, 2).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(2):
            net.train()
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = F.cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                print(loss.item())
            net.eval()
            correct = 0
            with torch.no_grad():
                for x, y in held:
                    correct += (net(x.to(device)).argmax(1) == y.to(device)).sum().item()
            print(correct / len(data))


    main()
"""
EPOCHS = "for epoch in range(2):"
DEVICE = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'

STEP = """loss = F.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()"""

#: What the lowest function does, what all of them take, what is replaced in the program, and by which call of the top.
CASES = {
    "raises": ("if loss > 100:\n    raise Diverged", "loss", "print(loss.item())", "{top}(loss.item())"),
    "prints": ("print(loss)", "loss", "print(loss.item())", "{top}(loss.item())"),
    "draws": ("return torch.randn(2)", "net", "print(loss.item())", "noise = {top}(net)"),
    "steps": (
        "loss = F.cross_entropy(net(x), y)\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()\nreturn loss",
        "net, optimizer, x, y",
        STEP,
        "loss = {top}(net, optimizer, x, y)",
    ),
    "saves": (
        "if not os.path.exists('out'):\n    os.makedirs('out')\ntorch.save(net.state_dict(), 'out/net.pt')",
        "net",
        "print(correct / len(data))",
        "{top}(net)",
    ),
    "device": (f"return {DEVICE}", "which", DEVICE, "{top}(0)"),
    "moves": ("return x.to(device)", "x, device", "x, y = x.to(device), y.to(device)", "x = {top}(x, device)"),
    "seeds": ("torch.manual_seed(seed)", "seed", "net = torch", "{top}(0)\n    net = torch"),
    "hooks": (
        "net.register_forward_hook(lambda module, given, made: kept.append(made))",
        "net, kept",
        "print(correct / len(data))",
        "kept = []\n        {top}(net, kept)",
    ),
    "lengths": (
        "return len(loader) * epochs",
        "loader, epochs",
        EPOCHS,
        "n = {top}(loader, 2)\n    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1, n)\n    " + EPOCHS,
    ),
    "rates": (
        "for group in optimizer.param_groups:\n    group['lr'] = 0.1 / (1 + epoch)",
        "optimizer, epoch",
        "net.train()",
        "net.train()\n        {top}(optimizer, epoch)",
    ),
}


def layers(body, parameters):
    """The functions: two for each layer but the top, and each calls both of the layer below."""
    first = parameters.partition(",")[0]
    found = [f"def {name}0({parameters}):\n{textwrap.indent(body, '    ')}\n" for name in "ab"]
    for number in range(1, LAYERS):
        calls = [f"return {name}{number - 1}({parameters})" for name in "ab"]
        choice = f"    if {first} is not None:\n        {calls[0]}\n    {calls[1]}\n"
        found += [f"def {name}{number}({parameters}):\n{choice}" for name in ("ab" if number < LAYERS - 1 else "a")]
    return "\n\n".join(found)


class Late(BaseException):
    """It has taken two minutes; nothing handles this."""


@pytest.fixture
def ends():
    """Says that something has not come to an end where it would, else, keep all tests from it."""

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("case", CASES)
def test_functions_that_share_helpers_are_each_looked_into(case, ends):
    body, parameters, replaced, call = CASES[case]
    program = textwrap.dedent(PROGRAM).replace("{layers}", layers(body, parameters) + "\n")
    assert program.count(replaced) >= 1, replaced
    program = program.replace(replaced, call.format(top=f"a{LAYERS - 1}"), 1)
    report = run_text(program.encode(), "", Options(mode=Mode.PREVIEW))
    assert [loop.converts for loop in report.of(Kind.LOOP)] == [True]


def test_what_they_do_around_a_training_is_found(ends):
    """The layers stand above the training: who comes to it is asked for each of its lines."""
    program = textwrap.dedent(PROGRAM).replace("{layers}\n", "").replace("def main():", "def train(word):")
    program = program.replace("\nmain()\n", layers("train(word)", "word") + f"\n\na{LAYERS - 1}('go')\n")
    report = run_text(program.encode(), "", Options(mode=Mode.PREVIEW))
    assert len(report.of(Kind.LOOP)) == 1


@pytest.mark.parametrize("place", ["F.cross_entropy(net(x), y)", "net(x.to(device)).argmax(1)"])
def test_those_that_compute_in_a_precision_are_each_looked_into(place, ends):
    """Whether the model is called under autocast, or without gradients, is asked of whoever leads to the call."""
    scaled = """with torch.autocast("cuda", dtype=torch.float16):
                    loss = F.cross_entropy(net(x), y)
                optimizer.zero_grad()
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()"""
    body, parameters = f"return {place}", "net, x, y, device"
    program = textwrap.dedent(PROGRAM).replace("{layers}", layers(body, parameters) + "\n")
    program = program.replace(STEP, scaled.replace("\n    ", "\n"))
    program = program.replace(f"    {EPOCHS}", f"    scaler = torch.amp.GradScaler()\n    {EPOCHS}")
    head, main, tail = program.partition("def main():")
    program = head + main + tail.replace(place, f"a{LAYERS - 1}({parameters})")
    report = run_text(program.encode(), "", Options(mode=Mode.PREVIEW))
    assert [loop.converts for loop in report.of(Kind.LOOP)] == [True]
    assert b"scaler" not in report.changes[0].new


def test_those_that_ask_for_the_process_are_each_looked_into(ends):
    program = textwrap.dedent(PROGRAM).replace("{layers}", layers("return dist.get_rank() == 0", "word") + "\n")
    program = program.replace("import torch\n", "import torch\nimport torch.distributed as dist\n", 1)
    group = "dist.init_process_group('nccl')\n    rank = dist.get_rank()\n    device = torch.device('cuda', rank)"
    program = program.replace(f"device = {DEVICE}", group)
    program = program.replace("print(loss.item())", f"if a{LAYERS - 1}(epoch):\n                print(loss.item())")
    report = run_text(program.encode(), "", Options(mode=Mode.CHECK))
    assert len(report.of(Kind.LOOP)) == 1
