"""What the main process sends to the others: it goes on being sent, by the library's function of that name."""

import pytest

from migrate.options import Target

SOURCE = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def tell(flag):
    dist.broadcast(flag, src=0)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    x = torch.randn(32, 2, generator=torch.Generator().manual_seed(0))
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    net = nn.Linear(2, 1)
    {before}
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
        stop = torch.zeros(1)
        if dist.get_rank() == 0:
            losses.append(loss.item())
            if len(losses) > 2:
                stop += 1
        {sent}
        if stop.item():
            break
    if dist.get_rank() == 0:
        print(epoch)


main()
"""


def source(sent, before="pass"):
    return SOURCE.format(sent=sent, before=before)


@pytest.mark.parametrize(
    "sent",
    ["dist.broadcast(stop, src=0)", "dist.broadcast(stop, 0)", "torch.distributed.broadcast(tensor=stop, src=0)"],
)
def test_a_decision_of_the_main_process_is_sent(convert_text, sent):
    _, changed = convert_text(source(sent))
    assert "        broadcast(stop)\n        if stop.item():" in changed
    assert "from runtime import Accelerator, DataLoaderConfiguration, broadcast\n" in changed


def test_it_comes_to_every_process(convert_text, numbers_printed):
    _, changed = convert_text(source("dist.broadcast(stop, src=0)"))
    assert numbers_printed(changed, 1) == numbers_printed(changed, 2) == [2.0]


def test_accelerate_has_it_among_its_helpers(convert_text):
    _, changed = convert_text(source("dist.broadcast(stop, src=0)"), target=Target.ACCELERATE)
    assert "from accelerate.utils import broadcast\n" in changed


def test_objects_are_sent_in_their_list(convert_text):
    before = 'name = ["run"]\n    dist.broadcast_object_list(name, src=0)'
    _, changed = convert_text(source("dist.broadcast(stop, src=0)", before))
    assert "    broadcast_object_list(name)\n" in changed


def test_a_function_of_the_project_sends_what_it_is_given(convert_text):
    _, changed = convert_text(source("tell(stop)"))
    assert "def tell(flag):\n    broadcast(flag)\n" in changed
    assert "        tell(stop)\n" in changed


LEAVING = "    if not dist.is_initialized():\n        return\n    dist.broadcast(flag, src=0)"


def test_a_function_that_one_process_leaves_goes_on_sending(convert_text, numbers_printed):
    program = source("tell(stop)").replace("    dist.broadcast(flag, src=0)", LEAVING)
    _, changed = convert_text(program)
    assert "    if accelerator.num_processes == 1:\n        return\n    broadcast(flag)\n" in changed
    assert numbers_printed(changed, 2) == [2.0]


BRANCH = """if dist.get_world_size() > 1:
            kept = [bool(stop.item()) if dist.get_rank() == 0 else None]
            dist.broadcast_object_list(kept, src=0)
            if dist.get_rank() != 0:
                stop += float(kept[0])"""


def test_a_branch_that_does_more_than_that_stays(convert_text, numbers_printed):
    _, changed = convert_text(source(BRANCH))
    assert "        if accelerator.num_processes > 1:\n            kept = [" in changed
    assert numbers_printed(changed, 2) == [2.0]


@pytest.mark.parametrize("asked", ["dist.get_world_size() > 1", "dist.is_initialized()"])
def test_what_only_several_processes_send_is_sent(convert_text, asked):
    _, changed = convert_text(source(f"if {asked}:\n            dist.broadcast(stop, src=0)"))
    assert "        broadcast(stop)\n        if stop.item():" in changed


@pytest.mark.parametrize(
    "sent",
    ["dist.broadcast(stop, src=1)", "dist.broadcast(stop, src=0, async_op=True)", "dist.broadcast(stop * 1, src=0)"],
)
def test_what_the_library_does_not_send_so_is_refused(refused_text, sent):
    refused_text(source(sent), "MIG113", sent, ("broadcast",))


def test_parameters_are_the_same_anyway(convert_text):
    before = "for p in net.parameters():\n        dist.broadcast(p.data, src=0)"
    _, changed = convert_text(source("dist.broadcast(stop, src=0)", before))
    assert "    broadcast(stop)\n" in changed
    assert "parameters():" not in changed
