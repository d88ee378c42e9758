"""What a round of folds or settings has prepared is let go of in the next one, if nothing else keeps it."""

import pytest

IN_A_LOOP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
{before}
for fold in range({folds}):
    loader = DataLoader(Subset(rows, range(8 * fold, 64)), batch_size=4)
    {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {after}
print("done")
"""
IN_A_FUNCTION = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def run(rows, rate, device):
    loader = DataLoader(rows, batch_size=4)
    {made}
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {after}


def main():
    rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(len(rows))
    {calls}


main()
"""
MADE = "model = nn.Linear(2, 1)"


def in_a_loop(before="models = []", folds=3, made=MADE, after="print(fold)"):
    return IN_A_LOOP.format(before=before, folds=folds, made=made, after=after)


def in_a_function(
    made=f"{MADE}.to(device)", after="print(rate)", calls="for rate in (0.1, 0.01): run(rows, rate, device)"
):
    return IN_A_FUNCTION.format(made=made, after=after, calls=calls)


@pytest.mark.parametrize(
    "source",
    [
        in_a_loop(),
        in_a_loop(after="torch.save(model.state_dict(), f'{fold}.pt')"),
        in_a_loop(before="best = None", after="best = loss.item() if best is None else min(best, loss.item())"),
        in_a_function(),
        in_a_function(calls="run(rows, 0.1, device)\n    run(rows, 0.01, device)"),
        in_a_function(after="return loss.item()"),
    ],
)
def test_what_the_last_round_prepared_is_let_go_of(convert_text, source):
    _, after = convert_text(source)

    assert "accelerator.free_memory()\n    loader, model, optimizer = accelerator.prepare(" in after


def test_loaders_that_were_prepared_once_go_on(convert_text):
    loader = "    loader = DataLoader(Subset(rows, range(8 * fold, 64)), batch_size=4)\n"
    source = in_a_loop(before="loader = DataLoader(rows, batch_size=4)").replace(loader, "")

    _, after = convert_text(source)

    assert "\nloader = accelerator.prepare(loader)\n" in after
    assert "\n    accelerator.free_memory()\n    model, optimizer = accelerator.prepare(model, optimizer)\n" in after


@pytest.mark.parametrize(
    "source",
    [
        in_a_function(calls="run(rows, 0.1, device)"),
        in_a_function(after="return model", calls="models = [run(rows, 0.1, device), run(rows, 0.01, device)]"),
        in_a_function(
            after="return loss.item(), model", calls="for rate in (0.1, 0.01): _, net = run(rows, rate, device)"
        ),
        in_a_loop(after="models.append(model)"),
        in_a_loop(after="models += [model]"),
        in_a_loop(before="models = {}", after="models[fold] = model"),
        in_a_loop(before="best = None", after="best = (fold, model)"),
    ],
)
def test_what_is_kept_or_made_once_is_not(convert_text, source):
    _, after = convert_text(source)

    assert "free_memory" not in after
