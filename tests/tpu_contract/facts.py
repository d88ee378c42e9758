"""What the real torch_tpu is like on a machine without a TPU, as JSON. Run with the Python of its environment."""

from __future__ import annotations

import importlib.metadata
import inspect
import json
import time
import warnings

start = time.monotonic()
warnings.simplefilter("ignore")
import torch  # noqa: E402


def said(function, *arguments, **options):
    """The error that a call raises, in words; nothing if it raises none."""
    try:
        function(*arguments, **options)
    except Exception as error:  # noqa: BLE001  whatever it is
        return f"{type(error).__name__}: {error}"
    return ""


def stage(name):
    """What the package says of a name of its module: Internal, Experimental, ..."""
    found = inspect.getattr_static(torch.tpu, name, None) or vars(type(torch.tpu)).get(name)
    member = getattr(found, "__func__", found)
    return str(getattr(member, "__tt_api_stage__", "") or getattr(getattr(torch.tpu, name), "__tt_api_stage__", ""))


def launch_variables(count):
    """What is set for that many processes on a machine with four chips of a v6e; or the error."""
    import os

    from torch_tpu._internal.utils import hardware

    hardware._scan_pci_tpus = lambda: (4, hardware._V6E_TOPOLOGY)
    error = said(torch.tpu.distributed.set_tpu_launch_env, nproc_per_node=count)
    return error or sorted(name for name in os.environ if name.startswith("TORCH_TPU_") and name != "TORCH_TPU_PYTHON")


def main():
    import torch.tpu.distributed

    names = [name for name in dir(torch.tpu) if name != "default_generators"]  # which starts the client
    facts = {
        "version": importlib.metadata.version("torch_tpu"),
        "names": [*names, "default_generators"],
        "stages": {name: stage(name) for name in names if not name.startswith("_")},
        "refusals": {n: said(getattr(torch.tpu, n), *a) for n, a in (("is_available", ()), ("device_count", ()))},
        "is_available": torch.accelerator.is_available(),
        "accelerator": str(torch.accelerator.current_accelerator()),
        "device": said(torch.device, "tpu"),
        "signature": str(inspect.signature(torch.tpu.distributed.set_tpu_launch_env)),
        "without chips": said(torch.tpu.distributed.set_tpu_launch_env, nproc_per_node=4),
        "seconds": time.monotonic() - start,
    }
    from runtime import Accelerator
    from runtime.devices.tpu import Tpu

    facts |= {"found": Tpu.is_available(), "chosen": str(Accelerator().device)}
    facts |= {"two": launch_variables(2), "four": launch_variables(4)}
    print(json.dumps(facts))


main()
