"""Data and work that the processes share out among them by numbers that are computed of their rank."""

import pytest

from migrate.report.model import Kind

SOURCE = """
import itertools
import os
import torch
from datasets import load_dataset
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
def part(rows, first, last):
    return rows[first:last]
def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(7 + rank * 100)
    x, y = torch.arange(64.0).view(32, 2), torch.ones(32, 1)
    {shared}
    loader = DataLoader({data}, batch_size=4)
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    {after}
    if rank == 0:
        print("done")
main()
"""
ALL = "TensorDataset(x, y)"
BY_HAND = {  # what shares out, the data set, and the line that is told
    "bounds that are computed": ("n = 32 // world; x, y = x[rank * n:], y[(rank - 1) * n:]", ALL, "x[rank * n:]"),
    "a first row that has a name": ("n = rank * 16\n    x, y = x[n:n + 16], y[n:n + 16]", ALL, "x[n:n + 16]"),
    "a range from the rank on": ("mine = range(rank, 32, 2)", "Subset(TensorDataset(x, y), mine)", "Subset("),
    "a list of rows": ("mine = list(range(rank, 32, world))\n    x, y = x[mine], y[mine]", ALL, "x[mine]"),
    "bounds that a function is handed": ("x = part(x, rank * 16, rank * 16 + 16)", ALL, "rows[first:last]"),
    "bounds that a function is handed by name": ("x = part(x, last=9, first=16 * rank)", ALL, "rows[first:last]"),
    "every n-th of a stream": ("x = torch.stack([*itertools.islice(x, rank, None, world)])", ALL, "itertools.islice("),
    "a shard": ("corpus = load_dataset('csv').shard(num_shards=world, index=rank)", "corpus", ".shard("),
    "a part that a method gives": ("x, y = x.narrow(0, rank * 16, 16), y[:16]", ALL, "x.narrow("),
    "chosen rows": ("corpus = load_dataset('csv').select(range(rank, 32, world))", "corpus", ".select("),
    "bounds of two names": ("a, b = rank * 16, rank * 16 + 16\n    x, y = x[a:b], y[a:b]", ALL, "x[a:b]"),
}
NOT_BY_HAND = {
    "a seed": "torch.manual_seed(7 + rank * 100)",
    "a port": 'os.environ["SOME_PORT"] = str(29500 + rank * 2)',
    "a number that takes nothing": "n = rank * 16\n    print(n)",
    "a row that is not by the rank": "n = world * 2\n    x, y = x[:n * 8], y[:n * 8]",
}


@pytest.mark.parametrize("name", BY_HAND)
def test_data_that_is_shared_out_above_is_not_shared_out_again(refused_text, name):
    shared, data, at = BY_HAND[name]
    refused_text(SOURCE.format(shared=shared, data=data, after=""), "MIG113", at, ["shares its data out", "by rank"])


@pytest.mark.parametrize("name", NOT_BY_HAND)
def test_other_numbers_of_the_rank_share_nothing_out(convert_text, name):
    report, text = convert_text(SOURCE.format(shared=NOT_BY_HAND[name], data=ALL, after=""))

    assert not report.of(Kind.LEFT)
    assert "accelerator.prepare(" in text


@pytest.mark.parametrize("over", ["range(rank, 32, world)", "mine"])
def test_work_that_is_done_by_turns_is_refused(refused_text, over):
    after = f"mine = range(rank, 32, world)\n    for i in {over}:\n        torch.save(x, str(i))"
    refused_text(SOURCE.format(shared="", data=ALL, after=after), "MIG113", f"in {over}:", ["shares its work out"])


ABOVE_A_TRAINER = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
class Settings:
    pass
class Trainer:
    def __init__(self, settings):
        self.settings = settings
        data = TensorDataset(torch.arange(64.0).view(32, 2), torch.ones(32, 1))
        self.loader = DataLoader(data, batch_size=settings.batch_size)
        self.model = DistributedDataParallel(nn.Linear(2, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5)
    def train(self):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
        if self.settings.rank == 0:
            print("done")
        print(getattr(self.settings, "{read}"))
def main():
    settings = Settings()
    settings.batch_size = 4
    dist.init_process_group("gloo")
    settings.{read} = {said}
    {before}
    trainer = Trainer(settings)
    trainer.train()
main()
"""
SAID = {
    "rank": ("dist.get_rank()", 'int(os.environ.get("RANK", "0"))'),
    "local_rank": ('int(os.environ["LOCAL_RANK"])', 'int(os.environ.get("LOCAL_RANK", "0"))'),
    "world_size": ("dist.get_world_size()", 'int(os.environ.get("WORLD_SIZE", "1"))'),
    "is_main": ("dist.get_rank() == 0", 'os.environ.get("RANK", "0") == "0"'),
}


@pytest.mark.parametrize("read", SAID)
def test_which_process_this_is_is_kept_above_the_accelerator(convert_text, read):
    said, now = SAID[read]
    before = "settings.rank = dist.get_rank()" if read != "rank" else ""
    report, text = convert_text(ABOVE_A_TRAINER.format(read=read, said=said, before=before))

    assert not report.of(Kind.LEFT)
    assert f"settings.{read} = {now}\n" in text
    assert "import os\n" in text
    assert "if self.accelerator.is_main_process:" in text


WRITES = """settings.rank = dist.get_rank()
    if settings.rank == 0:
        os.makedirs("out", exist_ok=True)
        torch.save(torch.ones(1), "out/rows.pt")"""
SAID_OF_MAIN = {"read": "is_main", "said": "dist.get_rank() == 0"}


def test_what_the_main_process_does_above_the_accelerator_it_goes_on_doing(convert_text):
    report, text = convert_text(ABOVE_A_TRAINER.format(**SAID_OF_MAIN, before=WRITES))

    assert not report.of(Kind.LEFT)
    assert '    if os.environ.get("RANK", "0") == "0":\n        os.makedirs("out", exist_ok=True)\n' in text


@pytest.mark.parametrize("wait", ["dist.barrier()", "torch.distributed.barrier()"])
def test_what_others_wait_for_above_the_accelerator_is_refused(refused_text, wait):
    source = ABOVE_A_TRAINER.format(**SAID_OF_MAIN, before=f"{WRITES}\n    {wait}")
    refused_text(source, "MIG113", "if settings.rank == 0:", ["before the accelerator exists"])
