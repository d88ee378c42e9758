"""Loaders of which each step of a training takes a batch beside the one that its loop runs over (contract E2)."""

import pytest

TWO = """
import itertools
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)

def rounds(loader):
    while True:
        for batch in loader:
            yield batch

x = torch.rand(40, 2)
few = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size={size}, shuffle=True)
many = DataLoader(TensorDataset(torch.rand(96, 2)), batch_size={size}, shuffle=True)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
{begun}
for epoch in range(2):
    for (u,) in many:
        {take}
        optimizer.zero_grad()
        {loss}.backward()
        optimizer.step()
print(*(round(each, 4) for each in model.weight.flatten().tolist()))
"""
LOSS = "(nn.functional.mse_loss(model(x), y) + model(u).pow(2).mean())"
AGAIN = """try:
            x, y = next(batches)
        except StopIteration:
            batches = iter(few)
            x, y = next(batches)"""
TAKEN = {
    "begun again where it ends": ("batches = iter(few)", AGAIN),
    "by a generator": ("batches = rounds(few)", "x, y = next(batches)"),
    "by a cycle": ("batches = itertools.cycle(few)", "x, y = next(batches)"),
    "by its method": ("batches = rounds(few)", "x, y = batches.__next__()"),
}
NOT_TRAINED_ON = {
    "without gradients": "with torch.no_grad():\n            x, y = next(batches)\n            model(x)",
    "at times": "if epoch == 1: print(next(batches)[0].shape)",
}


def _source(size, begun, take, loss=LOSS):
    return TWO.format(size=size, begun=begun, take=take, loss=loss)


@pytest.mark.parametrize("name", TAKEN)
def test_each_process_takes_its_share_of_both(convert_text, numbers_printed, name):
    _, result = convert_text(_source(4, *TAKEN[name]))
    alone = numbers_printed(_source(8, *TAKEN[name]), 1)

    assert "accelerator.prepare(few, many, model, optimizer)" in result
    assert numbers_printed(result, 2)[:2] == pytest.approx(alone, abs=2e-4)


@pytest.mark.parametrize("name", NOT_TRAINED_ON)
def test_what_is_only_looked_at_stays_whole(convert_text, name):
    _, result = convert_text(_source(4, "batches = rounds(few)", NOT_TRAINED_ON[name], "model(u).pow(2).mean()"))

    assert "accelerator.prepare(many, model, optimizer)" in result


def test_both_are_prepared_above_an_iterator_that_is_begun_early(convert_text, numbers_printed):
    begun, take = TAKEN["begun again where it ends"]
    early = _source("{size}", "", take).replace("model = nn", f"{begun}\nmodel = nn")
    _, result = convert_text(early.format(size=4))

    assert "few, many = accelerator.prepare(few, many)" in result
    assert numbers_printed(result, 2)[:2] == pytest.approx(numbers_printed(early.format(size=8), 1), abs=2e-4)


WHOLE = "model(u).pow(2).mean()"
PENALTY = "nn.functional.mse_loss(model(x), y)"
STEP = f"""
            optimizer.zero_grad()
            {PENALTY}.backward()
            optimizer.step()"""
AT_TIMES = {
    "in every other step": f"if len(seen) % 2: x, y = next(batches); loss = loss + {PENALTY}",
    "with a step of its own": f"if len(seen) % 2:\n            x, y = next(batches){STEP}",
    "in a function": "if len(seen) % 2: loss = loss + penalty()",
    "by what the batch comes to": f"if loss.item() > 0.2: x, y = next(batches); loss = loss + {PENALTY}",
}
FUNCTION = f"""
seen = []
def penalty():
    x, y = next(batches)
    return {PENALTY}
"""


@pytest.mark.parametrize("name", AT_TIMES)
def test_a_batch_that_is_trained_on_at_times_is_shared_out_too(convert_text, numbers_printed, name):
    source = TWO.replace("\n        {take}", f"\n        seen.append(0)\n        loss = {WHOLE}\n        {{take}}")
    if name == "with a step of its own":
        source = source.replace("        {take}", "").replace("step()\n", "step()\n        {take}\n")
    begun = f"batches = itertools.cycle(few){FUNCTION}"
    _, result = convert_text(source.format(size=4, begun=begun, take=AT_TIMES[name], loss="loss"))
    alone = numbers_printed(source.format(size=8, begun=begun, take=AT_TIMES[name], loss="loss"), 1)

    assert "few, many, model, optimizer = accelerator.prepare(" in result
    assert ("if accelerator.reduce(loss.item(), reduction='mean') > 0.2" in result.replace('"', "'")) == ("by" in name)
    assert numbers_printed(result, 2)[:2] == pytest.approx(alone, abs=2e-4)


def test_where_the_processes_cannot_agree_on_the_next_batch_it_is_refused(refused_text):
    source = TWO.replace("\n        {take}", f"\n        loss = {WHOLE}\n        {{take}}")
    take = f"for _ in range(int(loss.item() * 9)): x, y = next(batches); loss = loss + 0.1 * {PENALTY}"
    source = source.format(size=4, begun="batches = itertools.cycle(few)", take=take, loss="loss")
    refused_text(source, "MIG122", "for _ in range", ("part ways",))


MEASURED = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)

def measure():
    global batches
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(held)
        x, y = next(batches)
    with torch.no_grad():
        return nn.functional.mse_loss(model(x), y)

x = torch.rand(48, 2)
rows = TensorDataset(x, x.sum(1, keepdim=True))
loader, held = DataLoader(rows, batch_size={size}), DataLoader(rows, batch_size=8, shuffle=True)
batches = iter(held)
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = 9.0
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y){more}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    best = min(best, measure().item())
print(best)
"""


def test_what_a_function_measures_on_its_own_batches_is_of_whole_ones(convert_text, numbers_printed):
    _, result = convert_text(MEASURED.format(size=4, more=""))

    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in result
    (alone,) = numbers_printed(MEASURED.format(size=8, more=""), 1)
    assert numbers_printed(result, 2)[0] == pytest.approx(alone, abs=1e-5)


def test_what_a_function_gives_to_the_loss_is_trained_on(convert_text):
    _, result = convert_text(MEASURED.format(size=4, more=" + measure()"))

    assert "accelerator.prepare(loader, held)" in result
