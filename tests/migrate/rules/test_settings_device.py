"""The device that a file of settings names: nobody knows it, so it goes on deciding, or the program is left."""

import pytest

PROGRAM = """
    import torch
    import yaml
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    with open("config.yml") as file:
        config = yaml.safe_load(file)
    torch.manual_seed(0)
    device = {device}
    model = nn.Linear(4, 4)
    model.to(device)
    loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = model(x.to(device)).mean()
            loss.backward()
            optimizer.step()
"""
NAMED = ["config['device']", "config['train']['device']", "config.get('device', 'cuda')"]
UNKNOWN = [
    *NAMED,
    "config.get('device', 'cpu')",
    "config['device'] if torch.cuda.is_available() else 'cpu'",
    "config['device'] or 'cuda'",
]


@pytest.mark.parametrize("device", NAMED)
def test_a_device_that_is_made_of_it_decides_whether_it_is_the_cpu(convert_text, device):
    _, text = convert_text(PROGRAM.format(device=f"torch.device({device})"))
    assert f"Accelerator(cpu=torch.device({device}).type == 'cpu')" in text


def test_so_it_does_where_it_is_one_of_two(convert_text):
    device = "torch.device(config['device'] if torch.cuda.is_available() else 'cpu')"
    _, text = convert_text(PROGRAM.format(device=device))
    assert "Accelerator(cpu=torch.device(config['device']).type == 'cpu')" in text


@pytest.mark.parametrize("device", UNKNOWN)
def test_where_it_moves_to_is_not_known(refused_text, device):
    source = PROGRAM.format(device=device).replace("    model.to(device)\n", "")
    refused_text(source, "MIG103", "x.to(device)")


def test_an_object_that_holds_its_device_is_left_with_its_default_too(refused_text):
    source = PROGRAM.format(device="config.get('device', 'cpu')")
    first, second = source.split("    loader = ")
    trainer = (
        "    class Trainer:\n        def __init__(self, model, device=torch.device('cpu')):\n"
        "            self.model, self.device = model, device\n"
        "            self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)\n\n"
        "        def fit(self, loader):\n            for (x,) in loader:\n                self.optimizer.zero_grad()\n"
        "                loss = self.model(x.to(self.device)).mean()\n                loss.backward()\n"
        "                self.optimizer.step()\n\n\n"
    )
    loader = second.splitlines()[0]
    source = f"{first}    loader = {loader}\n{trainer}    Trainer(model, device).fit(loader)\n"
    refused_text(source, "MIG103", "x.to(self.device)")
