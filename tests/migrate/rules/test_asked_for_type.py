"""Batches that are asked for a type that only tensors on the CPU have: they stay there until the program moves them."""

import pytest

PROGRAM = """
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.ones(32).long()), batch_size=8)
    model = nn.Linear(4, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        {asks}
        x, y = batch[0].cuda(), batch[1].cuda()
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(x.device, y.device)
"""
ASKS = {
    "a type": "assert isinstance(batch[1], torch.LongTensor)",
    "one of several": "assert isinstance(batch[0], (torch.FloatTensor, torch.DoubleTensor))",
    "in a condition": "rows = batch[0].double() if isinstance(batch[0], torch.FloatTensor) else batch[0]",
}
ASKS_NOTHING = {
    "of any tensor": "assert isinstance(batch[0], torch.Tensor)",
    "of the collection": "assert isinstance(batch, (list, tuple))",
    "of another": "assert isinstance(torch.ones(2), torch.FloatTensor)",
}


@pytest.mark.parametrize("asks", ASKS)
def test_the_batches_stay_on_the_cpu(convert_text, on_pretended_gpu, asks):
    report, text = convert_text(PROGRAM.format(asks=ASKS[asks]))
    assert "device_placement=[False, True, True]" in text
    assert "x, y = batch[0].to(accelerator.device), batch[1].to(accelerator.device)" in text
    why = "is asked for a type that tensors have on the CPU"
    assert any(why in finding.message for finding in report.findings)
    assert on_pretended_gpu(text).splitlines()[0] == "cuda:1 cuda:1"


@pytest.mark.parametrize("asks", ASKS_NOTHING)
def test_the_moves_go(convert_text, asks):
    _, text = convert_text(PROGRAM.format(asks=ASKS_NOTHING[asks]))
    assert "device_placement" not in text
    assert "x, y = batch[0], batch[1]" in text
