"""Weights & Biases: one run, by the main process."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from runtime.tracking.base import GeneralTracker


class WandBTracker(GeneralTracker):
    """A run of the project; values go to it as they are.

    Args:
        kwargs: for `wandb.init`.
    """

    name = "wandb"
    requires_logging_directory = False
    packages = ("wandb",)

    def __init__(self, run_name: str, **kwargs: Any) -> None:
        super().__init__()
        self.run_name = run_name
        self._options = kwargs
        self.run: Any = None

    @property
    def tracker(self) -> Any:
        """The run."""
        return self.run

    def start(self) -> None:
        wandb = import_module("wandb")

        self.run = wandb.init(project=self.run_name, **self._options)

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        self.run.config.update(values, allow_val_change=True)

    def log(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        self.run.log(values, step=step, **options)

    def log_images(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        """Lists of images by key."""
        wandb = import_module("wandb")

        for key, images in values.items():
            self.log({key: [wandb.Image(image) for image in images]}, step, **options)

    def log_table(
        self,
        table_name: str,
        columns: list[str] | None = None,
        data: list[list[Any]] | None = None,
        dataframe: Any = None,
        step: int | None = None,
        **options: Any,
    ) -> None:
        """A table, from columns and data or from a data frame."""
        wandb = import_module("wandb")

        self.log({table_name: wandb.Table(columns=columns, data=data, dataframe=dataframe)}, step, **options)

    def finish(self) -> None:
        self.run.finish()
