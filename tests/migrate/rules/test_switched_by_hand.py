"""Programs that are switched to several processes by a constant in the file, with a second name for the model."""

SWITCHED = """
import datetime
import os
from copy import deepcopy

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def is_parallel(model):
    return type(model) in (nn.parallel.DataParallel, nn.parallel.DistributedDataParallel)


def de_parallel(model):
    return model.module if is_parallel(model) else model


class ModelEMA:
    def __init__(self, model):
        self.ema = deepcopy(de_parallel(model)).eval()

    def update(self, model):
        with torch.no_grad():
            state = de_parallel(model).state_dict()
            for key, value in self.ema.state_dict().items():
                value.mul_(0.9).add_(state[key].detach(), alpha=0.1)


class History:
    def __init__(self, folder, model):
        self.folder = folder
        self.rows = []
        os.makedirs(self.folder)
        print(sum(p.numel() for p in model.parameters()))

    def append(self, row):
        if not os.path.exists(self.folder):
            os.makedirs(self.folder)
        self.rows.append(row)


class Preview:
    def __init__(self, net):
        self.net = net

    def show(self, net):
        self.net = net
        with torch.no_grad():
            print(self.net(torch.ones(1, 2)))


def fit_one_epoch(model_train, model, ema, history, preview, optimizer, epoch, loader, cuda, local_rank=0):
    total = 0
    for (x,) in loader:
        if cuda:
            x = x.cuda(local_rank)
        optimizer.zero_grad()
        loss = model_train(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        ema.update(model_train)
        total += loss.item()
    if local_rank == 0:
        history.append(total / len(loader))
{shown}
        torch.save(model.state_dict(), "last.pt")


if __name__ == "__main__":
    Cuda = True
    distributed = False
    if distributed:
        dist.init_process_group(backend="nccl")
        local_rank = int(os.environ["LOCAL_RANK"])
        device = torch.device("cuda", local_rank)
    else:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        local_rank = 0
    model = nn.Linear(2, 1)
    if local_rank == 0:
        time_str = datetime.datetime.strftime(datetime.datetime.now(), "%Y_%m_%d")
        history = History(os.path.join("logs", time_str), model)
    else:
        history = None
    model_train = model.train()
    if Cuda:
        if distributed:
            model_train = model_train.cuda(local_rank)
            model_train = nn.parallel.DistributedDataParallel(model_train, device_ids=[local_rank])
        else:
            model_train = nn.DataParallel(model)
            model_train = model_train.cuda()
    ema = ModelEMA(model_train)
    if True:
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        data = TensorDataset(torch.ones(8, 2))
        if distributed:
            sampler = DistributedSampler(data, shuffle=True)
            shuffle = False
        else:
            sampler = None
            shuffle = True
        loader = DataLoader(data, shuffle=shuffle, batch_size=4, sampler=sampler)
        if local_rank == 0:
            preview = Preview(model)
        else:
            preview = None
        for epoch in range(2):
            if distributed:
                sampler.set_epoch(epoch)
            fit_one_epoch(model_train, model, ema, history, preview, optimizer, epoch, loader, Cuda, local_rank)
"""
SHOWN = "        preview.show(model_train.eval())"


def converted(convert_text, shown="        print('shown')"):
    report, result = convert_text(SWITCHED.replace("{shown}", shown))
    assert "accelerator.backward(loss)" in result, [finding.message for finding in report.findings]
    return result


def test_the_name_that_the_program_trains_by_is_prepared(convert_text):
    result = converted(convert_text)

    assert "model_train = accelerator.prepare(model_train)" in result
    assert "accelerator.save(accelerator.unwrap_model(model).state_dict()" in result.replace(
        "torch.save", "accelerator.save"
    )
    assert "DistributedDataParallel(model_train" not in result


def test_a_branch_that_the_author_has_switched_on_himself_stays(convert_text):
    result = converted(convert_text)

    assert "    if True:\n        optimizer = optim.SGD(" in result
    assert "if distributed" not in result


def test_what_a_function_gives_back_of_the_prepared_model_is_unwrapped(convert_text):
    result = converted(convert_text)

    assert "accelerator.unwrap_model(de_parallel(model)).state_dict()" in result


def test_a_name_with_the_time_in_it_that_one_process_makes_up_for_itself_is_not_told_the_others(convert_text):
    result = converted(convert_text)

    assert "    if accelerator.is_local_main_process:\n        time_str = datetime" in result
    assert "broadcast_object_list" not in result


def test_objects_that_all_processes_use_are_made_by_all(convert_text):
    result = converted(convert_text, SHOWN)

    assert "    preview.show(model_train.eval()" in result
    assert "\n    time_str = broadcast_object_list([datetime" in result or "\n    time_str = datetime" in result
    assert "history = None" not in result
    assert "preview = None" not in result
