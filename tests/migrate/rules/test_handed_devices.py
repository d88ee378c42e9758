"""A device that the function of the accelerator is handed: its model is on the accelerator's, whatever it was told."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
    import argparse

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)


    class Denoiser(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(4, 4)

        def forward(self, x):
            return ((self.net(x) - x) ** 2).mean()

        def sample(self, n, device):
            return self.net(torch.randn(n, 4).to(device))


    def train({parameters}):
        model = Denoiser()
        model.to(device)
        loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(2):
            for (x,) in loader:
                optimizer.zero_grad()
                loss = model(x.to(device))
                loss.backward()
                optimizer.step()
            with torch.no_grad():
                {use}


    if __name__ == "__main__":
        {call}
"""
MOVED = "rows = torch.randn(2, 4).to(device)"
WAYS = {
    "by default": ("epochs=2, device='cuda:1'", "train()"),
    "by a caller": ("device", "train('cuda:1')"),
    "by name": ("device, epochs=2", "train(device='cuda:1')"),
    "by keyword alone": ("*, device", "train(device='cuda:1')"),
    "by default, where there is one": ("device='cuda' if torch.cuda.is_available() else 'cpu'", "train()"),
    "as an object": ("device", "train(torch.device('cuda:0' if torch.cuda.is_available() else 'cpu'))"),
}


def program(parameters, call, use=MOVED):
    return PROGRAM.format(parameters=parameters, call=call, use=use)


@pytest.mark.parametrize("name", WAYS)
def test_what_reads_it_below_is_on_the_device_of_the_accelerator(convert_text, name):
    _, text = convert_text(program(*WAYS[name]))
    assert "rows = torch.randn(2, 4).to(accelerator.device)" in text
    assert ".to(device)" not in text.replace("self.net(torch.randn(n, 4).to(device))", "")


def test_what_may_ask_for_a_text_is_handed_one(convert_text):
    _, text = convert_text(program("device='cuda:1'", "train()", "rows = model.sample(8, device)"))
    assert "accelerator.unwrap_model(model).sample(8, accelerator.device.type)" in text


def test_the_function_keeps_a_name_that_it_reads_often(convert_text):
    use = "rows = [torch.ones(1).to(device), torch.ones(2).to(device), torch.ones(3).to(device)]"
    _, text = convert_text(program("device='cuda:1'", "train()", use))
    assert "    accelerator = Accelerator()\n    device = accelerator.device\n" in text
    assert use in text


def test_a_number_in_it_is_said(convert_text):
    report, _ = convert_text(program("device='cuda:1'", "train()"))
    said = [finding for finding in report.findings if "no longer chooses the GPU" in finding.message]
    assert [finding.message.partition(" no longer")[0] for finding in said] == ["'cuda:1'"]


def test_a_device_that_nothing_reads_any_more_is_not_said_to_stay(convert_text):
    chosen = "device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n        train(device)"
    report, _ = convert_text(program("device", chosen))
    assert not any("stays the GPU or the CPU" in finding.message for finding in report.findings)


def test_what_a_user_names_goes_on_deciding_whether_it_is_the_cpu(convert_text):
    asked = "parser = argparse.ArgumentParser()\n        parser.add_argument('--device', default='cuda:0')"
    _, text = convert_text(
        program("device", f"{asked}\n        args = parser.parse_args()\n        train(args.device)")
    )
    assert "accelerator = Accelerator(cpu=torch.device(device).type == 'cpu')" in text
    assert "rows = torch.randn(2, 4).to(accelerator.device)" in text


def test_a_device_that_the_function_makes_of_it_is_its_own_matter(convert_text):
    _, text = convert_text(
        program("place='cuda:0'", "train()", MOVED).replace(
            "        model = Denoiser()", "        device = torch.device(place)\n        model = Denoiser()"
        )
    )
    assert "device = accelerator.device" in text or "accelerator.device)" in text


FIRST = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)


    class Net(nn.Module):
        def __init__(self, width, device={default}):
            super().__init__()
            self.device = device
            self.layer = nn.Linear(width, 4)

        def forward(self, x):
            return self.layer(x + torch.ones(4).to(self.device))


    def softened(x, *, device={default}):
        return x + torch.ones(4).to(device)


    def fed(model, x, device={default}):
        return model(x.to(device))


    model = Net(4).to("cuda:0")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8):
        optimizer.zero_grad()
        softened(fed(model, x)).mean().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("default", "becomes"),
    [
        ("'cuda:0'", "'cuda'"),
        ('torch.device("cuda:0")', 'torch.device("cuda")'),
        ("'cuda:0' if torch.cuda.is_available() else 'cpu'", "'cuda' if torch.cuda.is_available() else 'cpu'"),
    ],
)
def test_a_first_gpu_that_is_the_default_is_that_of_the_process_where_it_is_read(convert_text, default, becomes):
    _, text = convert_text(FIRST.format(default=default))
    assert f"def __init__(self, width, device={becomes}):" in text
    assert f"def softened(x, *, device={becomes}):" in text
    assert f"def fed(model, x, device={default}):\n    return model(x)\n" in text  # nothing reads it any more


def test_a_first_gpu_that_is_compared_by_its_name_stays_the_default(convert_text):
    compared = "self.device = device\n            assert device != 'cuda:0' or torch.cuda.is_available()"
    _, text = convert_text(FIRST.format(default="'cuda:0'").replace("self.device = device", compared))
    assert "def __init__(self, width, device='cuda:0'):" in text


MOVED_WITHIN_A_CALL = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, device):
    model.train()
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def evaluate(model, loader, device):
    model.eval()
    found = []
    with torch.no_grad():
        for x, y in loader:
            out = model(x.to(device)).cpu()
            for row, wanted in zip(out, y):
                found.append(abs(row - wanted).item())
    return sum(found) / len(found)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(22, 2), torch.randn(22, 1))
    train_loader = DataLoader(data, batch_size=4)
    val_loader = DataLoader(data, batch_size=4)
    model = nn.Linear(2, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    train(model, train_loader, optimizer, device)
    print("%.6f" % evaluate(model, val_loader, device))


main()
"""


def test_what_is_moved_within_a_call_that_is_gathered_goes_to_the_accelerators_device(convert_text, numbers_printed):
    report, text = convert_text(MOVED_WITHIN_A_CALL)

    assert not report.of(Kind.LEFT)
    assert "outputs = model(x.to(accelerator.device))\n" in text
    assert numbers_printed(text, 1) == numbers_printed(text, 2) == numbers_printed(MOVED_WITHIN_A_CALL, 1)
