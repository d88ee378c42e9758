"""Whether this torch can shard models on the CPU, which is what the tests here have; FSDP2 needs 2.7 for it."""

import pytest
import torch

CAN_SHARD = hasattr(torch.cpu.Stream, "record_event")
needs_shards = pytest.mark.skipif(not CAN_SHARD, reason="shards models on the CPU, which torch can from 2.7 on")
