"""Lists with an entry of each step, of which something goes by the order: they are put together step by step."""

import pytest

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.arange(32.0).reshape(32, 1)
loader = DataLoader(TensorDataset(x, x + 1), batch_size=4)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
history = []
losses, errors = [], []
for a, b in loader:
    loss = nn.functional.mse_loss(model(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    {step}
{after}
"""
STEPS = "{name} = [each for step in zip(*accelerator.gather_for_metrics([{name}])) for each in step]\n"
PLAIN = "{name} = accelerator.gather_for_metrics({name})\n"
ORDERED = {
    "printed": "print(losses)",
    "one by one": "for each_loss in losses:\n    print(each_loss)",
    "taken over": "history.extend(losses)\nprint(history)",
    "the place of one": "import numpy as np\nprint(np.argmax(losses), np.argmin(losses))",
    "beside their sum": "print(sum(losses) / len(losses))\nprint(losses)",
}
FOLDED = {
    "a sum": "print(sum(losses) / len(losses))",
    "a largest": "print(max(losses))",
    "as many": "print(len(losses))",
}


@pytest.mark.parametrize("name", ORDERED)
def test_what_goes_by_the_order_of_a_list_has_that_of_the_steps(convert_text, numbers_printed, name):
    source = SOURCE.format(step="pass", after=ORDERED[name])
    _, result = convert_text(source)
    assert STEPS.format(name="losses") in result
    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(source, 1))


@pytest.mark.parametrize("name", FOLDED)
def test_what_does_not_go_by_it_has_the_shorter_form(convert_text, name):
    _, result = convert_text(SOURCE.format(step="pass", after=FOLDED[name]))
    assert PLAIN.format(name="losses") in result


@pytest.mark.parametrize(
    ("step", "form"),
    [
        ("errors.append((model(a) - b).abs().mean().item())", STEPS),
        ("errors.append((model(a) - b).abs().mean().item())\n    errors.append(loss.item())", PLAIN),
        ("errors.extend((model(a) - b).abs().flatten().tolist())", PLAIN),
        ("if loss > 1:\n        errors.append(loss.item())", PLAIN),
    ],
    ids=["each step", "two of each", "each sample", "at times"],
)
def test_lists_are_put_together_alike(convert_text, step, form):
    _, result = convert_text(SOURCE.format(step=step, after="print(losses, errors)"))
    assert all(form.format(name=name) in result for name in ("losses", "errors"))


def test_names_that_are_taken_are_not_used(convert_text):
    after = "each = step = 1\nprint(losses, each, step)"
    _, result = convert_text(SOURCE.format(step="pass", after=after))
    assert (
        "losses = [entry for of_step in zip(*accelerator.gather_for_metrics([losses])) for entry in of_step]\n"
        in result
    )


def test_accelerate_has_the_same_form(convert_text):
    from migrate.options import Target

    _, result = convert_text(SOURCE.format(step="pass", after="print(losses)"), target=Target.ACCELERATE)
    assert STEPS.format(name="losses") in result


@pytest.mark.parametrize(
    "after",
    ["losses = sum(losses) / len(losses)\nprint(losses)", "losses.append(0.5)\nprint(max(losses))"],
    ids=["another value", "added to"],
)
def test_a_name_that_gets_another_value_or_more_entries_is_not_read_in_order(convert_text, after):
    _, result = convert_text(SOURCE.format(step="pass", after=after))
    assert PLAIN.format(name="losses") in result
