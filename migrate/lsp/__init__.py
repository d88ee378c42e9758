"""A language server, for editors: `migrate-lsp`, or `python -m migrate.lsp`. docs/editors.md says how to set one up.

| file | |
|---|---|
| `program.py` | what is found in a text, and its whole conversion, over what the editor has not saved |
| `server.py` | the protocol: diagnostics, a code action |
"""

from __future__ import annotations

import sys

USAGE = "usage: migrate-lsp [--stdio]\n\nA language server on standard input and output, which an editor starts.\n"
MISSING = "migrate-lsp needs pygls, which is not installed: pip install 'torch-migrate[lsp]'"


def main() -> None:
    """The console script."""
    given = [argument for argument in sys.argv[1:] if argument != "--stdio"]  # some editors say it, there is no other
    if given:
        sys.stderr.write(USAGE)
        sys.exit(0 if given[0] in {"-h", "--help"} else 2)
    try:
        from migrate.lsp.server import SERVER
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"pygls", "lsprotocol"}:
            raise
        sys.exit(MISSING)
    SERVER.start_io()
