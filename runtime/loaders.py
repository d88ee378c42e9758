"""What a script asks of loaders that were prepared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from torch.utils.data import DataLoader

from runtime.config import Config
from runtime.errors import UnsupportedArgument
from runtime.handlers import DataLoaderConfiguration
from runtime.processes import Processes

if TYPE_CHECKING:
    from runtime.data.loader import PassesFor

T = TypeVar("T")


class Loaders(Processes):
    """The part of `Accelerator` that is about loaders, beside preparing them."""

    config: Config

    @property
    def dataloader_config(self) -> DataLoaderConfiguration:
        """How `prepare` was asked to share data out; a copy, in which `split_batches` is that of either place."""
        names = DataLoaderConfiguration.__dataclass_fields__.keys() & Config.__dataclass_fields__.keys()
        return DataLoaderConfiguration(**{name: getattr(self.config, name) for name in names})

    def skip_first_batches(self, dataloader: DataLoader[Any], num_batches: int = 0) -> DataLoader[Any]:
        """A loader that leaves out the first `num_batches` steps; see `runtime.skip_first_batches`."""
        from runtime.data.loader import skip_first_batches

        return skip_first_batches(dataloader, num_batches)

    def steps_per_epoch(self, dataloader: DataLoader[Any]) -> int:
        """The steps of this process in a pass that trains: what `len(dataloader)` is while nothing is evaluated on it.

        In an evaluation the rows of each batch are shared out, so it has as many steps as on one process, and
        `len(dataloader)` is that of the last pass. Of a loader that is not prepared its length.

        Raises:
            TypeError: the loader has no length.
        """
        return len(self.training_batches(dataloader))

    def steps_per_evaluation(self, dataloader: DataLoader[Any]) -> int:
        """The steps of a pass that evaluates: as many as on one process, since the rows of each batch are shared out.

        What `len(dataloader)` is once that pass has begun. Of a loader that is not prepared its length.

        Raises:
            TypeError: the loader has no length.
        """
        from runtime.data.loader import passes_for
        from runtime.data.passes import Purpose

        return len(passes_for(dataloader, Purpose.EVALUATION))

    def whole_batches(self, dataloader: DataLoader[T]) -> DataLoader[T] | PassesFor:
        """Passes in which every process has all of each batch, in the original order: each computes what one would.

        For an evaluation over a loader that is also trained on, whose batches cannot be cut into rows, such as graphs.
        What is computed there is that of the whole data set on each process, and need not be gathered. Of a loader that
        is not prepared, and on one process, the loader itself does the same.
        """
        from runtime.data.loader import passes_for
        from runtime.data.passes import Purpose

        return passes_for(dataloader, Purpose.WHOLE)

    def training_batches(self, dataloader: DataLoader[T]) -> DataLoader[T] | PassesFor:
        """Passes that train, also while every prepared model is in eval mode, which makes a pass an evaluation else.

        For a training that begins where an evaluation has left its model in eval mode: whole batches are dealt out as
        in every other epoch, and steps count as there. Of a loader that is not prepared, and on one process, the loader
        itself does the same.
        """
        from runtime.data.loader import passes_for
        from runtime.data.passes import Purpose

        return passes_for(dataloader, Purpose.TRAINING)

    def join_uneven_inputs(self, joinables: list[Any], even_batches: bool | None = None) -> NoReturn:
        """Not here: processes take the same number of steps, and a wait for one that is done is found and ended.

        Raises:
            UnsupportedArgument: always, with the way out.
        """
        del joinables, even_batches
        raise UnsupportedArgument(
            "join_uneven_inputs()",
            "With even_batches=True, the default, all processes take the same number of training steps, and an "
            "evaluation counts every sample once: leave it out.",
        )
