"""What comes after `--` on a command line with `--verify`: the arguments of the script, not paths."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

END = "--"
FLAG = "--verify"


class Command(TyperCommand):
    """A command that hands what comes after `--` to the context's object, where a script is to be run with it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the rest as ever. Without `--verify`, `--` goes on meaning that paths follow."""
        if END in args and FLAG in args[: args.index(END)]:
            at = args.index(END)
            ctx.obj = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)
