"""The command line: parse, call the pipeline, print, exit. No decisions about code are made here.

| file | |
|---|---|
| `command.py` | the command: its options, and which answer is asked for |
| `flags.py` | one option each: its names and its help |
| `examples.py` | for every option a command that uses it |
| `asked.py` | what a command line asks for, and which of it exclude each other |
| `conversion.py` | files, or standard input, through the pipeline |
| `printing.py` | what is shown where |
| `interactive.py`, `undo.py` | before files are written: what a person accepts, and the way back |
| `narrowing.py` | of findings those that are new: `--since`, `--baseline` |
| `progress.py` | how far a long run is |
| `catalogue.py` | `--rules` and `--explain` |
| `guard.py` | errors become one line and a status |
"""

from migrate.cli.command import app, main

__all__ = ["app", "main"]
