"""TensorBoard: event files in `logging_dir/project_name`."""

from __future__ import annotations

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from runtime.tracking.base import GeneralTracker, Omissions, in_json, plain


class TensorBoardTracker(GeneralTracker):
    """Numbers become scalars, texts texts, and dictionaries of numbers scalars in one figure.

    Args:
        kwargs: for `torch.utils.tensorboard.SummaryWriter`.
    """

    name = "tensorboard"
    requires_logging_directory = True
    packages = ("tensorboard", "tensorboardX")

    def __init__(self, run_name: str, logging_dir: str | os.PathLike[str], **kwargs: Any) -> None:
        super().__init__()
        self.run_name = run_name
        self.logging_dir = os.path.join(logging_dir, run_name)
        self._options = kwargs
        self._omissions = Omissions(self.name)
        self.writer: Any = None

    @property
    def tracker(self) -> Any:
        """The SummaryWriter."""
        return self.writer

    def start(self) -> None:
        try:
            package = import_module("torch.utils.tensorboard")
        except ImportError:
            package = import_module("tensorboardX")  # the older one with the same interface
        self.writer = package.SummaryWriter(self.logging_dir, **self._options)

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Settings as hyperparameters and in `<seconds>/hparams.yml`; what is no number or text is written as text."""
        settings = plain(values)
        known = {
            key: value if isinstance(value, (bool, int, float, str)) else str(value) for key, value in settings.items()
        }
        self.writer.add_hparams(known, metric_dict={})
        self.writer.flush()
        folder = Path(self.logging_dir, str(time.time()))
        folder.mkdir(parents=True, exist_ok=True)
        lines = (f"{in_json(key)}: {in_json(value)}\n" for key, value in settings.items())
        (folder / "hparams.yml").write_text("".join(lines), encoding="utf-8")  # JSON is YAML, too

    def log(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        for key, value in plain(values).items():
            if isinstance(value, (int, float)):
                self.writer.add_scalar(key, value, global_step=step, **options)
            elif isinstance(value, str):
                self.writer.add_text(key, value, global_step=step, **options)
            elif isinstance(value, dict):
                self.writer.add_scalars(key, self._numbers(key, value), global_step=step, **options)
            else:
                self._omissions.tell(key, f"{type(value).__name__} is no number, text or dictionary of numbers.")
        self.writer.flush()

    def _numbers(self, key: str, values: dict[Any, Any]) -> dict[str, Any]:
        kept = {str(name): value for name, value in values.items() if isinstance(value, (int, float))}
        for name, value in values.items():
            if str(name) not in kept:
                self._omissions.tell(f"{key}/{name}", f"{type(value).__name__} is no number, as in a figure all are.")
        return kept

    def log_images(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        """Batches of images by key; `options` go to `SummaryWriter.add_images`."""
        for key, images in values.items():
            self.writer.add_images(key, images, global_step=step, **options)

    def finish(self) -> None:
        self.writer.close()
