"""A default that is the device of the file, `def accuracy(net, loader, device=device)`, is read where that is made."""

import textwrap

import pytest

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


    {accuracy}


    def train(net, loader, optimizer, device):
        net = net.to(device)
        for epoch in range(2):
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                loss = nn.functional.cross_entropy(net(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(loss.item(), accuracy(net, loader))


    net = nn.Linear(4, 3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)))
    train(net, DataLoader(data, batch_size=8, shuffle=True), optimizer, device)
"""
COUNTED = """
        hits, total = torch.zeros(1).to(device), 0
        with torch.no_grad():
            for x, y in loader:
                hits += (net(x.to(device)).argmax(1) == y.to(device)).float().sum()
                total += len(y)
        return hits.cpu().item() / total
"""
WAYS = {
    "a function's": "def accuracy(net, loader, device=device):" + COUNTED,
    "one by its keyword alone": "def accuracy(net, loader, *, device=device):" + COUNTED,
    "what is made of it": "def accuracy(net, loader, device=torch.device(device)):" + COUNTED,
}


@pytest.mark.parametrize("way", WAYS)
def test_the_device_stays_where_a_default_reads_it(convert_text, numbers_printed, on_pretended_gpu, way):
    source = textwrap.dedent(PROGRAM.format(accuracy=WAYS[way].strip()))
    _, converted = convert_text(source)
    assert "\ndevice = accelerator.device\n" in converted
    assert numbers_printed(converted, 1) == numbers_printed(source, 1)
    assert [float(each) for each in on_pretended_gpu(converted).split()] == numbers_printed(source, 1)


def test_one_that_is_given_another_name_stays_too(convert_text):
    source = PROGRAM.format(accuracy=WAYS["a function's"].strip().replace("device=device", "where=device"))
    _, converted = convert_text(source.replace("    hits, total =", "    device = where\n        hits, total ="))
    assert "\ndevice = accelerator.device\n" in converted
