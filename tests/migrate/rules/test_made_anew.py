"""Tensors that a training loop makes anew of its batches: what is computed from them is of the process's own share."""

import pytest

PROGRAM = """
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    data = TensorDataset(torch.arange(24.0).view(12, 2) / 24, torch.arange(12.0).view(12, 1) / 12)
    loader = DataLoader(data, batch_size=SIZE, shuffle=True)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


    def compute(x, y):
        return torch.nn.functional.mse_loss(model(x), y)


    for epoch in range(2):
        for x, y in loader:
            MADE
            loss = compute(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        AFTER
"""
WAYS = {
    "tensor": "x, y = torch.tensor(x, dtype=torch.float32), y",
    "both": "x = torch.tensor(x)\n            y = torch.tensor(y)",
    "through NumPy": "x = torch.from_numpy(x.numpy())\n            y = torch.as_tensor(y.numpy())",
    "by their type": "x = torch.FloatTensor(x.tolist())\n            y = torch.FloatTensor(y.numpy())",
}


def program(made, after, size):
    return PROGRAM.replace("MADE", made).replace("AFTER", after).replace("SIZE", str(size))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
def test_the_last_loss_is_that_of_all_processes(convert_text, numbers_printed, way):
    before = program(WAYS[way], "print(loss.item())", 4)
    _, result = convert_text(program(WAYS[way], "print(loss.item())", 2))
    assert "loss = accelerator.reduce(loss, " in result
    alone = numbers_printed(convert_text(before)[1], 1)
    assert numbers_printed(result, 2) == pytest.approx(alone)


def test_what_is_no_mean_is_told(convert_text):
    report, _ = convert_text(program(WAYS["both"], "print(loss.item() ** 2, x.sum())", 4))
    said = [finding.message for finding in report.findings]
    assert any(text.startswith("x, read after this loop, is of one process's share") for text in said)


def test_what_is_only_as_large_as_the_batch_is_not(convert_text):
    made = f"{WAYS['both']}\n            state = torch.zeros(x.size(1))"
    report, _ = convert_text(program(made, "print(state)", 4))
    assert not [finding for finding in report.findings if finding.message.startswith("state")]
