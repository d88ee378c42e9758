"""What a round of a loop writes and the next one reads: the main process alone writes it, so the others wait."""

import pytest

TOP = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

"""
MADE = """\
torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(16, 8), torch.randn(16, 3)), batch_size=4, shuffle=True)
model = nn.Linear(8, 3)
former = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
READ = 'former.load_state_dict(torch.load("former.pt")["net"])'
STEPS = """\
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
"""
WRITE = 'torch.save({"net": model.state_dict()}, "former.pt")\n'


def indented(text, by="    "):
    return "".join(by + line for line in text.splitlines(keepends=True))


def in_place():
    return TOP + MADE + "for epoch in range(4):\n    if epoch:\n        " + READ + "\n" + indented(STEPS + WRITE)


def in_one_function():
    body = f"    if epoch:\n        {READ}\n" + indented(STEPS + WRITE)
    loop = "for epoch in range(4):\n    train(epoch, loader, model, former, optimizer)\n"
    return TOP + "\ndef train(epoch, loader, model, former, optimizer):\n" + body + "\n\n" + MADE + loop


def in_two_functions():
    body = f"    if epoch:\n        {READ}\n" + indented(STEPS)
    keep = "\n\ndef keep(model):\n    " + WRITE
    loop = "for epoch in range(4):\n    train(epoch, loader, model, former, optimizer)\n    keep(model)\n"
    return TOP + "\ndef train(epoch, loader, model, former, optimizer):\n" + body + keep + "\n\n" + MADE + loop


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (in_place, "        former.load_state_dict("),
        (in_one_function, "    train(epoch, "),
        (in_two_functions, "    train(epoch, "),
    ],
)
def test_what_the_round_before_has_written_is_waited_for(convert_text, program, line):
    _, text = convert_text(program())
    assert text.count("wait_for_everyone") == 1
    indent = line[: len(line) - len(line.lstrip())]
    assert f"\n{indent}accelerator.wait_for_everyone()\n{line}" in text


def test_what_only_the_first_round_reads_nobody_waits_for(convert_text):
    _, text = convert_text(TOP + MADE + READ + "\nfor epoch in range(4):\n" + indented(STEPS + WRITE))
    assert "accelerator.backward" in text
    assert "wait_for_everyone" not in text


def test_two_processes_read_what_the_main_one_wrote_in_the_round_before(convert_text, numbers_printed, tmp_path):
    end = "print(sum(p.sum().item() for p in former.parameters()))\n"
    _, text = convert_text((in_two_functions() + end).replace("former.pt", f"{tmp_path}/former.pt"))
    printing = "accelerator.print(sum("
    assert printing in text
    late = "    torch.save("
    assert late in text
    text = text.replace(late, f"    __import__('time').sleep(0.5)\n{late}")
    text = text.replace(printing, "print(sum(")
    one, other = numbers_printed(text, 2)
    assert one == other
