"""`runtime estimate`: how much memory a model takes while it is trained."""

from __future__ import annotations

from typing import Annotated

import typer

from runtime.cli.refusal import refuse

_GIB = 2**30
_MIB = 2**20

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="package.module:function, or a name that transformers knows.")
]


def estimate_command(model: Model) -> None:
    """Show how much memory a model takes while it is trained, without making it.

    \b
    Examples:
      runtime estimate train:make_model         a function or class of train.py, without arguments
      runtime estimate bert-base-cased          of transformers, where it is installed

    Counted are parameters and buffers, gradients, and the two moments of AdamW. With mixed_precision="bf16" these stay
    in float32. What the forward pass keeps for backward depends on the batch, and comes on top. Sharding (--use_fsdp)
    divides all by the number of processes.
    """
    from runtime import estimate  # late: imports torch
    from runtime.errors import ConfigurationError

    try:
        found = estimate.count(estimate.build(model))
    except ConfigurationError as error:
        refuse("estimate", error)
    largest = found.largest_layer or "the model itself"
    typer.echo(f"{found.parameters:,} parameters, {found.trained:,} of them trained; largest layer: {largest}\n")
    typer.echo(f"{'':10}{'model':>12}{'gradients':>12}{'AdamW':>12}{'training':>12}{'largest layer':>16}")
    for row in estimate.memory(found):
        name = str(row.dtype).removeprefix("torch.")
        sizes = [_size(part) for part in (row.model, row.gradients, row.optimizer, row.training)]
        typer.echo(f"{name:10}{''.join(f'{text:>12}' for text in sizes)}{_size(row.largest_layer):>16}")


def _size(count: int) -> str:
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB"), (2**10, "KiB")):
        if count >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} B"
