"""apex.parallel is PyTorch's own."""

from torch.nn.parallel import DistributedDataParallel  # noqa: F401
