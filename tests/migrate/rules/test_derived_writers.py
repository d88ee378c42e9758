"""Classes of the project that derive from TensorBoard's writer: one process has one, and writes."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from {library} import SummaryWriter


class Writer(SummaryWriter):
    def __init__(self, folder):
        super(Writer, self).__init__(folder)
        self.is_first = True

    def log_training(self, loss, step):
        self.add_scalar("loss", loss, step)

    def log_epoch(self, loss, model, step):
        self.add_scalar("epoch", loss, step)
        self.log_weights(model, step)
        if self.is_first:
            self.add_scalar("first", loss, step)
            self.is_first = False

    def log_weights(self, model, step):
        for tag, value in model.named_parameters():
            self.add_histogram(tag, value.cpu().detach().numpy(), step)


def train(loader, writer):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    step = 0
    for epoch in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            step += 1
            writer.log_training(loss.item(), step)
        writer.log_epoch(loss.item(), model, step)


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 1)), batch_size=4)
    writer = Writer("logs")
    train(loader, writer)


main()
"""


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorboardX"])
def test_only_the_main_process_writes(convert_text, library):
    report, result = convert_text(SOURCE.format(library=library))

    assert not report.of(Kind.LEFT)
    assert 'writer = Writer("logs") if accelerator.is_main_process else None' in result
    assert "if accelerator.is_main_process:\n                writer.log_training(loss.item(), step)" in result
    assert "if accelerator.is_main_process:\n            writer.log_epoch(" in result
    assert "for tag, value in accelerator.unwrap_model(model).named_parameters():" in result


def test_a_method_that_the_library_has_gets_no_other_parameters(convert_text):
    report, _ = convert_text(SOURCE.format(library="tensorboardX").replace("log_weights", "add_weights"))

    assert [f.code for f in report.of(Kind.LEFT)] == ["MIG904"]


IN_A_LIST = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
writers = []
for name in ("a", "b"):
    writers.append(SummaryWriter(name))
loader = DataLoader(TensorDataset(torch.ones(64, 4), torch.ones(64)), batch_size=4)
net = nn.Linear(4, 4).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for i, (x, y) in enumerate(loader):
    x = x.to(device)
    loss = nn.functional.mse_loss(net(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if i < len(writers):
        writers[i].add_scalar("loss", loss.item(), i)
{end}
"""


def test_writers_in_a_list_are_none_on_the_other_processes(convert_text):
    _, result = convert_text(IN_A_LIST.format(end="for writer in writers:\n    writer.close()"))

    assert "    writers.append(SummaryWriter(name) if accelerator.is_main_process else None)\n" in result
    assert "if i < len(writers) and accelerator.is_main_process:" in result


def test_what_is_asked_of_writers_in_a_list_is_asked_by_all_and_said(convert_text):
    report, result = convert_text(IN_A_LIST.format(end="folder = writers[0].get_logdir()\nprint(folder)"))

    assert "writers.append(SummaryWriter(name))" in result
    assert any("every process makes this writer" in finding.message for finding in report.findings)
