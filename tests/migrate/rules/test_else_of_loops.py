"""`for x, y in loader: ... else: ...`: where nothing breaks the loop off, its `else` runs when it is over."""

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.arange(16.0).view(16, 1) / 16
loader = DataLoader(TensorDataset(inputs, 2 * inputs), batch_size={size})
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
history = []
best = 9.0
for epoch in range(3):
    total = 0
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        losses.append(loss.item())
{more}
    else:
{after}
"""
SHOWN = "        history.append(total / len(loader))\n        print(total / len(loader))\n    print(history[-1])"
JOINED = "        total = sum(accelerator.gather_for_metrics([total])) / accelerator.num_processes\n"
SAVED = """\
        if total / len(loader) < best:
            best = total / len(loader)
            torch.save(model.state_dict(), "best.pt")
"""
LEAVING = "        if epoch == 2:\n            break"


def program(after, more="", size=4):
    return PROGRAM.format(after=after, more=more, size=size)


def test_what_the_loop_has_added_up_is_joined_where_it_is_over(convert_text):
    report, text = convert_text(program(SHOWN))

    assert f"    else:\n{JOINED}        history.append(total / len(loader))\n" in text
    assert not any("share of the data" in finding.message for finding in report.findings)


def test_the_numbers_on_two_processes_are_those_of_one(convert_text, numbers_printed):
    _, whole = convert_text(program(SHOWN))
    _, halves = convert_text(program(SHOWN, size=2))

    one, two = numbers_printed(whole, 1), numbers_printed(halves, 2)
    assert len(one) == 6
    assert all(abs(a - b) < 1e-6 for a, b in zip(one, two, strict=True))


def test_a_list_is_joined_there_too(convert_text):
    _, text = convert_text(program("        print(len(losses), max(losses))"))

    assert "    else:\n        losses = accelerator.gather_for_metrics(losses)\n" in text


def test_what_is_saved_by_a_number_is_saved_by_that_of_all(convert_text):
    _, text = convert_text(program(SAVED))

    assert f"    else:\n{JOINED}        if total / len(loader) < best:\n" in text


def test_what_is_read_below_as_well_is_joined_once(convert_text):
    _, text = convert_text(program(SHOWN + "\n    print(total / len(loader))"))

    assert text.count(JOINED.strip()) == 1


def test_an_else_that_a_break_leaves_out_is_told(convert_text):
    report, text = convert_text(program(SHOWN, LEAVING))

    assert JOINED not in text
    assert any("total shows one process's share" in finding.message for finding in report.findings)


def test_a_file_goes_by_the_number_of_all_where_a_break_may_leave_it_out(convert_text):
    _, text = convert_text(program(SAVED, LEAVING))

    assert JOINED not in text
    assert 'if accelerator.reduce(total / len(loader), reduction="mean") < ' in text


def test_an_epoch_that_ends_by_what_is_not_known_of_all_is_refused(convert_text):
    source = program("        if losses and losses[-1] < model.bias.item() - total:\n            break")
    report, text = convert_text(source.replace("total += loss.item()", "total = hash((total, loss))"))

    assert text == source.replace("total += loss.item()", "total = hash((total, loss))")
    assert any(finding.code == "MIG122" for finding in report.findings)
