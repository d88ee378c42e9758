"""What a command says that cannot do what it was asked for."""

from __future__ import annotations

from typing import NoReturn

import typer


def refuse(command: str, problem: object) -> NoReturn:
    """Tell the problem in one line, and end with the status of a wrong use."""
    typer.echo(f"runtime {command}: {problem}", err=True)
    raise typer.Exit(2)
