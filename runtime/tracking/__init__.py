"""Where a run's numbers go: one small interface, and what is behind it.

A tracker's package is imported when the tracker starts, on the process that writes.
"""

from __future__ import annotations

from runtime.tracking.base import GeneralTracker, Silent, on_main_process
from runtime.tracking.choice import TRACKERS, LoggerType, chosen
from runtime.tracking.files import CSVTracker, JSONLTracker
from runtime.tracking.mlflow import MLflowTracker
from runtime.tracking.tensorboard import TensorBoardTracker
from runtime.tracking.wandb import WandBTracker

__all__ = [
    "TRACKERS",
    "CSVTracker",
    "GeneralTracker",
    "JSONLTracker",
    "LoggerType",
    "MLflowTracker",
    "Silent",
    "TensorBoardTracker",
    "WandBTracker",
    "chosen",
    "on_main_process",
]
