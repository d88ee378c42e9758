"""A result that gets a name of its own, where the device is a parameter that gives way to the accelerator."""

import pytest

PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def run(model, loader, device, optimizer, train):
    for x, y in loader:
        with torch.set_grad_enabled(train):
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def evaluate(model, loader, {parameter}):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += (model(x.to(device)) - y.to(device)).abs().sum().item()
    {end}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_loader = DataLoader(TensorDataset(torch.randn(32, 2), torch.ones(32, 1)), batch_size=8)
    test_loader = DataLoader(TensorDataset(torch.randn(13, 2), torch.ones(13, 1)), batch_size=8)
    model = nn.Linear(2, 1).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    run(model, train_loader, device, optimizer, True)
    run(model, test_loader, device, optimizer, False)
    evaluate(model, train_loader, device)


if __name__ == "__main__":
    main()
"""
DEVICE = "outputs = model(x.to(accelerator.device))"


def test_the_move_goes_to_the_device_of_the_accelerator(convert_text, numbers_printed):
    source = PROGRAM.format(parameter="device", end="print(total)")
    _, text = convert_text(source)
    assert DEVICE in text
    assert numbers_printed(text, 1) == numbers_printed(source, 1)


@pytest.mark.parametrize(
    ("parameter", "end"),
    [
        ('device, place="cpu"', "print(total, place)"),  # beside another one
        ("device", "print(total, device, device)"),  # the function keeps it as a variable
    ],
)
def test_so_it_does_by_any_name(parameter, end, convert_text):
    _, text = convert_text(PROGRAM.format(parameter=parameter, end=end))
    assert DEVICE in text or "device = accelerator.device" in text
