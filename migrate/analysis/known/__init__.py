"""What library calls make, take and give: tables, one file a subject. A new library is a new row, not new code.

A user's own rows come from `[tool.migrate.known]` in pyproject.toml (`user.py`, docs/tables.md).
"""

from migrate.analysis.known import (
    accelerators,
    amp,
    callers,
    data,
    devices,
    distributed,
    losses,
    metrics,
    models,
    optim,
    output,
    progress,
    schedulers,
    tensors,
    timm,
    transformers,
)
from migrate.analysis.known.lookup import Tables

ROWS = tuple(
    row
    for subject in (
        accelerators,
        amp,
        callers,
        data,
        devices,
        distributed,
        losses,
        metrics,
        models,
        optim,
        output,
        progress,
        schedulers,
        tensors,
        timm,
        transformers,
    )
    for row in subject.ROWS
)
TABLES = Tables(ROWS)

__all__ = ["ROWS", "TABLES", "Tables"]
