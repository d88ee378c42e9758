"""What a script asks about models that were prepared, and the files it writes of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Any

from torch import nn

from runtime import save
from runtime.errors import SaveError
from runtime.precision import restore
from runtime.processes import Processes
from runtime.project import ProjectConfiguration
from runtime.strategies import Strategy, is_distributed_tensor, unwrapped
from runtime.tree import leaves


class Files(Processes):
    """The part of `Accelerator` that takes models out of their wrappers and writes files, each by one process."""

    project_configuration: ProjectConfiguration

    _strategy: Strategy

    @property
    def project_dir(self) -> str | os.PathLike[str] | None:
        """The folder of the run's files."""
        return self.project_configuration.project_dir

    @property
    def logging_dir(self) -> str | os.PathLike[str] | None:
        """The folder that trackers write into."""
        return self.project_configuration.logging_dir

    @property
    def save_iteration(self) -> int:
        """The number of the next checkpoint with an automatic name."""
        return self.project_configuration.iteration

    @property
    def _writes_files(self) -> bool:
        """Whether this process writes what all have alike."""
        on_each = self.project_configuration.save_on_each_node
        return self.is_local_main_process if on_each else self.is_main_process

    def unwrap_model(self, model: Any, keep_fp32_wrapper: bool = True, keep_torch_compile: bool = True) -> Any:
        """The model that was given to `prepare`, without DistributedDataParallel or DataParallel around it.

        Args:
            keep_fp32_wrapper: False gives the model its own `forward` back, without mixed precision.
            keep_torch_compile: False takes the wrapper of `torch.compile` off, too.
        """
        return plain_model(model, keep_fp32_wrapper, keep_torch_compile)

    def get_state_dict(self, model: nn.Module, unwrap: bool = True) -> dict[str, Any]:
        """The state dictionary with the keys of the original model (or those of `model` as it is).

        Of a sharded model it is gathered on the main process, so all processes must ask; the others get an empty one.
        """
        return self._strategy.state_dict(model) if unwrap else model.state_dict()

    def save(self, obj: Any, f: str | os.PathLike[str] | IO[bytes], safe_serialization: bool = False) -> None:
        """`torch.save` by the main process, into a file that is either whole or not there.

        With `ProjectConfiguration(save_on_each_node=True)` one process of each machine writes it.

        Raises:
            SaveError: `obj` holds this process's part of a sharded model, or the folder is missing.
        """
        if any(is_distributed_tensor(leaf) for leaf in leaves(obj)):
            raise SaveError(
                "what is to be saved holds distributed tensors, of which this process has a part. Save what all "
                "processes get by accelerator.get_state_dict(model), or call accelerator.save_state()."
            )
        if self._writes_files:
            save.save(obj, f, safe_serialization)

    def save_model(
        self,
        model: nn.Module,
        save_directory: str | os.PathLike[str],
        max_shard_size: int | str = "10GB",
        safe_serialization: bool = True,
    ) -> None:
        """The model's weights into a folder, as `model.safetensors` or `pytorch_model.bin`.

        Written by those that `save` writes by; of a sharded model, which all processes must save, by the main one.

        Args:
            max_shard_size: bytes, or text such as "10GB", of one file; larger models go into several, and an index.

        Raises:
            SaveError: the folder is a file, or the values are none that safetensors can hold.
        """
        state = self.get_state_dict(model)
        if self.is_main_process or (self._writes_files and not self._strategy.is_sharded(model)):
            save.save_weights(state, Path(save_directory), max_shard_size, safe_serialization)


def plain_model(model: Any, keep_fp32_wrapper: bool, keep_torch_compile: bool) -> Any:
    """See `Files.unwrap_model`."""
    inner = unwrapped(model, keep_torch_compile)
    if not keep_fp32_wrapper:
        restore(inner)
    return inner
