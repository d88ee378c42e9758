"""Training without chance and without statistics of the batch: N shares of a batch have the gradient of the whole."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch.nn.modules import batchnorm

from migrate.verify.recorder.journal import Journal

DROPOUTS = (
    "dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout",
)  # fmt: skip
NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")


def make_neutral(journal: Journal) -> None:
    """For the whole process: nothing is dropped, and batch norms use and keep the statistics that they have."""
    for name in DROPOUTS:
        setattr(F, name, _kept)
    attention = F.scaled_dot_product_attention

    def attend(q: Any, k: Any, v: Any, mask: Any = None, dropout_p: float = 0.0, *rest: Any, **named: Any) -> Any:
        return attention(q, k, v, mask, 0.0, *rest, **named)

    setattr(F, "scaled_dot_product_attention", attend)  # noqa: B010 - mypy refuses the assignment
    for name in NORMS:
        _cover_norm(getattr(batchnorm, name), journal)
    for kind in (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
        _cover_recurrent(kind)


def _kept(input: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:  # noqa: A002 - PyTorch's name
    return input


def _cover_norm(kind: Any, journal: Journal) -> None:
    run = kind.forward

    def forward(self: Any, input: torch.Tensor) -> torch.Tensor:  # noqa: A002
        if not self.training:
            return run(self, input)  # type: ignore[no-any-return]
        if self.running_mean is None:
            journal.write("unsteady", layer=type(self).__name__)
            return run(self, input)  # type: ignore[no-any-return]
        return F.batch_norm(input, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)

    kind.forward = forward


def _cover_recurrent(kind: Any) -> None:
    run = kind.forward

    def forward(self: Any, *arguments: Any, **options: Any) -> Any:
        before, self.dropout = self.dropout, 0.0
        try:
            return run(self, *arguments, **options)
        finally:
            self.dropout = before

    kind.forward = forward
