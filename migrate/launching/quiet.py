"""Functions that need the accelerator to speak with one voice, and that only the notebook's own process calls.

    def show(probabilities):                       def show(probabilities):
        for each in probabilities:           ->        for each in probabilities:
            accelerator.print(each)                        print(each)

One process has one voice, so they are as they were, and cells that call them are not started.
"""

from __future__ import annotations

import ast
import dataclasses
from typing import TYPE_CHECKING

from migrate.launching.alone import on_one_process
from migrate.launching.names import bound, mentioned, reached

if TYPE_CHECKING:
    from collections.abc import Mapping

    from migrate.launching.view import View


def without_voices(view: View) -> View:
    """The view in which such functions ask the accelerator nothing."""
    quiet = frozenset(_speaking(view))
    while quiet:
        trial = dataclasses.replace(view, quiet=quiet)
        started = [node for region in trial.regions for node in region.statements]
        theirs = reached(mentioned(started), trial.uses) | bound(started) | trial.bound_to_processes.names
        if not quiet & theirs:
            return trial if started else view
        quiet -= theirs
    return view


def lines_of_quiet(view: View) -> Mapping[ast.stmt, list[str]]:
    """Those functions, each with the lines of it that ask nothing."""
    return {view.definitions[name]: lines for name, lines in _speaking(view).items() if name in view.quiet}


def _speaking(view: View) -> dict[str, list[str]]:
    """The functions that can be written without the accelerator, and are; those of classes are not."""
    classes = [node for node in view.definitions.values() if isinstance(node, ast.ClassDef)]
    of_classes = reached(mentioned(classes), view.uses)
    found = {}
    for name, node in view.definitions.items():
        if isinstance(node, ast.FunctionDef) and view.accelerator in view.uses[name] and name not in of_classes:
            if (lines := on_one_process(view.text, node, view.accelerator, view.modules)) is not None:
                found[name] = lines
    return found
