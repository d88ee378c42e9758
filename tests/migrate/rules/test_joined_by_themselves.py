"""Objects that join themselves over the processes: they go on doing so after a training, not after an evaluation."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n):
        self.total += value * n
        self.count += n

    def join(self{more}):
        if not dist.is_initialized():
            return
        t = torch.tensor([self.total, self.count])
        dist.all_reduce(t)
        self.total, self.count = t.tolist()
        {gives}

    def mean(self):
        return self.total / self.count


class Meters:
    def __init__(self):
        self.meters = {{"loss": Meter()}}

    def join(self):
        for meter in self.meters.values():
            meter.join()


def train(model, loader, optimizer):
    meters = Meters()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        {backward}
        optimizer.step()
        meters.meters["loss"].update(loss.item(), len(x))
    {after}
    meters.join()
    return meters.meters["loss"].mean()


def test(model, loader):
    model.eval()
    meters = Meters()
    with torch.no_grad():
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            meters.meters["loss"].update(loss.item(), len(x))
    meters.join()
    model.train()
    return meters.meters["loss"].mean()


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    test_loader = DataLoader(data, batch_size=4)
    model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    best = 1e9
    for epoch in range(2):
        sampler.set_epoch(epoch)
        found = train(model, loader, optimizer)
        print(found, test(model, test_loader))
        if found > best:
            break
        best = found


{end}
main()
"""


def program(more="", gives="", backward="loss.backward()", after="", end=""):
    return PROGRAM.format(more=more, gives=gives, backward=backward, after=after, end=end)


def said(report):
    return [finding.message for finding in report.findings if finding.kind in (Kind.NOTE, Kind.LEFT)]


def test_what_is_joined_after_a_training_stays(convert_text):
    report, result = convert_text(program())

    assert '        t = accelerator.reduce(t, reduction="sum")\n' in result
    assert "        if accelerator.num_processes == 1:\n            return\n" in result
    body, _, evaluation = result.partition("def test(")
    assert "    meters.join(accelerator)\n" in body
    assert ".join(" not in evaluation
    assert not [text for text in said(report) if "read after this loop" in text]


def test_the_end_of_the_training_may_go_by_it(convert_text):
    _, result = convert_text(program())

    assert "        if found > best:\n            break\n" in result
    assert result.count(".reduce(") == 1


OTHERWISE = {
    "it gives something": {"gives": "return self.total"},
    "it is told something": {"more": ", times=1"},
    "a test decides that the loop trains": {"backward": "if epochs:\n            loss.backward()"},
    "it is read before": {"after": "print(meters.meters['loss'].mean())"},
    "another call of it": {"end": "print(Meter().join())"},
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_not_understood_goes_as_it_went(convert_text, name):
    _, result = convert_text(program(**OTHERWISE[name]))

    assert 'reduction="sum")' not in result


def test_what_decides_in_a_step_is_agreed_on_and_joined_once(convert_text):
    step = "loss.backward()\n        if meters.meters['loss'].mean() > 9:\n            break"
    _, result = convert_text(program(backward=step))

    assert "        if any(accelerator.gather_for_metrics([bool(meters.meters['loss'].mean() > 9)])):\n" in result
    assert '        meters.meters["loss"].update(loss.item(), len(x))\n' in result
    assert result.count(".reduce(") == 1


SCRIPT = """
import torch
import torch.distributed as dist
from meters import Meters
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def {name}(model, loader, optimizer):
    meters = Meters()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meters.meters["loss"].update(loss.item(), len(x))
    meters.join()
    print(meters.meters["loss"].mean())


def main():
    dist.init_process_group("gloo")
    data = TensorDataset(torch.arange(16.0).view(8, 2), torch.ones(8, 1))
    loader = DataLoader(data, batch_size=int({batch} / dist.get_world_size()), sampler=DistributedSampler(data))
    model = nn.Linear(2, 1)
    nn.init.constant_(model.weight, 0.5)
    nn.init.constant_(model.bias, 0.1)
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = optim.SGD(model.parameters(), lr=0.001)
    {name}(model, loader, optimizer)


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def two_scripts(tmp_path):
    """The texts of scripts that share meters, and of these, as they are converted and written."""
    (tmp_path / "meters.py").write_text(program().partition("def train(")[0])
    for name, batch in (("teach", 4), ("probe", 2)):
        (tmp_path / f"{name}.py").write_text(SCRIPT.format(name=name, batch=batch))
    report = run(["."], Options())
    for change in report.changes:
        (tmp_path / change.path).write_bytes(change.new)
    return {change.path: change.new.decode() for change in report.changes}


def test_it_stays_where_several_scripts_train_with_it(two_scripts):
    assert two_scripts.keys() == {"meters.py", "probe.py", "teach.py"}
    assert '        t = accelerator.reduce(t, reduction="sum")\n' in two_scripts["meters.py"]
    for script in ("probe.py", "teach.py"):
        assert "    meters.join(accelerator)\n" in two_scripts[script]


def test_each_of_these_prints_what_one_process_prints(two_scripts, numbers_printed):
    for text in (two_scripts["teach.py"], two_scripts["probe.py"]):
        assert numbers_printed(text, 2) == pytest.approx(numbers_printed(text, 1))
