"""Schedulers that are stepped per epoch, and made for the length of a loader: prepare must not shorten them."""

TEXT = """
import torch
from torch import nn, optim

loader = torch.utils.data.DataLoader(rows, batch_size=2)
model = nn.Linear(2, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
SCHEDULE
for epoch in range(9):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
    schedule.step()
"""
MADE = "schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(loader))"


def test_it_is_made_for_the_length_that_the_original_sees(convert_text):
    _, result = convert_text(TEXT.replace("SCHEDULE", MADE))

    assert result.index(MADE) < result.index("loader, model, optimizer = accelerator.prepare(loader, model, optimizer)")


def test_it_is_refused_where_it_can_only_be_made_afterwards(refused_text):
    head, _, loop = TEXT.partition("SCHEDULE\n")
    body = "".join(f"    {line}\n" for line in (MADE, *loop.splitlines()))
    text = f"{head}def fit(model, optimizer, loader):\n{body}\nfit(model, optimizer, loader)\n"

    refused_text(text, "MIG118", "CosineAnnealingLR", ["stepped per epoch"])


def test_the_length_that_what_trains_the_model_reads_is_not_that_of_its_scheduler(convert_text):
    head, _, loop = TEXT.partition("SCHEDULE\n")
    body = "".join(f"    {line}\n" for line in (*loop.splitlines(), "print(len(loader))", "return model"))
    made = "schedule = optim.lr_scheduler.StepLR(optimizer, 1)"
    fit = f"def fit(model, optimizer, loader, schedule):\n{body}\n{made}\n"
    report, result = convert_text(head + fit + "model = fit(model, optimizer, loader, schedule)\n")

    assert not [finding for finding in report.findings if finding.code == "MIG118"]
    assert "accelerator.backward(loss)" in result
