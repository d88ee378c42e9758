"""The import of `notebook_launcher`, and of PyTorch where the start asks it how many GPUs there are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import first_line, last_line
from migrate.launching.names import bound

if TYPE_CHECKING:
    from migrate.launching.view import View

LAUNCHER = "notebook_launcher"


def imported(view: View) -> tuple[int, int, list[str]]:
    """The launcher beside what is imported already, and PyTorch where only its parts are imported."""
    asks_torch = view.package == "accelerate" and "torch" not in bound(view.cells)  # how many GPUs there are
    torch = ["import torch"] if asks_torch else []
    for node in view.cells:
        if isinstance(node, ast.ImportFrom) and node.module == view.package and first_line(node) == last_line(node):
            listed = {ast.unparse(alias) for alias in node.names} - view.unneeded
            names = sorted({*listed, LAUNCHER}, key=lambda n: (n[0].islower(), n))
            return first_line(node), last_line(node), [*torch, f"from {view.package} import {', '.join(names)}"]
    first = next(node for node in view.cells)
    return first_line(first), first_line(first) - 1, [*torch, f"from {view.package} import {LAUNCHER}"]
