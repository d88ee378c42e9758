# ruff: noqa: F401, I001, N817
"""What programs that distribute themselves begin with, besides: imports, and those of these functions that they use."""

import argparse
import os
import socket
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler


def init_distributed_mode(args):
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        args.distributed, args.rank, args.world_size = False, 0, 1
        return
    args.rank, args.world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    args.distributed = True
    dist.init_process_group(backend="gloo", init_method="env://", world_size=args.world_size, rank=args.rank)
    dist.barrier()


def is_dist_avail_and_initialized():
    return dist.is_available() and dist.is_initialized()


def is_main_process():
    return not is_dist_avail_and_initialized() or dist.get_rank() == 0


def save_on_master(*args, **kwargs):
    if is_main_process():
        torch.save(*args, **kwargs)


def reduce_mean(tensor, world_size):
    if world_size == 1:
        return tensor
    reduced = tensor.clone()
    dist.all_reduce(reduced, op=dist.ReduceOp.SUM)
    reduced /= world_size
    return reduced


def gather_rows(tensor, world_size):
    if world_size == 1:
        return tensor
    found = [torch.zeros_like(tensor) for _ in range(world_size)]
    dist.all_gather(found, tensor)
    return torch.cat(found, dim=0)


def unwrapped(model):
    return model.module if isinstance(model, DistributedDataParallel) else model


def find_free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


def get_spawning_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--resume", default="last.pt")
    parser.add_argument("--gpus", type=int, default=1, help="how many processes train")
    parser.add_argument("--port", type=int, default=0)
    return parser.parse_args()
