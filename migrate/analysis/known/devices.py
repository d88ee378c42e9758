"""Devices: what names one, what says whether there is one."""

from migrate.analysis.known.table import Makes, Other, Row, each
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = (
    *each(Other, ("torch",), "cuda.* xpu.* mps.* cpu.* accelerator.* backends.*"),
    Makes("torch.device", Role.DEVICE),
    Makes("torch.accelerator.current_accelerator", Role.DEVICE),
    Makes("torch.cuda.current_device", Role.DEVICE),
    *each(
        Makes,
        ("torch",),
        "cuda.is_available accelerator.is_available xpu.is_available mps.is_available backends.mps.is_available "
        "backends.mps.is_built",
        role=Role.AVAILABLE,
    ),
    Makes("torch.npu.is_available", Role.AVAILABLE, old=True),  # torch_npu, a package beside torch, puts it there
    *each(Makes, ("torch",), "cuda.device_count accelerator.device_count xpu.device_count", role=Role.NUMBER),
)

#: Choose the device of the process.
SET_DEVICE = frozenset(
    {
        "torch.cuda.set_device",
        "torch.accelerator.set_device_index",
        "torch.accelerator.set_device_idx",
        "torch.xpu.set_device",
    }
)
#: Make a device the current one for a block.
IN_DEVICE = frozenset({"torch.cuda.device", "torch.xpu.device"})
