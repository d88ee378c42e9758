"""Devices that a user names in settings which a library reads: the accelerator asks for them."""

import pytest

PROGRAM = """
import torch
from dataclasses import dataclass
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{imports}


@{decorator}
class Args:
    lr: float = 0.1
    device: str = "cuda"


def main(args):
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
    model = nn.Linear(2, 1).to(args.device)
    optimizer = optim.SGD(model.parameters(), lr=args.lr)
    for x, y in loader:
        x, y = x.to(args.device), y.to(args.device)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


{read}
main(args)
"""
HF = "from transformers import HfArgumentParser"
READ = {
    "of one class": (HF, "dataclass", "(args,) = HfArgumentParser(Args).parse_args_into_dataclasses()"),
    "of several": (HF, "dataclass", "args, more = HfArgumentParser((Args, More)).parse_args_into_dataclasses()"),
    "the first of them": (HF, "dataclass", "args = HfArgumentParser(Args).parse_args_into_dataclasses()[0]"),
    "by a decorator": ("from classopt import classopt", "classopt", "args = Args.from_args()"),
}


@pytest.mark.parametrize("name", READ)
def test_what_a_library_reads_is_what_the_user_says(convert_text, name):
    imports, decorator, read = READ[name]
    _, result = convert_text(PROGRAM.format(imports=imports, decorator=decorator, read=read))

    assert 'Accelerator(cpu=torch.device(args.device).type == "cpu")' in result
    assert ".to(args.device)" not in result
