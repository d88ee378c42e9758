"""Scripts of several processes in one folder: each has functions of the names of the others, and all share helpers."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

HELPERS = """\
import torch
import torch.distributed as dist


def reduce_mean(tensor, nprocs):
    rt = tensor.clone()
    dist.all_reduce(rt, op=dist.ReduceOp.SUM)
    rt /= nprocs
    return rt


def validate(loader, model, criterion, local_rank, args):
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            x, y = x.cuda(local_rank), y.cuda(local_rank)
            loss = criterion(model(x), y)
            dist.barrier()
            shown = reduce_mean(loss, args.nprocs)
            if local_rank == 0:
                print(shown.item())
"""
SCRIPT = """\
import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from helpers import reduce_mean, validate
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=-1, type=int)
parser.add_argument("--lr", default={rate}, type=float)


def main():
    args = parser.parse_args()
    args.nprocs = torch.cuda.device_count()
    {start}


def main_worker(local_rank, nprocs, args):
    args.local_rank = local_rank
    dist.init_process_group("nccl", world_size=args.nprocs, rank=local_rank)
    torch.cuda.set_device(local_rank)
    model = nn.Linear(2, 1).cuda(local_rank)
    model = nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    rows = TensorDataset(torch.ones(64, 2), torch.ones(64, 1))
    batch_size = int(8 / nprocs)
    sampler = DistributedSampler(rows)
    loader = DataLoader(rows, batch_size=batch_size, sampler=sampler)
    held = DataLoader(rows, batch_size=batch_size, sampler=DistributedSampler(rows))
    for epoch in range(2):
        model.train()
        sampler.set_epoch(epoch)
        for x, y in loader:
            x, y = x.cuda(local_rank), y.cuda(local_rank)
            loss = criterion(model(x), y)
            dist.barrier()
            mean = reduce_mean(loss, args.nprocs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if args.local_rank == 0:
                print(mean.item())
        validate(held, model, criterion, local_rank, args)


if __name__ == "__main__":
    main()
"""
LAUNCHED = SCRIPT.format(rate=0.1, start="main_worker(args.local_rank, args.nprocs, args)")
SPAWNING = SCRIPT.format(rate=0.2, start="mp.spawn(main_worker, nprocs=args.nprocs, args=(args.nprocs, args))")
OF_PROCESSES = (
    "local_rank",
    "nprocs",
    "torch.distributed",
    "dist.",
    "mp.",
    "DistributedSampler(rows)\n",
)


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(*paths, **files):
        for name, text in {"helpers": HELPERS, **files}.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        report = run([*(paths or ["."])], Options())
        after = {change.path: change.new.decode() for change in report.changes}
        return after, [finding for finding in report.findings if finding.kind is Kind.LEFT]

    return convert


@pytest.mark.parametrize("scripts", [("launched",), ("spawning",), ("launched", "spawning")])
def test_each_is_converted_with_what_it_shares(converted, scripts):
    files = {"launched": LAUNCHED, "spawning": SPAWNING}

    after, left = converted(**{name: files[name] for name in scripts})

    assert not left
    assert after.keys() == {"helpers.py", *(f"{name}.py" for name in scripts)}
    for path, text in after.items():
        assert not [word for word in OF_PROCESSES if word in text], path
        compile(text, path, "exec")


@pytest.mark.parametrize("scripts", [("launched",), ("launched", "spawning")])
def test_a_mean_goes_on_being_taken_and_not_in_the_evaluation(converted, scripts):
    files = {"launched": LAUNCHED, "spawning": SPAWNING}

    after, _ = converted(**{name: files[name] for name in scripts})

    assert "shown = loss\n" in after["helpers.py"]
    assert 'reduction="sum")\n    rt /= accelerator.num_processes\n' in after["helpers.py"]
    for name in scripts:
        assert "mean = reduce_mean(loss, accelerator)\n" in after[f"{name}.py"]


def test_what_they_share_is_shared_out_in_evaluations(converted):
    after, _ = converted(launched=LAUNCHED, spawning=SPAWNING)

    assert "def validate(loader, model, criterion, accelerator):" in after["helpers.py"]
    assert "accelerator.gather_for_metrics(" in after["helpers.py"]
    for name in ("launched.py", "spawning.py"):
        assert "validate(held, model, criterion, accelerator)" in after[name]


def test_a_helper_that_would_differ_for_them_keeps_both_back(converted):
    own = SPAWNING.replace("sampler=DistributedSampler(rows))", "sampler=DistributedSampler(rows), drop_last=True)")
    own = own.replace("loss.backward()", "loss.backward(torch.ones_like(loss) * x.shape[0], inputs=[x])")

    after, left = converted(launched=LAUNCHED, spawning=own)

    assert left
    assert not after


def test_names_that_another_file_imports_are_its_own(converted):
    third = "from launched import main_worker\n\n\ndef run(args):\n    main_worker(0, 2, args)\n"

    after, left = converted(launched=LAUNCHED, spawning=SPAWNING, third=third)

    assert left or "main_worker(args" in after["third.py"]
