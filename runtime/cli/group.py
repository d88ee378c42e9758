"""All commands together, with all that they take."""

from __future__ import annotations

import typer

from runtime.cli import COMMANDS, LISTED, command, listing

app = typer.Typer(name="runtime", no_args_is_help=True, **LISTED)
app.callback()(listing.runtime)
for _name in COMMANDS:
    app.command(_name, context_settings=command(_name).context)(command(_name).function)
