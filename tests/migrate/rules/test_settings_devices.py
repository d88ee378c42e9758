"""A device that another function has put among the settings: its flag is asked, and what reads it is the process's."""

import textwrap

import pytest

PROGRAM = """
    import argparse

    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)


    class Noise:
        def __init__(self, device):
            self.device = device

        def like(self, x):
            return torch.zeros(x.shape).to(self.device)


    {above}


    def train(args):
        {asked}
        model = nn.Linear(4, 4).to({device})
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        noise = Noise({device})
        loader = DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=8)
        for (x,) in loader:
            x = x.to({device})
            steps = torch.zeros(8, 4, device={device})
            {use}
            loss = ((model(x + noise.like(x)) - steps) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(loss.item())


    if __name__ == "__main__":
        {call}
"""
ABOVE = """
    def launch():
        parser = argparse.ArgumentParser()
        parser.add_argument("--gpu", action="store_true")
        args = parser.parse_args()
        args.device = {chosen}
        train(args)
"""
GIVEN = """
    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--gpu", action="store_true")
        args = parser.parse_args()
        args.device = {chosen}
        return args
"""
SET = """
    def parse():
        parser = argparse.ArgumentParser()
        parser.add_argument("--gpu", action="store_true")
        return parser.parse_args()


    def setup(args):
        torch.set_num_threads(1)
        args.device = {chosen}
"""
FLAGGED = "'cuda:0' if args.gpu and torch.cuda.is_available() else 'cpu'"
ALONE = "'cuda:0' if torch.cuda.is_available() else 'cpu'"
CHOSEN = {"a text": FLAGGED, "an object": f"torch.device({FLAGGED})"}
WAYS = {
    "by a caller": (ABOVE, "pass", "launch()"),
    "by a function that gives the settings": (GIVEN, "args = parse()", "train(None)"),
    "by a function that is handed them": (SET, "args = parse()\n        setup(args)", "train(None)"),
}


def program(way, chosen, device="args.device", use="pass"):
    above, asked, call = WAYS[way]
    asked = asked if device == "args.device" else f"{asked}\n        {device} = args.device"
    above = above.format(chosen=chosen).strip()
    return PROGRAM.format(above=above, asked=asked, call=call, device=device, use=use)


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("way", WAYS)
def test_the_flag_is_asked(convert_text, way, chosen):
    _, converted = convert_text(program(way, CHOSEN[chosen]))
    assert '    accelerator = Accelerator(cpu=torch.device(args.device).type == "cpu")\n' in converted
    before = [line.strip() for line in WAYS[way][1].splitlines() if line != "pass"]
    assert all(converted.index(f"    {line}\n") < converted.index("accelerator = Acc") for line in before)


@pytest.mark.parametrize("way", WAYS)
def test_what_goes_by_the_machine_alone_asks_nothing(convert_text, way):
    _, converted = convert_text(program(way, f"torch.device({ALONE})"))
    assert "accelerator = Accelerator()\n" in converted


@pytest.mark.parametrize("way", WAYS)
def test_what_reads_it_is_on_the_device_of_the_process(convert_text, way):
    _, converted = convert_text(program(way, f"torch.device({FLAGGED})"))
    assert "steps = torch.zeros(8, 4, device=accelerator.device)" in converted
    assert "noise = Noise(accelerator.device)" in converted


@pytest.mark.parametrize("way", WAYS)
def test_a_text_that_functions_are_handed_stays_one(convert_text, way):
    _, converted = convert_text(program(way, FLAGGED))
    assert "steps = torch.zeros(8, 4, device=accelerator.device)" in converted
    assert "noise = Noise(accelerator.device.type)" in converted


@pytest.mark.parametrize("way", WAYS)
def test_a_variable_of_its_own_reads_it(convert_text, way):
    _, converted = convert_text(program(way, FLAGGED, device="device"))
    asks = "Accelerator(cpu=torch.device(device).type" in converted  # which stands below the variable then
    assert asks or "device = accelerator.device.type\n" in converted
    assert "cuda:0" not in converted or not asks
    assert "steps = torch.zeros(8, 4, device=device)" in converted


@pytest.mark.parametrize("way", WAYS)
def test_an_object_keeps_what_it_was_given(convert_text, way):
    _, converted = convert_text(program(way, f"torch.device({FLAGGED})"))
    assert "return torch.zeros(x.shape).to(self.device)" in converted


@pytest.mark.parametrize("way", WAYS)
def test_what_is_compared_stays_a_text(convert_text, way):
    _, converted = convert_text(program(way, FLAGGED, use="ahead = args.device == 'cuda'"))
    assert "ahead = args.device == 'cuda'" in converted
    assert "steps = torch.zeros(8, 4, device=accelerator.device)" in converted


def test_a_variable_that_nothing_reads_goes(convert_text):
    source = program("by a caller", FLAGGED, device="device").replace("noise = Noise(device)", "noise = Noise('cpu')")
    _, converted = convert_text(source.replace("torch.zeros(8, 4, device=device)", "torch.zeros_like(x)"))
    assert "device = a" not in converted.replace("args.device = ", "")


@pytest.mark.parametrize("way", WAYS)
def test_it_trains_as_before(convert_text, numbers_printed, way):
    source = textwrap.dedent(program(way, FLAGGED))
    _, converted = convert_text(source)
    assert numbers_printed(converted, 1) == numbers_printed(source, 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_number_in_it_is_said(convert_text, way):
    report, _ = convert_text(program(way, FLAGGED.replace("cuda:0", "cuda:1")))
    said = [finding for finding in report.findings if "no longer chooses the GPU" in finding.message]
    assert [finding.message.partition(" no longer")[0] for finding in said] == ["'cuda:1'"]


ON_THE_MODULE = """
import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main_worker(index, opt):
    torch.manual_seed(0)
    if index >= 0 and opt.device.type == "cuda":
        opt.device = torch.device(f"cuda:{index}")
    if opt.distributed:
        dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", world_size=opt.world_size, rank=index)
    model = nn.Linear(2, 1).to(opt.device)
    if opt.distributed:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[opt.device])
    data = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    sampler = torch.utils.data.distributed.DistributedSampler(data) if opt.distributed else None
    loader = DataLoader(data, batch_size=4, sampler=sampler, shuffle=sampler is None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        x, y = x.to(opt.device), y.to(opt.device)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--no_cuda", action="store_true")
    parser.add_argument("--distributed", action="store_true")
    opt = parser.parse_args()
    opt.device = torch.device("cpu" if opt.no_cuda else "cuda")
    opt.world_size = torch.cuda.device_count()
    if opt.distributed:
        mp.spawn(main_worker, nprocs=opt.world_size, args=(opt,))
    else:
        main_worker(-1, opt)
"""


def test_a_device_that_goes_is_not_said_to_stay(convert_text):
    report, result = convert_text(ON_THE_MODULE)
    assert "Accelerator(cpu=opt.no_cuda)" in result
    assert 'torch.device("cpu" if' not in result
    assert not [finding for finding in report.findings if "stays the GPU or the CPU" in finding.message]
