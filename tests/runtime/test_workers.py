"""Augmentation in workers: each process in its own way, and as ever on one."""

import random

import pytest
import torch
from ranks import run_ranks
from torch.utils.data import DataLoader, Dataset

from runtime import Accelerator


class Noisy(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return index, torch.rand(()).item(), random.random()  # noqa: S311


def init(worker):
    random.seed(worker)


def drawn(is_seeding=False, is_prepared=True):
    torch.manual_seed(1)
    random.seed(1)
    settings = {"num_workers": 1, "multiprocessing_context": "fork", "worker_init_fn": init if is_seeding else None}
    loader = DataLoader(Noisy(), batch_size=2, shuffle=True, **settings)
    if is_prepared:
        loader = Accelerator(cpu=True).prepare(loader)
    return [(i.tolist(), a.tolist(), b.tolist()) for i, a, b in loader]


def test_one_process_draws_what_the_plain_loader_draws():
    assert drawn() == drawn(is_prepared=False)


def test_each_process_draws_its_own():
    first, second = run_ranks(drawn, 2)
    alone = drawn(is_prepared=False)

    assert sorted(i for batch in (*first, *second) for i in batch[0]) == list(range(8))
    assert first[0][1:] == alone[0][1:]
    assert not {a for batch in first for a in batch[1]} & {a for batch in second for a in batch[1]}
    assert not {b for batch in first for b in batch[2]} & {b for batch in second for b in batch[2]}


@pytest.mark.parametrize("size", [2])
def test_what_the_program_seeds_by_itself_stays(size):
    first, second = run_ranks(drawn, size, True)

    assert [batch[2] for batch in first] == [batch[2] for batch in second]
